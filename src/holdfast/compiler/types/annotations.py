"""The types in the author's code: annotations, classes, constants."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterable, Mapping, MutableSet, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, Literal

from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    PATH,
    SECRET,
    STR,
    TIME,
    UNKNOWN,
    UUID,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    TextOf,
    TupleOf,
    Type,
    TypedDictOf,
    join_all,
    join_keys,
    key_type,
)

_PLAIN: Final[Mapping[Any, Type]] = {
    None: NONE,
    type(None): NONE,
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STR,
    Any: UNKNOWN,
    object: UNKNOWN,
    timedelta: WRITTEN_DURATION,
    datetime: DATETIME,
    date: DATE,
    time: TIME,
    Decimal: DECIMAL,
    Path: PATH,
    PurePath: PATH,
    PurePosixPath: PATH,
}
#: The types for datetimes that pydantic has. They are recognised by name, so that pydantic need not
#: be imported.
_DATETIMES: Final = frozenset({"AwareDatetime", "NaiveDatetime", "PastDatetime", "FutureDatetime"})
#: Before Python 3.12, `typing.TypedDict` does not record which class has declared a key.
_LACKS_TYPED_DICTS: Final = sys.version_info < (3, 12)
_LISTS: Final = (list, Sequence, Iterable)
_SETS: Final = (set, frozenset, MutableSet)
_DICTS: Final = (dict, Mapping)


def from_annotation(annotation: Any) -> Type:
    """Return the type of the JSON of a value with this annotation."""
    try:
        return _cached(annotation)
    except TypeError:
        # The cache cannot be used, because the metadata in `Annotated[…]` has no hash.
        return _read(annotation)


@lru_cache(maxsize=4096)
def _cached(annotation: Any) -> Type:
    return _read(annotation)


def _read(annotation: Any) -> Type:
    origin = typing.get_origin(annotation)
    plain = _plain(annotation) if origin is None else None
    if plain is not None:
        return plain
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        return from_annotation(arguments[0])
    if origin is Literal:
        return join_all(of_constant(value) for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return join_all(map(from_annotation, arguments))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return ListOf(from_annotation(arguments[0]), is_tuple=True)
    if origin is tuple:
        return TupleOf(tuple(map(from_annotation, arguments)))
    if (origin or annotation) in _LISTS:
        return ListOf(from_annotation(arguments[0]) if arguments else UNKNOWN)
    if (origin or annotation) in _SETS:
        element = from_annotation(arguments[0]) if arguments else UNKNOWN
        return SetOf(element, is_frozen=(origin or annotation) is frozenset)
    if (origin or annotation) in _DICTS:
        return _from_dict(arguments)
    if isinstance(annotation, type) and origin is None:
        return _from_class(annotation)
    return _from_name(annotation)


def _plain(annotation: Any) -> Type | None:
    try:
        return _PLAIN.get(annotation)
    except TypeError:
        # A value without a hash is not a class, so it is not in the table.
        return None


def _from_dict(arguments: tuple[Any, ...]) -> Type:
    if arguments and len(arguments) != 2:
        return Opaque("dict")
    key, value = (from_annotation(argument) for argument in arguments or (str, Any))
    known = key_type(key)
    return Opaque("dict") if known is None else DictOf(value, key=known)


def _has_own_equality(cls: type[Any]) -> bool:
    """Return True when the author of an enum defines when members are equal or true."""
    is_authors = issubclass(cls, Enum) and cls.__module__ != "enum"
    return is_authors and not vars(cls).keys().isdisjoint({"__eq__", "__bool__"})


def _from_class(cls: type[Any]) -> Type:
    if issubclass(cls, Enum):
        has_plain_values = all(isinstance(member.value, str | int | float) for member in cls)
        has_plain_methods = not any(map(_has_own_equality, cls.__mro__))
        return EnumOf(cls) if has_plain_values and has_plain_methods else Opaque(cls.__name__)
    if is_model(cls):
        return ModelOf(cls)
    if is_uuid(cls):
        return UUID
    if cls.__module__ == "pydantic.types" and cls.__name__ in _DATETIMES:
        return DATETIME
    if cls.__module__ == "pydantic.types" and cls.__name__ == "SecretStr":
        return SECRET
    if is_named_tuple(cls):
        return _from_named_tuple(cls)
    if is_typed_dict(cls):
        return _from_typed_dict(cls)
    return Opaque(cls.__name__)


def unreadable_part(annotation: Any) -> Any:
    """Return the part of the annotation that pydantic refuses on this Python, such as a TypedDict;
    None when there is none.
    """
    if _LACKS_TYPED_DICTS and typing.is_typeddict(annotation):
        return annotation if type(annotation).__module__ == "typing" else None
    parts = map(unreadable_part, typing.get_args(annotation))
    return next((part for part in parts if part is not None), None)


def is_named_tuple(found: object) -> bool:
    """Return True for a NamedTuple, whose JSON is an array."""
    return isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")


def _from_named_tuple(cls: Any) -> Type:
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError:
        # A name in the annotations is imported only under TYPE_CHECKING, so it does not exist here.
        return Opaque(cls.__name__)
    return TupleOf(
        tuple(from_annotation(hints.get(name, Any)) for name in cls._fields), cls._fields
    )


def is_typed_dict(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, dict) and hasattr(found, "__total__")


def _from_typed_dict(cls: Any) -> Type:
    try:
        hints = typing.get_type_hints(cls)
    except NameError:
        # A name in the annotations is imported only under TYPE_CHECKING, so it does not exist here.
        return Opaque(cls.__name__)

    @cache
    def fields() -> Mapping[str, Type]:
        return {name: from_annotation(hint) for name, hint in hints.items()}

    return TypedDictOf(cls, fields)


def _from_name(annotation: Any) -> Type:
    """Return the type that a `NewType` or `type X = …` stands for."""
    for attribute in ("__supertype__", "__value__"):
        if hasattr(annotation, attribute):
            return from_annotation(getattr(annotation, attribute))
    return Opaque(name_of(annotation))


def is_model(found: object) -> bool:
    """Return True for a pydantic model or a dataclass: its JSON is an object."""
    if not isinstance(found, type) or getattr(found, "__pydantic_root_model__", False):
        return False
    return hasattr(found, "model_fields") or is_dataclass(found)


def is_uuid(cls: type[Any]) -> bool:
    """Return True for UUID. It is recognised by its name: the compiler must give the same result
    each time, so it does not import a module that creates random values.
    """
    return cls.__module__ == "uuid" and cls.__name__ == "UUID"


def name_of(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def written(value: object) -> str | None:
    """Return the text that pydantic writes for a UUID, a date, a datetime, a time or a Decimal;
    None for others.
    """
    match value:
        case time(tzinfo=zone) if zone is not None and not isinstance(zone, timezone):
            # Without a day, a zone with summer time has no offset.
            return None
        case datetime() | time():
            text = value.isoformat()
            return f"{text[:-6]}Z" if text.endswith("+00:00") else text
        case date() | Decimal():
            return str(value)
        case _:
            return str(value) if is_uuid(type(value)) else None


def of_constant(value: object) -> Type:
    """Return the type of a JSON constant or an enum member."""
    match value:
        case Enum():
            return EnumOf(type(value))
        case str():
            return TextOf((value,))
        case list():
            return ListOf(join_all(of_constant(item) for item in value))
        case tuple():
            return TupleOf(tuple(of_constant(item) for item in value))
        case set() | frozenset():
            element = join_all(of_constant(item) for item in sorted(value, key=repr))
            return SetOf(element, is_frozen=isinstance(value, frozenset))
        case dict():
            return _of_dict(value)
        case _:
            return _PLAIN.get(type(value), UNKNOWN)


def _of_dict(found: Mapping[Any, object]) -> Type:
    key: Type | None = NEVER
    for one in found:
        other = key_type(of_constant(one))
        key = None if key is None or other is None else join_keys(key, other)
    value = join_all(map(of_constant, found.values()))
    return UNKNOWN if key is None else DictOf(value, key=key)


def written_key(key: object) -> str | None:
    """Return the text of a key in the JSON of its dict; None for one that no workflow can have."""
    found = key_type(of_constant(key))
    if found is None:
        return None
    return str(key.value if isinstance(key, Enum) else key)
