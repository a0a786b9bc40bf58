"""The source of a module: finds the `ast` node of a function, and the place and text of any
node.
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from holdfast.api.workflows import Workflow
from holdfast.compiler.default_dicts import write_default_dicts
from holdfast.compiler.match_groups import write_match_groups
from holdfast.compiler.walking import walk

_SPACE_INSIDE_BRACKETS = re.compile(r"(?<=[(\[{]) | (?=[)\]}])")
_TRAILING_COMMA = re.compile(r", ?(?=[)\]}])")


class Span(NamedTuple):
    """The place of a node. Line and column count from 1, and columns count characters."""

    line: int
    column: int
    width: int


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file. `file` is relative to the root from which its module is imported."""

    file: str
    lines: tuple[str, ...]
    functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef]

    @classmethod
    def of(cls, module: ModuleType) -> Source:
        """Return the source of `module`. Raises OSError when Python cannot find it."""
        known = _SOURCES.get(module)
        if known is None:
            known = _SOURCES[module] = cls._read(module)
        return known

    @classmethod
    def _read(cls, module: ModuleType) -> Source:
        text = inspect.getsource(module)
        has_lambdas = "lambda" in text
        functions: dict[int, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        for node in walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[_first_line(node)] = node
                if has_lambdas:
                    _name_lambdas(node)
                found = vars(module).get(node.name)
                is_workflow = isinstance(found, Workflow) and (
                    found.function.__code__.co_firstlineno == _first_line(node)
                )
                write_default_dicts(node, module, is_workflow=is_workflow)
                write_match_groups(node, module)
        return cls(_relative_file(module), tuple(text.splitlines()), functions)

    def find(self, function: Callable[..., Any]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the definition of `function`, found by its first line, decorators included."""
        return self.functions.get(function.__code__.co_firstlineno)

    def span(self, node: ast.AST) -> Span:
        """Return the place of the node. For a node of several lines it is the part on its first
        line; for a statement with a body it is the line of its keyword.
        """
        line, start, end_line, end = _place(node)
        text = self.lines[line - 1]
        if end_line != line:
            end = len(text.split("#", 1)[0].rstrip().encode())
        if not text.isascii():
            start, end = _characters(text, start), _characters(text, end)
        column, last = start + 1, end
        return Span(line, column, max(last - column + 1, 1))

    def text(self, node: ast.AST) -> str:
        """Return the source of the node on one line, without the layout that a formatter may
        change.
        """
        line, start, end_line, end = _place(node)
        if line == end_line and self.lines[line - 1].isascii():
            return " ".join(self.lines[line - 1][start:end].split())
        rows = [row.encode() for row in self.lines[line - 1 : end_line]]
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][start:]
        # Remove a comment that stands between the lines of one expression, because it is not part
        # of the expression.
        parts = [row.decode() for row in rows]
        parts = [part.split(" #", 1)[0] for part in parts[:-1]] + parts[-1:]
        joined = " ".join(" ".join(parts).split())
        if len(rows) > 1:
            joined = _TRAILING_COMMA.sub("", _SPACE_INSIDE_BRACKETS.sub("", joined))
        return joined

    def line_text(self, line: int) -> str:
        return self.lines[line - 1].strip()


#: A module that a test has made and dropped does not stay for its source.
_SOURCES: Final[WeakKeyDictionary[ModuleType, Source]] = WeakKeyDictionary()

_BODIES: Final = ("body", "orelse", "finalbody")


def _name_lambdas(function: ast.AST) -> None:
    """Write `total = lambda line: …` inside of a function as the `def` that it is."""
    for node in walk(function):
        for field in _BODIES:
            body = getattr(node, field, None)
            if isinstance(body, list):
                body[:] = map(_as_function, body)


def _as_function(node: ast.AST) -> ast.AST:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
            body: list[ast.stmt] = [ast.copy_location(ast.Return(function.body), function.body)]
            return ast.copy_location(ast.FunctionDef(name, function.args, body, []), node)
        case _:
            return node


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


#: Returns the line and column of the beginning and of the end of a node, as `ast` counts them.
_place: Callable[[ast.AST], tuple[int, int, int, int]] = operator.attrgetter(
    "lineno", "col_offset", "end_lineno", "end_col_offset"
)


def _characters(text: str, offset: int) -> int:
    """Convert an offset of `ast`, which counts bytes of UTF-8, to a number of characters."""
    return len(text.encode()[:offset].decode())


def _relative_file(module: ModuleType) -> str:
    """Return `statemachines/orders.py` for the module `statemachines.orders`, in whatever folder it
    is.
    """
    path = PurePosixPath((module.__file__ or "").replace("\\", "/"))
    depth = module.__name__.count(".") + (2 if path.stem == "__init__" else 1)
    return str(PurePosixPath(*path.parts[-depth:]))
