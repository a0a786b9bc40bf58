"""Caught errors in expressions: `type(err).__name__` and `isinstance(err, CardDeclined)`.

At run time an error is its name and its text. The name is that of the class, with two exceptions:

* A wait that ended by its timeout has the name `States.Timeout`; in Python it is a `WaitTimeout`.
* An expression that failed has the name `States.QueryEvaluationError`, whatever Python raises. An
  error that may be one has no exact name (`ErrorOf.has_text` is False).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.api.surface import WaitTimeout
from holdfast.asl import error_names
from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.expressions.error_values import error_in, is_error
from holdfast.compiler.expressions.query import (
    FALSE,
    TRUE,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FieldOf,
    QueryTree,
    hold,
)
from holdfast.compiler.types.error_fields import coded_names, common_fields
from holdfast.compiler.types.failures import is_own_name, names_of
from holdfast.compiler.types.types import BOOL, NEVER, STR, ErrorOf, Type, join_all, members_of

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def error_of_name(expressions: Expressions, node: ast.Attribute) -> ast.expr | None:
    """Return `err` of `type(err).__name__` or `err.__class__.__name__`; None for other nodes and
    other values.
    """
    match node:
        case ast.Attribute(
            value=ast.Call(func=ast.Name("type"), args=[error], keywords=[]), attr="__name__"
        ) if expressions.is_builtin("type"):
            pass
        case ast.Attribute(value=ast.Attribute(value=error, attr="__class__"), attr="__name__"):
            pass
        case _:
            return None
    with expressions.unit.trial():
        type_ = expressions.lower(error).type
    return error if any(isinstance(one, ErrorOf) for one in members_of(type_)) else None


def name_of_error(expressions: Expressions, node: ast.Attribute, error: ast.expr) -> TypedQuery:
    value, text = expressions.lower(error), expressions.unit.text(error)
    match value.type:
        case ErrorOf(has_text=True):
            name = FieldOf(value.query, "Error")
            is_late = Binary("=", name, Constant(error_names.TIMEOUT))
            query = Conditional(is_late, Constant(WaitTimeout.__name__), name)
            return TypedQuery(query, STR, value.fails)
        case ErrorOf(nameless=place):
            message = f"`{text}` may be an error of {place or 'an expression'}, which has another"
            message += " name here than in Python"
            help_ = "catch the errors of tasks by their classes"
            return expressions.unit.refused(node, "HF034", message, help_)
        case _:
            help_ = f"if {text} is not None: …"
            return expressions.unit.refused(node, "HF043", f"`{text}` may be None here", help_)


def is_of_classes(unit: Unit, wanted: ast.expr, value: TypedQuery) -> TypedQuery | None:
    """Lower `isinstance(err, CardDeclined)`; None when the name of the error does not show the
    answer.
    """
    classes = _classes(unit, wanted, value.type)
    if classes is None or is_error(value.query, value.type) is None:
        return None
    names = names_of(classes, unit.world)

    def test(held: QueryTree) -> QueryTree:
        found = is_error(held, value.type) or FALSE
        if names == (error_names.ALL,):
            return found
        known = ArrayOf(tuple(Constant(name) for name in names))
        is_named = Binary("in", FieldOf(held, "Error"), known)
        return is_named if found == TRUE else Binary("and", found, is_named)

    return TypedQuery(hold(value.query, test), BOOL, value.fails)


def is_exactly(unit: Unit, wanted: ast.expr, value: TypedQuery) -> TypedQuery | None:
    """Lower `type(err) is CardDeclined`; None when the name of the error does not show the
    answer.
    """
    classes = _classes(unit, wanted, value.type)
    if classes is None or len(classes) > 1 or not is_own_name(classes[0].__module__):
        return None
    if not isinstance(value.type, ErrorOf):
        return None
    name = FieldOf(value.query, "Error")
    return TypedQuery(Binary("=", name, Constant(classes[0].__name__)), BOOL, value.fails)


def split_errors(unit: Unit, wanted: ast.expr, type_: Type) -> tuple[Type, Type] | None:
    """Return the types of a value after `isinstance(err, CardDeclined)` was true, and after it was
    false. None when it is not a question about errors.
    """
    classes, error = _classes(unit, wanted, type_), error_in(type_)
    if classes is None or error is None:
        return None
    if Exception in classes:
        others = join_all(member for member in members_of(type_) if member is not error)
        return error, type_ if others == NEVER else others
    fields, coded = common_fields(classes), coded_names(classes, unit.world)
    return ErrorOf(True, fields, coded, error.is_marked), type_


def _classes(unit: Unit, wanted: ast.expr, type_: Type) -> list[type[Exception]] | None:
    """Return the classes of errors with which an error is compared.

    None when one is not a class of errors, or when it may be the class of an expression's error.
    """
    parts = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    found = [unit.outside(part) for part in parts]
    classes = [cls for cls in found if isinstance(cls, type) and issubclass(cls, Exception)]
    error = error_in(type_)
    if len(classes) < len(found) or error is None:
        return None
    is_hidden = not error.has_text and Exception not in classes
    if is_hidden and any(cls.__module__ == "builtins" for cls in classes):
        return None
    return classes
