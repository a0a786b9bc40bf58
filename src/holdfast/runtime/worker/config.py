"""What a process that works knows, whatever message comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.asl.program import Program
from holdfast.core.state import Execution
from holdfast.runtime.child_workflows import NO_WORKFLOWS, Workflows
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.formats import FORMATS, Formats


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What this process knows: definitions, which functions it can run, how to sign a token, and
    which workflows it can start for those that call them.

    `status_source`: by whom the bus is told when executions of state machines begin and end; None:
    by nobody. `formats`: what is read of logs, and written.
    """

    programs: Programs
    knows: Callable[[str, bool], bool]
    keys: Callable[[], SigningKeys]
    status_source: str | None = None
    workflows: Workflows = NO_WORKFLOWS
    formats: Formats = FORMATS

    def program_of(self, state: Execution) -> Program:
        """-> the one that the execution was started with. It has been fetched before."""
        return self.programs.program(state.definition)
