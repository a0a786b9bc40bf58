"""Compiles `"%s of %d" % (n, total)` and `"{} of {}".format(n, total)` by way of an f-string with
the same result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from itertools import count
from string import Formatter
from typing import Final

from holdfast.compiler.context import Lowering, TypedQuery
from holdfast.compiler.rewriting import located
from holdfast.compiler.types.types import FLOAT, INT, ListOf, TupleOf

_PERCENT: Final = re.compile(r"%(?:[sd%]|\.[0-9]f)")


def lower_percent(lowering: Lowering, node: ast.BinOp) -> TypedQuery | None:
    """Return the text of `"…" % values`; None for a form that no f-string can express."""
    if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
        return None
    text = node.left.value
    values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    kinds = [kind for kind in _PERCENT.findall(text) if kind != "%%"]
    if len(kinds) != len(values) or "%" in _PERCENT.sub("", text):
        return None
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(value, ast.Starred):
            return None
        type_ = lowering.lower(value).type
        if (kind == "%d" and type_ != INT) or _is_tuple(type_):
            return None
        if kind.endswith("f") and type_ not in (INT, FLOAT):
            return None
    parts: list[ast.expr] = []
    rest = iter(values)
    for piece in re.split(r"(%(?:[sd%]|\.[0-9]f))", text):
        match piece:
            case "%s" | "%d":
                parts.append(ast.FormattedValue(next(rest), -1, None))
            case _ if piece.startswith("%."):
                spec = ast.JoinedStr([ast.Constant(piece[1:])])
                parts.append(ast.FormattedValue(next(rest), -1, spec))
            case _:
                parts.append(ast.Constant("%" if piece == "%%" else piece))
    return _joined(lowering, node, parts)


def _joined(lowering: Lowering, node: ast.expr, parts: list[ast.expr]) -> TypedQuery:
    """Lower the f-string. Each pass uses the same one, because steps may compute its parts."""
    whole = located(ast.JoinedStr(parts), node)
    return lowering.lower(lowering.unit.rewritten(node, whole))


def _is_tuple(type_: object) -> bool:
    """Return True for a tuple: `%` uses each of its parts as a value of its own."""
    return isinstance(type_, TupleOf) or (isinstance(type_, ListOf) and type_.is_tuple)


def lower_format(lowering: Lowering, node: ast.Call) -> TypedQuery | None:
    """Return the text of `"…".format(…)`; None for a form that no f-string can express."""
    match node.func:
        case ast.Attribute(value=ast.Constant(value=str(text)), attr="format"):
            pass
        case _:
            return None
    given: dict[str, ast.expr] = {str(place): value for place, value in enumerate(node.args)}
    given.update({str(word.arg): word.value for word in node.keywords})
    parts = _parts(text, given)
    if parts is None or any(isinstance(value, ast.Starred) for value in node.args):
        return None
    used = {part.value for part in parts if isinstance(part, ast.FormattedValue)}
    if used != set(given.values()):
        return None
    return _joined(lowering, node, parts)


def _parts(text: str, given: Mapping[str, ast.expr]) -> list[ast.expr] | None:
    parts: list[ast.expr] = []
    try:
        pieces = list(Formatter().parse(text))
    except ValueError:
        # A brace has no partner, so Python refuses the text.
        return None
    names = [name for _, name, _, _ in pieces if name is not None]
    if "" in names and any(name.isdigit() for name in names):
        # Python refuses a text that mixes `{}` and `{0}`.
        return None
    numbers = map(str, count())
    for before, name, spec, conversion in pieces:
        parts.append(ast.Constant(before))
        if name is None:
            continue
        value = given.get(name or next(numbers))
        if value is None or conversion is not None or "{" in (spec or ""):
            return None
        written = ast.JoinedStr([ast.Constant(spec)]) if spec else None
        parts.append(ast.FormattedValue(value, -1, written))
    return parts
