"""The conversion of Python values to JSON and back, by a function's annotations, with pydantic.

The annotations are read once. pydantic is imported when the first value is converted, not when the
module of a workflow is imported. Messages name fields and what was expected; they never contain a
value. In JSON a `SecretStr` is an encrypted text: `seals` encrypts and decrypts it (`sealing.py`).
If the vault cannot do that, VaultFault is raised.
"""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.api.sealing import NO_SEALS, Seals, schema_has_secrets
from holdfast.errors import RequestError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

#: The kinds of pydantic's errors whose message the author wrote. It may contain the value, so it is
#: not shown.
_MESSAGES_BY_AUTHOR = frozenset({"value_error", "assertion_error"})
_PROBLEMS_SHOWN_MAX = 5


class Misfit(Exception):  # noqa: N818
    """A value does not fit its annotation. `problems` lists each place and the expected type."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:_PROBLEMS_SHOWN_MAX])
        more = len(self.problems) - _PROBLEMS_SHOWN_MAX
        super().__init__(f"{shown}; and {more} more" if more > 0 else shown)


class NoJson(Misfit):
    """A value fits its annotation, but cannot be written as JSON."""


#: The types whose values are their own JSON. They need no pydantic, whose import would make a cold
#: start slower.
_PLAIN: Final = (int, str, bool, type(None))
_WHOLE_MAX: Final = 2**53
#: How Python annotates a function that always raises.
NO_RESULT: Final = (typing.NoReturn, typing.Never)


class _Form:
    """The meaning of an annotation: how its values look in Python and in JSON."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._plain = next((kind for kind in _PLAIN if annotation is kind), None)
        # Read the schema now, so that an annotation that cannot be read is refused before there is
        # a value.
        self._has_secrets = self._plain is None and schema_has_secrets(self._adapter.core_schema)

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import PydanticUserError, TypeAdapter  # noqa: PLC0415

        try:
            return TypeAdapter(self._annotation)
        except PydanticUserError as error:
            # Leave out pydantic's advice on `arbitrary_types_allowed`: no setting gives the values
            # of such a type a form in JSON.
            reason = error.message.partition("\n")[0].partition(". Set ")[0]
        except (TypeError, NameError) as error:
            # `dict[str]` lacks a type. A name that only type checkers import has no value.
            reason = str(error).partition("\n")[0]
        except KeyError:
            # pydantic takes a dict, `xs: {}`, for a schema of its own.
            reason = "it is no type"
        shown = getattr(self._annotation, "__name__", self._annotation)
        raise RequestError(
            "HF520",
            f"pydantic cannot read the annotation {shown!s:.100}: {reason}",
            help="annotate with a model, a dataclass, or a type that pydantic knows",
        )

    def _is_plain(self, value: object) -> bool:
        """Return True for a value that pydantic would return unchanged, in Python and in JSON."""
        if type(value) is not self._plain:
            return False
        match value:
            case bool() | None:
                return True
            case int():
                return -_WHOLE_MAX < value < _WHOLE_MAX
            case str():
                return value.isascii()
            case _:
                return False

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the values that `parse` accepts."""
        return self._adapter.json_schema()

    def parse(self, value: object, where: str, seals: Seals) -> tuple[Any, list[str]]:
        """Return the Python value and the problems. If there is a problem, the value must not be
        used.
        """
        if self._is_plain(value):
            return value, []
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            given = seals.opened(value) if self._has_secrets else value
        except ValueError as error:
            return None, [f"{where}: {error}"]
        try:
            return self._adapter.validate_python(given), []
        except ValidationError as error:
            return None, list(_problems(error, where))

    def open_secrets(self, value: JsonValue, seals: Seals) -> None:
        if self._has_secrets:
            seals.opened(value)

    def restore(self, value: JsonValue, seals: Seals) -> Any:
        """Return the Python value of a result of `dump`."""
        if self._is_plain(value):
            return value
        return self._adapter.validate_python(seals.opened(value) if self._has_secrets else value)

    def dump(self, value: object, where: str, seals: Seals) -> JsonValue:
        """Return the JSON of the value. Raises Misfit."""
        if self._is_plain(value):
            plain: JsonValue = value  # type: ignore[assignment]  # one of `_PLAIN`
            return plain
        try:
            dumped: JsonValue = self._adapter.dump_python(value, mode="json")
            # Test the value itself, too. Without an annotation pydantic turns NaN into None, so the
            # JSON alone would pass.
            is_finite = _is_finite(value) and _is_finite(dumped)
        except (RecursionError, TypeError, ValueError):
            # The value is an object of unknown type, or bytes that are no text, or it contains
            # itself. Use a message of our own, because pydantic's message may quote the value.
            raise NoJson([f"{where}: a value that JSON has no form for"]) from None
        if not is_finite:
            raise NoJson([f"{where}: JSON has no infinite number and no NaN"])
        return self._sealed(dumped, value, where, seals) if self._has_secrets else dumped

    def _sealed(self, dumped: JsonValue, value: object, where: str, seals: Seals) -> JsonValue:
        """Return the JSON of a value with its secrets encrypted. pydantic hides a secret in JSON
        and keeps it in Python, so both forms are needed.
        """
        try:
            sealed: JsonValue = seals.merged(dumped, self._adapter.dump_python(value))
        except ValueError as error:
            raise NoJson([f"{where}: {error}"]) from None
        return sealed


class Boundary:
    """The parameters and the result of one function, as JSON."""

    def __init__(self, function: Callable[..., object]) -> None:
        annotations = typing.get_type_hints(function, include_extras=True)
        self._parameters: dict[str, _Form] = {}
        self._defaults: dict[str, object] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            self._parameters[name] = _Form(annotations.get(name, Any))
            if parameter.default is not inspect.Parameter.empty:
                self._defaults[name] = parameter.default
        result = annotations.get("return", Any)
        self._always_raises = result in NO_RESULT
        self._returns_nothing = result is type(None)
        self._result = _Form(type(None) if self._always_raises else result)

    def parse_arguments(
        self, arguments: Mapping[str, JsonValue], seals: Seals = NO_SEALS
    ) -> dict[str, Any]:
        """Return the Python values for the JSON `arguments`. Raises Misfit.

        A parameter that was left out is not in the result and keeps its default.
        """
        problems = [f"{name}: unknown" for name in arguments if name not in self._parameters]
        values: dict[str, Any] = {}
        for name, form in self._parameters.items():
            if name in arguments:
                value, found = form.parse(arguments[name], name, seals)
                values[name] = value
                problems.extend(found)
            elif name not in self._defaults:
                problems.append(f"{name}: missing")
        if problems:
            raise Misfit(problems)
        return values

    def open_secrets(self, arguments: Mapping[str, JsonValue], seals: Seals) -> None:
        """Decrypt the secrets among the arguments, so that `seals` knows them. Raises ValueError,
        VaultFault.
        """
        for name, form in self._parameters.items():
            if name in arguments:
                form.open_secrets(arguments[name], seals)

    def normalise_arguments(
        self, arguments: Mapping[str, JsonValue], seals: Seals = NO_SEALS
    ) -> dict[str, JsonValue]:
        """Return the same JSON with every parameter and every field present. Raises Misfit."""
        values = {**self._defaults, **self.parse_arguments(arguments, seals)}
        forms = self._parameters.items()
        return {name: form.dump(values[name], name, seals) for name, form in forms}

    def normalise_argument(self, name: str, value: object) -> JsonValue:
        """Return the JSON of a value for one parameter, with every field present. Raises Misfit."""
        return self._parameters[name].dump(self.parse_argument(name, value), name, NO_SEALS)

    def parse_argument(self, name: str, value: object) -> Any:
        """Return the Python value of one parameter. Raises Misfit."""
        parsed, problems = self._parameters[name].parse(value, name, NO_SEALS)
        if problems:
            raise Misfit(problems)
        return parsed

    def takes(self, name: str) -> bool:
        """Return True when the function has a parameter of this name."""
        return name in self._parameters

    def default_arguments(self, seals: Seals = NO_SEALS) -> dict[str, JsonValue]:
        """Return the JSON of the parameters that a call may leave out. Raises Misfit."""
        return {
            name: self._parameters[name].dump(value, name, seals)
            for name, value in self._defaults.items()
        }

    def dump_result(self, result: object, seals: Seals = NO_SEALS) -> JsonValue:
        """Return the JSON of a returned value. Raises Misfit."""
        if self._always_raises:
            raise Misfit(["result: returned, but its annotation says that it always raises"])
        return _normalised(self._result, result, "result", seals)

    def parse_result(self, result: JsonValue, seals: Seals = NO_SEALS) -> Any:
        """Return the Python value of a result of `dump_result`."""
        return self._result.restore(result, seals)

    @property
    def returns_nothing(self) -> bool:
        """Return True when the function is declared to return None."""
        return self._returns_nothing


_form: Callable[[Any], _Form] = functools.cache(_Form)


def normalise_payload(payload: Any, value: JsonValue, seals: Seals = NO_SEALS) -> JsonValue:
    """Return the JSON of an event or answer with every field present. Raises Misfit.

    For a bool pydantic would also accept "yes", "off" and 1. Here only true and false are accepted,
    because a decision must not depend on a guess.
    """
    if payload is bool and not isinstance(value, bool):
        raise Misfit(["data: expected true or false"])
    return _normalised(_form(payload), value, "data", seals)


def schema_of(payload: Any) -> dict[str, Any]:
    """Return the JSON schema of an event or an answer."""
    return _form(payload).schema


def parse_payload(payload: Any, value: JsonValue, seals: Seals = NO_SEALS) -> Any:
    """Return the Python value of a result of `normalise_payload`."""
    return _form(payload).restore(value, seals)


def _normalised(form: _Form, value: object, where: str, seals: Seals) -> JsonValue:
    parsed, problems = form.parse(value, where, seals)
    if problems:
        raise Misfit(problems)
    return form.dump(parsed, where, seals)


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
    """Return the place as code: `('lines', 0, 'qty')` gives `.lines[0].qty`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
