"""The JSON form of a model or dataclass, read without importing pydantic."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from holdfast.api.boundary import JsonValue
from holdfast.compiler.types.annotations import (
    from_annotation,
    is_model,
    of_constant,
    written,
    written_key,
)
from holdfast.compiler.types.iso import iso_of
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DECIMAL,
    FLOAT,
    INT,
    NEVER,
    SECRET,
    STR,
    UNKNOWN,
    UUID,
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
    Union,
    is_json,
    is_text,
    join_keys,
    may_be_none,
    members_of,
)

#: The settings of a model that change neither its values nor their JSON.
_HARMLESS_SETTINGS: Final = frozenset(
    {"title", "frozen", "arbitrary_types_allowed", "json_schema_extra", "from_attributes", "extra"}
)
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class ModelField:
    """One field of a model. `obstacle` says why a workflow cannot set it, `default_obstacle` why a
    call cannot omit it; both are "" without a reason.
    """

    type: Type
    is_required: bool
    default: JsonValue
    obstacle: str
    default_obstacle: str
    is_positional: bool = False


@lru_cache(maxsize=1024)
def fields_of(model: Any) -> Mapping[str, ModelField]:
    """Return the fields of the model's JSON, by their Python names."""
    if not hasattr(model, "model_fields"):
        return MappingProxyType(_fields_of_dataclass(model))
    serialised = {
        name
        for decorator in model.__pydantic_decorators__.field_serializers.values()
        for name in decorator.info.fields
    }
    is_custom = bool(model.__pydantic_decorators__.model_serializers)
    found: dict[str, ModelField] = {}
    for name, info in model.model_fields.items():
        if info.exclude:
            continue
        is_opaque = is_custom or name in serialised or "*" in serialised
        found[name] = _field(info, Opaque("serialised") if is_opaque else None)
    return MappingProxyType(found)


def _fields_of_dataclass(cls: Any) -> dict[str, ModelField]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError:
        hints = {}
    found: dict[str, ModelField] = {}
    for field in dataclasses.fields(cls):
        has_factory = field.default_factory is not dataclasses.MISSING
        is_required = field.default is dataclasses.MISSING and not has_factory
        default, left_out = _default(is_required, field.default_factory, field.default)
        type_ = from_annotation(hints.get(field.name, Any))
        found[field.name] = ModelField(
            type=type_,
            is_required=is_required,
            default=default,
            obstacle="" if field.init else "its class sets it",
            default_obstacle=left_out or _of_another_type(field.default, type_),
            is_positional=field.init and not field.kw_only,
        )
    return found


def _field(info: Any, replaced: Type | None) -> ModelField:
    type_ = replaced or from_annotation(info.annotation)
    obstacle = ""
    default, left_out = _default(info.is_required(), info.default_factory, info.default)
    left_out = left_out or _of_another_type(info.default, type_)
    if info.metadata:
        obstacle = _CONSTRAINTS
    if info.alias is not None or info.validation_alias is not None:
        obstacle = "it has an alias"
    if replaced is not None:
        obstacle = "it has a serializer of its own"
    # pydantic does not check a default against the constraints of its field.
    is_unchecked = info.validate_default is not True and all(map(_is_constraint, info.metadata))
    left_obstacle = "" if obstacle == _CONSTRAINTS and is_unchecked else obstacle
    return ModelField(type_, info.is_required(), default, obstacle, left_obstacle or left_out)


_CONSTRAINTS: Final = "it has constraints"


def _is_constraint(metadata: object) -> bool:
    """Return True for `ge=…` and the like; not for functions that convert or write values."""
    return type(metadata).__module__ in ("annotated_types", "pydantic._internal._fields")


def _default(is_required: bool, factory: Any, value: object) -> tuple[JsonValue, str]:
    if is_required:
        return None, ""
    if factory is not None and factory is not dataclasses.MISSING:
        if factory in (list, dict, set):
            return ({} if factory is dict else []), ""
        return None, "its default is computed"
    plain = _plain(value)
    if plain is _MISSING:
        return None, "its default is no JSON constant"
    default: JsonValue = plain
    return default, ""


def _of_another_type(default: object, type_: Type) -> str:
    """Return why a default has another type than its field; "" when it fits. Neither pydantic nor
    `@dataclass` checks it, so the field could have a value of another type.
    """
    # A bool and most members of enums are instances of these classes, too.
    is_scalar = isinstance(default, str | int | float)
    if is_scalar and not fits(of_constant(default), type_) and not isinstance(type_, Opaque):
        return "its default is of another type"
    return ""


@lru_cache(maxsize=1024)
def secret_in(type_: Type) -> bool:
    """Return True when the type is a secret, or contains one at any depth."""
    return _contains(type_, lambda one: one == SECRET, frozenset())


@lru_cache(maxsize=1024)
def has_set(type_: Type) -> bool:
    """Return True when the type is a set, or contains one at any depth."""
    return _contains(type_, lambda one: isinstance(one, SetOf), frozenset())


def _contains(type_: Type, test: Callable[[Type], bool], around: frozenset[Any]) -> bool:
    """Return True when the type passes the test, or a type in it does, or a field of a model in it.
    `around` are the models around the type: a model may contain itself.
    """
    match type_:
        case _ if test(type_):
            return True
        case ModelOf(cls) | TypedDictOf(cls=cls) if cls in around:
            return False
        case ModelOf(cls):
            types: Iterable[Type] = (field.type for field in fields_of(cls).values())
            around |= {cls}
        case TypedDictOf(cls=cls):
            types = type_.fields().values()
            around |= {cls}
        case ListOf(inner) | SetOf(inner) | DictOf(inner):
            types = (inner,)
        case TupleOf(parts) | Union(parts):
            types = parts
        case _:
            return False
    return any(_contains(one, test, around) for one in types)


def _class_of(value: object) -> Any:
    return type(value)


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return _plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case timedelta() if value.microseconds == 0:
            return iso_of(value)
        case list() | tuple():
            items = [_plain(item) for item in value]
            return _MISSING if _MISSING in items else items
        case dict():
            keys = [written_key(key) for key in value]
            items = [_plain(item) for item in value.values()]
            is_missing = None in keys or _MISSING in items
            return _MISSING if is_missing else dict(zip(keys, items, strict=True))
        case _ if is_model(_class_of(value)) and not obstacle_of(_class_of(value)):
            rows = {name: _plain(getattr(value, name)) for name in fields_of(_class_of(value))}
            return _MISSING if _MISSING in rows.values() else rows
        case _:
            text = written(value)
            return _MISSING if text is None else text


def obstacle_of(model: Any) -> str:
    """Return why a workflow cannot build this model exactly; "" when it can."""
    if not hasattr(model, "model_fields"):
        return _obstacle_of_dataclass(model)
    decorators = model.__pydantic_decorators__
    if decorators.validators or decorators.field_validators or decorators.root_validators:
        return "it has validators"
    if decorators.model_validators:
        return "it has validators"
    if decorators.model_serializers or decorators.computed_fields:
        return "its JSON is computed"
    if model.__pydantic_post_init__ or model.__pydantic_custom_init__:
        return "it computes while it is built"
    odd = sorted(set(model.model_config) - _HARMLESS_SETTINGS)
    return f"its model_config sets {odd[0]}" if odd else ""


def has_own_keys(model: Any) -> bool:
    """Return True when the JSON of the model has its fields as keys and no others, and when
    pydantic makes the model only of JSON with all its required fields.
    """
    if obstacle_of(model):
        return False
    if not hasattr(model, "model_fields"):
        return all(not one.obstacle for one in fields_of(model).values())
    aliases = [(one.alias, one.validation_alias) for one in model.model_fields.values()]
    return set(aliases) <= {(None, None)} and model.model_config.get("extra") != "allow"


def is_frozen(model: Any, name: str) -> bool:
    """Return True when Python refuses to assign this field, or runs code for it."""
    owner = next(cls for cls in model.__mro__ if "__setattr__" in vars(cls))
    if not hasattr(model, "model_fields"):
        return bool(model.__dataclass_params__.frozen) or owner is not object
    is_own = owner.__module__.partition(".")[0] != "pydantic"
    return bool(model.model_config.get("frozen") or model.model_fields[name].frozen or is_own)


def _obstacle_of_dataclass(cls: Any) -> str:
    settings = cls.__dataclass_params__
    if hasattr(cls, "__post_init__") or not settings.init:
        return "it computes while it is built"
    return "" if settings.eq else "two of them are never equal"


def has_plain_equality(model: Any) -> bool:
    """Return True when `==` is the one that pydantic or `@dataclass` generates, and compares all
    fields of the JSON.
    """
    owner = next(cls for cls in model.__mro__ if "__eq__" in vars(cls))
    if hasattr(model, "model_fields"):
        is_made = owner.__module__.partition(".")[0] == "pydantic"
        return is_made and len(fields_of(model)) == len(model.model_fields)
    # `@dataclass` generates its methods from text, so the file name of their code is "<string>". A
    # method that the author has written has another.
    is_made = owner is not object and owner.__eq__.__code__.co_filename == "<string>"
    return is_made and all(field.compare for field in dataclasses.fields(model))


def fits(found: Type, wanted: Type) -> bool:
    """Return True when pydantic keeps such a value unchanged. An int for a float counts, because
    its JSON is the same number.
    """
    if found in (wanted, NEVER):
        return True
    choices = members_of(wanted)
    if UNKNOWN in choices and is_json(found):
        # A field of `Any` or `object` keeps each value, and JSON tells the type of such a value.
        return True
    if len(members_of(found)) > 1:
        return all(fits(member, wanted) for member in members_of(found))
    return any(_fits_one(found, choice) for choice in choices)


def is_bool_for_number(found: Type, wanted: Type) -> bool:
    """Return True when some of `found` is a bool where only a number is wanted."""
    match (found, wanted):
        case (
            (ListOf(some), ListOf(element))
            | (SetOf(some), SetOf(element))
            | (DictOf(some), DictOf(element))
        ):
            return is_bool_for_number(some, element)
        case (TupleOf(parts), TupleOf(elements)) if len(parts) == len(elements):
            return any(map(is_bool_for_number, parts, elements))
    wanted_members = members_of(wanted)
    is_number = not {INT, FLOAT}.isdisjoint(wanted_members)
    return is_number and BOOL in members_of(found) and BOOL not in wanted_members


def conversion(text: str, found: Type, wanted: Type) -> str:
    """Return the expression that converts `text` to a value of the type; "" if there is none."""
    if wanted == STR and found in (INT, BOOL, DECIMAL, DATE, UUID):
        return f"str({text})"
    if found == BOOL and is_bool_for_number(found, wanted):
        return f"int({text})"
    if wanted == INT and is_text(found):
        return f"int({text})"
    if wanted == INT and found == FLOAT:
        return f"round({text})"
    return f"if {text} is not None: …" if may_be_none(found) else ""


def _fits_one(found: Type, wanted: Type) -> bool:
    match (found, wanted):
        case (TextOf(some), TextOf(values)):
            return set(some) <= set(values)
        case (TextOf(), _):
            return wanted == STR
        case (ListOf(some, is_tuple), ListOf(element, also)):
            return is_tuple == also and fits(some, element)
        case (TupleOf(parts), ListOf(element, True)):
            return all(fits(part, element) for part in parts)
        case (TupleOf(some_elements), TupleOf(elements)):
            return len(some_elements) == len(elements) and all(map(fits, some_elements, elements))
        case (SetOf(some, is_frozen), SetOf(element, also)):
            return is_frozen == also and fits(some, element)
        case (_, TypedDictOf()):
            return found == wanted
        case (DictOf(some, key=own), DictOf(value, key=key)):
            return join_keys(own, key) == key and fits(some, value)
        case (EnumOf(some_enum), EnumOf(enum)):
            return some_enum is enum
        case (ModelOf(some_model), ModelOf(model)):
            return some_model is model
        case _:
            return found == wanted or (found == INT and wanted == FLOAT)
