"""The text in the box of a state, and the size of the box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holdfast.pictures.model import DrawnState
from holdfast.pictures.text import cut, shown, width, wrap

TextClass: TypeAlias = Literal["name", "detail", "source"]
#: For each class of text, the size of the font and the height of a line in pixels.
FONT: Final[dict[TextClass, tuple[float, float]]] = {
    "name": (13.0, 17.0),
    "detail": (11.0, 15.0),
    "source": (10.0, 13.0),
}
WORD_SIZE: Final = 11.0
WORD_LINE: Final = 14.0
ICON: Final = 16.0
PADDING: Final = 9.0
ICON_COLUMN: Final = ICON + 8.0
#: The width of the point that the box of a Choice has at each side.
POINT: Final = 12.0
_NAME_WIDTH_MAX: Final = 200.0
_FRAME_WIDTH_MAX: Final = 360.0
_WIDTH_MIN: Final = 96.0
_WORD_ROOM: Final = 84.0
_LABEL_ROOM: Final = 170.0


@dataclass(frozen=True, slots=True)
class TextLine:
    text: str
    style: TextClass


@dataclass(frozen=True, slots=True)
class Caption:
    """The lines of text in a box, and the size that they need together with the icon."""

    lines: tuple[TextLine, ...]
    width: float
    height: float


def caption(node: DrawnState) -> Caption:
    room = _FRAME_WIDTH_MAX if node.machines else _NAME_WIDTH_MAX
    lines = [TextLine(text, "name") for text in wrap(shown(node.name), room, FONT["name"][0], 3)]
    lines += [TextLine(text, "detail") for text in _details(node.details, room)]
    if node.source is not None:
        file = node.source.file.replace("\\", "/").rpartition("/")[2]
        place = f":{node.source.line}"
        kept = cut(shown(file), room - width(place, FONT["source"][0]), FONT["source"][0])
        lines.append(TextLine(kept + place, "source"))
    widest = max(width(line.text, FONT[line.style][0]) for line in lines)
    sides = 2 * PADDING + ICON_COLUMN + (2 * POINT if node.kind == "choice" else 0.0)
    height = sum(FONT[line.style][1] for line in lines) + 2 * PADDING
    return Caption(tuple(lines), max(widest + sides, _WIDTH_MIN), height)


def _details(details: Sequence[str], room: float) -> list[str]:
    """Return the details in lines that fit. A detail is never split."""
    size = FONT["detail"][0]
    lines: list[str] = []
    for detail in map(shown, details):
        longer = f"{lines[-1]} · {detail}" if lines else ""
        if longer and width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(cut(detail, room, size))
    return lines


@dataclass(frozen=True, slots=True)
class Words:
    """The text of a line: `short` is written at its beginning, `long` in a text box of its own."""

    short: str
    long: tuple[str, ...]
    short_width: float
    long_size: tuple[float, float] | None


def words(label: str) -> Words:
    text = shown(label)
    short = cut(text, _WORD_ROOM, WORD_SIZE)
    if short == text:
        return Words(short, (), width(short, WORD_SIZE), None)
    lines = wrap(text, _LABEL_ROOM, WORD_SIZE, 3)
    widest = max(width(line, WORD_SIZE) for line in lines)
    size = widest + 10.0, len(lines) * WORD_LINE + 4.0
    return Words(short, lines, width(short, WORD_SIZE), size)
