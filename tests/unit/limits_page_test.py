"""The page with the limits is that of `holdfast/limits.py`: names, values, and what each is for.

`python -m tests.unit.limits_page_test` writes the tables anew. A changed number is a changed
promise, so it shows in a page that users read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from holdfast import limits

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
SOURCE: Final = Path(limits.__file__)
_SECTION: Final = re.compile(r"# -- (.+?) -+$")
#: The tables stand behind the first heading of a section.
_TABLES: Final = "\n## "


def tables() -> Iterator[str]:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    begins = {
        node.lineno: node for node in ast.parse("\n".join(lines)).body if _name_of(node) is not None
    }
    comment: list[str] = []
    for number, line in enumerate(lines, 1):
        if section := _SECTION.match(line):
            title = re.sub(r" \(.*", "", section[1])
            yield from ("", f"## {title}", "", "| limit | value | |", "|---|---|---|")
            comment = []
        elif line.startswith("#"):
            comment.append(line.lstrip("#: "))
        elif number in begins:
            node = begins[number]
            own = lines[(node.end_lineno or number) - 1].partition("  # ")[2]
            name = _name_of(node)
            assert name is not None
            text = " ".join([*comment, own]).strip()
            yield f"| `{name}` | {_shown(getattr(limits, name))} | {_cell(text)} |"
            comment = []
        elif not line:
            comment = []


def _name_of(node: ast.stmt) -> str | None:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


def _shown(value: Any) -> str:
    match value:
        case int() | float():
            return f"{value:,}"
        case frozenset():
            return ", ".join(sorted(value))
        case _:
            return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_each_limit_on_the_page_has_the_value_of_the_code() -> None:
    """The names and values. A limit that is not there yet comes with the next writing."""
    of_code = {row[1]: row[2] for row in map(_cells, tables()) if len(row) > 3}
    shown = {row[1]: row[2] for row in map(_cells, PAGE.read_text("utf-8").splitlines()) if row[3:]}
    of_page = {name: value for name, value in shown.items() if name.startswith("`")}
    assert len(of_page) > 100
    differ = {name for name, value in of_page.items() if of_code.get(name) != value}
    assert differ == set(), "python -m tests.unit.limits_page_test writes the page anew"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    head = text[: text.index(_TABLES)] if _TABLES in text else text.rstrip("\n")
    PAGE.write_text("\n".join([head, *tables()]) + "\n", encoding="utf-8")
