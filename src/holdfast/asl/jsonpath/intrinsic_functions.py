"""The `States.*` functions. Sources: AWS's page on intrinsic functions, and recordings of AWS.

Where the page and the recordings differ, this code follows the recordings: numbers are cut and not
rounded, except in MathAdd; StringSplit drops empty parts; ArrayContains compares texts, so that
`true` is in `["true"]`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from holdfast.asl.java_text import java_text, json_text
from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson

_TEXT_CHARACTERS_MAX: Final = 10_000
_RANGE_ITEMS_MAX: Final = 1_000
_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_WHOLE_MAX: Final = 2**62
_DRAW_BITS: Final = 32
_JAVA_FACTOR: Final = 0x5DEECE66D
_HASHES: Final = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
_ESCAPE: Final = re.compile(r"\\(['\\{}])")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")
_PIECE: Final = re.compile(r"\\(['\\{}])|(\{\})|([{}])|([^\\{}]+|\\)")

_Arguments: TypeAlias = list[StrictJson]
_Run: TypeAlias = Callable[[_Arguments, EvaluationMoment], StrictJson]


class IntrinsicMisuse(Exception):  # noqa: N818  # becomes a StateError, where the call is known
    """Wrong arguments of an intrinsic function. The text is AWS's sentence about them. The caller,
    which knows the call, raises a StateError with it.
    """

    @classmethod
    def of(cls, name: str) -> IntrinsicMisuse:
        return cls(f"Invalid arguments in {name}")


@dataclass(frozen=True, slots=True)
class IntrinsicFunction:
    """One function. `count_max` None: any number of arguments. `is_template`: the first argument
    keeps its escapes.
    """

    name: str
    count_min: int
    count_max: int | None
    body: _Run
    is_template: bool = False

    def run(self, arguments: _Arguments, moment: EvaluationMoment) -> StrictJson:
        """Run the function. Raises InvalidArguments."""
        try:
            return self.body(arguments, moment)
        except _RefusedError:
            raise IntrinsicMisuse.of(self.name) from None


class _RefusedError(Exception):
    pass


def unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)


# -- arguments -------------------------------------------------------------------------------------


def _refuse() -> NoReturn:
    raise _RefusedError


def _list(value: StrictJson) -> list[StrictJson]:
    return value if isinstance(value, list) else _refuse()


def _text(value: StrictJson) -> str:
    if not isinstance(value, str):
        _refuse()
    return value


def _short_text(value: StrictJson) -> str:
    text = _text(value)
    return text if len(text) <= _TEXT_CHARACTERS_MAX else _refuse()


def _number(value: StrictJson) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse()
    # `isfinite` raises an error for a very large whole number, so call it only for floats.
    return value if isinstance(value, int) or math.isfinite(value) else _refuse()


def _whole(value: StrictJson) -> int:
    """Cut a number towards zero: 2.6 gives 2."""
    number = int(_number(value))
    return number if abs(number) <= _WHOLE_MAX else _refuse()


def _rounded(value: StrictJson) -> int:
    """Round a number; halves go up, as in Java's Math.round. Only 32-bit numbers are allowed."""
    number = math.floor(_number(value) + 0.5) if isinstance(value, float) else _number(value)
    return int(number) if _INT_MIN <= number <= _INT_MAX else _refuse()


# -- arrays ----------------------------------------------------------------------------------------


def _array(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    return arguments


def _array_partition(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    items, size = _list(arguments[0]), _whole(arguments[1])
    if size < 1:
        _refuse()
    return [items[start : start + size] for start in range(0, len(items), size)]


def _array_contains(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    wanted = java_text(arguments[1])
    return any(java_text(item) == wanted for item in _list(arguments[0]))


def _array_range(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    start, end, step = map(_whole, arguments)
    if step == 0:
        _refuse()
    numbers = range(start, end + (1 if step > 0 else -1), step)
    # `len` raises an error for a very long range, so a slice finds whether the range is too long.
    return _refuse() if numbers[_RANGE_ITEMS_MAX:] else list(numbers)


def _array_get_item(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    items, index = _list(arguments[0]), _whole(arguments[1])
    if index < 0:
        _refuse()
    if not items:
        return None
    return items[index] if index < len(items) else _refuse()


def _array_length(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    return len(_list(arguments[0]))


def _array_unique(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    found: dict[str, StrictJson] = {}
    for item in _list(arguments[0]):
        found.setdefault(json_text(item), item)
    return list(found.values())


# -- texts -----------------------------------------------------------------------------------------


def _base64_encode(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    return base64.b64encode(_short_text(arguments[0]).encode("utf-8", "replace")).decode()


def _base64_decode(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    """Decode a text. As in Java, characters outside of the alphabet are ignored, and padding ends
    the text.
    """
    digits = _NOT_BASE64.sub("", _short_text(arguments[0])).partition("=")[0]
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    padded = digits + "=" * (-len(digits) % 4)
    return base64.b64decode(padded).decode("utf-8", "replace")


def _hash(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    data = _short_text(java_text(arguments[0]))
    algorithm = _HASHES.get(_text(arguments[1]))
    if algorithm is None:
        _refuse()
    encoded = data.encode("utf-8", "replace")
    return hashlib.new(algorithm, encoded, usedforsecurity=False).hexdigest()


def _string_split(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    """Split a text: every character of the second text is a separator; empty parts are dropped."""
    text, separators = map(_text, arguments)
    if not separators:
        return [text] if text else []
    return [part for part in re.split(f"[{re.escape(separators)}]", text) if part]


def _format(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    template, values = java_text(arguments[0]), list(map(java_text, arguments[1:]))
    pieces = list(_pieces(template))
    if pieces.count(None) != len(values):
        raise IntrinsicMisuse(
            "Invalid arguments in States.Format: "
            "number of arguments do not match the occurrences of {}."
        )
    remaining = iter(values)
    return "".join(next(remaining) if piece is None else piece for piece in pieces)


def _pieces(template: str) -> list[str | None]:
    """Return the texts of the template, and None for each `{}`."""
    pieces: list[str | None] = []
    for escaped, placeholder, brace, text in _PIECE.findall(template):
        if brace:
            other = "}" if brace == "{" else "{"
            raise IntrinsicMisuse(
                f"Invalid template in States.Format: matching '{other}' not found for '{brace}'."
            )
        pieces.append(None if placeholder else escaped or text)
    return pieces


# -- JSON ------------------------------------------------------------------------------------------


def _string_to_json(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    text = _text(arguments[0])
    if not text.strip():
        return None
    try:
        value: StrictJson = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if _ESCAPED_SURROGATE.search(text):
            # Java replaces half of a surrogate pair by a question mark, so do the same.
            value = json.loads(json_text(value).encode(errors="replace"))
    except (ValueError, RecursionError):
        _refuse()
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse()


def _json_to_string(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    return json_text(arguments[0])


def _json_merge(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    left, right, is_deep = arguments
    if not isinstance(left, dict) or not isinstance(right, dict) or is_deep is True:
        _refuse()
    return {**left, **right}


# -- numbers and chance ----------------------------------------------------------------------------


def _math_add(arguments: _Arguments, _: EvaluationMoment) -> StrictJson:
    total = sum(map(_rounded, arguments))
    return total if _INT_MIN <= total <= _INT_MAX else _refuse()


def _math_random(arguments: _Arguments, moment: EvaluationMoment) -> StrictJson:
    """Return a random number below the end. The same seed gives the same number as
    java.util.Random.
    """
    start, end = map(_whole, arguments[:2])
    if start >= end:
        _refuse()
    if len(arguments) == 2:
        return start + int(moment.draw() * (end - start))
    return start + _java_random(_whole(arguments[2]), end - start)


def _java_random(seed: int, bound: int) -> int:
    """Return Java's `new Random(seed).nextInt(bound)`."""
    state = (seed ^ _JAVA_FACTOR) % 2**48
    while True:
        state = (state * _JAVA_FACTOR + 0xB) % 2**48
        bits = state >> 17
        if bound & (bound - 1) == 0:
            return bound * bits >> 31
        # Draw again if the number lies in the last, incomplete range. Otherwise small numbers would
        # be more frequent.
        if bits - bits % bound + bound <= 2**31 or bound > _INT_MAX:
            return bits % bound


def _uuid(_: _Arguments, moment: EvaluationMoment) -> StrictJson:
    bits = 0
    for _word in range(4):
        bits = bits << _DRAW_BITS | int(moment.draw() * 2**_DRAW_BITS)
    bits = bits & ~(0xF << 76) | 4 << 76  # version 4
    bits = bits & ~(0x3 << 62) | 2 << 62  # variant of RFC 9562
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_ALL: Final = (
    IntrinsicFunction("States.Array", 0, None, _array),
    IntrinsicFunction("States.ArrayPartition", 2, 2, _array_partition),
    IntrinsicFunction("States.ArrayContains", 2, 2, _array_contains),
    IntrinsicFunction("States.ArrayRange", 3, 3, _array_range),
    IntrinsicFunction("States.ArrayGetItem", 2, 2, _array_get_item),
    IntrinsicFunction("States.ArrayLength", 1, 1, _array_length),
    IntrinsicFunction("States.ArrayUnique", 1, 1, _array_unique),
    IntrinsicFunction("States.Base64Encode", 1, 1, _base64_encode),
    IntrinsicFunction("States.Base64Decode", 1, 1, _base64_decode),
    IntrinsicFunction("States.Hash", 2, 2, _hash),
    IntrinsicFunction("States.JsonMerge", 3, 3, _json_merge),
    IntrinsicFunction("States.StringToJson", 1, 1, _string_to_json),
    IntrinsicFunction("States.JsonToString", 1, 1, _json_to_string),
    IntrinsicFunction("States.MathRandom", 2, 3, _math_random),
    IntrinsicFunction("States.MathAdd", 2, 2, _math_add),
    IntrinsicFunction("States.StringSplit", 2, 2, _string_split),
    IntrinsicFunction("States.UUID", 0, 0, _uuid),
    IntrinsicFunction("States.Format", 1, None, _format, is_template=True),
)
FUNCTIONS: Final[Mapping[str, IntrinsicFunction]] = {function.name: function for function in _ALL}
