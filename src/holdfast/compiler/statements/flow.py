"""The point that lowering has reached: the names known there, and the places to which jumps and
errors lead from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.compiler.environment import Environment, join_environments
from holdfast.compiler.ir import Way
from holdfast.compiler.types.types import Type


@dataclass(slots=True)
class Meeting:
    """A place to which several ways lead. A fact is true there when it is true on all of them."""

    environment: Environment | None = None
    #: The result of the last join. A statement without changes leads here with the same object,
    #: which need not be joined again.
    _latest: Environment | None = None

    def reach(self, environment: Environment | None) -> None:
        if environment is not self._latest:
            self.environment = join_environments(self.environment, environment, self._latest)
            self._latest = environment


@dataclass(slots=True)
class LoopPoint:
    """The targets of `break` and `continue` of one loop."""

    end: Meeting = field(default_factory=Meeting)
    head: Meeting = field(default_factory=Meeting)


@dataclass(slots=True)
class FinalPoint:
    """A part with a `finally`, and the facts at the start of each way out.

    `loops_count` loops are around it. A jump that stays in a loop inside the part does not leave
    the part.
    """

    loops_count: int
    meetings: dict[Way, Meeting]


@dataclass(slots=True)
class HandlerPoint:
    """The handler that is being lowered: a bare `raise` needs a variable that holds its error."""

    variable: str | None
    spare_variable: str

    def require_variable(self) -> str:
        self.variable = self.variable or self.spare_variable
        return self.variable


@dataclass(slots=True)
class Flow:
    """The flow of one function body. With `environment` None, no way leads to this point."""

    environment: Environment | None
    loops: list[LoopPoint] = field(default_factory=list)
    #: The handlers of every `try` around this point. An error in any statement here may lead to one
    #: of them.
    watchers: list[Meeting] = field(default_factory=list)
    handlers: list[HandlerPoint] = field(default_factory=list)
    finals: list[FinalPoint] = field(default_factory=list)
    #: The number of `try` bodies and `compensating` blocks around this point.
    protections: int = 0
    #: How many of `protections` are blocks of a request (`receive`), in which an error only rejects
    #: the request.
    receives: int = 0
    #: The names of the lists over which the loops around this point iterate. Such a list must not
    #: be changed there.
    iterated: list[str] = field(default_factory=list)
    #: For each of them, the first line of the loop that iterates over a copy instead.
    copying_loops: dict[str, str] = field(default_factory=dict)
    #: For the name of each loop around this point, the text of what it iterates over.
    items_of: dict[str, str] = field(default_factory=dict)
    returned: list[Type] = field(default_factory=list)

    def jump(self, way: Way) -> None:
        """Record a `break` or `continue`: it leads to the loop, or to a `finally` on the way to the
        loop.
        """
        final = self.finals[-1] if self.finals else None
        if final is not None and final.loops_count == len(self.loops):
            final.meetings[way].reach(self.environment)
        else:
            loop = self.loops[-1]
            (loop.head if way is Way.CONTINUE else loop.end).reach(self.environment)
        self.environment = None

    def note(self) -> None:
        """Record that a failure is possible here: handlers begin with the knowledge at this
        point.
        """
        for watcher in self.watchers:
            watcher.reach(self.environment)
