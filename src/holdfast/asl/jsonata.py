"""JSONata expressions, parsed once and evaluated many times, by any thread.

Two engines stand behind one door. `_jsonata_closures` compiles the part of the language that
workflows live on into Python closures; it refuses every syntax node that it does not know, and what
it refuses runs on jsonata-python (`_jsonata_fallback`), the reference. Both are imported when the
first expression is compiled.

The dialect is AWS's: JSONata 2.0.6 without `$eval`, with `$partition`, `$range`, `$hash`,
`$random`, `$uuid` and `$parse`. Clock and chance come in with each evaluation, as a `Moment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from holdfast.asl._jsonata_values import (
    UNDEFINED,
    Expression,
    Json,
    JsonataError,
    Moment,
    Undefined,
)

__all__ = [
    "UNDEFINED",
    "Expression",
    "Json",
    "JsonataError",
    "Moment",
    "Undefined",
    "compile_expression",
]

_CACHED_EXPRESSIONS_MAX: Final = 4_096


@lru_cache(maxsize=_CACHED_EXPRESSIONS_MAX)
def compile_expression(text: str) -> Expression:
    """The expression of a text without its `{%` and `%}`. Raises JsonataError where it ends."""
    from holdfast.asl import _jsonata_fallback as fallback  # noqa: PLC0415  # 90 ms to import

    return _Interpreted(text, fallback.parse(text))


class _Interpreted:
    is_native = False

    def __init__(self, text: str, tree: Any) -> None:
        self.text = text
        self._tree = tree

    def evaluate(self, bindings: Mapping[str, Json], moment: Moment) -> Json | Undefined:
        from holdfast.asl import _jsonata_fallback as fallback  # noqa: PLC0415

        return fallback.evaluate(self._tree, bindings, moment)
