"""The parts of an evaluation on jsonata-python that its functions use."""

from __future__ import annotations

import math
from typing import Any

from jsonata import JException, Jsonata
from jsonata.functions import Functions

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.convert import exported_for_text, is_function


def evaluator() -> Any:
    """Return the running evaluation: it has the budgets, the clock and the random numbers."""
    return Jsonata.CURRENT.jsonata


def call(function: Any, *args: Any) -> Any:
    """Call a function value with as many of the arguments as it takes."""
    return Functions.func_apply(function, list(args))


def truth(value: Any) -> bool:
    return bool(Functions.to_boolean(value))


def text_of(value: Any, pretty: Any = None) -> str:
    """Return a value as text, as `&` and $string do. Undefined gives the empty text."""
    if getattr(value, "outer_wrapper", False):
        value = value[0]
    if isinstance(value, str):
        return value
    if value is None or is_function(value):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        raise JException("D3001", -1)
    evaluator().charge(costs.copying_items(value) + costs.writing_items(value))
    text = values.json_text(exported_for_text(value), pretty=bool(pretty))
    evaluator().charge(costs.written_items(text))
    return text
