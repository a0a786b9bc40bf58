"""The arguments of tasks and child workflows, checked against the types of their parameters."""

from __future__ import annotations

import ast

from holdfast.api.library import library_task
from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.expressions.durations import at_border
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.types.models import conversion, fits, secret_in
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    REFUSED,
    SECRET,
    UNKNOWN,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    TextForm,
    TextOf,
    TupleOf,
    Type,
    Union,
    describe,
    describe_exactly,
    element_of,
    has_duration,
    is_number_key,
    is_refused,
    is_text,
    join,
    join_keys,
    members_of,
)


def lower_argument(
    expressions: Expressions, node: ast.expr, task: str, name: str, wanted: Type
) -> TypedQuery:
    """Return the value for the parameter `name` of `task`. It is refused when it can never fit."""
    unit = expressions.unit
    value = expressions.lower(node)
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    value = at_border(unit, node, value)
    # A secret has a type of its own. So a value of unknown type is not a secret, and it must not be
    # passed where one is expected.
    is_clear = UNKNOWN in members_of(value.type) and secret_in(wanted)
    is_member = library_task(task) is not None and _has_plain_member(value.type, wanted)
    if is_refused(value.type) or (can_fit(value.type, wanted) and not is_clear and not is_member):
        return value
    message = (
        f"`{name}` of {task}() is {describe_exactly(wanted)} and this is "
        f"{describe_exactly(value.type)}"
    )
    text = unit.text(node)
    help_ = f"{text}.value" if is_member else _help(text, task, name, value.type, wanted)
    return unit.refused(node, "HF040", message, help_)


def _has_plain_member(found: Type, wanted: Type) -> bool:
    """Return True when a member of an enum may stand for a text or a number, and its class inherits
    from neither. Python's own methods refuse it. A step that gets its JSON would not.
    """
    return not any(isinstance(one, EnumOf) for one in members_of(wanted)) and any(
        isinstance(one, EnumOf) and not issubclass(one.enum, str | int | float)
        for one in members_of(found)
    )


def _help(text: str, task: str, name: str, found: Type, wanted: Type) -> str:
    if secret_in(wanted) and not secret_in(found):
        return "take it as a parameter, `token: SecretStr`, or from a task that returns it"
    if converted := conversion(text, found, wanted):
        return converted
    if "." in task:
        return f"str({text})" if is_text(wanted) else f"value: {describe(wanted)} = …, before it"
    if found == NONE:
        found = join(wanted, NONE)
    return f"def {task}({name}: {describe(found)})"


def can_fit(found: Type, wanted: Type) -> bool:
    """Return True when some value of the type `found` is valid for `wanted`, in Python and in
    JSON.
    """
    return _keeps_secrets(found, wanted) and any(
        _can_fit_one(some, choice) for some in members_of(found) for choice in members_of(wanted)
    )


def _keeps_secrets(found: Type, wanted: Type) -> bool:
    """Return False when a secret is passed to a parameter that is not a secret, or the reverse.

    A secret is decrypted only for a parameter that is a secret. A plain value for such a parameter
    would already have been stored in clear text.
    """
    if UNKNOWN in members_of(wanted) and secret_in(found):
        return False
    if SECRET not in members_of(wanted):
        return SECRET not in members_of(found)
    return all(one in (SECRET, UNKNOWN, *_NOTHING) for one in members_of(found))


_NOTHING = (NONE, NEVER, REFUSED)
_ANYTHING = (UNKNOWN, NEVER, REFUSED)
_NUMBERS = (INT, FLOAT, BOOL)


def _can_fit_one(found: Type, wanted: Type) -> bool:
    if found in _ANYTHING or wanted in _ANYTHING or fits(found, wanted):
        return True
    match (found, wanted):
        case (Opaque(), _) | (_, Opaque()):
            return True
        case (TextOf(some), TextOf(values)):
            return bool({*some} & {*values})
        case (EnumOf(cls), EnumOf(other)):
            return cls is other
        case (EnumOf(), _) | (_, EnumOf()):
            # An enum member is also a text or a number if its class inherits from that type. mypy
            # checks such arguments, so accept them here.
            return not isinstance(found if isinstance(wanted, EnumOf) else wanted, ModelOf | DictOf)
        case (ListOf() | TupleOf(), ListOf()):
            element = element_of(found)
            return element is not None and can_fit(element, wanted.element)
        case (ListOf() | SetOf(), SetOf()):
            return can_fit(found.element, wanted.element)
        case (ListOf(element), TupleOf(parts)):
            return all(can_fit(element, part) for part in parts)
        case (TupleOf(some), TupleOf(parts)):
            return len(some) == len(parts) and all(map(can_fit, some, parts))
        case (DictOf(value, key=own), DictOf(other_value, key=key)):
            is_alike = join_keys(own, key) is not None or is_text(own)
            return is_alike and can_fit(value, other_value)
        case (ModelOf(cls), ModelOf(other)):
            return issubclass(cls, other)
        case (TextForm(), TextForm()):
            return {found, wanted} == {DATE, DATETIME}
        case (_, TextForm()):
            is_number = found in (INT, FLOAT) and wanted in (DECIMAL, WRITTEN_DURATION)
            return is_text(found) or is_number
        case _ if is_text(found) and is_text(wanted):
            return True
        case _:
            return found in _NUMBERS and wanted in _NUMBERS


def can_dump(type_: Type, *, is_sorted: bool) -> bool:
    """Return False when `json.dumps` refuses such a value, or writes something other than its JSON:
    it sorts ints by their size, and the texts of their JSON as texts.
    """
    match type_:
        case EnumOf(enum):
            return issubclass(enum, str | int)
        case ListOf(inner):
            return can_dump(inner, is_sorted=is_sorted)
        case DictOf(inner, key=key):
            is_known = can_dump(key, is_sorted=is_sorted) and not (is_sorted and is_number_key(key))
            return is_known and can_dump(inner, is_sorted=is_sorted)
        case TupleOf(parts) | Union(parts):
            return all(can_dump(part, is_sorted=is_sorted) for part in parts)
        case _:
            return not isinstance(type_, TextForm | ModelOf | SetOf) and not has_duration(type_)
