"""JSONata expressions, parsed once and evaluated many times, by any thread.

Two engines stand behind one door. `_jsonata_closures` compiles the part of the language that
workflows live on into Python closures; it refuses every syntax node that it does not know, and what
it refuses runs on jsonata-python (`_jsonata_fallback`), the reference. Both are imported when the
first expression is compiled.

The dialect is AWS's: JSONata 2.0.6 without `$eval`, with `$partition`, `$range`, `$hash`,
`$random`, `$uuid` and `$parse`. Clock and chance come in with each evaluation, as a `Moment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from holdfast.asl import _jsonata_closures as closures
from holdfast.asl._jsonata_runtime import Run
from holdfast.asl._jsonata_tree import Refused
from holdfast.asl._jsonata_values import (
    BUDGET_CODE,
    EXPRESSION_CHARACTERS_MAX,
    UNDEFINED,
    Expression,
    Json,
    JsonataError,
    Moment,
    Undefined,
)

__all__ = [
    "BUDGET_CODE",
    "UNDEFINED",
    "Expression",
    "Json",
    "JsonataError",
    "Moment",
    "Undefined",
    "compile_expression",
]

_CACHED_EXPRESSIONS_MAX: Final = 4_096

_Interpret: TypeAlias = "Callable[[object, Run, Moment], Json | Undefined]"


@lru_cache(maxsize=_CACHED_EXPRESSIONS_MAX)
def compile_expression(text: str) -> Expression:
    """The expression of a text without its `{%` and `%}`. Raises JsonataError where it ends."""
    from holdfast.asl import _jsonata_fallback as fallback  # noqa: PLC0415  # 90 ms to import

    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise JsonataError(
            "S0500", f"An expression may have at most {EXPRESSION_CHARACTERS_MAX:,} characters"
        )
    tree = fallback.parse(text)
    try:
        compiled = closures.Compiled(tree, fallback.FUNCTION_NAMES)
    except (Refused, RecursionError):
        compiled = None
    return _Expression(text, tree, compiled, fallback.evaluate)


class _Expression:
    """Closures first, where there are any; jsonata-python for the rest."""

    __slots__ = ("_compiled", "_interpret", "text", "tree")

    def __init__(
        self, text: str, tree: object, compiled: closures.Compiled | None, interpret: _Interpret
    ) -> None:
        self.text = text
        self.tree = tree
        self._compiled = compiled
        self._interpret = interpret

    @property
    def is_native(self) -> bool:
        return self._compiled is not None

    def evaluate(self, bindings: Mapping[str, Json], moment: Moment) -> Json | Undefined:
        run = Run(bindings)
        if self._compiled is not None:
            try:
                return self._compiled.evaluate(run)
            except JsonataError:
                raise
            except Exception:  # noqa: BLE001, S110
                # Nearly always Declined: jsonata-python knows what is meant, or which error it is.
                # Whatever else went wrong in a closure is no reason to fail an execution either.
                # It goes on with the budget that is left: one evaluation has one.
                pass
        return self._interpret(self.tree, run, moment)
