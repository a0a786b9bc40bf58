"""The runtime of compiled closures: frames, budgets, functions, casts, and the form of built-ins.

Closures handle the common cases. When a value has an unexpected type they raise `Declined`. The
whole expression is then evaluated by jsonata-python, which finds the right error or the rare
meaning. An evaluation has no effects, so a second one is safe.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.values import UNDEFINED, budget_error, tidy_number
from holdfast.lazy_dataclass import dataclass

CALL_DEPTH_MAX: Final = 100


class Declined(Exception):  # noqa: N818  # not an error: the other engine takes over
    """The closures leave this evaluation to jsonata-python."""


class EvaluationRun:
    """One evaluation: its bindings and the budget that it has used."""

    __slots__ = (
        "_ends_at", "_looks_at", "bindings", "depth", "items", "regex_seconds_left", "steps",
    )  # fmt: skip

    def __init__(self, bindings: Mapping[str, Any]) -> None:
        self.bindings = bindings
        self.steps = 0
        self.items = 0
        self._looks_at = values.ITEMS_PER_LOOK
        self._ends_at = math.inf
        self.depth = 0
        self.regex_seconds_left = values.REGEX_SECONDS_MAX

    def step(self, count: int) -> None:
        self.steps += count
        if self.steps > values.STEPS_MAX:
            raise budget_error(f"took more than {values.STEPS_MAX:,} steps")
        self.charge(count * values.ITEMS_PER_STEP)

    def charge(self, items: int) -> None:
        self.items += items
        if self.items > self._looks_at:
            self._look()

    def _look(self) -> None:
        """Raise the error U1001 when the items are used up, or when the thread's time is: a step
        may take longer than its cost says.
        """
        if self.items > values.ITEMS_MAX:
            raise budget_error(f"went through more than {values.ITEMS_MAX:,} items")
        now = time.thread_time()
        if self._ends_at == math.inf:
            self._ends_at = now + values.SECONDS_MAX
        elif now > self._ends_at:
            raise budget_error(f"took more than {values.SECONDS_MAX} seconds")
        self._looks_at = self.items + values.ITEMS_PER_LOOK

    def charge_for(self, value: Any, times: int = 1) -> None:
        """Charge for one pass over a value, at `times` the cost of a copy."""
        kind = type(value)
        if kind is str or kind is list or kind is dict:
            size = len(value) * times
            if size > costs.BULK_MIN:
                self.charge(size // costs.CHARACTERS_PER_ITEM if kind is str else size)

    def paid(self, made: Any, times: int) -> Any:
        """Charge for the result of a function, and return it. A text may be a thousand times as
        long as the arguments ($pad, $replace, $join). Lists are charged where they grow.
        """
        if type(made) is str:
            self.charge_for(made, times)
        return made


class VariableScope:
    """The variables of one block or call. The outermost scope has none of its own."""

    __slots__ = ("names", "parent", "run")

    def __init__(
        self, names: dict[str, Any], parent: VariableScope | None, run: EvaluationRun
    ) -> None:
        self.names = names
        self.parent = parent
        self.run = run


#: A compiled node. It is a function that gets the scope and the context (`$`), and returns a value
#: or UNDEFINED.
CompiledNode: TypeAlias = Callable[[VariableScope, Any], Any]


class CompiledExpression:
    """An expression as closures. `evaluate` raises Declined when jsonata-python must evaluate it.

    `called` are the built-in functions that it calls. `grows`: it can create a value that is small
    in memory but too long when written.
    """

    __slots__ = ("_called", "_grows", "_node")

    def __init__(self, node: CompiledNode, called: frozenset[str], grows: bool) -> None:
        self._node = node
        self._called = called
        self._grows = grows

    def evaluate(self, run: EvaluationRun) -> values.StrictJson | values.Undefined:
        bindings = run.bindings
        if self._called and not self._called.isdisjoint(bindings):
            # A variable of the execution hides a function that the expression calls.
            raise Declined
        document = bindings.get("$", UNDEFINED)
        if type(document) is list:
            raise Declined
        result = self._node(VariableScope({}, None, run), document)
        if type(result) is float:
            return tidy_number(result)
        if self._grows:
            values.node_count(result)
        return result  # type: ignore[no-any-return]


class Lambda:
    """A function of the expression, with the scope and context in which it was created."""

    __slots__ = ("_body", "_context", "_frame", "parameters")

    def __init__(
        self, parameters: tuple[str, ...], body: CompiledNode, frame: VariableScope, context: Any
    ) -> None:
        self.parameters = parameters
        self._body = body
        self._frame = frame
        self._context = context

    def __call__(self, *arguments: Any) -> Any:
        """Apply to at least as many arguments as it has parameters; further ones are ignored.

        A function that ends in a call returns the result of that call, which may be `Many`.
        """
        outer = self._frame
        run = outer.run
        run.step(1)
        if run.depth >= CALL_DEPTH_MAX or len(arguments) < len(self.parameters):
            # jsonata-python runs tail calls as a loop, so it has no limit for their depth.
            raise Declined
        run.depth += 1
        names = dict(zip(self.parameters, arguments, strict=False))
        result = self._body(VariableScope(names, outer, run), self._context)
        run.depth -= 1
        return result

    def each(self, items: list[Any]) -> list[Any]:
        """Return the function's result for each item, as $map and $filter call it."""
        if len(self.parameters) != 1:
            if len(self.parameters) > 3:
                raise Declined
            return [self(item, index, items) for index, item in enumerate(items)]
        outer, body, context, name = self._frame, self._body, self._context, self.parameters[0]
        run = outer.run
        run.step(len(items))
        if run.depth >= CALL_DEPTH_MAX:
            raise Declined
        run.depth += 1
        results = [body(VariableScope({name: item}, outer, run), context) for item in items]
        run.depth -= 1
        return results


class Many:
    """A sequence that was not read yet. When it is read, an empty one becomes undefined, and one
    with one item becomes that item.
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def seen(items: list[Any]) -> Any:
    if len(items) > 1:
        return items
    return items[0] if items else UNDEFINED


def as_item(result: Any) -> Any:
    """Return a function's result for the built-in function that called it, which reads a sequence
    as an array.
    """
    if type(result) is not Many:
        return result
    if len(result.items) < 2:
        # A sequence of one item becomes that item when it is read, which only jsonata-python does
        # here.
        raise Declined
    return result.items


def as_verdict(result: Any, run: EvaluationRun) -> bool:
    return truth(result.items if type(result) is Many else result, run)


def items_of(value: Any) -> list[Any]:
    """Return the items over which a predicate or a step iterates."""
    if type(value) is list:
        return value
    if type(value) is Many:
        return value.items
    return [] if value is UNDEFINED else [value]


def is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def truth(value: Any, run: EvaluationRun) -> bool:
    if type(value) is bool:
        return value
    if type(value) is list:
        # Charge for each item. A list that contains the same list twice, forty levels deep, takes
        # little memory, but has too many parts to visit.
        run.charge(1)
        for at, item in enumerate(value):
            if truth(item, run):
                run.charge(at)
                return True
        run.charge(len(value))
        return False
    return bool(value)  # "", 0, null, {} and undefined are false


def text(value: Any, run: EvaluationRun) -> str:
    """Return the text of a value, as `&` joins it."""
    if type(value) is str:
        return value
    if value is UNDEFINED:
        return ""
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if is_number(value):
        run.charge(costs.ITEMS_PER_NODE)
        return values.number_text(value)
    run.charge(costs.writing_items(value))
    result = values.json_text(value)
    run.charge(costs.written_items(result))
    return result


def calculate(sign: str, left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        result = values.arithmetic(sign, left, right)
        if math.isfinite(result):
            return result
    elif (left is UNDEFINED or is_number(left)) and (right is UNDEFINED or is_number(right)):
        return UNDEFINED
    raise Declined


def negate(value: Any) -> Any:
    if value is UNDEFINED:
        return UNDEFINED
    if not is_number(value):
        raise Declined
    return tidy_number(-value)


def equals(left: Any, right: Any, run: EvaluationRun) -> bool:
    """Return the result of `=` for two values, none of which is undefined."""
    if type(left) is list or type(left) is dict:
        run.charge(costs.comparison_items(left))
    return values.deep_equal(left, right)


def is_ordered(left: Any, right: Any) -> bool:
    """Return True when the values can be compared with `<`; False when the result is undefined."""
    kinds = _order(left), _order(right)
    if 0 in kinds:
        raise Declined
    if _MISSING in kinds:
        return False
    if kinds[0] != kinds[1]:
        raise Declined
    return True


_MISSING: Final = 3


def _order(value: Any) -> int:
    if type(value) is str:
        return 1
    if is_number(value):
        return 2
    return _MISSING if value is UNDEFINED else 0


@dataclass(frozen=True, slots=True)
class Native:
    """A built-in function for closures: it returns a value, or raises `Declined`. The fields: the
    possible numbers of its arguments, which argument is a function, and which may be a regex.
    """

    call: Callable[..., Any]
    arities: tuple[int, ...]
    function_at: int | None = None
    pattern_at: int | None = None


def require(*conditions: bool) -> None:
    if not all(conditions):
        raise Declined


def as_array(value: Any) -> list[Any] | None:
    """Return an array argument: any other value counts as an array with that one item; undefined
    gives None.
    """
    if type(value) is list:
        return value
    return None if value is UNDEFINED else [value]
