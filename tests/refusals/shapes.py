"""The comparison of code with the help of a refusal: equal shape, with any names and values."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

import holdfast

_WORDS: Final = frozenset({*dir(builtins), *holdfast.__all__})
_QUOTED: Final = re.compile(r"`([^`]+)`")
_KEYWORD: Final = re.compile(r"\w+=(?!=)")
#: A word in a sentence.
_NO_CODE: Final = (ast.Name, ast.Raise, ast.Return)
_IGNORED: Final = frozenset({"ctx", "type_comment", "kind", "returns", "decorator_list"})


def shapes_in(help_: str) -> list[ast.AST]:
    """The code of a help, each piece that may be typed by itself; empty where it is prose."""
    whole = _parsed(help_)
    if whole is not None:
        return [*whole.elts] if isinstance(whole, ast.Tuple) else [whole]
    pieces = [_parsed(piece) for piece in _QUOTED.findall(help_)]
    shapes = [piece for piece in pieces if piece and not isinstance(piece, _NO_CODE)]
    if shapes:
        return shapes
    head = help_.split(" …", 1)[0] + " …"
    started = _parsed(head) if head != help_ else None
    return [] if started is None else [started]


def _parsed(text: str) -> ast.AST | None:
    """The one statement, expression, keyword, `case` or `except` that `text` is."""
    code = text.replace("…", "...").rstrip()
    forms = [code, f"{code} ...", f"{code}: ..."]
    if code.startswith("@"):
        forms = [code[1:]]
    elif code.startswith("case "):
        forms = [f"match 1:\n {form}" for form in forms]
    elif code.startswith("except "):
        forms = [f"try: ...\n{form}" for form in forms]
    elif _KEYWORD.match(code) and " = " not in code.split("(", 1)[0]:
        forms = [f"f({code})"]
    for form in forms:
        try:
            statement = ast.parse(form).body[0]
        except (SyntaxError, IndexError):
            continue
        return _inner(statement, form)
    return None


def _inner(statement: ast.stmt, form: str) -> ast.AST:
    match statement:
        case ast.Match(cases=[case]):
            return case.pattern
        case ast.Try(handlers=[handler]):
            return handler
        case ast.Expr(value=ast.Call(keywords=[keyword])) if form.startswith("f("):
            return keyword
        case ast.Expr(value=value):
            return value
    return statement


def follows(tree: ast.AST, shape: ast.AST) -> bool:
    return any(_fits(shape, node) for node in ast.walk(tree))


def _fits(shape: Any, node: Any) -> bool:
    match shape:
        case _ if _is_open(shape):
            return True
        case ast.Constant():
            return isinstance(node, ast.expr)
        case ast.Name(id=name) if name in _WORDS:
            return isinstance(node, ast.Name) and node.id == name
        case ast.Name() | ast.Attribute():
            return isinstance(node, ast.expr)
        case ast.AnnAssign(annotation=annotation, value=None) if isinstance(node, ast.arg):
            return _fits(annotation, node.annotation)
        case ast.If(test=test) if isinstance(node, ast.If | ast.IfExp | ast.Assert | ast.While):
            return any(_fits(test, part) for part in ast.walk(node.test))
        case ast.Call():
            return isinstance(node, ast.Call) and _fits_call(shape, node)
        case ast.AST():
            return type(shape) is type(node) and all(
                _fits(value, getattr(node, name, None))
                for name, value in ast.iter_fields(shape)
                if name not in _IGNORED
            )
        case list():
            return isinstance(node, list) and all(_pairs(shape, node))
        case str():
            return isinstance(node, str)
        case _:
            return bool(shape == node)


def _is_open(shape: Any) -> bool:
    """`…`, whatever stands there."""
    node = shape.value if isinstance(shape, ast.Expr) else shape
    return isinstance(node, ast.Constant) and node.value is ...


def _pairs(shapes: list[Any], nodes: list[Any]) -> Iterator[bool]:
    """Yield pairs of statements. A body may have more statements; `…` stands for any number."""
    for shape, node in zip_longest(shapes, nodes):
        if shape is None or _is_open(shape):
            return
        yield _fits(shape, node)


def _fits_call(shape: ast.Call, node: ast.Call) -> bool:
    if isinstance(shape.func, ast.Attribute):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != shape.func.attr:
            return False
    elif not _fits(shape.func, node.func):
        return False
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    named = all(_fits(one.value, given.get(one.arg)) for one in shape.keywords)
    return named and all(_pairs(list(shape.args), list(node.args)))
