"""What a pydantic model promises about its JSON, read without importing pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from holdfast.dsl.boundary import Json
from holdfast.dsl.types import (
    FLOAT,
    INT,
    NEVER,
    STR,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    TextOf,
    TupleOf,
    Type,
    from_annotation,
    members_of,
)

#: Settings that change neither a constructed value nor its JSON.
_HARMLESS_SETTINGS: Final = frozenset(
    {"title", "frozen", "arbitrary_types_allowed", "json_schema_extra", "from_attributes", "extra"}
)
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class ModelField:
    """`obstacle` says why a workflow cannot build the field itself."""

    type: Type
    is_required: bool
    default: Json
    obstacle: str


@lru_cache(maxsize=1024)
def fields_of(model: Any) -> Mapping[str, ModelField]:
    """The fields that the model's JSON has, by their Python names."""
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


def _field(info: Any, replaced: Type | None) -> ModelField:
    type_ = replaced or from_annotation(info.annotation)
    default, obstacle = _default(info)
    if info.metadata:
        obstacle = "it has constraints"
    if info.alias is not None or info.validation_alias is not None:
        obstacle = "it has an alias"
    if replaced is not None:
        obstacle = "it has a serializer of its own"
    return ModelField(type_, info.is_required(), default, obstacle)


def _default(info: Any) -> tuple[Json, str]:
    if info.is_required():
        return None, ""
    if info.default_factory is not None:
        if info.default_factory in (list, dict):
            return info.default_factory(), ""
        return None, "its default is computed"
    plain = _plain(info.default)
    if plain is _MISSING:
        return None, "its default is no JSON constant"
    default: Json = plain
    return default, ""


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return getattr(value, "value", value)
        case list():
            items = [_plain(item) for item in value]
            return _MISSING if _MISSING in items else items
        case dict():
            rows = {key: _plain(item) for key, item in value.items()}
            return _MISSING if _MISSING in rows.values() else rows
        case _:
            return getattr(value, "value", _MISSING) if hasattr(value, "_value_") else _MISSING


def obstacle_of(model: Any) -> str:
    """Why a workflow cannot build this model exactly, or nothing."""
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


def fits(found: Type, wanted: Type) -> bool:
    """Whether pydantic keeps such a value as it is; int for float is the same JSON number."""
    if found in (wanted, NEVER):
        return True
    choices = members_of(wanted)
    if len(members_of(found)) > 1:
        return all(fits(member, wanted) for member in members_of(found))
    return any(_fits_one(found, choice) for choice in choices)


def _fits_one(found: Type, wanted: Type) -> bool:
    match (found, wanted):
        case (TextOf(some), TextOf(values)):
            return set(some) <= set(values)
        case (TextOf(), _):
            return wanted == STR
        case (ListOf(some), ListOf(element)):
            return fits(some, element)
        case (TupleOf(some_elements), TupleOf(elements)):
            return len(some_elements) == len(elements) and all(map(fits, some_elements, elements))
        case (DictOf(some), DictOf(value)):
            return fits(some, value)
        case (EnumOf(some_enum), EnumOf(enum)):
            return some_enum is enum
        case (ModelOf(some_model), ModelOf(model)):
            return some_model is model
        case _:
            return found == wanted or (found == INT and wanted == FLOAT)
