"""The parts of an evaluation that its functions use."""

from __future__ import annotations

import math
from typing import Any

from jsonata import JException, Jsonata
from jsonata.functions import Functions

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.convert import exported_for_text, is_function


def evaluator() -> Any:
    """The running evaluation: its budgets, its clock and its chance."""
    return Jsonata.CURRENT.jsonata


def call(function: Any, *args: Any) -> Any:
    """A function value applied, with as many arguments as it takes."""
    return Functions.func_apply(function, list(args))


def truth(value: Any) -> bool:
    return bool(Functions.to_boolean(value))


def text_of(value: Any, pretty: Any = None) -> str:
    """A value cast to text, as `&` and $string do. Undefined is the empty text."""
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
