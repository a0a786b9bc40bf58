"""Finds out whether a waiting line is in a `finally` body, where it is never cancelled.

Python has no function for that, so the line numbers of the running functions are compared.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, TypeAlias

#: A `finally` body that runs: the frame in which it runs, its first line and its last line.
Final_: TypeAlias = tuple[int, int, int]

_NOT_THE_AUTHORS: Final = (str(Path(__file__).parents[1]), contextlib.__file__)


def open_finals(frame: FrameType | None) -> frozenset[Final_]:
    found: set[Final_] = set()
    while frame is not None:
        for begin, end in _finals_of(frame.f_code):
            if begin <= frame.f_lineno <= end:
                found.add((id(frame), begin, end))
        frame = frame.f_back
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def _finals_of(code: CodeType) -> tuple[tuple[int, int], ...]:
    if code.co_filename.startswith(_NOT_THE_AUTHORS):
        return ()
    return _finals_by_function(code.co_filename).get((code.co_name, code.co_firstlineno), ())


@functools.lru_cache(maxsize=256)
def _finals_by_function(filename: str) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    text = "".join(linecache.getlines(filename))
    if "finally" not in text:
        return {}
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {
        (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): tuple(
            _finals_in(node)
        )
        for node in functions
    }


def _finals_in(function: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try) and node.finalbody:
            last = node.finalbody[-1]
            yield node.finalbody[0].lineno, last.end_lineno or last.lineno
        yield from _finals_in(node)
