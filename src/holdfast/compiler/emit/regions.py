"""The `try`, `finally` and `compensating` blocks around a point (regions), innermost last. They
catch errors there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from holdfast.asl import error_names
from holdfast.compiler.emit.assembler import Label
from holdfast.compiler.expressions.query import Variable, expression, invoke
from holdfast.compiler.ir import Compensate, ErrorHandler, Way

Region: TypeAlias = "TryRegion | UndoRegion | FinalRegion"

ERROR_OUTPUT = "{% $states.errorOutput %}"


@dataclass(frozen=True, slots=True)
class TryRegion:
    handlers: tuple[tuple[ErrorHandler, Label], ...]


@dataclass(frozen=True, slots=True)
class UndoStep:
    """An undo step: its state, which reads the registered arguments from the expression
    `arguments`, and the name of its function in the error of a failed undo.
    """

    name: str
    state_of: Callable[[str], dict[str, Any]]


@dataclass(slots=True)
class UndoRegion:
    """A `compensating` block around a point. `is_used`: a state inside of it can fail. `undos`: the
    undo steps registered so far, by their name in the list of steps.
    """

    compensate: Compensate
    label: Label = field(default_factory=Label)
    is_used: bool = False
    undos: dict[str, UndoStep] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """Return the expression for the number of registered undo steps when the error happened."""
        return expression(invoke("count", Variable(self.compensate.steps)))


@dataclass(slots=True)
class FinalRegion:
    """A part with a `finally`. `labels` are the beginnings of the copies of its body, one for each
    way out.
    """

    failure: str
    labels: dict[Way, Label]


class ErrorRoute(NamedTuple):
    """The route of errors with these names: the next state, and the assignments on the way to
    it.
    """

    names: tuple[str, ...]
    assign: dict[str, Any]
    label: Label

    @property
    def is_total(self) -> bool:
        return error_names.ALL in self.names


def routes(regions: Sequence[Region], error: Any) -> tuple[ErrorRoute, ...]:
    """Return the routes of an error, in the order in which a Catch tests them. `error` is the
    template of its value.

    A name that an inner handler catches has no second route; a route for all errors is the last
    one.
    """
    found: list[ErrorRoute] = []
    seen: set[str] = set()
    for route in _all_routes(regions, error):
        new = tuple(name for name in route.names if name not in seen)
        if new:
            found.append(ErrorRoute(new, route.assign, route.label))
            seen.update(new)
        if route.is_total:
            break
    return tuple(found)


def _all_routes(regions: Sequence[Region], error: Any) -> Iterator[ErrorRoute]:
    for region in reversed(regions):
        match region:
            case TryRegion(handlers):
                for handler, label in handlers:
                    yield ErrorRoute(handler.names, assigned(handler, error), label)
            case UndoRegion():
                yield undo_route(region, error)
            case FinalRegion():
                yield final_route(region, error)


def undo_route(region: UndoRegion, error: Any) -> ErrorRoute:
    region.is_used = True
    assign = {region.compensate.failure: error, region.compensate.left: region.start}
    return ErrorRoute((error_names.ALL,), assign, region.label)


def final_route(region: FinalRegion, error: Any) -> ErrorRoute:
    return ErrorRoute((error_names.ALL,), {region.failure: error}, region.labels[Way.ERROR])


def undo_when_stopped(region: UndoRegion, inside: list[str], undone: Label) -> dict[str, Any]:
    """Return the extension of ASL that makes a stop run the undo. It has the form of a Catch, for
    an error that no state raises.
    """
    assign = {region.compensate.failure: ERROR_OUTPUT, region.compensate.left: region.start}
    return {"States": inside, "Begin": region.label, "End": undone, "Assign": assign}


def final_when_stopped(region: FinalRegion, inside: list[str], end: Label | str) -> dict[str, Any]:
    """Return the extension of ASL that makes a stop run the `finally` body."""
    begin = region.labels[Way.ERROR]
    begin.is_used = True
    assign = {region.failure: ERROR_OUTPUT}
    return {"States": inside, "Begin": begin, "End": end, "Assign": assign}


def assigned(handler: ErrorHandler, error: Any) -> dict[str, Any]:
    return {} if handler.variable is None else {handler.variable: error}


def static_route(
    regions: Sequence[Region], cls: type[BaseException], error: Any
) -> ErrorRoute | None:
    """Return the state to which `raise cls` leads; None when no handler around it catches the
    error.
    """
    for region in reversed(regions):
        match region:
            case UndoRegion():
                return undo_route(region, error)
            case FinalRegion():
                return final_route(region, error)
            case TryRegion(handlers):
                for handler, label in handlers:
                    if issubclass(cls, handler.classes):
                        return ErrorRoute(handler.names, assigned(handler, error), label)
    return None


def catchers(regions: Sequence[Region]) -> list[dict[str, Any]]:
    """Return the `Catch` of a state at this point."""
    found = []
    for route in routes(regions, ERROR_OUTPUT):
        # ASL allows no other name in the list with States.ALL.
        names = [error_names.ALL] if route.is_total else list(route.names)
        catcher: dict[str, Any] = {"ErrorEquals": names}
        if route.assign:
            catcher["Assign"] = route.assign
        catcher["Next"] = route.label
        found.append(catcher)
    return found


def undo_region(regions: Iterable[Region], steps: str) -> UndoRegion:
    """Return the region whose list of undo steps is the variable `steps`."""
    for region in regions:
        if isinstance(region, UndoRegion) and region.compensate.steps == steps:
            return region
    raise AssertionError(f"nothing compensates with {steps}")
