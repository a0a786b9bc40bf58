"""$formatNumber: pictures (formats) of XPath 3.1's fn:format-number, such as `#,##0.00` and
`0.0%`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from jsonata import JException

from holdfast.asl.jsonata import values

_DIGITS_MAX: Final = 300  # ten to this power is still a double
_SYMBOL_CHARACTERS_MAX: Final = 10
_SYMBOLS: Final = {
    "decimal-separator": ".",
    "grouping-separator": ",",
    "exponent-separator": "e",
    "minus-sign": "-",
    "percent": "%",
    "per-mille": "‰",
    "zero-digit": "0",
    "digit": "#",
    "pattern-separator": ";",
}


def format_number(value: float | None, picture: str | None, options: Any) -> str | None:
    if value is None or picture is None:
        return None
    if len(picture) > values.PICTURE_CHARACTERS_MAX:
        raise values.budget_error("used a picture that is too long")
    if not math.isfinite(value):
        raise JException("D1001", -1, str(value))
    symbols = {**_SYMBOLS, **(options or {})}
    if any(len(str(symbols[name])) > _SYMBOL_CHARACTERS_MAX for name in _SYMBOLS):
        raise values.budget_error("used a symbol that is too long")
    pictures = picture.split(symbols["pattern-separator"])
    if len(pictures) > 2:
        raise JException("D3080", -1)
    layouts = [_layout(part, symbols) for part in pictures]
    if value >= 0:
        return _write(value, layouts[0], symbols)
    if len(layouts) == 1:
        negative = replace(layouts[0], prefix=symbols["minus-sign"] + layouts[0].prefix)
        return _write(-value, negative, symbols)
    return _write(-value, layouts[1], symbols)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of one picture: the number of digits in each part, and the positions of its
    separators.
    """

    prefix: str
    suffix: str
    factor: int
    integer_min: int
    scale: int
    fraction_min: int
    fraction_max: int
    exponent_min: int
    # For each separator, the number of digits to the right of it.
    integer_groups: tuple[int, ...]
    # For each separator, the number of digits to the left of it.
    fraction_groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of one picture, such as `$#,##0.0e0 net`."""

    prefix: str
    active: str
    suffix: str
    integer: str
    fraction: str
    exponent: str | None


def _layout(picture: str, symbols: Mapping[str, str]) -> _Layout:
    digits = _digits(symbols)
    parts = _take_apart(picture, symbols, digits)
    mistake = _mistake(picture, parts, symbols, digits)
    if mistake:
        raise JException(mistake, -1)
    optional = symbols["digit"]
    integer_min = scale = _count(parts.integer, digits)
    fraction_min = _count(parts.fraction, digits)
    fraction_max = _count(parts.fraction, digits + optional)
    if integer_min == 0 and fraction_max == 0:
        if parts.exponent is None:
            integer_min = 1
        else:
            fraction_min = fraction_max = 1
    if parts.exponent is not None and integer_min == 0 and optional in parts.integer:
        integer_min = 1
    if integer_min == 0 and fraction_min == 0:
        fraction_min = 1
    percent, mille = symbols["percent"] in picture, symbols["per-mille"] in picture
    return _Layout(
        prefix=parts.prefix,
        suffix=parts.suffix,
        factor=100 if percent else 1000 if mille else 1,
        integer_min=integer_min,
        scale=scale,
        fraction_min=fraction_min,
        fraction_max=fraction_max,
        exponent_min=_count(parts.exponent or "", digits),
        integer_groups=_groups(parts.integer[::-1], symbols["grouping-separator"]),
        fraction_groups=_groups(parts.fraction, symbols["grouping-separator"]),
    )


def _digits(symbols: Mapping[str, str]) -> str:
    return "".join(chr(ord(symbols["zero-digit"]) + digit) for digit in range(10))


def _count(part: str, characters: str) -> int:
    return sum(character in characters for character in part)


def _groups(part: str, separator: str) -> tuple[int, ...]:
    pieces = part.split(separator)[:-1]
    return tuple(sum(map(len, pieces[: at + 1])) for at in range(len(pieces)))


def _take_apart(picture: str, symbols: Mapping[str, str], digits: str) -> _Parts:
    decimal, exponent = symbols["decimal-separator"], symbols["exponent-separator"]
    ends = {*digits, decimal, symbols["grouping-separator"], symbols["digit"]}
    places = [at for at, character in enumerate(picture) if character in ends] or [0, len(picture)]
    start, end = places[0], places[-1] + 1
    active = picture[start:end]
    mantissa, found, tail = active.partition(exponent)
    integer, _, fraction = mantissa.partition(decimal)
    return _Parts(
        picture[:start], active, picture[end:], integer, fraction, tail if found else None
    )


def _mistake(picture: str, parts: _Parts, symbols: Mapping[str, str], digits: str) -> str | None:
    """Return the code of the last rule that the picture breaks: JSONata reports only that one."""
    decimal, group = symbols["decimal-separator"], symbols["grouping-separator"]
    optional, percent, mille = symbols["digit"], symbols["percent"], symbols["per-mille"]
    active = {*digits, decimal, group, optional, symbols["exponent-separator"]}
    mantissa = parts.integer + parts.fraction
    has_decimal = decimal in parts.active
    broken = {
        "D3081": picture.count(decimal) > 1,
        "D3082": picture.count(percent) > 1,
        "D3083": picture.count(mille) > 1,
        "D3084": percent in picture and mille in picture,
        "D3085": not any(character in digits + optional for character in mantissa),
        "D3086": any(character not in active for character in parts.active),
        "D3087": group + decimal in picture or decimal + group in picture,
        "D3088": not has_decimal and parts.integer.endswith(group),
        "D3089": group * 2 in picture,
        "D3090": _is_before(parts.integer, digits, optional),
        "D3091": _is_before(parts.fraction, optional, digits),
        "D3092": bool(parts.exponent) and (percent in picture or mille in picture),
        "D3093": parts.exponent is not None
        and (not parts.exponent or any(character not in digits for character in parts.exponent)),
    }
    return max((code for code, is_broken in broken.items() if is_broken), default=None)


def _is_before(part: str, these: str, those: str) -> bool:
    """Return True when one of the first characters occurs before one of the second."""
    first = next((at for at, character in enumerate(part) if character in these), None)
    return first is not None and any(character in those for character in part[first:])


def _write(value: float, layout: _Layout, symbols: Mapping[str, str]) -> str:
    number = value * layout.factor
    exponent = 0
    if layout.exponent_min:
        number, exponent = _scaled(number, layout.scale)
    rounded = values.round_half_even(number, layout.fraction_max)
    integer, _, fraction = f"{rounded:.{layout.fraction_max}f}".partition(".")
    integer = integer.lstrip("0").rjust(layout.integer_min, "0")
    fraction = fraction.rstrip("0").ljust(layout.fraction_min, "0")
    text = _grouped(integer[::-1], layout.integer_groups, repeats=True)[::-1]
    if fraction:
        text += "." + _grouped(fraction, layout.fraction_groups, repeats=False)
    if layout.exponent_min:
        shown = str(abs(exponent)).rjust(layout.exponent_min, "0")
        text += f"e{'-' if exponent < 0 else ''}{shown}"
    return layout.prefix + _translated(text, symbols) + layout.suffix


def _scaled(number: float, digits: int) -> tuple[float, int]:
    """Return a mantissa with `digits` digits before the point, and its exponent."""
    if digits > _DIGITS_MAX:
        raise JException("D1001", -1, str(number))
    exponent = 0
    while number and number < 10 ** (digits - 1):
        number *= 10
        exponent -= 1
    while number > 10**digits:
        number /= 10
        exponent += 1
    return number, exponent


def _grouped(digits: str, groups: tuple[int, ...], *, repeats: bool) -> str:
    """Return `digits` with separators after the given numbers of digits. With `repeats` the last
    distance is repeated.
    """
    interval = math.gcd(*groups) if groups and repeats else 0
    if interval and groups == tuple(interval * at for at in range(1, len(groups) + 1)):
        groups = tuple(range(interval, len(digits), interval))
    return "".join("," + digit if at in groups else digit for at, digit in enumerate(digits))


def _translated(text: str, symbols: Mapping[str, str]) -> str:
    table = {
        ".": symbols["decimal-separator"],
        ",": symbols["grouping-separator"],
        "e": symbols["exponent-separator"],
        "-": symbols["minus-sign"],
    }
    zero = ord(symbols["zero-digit"])
    table |= {str(digit): chr(zero + digit) for digit in range(10)}
    return "".join(table.get(character, character) for character in text)
