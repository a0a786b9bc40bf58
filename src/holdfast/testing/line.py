"""A line of control of a direct run: its wait, and the block up to which it is cancelled."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from holdfast.api.harness import OwnExecution
from holdfast.testing.finals import Final_, open_finals
from holdfast.testing.places import RunPath, WaitingPlace
from holdfast.testing.timeline import Over

current_line: contextvars.ContextVar[ControlLine] = contextvars.ContextVar("line")

#: Stands for the number of a block and means the whole line of control.
WHOLE: Final = -1


@dataclass(eq=False, slots=True)
class LineScope:
    """A `with timeout(…)` or `with shielded()` block that a line is in."""

    is_shield: bool
    finals: frozenset[Final_]
    deadline: WaitingPlace | None = None
    is_expired: bool = False
    #: The line was cancelled inside of the block because the block's time is over.
    is_cut: bool = False


@dataclass(eq=False)
class Group:
    """Concurrent branches. `owner` is the line that waits for them.

    Branch n begins when all branches in `after[n]` are in `ended`; without `after`, when there is
    room. With `returns_errors` the error of a branch is its result.
    """

    owner: ControlLine
    branches: list[Callable[[], Any]]
    needed: int | None
    tolerated: int
    results: list[Any]
    after: Sequence[Sequence[int]] = ()
    returns_errors: bool = False
    ended: set[int] = field(default_factory=set)
    started: int = 0
    succeeded: int = 0
    failed: int = 0
    lanes: list[ControlLine] = field(default_factory=list)
    is_settled: bool = False
    error: Exception | None = None


@dataclass(eq=False)
class ControlLine:
    """One line of control. `body` returns its result; `on_end` is called at its end."""

    path: RunPath
    #: The execution that the line belongs to.
    execution: OwnExecution
    body: Callable[[], Any]
    on_end: Callable[[ControlLine], None]
    context: contextvars.Context | None = None
    scopes: list[LineScope] = field(default_factory=list)
    is_cancelled: bool = False
    is_over: bool = False
    is_parked: bool = False
    result: Any = None
    error: Exception | None = None
    #: The thing that the line waits for. It is a place, or a group of branches, or a child
    #: execution and the place of its call.
    place: WaitingPlace | None = None
    over: Over | None = None
    group: Group | None = None
    child: ControlLine | None = None
    frame: FrameType | None = None
    thread: threading.Thread | None = None
    baton: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.baton.acquire()

    def due(self, frame: FrameType | None) -> int | None:
        """Return the outermost block up to which the line is cancelled at this point, or WHOLE;
        None if it is not.
        """
        wanted = [WHOLE] if self.is_cancelled else []
        wanted += [number for number, scope in enumerate(self.scopes) if scope.is_expired]
        if not wanted:
            return None
        finals = open_finals(frame)
        return next((number for number in wanted if not self._holds_back(number, finals)), None)

    def _holds_back(self, number: int, finals: frozenset[Final_]) -> bool:
        if any(scope.is_shield for scope in self.scopes[number + 1 :]):
            return True
        entered = frozenset[Final_]() if number == WHOLE else self.scopes[number].finals
        return bool(finals - entered)
