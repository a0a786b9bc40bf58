"""The changes of a module, one place at a time.

Left alone are documentation, annotations, imports, decorators, the words of an enumeration (they
cannot be changed in a process that has them) and asserts: an assert states a fact that always
holds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from holdfast import core

CORE: Final = Path(next(iter(core.__path__)))

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
#: The changes of one node: what replaces it (None: it is removed), and how the change reads.
Changes: TypeAlias = Callable[[ast.AST], Iterable[tuple[ast.AST | None, str]]]
#: Fields that hold no behaviour.
SILENT: Final = frozenset({"annotation", "returns", "decorator_list", "bases", "type_params"})


@dataclass(frozen=True)
class Mutant:
    """One change. `new` replaces the value of `owner` in `field`, at `index` where that is a list;
    None removes it.

    The change has an effect only when one of `lines` runs; none for code that runs once, when the
    module is imported. `text` is the line as it stands in the source.
    """

    module: str
    line: int
    text: str
    change: str
    function: str
    lines: range
    owner: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def plant(self) -> None:
        """Changes the tree that it was found in, for good."""
        if self.index is None:
            setattr(self.owner, self.field, self.new)
        elif self.new is None:
            del getattr(self.owner, self.field)[self.index]
        else:
            getattr(self.owner, self.field)[self.index] = self.new


@dataclass(frozen=True)
class Place:
    """Where the walk is: `start` is the first line of the statement, 0 outside of functions."""

    function: str = ""
    start: int = 0


class Module:
    """`name` is the file in `root`, such as "lanes.py". `more` gives further changes of a node.
    `text`: what to parse instead of the file, which may have changed since it was read.
    """

    def __init__(
        self, name: str, root: Path = CORE, more: Changes | None = None, text: str | None = None
    ) -> None:
        self.name = name
        self.path = root / name
        self._more = more
        source = self.path.read_text(encoding="utf-8") if text is None else text
        self.tree = ast.parse(source)
        self.texts = source.splitlines()
        self.mutants = list(self._of(self.tree, Place()))

    def _of(self, node: ast.AST, place: Place) -> Iterator[Mutant]:
        for field, value in ast.iter_fields(node):
            if field in SILENT:
                continue
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST) and not _is_silent(child, node):
                    at = index if isinstance(value, list) else None
                    yield from self._at(child, node, field, at, place)

    def _at(
        self, node: ast.AST, owner: ast.AST, field: str, index: int | None, place: Place
    ) -> Iterator[Mutant]:
        inner = _entered(node, place)
        line = _line(node)
        for new, change in (*_changes(node), *(self._more(node) if self._more else ())):
            last = getattr(node, "end_lineno", line)
            if isinstance(node, ast.If | ast.For | ast.While | ast.match_case):
                last = line
            start = place.start if isinstance(node, ast.arguments | ast.arg) else inner.start
            yield Mutant(
                self.name,
                line,
                self.texts[line - 1].strip(),
                change,
                inner.function,
                range(start, last + 1) if start else range(0),
                owner,
                field,
                index,
                new and ast.fix_missing_locations(ast.copy_location(new, node)),
            )
        yield from self._of(node, inner)


def _is_silent(node: ast.AST, owner: ast.AST) -> bool:
    match node:
        case ast.Constant() if isinstance(owner, ast.JoinedStr):
            return True  # the whole text is changed
        case ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()) | ast.ClassDef(bases=[ast.Name(id="StrEnum")]):
            return True
        case ast.match_case(body=[ast.Expr(value=ast.Call(func=ast.Name(id="assert_never")))]):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Assign(value=ast.Subscript(value=ast.Name(id="Literal" | "dict"))):
            return True  # a type alias without an annotation
        case _:
            return False


def _entered(node: ast.AST, place: Place) -> Place:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            inner = f"{place.function}.{name}".lstrip(".")
            return Place(inner, node.lineno if isinstance(node, ast.FunctionDef) else 0)
        case ast.arguments():
            return Place(place.function, 0)
        case ast.stmt() | ast.match_case() if place.start:
            return Place(place.function, _line(node))
        case _:
            return place


def _line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    if isinstance(node, ast.keyword):
        return node.value.lineno
    if isinstance(node, ast.comprehension):
        return node.target.lineno
    return getattr(node, "lineno", 0)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST | None, str]]:
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                ops = [*node.ops]
                ops[number] = COMPARISONS[type(operator)]()
                yield _to(node, ast.Compare(node.left, ops, node.comparators))
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield _to(node, ast.BoolOp(other, node.values))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield _to(node, node.operand)
        case ast.BinOp(op=binary):
            yield _to(node, ast.BinOp(node.left, ARITHMETIC[type(binary)](), node.right))
        case ast.AugAssign(op=binary):
            yield _to(node, ast.AugAssign(node.target, ARITHMETIC[type(binary)](), node.value))
        case ast.Constant(value=value):
            if (other_value := _other(value)) is not None:
                yield _to(node, ast.Constant(other_value))
        case ast.JoinedStr():
            marked = [ast.Constant("XX"), *node.values, ast.Constant("XX")]
            yield ast.JoinedStr(marked), "f'…' → f'XX…XX'"
        case ast.IfExp():
            yield _to(node, ast.IfExp(node.test, node.orelse, node.body))
        case ast.keyword(arg=str(name)):
            yield None, f"without {name}="
        case _:
            yield from _of_statements(node)


def _of_statements(node: ast.AST) -> Iterator[tuple[ast.AST | None, str]]:
    match node:
        case ast.If() if not _is_turned_below(node.test):
            turned = ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
            yield turned, f"if not ({ast.unparse(node.test)})"
        case ast.While():
            yield ast.While(ast.Constant(False), node.body, node.orelse), "while False"
        case ast.comprehension() if node.ifs:
            kept = ast.comprehension(node.target, node.iter, [], node.is_async)
            yield kept, f"without if {ast.unparse(node.ifs[0])}"
        case ast.match_case(guard=ast.expr() as guard):
            turned_guard = ast.UnaryOp(ast.Not(), guard)
            turned_case = ast.match_case(node.pattern, turned_guard, node.body)
            yield turned_case, f"if not ({ast.unparse(guard)})"
        case ast.Return(value=ast.expr() as value):
            # None in place of False is neither true.
            if not (
                isinstance(value, ast.Constant) and (value.value is None or value.value is False)
            ):
                yield ast.Return(ast.Constant(None)), "return None"
        case ast.Return():
            yield ast.Pass(), "return → pass"
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass(), f"{ast.unparse(node).partition(' ')[0]} → pass"
        case ast.Expr(value=ast.Call()):
            yield ast.Pass(), "call → pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass(), "assignment → pass"
        case _:
            return


def _is_turned_below(test: ast.expr) -> bool:
    """One of the other changes makes it the opposite already."""
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In()]):
            return True
        case ast.Compare(ops=[ast.NotIn()]) | ast.UnaryOp(op=ast.Not()):
            return True
        case _:
            return False


def _to(node: ast.AST, new: ast.AST) -> tuple[ast.AST, str]:
    return new, f"{ast.unparse(node)} → {ast.unparse(new)}"


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"XX{value}XX"
        case _:
            return None
