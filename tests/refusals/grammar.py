"""Random Python: trees drawn from the grammar that `ast` states about itself."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
import warnings
from random import Random
from typing import Any, Final

_FIELD: Final = re.compile(r"(\w+)([?*]?) (\w+)")
_SIZE_MAX: Final = 120
_CONSTANTS: Final = (0, 1, -1, 2, 2**60, 0.5, "", "a", "red", "{% 1 %}", True, False, None, ..., b"x", 1j)  # fmt: skip  # noqa: E501
_LOCAL: Final = ("a", "b", "n", "text", "order", "lines", "flag", "x", "err")
_ATTRIBUTES: Final = (
    "id", "lines", "sku", "qty", "coupon", "status", "append", "get", "items", "upper", "split",
    "options", "RED", "value", "model_copy", "join", "extend", "total_seconds", "missing",
)  # fmt: skip
_PARAMETERS: Final = "order: Order, n: int, text: str, flag: bool, lines: list[Line], x: Any"

#: More of the constructs that workflows are made of, fewer of those that are refused at once.
_WEIGHTS: Final = {
    ast.Assign: 8, ast.Expr: 5, ast.If: 4, ast.For: 4, ast.While: 2, ast.Try: 4, ast.With: 3,
    ast.Return: 2, ast.Raise: 2, ast.Match: 3, ast.AugAssign: 3, ast.FunctionDef: 2,
    ast.Name: 14, ast.Constant: 10, ast.Attribute: 10, ast.Call: 12, ast.Compare: 4,
    ast.BinOp: 4, ast.Lambda: 3, ast.Subscript: 4, ast.List: 2, ast.Dict: 2, ast.JoinedStr: 2,
    ast.Load: 1,
}  # fmt: skip
_NEVER: Final = (ast.TypeIgnore, ast.FormattedValue, ast.Interactive, ast.Await)


class Grammar:
    """Draws functions; `words` are the globals that they may name."""

    def __init__(self, random: Random, words: tuple[str, ...]) -> None:
        self._random = random
        self._words = (*words, *(name for name in dir(builtins) if name[0] != "_"))
        self._left = 0

    def function(self) -> str:
        """The text of a workflow: statements that are Python, each drawn until it is."""
        lines: list[str] = []
        wanted = self._random.randint(1, 7)
        while len(lines) < wanted:
            self._left = _SIZE_MAX
            text = _text(self._node(ast.stmt))
            if text is not None:
                lines.append(text)
        body = textwrap.indent("\n".join(lines), "    ")
        return f"@workflow\ndef flow({_PARAMETERS}):\n{body}"

    def _node(self, kind: type[ast.AST]) -> Any:
        self._left -= 1
        choices = [one for one in kind.__subclasses__() if _is_grammar(one)] or [kind]
        if self._left <= 0:
            small: dict[type[ast.AST], type[ast.AST]] = {
                ast.expr: ast.Name, ast.stmt: ast.Pass, ast.pattern: ast.MatchAs,
            }  # fmt: skip
            choices = [small[kind]] if kind in small else choices
        weights = [_WEIGHTS.get(one, 1) for one in choices]
        chosen = self._random.choices(choices, weights)[0]
        match chosen.__name__:
            case "Constant":
                return ast.Constant(self._random.choice(_CONSTANTS))
            case "JoinedStr":
                return self._joined()
        fields = {name: self._field(type_, many, name) for type_, many, name in _fields(chosen)}
        return chosen(**fields)

    def _target(self) -> ast.expr:
        draw = self._random.random()
        name = ast.Name(self._random.choice(_LOCAL), ast.Store())
        if draw < 0.6:
            return name
        if draw < 0.75:
            return ast.Tuple([self._target() for _ in range(2)], ast.Store())
        if draw < 0.85:
            return ast.Starred(name, ast.Store())
        if draw < 0.93:
            return ast.Subscript(name, self._node(ast.expr), ast.Store())
        return ast.Attribute(name, self._random.choice(_ATTRIBUTES), ast.Store())

    def _joined(self) -> ast.JoinedStr:
        shown = ast.FormattedValue(self._node(ast.expr), self._random.choice((-1, -1, 114)), None)
        return ast.JoinedStr([ast.Constant("a"), shown])

    def _field(self, type_: str, many: str, name: str) -> Any:
        if many == "?" and (self._left <= 0 or self._random.random() < 0.5):
            return None
        if many == "*":
            least = 1 if name in ("body", "targets", "names", "items", "cases", "handlers") else 0
            most = self._random.choice((1, 1, 2, 3))
            if self._left <= 0 or name in ("decorator_list", "type_params"):
                most = 0
            return [self._one(type_, name) for _ in range(max(least, most))]
        return self._one(type_, name)

    def _one(self, type_: str, name: str) -> Any:
        if type_ == "expr" and name in ("target", "targets", "optional_vars"):
            return self._target()
        match type_:
            case "identifier" if name == "attr":
                return self._random.choice(_ATTRIBUTES)
            case "identifier" if name == "id" and self._random.random() < 0.5:
                return self._random.choice(self._words)
            case "identifier":
                return self._random.choice(_LOCAL)
            case "int":
                return 1 if name == "simple" else 0
            case "string":
                return None
            case "constant":
                return self._random.choice(_CONSTANTS)
            case _:
                kind: type[ast.AST] = getattr(ast, type_)
                return self._node(kind)


def _text(statement: ast.stmt) -> str | None:
    """Return the text; None when Python has no text for the tree: `ast` checks less than the
    parser.
    """
    try:
        text = ast.unparse(ast.fix_missing_locations(statement))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(f"def flow():\n{textwrap.indent(text, ' ')}", "_", "exec")
    except Exception:  # noqa: BLE001 - as above
        return None
    return text


def _is_grammar(kind: type[ast.AST]) -> bool:
    return kind.__module__ == "ast" and kind not in _NEVER and not hasattr(kind, "_deprecated")


def _fields(kind: type[ast.AST]) -> list[tuple[str, str, str]]:
    """(type, "" or "?" or "*", name) of each field, as the grammar has it."""
    rule = (kind.__doc__ or "").partition("(")[2]
    return [found for found in _FIELD.findall(rule) if found[2] in kind._fields]
