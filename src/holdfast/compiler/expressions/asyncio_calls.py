"""The words of a workflow in place of `asyncio.gather`, `asyncio.sleep` and `print`."""

from __future__ import annotations

import ast

from holdfast.compiler.context import Unit

_PLACES = {"asyncio.tasks": ("gather", "sleep", "wait_for"), "builtins": ("print",)}


def without_asyncio(unit: Unit, node: ast.Call, found: object) -> str | None:
    """Return the code to write instead of this call; None for another function."""
    module, name = getattr(found, "__module__", None), getattr(found, "__name__", "")
    is_known = name in _PLACES.get(str(module), ()) or (
        name in ("wait_for", "timeout") and module in ("asyncio.tasks", "asyncio.timeouts")
    )
    if not is_known:
        return None
    texts = [unit.text(one) for one in node.args]
    match name:
        case "gather":
            return _side_by_side(unit, node, texts)
        case "sleep" if texts:
            return f"sleep(seconds({texts[0]}))"
        case "wait_for" if len(texts) > 1:
            return f"with timeout(seconds({texts[1]})): {texts[0]}"
        case "print":
            return _logged(node, texts)
        case _:
            return None


def _side_by_side(unit: Unit, node: ast.Call, texts: list[str]) -> str:
    match node.args:
        case [
            ast.Starred(
                value=(
                    ast.ListComp(elt=element, generators=[part])
                    | ast.GeneratorExp(elt=element, generators=[part])
                )
            )
        ] if not part.ifs:
            target, items = unit.text(part.target), unit.text(part.iter)
            return f"each({items}, lambda {target}: {unit.text(element)})"
        case _:
            return f"parallel({', '.join(f'lambda: {text}' for text in texts)})"


def _logged(node: ast.Call, texts: list[str]) -> str:
    if len(texts) == 1 and isinstance(node.args[0], ast.JoinedStr | ast.Constant):
        return f"log.info({texts[0]}), with `log = logging.getLogger(__name__)` in the module"
    form = " ".join(["%s"] * len(texts))
    values = "".join(f", {text}" for text in texts)
    return f'log.info("{form}"{values}), with `log = logging.getLogger(__name__)` in the module'
