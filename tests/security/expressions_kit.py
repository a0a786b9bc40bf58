"""The input of expressions, and the bounds of an evaluation."""

from __future__ import annotations

import json
from typing import Any, Final

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.scope import PathScope
from holdfast.asl.template import EvaluationError, StateError, compile_template

MOMENT: Final = EvaluationMoment(now_ms=1_790_000_000_000, draw=lambda: 0.5)
DATA: Final[dict[str, Any]] = {
    "text": "text",
    "number": 7,
    "null": None,
    "items": [1, [2], {"a": 3}],
    "object": {"a": {"a": 1}},
    "long": ["a" * 10_000 + "b"],
}
BINDINGS: Final[dict[str, Any]] = {
    "states": {"input": DATA, "context": {"Execution": {"Id": "e"}}},
    "a": [{"x": 1, "t": "b"}, 2, None],
    "v": {"x": [1, 2, 3]},
}
#: The result of an expression: far more than a state may return, far less than a worker's memory.
RESULT_CHARACTERS_MAX: Final = 64_000_000


def scope() -> PathScope:
    return PathScope(DATA, BINDINGS, MOMENT)


def evaluated(text: str) -> Any:
    """Return the value of JSONata in a field, which can be written down. Raises as a field does."""
    value = compile_template(f"{{%{text}%}}", "/States/A/Output").evaluate(BINDINGS, MOMENT)
    assert len(json.dumps(value, allow_nan=False)) < RESULT_CHARACTERS_MAX
    return value


def require_named(error: StateError) -> None:
    """A failure that a definition can catch by its name, and that says nothing of Python."""
    assert error.error in {
        "States.QueryEvaluationError",
        "States.Runtime",
        "States.ReferencePathConflict",
    }
    assert error.cause
    assert "Traceback" not in error.cause
    if isinstance(error, EvaluationError):
        assert error.location == "Output"
