"""Narrows types by a condition: after `if order.coupon is not None` the coupon is a str."""

from __future__ import annotations

import ast
from typing import Protocol

from holdfast.compiler.context import Unit
from holdfast.compiler.environment import Environment, Held, path_of
from holdfast.compiler.expressions.caught import split_errors
from holdfast.compiler.expressions.kinds import classes_of, split, with_tag
from holdfast.compiler.expressions.outside import tasks_by_name
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    BOOL,
    NONE,
    DictOf,
    ListOf,
    ModelOf,
    TupleOf,
    Type,
    TypedDictOf,
    Union,
    may_be_none,
    without_none,
)


class _Point(Protocol):
    @property
    def unit(self) -> Unit: ...


def narrow(
    point: _Point, environment: Environment, test: ast.expr, *, is_true: bool
) -> Environment:
    """Return the environment for code that runs only if `test` was true, or only if it was
    false.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return narrow(point, environment, operand, is_true=not is_true)
        case ast.BoolOp(op=operator, values=values) if isinstance(operator, ast.And) == is_true:
            # When an `and` is true, each of its operands is true. When an `or` is false, each of
            # its operands is false.
            for value in values:
                environment = narrow(point, environment, value, is_true=is_true)
            return environment
        case ast.Compare(
            left=left,
            ops=[(ast.Is() | ast.Eq()) | (ast.IsNot() | ast.NotEq()) as operator],
            comparators=[ast.Constant(value=None)],
        ):
            is_none = isinstance(operator, ast.Is | ast.Eq) == is_true
            return _without_none(environment, left, is_none=is_none)
        case ast.Compare(
            left=key, ops=[ast.In() | ast.NotIn() as operator], comparators=[table]
        ) if isinstance(operator, ast.In) == is_true:
            return _as_member(point, environment, key, table)
        case ast.Call(func=ast.Name(id="isinstance"), args=[subject, wanted], keywords=[]):
            return _of_class(point, environment, subject, wanted, is_true=is_true)
        case ast.Compare(
            left=ast.Attribute(value=subject, attr=name),
            ops=[ast.Eq() | ast.NotEq() as operator],
            comparators=[ast.Constant(value=str(tag))],
        ):
            is_equal = isinstance(operator, ast.Eq) == is_true
            return _tagged(environment, subject, name, tag, is_true=is_equal)
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.NamedExpr() if is_true:
            return _without_none(environment, test, is_none=False)
        case _:
            return environment


def _without_none(environment: Environment, node: ast.expr, *, is_none: bool) -> Environment:
    path = path_of(node)
    known = None if path is None else type_at(environment, path)
    if path is None or known is None or not (known == NONE or may_be_none(known)):
        return environment
    return environment.with_fact(path, NONE if is_none else without_none(known))


def member_path(path: str, table: ast.expr) -> str:
    """Return the path of the fact that a table of tasks has an entry for the key at `path`. An
    assignment to the key's first name ends the fact.
    """
    return f"{path}[in {ast.unparse(table)}]"


def _as_member(
    point: _Point, environment: Environment, key: ast.expr, table: ast.expr
) -> Environment:
    path = path_of(key)
    if path is None or tasks_by_name(point.unit.outside(table)) is None:
        return environment
    return environment.with_fact(member_path(path, table), BOOL)


def _of_class(
    point: _Point, environment: Environment, subject: ast.expr, wanted: ast.expr, *, is_true: bool
) -> Environment:
    path, classes = path_of(subject), classes_of(point.unit, wanted)
    known = None if path is None else type_at(environment, path)
    parts = None if known is None else split_errors(point.unit, wanted, known)
    if parts is None:
        parts = None if known is None or classes is None else split(known, classes)
    if path is None or parts is None:
        return environment
    return environment.with_fact(path, parts[0] if is_true else parts[1])


def _tagged(
    environment: Environment, subject: ast.expr, name: str, tag: str, *, is_true: bool
) -> Environment:
    """Narrow a union by a field with a constant: `if payment.kind == "card"` shows which model
    `payment` is.
    """
    path = path_of(subject)
    known = None if path is None else type_at(environment, path)
    if path is None or not isinstance(known, Union):
        return environment
    return environment.with_fact(path, with_tag(known, name, frozenset({tag}), is_true=is_true))


def _item_at(environment: Environment, path: str) -> Type | None:
    base, _, key = path.removesuffix("]").rpartition("[")
    match type_at(environment, base):
        case TypedDictOf() as owner:
            return owner.fields().get(key.strip('"'))
        case DictOf(value):
            return value
        case TupleOf(elements) if key.isdigit() and int(key) < len(elements):
            return elements[int(key)]
        case ListOf(element) if key.isdigit():
            return element
        case _:
            return None


def type_at(environment: Environment, path: str) -> Type | None:
    """Return the type of a variable, or of a field of a variable, as known at this point."""
    if path in environment.facts:
        return environment.facts[path]
    if path.endswith("]"):
        return _item_at(environment, path)
    base, _, name = path.rpartition(".")
    if not base:
        entry = environment.entries.get(path)
        return entry.type if isinstance(entry, Held) else None
    owner = type_at(environment, base)
    if isinstance(owner, ModelOf) and name in fields_of(owner.model):
        return fields_of(owner.model)[name].type
    return None
