"""Short forms of definitions, for the rows of invalid ones."""

from __future__ import annotations

import json
from typing import Any, Final

Json = Any

PASS: Final[Json] = {"Type": "Pass", "End": True}
INVOKE: Final = "arn:aws:states:::lambda:invoke"
TASK: Final[Json] = {"Type": "Task", "Resource": INVOKE, "End": True}
WAIT: Final[Json] = {"Type": "Wait", "Seconds": 1, "End": True}
INNER: Final[Json] = {"StartAt": "I", "States": {"I": PASS}}
MAP: Final[Json] = {"Type": "Map", "ItemProcessor": INNER, "End": True}
DISTRIBUTED: Final[Json] = {
    **INNER,
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
}
RULE: Final[Json] = {"Variable": "$.a", "IsNull": True, "Next": "B"}


def machine(states: Json, **top: Json) -> Json:
    return {"StartAt": next(iter(states), "A"), "States": states, **top}


GOOD: Final[Json] = machine({"A": PASS})


def text(document: Json) -> str:
    return json.dumps(document)


def without(document: Json, field: str) -> Json:
    return {name: value for name, value in document.items() if name != field}


def retry(**fields: Json) -> Json:
    return machine({"A": {**TASK, "Retry": [{"ErrorEquals": ["E"], **fields}]}})


def caught(errors: list[list[str]]) -> Json:
    catchers = [{"ErrorEquals": names, "Next": "A"} for names in errors]
    return machine({"A": {**TASK, "Catch": catchers}})


def choice(*rules: Json) -> Json:
    return machine({"A": {"Type": "Choice", "Choices": [*rules], "Default": "B"}, "B": PASS})


def extended(**extension: Json) -> Json:
    return {**GOOD, "Holdfast": extension}


def branch(name: str, state: Json = PASS) -> Json:
    return {"StartAt": name, "States": {name: state}}


def parallel(**extension: Json) -> Json:
    state = {"Type": "Parallel", "Branches": [branch("B"), branch("C")], "End": True}
    return machine({"A": {**state, "Holdfast": extension}})


def nested(levels: int) -> Json:
    inner = branch("S0")
    for level in range(1, levels):
        inner = branch(f"S{level}", {"Type": "Parallel", "Branches": [inner], "End": True})
    return inner
