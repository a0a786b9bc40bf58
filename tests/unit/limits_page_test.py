"""The page with all limits is that of `holdfast/limits.py`: names, values, and what each is for.

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


def test_the_page_has_every_limit_with_its_value_and_its_meaning() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(_TABLES) :].splitlines() == list(tables())


def test_no_limit_is_left_out_of_the_page() -> None:
    rows = [line for line in tables() if line.startswith("| `")]
    names = [name for name, value in vars(limits).items() if name.isupper()]
    assert len(rows) == len(names) > 100


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    head = text[: text.index(_TABLES)] if _TABLES in text else text.rstrip("\n")
    PAGE.write_text("\n".join([head, *tables()]) + "\n", encoding="utf-8")
