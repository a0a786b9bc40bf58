"""The configuration of a worker process, the same for every message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core.facts import Misuse, no_misuse
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import INLINE_TIMEOUT_SECONDS_MAX
from holdfast.runtime.child_workflows import NO_WORKFLOWS, Workflows
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.formats import FORMATS, Formats
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.storage.warm_logs import WarmLogs

if TYPE_CHECKING:
    from holdfast.runtime.commands.lookup import Lookup
    from holdfast.runtime.question_events import QuestionEvents


class CacheRule(NamedTuple):
    """The cache of a task. `scope` is part of the key of each result: module, name and version.
    `names` are those of the arguments that are part of it; None: all.
    """

    seconds: int
    scope: str
    names: tuple[str, ...] | None = None


class CachePlace(NamedTuple):
    """Where the result of one call is stored, and for how long."""

    digest: str
    seconds: int


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration of a worker process.

    It holds the definitions, the functions that this process can run, the keys that sign tokens,
    and the workflows that it can start for other workflows.

    `status_source` is the source of the events on the event bus when executions of state machines
    begin and end; None: no events. `question_events`: the same for questions to people. `formats`:
    the formats of logs that this process reads and writes. `archives`: each ended execution is
    archived before TTL may delete its records. `attempt_seconds_max`: no attempt may run for
    longer here, whatever its time-out, because the process of the worker may end then. `spread`:
    over how many partitions the stack spreads rows. `ended_logs`: those that an API in the same
    process reads; None: it has no API. `misuse` checks the arguments of a service call before its
    task is scheduled. `cache_of` returns the cache of the task that a workflow calls by this name;
    None: no task has a cache.
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
    attempt_seconds_max: int = INLINE_TIMEOUT_SECONDS_MAX
    warm_logs: WarmLogs = field(default_factory=WarmLogs)
    spread: Spread = field(default_factory=Spread)
    ended_logs: WarmLogs | None = None
    misuse: Misuse = no_misuse
    cache_of: Callable[[str, str], CacheRule | None] | None = None

    def lookup(self) -> Lookup:
        """Return what a command of the API needs, for commands that the worker itself gives."""
        # Imported here for cold starts: most deliveries give no command.
        from holdfast.runtime.commands.lookup import Lookup  # noqa: PLC0415

        known = self.workflows
        return Lookup(
            self.programs,
            known.definitions,
            self.keys(),
            self.formats,
            known.types,
            spread=self.spread,
        )
