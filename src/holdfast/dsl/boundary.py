"""Where Python values become JSON and back: a function's annotations, read once, by pydantic.

pydantic is imported when the first value crosses, not when the module of a workflow is imported.
Messages name fields and what was expected; they never contain a value that was sent.
"""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

#: pydantic quotes the author's own text for these, and that text may contain the value.
_MESSAGES_BY_AUTHOR = frozenset({"value_error", "assertion_error"})
_PROBLEMS_SHOWN_MAX = 5


class Misfit(Exception):  # noqa: N818
    """A value does not fit its annotation; `problems` says where and what was expected."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:_PROBLEMS_SHOWN_MAX])
        more = len(self.problems) - _PROBLEMS_SHOWN_MAX
        super().__init__(f"{shown}; and {more} more" if more > 0 else shown)


class Boundary:
    """The parameters and the result of one function, as JSON."""

    def __init__(self, function: Callable[..., object]) -> None:
        from pydantic import TypeAdapter  # noqa: PLC0415

        annotations = typing.get_type_hints(function, include_extras=True)
        self._parameters: dict[str, TypeAdapter[Any]] = {}
        self._defaults: dict[str, object] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            self._parameters[name] = TypeAdapter(annotations.get(name, Any))
            if parameter.default is not inspect.Parameter.empty:
                self._defaults[name] = parameter.default
        self._result: TypeAdapter[Any] = TypeAdapter(annotations.get("return", Any))
        self._returns_nothing = annotations.get("return", Any) is type(None)

    def parse_arguments(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """The Python values for the JSON `arguments`; raises Misfit.

        A parameter that was left out keeps its default and does not appear in the answer.
        """
        problems = [f"{name}: unknown" for name in arguments if name not in self._parameters]
        values: dict[str, Any] = {}
        for name, adapter in self._parameters.items():
            if name in arguments:
                value, found = _validate(adapter, arguments[name], name)
                values[name] = value
                problems.extend(found)
            elif name not in self._defaults:
                problems.append(f"{name}: missing")
        if problems:
            raise Misfit(problems)
        return values

    def normalise_arguments(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """The same JSON with every parameter and every field present; raises Misfit."""
        values = {**self._defaults, **self.parse_arguments(arguments)}
        return {
            name: _dump(adapter, values[name], name) for name, adapter in self._parameters.items()
        }

    def normalise_argument(self, name: str, value: object) -> Json:
        """The JSON of a value for one parameter, with every field present; raises Misfit."""
        parsed, problems = _validate(self._parameters[name], value, name)
        if problems:
            raise Misfit(problems)
        return _dump(self._parameters[name], parsed, name)

    def parse_argument(self, name: str, value: object) -> Any:
        """The Python value of one parameter; raises Misfit."""
        parsed, problems = _validate(self._parameters[name], value, name)
        if problems:
            raise Misfit(problems)
        return parsed

    def default_arguments(self) -> dict[str, Json]:
        """The JSON of the parameters that a call may leave out."""
        return {
            name: _dump(self._parameters[name], value, name)
            for name, value in self._defaults.items()
        }

    def dump_result(self, result: object) -> Json:
        """The JSON of a returned value; raises Misfit."""
        value, problems = _validate(self._result, result, "result")
        if problems:
            raise Misfit(problems)
        return _dump(self._result, value, "result")

    def parse_result(self, result: Json) -> Any:
        """The Python value of what `dump_result` gave."""
        return self._result.validate_python(result)

    @property
    def returns_nothing(self) -> bool:
        """The function is declared to return None."""
        return self._returns_nothing


@functools.cache
def _adapter(payload: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(payload)


def normalise_payload(payload: Any, value: Json) -> Json:
    """An event's or answer's JSON with every field present; raises Misfit."""
    parsed, problems = _validate(_adapter(payload), value, "data")
    if problems:
        raise Misfit(problems)
    return _dump(_adapter(payload), parsed, "data")


def parse_payload(payload: Any, value: Json) -> Any:
    """The Python value of what `normalise_payload` gave."""
    return _adapter(payload).validate_python(value)


def _validate(adapter: TypeAdapter[Any], value: object, where: str) -> tuple[Any, list[str]]:
    from pydantic import ValidationError  # noqa: PLC0415

    try:
        return adapter.validate_python(value), []
    except ValidationError as error:
        return None, list(_problems(error, where))


def _dump(adapter: TypeAdapter[Any], value: object, where: str) -> Json:
    try:
        dumped: Json = adapter.dump_python(value, mode="json")
        # Where the annotation says nothing, pydantic makes NaN None: asked of the value itself.
        is_finite = _is_finite(value) and _is_finite(dumped)
    except (RecursionError, TypeError, ValueError):
        # An object of no known kind, bytes that are no text, a value in itself: pydantic's words
        # for them may quote the value.
        raise Misfit([f"{where}: a value that JSON has no form for"]) from None
    if not is_finite:
        raise Misfit([f"{where}: JSON has no infinite number and no NaN"])
    return dumped


def _is_finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(map(_is_finite, value))
        case dict():
            return all(map(_is_finite, value.values()))
        case _:
            return True


def _problems(error: ValidationError, where: str) -> Iterable[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        kind = problem["type"]
        message = kind if kind in _MESSAGES_BY_AUTHOR else problem["msg"]
        yield f"{where}{_path(problem['loc'])}: {message[:1].lower()}{message[1:]}"


def _path(location: tuple[int | str, ...]) -> str:
    """`('lines', 0, 'qty')` -> `.lines[0].qty`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
