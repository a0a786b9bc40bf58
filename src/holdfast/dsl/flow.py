"""The point that lowering has reached: its names, and who else must know what holds here."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.dsl.context import Environment, join_environments
from holdfast.dsl.types import Type


@dataclass(slots=True)
class Meeting:
    """A place that several ways lead to; what holds there is what holds on all of them."""

    environment: Environment | None = None

    def reach(self, environment: Environment | None) -> None:
        self.environment = join_environments(self.environment, environment)


@dataclass(slots=True)
class LoopPoint:
    """Where `break` and `continue` of one loop go."""

    end: Meeting = field(default_factory=Meeting)
    head: Meeting = field(default_factory=Meeting)


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
    """Of one function body. `environment` None: this point cannot be reached."""

    environment: Environment | None
    loops: list[LoopPoint] = field(default_factory=list)
    #: Handlers of every `try` around this point: an error may lead there from any statement.
    watchers: list[Meeting] = field(default_factory=list)
    handlers: list[HandlerPoint] = field(default_factory=list)
    #: How many `try` bodies and `compensating` blocks surround this point.
    protections: int = 0
    #: Names of the lists that loops around this point go through.
    iterated: list[str] = field(default_factory=list)
    returned: list[Type] = field(default_factory=list)

    def note(self) -> None:
        """Something that may fail happens here."""
        for watcher in self.watchers:
            watcher.reach(self.environment)
