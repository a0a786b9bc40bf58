"""Methods and properties of the author's models: helpers whose first argument is the object.

    class Order(BaseModel):
        lines: list[Line]

        def total(self) -> int:            order.total()   ->   total_of(order)
            return sum(line.cents for line in self.lines)

The compiler finds the method by the type of the object, so the type must be one model. The method
of a subclass is never called: pydantic makes the declared class from JSON. Decorators other than
`@property`, `@staticmethod` and `@classmethod` run code of their own, so methods with them are no
helpers.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

from holdfast.compiler.context import Helper, Unit
from holdfast.compiler.steps.helpers import class_method, definition_in_class, helper_of
from holdfast.compiler.types.types import ModelOf, Type


def method_of(unit: Unit, type_: Type, call: ast.Call) -> Helper | None:
    """Return the method that `order.total()` calls on a value of this type; None for others."""
    if not isinstance(type_, ModelOf) or not isinstance(call.func, ast.Attribute):
        return None
    found = inspect.getattr_static(type_.model, call.func.attr, None)
    if isinstance(found, staticmethod):
        return static_helper(unit, found.__func__)
    if isinstance(found, classmethod):
        return class_method(unit, type_.model, call.func.attr)
    helper = _helper(unit, found, ())
    return None if helper is None else replace(helper, bound=call.func.value)


def property_of(unit: Unit, type_: Type, node: ast.Attribute) -> Helper | None:
    """Return the function of the property that `order.is_large` reads; None for others."""
    if not isinstance(type_, ModelOf):
        return None
    found = inspect.getattr_static(type_.model, node.attr, None)
    helper = _helper(unit, found.fget, ("property",)) if isinstance(found, property) else None
    return None if helper is None else replace(helper, bound=node.value)


def static_helper(unit: Unit, function: Any) -> Helper | None:
    """Return the helper for a `@staticmethod` of a class of the author."""
    return _helper(unit, function, ("staticmethod",))


def _helper(unit: Unit, function: Any, decorators: tuple[str, ...]) -> Helper | None:
    if not isinstance(function, FunctionType):
        return None
    definition = definition_in_class(function, decorators)
    return None if definition is None else helper_of(unit, function, definition)


@contextmanager
def entered(unit: Unit, helper: Helper) -> Iterator[bool]:
    """Give False when the body of this method is being lowered already: it calls itself."""
    if helper.node in unit.methods_open:
        yield False
        return
    unit.methods_open.append(helper.node)
    try:
        yield True
    finally:
        unit.methods_open.pop()
