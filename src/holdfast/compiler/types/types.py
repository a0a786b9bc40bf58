"""Static types: what the compiler knows about a value, and how types are joined and split."""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import Any, Final, TypeAlias

Type: TypeAlias = (
    "Simple | TextOf | TextForm | EnumOf | ListOf | SetOf | DictOf | TupleOf | ModelOf | ErrorOf"
    " | Union | Opaque"
)


@dataclass(frozen=True, slots=True, eq=False)
class Simple:
    """A type without parts. Each one is created once, below, and equals only itself."""

    name: str


@dataclass(frozen=True, slots=True)
class TextOf:
    """A str that is one of `values`: the type of a constant, and of a `Literal`."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TextForm:
    """A Python value whose JSON is the text that pydantic writes for it, such as a `UUID`.

    As with `Simple`, each one is created once.
    """

    name: str


@dataclass(frozen=True, slots=True)
class EnumOf:
    enum: type[Enum]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, or a tuple of any length: their JSON is the same, but in Python they are never
    equal.
    """

    element: Type
    is_tuple: bool = False


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set or a frozenset. Its JSON is a list without equal members, whose order means nothing."""

    element: Type
    is_frozen: bool = False


@dataclass(frozen=True, slots=True)
class DictOf:
    """A dict. The keys of its JSON are texts; `key` is the type of its keys in Python: `STR`, `INT`
    or an enum, and NEVER for the dict without keys. See `expressions/dict_keys.py`.
    """

    value: Type
    key: Type = field(default_factory=lambda: STR, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResultOf(DictOf):
    """The dict that a service returns. `name` says which one. `fields` returns the types of its
    fields; it is a function because the models of services are recursive.
    """

    name: str
    fields: Callable[[], Mapping[str, Type]] = field(compare=False)

    def __init__(self, name: str, fields: Callable[[], Mapping[str, Type]]) -> None:
        object.__setattr__(self, "value", UNKNOWN)
        object.__setattr__(self, "key", STR)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "fields", fields)


@dataclass(frozen=True, slots=True)
class TypedDictOf(DictOf):
    """A `TypedDict`, which may contain itself. `cls` is the author's class."""

    cls: Any
    fields: Callable[[], Mapping[str, Type]] = field(compare=False)

    def __init__(self, cls: Any, fields: Callable[[], Mapping[str, Type]]) -> None:
        object.__setattr__(self, "value", UNKNOWN)
        object.__setattr__(self, "key", STR)
        object.__setattr__(self, "cls", cls)
        object.__setattr__(self, "fields", fields)

    @property
    def required(self) -> tuple[str, ...]:
        # Read the annotations again. With `from __future__ import annotations` Python itself does
        # not notice `NotRequired`.
        hints = typing.get_type_hints(self.cls, include_extras=True)
        return tuple(name for name in self.fields() if _is_required(self.cls, name, hints[name]))


def _is_required(cls: Any, name: str, hint: Any) -> bool:
    """Return True for a key that every value of the `TypedDict` has."""
    origin = str(typing.get_origin(hint)).rpartition(".")[2]
    if origin in ("Required", "NotRequired"):
        return origin == "Required"
    return name in cls.__required_keys__


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple with these parts. `names` are the field names of a NamedTuple."""

    elements: tuple[Type, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestOf(TupleOf):
    """The request of `with receive(…) as request:`. Its JSON is an array of its id and of the data
    that the caller has sent. Only these parts are values.
    """


@dataclass(frozen=True, slots=True)
class ModelOf:
    model: Any


@dataclass(frozen=True, slots=True)
class ErrorOf:
    """The variable of an `except`. `has_text`: the error has the same text in the compiled run as
    in Python.

    `fields`: the fields that each class has which the handler can catch. `coded`: the names of the
    classes whose cause is the JSON of their fields (`api/error_fields.py`). `is_marked`: its JSON
    shows that it is an error (`expressions/error_values.py`). `nameless`: the expression whose
    error has no name, for a refusal, when `has_text` is False.
    """

    has_text: bool
    fields: tuple[tuple[str, Type], ...] = ()
    coded: tuple[str, ...] = ()
    is_marked: bool = False
    nameless: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """Two or more members, none of them a Union."""

    members: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """JSON whose Python form is different (bytes …): it is passed on and never read."""

    name: str


NONE: Final = Simple("None")
BOOL: Final = Simple("bool")
INT: Final = Simple("int")
FLOAT: Final = Simple("float")
STR: Final[Simple] = Simple("str")
#: A timedelta that the workflow itself has computed. Its JSON is a number of seconds.
DURATION: Final = Simple("timedelta")
#: The difference of two moments. Its JSON is a number of seconds, which may have a fraction.
ELAPSED: Final = Simple("difference of moments")
#: A timedelta from the input. Its JSON is a text in ISO 8601 such as "PT1H30M".
WRITTEN_DURATION: Final = TextForm("timedelta")
#: A datetime. Its JSON is a text in RFC 3339, which has an offset unless the datetime is naive.
DATETIME: Final = TextForm("datetime")
DATE: Final = TextForm("date")
DECIMAL: Final = TextForm("Decimal")
UUID: Final = TextForm("UUID")
TIME: Final = TextForm("time")
PATH: Final = TextForm("Path")
#: pydantic's SecretStr. Its JSON is an encrypted text, so a workflow can only test whether it is
#: present.
SECRET: Final = TextForm("SecretStr")
UNKNOWN: Final = Simple("unknown")
#: The type of the elements of `[]`. It has no values, so a join with another type gives that type,
#: and it fits everywhere.
NEVER: Final = Simple("nothing")
#: The type of an expression that was refused. It fits everywhere, so that the same mistake causes
#: no further refusals.
REFUSED: Final = Simple("refused")

_UNION_MEMBERS_MAX: Final = 8
_DEPTH_MAX: Final = 6


def join_all(members: Iterable[Type]) -> Type:
    joined: Type = NEVER
    texts: set[str] = set()
    for member in members:
        if isinstance(member, TextOf):
            # Join all texts at the end, because a constant of the module may have thousands of
            # them.
            texts.update(member.values)
        else:
            joined = join(joined, member)
    return join(joined, TextOf(tuple(sorted(texts)))) if texts else joined


def join(left: Type, right: Type) -> Type:
    """Return the type of a value that has one type or the other."""
    if left is right:
        return left
    merged = _merge(left, right)
    return _union(members_of(left), members_of(right)) if merged is None else merged


def _merge(left: Type, right: Type) -> Type | None:
    """Return one type that covers both without a Union; None if there is none."""
    match (left, right):
        case _ if right is NEVER or left == right:
            return left
        case _ if left is NEVER:
            return right
        case _ if left is REFUSED or right is REFUSED:
            return REFUSED
        case _ if left is UNKNOWN or right is UNKNOWN:
            return None if _must_stay(left) or _must_stay(right) else UNKNOWN
        case TextOf(some_values), TextOf(values):
            return TextOf(tuple(sorted({*some_values, *values})))
        case (TextOf(), Simple("str")) | (Simple("str"), TextOf()):
            return STR
        case ListOf(some, is_tuple), ListOf(other, also) if is_tuple == also:
            return ListOf(join(some, other), is_tuple)
        case SetOf(some, is_frozen), SetOf(other, also) if is_frozen == also:
            return SetOf(join(some, other), is_frozen)
        case DictOf(some), DictOf(other):
            key = join_keys(left.key, right.key)
            return None if key is None else DictOf(join(some, other), key=key)
        case TupleOf(parts), TupleOf(others) if len(parts) == len(others):
            joined = tuple(join(part, other) for part, other in zip(parts, others, strict=True))
            return TupleOf(joined, left.names if left.names == right.names else ())
        case ErrorOf(), ErrorOf():
            return ErrorOf(
                left.has_text and right.has_text,
                tuple(one for one in left.fields if one in right.fields),
                tuple(sorted({*left.coded, *right.coded})),
                left.is_marked and right.is_marked,
                left.nameless or right.nameless,
            )
        case _:
            return None


def _union(left: tuple[Type, ...], right: tuple[Type, ...]) -> Type:
    members = list(left)
    for candidate in right:
        for place, member in enumerate(members):
            merged = _merge(member, candidate)
            if merged is not None:
                members[place] = merged
                break
        else:
            members.append(candidate)
    if len(members) > _UNION_MEMBERS_MAX:
        members = [UNKNOWN, *filter(_must_stay, members)]
    return members[0] if len(members) == 1 else Union(tuple(sorted(members, key=describe)))


def _must_stay(type_: Type) -> bool:
    """Return True for a type that does not become a part of `Any`, because its values may not leave
    the workflow as they are.
    """
    return has_duration(type_) or has_error(type_) or _has_other_keys(type_)


def parts_of(type_: Type) -> Iterator[Type]:
    """Yield the type and the types of the values in it, at any depth, without the fields of
    models.
    """
    yield type_
    match type_:
        case ListOf(inner) | SetOf(inner) | DictOf(inner):
            yield from parts_of(inner)
        case TupleOf(parts) | Union(parts):
            for part in parts:
                yield from parts_of(part)
        case _:
            pass


def _has_other_keys(type_: Type) -> bool:
    """Return True for a dict, or a type with one, whose keys in Python are not texts."""
    return any(isinstance(one, DictOf) and not has_text_keys(one) for one in parts_of(type_))


def has_duration(type_: Type) -> bool:
    """Return True for a duration, or a type with one, that must be converted before it leaves the
    workflow.
    """
    return any(one in (DURATION, ELAPSED) for one in parts_of(type_))


def has_error(type_: Type) -> bool:
    """Return True for the variable of an `except`, or a type with one: it has no JSON."""
    return any(isinstance(one, ErrorOf) for one in parts_of(type_))


def members_of(type_: Type) -> tuple[Type, ...]:
    return type_.members if isinstance(type_, Union) else (type_,)


def consists_of(type_: Type, kinds: Collection[Type]) -> bool:
    """Return True when the value is a text or one of these kinds, or lists and dicts of them."""
    match type_:
        case ListOf(element, is_tuple=False):
            return all(consists_of(one, kinds) for one in members_of(element))
        case DictOf(value, key=key):
            return key in (STR, NEVER) and all(consists_of(one, kinds) for one in members_of(value))
        case TextOf():
            return True
        case _:
            return type_ in kinds


def widen(type_: Type) -> Type:
    """Return the type without the details of a `Literal`, because rules are written for `str`."""
    match type_:
        case TextOf():
            return STR
        case Union(members):
            return join_all(widen(member) for member in members)
        case _:
            return type_


def without_none(type_: Type) -> Type:
    """Return the type without None. For None itself the result has no values."""
    return join_all(member for member in members_of(type_) if member != NONE)


def may_be_none(type_: Type) -> bool:
    return isinstance(type_, Union) and NONE in type_.members


def is_refused(*types_: Type) -> bool:
    """Return True when one of the types belongs to something that was already refused."""
    for type_ in types_:
        match type_:
            case Simple():
                if type_ is REFUSED:
                    return True
            case ModelOf() | TextOf():
                pass
            case ListOf(inner) | SetOf(inner) | DictOf(inner):
                if is_refused(inner):
                    return True
            case TupleOf(parts) | Union(parts):
                if is_refused(*parts):
                    return True
            case _:
                pass
    return False


def is_numeric(type_: Type) -> bool:
    """Return True for a number. A bool does not count, because its JSON is `true` or `false`."""
    return all(member in (INT, FLOAT, NEVER) for member in members_of(type_))


def is_text(type_: Type) -> bool:
    return all(member in (STR, NEVER) or isinstance(member, TextOf) for member in members_of(type_))


def may_be_list(type_: Type) -> bool:
    """Return True when JSONata might flatten the value: it is a list, or may be one."""
    return any(
        member in (UNKNOWN, REFUSED) or isinstance(member, ListOf | SetOf | TupleOf | Opaque)
        for member in members_of(type_)
    )


def is_list(type_: Type) -> bool | None:
    """Return True when every value of the type is a list, False when none is, None when both can
    occur.
    """
    if isinstance(type_, ListOf | SetOf | TupleOf):
        return True
    return None if may_be_list(type_) else False


def element_of(type_: Type) -> Type | None:
    """Return the type of the items of a list; None for any other type. A set is excluded, because
    its order is undefined.
    """
    match type_:
        case ListOf(element):
            return element
        case TupleOf(elements):
            return join_all(elements)
        case _:
            return None


def is_json(type_: Type) -> bool:
    """Return True when the JSON of a value is the value itself, and tells its type. The JSON of a
    float does not: 2.0 is written as 2.
    """
    match type_:
        case ListOf(inner, is_tuple=False):
            return is_json(inner)
        case DictOf(inner) if type(type_) is DictOf:
            return has_text_keys(type_) and is_json(inner)
        case Union(members):
            return all(map(is_json, members))
        case TextOf():
            return True
        case _:
            return type_ in (STR, INT, BOOL, NONE, NEVER, UNKNOWN)


def bounded(type_: Type, depth: int = 0) -> Type:
    """Return the type with parts that nest too deeply replaced by UNKNOWN. Without this, the types
    in a loop with `x = [x]` would grow for ever.
    """
    if depth > _DEPTH_MAX:
        return UNKNOWN
    match type_:
        case ResultOf() | TypedDictOf():
            return type_
        case ListOf(element, is_tuple):
            return ListOf(bounded(element, depth + 1), is_tuple)
        case SetOf(element, is_frozen):
            return SetOf(bounded(element, depth + 1), is_frozen)
        case DictOf(value, key=key):
            return DictOf(bounded(value, depth + 1), key=key)
        case TupleOf(elements):
            parts = tuple(bounded(element, depth + 1) for element in elements)
            return replace(type_, elements=parts)  # a NamedTuple keeps its names
        case Union(members):
            return join_all(bounded(member, depth) for member in members)
        case _:
            return type_


def describe(type_: Type) -> str:
    """Return the type as the author would write it in an annotation."""
    match type_:
        case TextOf():
            return "str"
        case Simple() if type_ is UNKNOWN:
            return "Any"
        case Simple(name) | TextForm(name) | Opaque(name):
            return name
        case EnumOf(cls) | ModelOf(cls):
            return cls.__name__
        case ListOf(element, True):
            return f"tuple[{describe(element)}, ...]"
        case ListOf(element):
            return f"list[{describe(element)}]" if element != NEVER else "list"
        case TypedDictOf(cls=cls):
            return str(cls.__name__)
        case SetOf(element, is_frozen):
            name = "frozenset" if is_frozen else "set"
            return f"{name}[{describe(element)}]" if element != NEVER else name
        case DictOf(value, key=key):
            name = "str" if key == NEVER else describe(key)
            return f"dict[{name}, {describe(value)}]" if value != NEVER else "dict"
        case TupleOf(elements):
            return f"tuple[{', '.join(map(describe, elements))}]"
        case ErrorOf():
            return "exception"
        case Union(members):
            # Put None last, as authors write it, such as `int | None`.
            ordered = sorted(members, key=lambda member: (member == NONE, describe(member)))
            return " | ".join(dict.fromkeys(map(describe, ordered)))


def describe_exactly(type_: Type) -> str:
    """Return the type like `describe`, but with the values that a text can have."""
    if isinstance(type_, TextOf):
        return f"Literal[{', '.join(map(repr, type_.values))}]"
    return describe(type_)


def is_text_enum(type_: Type) -> bool:
    """Return True when str() of a member is its value, in every supported version of Python."""
    if not isinstance(type_, EnumOf) or not issubclass(type_.enum, StrEnum):
        return False
    enum = type_.enum
    return (enum.__str__, enum.__format__) == (StrEnum.__str__, StrEnum.__format__)


#: The operators of a text that a class could define anew.
_TEXT_OPERATORS: Final = frozenset(
    {"__add__", "__bool__", "__contains__", "__getitem__", "__iter__", "__len__", "__mul__"}
)


def as_text(type_: Type) -> Type:
    """Return `str` for a `StrEnum`, whose members have the methods and operators of a text; any
    other type unchanged.
    """
    if isinstance(type_, Union):
        return join_all(map(as_text, type_.members))
    if not isinstance(type_, EnumOf) or not is_text_enum(type_):
        return type_
    authors = type_.enum.__mro__[: type_.enum.__mro__.index(StrEnum)]
    own = {name for cls in authors for name in vars(cls)}
    is_plain = not any(
        name in _TEXT_OPERATORS or (hasattr(str, name) and name[0] != "_") for name in own
    )
    return STR if is_plain else type_


def is_key(type_: Type) -> bool:
    """Return True for a value that can be the key of a JSON object, with the same text in
    Python.
    """
    return is_text(type_) or is_text_enum(type_)


def key_type(type_: Type) -> Type | None:
    """Return the type that a dict has for keys of this type; None when its JSON cannot tell such
    keys. pydantic reads the numbers of an `IntEnum` from the texts of keys, and not those of other
    enums.
    """
    match type_:
        case EnumOf(enum):
            kinds = {type(member.value) for member in enum}
            is_known = kinds == {str} or (kinds == {int} and issubclass(enum, int))
            return type_ if is_known else None
        case _ if type_ in (INT, NEVER):
            return type_
        case _:
            return STR if is_text(type_) else None


def is_number_key(type_: Type) -> bool:
    """Return True for keys that are numbers in Python, and texts of digits in JSON."""
    return type_ == INT or (isinstance(type_, EnumOf) and issubclass(type_.enum, int))


def join_keys(left: Type, right: Type) -> Type | None:
    """Return the type of the keys of a dict that has both; None when no type is right for both."""
    if right in (left, NEVER):
        return left
    if left == NEVER:
        return right
    return STR if is_key(left) and is_key(right) else None


def has_text_keys(dict_: DictOf) -> bool:
    """Return True when the keys in Python are the texts of the JSON, or equal to them."""
    return is_key(dict_.key)
