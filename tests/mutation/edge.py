"""The changes of the code that the simulator replaces, beside those of `mutants.py`.

That code is mostly requests and settings. So a field of a request is left out, one resource is
used for another, a size in bytes becomes one in characters, a fault is not caught.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.mutation.mutants import Module, Mutant

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = "src/holdfast"
#: The parts of the report, and the folders and files of each.
PARTS: Final = {
    "aws": (f"{SOURCE}/aws",),
    "functions": ("functions",),
    "infra": (f"{SOURCE}/infra", "infra"),
    "resources": (f"{SOURCE}/resources.py",),
    "limits": (f"{SOURCE}/limits.py",),
}


@dataclass(frozen=True)
class EdgeModule:
    """One file of `PARTS`, such as "src/holdfast/aws/store.py"."""

    name: str
    part: str

    @cached_property
    def text(self) -> str:
        return (ROOT / self.name).read_text(encoding="utf-8")

    def made(self) -> Module:
        """Return the module with its mutants. One of them may be planted, once."""
        return Module(self.name, ROOT, Swaps(ast.parse(self.text)), self.text)

    @cached_property
    def mutants(self) -> list[Mutant]:
        return self.made().mutants

    def mutated(self, number: int) -> str:
        """Return the text of the file with one mutant. Only the statement around it is written
        anew, so every other line and comment stays.
        """
        module = self.made()
        mutant = module.mutants[number]
        around = next(one for one in module.tree.body if mutant.line <= (one.end_lineno or 0))
        first = min([around.lineno, *(d.lineno for d in getattr(around, "decorator_list", ()))])
        last = around.end_lineno
        mutant.plant()
        lines = [*module.texts[: first - 1], ast.unparse(around), *module.texts[last:]]
        return "\n".join(lines) + "\n"

    def names(self, line: int) -> set[str]:
        """Return the names that the statement of a module or class gives a value in this line."""
        tree = ast.parse(self.text)
        found = (one for one in ast.walk(tree) if isinstance(one, ast.Assign | ast.AnnAssign))
        within = (one for one in found if one.lineno <= line <= (one.end_lineno or 0))
        targets = (
            target
            for one in within
            for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        )
        return {one.id for one in targets if isinstance(one, ast.Name)}

    def derived(self, line: int) -> set[str]:
        """Return `names`, and the names of the module's statements that read one of them."""
        found = self.names(line)
        tree = ast.parse(self.text)
        while True:
            more = {
                name
                for node in tree.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                and any(isinstance(one, ast.Name) and one.id in found for one in ast.walk(node))
                for name in self.names(node.lineno)
            }
            if more <= found:
                return found
            found |= more


def edge_modules() -> list[EdgeModule]:
    return [
        EdgeModule(str(path.relative_to(ROOT)), part)
        for part, places in PARTS.items()
        for place in places
        for path in sorted((ROOT / place).rglob("*.py") if place[-3:] != ".py" else [ROOT / place])
    ]


class Swaps:
    """The further changes of a node. A name is exchanged for another one that the same module uses
    in the same way: an attribute of the same object, or a constant.
    """

    def __init__(self, tree: ast.Module) -> None:
        attributes: dict[str, set[str]] = defaultdict(set)
        constants = set()
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ctx=ast.Load()):
                    attributes[ast.unparse(node.value)].add(node.attr)
                case ast.Name(ctx=ast.Load()) if node.id.isupper():
                    constants.add(node.id)
        self._attributes = {owner: sorted(names) for owner, names in attributes.items()}
        self._constants = sorted(constants)

    def __call__(self, node: ast.AST) -> Iterator[tuple[ast.AST | None, str]]:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool) and value:
                yield ast.Constant(value - 1), f"{value} → {value - 1}"
            case ast.Attribute(ctx=ast.Load(), attr=name, value=owner):
                if other := _next(self._attributes[ast.unparse(owner)], name):
                    yield _to(node, ast.Attribute(owner, other, ast.Load()))
            case ast.Name(ctx=ast.Load(), id=name) if name.isupper():
                if other := _next(self._constants, name):
                    yield _to(node, ast.Name(other, ast.Load()))
            case ast.Call(
                func=ast.Name(id="len"),
                args=[ast.Call(func=ast.Attribute(attr="encode", value=text))],
            ):
                yield _to(node, ast.Call(node.func, [text], []))
            case ast.Dict(keys=keys, values=values):
                for at, key in enumerate(keys):
                    if key is not None:
                        left = ast.Dict(keys[:at] + keys[at + 1 :], values[:at] + values[at + 1 :])
                        yield left, f"without {ast.unparse(key)}:"
            case ast.BoolOp(op=operator, values=values):
                for at, left_out in enumerate(values):
                    kept = values[:at] + values[at + 1 :]
                    left_over = kept[0] if len(kept) == 1 else ast.BoolOp(operator, kept)
                    yield left_over, f"without {ast.unparse(left_out)}"
            case ast.AugAssign():
                yield ast.Pass(), "assignment → pass"
            case ast.ExceptHandler(type=ast.expr() as kind):
                nothing = ast.ExceptHandler(ast.Tuple([], ast.Load()), node.name, node.body)
                yield nothing, f"except {ast.unparse(kind)} → except ()"


def _next(names: list[str], name: str) -> str | None:
    """Return the name after this one, in a circle; None when there is no other."""
    return None if len(names) < 2 else names[(names.index(name) + 1) % len(names)]


def _to(node: ast.AST, new: ast.AST) -> tuple[ast.AST, str]:
    return new, f"{ast.unparse(node)} → {ast.unparse(new)}"
