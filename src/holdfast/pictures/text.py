"""Text without a font: how wide it is, where it can be broken, and which characters XML does not
allow.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from typing import Final

ELLIPSIS: Final = "…"
#: The characters that are narrower or wider than others. Their widths are parts of the font size
#: and rounded up, because a text must never be wider than its box.
_NARROW: Final = frozenset("ijlI.,:;'|!()[]{}/\\ `")
_WIDE: Final = frozenset("mwMW@%&—…→≥≤")
_FORBIDDEN: Final = re.compile(
    # Characters that XML does not allow, and characters that change the direction of text.
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_BREAK_AFTER: Final = re.compile(r"(?<=[\s,(.=:/_-])")


def shown(text: str) -> str:
    """Return the text on one line, with characters that cannot be shown replaced."""
    return _FORBIDDEN.sub("\ufffd", " ".join(text.split()))


def escaped(text: str) -> str:
    """Escape text for XML, in an element or between quotation marks. Control characters other than
    line feeds are replaced.
    """
    kept = "\n".join(_FORBIDDEN.sub("\ufffd", line) for line in text.split("\n"))
    return html.escape(kept).replace("\n", "&#10;")


def width(text: str, size: float) -> float:
    return sum(_units(character) for character in text) * size


@lru_cache(maxsize=4096)
def _units(character: str) -> float:
    if unicodedata.combining(character) or character in "\u200d\ufe0f\u200b":
        return 0.0
    if character in _NARROW:
        return 0.36
    if character in _WIDE or unicodedata.east_asian_width(character) in "WF":
        return 1.05 if ord(character) < 0x1100 else 1.3
    return 0.72 if character.isupper() else 0.6


def cut(text: str, room: float, size: float) -> str:
    """Return the text, or its beginning with an ellipsis, that fits into `room`."""
    if width(text, size) <= room:
        return text
    left = room - width(ELLIPSIS, size)
    kept = 0
    for character in text:
        left -= _units(character) * size
        if left < 0:
            break
        kept += 1
    return text[:kept].rstrip() + ELLIPSIS


def wrap(text: str, room: float, size: float, lines_max: int) -> tuple[str, ...]:
    """Return at least one line. If there are too many, the last one is cut."""
    lines: list[str] = []
    line = ""
    pieces = [part for piece in _BREAK_AFTER.split(text) for part in _parts(piece, room, size)]
    for position, piece in enumerate(pieces):
        if line and width((line + piece).rstrip(), size) > room:
            if len(lines) == lines_max - 1:
                line += "".join(pieces[position:])
                break
            lines.append(line.rstrip())
            line = ""
        line += piece
    return (*lines, cut(line.rstrip(), room, size)) if line.strip() or not lines else tuple(lines)


def _parts(piece: str, room: float, size: float) -> list[str]:
    """Split a piece that is too long for one line."""
    parts: list[str] = []
    used = room + 1.0
    for character in piece:
        used += _units(character) * size
        if used > room:
            parts.append("")
            used = _units(character) * size
        parts[-1] += character
    return parts
