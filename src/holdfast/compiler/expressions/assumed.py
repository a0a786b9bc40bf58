"""Annotations on values of unknown type: `size: int = row["size"]`.

Python does not convert such a value, and does not check it. A compiled workflow that relied on a
wrong annotation would compute something else. So the compiled code checks the kind of the value,
and an annotation that is not a kind of JSON is refused: the value stays a text, a list or a dict.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    FALSE,
    TRUE,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FunctionLiteral,
    QueryTree,
    Variable,
    hold,
    invoke,
    is_kind,
)
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    TextOf,
    Type,
    TypedDictOf,
    Union,
    describe,
    describe_exactly,
    has_text_keys,
    is_text,
    join_keys,
    without_none,
)


def is_assumed(found: Type, declared: Type) -> bool:
    """Return True when an unknown part of `found` is declared to be something."""
    return _assumed_part(found, declared) is not None


def unreadable(found: Type, declared: Type) -> bool:
    """Return True when an unknown part of `found` is declared to be something that JSON is not."""
    part = _assumed_part(found, declared)
    return part is not None and not _is_kind(part)


def _assumed_part(found: Type, declared: Type) -> Type | None:
    match (found, declared):
        case (_, Opaque()):
            # An opaque value is passed on only.
            return None
        case _ if found == UNKNOWN:
            return None if declared == UNKNOWN else declared
        case (ListOf(some), ListOf(inner)):
            return _assumed_part(some, inner)
        case (DictOf(some, key=own), DictOf(inner, key=key)):
            is_other = some == UNKNOWN and join_keys(own, key) != key
            return declared if is_other else _assumed_part(some, inner)
        case _:
            return None


def checked(value: TypedQuery, declared: Type, name: str) -> TypedQuery:
    """Return the value, or an error in the run when it is not of the declared kind."""

    def build(held: QueryTree) -> QueryTree:
        words = f"TypeError: {name} is declared as {describe_exactly(declared)}, and this "
        kind = Binary("&", invoke("type", held), Constant(" does not fit"))
        wrong = invoke("error", Binary("&", Constant(words), kind))
        return Conditional(_fits(held, declared, 0), held, wrong)

    query = hold(value.query, build, "_declared")
    return TypedQuery(query, value.type, value.fails | {"TypeError"})


_KINDS: Final[dict[Type, str]] = {STR: "string", BOOL: "boolean", FLOAT: "number", NONE: "null"}


def _is_kind(type_: Type, around: frozenset[Any] = frozenset()) -> bool:
    """Return True when every value of the type is its own JSON. `around`: the enclosing
    TypedDicts; a check of one that contains itself would have no end.
    """
    match type_:
        case TypedDictOf(cls=cls):
            within = around | {cls}
            return cls not in around and all(
                _is_kind(one, within) for one in type_.fields().values()
            )
        case ListOf(inner, is_tuple=False):
            return _is_kind(inner, around)
        case DictOf(inner) if type(type_) is DictOf:
            return has_text_keys(type_) and _is_kind(inner, around)
        case Union(members):
            return all(_is_kind(one, around) for one in members)
        case TextOf() | Opaque():
            return True
        case _:
            return type_ in (*_KINDS, INT, UNKNOWN, NEVER)


def _fits(value: QueryTree, type_: Type, depth: int) -> QueryTree:
    """Return the test whether a value is of the kind; false where it is absent."""
    kind, name = invoke("type", value), f"_item{depth}"
    match type_:
        case TypedDictOf():
            parts = [
                _field_fits(value, key, one, depth, is_required=key in type_.required)
                for key, one in type_.fields().items()
            ]
            return Conditional(Binary("=", kind, Constant("object")), _all(parts), FALSE)
        case ListOf(inner):
            return _members_fit(
                value, "array", "map", _fits(Variable(name), inner, depth + 1), name
            )
        case DictOf(inner):
            return _members_fit(
                value, "object", "each", _fits(Variable(name), inner, depth + 1), name
            )
        case Union(members):
            return reduce(
                lambda left, right: Binary("or", left, right),
                (_fits(value, one, depth) for one in members),
            )
        case TextOf(values):
            return Binary("in", value, ArrayOf(tuple(map(Constant, values))))
        case _ if type_ == INT:
            is_whole = Binary("=", invoke("floor", value), value)
            return Conditional(Binary("=", kind, Constant("number")), is_whole, FALSE)
        case _ if type_ in _KINDS:
            return Binary("=", kind, Constant(_KINDS[type_]))
        case _:
            return TRUE


def _members_fit(value: QueryTree, kind: str, over: str, fits: QueryTree, name: str) -> QueryTree:
    """Return the test of a list or dict. A filter would lose a member that is an empty list."""
    has_kind = is_kind(value, kind)
    if fits == TRUE:
        return has_kind
    answers = invoke(over, value, FunctionLiteral((name,), fits))
    misfits = Binary("in", FALSE, answers)
    return Conditional(has_kind, invoke("not", misfits), FALSE)


def _field_fits(
    value: QueryTree, key: str, type_: Type, depth: int, *, is_required: bool
) -> QueryTree:
    part = invoke("lookup", value, Constant(key))
    name, exists = f"_field{depth}", invoke("exists", part)
    if type_ == UNKNOWN:
        return exists if is_required else TRUE
    # The block stands in the condition, because an absent value cannot be held.
    fits = hold(part, lambda held: _fits(held, type_, depth + 1), name)
    return Conditional(exists, fits, FALSE if is_required else TRUE)


def _all(tests: Iterable[QueryTree]) -> QueryTree:
    found = [one for one in tests if one != TRUE]
    return reduce(lambda left, right: Binary("and", left, right), found) if found else TRUE


# The help of a refusal.


def made(text: str, found: Type, declared: Type) -> str:
    """Return an expression that makes the declared value of the JSON; "" when there is none."""
    match (found, declared):
        case (ListOf(some), ListOf(ModelOf(model))) if some == UNKNOWN:
            return _validated(f"list[{model.__name__}]", text)
        case (ListOf(some), ListOf(inner, is_tuple=False)):
            item = made("one", some, inner)
            return item and f"[{item} for one in {text}]"
        case (DictOf(some), DictOf(inner, key=key)) if type(declared) is DictOf:
            item, name = made("one", some, inner), "key" if is_text(key) else made("key", STR, key)
            if name != "key":
                # The keys alone have to be made where the values are as declared.
                item = item or "one"
            return item and f"{{{name}: {item} for key, one in {text}.items()}}"
        case (_, ListOf(is_tuple=False) | DictOf()) if found == UNKNOWN:
            inside = ListOf(UNKNOWN) if isinstance(declared, ListOf) else DictOf(UNKNOWN)
            return made(text, inside, declared)
        case (_, Union()) if NONE in declared.members and "(" not in text:
            # The text stands twice in the help, so it must not contain a step.
            present = made(text, found, without_none(declared))
            return present and f"None if {text} is None else {present}"
        case (_, ModelOf(model)) if hasattr(model, "model_fields"):
            return f"{model.__name__}.model_validate({text})"
        case (_, ModelOf(model)):
            return _validated(model.__name__, text)
        case (_, EnumOf(enum)):
            is_number = found == STR and issubclass(enum, int)
            return f"{enum.__name__}({f'int({text})' if is_number else text})"
        case _ if found == STR and declared == INT:
            return f"int({text})"
        case _ if declared in (DATETIME, DATE):
            return f"{describe(declared)}.fromisoformat({text})"
        case _ if declared == DECIMAL:
            return f"Decimal({text})"
        case _ if declared == WRITTEN_DURATION:
            return f"timedelta(seconds=int({text}))"
        case _:
            return ""


def _validated(type_name: str, text: str) -> str:
    return f"TypeAdapter({type_name}).validate_python({text})"
