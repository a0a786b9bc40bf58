"""The configuration of a worker process, the same for every message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.runtime.child_workflows import NO_WORKFLOWS, Workflows
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.formats import FORMATS, Formats
from holdfast.runtime.storage.warm_logs import WarmLogs

if TYPE_CHECKING:
    from holdfast.runtime.commands.lookup import Lookup
    from holdfast.runtime.question_events import QuestionEvents


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Definitions, the functions that this process can run, the keys that sign tokens, and the
    workflows that it can start for their callers.

    `status_source`: the source of the events on the bus when executions of state machines begin and
    end; None: no events. `question_events`: the same for questions that open. `formats`: the
    formats of logs that this process reads and writes. `archives`: what has ended is archived
    before TTL may delete it.
    """

    programs: Programs
    knows: Callable[[str, bool], bool]
    keys: Callable[[], SigningKeys]
    status_source: str | None = None
    workflows: Workflows = NO_WORKFLOWS
    formats: Formats = FORMATS
    gates: GateMemory = field(default_factory=GateMemory)
    question_events: QuestionEvents | None = None
    archives: bool = False
    warm_logs: WarmLogs = field(default_factory=WarmLogs)

    def lookup(self) -> Lookup:
        """Return the stack for a command that the worker itself gives."""
        # Later: most invocations of a worker give no command.
        from holdfast.runtime.commands.lookup import Lookup  # noqa: PLC0415

        known = self.workflows
        return Lookup(self.programs, known.definitions, self.keys(), self.formats, known.types)
