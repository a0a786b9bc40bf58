"""`TOOLS.get(name)` and `TOOLS[name]` without a call: a task is not a value."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.outside import tasks_by_name

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def refuse_uncalled_tools(
    expressions: Expressions, node: ast.expr, tools: ast.expr, key: ast.expr
) -> TypedQuery | None:
    """Refuse `TOOLS.get(name)`, or `TOOLS[name]` without a call; None for other values."""
    unit = expressions.unit
    found = tasks_by_name(unit.outside(tools)) if expressions.is_outside(tools) else None
    if found is None:
        return None
    name, text = unit.text(key), unit.text(tools)
    task = next(iter(found.values()))
    given = ", ".join(f"{one}=…" for one in inspect.signature(task.function).parameters)
    message = f"a task of `{text}` is called where it is chosen, it is no value"
    help_ = f"if {name} in {text}: x = {text}[{name}]({given})"
    return unit.refused(node, "HF003", message, help_)
