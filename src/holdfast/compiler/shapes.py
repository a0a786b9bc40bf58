"""The JSON forms of a workflow's variables, as its map stores them. A migration compares them.

    "int"                      a simple type, or a text of one form: "UUID", "datetime"
    {"text": ["a", "b"]}       one of these texts
    {"list": …} {"dict": …} {"dict by int": …} {"tuple": […]}
    {"any": […]}               one of these
    {"model": "Order"}         a model; its fields are listed once, under its name

The form of a variable covers each value that the workflow assigns to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

from holdfast.api.boundary import JsonValue
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    Simple,
    TextForm,
    TextOf,
    TupleOf,
    Type,
    Union,
    describe,
    is_number_key,
)

#: A type that allows more different texts than this is described as any text.
_TEXTS_MAX: Final = 50


def shapes_of(variables: Mapping[str, Type]) -> dict[str, JsonValue]:
    """Return `variables` by name, and `models` with their fields; {} when there are no
    variables.
    """
    models = _Models()
    found: dict[str, JsonValue] = {
        name: models.shape(type_) for name, type_ in sorted(variables.items())
    }
    if not found:
        return {}
    return {"variables": found, "models": dict(sorted(models.fields.items()))}


class _Models:
    def __init__(self) -> None:
        self.fields: dict[str, JsonValue] = {}
        self._names: dict[Any, str] = {}

    def shape(self, type_: Type) -> JsonValue:
        match type_:
            case Simple(name=name) | TextForm(name=name) | Opaque(name=name):
                return name
            case TextOf(values):
                return {"text": [*values]} if len(values) <= _TEXTS_MAX else "str"
            case EnumOf(enum):
                texts = sorted(str(one.value) for one in enum)
                is_text = all(isinstance(one.value, str) for one in enum)
                return {"text": [*texts]} if is_text else f"enum {', '.join(texts)}"
            case ListOf(element):
                return {"list": self.shape(element)}
            case SetOf():
                # The members of a set are of simple types, so a short description is exact.
                return describe(type_)
            case DictOf(value, key=key):
                # The texts of ints are no keys of a dict that has other texts.
                kind = "dict by int" if is_number_key(key) else "dict"
                return {kind: self.shape(value)}
            case TupleOf(elements):
                return {"tuple": [self.shape(element) for element in elements]}
            case Union(members):
                return {"any": [self.shape(member) for member in members]}
            case ErrorOf():
                return "error"
            case ModelOf(model):
                return {"model": self._model(model)}
            case _:
                assert_never(type_)

    def _model(self, model: Any) -> str:
        if model in self._names:
            return self._names[model]
        name, number = str(model.__qualname__), 1
        while name in self.fields:
            number += 1
            name = f"{model.__qualname__} ({number})"
        self._names[model] = name
        # Reserve the name before the fields are read. A field may have the model itself as its
        # type, and the reading would otherwise never end.
        self.fields[name] = {}
        self.fields[name] = {field: self.shape(one.type) for field, one in fields_of(model).items()}
        return name
