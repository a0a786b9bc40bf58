"""The places of refusals in the compiler: every such call, and those that a set of programs
reaches.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import holdfast.compiler
from holdfast.compiler.context import Unit
from holdfast.compiler.source import Span

FOLDER: Final = Path(holdfast.compiler.__file__).parent
_REFUSES: Final = re.compile(r"_?refuse(d|_\w+)?|_?report")
#: They pass on their input, or give refused names a value.
_PASSES_ON: Final = frozenset({"refuse_at", "refuse_names", "refused_names"})
#: Refusals of other targets, of the graph form and of migrations have tests of their own.
_ELSEWHERE: Final = frozenset({"targets", "graphs", "context.py", "conversions.py", "dag.py"})


@dataclass(frozen=True, order=True)
class Site:
    file: str
    line: int
    end_line: int
    text: str


def all_sites() -> list[Site]:
    return sorted(
        site
        for path in FOLDER.rglob("*.py")
        if path.relative_to(FOLDER).parts[0] not in _ELSEWHERE
        for site in _sites_in(path)
    )


def _sites_in(path: Path) -> Iterator[Site]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                if _REFUSES.fullmatch(name) and name not in _PASSES_ON:
                    text = ast.unparse(node)[:100]
                    end = node.end_lineno or node.lineno
                    yield Site(_file_of(path), node.lineno, end, text)


def _file_of(path: Path) -> str:
    return str(path.relative_to(FOLDER))


@contextmanager
def watched() -> Iterator[set[tuple[str, int]]]:
    """Collects (file, line) of every call that is open when something is refused."""
    reached: set[tuple[str, int]] = set()
    original = Unit.refuse_at

    def refuse_at(unit: Unit, span: Span, code: str, message: str, help_: str = "") -> None:
        frame: Any = sys._getframe(1)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if FOLDER in path.parents:
                reached.add((_file_of(path), frame.f_lineno))
            frame = frame.f_back
        original(unit, span, code, message, help_)

    Unit.refuse_at = refuse_at  # type: ignore[assignment, method-assign]
    try:
        yield reached
    finally:
        Unit.refuse_at = original  # type: ignore[method-assign]
