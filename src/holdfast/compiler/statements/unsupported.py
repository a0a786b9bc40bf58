"""Refusals of statements that workflows cannot have, with what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.compiler.statements.local_names import bound_names
from holdfast.compiler.types.types import REFUSED

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def refuse_statement(statements: Statements, node: ast.stmt) -> None:
    kind, help_ = _NO_STATEMENTS.get(
        type(node), (type(node).__name__, "do it inside a @pure function or a @task")
    )
    code = "HF021" if isinstance(node, ast.Nonlocal) else "HF001"
    message = f"{kind} is not part of the workflow language"
    statements.unit.refuse(node, code, message, help_)
    for name in bound_names(node):
        statements.hold(name, REFUSED)


_NO_STATEMENTS: Final[Mapping[type[ast.stmt], tuple[str, str]]] = MappingProxyType(
    {
        ast.AsyncFor: ("async for", "for line in lines: …"),
        ast.AsyncFunctionDef: ("async def", "def branch(): …"),
        ast.AsyncWith: ("async with", "with compensating() as undo: …"),
        ast.ClassDef: ("class", "move the class to the top of the module"),
        ast.Delete: ("del", "give the variable another value"),
        ast.Global: ("global", "pass the value as an argument"),
        ast.Import: ("import", "move the import to the top of the module"),
        ast.ImportFrom: ("import", "move the import to the top of the module"),
        ast.Nonlocal: (
            "nonlocal",
            "return the value from the branch and combine the results afterwards",
        ),
        ast.TryStar: ("except*", "try: … except OutOfStock: …"),
    }
)
