"""Small changes of generated programs: what the compiler still accepts must still run alike.

A generated program is right by construction; a changed one is what a person leaves behind in the
middle of an edit. Most are refused. Loops of `while` are left alone: without its counter such a
loop never ends.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from tests.differential.choices import Choices

_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)

Change = Callable[[], None]


def mutated(source: str, choices: Choices) -> str:
    """Return the program with one to three changes."""
    tree = ast.parse(source)
    for _ in range(1 + choices.below(3)):
        changes = list(_changes(tree, choices))
        if changes:
            choices.pick(changes)()
    changed = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    # `ast.unparse` writes some trees that Python cannot read, such as a condition in the iterator
    # of a comprehension.
    return changed if _is_python(changed) else source


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _changes(tree: ast.Module, choices: Choices) -> Iterator[Change]:
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            names = _variables(function)
            for node in (function, *_inside(function)):
                yield from _of_statements(node)
                yield from _of_expression(node, names, choices)


def _variables(function: ast.FunctionDef) -> list[str]:
    found = [node for node in _inside(function) if isinstance(node, ast.Name)]
    assigned = {name.id for name in found if isinstance(name.ctx, ast.Store)}
    return sorted(assigned | {one.arg for one in function.args.args})


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of function bodies, in the order of the source."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.While | ast.arguments) or _is_decorator(node, child):
            continue
        yield child
        yield from _inside(child)


def _is_decorator(node: ast.AST, child: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and (
        child in node.decorator_list or child is node.returns
    )


def _of_statements(node: ast.AST) -> Iterator[Change]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and len(block) > 1:
            for at in range(len(block) - 1):
                yield partial(block.__delitem__, at)
                yield partial(block.insert, at, block[at])
                yield partial(_exchange, block, at)


def _of_expression(node: ast.AST, names: list[str], choices: Choices) -> Iterator[Change]:
    match node:
        case ast.BinOp():
            yield lambda: setattr(node, "op", choices.pick(_ARITHMETIC)())
            yield lambda: _swap(node, "left", "right")
        case ast.Compare(ops=[_]):
            yield lambda: setattr(node, "ops", [choices.pick(_COMPARISONS)()])
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield lambda: setattr(node, "op", other())
        case ast.If(test=test) | ast.IfExp(test=test):
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value=bool(value)):
            yield lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield lambda: setattr(node, "value", choices.pick([value + 1, value - 1, 0]))
        case ast.Name(ctx=ast.Load()):
            yield lambda: setattr(node, "id", choices.pick(names))
        case ast.Call(keywords=[_, *_]):
            yield partial(node.keywords.__delitem__, -1)
        case ast.Call(args=[_, _, *_]):
            yield node.args.reverse
        case _:
            pass


def _exchange(block: list[ast.stmt], at: int) -> None:
    block[at], block[at + 1] = block[at + 1], block[at]


def _swap(node: ast.AST, one: str, other: str) -> None:
    first, second = getattr(node, one), getattr(node, other)
    setattr(node, one, second)
    setattr(node, other, first)
