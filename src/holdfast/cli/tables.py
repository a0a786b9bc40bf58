"""Tables and styled text for a terminal, without a library.

A table that fits is printed as it is. A wider one becomes narrower where it is widest: first in
columns whose texts may wrap, then in the others, whose texts are cut with an ellipsis.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

PIPE_COLUMNS: Final = 200
GAP: Final = 2
#: A column has at least this width, even on a narrow terminal.
COLUMN_MIN: Final = 4

_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


class Text:
    """Text with a style, which consists of words of `_CODES`. Parts with a style of their own keep
    it.
    """

    def __init__(self, text: str, style: str = "", *, is_cut: bool = False) -> None:
        self._parts = [(text, style)]
        #: True when a line that is too long is cut. Otherwise it is wrapped.
        self.is_cut = is_cut

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self._parts)

    def __add__(self, other: Text) -> Text:
        made = Text("")
        made._parts = [*self._parts, *other._parts]
        made.is_cut = self.is_cut
        return made

    def styled(self, style: str) -> Text:
        """Return the same text, in which the parts without a style have this one."""
        made = Text("", is_cut=self.is_cut)
        made._parts = [(text, own or style) for text, own in self._parts]
        return made

    def lines(self, width: int | None) -> list[Text]:
        """Return the lines, each at most `width` columns wide; None: unchanged."""
        found: list[Text] = []
        start = 0
        for line in self.plain.split("\n"):
            for piece in _pieces(line, width, is_cut=self.is_cut):
                is_whole = piece == line or not piece.endswith("…")
                size = len(piece) if is_whole else len(piece) - 1
                begin = self.plain.index(piece[:size], start)
                cut = self._slice(begin, begin + size)
                found.append(cut if is_whole else cut + Text("…"))
                start = begin + size
        return found

    def _slice(self, begin: int, end: int) -> Text:
        made, place = Text(""), 0
        made._parts = []
        for text, style in self._parts:
            part = text[max(begin - place, 0) : max(end - place, 0)]
            if part:
                made._parts.append((part, style))
            place += len(text)
        return made

    def render(self, *, has_colours: bool) -> str:
        if not has_colours:
            return self.plain
        return "".join(_coloured(text, style) for text, style in self._parts)


def _coloured(text: str, style: str) -> str:
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _pieces(line: str, width: int | None, *, is_cut: bool) -> list[str]:
    if width is None or columns_of(line) <= width:
        return [line]
    if is_cut:
        return [_fitting(line, width - 1) + "…"]
    # textwrap counts characters, but a wide character takes two columns. So halve the width for a
    # line with wide characters.
    narrow = width if columns_of(line) == len(line) else max(width // 2, 1)
    # Replace nothing in the line, because each piece must be a part of it.
    return textwrap.wrap(line, narrow, expand_tabs=False, replace_whitespace=False) or [""]


def _fitting(line: str, width: int) -> str:
    used, end = 0, 0
    for end, character in enumerate(line):
        used += columns_of(character)
        if used > width:
            return line[:end]
    return line[: end + 1]


def columns_of(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of_one, text))


def _columns_of_one(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass
class Column:
    header: str = ""
    style: str = ""
    is_right: bool = False
    wraps: bool = False


@dataclass
class Table:
    """Rows of cells below dim headers. Without any header there is no header row."""

    columns: list[Column]
    _rows: list[list[Text]] = field(default_factory=list)

    def add_row(self, *cells: str | Text) -> None:
        texts = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        missing = len(self.columns) - len(texts)
        self._rows.append([*texts, *(Text("") for _ in range(missing))])

    def lines(self, width: int) -> Iterable[Text]:
        rows = list(self._rows)
        if any(column.header for column in self.columns):
            rows.insert(0, [Text(column.header, "dim") for column in self.columns])
        widths = self._widths(rows, width)
        for row in rows:
            yield from self._lines_of(row, widths)

    def _widths(self, rows: Sequence[Sequence[Text]], width: int) -> list[int]:
        widths = [
            max(
                (columns_of(line) for row in rows for line in row[place].plain.split("\n")),
                default=0,
            )
            for place in range(len(self.columns))
        ]
        room = width - GAP * (len(widths) - 1)
        wrapping = [place for place, column in enumerate(self.columns) if column.wraps]
        for group in (wrapping, range(len(widths))):
            while sum(widths) > room:
                widest = max(group, key=lambda place: widths[place], default=None)
                if widest is None or widths[widest] <= COLUMN_MIN:
                    break
                widths[widest] -= min(widths[widest] - COLUMN_MIN, sum(widths) - room)
        return widths

    def _lines_of(self, row: Sequence[Text], widths: Sequence[int]) -> Iterable[Text]:
        cells: list[list[Text]] = []
        for text, column, width in zip(row, self.columns, widths, strict=True):
            cell = text.styled(column.style)
            cell.is_cut = text.is_cut or not column.wraps
            cells.append(cell.lines(width))
        for number in range(max(map(len, cells), default=1)):
            line = Text("")
            for place, (found, width) in enumerate(zip(cells, widths, strict=True)):
                text = found[number] if number < len(found) else Text("")
                space = Text(" " * (width - columns_of(text.plain)))
                gap = Text(" " * GAP if place else "")
                line += gap + (space + text if self.columns[place].is_right else text + space)
            yield line


Shown: TypeAlias = str | Text | Table


def put(*shown: Shown, is_wrapped: bool = True) -> None:
    """Print to stdout. In a pipe lines are not broken, because its reader needs whole ids."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else PIPE_COLUMNS
    has_colours = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    for item in shown:
        if isinstance(item, Table):
            lines = item.lines(width)
        else:
            text = item if isinstance(item, Text) else Text(item)
            lines = text.lines(width if is_wrapped else None)
        for line in lines:
            # Remove the spaces with which tables end their lines. They would be in the way when a
            # user copies or compares lines.
            sys.stdout.write(f"{line.render(has_colours=has_colours).rstrip()}\n")


def plain_table(*columns: str, right: Iterable[str] = ()) -> Table:
    return Table([Column(name, is_right=name in right) for name in columns])
