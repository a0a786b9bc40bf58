"""Steps that run the author's models: `Order.model_validate(data)`, `order.model_dump_json()`.

Only pydantic can check or convert a value as a model does, so each of these calls is a pure step.
The name of the step has the call, the module and the class: `holdfast.model_validate.shop.Order`. A
worker finds the class in the modules that it has already imported, and imports none for a name.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import GenericAlias, MappingProxyType
from typing import Any, Final, NamedTuple

from holdfast.api.tasks import Pure

_PREFIX: Final = "holdfast."


class _Call(NamedTuple):
    """One call of a model. `run` gets the class and the value."""

    run: Callable[[Any, Any], Any]
    value: Callable[[Any], Any]
    result: Callable[[Any], Any]


def _adapter(annotation: Any) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 - a worker needs pydantic for few steps

    return TypeAdapter(annotation)


def _validated(model: Any, value: Any) -> Any:
    # The title of the error of `TypeAdapter(Order)` is that of `Order`, too.
    return _adapter(model).validate_python(value)


def _same(model: Any) -> Any:
    return model


def _always(type_: Any) -> Callable[[Any], Any]:
    return lambda _: type_


def _list_of(model: Any) -> Any:
    return GenericAlias(list, (model,))


CALLS: Final[Mapping[str, _Call]] = MappingProxyType(
    {
        "model_validate": _Call(_validated, _always(Any), _same),
        "model_validate_json": _Call(
            lambda model, text: _adapter(model).validate_json(text), _always(str), _same
        ),
        "validate_list": _Call(
            lambda model, value: _validated(_list_of(model), value), _always(Any), _list_of
        ),
        "validate_json_list": _Call(
            lambda model, text: _adapter(_list_of(model)).validate_json(text),
            _always(str),
            _list_of,
        ),
        "model_dump_json": _Call(lambda _, value: value.model_dump_json(), _same, _always(str)),
        "model_dump_present": _Call(
            lambda _, value: value.model_dump(exclude_none=True), _same, _always(dict[str, Any])
        ),
    }
)


def name_of_model_step(call: str, model: Any) -> str | None:
    """Return the name of the step; None for a class that is not at the top of its module."""
    name = f"{_PREFIX}{call}.{model.__module__}.{model.__qualname__}"
    return name if model_of_step(name) is model else None


def model_of_step(name: str) -> Any:
    """Return the class that a step of this name runs; None for other names."""
    call, _, place = name.removeprefix(_PREFIX).partition(".")
    module, _, title = place.rpartition(".")
    if not name.startswith(_PREFIX) or call not in CALLS or module not in sys.modules:
        return None
    found = vars(sys.modules[module]).get(title)
    is_model = hasattr(found, "model_fields") or hasattr(found, "__dataclass_fields__")
    return found if isinstance(found, type) and is_model else None


def has_computed_default(name: str) -> bool:
    """Return True when the step may give another value each time: the model has a default that a
    function computes, such as `Field(default_factory=uuid4)`.
    """
    model = model_of_step(name)
    factories = [one.default_factory for one in getattr(model, "model_fields", {}).values()]
    return any(one not in (None, list, dict, set) for one in factories)


def model_step(name: str) -> Pure[..., Any] | None:
    """Return the step with this name; None when no imported module has the class."""
    model = model_of_step(name)
    return None if model is None else _step(name, model)


@functools.lru_cache(maxsize=256)
def _step(name: str, model: Any) -> Pure[..., Any]:
    kind = name.removeprefix(_PREFIX).partition(".")[0]
    known = CALLS[kind]

    def call(value: Any) -> Any:
        return known.run(model, value)

    call.__name__ = call.__qualname__ = kind
    types = {"value": known.value(model), "return": known.result(model)}
    parameter = inspect.Parameter(
        "value", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=types["value"]
    )
    call.__annotations__ = types
    call.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return Pure(call, name=name)
