"""Values of a type, drawn by hypothesis, for data that enters or leaves a workflow as JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import types
import typing
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Union
from uuid import UUID

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from pydantic.fields import FieldInfo

#: Letters for which encodings, cases and escapes differ. `{%` begins an expression in ASL.
_LETTERS: Final = "ab09 _-.,:{%}\"'\\/$äßÉ✓😀"
#: The greatest number that is drawn. The product of two such numbers is still exact as a JSON
#: number.
_INTEGER_MAX: Final = 100_000
_ITEMS_MAX: Final = 3


def values_of(annotation: Any) -> SearchStrategy[Any]:
    """Return a strategy for values that pydantic accepts for `annotation`; for `Any` a text, number
    or boolean.
    """
    from hypothesis import strategies as st  # noqa: PLC0415

    scalar = _scalar(annotation)
    if scalar is not None:
        return scalar
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        inner = _between(arguments[0], arguments[1:])
        return _valid(values_of(arguments[0]) if inner is None else inner, annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(one) for one in sorted(arguments, key=_none_first)])
    if origin is tuple or annotation is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(values_of(arguments[0]), max_size=_ITEMS_MAX).map(tuple)
        return st.tuples(*(values_of(one) for one in arguments))
    if origin in (list, set, frozenset) or annotation in (list, set, frozenset):
        inner = values_of(arguments[0] if arguments else Any)
        items = st.lists(inner, max_size=_ITEMS_MAX, unique=origin not in (list, None))
        return items.map(origin or annotation)
    if origin in (dict, Mapping) or annotation is dict:
        inner = values_of(arguments[1] if arguments else Any)
        return st.dictionaries(st.text("abk", min_size=1, max_size=2), inner, max_size=_ITEMS_MAX)
    return _of_class(annotation)


def _none_first(annotation: Any) -> bool:
    return annotation is not type(None)


def _scalar(annotation: Any) -> SearchStrategy[Any] | None:
    from hypothesis import strategies as st  # noqa: PLC0415
    from pydantic import AwareDatetime  # noqa: PLC0415

    if annotation in (None, type(None)):
        return st.none()
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(-_INTEGER_MAX, _INTEGER_MAX) | st.integers(-3, 10)
    if annotation is float:
        return st.integers(-_INTEGER_MAX, _INTEGER_MAX).map(lambda number: number / 8)
    if annotation is str:
        return st.text(_LETTERS, max_size=6)
    if annotation in (Any, object):
        return st.none() | st.booleans() | st.integers(-3, 10) | st.text(_LETTERS, max_size=3)
    if annotation in (dt.datetime, AwareDatetime):
        return st.datetimes(
            dt.datetime(2025, 1, 1),  # noqa: DTZ001 - given its zone below
            dt.datetime(2027, 1, 1),  # noqa: DTZ001
            timezones=st.just(dt.timezone.utc),  # noqa: UP017
        )
    if annotation is dt.date:
        return st.dates(dt.date(2025, 1, 1), dt.date(2027, 1, 1))
    if annotation is dt.timedelta:
        return st.integers(1, 10 * 86_400).map(lambda number: dt.timedelta(seconds=number))
    if annotation is Decimal:
        return st.integers(-_INTEGER_MAX, _INTEGER_MAX).map(lambda cents: Decimal(cents) / 100)
    if annotation is UUID:
        return st.uuids()
    return None


def _of_class(annotation: Any) -> SearchStrategy[Any]:
    from hypothesis import strategies as st  # noqa: PLC0415
    from pydantic import BaseModel  # noqa: PLC0415

    if isinstance(annotation, typing.NewType):
        return values_of(annotation.__supertype__)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {
            info.alias or name: st.deferred(_drawing(_constrained(info)))
            for name, info in annotation.model_fields.items()
        }
        return _valid(st.fixed_dictionaries(fields), annotation)
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return _valid(
            st.fixed_dictionaries({name: values_of(hint) for name, hint in hints.items()}),
            annotation,
        )
    return st.from_type(annotation)


def _constrained(info: FieldInfo) -> Any:
    """Return the annotation of a field with its constraints, `x: float = Field(ge=0)`."""
    if not info.metadata:
        return info.annotation
    return typing.Annotated[(info.annotation, *info.metadata)]


def _between(annotation: Any, metadata: Sequence[Any]) -> SearchStrategy[Any] | None:
    """Return a strategy for numbers within the bounds of the metadata; None for another type.

    Without it nearly all numbers would be refused, and few examples would be left of those that the
    test asks for.
    """
    from hypothesis import strategies as st  # noqa: PLC0415

    parts = _PARTS_OF_ONE.get(annotation)
    if parts is None:
        return None
    rules = [rule for one in metadata for rule in getattr(one, "metadata", (one,))]
    lows = [value for rule in rules for value in _named(rule, ("ge", "gt"))]
    highs = [value for rule in rules for value in _named(rule, ("le", "lt"))]
    if not lows and not highs:
        return None
    low = max(lows) if lows else min(highs) - _INTEGER_MAX
    high = min(highs) if highs else low + _INTEGER_MAX
    numbers = st.integers(math.ceil(low * parts), math.floor(high * parts))
    return numbers if annotation is int else numbers.map(lambda one: annotation(one) / parts)


#: In how many parts a drawn number divides one.
_PARTS_OF_ONE: Final[Mapping[Any, int]] = {int: 1, float: 1_024, Decimal: 100}


def _named(rule: Any, names: tuple[str, ...]) -> list[Any]:
    values = (getattr(rule, name, None) for name in names)
    return [value for value in values if value is not None]


def _drawing(annotation: Any) -> Any:
    """Return the strategy later, when it is used: a model may contain itself."""
    return lambda: values_of(annotation)


def _valid(drawn: SearchStrategy[Any], annotation: Any) -> SearchStrategy[Any]:
    """Return a strategy for the value as pydantic converts it. A refused value (a bound, a
    validator) is drawn again.
    """
    from hypothesis import strategies as st  # noqa: PLC0415
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def make(value: Any) -> SearchStrategy[Any]:
        try:
            return st.just(adapter.validate_python(value))
        except ValidationError:
            return st.nothing()

    return drawn.flatmap(make)
