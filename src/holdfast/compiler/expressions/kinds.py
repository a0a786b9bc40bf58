"""`isinstance(x, Card)`: which members of a union a value belongs to, as far as its JSON shows
it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, Unit
from holdfast.compiler.expressions.caught import is_of_classes
from holdfast.compiler.expressions.error_values import error_in, is_error
from holdfast.compiler.expressions.query import (
    FALSE,
    TRUE,
    Binary,
    Conditional,
    Constant,
    FieldOf,
    QueryTree,
    hold,
    invoke,
    is_kind,
)
from holdfast.compiler.types.annotations import is_model
from holdfast.compiler.types.models import ModelField, fields_of, has_own_keys
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    TextOf,
    TupleOf,
    Type,
    is_refused,
    is_text,
    join,
    join_all,
    members_of,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_PYTHON_TYPES: Final = (str, int, float, bool, list, dict, tuple, type(None))
_HELP: Final = (
    'tell them apart by a field: kind: Literal["card"] in one, Literal["bank"] in the other'
)


def classes_of(unit: Unit, node: ast.expr) -> tuple[Any, ...] | None:
    """Return the classes in `isinstance(x, node)`; None when they are not written out."""
    match node:
        case ast.Tuple(elts=parts):
            found = [classes_of(unit, part) for part in parts]
            return None if None in found else tuple(cls for part in found for cls in part or ())
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return classes_of(unit, ast.Tuple([left, right]))
        case ast.Constant(value=None):
            return (type(None),)
        case _:
            cls = unit.outside(node)
            return (cls,) if isinstance(cls, type) and _is_known(cls) else None


def is_instance(member: Type, classes: tuple[Any, ...]) -> bool | None:
    """Return True when a value of this type is an instance; None when its JSON does not show
    that.
    """
    match member:
        case ModelOf(cls):
            if any(issubclass(cls, wanted) for wanted in classes):
                return True
            # The value may be of a subclass of the annotated class. Its JSON does not show that,
            # because it has only the fields of the annotated class.
            return None if any(issubclass(wanted, cls) for wanted in classes) else False
        case EnumOf(cls):
            return any(issubclass(cls, wanted) for wanted in classes)
        case ErrorOf():
            return False
        case ListOf(_, is_tuple):
            return (tuple if is_tuple else list) in classes
        case TupleOf():
            return tuple in classes
        case DictOf():
            return dict in classes
        case _ if member == NONE:
            return type(None) in classes
        case _ if member == BOOL:
            return bool in classes or int in classes
        case _ if member == INT:
            return int in classes
        case _ if member == FLOAT:
            # A value that is annotated as float may be 1.0, whose JSON is equal to that of the int
            # 1. So a running workflow cannot tell whether the value is an int.
            return float in classes if int not in classes else None
        case _ if is_text(member):
            return str in classes
        case _:
            return None


def split(type_: Type, classes: tuple[Any, ...]) -> tuple[Type, Type] | None:
    """Return the types of the value for the answer True and for the answer False; None when JSON
    does not show the answer.
    """
    if is_refused(type_):
        return None
    if type_ == UNKNOWN:
        inside = _json_type(classes)
        return None if inside is None else (inside, UNKNOWN)
    answers = [(member, is_instance(member, classes)) for member in members_of(type_)]
    if any(answer is None for _, answer in answers):
        return None
    inside = join_all(member for member, answer in answers if answer)
    return inside, join_all(member for member, answer in answers if not answer)


#: The classes of JSON: each value of unknown type has one of them. A float alone is not among
#: them, because the JSON of 1.0 is that of the int 1.
_JSON_TYPES: Final[Mapping[tuple[Any, ...], Type]] = MappingProxyType(
    {
        (str,): STR,
        (bool,): BOOL,
        (int,): join(INT, BOOL),
        (int, float): join_all((INT, FLOAT, BOOL)),
        (float, int): join_all((INT, FLOAT, BOOL)),
        (list,): ListOf(UNKNOWN),
        (dict,): DictOf(UNKNOWN),
        (type(None),): NONE,
    }
)


def _json_type(classes: tuple[Any, ...]) -> Type | None:
    return _JSON_TYPES.get(classes)


def _is_json_of(value: QueryTree, inside: Type) -> QueryTree:
    """Return the test whether a value of unknown type is one of these kinds of JSON."""
    kind = invoke("type", value)
    tests: list[QueryTree] = []
    for member in members_of(inside):
        is_kind: QueryTree = Binary("=", kind, Constant(_json_kind(member)))
        if member == INT and FLOAT not in members_of(inside):
            is_whole = Binary("=", invoke("floor", value), value)
            is_kind = Conditional(is_kind, is_whole, FALSE)
        tests.append(is_kind)
    found = tests[0]
    for test in tests[1:]:
        found = Binary("or", found, test)
    return found


def lower_isinstance(expressions: Expressions, node: ast.Call) -> TypedQuery:
    unit = expressions.unit
    if len(node.args) != 2 or node.keywords:
        help_ = "isinstance(payment, Card)"
        return unit.refused(node, "HF008", "isinstance() takes a value and a class", help_)
    value = expressions.lower(node.args[0])
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    error = is_of_classes(unit, node.args[1], value)
    if error is not None:
        return error
    classes = classes_of(unit, node.args[1])
    parts = None if classes is None else split(value.type, classes)
    if parts is None or told_apart(value.query, *parts) is None:
        message = f"the class of `{unit.text(node.args[0])}` does not show in its JSON"
        is_about_models = all(isinstance(one, ModelOf) for one in members_of(value.type))
        help_ = _HELP if is_about_models else "ask inside a @pure function"
        return unit.refused(node, "HF048", message, help_)
    inside, outside = parts
    query = hold(value.query, lambda held: told_apart(held, inside, outside) or FALSE)
    return TypedQuery(query, BOOL, value.fails)


def _is_known(cls: Any) -> bool:
    """Return False for a class whose own code decides `issubclass`."""
    return cls in _PYTHON_TYPES or is_model(cls) or issubclass(cls, Enum)


def told_apart(value: QueryTree, inside: Type, outside: Type) -> QueryTree | None:
    """Return a test that is true when the value has the type `inside` and not `outside`; None when
    JSON does not show it.
    """
    if outside == UNKNOWN and inside in _JSON_TYPES.values():
        return _is_json_of(value, inside)
    if NEVER in (inside, outside):
        return FALSE if inside == NEVER else TRUE
    if error_in(inside) or error_in(outside):
        return _next_to_errors(value, inside, outside)
    yes, no = members_of(inside), members_of(outside)
    kinds, others = {*map(_json_kind, yes)}, {*map(_json_kind, no)}
    if "" in kinds | others or not kinds & others <= {"object"}:
        return None
    tests: list[QueryTree] = [is_kind(value, kind) for kind in sorted(kinds - others)]
    if kinds & others:
        by_model = _by_model(value, yes, no)
        if by_model is None:
            return None
        tests.extend(by_model)
    found = tests[0]
    for test in tests[1:]:
        found = Binary("or", found, test)
    return found


def _next_to_errors(value: QueryTree, inside: Type, outside: Type) -> QueryTree | None:
    """Return the test for a value that may also be an error."""
    test = is_error(value, join(inside, outside))
    others = told_apart(value, _without_errors(inside), _without_errors(outside))
    if test is None or others is None:
        return None
    if error_in(inside) is not None:
        return test if others == FALSE else Binary("or", test, others)
    is_other = invoke("not", test)
    return is_other if others == TRUE else Binary("and", is_other, others)


def _without_errors(type_: Type) -> Type:
    return join_all(member for member in members_of(type_) if not isinstance(member, ErrorOf))


def _json_kind(member: Type) -> str:
    """Return the result of JSONata's `$type` for such a value; "" when it is not known."""
    match member:
        case ModelOf() | DictOf():
            return "object"
        case ListOf() | TupleOf():
            return "array"
        case EnumOf(cls):
            kinds = {type(one.value) for one in cls}
            return "string" if kinds == {str} else ""
        case _ if member == NONE:
            return "null"
        case _ if member == BOOL:
            return "boolean"
        case _ if member in (INT, FLOAT):
            return "number"
        case _ if is_text(member):
            return "string"
        case _:
            return ""


def _by_model(
    value: QueryTree, yes: tuple[Type, ...], no: tuple[Type, ...]
) -> Sequence[QueryTree] | None:
    """Return tests of which one is true for each model of `yes` and none for a model of `no`."""
    own = [one for one in yes if _json_kind(one) == "object"]
    others = [one for one in no if _json_kind(one) == "object"]
    if not all(isinstance(member, ModelOf) for member in (*own, *others)):
        return None
    return _by_tag(value, own, others) or _by_fields(value, own, others)


def _by_tag(value: QueryTree, own: list[Type], others: list[Type]) -> list[QueryTree]:
    """Return tests of a field that has other constants in each model of `own` than in `others`."""
    for name in _fields(own[0]):
        tags = [_tags(member, name) for member in own]
        foreign = [_tags(member, name) for member in others]
        known = {tag for one in tags for tag in one}
        if all((*tags, *foreign)) and known.isdisjoint(tag for one in foreign for tag in one):
            return [Binary("=", FieldOf(value, name), Constant(tag)) for tag in sorted(known)]
    return []


def _by_fields(value: QueryTree, own: list[Type], others: list[Type]) -> list[QueryTree] | None:
    """Return tests for a field that each model of `own` has and that none of `others` has. pydantic
    makes no model of the JSON of one on the other side: that JSON lacks a required field.
    """
    models = [one.model for one in (*own, *others) if isinstance(one, ModelOf)]
    names = [_lacked(one, others) for one in own]
    back = all(_lacked(other, [one]) for other in others for one in own)
    if None in names or not back or not all(map(has_own_keys, models)):
        return None
    return [invoke("exists", FieldOf(value, str(name))) for name in names]


def _lacked(member: Type, others: list[Type]) -> str | None:
    """Return a required field of the model that none of the others has."""
    foreign = {name for other in others for name in _fields(other)}
    required = (name for name, one in _fields(member).items() if one.is_required)
    return next((name for name in required if name not in foreign), None)


def _fields(member: Type) -> Mapping[str, ModelField]:
    assert isinstance(member, ModelOf)
    return fields_of(member.model)


def _tags(member: Type, name: str) -> tuple[str, ...]:
    if not isinstance(member, ModelOf) or name not in fields_of(member.model):
        return ()
    type_ = fields_of(member.model)[name].type
    return type_.values if isinstance(type_, TextOf) else ()


def with_tag(type_: Type, name: str, tags: frozenset[str], *, is_true: bool) -> Type:
    """Return those models of a union whose field `name` can have (or can have another value than)
    one of `tags`.
    """
    kept = []
    for member in members_of(type_):
        known = set(_tags(member, name))
        may_be = not known or bool(known & tags if is_true else known - tags)
        if may_be:
            kept.append(member)
    return join_all(kept)
