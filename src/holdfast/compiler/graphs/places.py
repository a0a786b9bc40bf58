"""The places of the parts of a graph in its source: in the calls of a module, or in a JSON
document.
"""

from __future__ import annotations

import ast
import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Final, TypeAlias

from holdfast.api.graph_model import InJson, InPython, Step, WrittenAt
from holdfast.asl.json_text import positions
from holdfast.compiler.diagnostics import Diagnostic
from holdfast.compiler.source import Source, Span

#: The path from a step to one of its parts, such as `("depends_on", 0)` or `("arguments", "rows")`.
#: `("parameter", "rows")` is the key of that argument, and the empty path is the step itself.
DocumentPath: TypeAlias = tuple[str | int, ...]

#: The positions of those arguments of `step` that may be positional, by the names that they have in
#: JSON.
_POSITIONS: Final[Mapping[str, int]] = {"id": 0, "workflow_id": 0, "type": 1}
_DECODER: Final = json.JSONDecoder()
_Positions: TypeAlias = tuple[int | None, int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Spot:
    """One place in the source; `line` is the whole source line."""

    file: str
    span: Span
    line: str

    def refusal(self, code: str, message: str, help_: str) -> Diagnostic:
        span = self.span
        return Diagnostic(
            self.file, span.line, span.column, code, message, help_, self.line, span.width
        )


def spot_of(written: WrittenAt, path: DocumentPath = ()) -> Spot:
    """Return the most precise known place of `path`."""
    match written:
        case InPython(module, code, instruction):
            return _in_python(module, code, instruction, path)
        case InJson(file=file, text=text, location=location):
            return _in_json(file, text, location, path)


def refuse(step: Step, path: DocumentPath, code: str, message: str, help_: str) -> Diagnostic:
    """Return the refusal of a part of a step, with the position of the part in the document."""
    return spot_of(step.written, path).refusal(code, message, help_)


# Python.


def _in_python(module: str, code: CodeType, instruction: int, path: DocumentPath) -> Spot:
    line, end_line, start, end = _positions_of(code)[instruction // 2]
    source = _source_of(module)
    if source is None or line is None or end_line is None or start is None or end is None:
        return Spot(code.co_filename, Span(line or 1, 1, 1), "")
    whole = ast.Pass(lineno=line, end_lineno=end_line, col_offset=start, end_col_offset=end)
    node = _part(_call(source, (line, end_line, start, end)), path) if path else None
    span = source.span(node or whole)
    return Spot(source.file, span, source.lines[span.line - 1])


@lru_cache(maxsize=64)
def _positions_of(code: CodeType) -> list[_Positions]:
    return list(code.co_positions())


def _source_of(module: str) -> Source | None:
    try:
        return Source.of(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return None


def _call(source: Source, place: _Positions) -> ast.Call | None:
    """Return the node of a call. The module is parsed only when something is refused."""
    return _calls(source.lines).get(place)


@lru_cache(maxsize=8)
def _calls(lines: tuple[str, ...]) -> dict[_Positions, ast.Call]:
    nodes = (node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call))
    return {
        (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset): node for node in nodes
    }


def _part(call: ast.Call | None, path: DocumentPath) -> ast.expr | None:
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    name, *rest = path
    by_name: dict[str, ast.expr] = {
        keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None
    }
    place = _POSITIONS.get(str(name), len(call.args))
    node = call.args[place] if place < len(call.args) else by_name.get(str(name))
    if name == "parameter":
        return _key(by_name.get("arguments"), rest[0])
    return node if node is None or not rest else _item(node, rest[0]) or node


def _item(node: ast.expr, key: str | int) -> ast.expr | None:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) if isinstance(key, int):
            return items[key] if key < len(items) else None
        case ast.Dict(keys=keys, values=values):
            found = zip(keys, values, strict=True)
            is_named = (value for at, value in found if _is_text(at, key))
            return next(is_named, None)
        case _:
            return None


def _key(node: ast.expr | None, text: str | int) -> ast.expr | None:
    keys = node.keys if isinstance(node, ast.Dict) else []
    return next((key for key in keys if _is_text(key, text)), node)


def _is_text(node: ast.expr | None, text: str | int) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


# JSON.


def _in_json(file: str, text: str, location: str, path: DocumentPath) -> Spot:
    places, lines = _places(text), _lines(text)
    inside = ("arguments", *path[1:]) if path[:1] == ("parameter",) else path
    steps = (f"[{part}]" if isinstance(part, int) else f"/{part}" for part in inside)
    known = list(itertools.accumulate(steps, initial=location.removesuffix("/")))
    line, column = next(places[one or "/"] for one in reversed(known) if (one or "/") in places)
    row = lines[line - 1]
    return Spot(file, Span(line, column, _width(row, column - 1)), row)


@lru_cache(maxsize=2)
def _lines(text: str) -> list[str]:
    return text.splitlines() or [""]


@lru_cache(maxsize=2)
def _places(text: str) -> Mapping[str, tuple[int, int]]:
    return positions(text)


def _width(row: str, begin: int) -> int:
    """Return the width of the value that begins here; for a value of several lines, that of its
    first line.
    """
    try:
        return _DECODER.raw_decode(row, begin)[1] - begin
    except ValueError:
        return max(len(row.rstrip()) - begin, 1)
