"""The tables of survivors: each row is a mutant that no test finds, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

#: Module, line and change of each.
Explained: TypeAlias = set[tuple[str, str, str]]


def explained(page: Path) -> Explained:
    rows = page.read_text(encoding="utf-8").replace("\\|", "\0").splitlines()
    cells = [row.split("|") for row in rows if row.startswith("| `")]
    return {
        (module, text, change)
        for _, module, text, change, *_ in (
            [cell.strip().strip("`").replace("\0", "|") for cell in row] for row in cells
        )
    }
