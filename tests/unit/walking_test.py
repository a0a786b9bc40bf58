"""The compiler's walk through a syntax tree finds what that of Python's library finds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from holdfast.compiler.walking import children, walk

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "tests" / "golden").glob("*.py"))[::5]


@pytest.mark.parametrize("path", [*SOURCES, Path(__file__)], ids=lambda path: path.name)
def test_the_nodes_are_those_of_the_library_in_the_same_order(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert children(node) == list(ast.iter_child_nodes(node))
    assert list(walk(tree)) == list(ast.walk(tree))


def test_every_field_with_nodes_is_looked_at() -> None:
    """A node in each field of each class, whatever the field is for."""
    classes = [one for one in vars(ast).values() if isinstance(one, type)]
    for cls in classes:
        # A class with `__new__` stands for one of an older grammar.
        is_old = "__new__" in vars(cls)
        if not issubclass(cls, ast.AST) or issubclass(cls, ast.Constant) or is_old:
            continue
        node = cls()
        for field in cls._fields:
            setattr(node, field, ast.Pass())
        missing = set(ast.iter_child_nodes(node)) - set(children(node))
        texts = {name for name in cls._fields if getattr(node, name) in missing}
        assert texts <= TEXTS, cls


#: The fields of Python's grammar whose types are `identifier`, `int` and `string`, wherever a class
#: has them.
TEXTS = {
    "asname",
    "attr",
    "conversion",
    "id",
    "is_async",
    "kind",
    "level",
    "module",
    "simple",
    "type_comment",
}
