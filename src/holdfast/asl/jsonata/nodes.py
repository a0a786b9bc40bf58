"""Closures for variables and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.asl.jsonata.costs import ITEMS_PER_CALL
from holdfast.asl.jsonata.runtime import CompiledNode, Declined, Lambda, VariableScope
from holdfast.asl.jsonata.values import UNDEFINED

_ABSENT: Final = object()


def the_context(_: VariableScope, context: Any) -> Any:
    return context


def nothing(_frame: VariableScope, _context: Any) -> Any:
    return UNDEFINED


def local_variable(name: str) -> CompiledNode:
    """Compile a variable that the expression may bind. It is found in this scope, in one around it,
    or in the bindings.
    """

    def node(frame: VariableScope, _: Any) -> Any:
        value = frame.names.get(name, _ABSENT)
        if value is not _ABSENT:
            return value
        scope = frame.parent
        while scope is not None:
            value = scope.names.get(name, _ABSENT)
            if value is not _ABSENT:
                return value
            scope = scope.parent
        return frame.run.bindings.get(name, UNDEFINED)

    return node


def bound_variable(name: str, value: CompiledNode) -> CompiledNode:
    """Compile `$name := value`."""

    def node(frame: VariableScope, context: Any) -> Any:
        result = frame.names[name] = value(frame, context)
        return result

    return node


def binding_or_function(name: str) -> CompiledNode:
    def node(frame: VariableScope, _: Any) -> Any:
        value = frame.run.bindings.get(name, _ABSENT)
        if value is _ABSENT:
            # The expression uses the built-in function as a value, which only jsonata-python
            # supports.
            raise Declined
        return value

    return node


def lambda_call(function: CompiledNode, arguments: tuple[CompiledNode, ...]) -> CompiledNode:
    def node(frame: VariableScope, context: Any) -> Any:
        callee = function(frame, context)
        if type(callee) is not Lambda:
            raise Declined
        return callee(*[argument(frame, context) for argument in arguments])

    return node


def native_call(
    function: Callable[..., Any], times: int, arguments: tuple[CompiledNode, ...]
) -> CompiledNode:
    """Compile a call of a built-in function. The call is charged for the content of its arguments,
    and for the text that it returns.
    """
    if len(arguments) == 1:
        only = arguments[0]

        def call(frame: VariableScope, context: Any) -> Any:
            argument = only(frame, context)
            frame.run.charge(ITEMS_PER_CALL)
            frame.run.charge_for(argument, times)
            return frame.run.paid(function(frame.run, argument), times)

        return call

    def call_with_several(frame: VariableScope, context: Any) -> Any:
        given = [argument(frame, context) for argument in arguments]
        frame.run.charge(ITEMS_PER_CALL)
        for argument in given:
            frame.run.charge_for(argument, times)
        return frame.run.paid(function(frame.run, *given), times)

    return call_with_several
