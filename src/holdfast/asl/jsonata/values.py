"""Definitions that both JSONata engines share: undefined, errors, budgets, values as text.

A value is plain JSON (`None` is null) or `UNDEFINED`, which exists in JSONata and not in JSON. The
two must not be confused: a missing field is undefined and fails an expression, while null is a
value.
"""

from __future__ import annotations

import enum
import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from json.encoder import encode_basestring
from typing import Any, Final, Protocol, TypeAlias

from holdfast.asl.jsonata.growing import ITEMS_MIN, NEWEST, Measure
from holdfast.lazy_dataclass import dataclass

StrictJson: TypeAlias = "bool | int | float | str | list[StrictJson] | dict[str, StrictJson] | None"

# The budgets of one evaluation. An expression comes from a definition, which may be hostile or
# wrong, and it must never block a worker that serves other executions. A step is one evaluated node
# or call. Items count the values that one step processes together: ranges, joined sequences,
# arguments of functions. All steps and items that are allowed take less than a second. `costs.py`
# has the cost of each operation in items. If a cost is too low there, a clock stops the evaluation:
# it measures the time of the thread after every `ITEMS_PER_LOOK` items.
STEPS_MAX: Final = 75_000
ITEMS_MAX: Final = 2_000_000
SECONDS_MAX: Final = 0.75
ITEMS_PER_LOOK: Final = 1_000
ITEMS_PER_STEP: Final = 25  # The cost of a step, in items
DEPTH_MAX: Final = 400
VALUE_NODES_MAX: Final = 500_000
VALUE_DEPTH_MAX: Final = 200
EXPRESSION_CHARACTERS_MAX: Final = 32_768
RANGE_ITEMS_MAX: Final = 1_000_000
STRING_CHARACTERS_MAX: Final = 1_048_576
# The most characters of all texts and keys in a result. A text that occurs twice counts twice.
RESULT_CHARACTERS_MAX: Final = 16_777_216
REGEX_SECONDS_MAX: Final = 0.25  # the time of all regular expressions of one evaluation together
# The greatest length of a number or time that is read or written with a picture.
PICTURE_CHARACTERS_MAX: Final = 1_000

# From this number on JavaScript writes a number with an exponent, so a greater whole number stays a
# float.
POSITIONAL_MAX: Final = 1e21
_POSITIONAL_MIN: Final = 1e-6
_FIFTEEN_DIGITS: Final = Context(prec=15, rounding=ROUND_HALF_UP)
_EXACT_INTEGER_MAX: Final = 2**53
_PLACES_MAX: Final = 320  # the most digits of a double before or after the point
_DECIMAL_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_RADIX_NUMBER: Final = re.compile(r"0([xX][0-9A-Fa-f]+|[oO][0-7]+|[bB][01]+)")


BUDGET_CODE: Final = "U1001"


class Undefined(enum.Enum):
    """The type of `UNDEFINED`. It is an enum, so that the type checker understands `is
    UNDEFINED`.
    """

    UNDEFINED = "UNDEFINED"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNDEFINED"

    __str__ = __repr__


UNDEFINED: Final = Undefined.UNDEFINED


class JsonataError(Exception):
    """An expression that cannot be parsed or evaluated, with JSONata's own code (D…, S…, T…, U…).

    U1001 is a used-up budget: steps, items, depth, length of text, or time of regular expressions.
    """

    def __init__(self, code: str, message: str, position: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.position = position


@dataclass(frozen=True, slots=True)
class EvaluationMoment:
    """Time and random bytes as values: all that $now, $millis, $random, $uuid and $shuffle may
    use.
    """

    now_ms: int
    draw: Callable[[], float]


_BUILT_INS: Final = """
abs append assert average base64decode base64encode boolean ceil clone contains count decodeUrl
decodeUrlComponent distinct each encodeUrl encodeUrlComponent error exists filter floor formatBase
formatInteger formatNumber fromMillis hash join keys length lookup lowercase map match max merge
millis min not now number pad parse parseInteger partition power random range reduce replace reverse
round shuffle sift single sort split spread sqrt string substring substringAfter substringBefore sum
toMillis trim type uppercase uuid zip
"""
#: The names of the built-in functions. `fallback` has the functions themselves.
BUILT_INS: Final = frozenset(_BUILT_INS.split())


class ParsedExpression(Protocol):
    """A parsed expression. Several threads may evaluate it at once."""

    @property
    def text(self) -> str: ...

    @property
    def tree(self) -> object:
        """Return the parser's syntax tree (see `tree.py`). Callers must not change it."""
        ...

    @property
    def is_lookup(self) -> bool:
        """Return True when the expression only reads an existing value: `$order.lines`."""
        ...

    @property
    def is_native(self) -> bool:
        """Return True when compiled closures evaluate it, False when only jsonata-python does."""
        ...

    def evaluate(
        self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment
    ) -> StrictJson | Undefined:
        """Return the value. Bindings are named without `$`; the one named "$" is the input
        document, `$$`.

        The result may have sub-objects in common with the bindings. Raises JsonataError and nothing
        else.
        """
        ...


def budget_error(what: str) -> JsonataError:
    return JsonataError(BUDGET_CODE, f"The expression was stopped: it {what}")


def checked_text(text: str) -> str:
    if len(text) > STRING_CHARACTERS_MAX:
        raise budget_error(f"made a text of more than {STRING_CHARACTERS_MAX:,} characters")
    return text


def tidy_number(number: float) -> float:
    """Return a whole number as an int, as JSON.stringify would show it: 7.0 gives 7. Infinities
    stay.
    """
    if isinstance(number, float) and number.is_integer() and abs(number) < POSITIONAL_MAX:
        return int(number)
    return number


def without_long_integers(value: Any) -> Any:
    """Return the value with each int that is too long (such as 1e300, with three hundred digits) as
    a float.
    """
    if type(value) is int and abs(value) >= POSITIONAL_MAX:
        return float(value)
    return value


def number_text(number: float) -> str:
    """Return a number as JSONata casts it to text, in JavaScript's notation.

    Fractions have at most fifteen significant digits. Whole numbers are written in full, as on AWS
    and in JSONata since 2.1.1; 2.0.6 rounds them as well.
    """
    if type(number) is int and -_EXACT_INTEGER_MAX <= number <= _EXACT_INTEGER_MAX:
        return str(number)
    try:
        double = float(number)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise JsonataError("D1001", f"Number out of range: {double}")
    if double.is_integer():
        rounded = Decimal(repr(double)).normalize()
    else:
        rounded = _FIFTEEN_DIGITS.create_decimal(double).normalize()
    if rounded == 0:
        return "0"
    if _POSITIONAL_MIN <= abs(rounded) < POSITIONAL_MAX:
        return f"{rounded:f}"
    sign, digits, _ = rounded.as_tuple()
    mantissa = "".join(map(str, digits))
    if len(mantissa) > 1:
        mantissa = f"{mantissa[0]}.{mantissa[1:]}"
    return f"{'-' if sign else ''}{mantissa}e{rounded.adjusted():+d}"


def parse_number(text: str) -> float | None:
    """Return the number that $number reads from a text; None for other text, and for a number that
    is too large.
    """
    if _DECIMAL_NUMBER.fullmatch(text):
        number = float(text)
    elif _RADIX_NUMBER.fullmatch(text):
        number = float(int(text, 0))
    else:
        return None
    return tidy_number(number) if math.isfinite(number) else None


def round_half_even(number: float, places: int) -> float:
    """Return the result of $round: ties go to the even digit. The digits are those that are
    shown.
    """
    exact = Decimal(repr(number))
    if not exact.is_finite() or exact.adjusted() + places > _PLACES_MAX:
        return number
    if places < -_PLACES_MAX:
        return 0
    unit = Decimal(1).scaleb(-places)
    wide = Context(prec=3 * _PLACES_MAX, rounding=ROUND_HALF_EVEN)
    return tidy_number(float(exact.quantize(unit, context=wide)))


def json_text(value: Any, *, pretty: bool = False) -> str:
    """Return the text that $string returns for an object or array: JSON.stringify, with numbers as
    in `number_text`.
    """
    # Check the length before the text is written. A value that contains the same list twice, forty
    # levels deep, takes little memory, but would be too long as a text.
    require_characters(value, STRING_CHARACTERS_MAX)
    parts: list[str] = []
    _write_json(value, "\n" if pretty else "", parts)
    return checked_text("".join(parts))


def _write_json(value: Any, line: str, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(encode_basestring(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int | float):
        parts.append(number_text(value))
    elif not value:
        parts.append("{}" if isinstance(value, dict) else "[]")
    else:
        _write_container(value, line, parts)


def _write_container(value: Any, line: str, parts: list[str]) -> None:
    inner = line and line + "  "
    is_object = isinstance(value, dict)
    parts.append("{" if is_object else "[")
    separator = inner
    for item in value:
        parts.append(separator)
        separator = "," + inner
        if is_object:
            parts.append(encode_basestring(item) + (": " if line else ":"))
            _write_json(value[item], inner, parts)
        else:
            _write_json(item, inner, parts)
    parts.append(line + ("}" if is_object else "]"))


def arithmetic(sign: str, left: float, right: float) -> float:
    """Return `left sign right` in doubles; a whole result becomes an int. The result may be
    infinite or NaN.
    """
    exact = _EXACT.get(sign)
    if exact and type(left) is int and type(right) is int:
        result = exact(left, right)
        if -_EXACT_INTEGER_MAX <= result <= _EXACT_INTEGER_MAX:
            return int(result)
    try:
        return tidy_number(_INEXACT[sign](float(left), float(right)))
    except OverflowError:
        raise JsonataError("D1001", "Number out of range") from None


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    return math.copysign(math.inf, left) if left else math.nan


def _remainder(left: float, right: float) -> float:
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


def node_count(value: Any) -> int:
    """Return how many values the value contains. Raises when it is too large or too deep to
    visit.
    """
    count = 0
    level = [value]
    for _ in range(VALUE_DEPTH_MAX):
        count += len(level)
        containers = [node for node in level if isinstance(node, dict | list)]
        if not containers:
            return count
        # Count the items before they are collected. A list that contains itself many times takes
        # little memory, but has too many items to collect.
        _require_nodes(count + sum(map(len, containers)))
        level = [item for node in containers for item in _items(node)]
    raise budget_error(f"made a value deeper than {VALUE_DEPTH_MAX}")


def _require_nodes(count: int) -> None:
    if count > VALUE_NODES_MAX:
        raise budget_error(f"made a value of more than {VALUE_NODES_MAX:,} parts")


def _measured(value: Any) -> Measure:
    """Return the size of a value. Of a list that continues a measured one, only the new items are
    visited. Raises the errors of `node_count`.
    """
    if type(value) is not list or len(value) < ITEMS_MIN:
        return Measure(node_count(value), character_count(value))
    known = NEWEST.measure_of(value)
    if known is None:
        base = NEWEST.base_of(value)
        before = None if base is None else NEWEST.measure_of(base)
        added = value if base is None or before is None else value[len(base) :]
        known = Measure(node_count(added), character_count(added))
        known = known if before is None else before.beside(known)
        _require_nodes(known.nodes)
        NEWEST.note_measured(value, known)
    return known


def require_bounded(value: Any) -> None:
    """Raise for a value that is too large or too deep to be written.

    A text that occurs a thousand times is one object in memory, but a thousand times as long when
    written.
    """
    require_characters(value, RESULT_CHARACTERS_MAX)


def require_characters(value: Any, characters_max: int) -> None:
    """Raise for a value whose texts and keys together are too long. Raises the errors of
    `node_count`, too.
    """
    if _measured(value).characters > characters_max:
        raise budget_error(f"made a value of more than {characters_max:,} characters")


def character_count(value: Any) -> int:
    """Return the number of characters of all texts and keys in the value, counted at each
    occurrence. `node_count` must have accepted the value.
    """
    characters, level = 0, [value]
    while level:
        characters += sum(len(node) for node in level if type(node) is str)
        characters += sum(sum(map(len, node)) for node in level if isinstance(node, dict))
        level = [item for node in level if isinstance(node, dict | list) for item in _items(node)]
    return characters


def _items(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def deep_equal(left: Any, right: Any) -> bool:
    """Return the result of JSONata's `=`: values are compared by their content, and true does not
    equal 1.
    """
    if left is right:
        return True
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(map(deep_equal, left, right))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(deep_equal(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return bool(left == right)


def distinct(items: list[Any]) -> list[Any]:
    """Return the first of each set of items that are deeply equal."""
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(_identity(item), item)
    return list(found.values())


def _identity(value: Any) -> Any:
    """Return a key that two values have in common exactly when they are deeply equal."""
    if isinstance(value, dict):
        return "object", frozenset((key, _identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_identity, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        # The key of a number is a text. In Python the numbers -1 and -2 have the same hash, and so
        # have thousands of lists that consist of them, which would make the search slow.
        return "number", _number_key(tidy_number(value))
    return value


def _number_key(number: float) -> str:
    if type(number) is int and abs(number) >= POSITIONAL_MAX:
        try:
            rounded = float(number)
        except OverflowError:
            # An int that is too large for a float is equal to none.
            return repr(number)
        return repr(rounded if rounded == number else number)
    return repr(number)


def merge_sort(items: list[Any], goes_after: Callable[[Any, Any], bool]) -> list[Any]:
    """Sort with JSONata's own algorithm, so that a comparator that contradicts itself gives the
    same result as there.
    """
    if len(items) <= 1:
        return list(items)
    middle = len(items) // 2
    left = merge_sort(items[:middle], goes_after)
    right = merge_sort(items[middle:], goes_after)
    merged: list[Any] = []
    at = other = 0
    while at < len(left) and other < len(right):
        if goes_after(left[at], right[other]):
            merged.append(right[other])
            other += 1
        else:
            merged.append(left[at])
            at += 1
    return merged + left[at:] + right[other:]


def same_item(left: Any, right: Any) -> bool:
    """Return the result of JSONata's `in`: equal texts, numbers or booleans, or the same object or
    array.
    """
    if left is right:
        return True
    if isinstance(left, bool | list | dict) or isinstance(right, bool | list | dict):
        return False
    return bool(left == right)


_Operation: TypeAlias = Callable[[Any, Any], Any]
_EXACT: Final[dict[str, _Operation]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_INEXACT: Final[dict[str, _Operation]] = {**_EXACT, "/": _divide, "%": _remainder}
