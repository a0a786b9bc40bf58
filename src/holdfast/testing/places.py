"""The places at which a run waits. The script and the timeline both use them.

They are in a module of their own because the timeline imports the script: the script cannot import
the timeline for the type of a place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from holdfast.api.boundary import JsonValue

#: The branches around a step, the outermost first. A child workflow is in the path by its name.
RunPath: TypeAlias = tuple[int | str, ...]
CallKind: TypeAlias = Literal[
    "task",
    "pure",
    "workflow",
    "event",
    "ask",
    "sleep",
    "send",
    "request",
    "reply",
    "stop",
    "start",
    "again",
    "publish",
]
_PLAIN: Final[frozenset[str]] = frozenset({"send", "reply", "stop", "start", "again"})


@dataclass(eq=False, slots=True)
class WaitingPlace:
    """One wait of a run. `owner` is the part of the run that continues when it ends.

    A `silent` place (a deadline, the time-out of a run) is not a call. `subject` is the task, or
    the type of an event's payload or an answer. `key` is the idempotency key of a task's call: all
    attempts of one call have the same, and no other call of the run has it.
    """

    path: RunPath
    owner: Any
    kind: CallKind | Literal["silent"]
    name: str = ""
    arguments: JsonValue = None
    subject: Any = None
    attempt: int = 1
    begins_ms: int = 0
    timeout_ms: int | None = None
    key: str = ""
    #: The pool of workers that the task is offered to; None for another place.
    pool: str | None = None
    #: An event that was sent before this time does not fit the wait.
    oldest_ms: int | None = None
    is_closed: bool = False
    #: True when a task with a cache has the result of an earlier call, and does not run.
    is_cached: bool = False
    #: After how many milliseconds a `send` or `start` has its effect; None when it is at once.
    after_ms: int | None = None
    #: Starts the child execution of a "workflow" place, if the script gives it no outcome.
    run_child: Callable[[], None] | None = None

    @property
    def is_plain(self) -> bool:
        """Return True for a statement that Python carries out without waiting."""
        return self.kind in _PLAIN
