"""The functions that an expression may call on jsonata-python.

Most are the library's own. This file has those that only AWS has, and replacements for those in
which the library differs from JSONata 2.0.6. They take and return the library's values: `None` is
undefined, `NULL` is null. As on AWS there is no `$eval`.

The functions that only AWS has round a fraction towards zero. A size or step of zero, and an
argument that is left out, give undefined and no error. Source: measurements of AWS's TestState that
were published on GitHub (floci-io/floci, pull requests 2676 and 2783).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from jsonata import JException, Jsonata, Signature, Utils

from holdfast.asl.jsonata import costs, pictures, strings, values
from holdfast.asl.jsonata.convert import NULL, imported
from holdfast.asl.jsonata.evaluation import call, evaluator, text_of, truth
from holdfast.asl.jsonata.numbers import format_number
from holdfast.asl.jsonata.texts import HASHES, hashed
from holdfast.asl.jsonata.values import tidy_number

_DRAW_BITS: Final = 32
_JAVA_FACTOR: Final = 0x5DEECE66D
#: The algorithms of $hash in the order of AWS's error message.
_HASHES_SHOWN: Final = ("SHA-1", "SHA-384", "SHA-256", "SHA-512", "MD5")


class _NullAware(Signature):  # type: ignore[misc]  # the library is not typed
    """A signature that distinguishes null from a missing argument."""

    def get_symbol(self, value: Any) -> str:
        return "l" if value is NULL else str(super().get_symbol(value))

    def validate(self, args: Any, context: Any) -> Any:
        """Validate the arguments. The library would write a context of the wrong type into its
        error, and its text may be too long.
        """
        stand_in = type(context)() if isinstance(context, list | dict) else context
        try:
            validated = super().validate(args, stand_in)
        except JException as error:
            if error.error != "T0411":
                raise
            raise JException("T0411", -1, error.expected, self.function_name) from None
        return [context if argument is stand_in else argument for argument in validated]


class _BuiltIn(_NullAware):
    """The signature of a built-in function. It keeps its name when an expression binds the function
    to a variable.

    All evaluations use the same frame of functions. Without this, `$f := $sum` would rename $sum in
    the errors of other evaluations.
    """

    def set_function_name(self, function_name: str) -> None:
        pass


def null_aware(signature: Any, kind: type[_NullAware] = _NullAware) -> Any:
    """Change the signature so that it has the rules of `_NullAware`, and return it. A new one would
    need the text of the signature.
    """
    same = kind.__new__(kind)
    same.__dict__.update(signature.__dict__)
    return same


class _Function(Jsonata.JFunction):  # type: ignore[misc]  # the library is not typed
    """A built-in function. Its arguments are validated and charged at every call, and so is the
    text that it returns. The last call of a function does not count as a step.

    The library validates only direct calls. Without this, `$map([1], $uppercase)` would raise an
    AttributeError.
    """

    def __init__(self, name: str, signature: Any, implementation: Callable[..., Any]) -> None:
        super().__init__(None, None)
        self.function_name = name
        self.signature = signature
        self._implementation = implementation
        self._cost = costs.of(name)

    def validate(self, args: Any, context: Any) -> Any:  # noqa: ARG002
        # Do nothing, because `call` validates. For a direct call the library calls `validate` and
        # then `call`, but for a function that is passed as a value it calls only `call`.
        return args

    def call(self, input: Any, args: Any) -> Any:  # noqa: A002
        evaluation, cost = evaluator(), self._cost
        evaluation.charge(cost.call)
        validated = self.signature.validate(args, input)
        for argument in validated:
            evaluation.charge_for(argument, cost.times)
        made = self._implementation(*validated)
        if isinstance(made, str):
            evaluation.charge_for(made, cost.times)
        return made

    def get_number_of_args(self) -> int:
        return int(self.signature.get_number_of_args())


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    result = values.parse_number(value)
    if result is None:
        raise JException("D3030", -1, value)
    return result


def _sum(numbers: list[float] | None) -> float | None:
    if numbers is None:
        return None
    total: float = 0
    for item in numbers:
        # Do not use `sum()`. From Python 3.12 on it compensates rounding errors, so its result
        # would differ from that of JavaScript.
        total = values.arithmetic("+", total, item)
    return total


def _average(numbers: list[float] | None) -> float | None:
    if not numbers:
        return None
    total = _sum(numbers) or 0
    return values.arithmetic("/", total, len(numbers))


def _floor(value: float | None) -> float | None:
    return value if value is None else tidy_number(float(math.floor(value)))


def _ceil(value: float | None) -> float | None:
    return value if value is None else tidy_number(float(math.ceil(value)))


def _round(value: float | None, places: float | None) -> float | None:
    return value if value is None else values.round_half_even(value, int(places or 0))


def _power(base: float | None, exponent: float | None) -> float | None:
    if base is None or exponent is None:
        return None
    try:
        result = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        result = math.inf
    if isinstance(result, complex) or not math.isfinite(result):
        raise JException("D3061", -1, base, exponent)
    return tidy_number(result)


def _sort(items: list[Any] | None, goes_after: Any) -> Any:
    if items is None or len(items) <= 1:
        return items
    if goes_after is not None:
        return values.merge_sort(items, lambda left, right: truth(call(goes_after, left, right)))
    if not Utils.is_array_of_numbers(items) and not Utils.is_array_of_strings(items):
        raise JException("D3070", -1)
    evaluator().charge(costs.sorting_items(items))
    return sorted(items)


def _distinct(items: Any) -> Any:
    if not isinstance(items, list) or len(items) <= 1:
        return items
    evaluator().charge(costs.distinct_items(items))
    found = values.distinct(items)
    return Utils.create_sequence_from_iter(found) if Utils.is_sequence(items) else found


def _shuffle(items: list[Any] | None) -> list[Any] | None:
    if items is None or len(items) <= 1:
        return items
    mixed = list(items)
    for last in range(len(mixed) - 1, 0, -1):
        other = int(evaluator().moment.draw() * (last + 1))
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


def _clone(value: Any) -> Any:
    # Values never change, so no copy is needed.
    return value


def _spread(value: Any) -> Any:
    """Return every field as an object of its own. The library's function takes quadratic time."""
    if isinstance(value, list) and value:
        return list(_fields(value))
    if isinstance(value, list | dict):
        return Utils.create_sequence_from_iter(_fields(value))
    return value


def _fields(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from ({key: field} for key, field in value.items())
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item)
    else:
        yield value


def _random(seed: float | None) -> float:
    """Return a random number. AWS adds the seed: the same seed gives the same number, that of
    java.util.Random.
    """
    if seed is None:
        return float(evaluator().moment.draw())
    state = (int(seed) ^ _JAVA_FACTOR) % 2**48
    bits = 0
    for count in (26, 27):
        state = (state * _JAVA_FACTOR + 0xB) % 2**48
        bits = (bits << count) + (state >> (48 - count))
    return bits / 2**53


def _uuid() -> str:
    draw = evaluator().moment.draw
    words = [int(draw() * 2**_DRAW_BITS) for _ in range(4)]
    bits = sum(word << (_DRAW_BITS * place) for place, word in enumerate(words))
    bits = bits & ~(0xF << 76) | 4 << 76  # version 4
    bits = bits & ~(0x3 << 62) | 2 << 62  # variant of RFC 9562
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _parse(text: str | None) -> Any:
    if text is None:
        return None
    evaluator().charge(costs.parsing_items(text))
    try:
        value = json.loads(
            text,
            parse_float=_parsed_double,
            parse_int=_parsed_integer,
            parse_constant=_refuse_constant,
            object_pairs_hook=_with_keys_once,
        )
    except ValueError:
        raise values.JsonataError("D3137", "Invalid JSON") from None
    evaluator().charge(costs.copying_items(value))
    return imported(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _parsed_double(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return tidy_number(number)


def _parsed_integer(digits: str) -> int:
    if math.isinf(float(digits)):
        raise ValueError(digits)
    return int(digits)


def _with_keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _partition(items: Any, size: float | None) -> Any:
    if items is None:
        return None
    if not isinstance(items, list):
        # AWS writes the type of the items of a signature that has none.
        raise values.JsonataError(
            "T0412", 'Argument 1 of function "partition" must be an array of undefined'
        )
    step = len(items) if size is None else int(size)
    if step < 0:
        raise values.JsonataError("D3137", "Second argument must be zero or greater")
    if not items or step == 0:
        return None
    return [items[start : start + step] for start in range(0, len(items), step)]


def _range(first: float | None, last: float | None, step: float | None) -> Any:
    if first is None or last is None or step is None or int(step) == 0:
        return None
    end = int(last) + (1 if step > 0 else -1)
    numbers = range(int(first), end, int(step))
    # A slice finds whether the range is too long, because `len` raises an error for a very long
    # one.
    if numbers[values.RANGE_ITEMS_MAX :]:
        raise values.JsonataError(
            values.BUDGET_CODE,
            "Expression evaluation memory limit exceeded: Check for excessive memory usage",
        )
    evaluator().charge(len(numbers))
    # Return a JSONata sequence and not a Python list. On AWS a sequence with one item becomes that
    # item, and one without items nothing: `$range(3, 3, 1)` is 3, and `$range(5, 1, 1)` is
    # undefined. A Python list would stay [3].
    return Utils.create_sequence_from_iter(numbers)


def _hash(text: str | None, algorithm: str | None) -> str | None:
    if text is None or algorithm is None:
        return None
    if algorithm not in HASHES:
        known = ", ".join(_HASHES_SHOWN)
        raise values.JsonataError("D3137", f"Hash algorithm '{algorithm}' must be one of {known}")
    return hashed(text, algorithm)


def is_integer(value: Any) -> bool:
    return Utils.is_numeric(value) and float(value).is_integer()


_OURS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "average": ("<a<n>:n>", _average),
    "ceil": ("<n-:n>", _ceil),
    "clone": ("<(oa)-:o>", _clone),
    "distinct": ("<x:x>", _distinct),
    "floor": ("<n-:n>", _floor),
    "fromMillis": ("<n-s?s?:s>", pictures.from_millis),
    "formatInteger": ("<n-s:s>", pictures.format_integer),
    "formatNumber": ("<n-so?:s>", format_number),
    "hash": ("<ss?:s>", _hash),
    "millis": ("<:n>", lambda: evaluator().moment.now_ms),
    "now": ("<s?s?:s>", pictures.now),
    "number": ("<(nsb)-:n>", _number),
    "parse": ("<s-:x>", _parse),
    "parseInteger": ("<s-s:n>", pictures.parse_integer),
    "partition": ("<xn?:a>", _partition),
    "power": ("<n-n:n>", _power),
    "random": ("<n?:n>", _random),
    "range": ("<nnn?:a>", _range),
    "round": ("<n-n?:n>", _round),
    "shuffle": ("<a:a>", _shuffle),
    "sort": ("<af?:a>", _sort),
    "spread": ("<x-:a<o>>", _spread),
    "string": ("<x-b?:s>", lambda value, pretty: None if value is None else text_of(value, pretty)),
    "sum": ("<a<n>:n>", _sum),
    "toMillis": ("<s-s?:n>", pictures.to_millis),
    "uuid": ("<:s>", _uuid),
    **strings.FUNCTIONS,
}


def _merging(value: Any) -> int:
    parts = value if isinstance(value, list) else [value]
    return sum(costs.merging_items(part) for part in parts if isinstance(part, dict))


def _looking_up(value: Any) -> int:
    return values.node_count(value) if isinstance(value, list) else 0


#: The functions of the library that read all of their arguments, each with the function that
#: computes the cost.
_GOING_THROUGH: Final = {"keys": _merging, "lookup": _looking_up, "merge": _merging}


def _frame() -> Any:
    frame = Jsonata.Frame(None)
    for name, function in Jsonata.static_frame.bindings.items():
        if name not in _OURS and name != "eval":
            library = _library(function)
            implementation = (
                _paying(library, _GOING_THROUGH[name]) if name in _GOING_THROUGH else library
            )
            frame.bind(
                name, _Function(name, null_aware(function.signature, _BuiltIn), implementation)
            )
    for name, (signature, implementation) in _OURS.items():
        frame.bind(name, _Function(name, _BuiltIn(signature, name), implementation))
    return frame


def _library(function: Any) -> Callable[..., Any]:
    return lambda *args: values.without_long_integers(function.call(None, list(args)))


def _paying(implementation: Callable[..., Any], price: Callable[[Any], int]) -> Callable[..., Any]:
    def call(value: Any, *more: Any) -> Any:
        evaluator().charge(price(value))
        return implementation(value, *more)

    return call


FRAME: Final = _frame()
