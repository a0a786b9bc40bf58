"""JSONata expressions: parsed once, evaluated many times, by any thread.

The problem
-----------
A worker evaluates several expressions for each state. jsonata-python
implements the whole language, but it interprets the syntax tree, and that is slow. An expression
comes from a definition, so it may also be wrong or hostile. It must not block a worker that serves
other executions.

Two engines
-----------
1. `closures.py` compiles the common part of the language into Python
closures. It refuses each expression with a syntax node that it does not know (`UnsupportedNode`).

2. `fallback.py` runs jsonata-python. It is the reference: the closures must give the same results.

    text ──► fallback.parse ──► syntax tree ──► closures compile it?
                                                  │ yes                 │ no
                                                  ▼                     │
                                            run the closures            │
                                              │          │ Declined     │
                                              ▼          ▼              ▼
                                            value      run jsonata-python ──► value or error

* The parser of jsonata-python parses every expression, so both engines read the same tree. A lookup
  such as `$order.lines` is the exception: a regular expression reads it (`_lookup`).
* The first decision is made once for each expression, when it is compiled. `is_native` is its
  result.
* The second decision is made in each evaluation. A closure raises `Declined` when a value has an
  unexpected type. jsonata-python then evaluates the whole expression again and finds the rare
  meaning or the right error. This is safe, because an evaluation has no effects.
* An unexpected Python error in a closure has the same consequence as `Declined`. A mistake in the
  closures makes an expression slower, but it does not fail an execution.
* A `JsonataError` from a closure is final. A used-up budget is one of these errors.

    $order.total > 100                 closures
    $sum($order.lines.(qty * price))   closures
    $now()                             jsonata-python: the closures have no clock
    $map($names, $uppercase)           jsonata-python: a built-in function as a value

Budgets
-------
One evaluation has one budget (`EvaluationRun`): 75,000 steps and 2,000,000 items,
together less than a second of work. A step is one evaluated node or call, and costs 25 items.
`costs.py` has the cost of each operation on large values. A clock (0.75 s of the thread's time)
stops an operation whose cost there is too low. After `Declined`, jsonata-python continues with the
rest of the same budget, so both engines together never use more than one budget. A used-up budget
is the error U1001.

The dialect
-----------
The dialect is AWS's: JSONata 2.0.6 without `$eval`, with `$partition`,
`$range`, `$hash`, `$random`, `$uuid` and `$parse`. The caller passes time and random numbers to
each evaluation, as an `EvaluationMoment`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from holdfast.asl.jsonata import closures, paths
from holdfast.asl.jsonata.runtime import CompiledExpression, EvaluationRun
from holdfast.asl.jsonata.tree import UnsupportedNode, is_lookup
from holdfast.asl.jsonata.values import (
    BUDGET_CODE,
    BUILT_INS,
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

_LOOKUP: Final = re.compile(r"\$([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.ASCII)
_LOOKUP_CHARACTERS_MAX: Final = 200
#: The words of the language. The parser does not read them as names of fields.
_WORDS: Final = frozenset({"and", "or", "in", "true", "false", "null", "function"})


@lru_cache(maxsize=_CACHED_EXPRESSIONS_MAX)
def compile_expression(text: str) -> ParsedExpression:
    """Return the expression of a text without its `{%` and `%}`. Raises JsonataError for a text
    that cannot be parsed.
    """
    lookup = _lookup(text)
    if lookup is not None:
        return _Expression(text, None, lookup)
    from holdfast.asl.jsonata import fallback  # noqa: PLC0415  # 90 ms to import

    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise JsonataError(
            "S0500", f"An expression may have at most {EXPRESSION_CHARACTERS_MAX:,} characters"
        )
    tree = fallback.parse(text)
    try:
        compiled = closures.compile_closures(tree, BUILT_INS)
    except (UnsupportedNode, RecursionError):
        compiled = None
    return _Expression(text, tree, compiled)


def _lookup(text: str) -> CompiledExpression | None:
    """Return the closures of a text such as `$order.lines`; None for any other text.

    Most expressions of a small workflow have this form. They need no parser, so that a cold start
    need not import jsonata-python.
    """
    found = _LOOKUP.fullmatch(text) if len(text) <= _LOOKUP_CHARACTERS_MAX else None
    if found is None:
        return None
    variable, *names = found[1].split(".")
    if variable in BUILT_INS or not _WORDS.isdisjoint(names):
        return None
    return CompiledExpression(paths.binding_path(variable, tuple(names)), frozenset(), grows=False)


class _Expression:
    """An expression that compiled closures evaluate if they can, and jsonata-python otherwise.

    A lookup is parsed only when its tree is needed.
    """

    __slots__ = ("_compiled", "_tree", "text")

    def __init__(self, text: str, tree: object, compiled: CompiledExpression | None) -> None:
        self.text = text
        self._tree = tree
        self._compiled = compiled

    @property
    def tree(self) -> object:
        if self._tree is None:
            from holdfast.asl.jsonata import fallback  # noqa: PLC0415

            self._tree = fallback.parse(self.text)
        return self._tree

    @property
    def is_lookup(self) -> bool:
        return self._tree is None or is_lookup(self._tree)

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
                # The exception is nearly always Declined: jsonata-python must evaluate the
                # expression, or find the right error. Any other exception is a mistake in a
                # closure, which must not fail an execution either. The second evaluation continues
                # with the same budget, so that both together stay within it.
                pass
        from holdfast.asl.jsonata import fallback  # noqa: PLC0415

        return fallback.evaluate(self.tree, run, moment)
