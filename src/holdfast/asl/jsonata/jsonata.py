"""JSONata expressions, parsed once and evaluated many times, by any thread.

Two engines stand behind one door. `closures.py` compiles the part of the language that
workflows live on into Python closures; it refuses every syntax node that it does not know, and what
it refuses runs on jsonata-python (`fallback.py`), the reference. Both are imported when the
first expression is compiled.

The dialect is AWS's: JSONata 2.0.6 without `$eval`, with `$partition`, `$range`, `$hash`,
`$random`, `$uuid` and `$parse`. Clock and chance come in with each evaluation, as a `Moment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from holdfast.asl.jsonata import closures
from holdfast.asl.jsonata.runtime import EvaluationRun
from holdfast.asl.jsonata.tree import UnsupportedNode
from holdfast.asl.jsonata.values import (
    BUDGET_CODE,
    EXPRESSION_CHARACTERS_MAX,
    UNDEFINED,
    EvaluationMoment,
    JsonataError,
    ParsedExpression,
    StrictJson,
    Undefined,
)

__all__ = [
    "BUDGET_CODE",
    "UNDEFINED",
    "EvaluationMoment",
    "JsonataError",
    "ParsedExpression",
    "StrictJson",
    "Undefined",
    "compile_expression",
]

_CACHED_EXPRESSIONS_MAX: Final = 4_096

_Interpret: TypeAlias = (
    "Callable[[object, EvaluationRun, EvaluationMoment], StrictJson | Undefined]"
)


@lru_cache(maxsize=_CACHED_EXPRESSIONS_MAX)
def compile_expression(text: str) -> ParsedExpression:
    """The expression of a text without its `{%` and `%}`. Raises JsonataError where it ends."""
    from holdfast.asl.jsonata import fallback  # noqa: PLC0415  # 90 ms to import

    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise JsonataError(
            "S0500", f"An expression may have at most {EXPRESSION_CHARACTERS_MAX:,} characters"
        )
    tree = fallback.parse(text)
    try:
        compiled = closures.CompiledExpression(tree, fallback.FUNCTION_NAMES)
    except (UnsupportedNode, RecursionError):
        compiled = None
    return _Expression(text, tree, compiled, fallback.evaluate)


class _Expression:
    """Closures first, where there are any; jsonata-python for the rest."""

    __slots__ = ("_compiled", "_interpret", "text", "tree")

    def __init__(
        self,
        text: str,
        tree: object,
        compiled: closures.CompiledExpression | None,
        interpret: _Interpret,
    ) -> None:
        self.text = text
        self.tree = tree
        self._compiled = compiled
        self._interpret = interpret

    @property
    def is_native(self) -> bool:
        return self._compiled is not None

    def evaluate(
        self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment
    ) -> StrictJson | Undefined:
        run = EvaluationRun(bindings)
        if self._compiled is not None:
            try:
                return self._compiled.evaluate(run)
            except JsonataError:
                raise
            except Exception:  # noqa: BLE001, S110
                # Nearly always Declined: jsonata-python knows what is meant, or which error it is.
                # An unexpected failure of a closure must not fail an execution either.
                # It goes on with the budget that is left: one evaluation has one.
                pass
        return self._interpret(self.tree, run, moment)
