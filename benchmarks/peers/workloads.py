"""The machines that every interpreter runs, in both query languages, and how a round is measured.

A transition is a state that is entered: counted from the machine, so it is the same for every peer.
A peer is a process that reads requests, one JSON text to a line (see `request`), and answers each
with a line {"cpu_ms": per transition} or {"refused": why}.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

LANGUAGES: Final = ("JSONPath", "JSONata")
CHAIN: Final = 10
ITERATIONS: Final = 1_000
ITEMS: Final = 100

#: Transitions of one execution.
TRANSITIONS: Final = {"chain": CHAIN, "loop": 2 * ITERATIONS + 3, "map": ITEMS + 1}
INPUT: Final[dict[str, Any]] = {"n": 0, "items": list(range(ITEMS))}
#: A round of an interpreter goes on for so long, to be well above the grain of the clock.
ROUND_SECONDS: Final = 0.15

Machine = dict[str, Any]
#: (definition as text, input) -> output
Run = Callable[[str, Any], Any]


def request(workload: str, language: str) -> dict[str, Any]:
    """A question for a peer. A peer that answers other than `expected` is not measured."""
    outputs = {"chain": INPUT, "loop": {"n": ITERATIONS}, "map": INPUT["items"]}
    return {
        "definition": json.dumps(_machine(workload, language)),
        "input": INPUT,
        "expected": outputs[workload],
        "transitions": TRANSITIONS[workload],
        "seconds": ROUND_SECONDS,
    }


def _machine(workload: str, language: str) -> Machine:
    made = {"chain": _chain, "loop": _loop, "map": _map}[workload](language)
    # JSONPath is what a definition without the field is in; not every peer knows the field.
    return made if language == "JSONPath" else {"QueryLanguage": language, **made}


def _chain(_: str) -> Machine:
    states: Machine = {
        f"step {number}": {"Type": "Pass", "Next": f"step {number + 1}"}
        for number in range(CHAIN - 1)
    }
    states[f"step {CHAIN - 1}"] = {"Type": "Pass", "End": True}
    return {"StartAt": "step 0", "States": states}


def _loop(language: str) -> Machine:
    if language == "JSONata":
        begin: Machine = {"Output": {"n": 0}}
        count: Machine = {"Output": {"n": "{% $states.input.n + 1 %}"}}
        again: Machine = {"Condition": f"{{% $states.input.n < {ITERATIONS} %}}"}
    else:
        begin = {"Result": {"n": 0}}
        count = {"Parameters": {"n.$": "States.MathAdd($.n, 1)"}}
        again = {"Variable": "$.n", "NumericLessThan": ITERATIONS}
    choices = [{**again, "Next": "count"}]
    states = {
        "begin": {"Type": "Pass", **begin, "Next": "again?"},
        "again?": {"Type": "Choice", "Choices": choices, "Default": "done"},
        "count": {"Type": "Pass", **count, "Next": "again?"},
        "done": {"Type": "Succeed"},
    }
    return {"StartAt": "begin", "States": states}


def _map(language: str) -> Machine:
    items = (
        {"Items": "{% $states.input.items %}"}
        if language == "JSONata"
        else {"ItemsPath": "$.items"}
    )
    each = {"StartAt": "each", "States": {"each": {"Type": "Pass", "End": True}}}
    every = {"Type": "Map", **items, "ItemProcessor": each, "End": True}
    return {"StartAt": "every", "States": {"every": every}}


def serve(run: Run) -> None:
    """Answers each line with a round. The peer's own output goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    checked: set[str] = set()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"cpu_ms": _round(run, json.loads(line), checked)}
        except Exception as error:  # noqa: BLE001  # whatever it is, the peer cannot do it
            answer = {"refused": f"{type(error).__name__}: {error}"[:120]}
        print(json.dumps(answer), file=answers, flush=True)


def _round(run: Run, asked: dict[str, Any], checked: set[str]) -> float:
    """Return milliseconds of CPU per transition. A first execution is checked, and warms up."""
    definition, data = asked["definition"], asked["input"]
    if definition not in checked:
        found = run(definition, data)
        if found != asked["expected"]:
            raise ValueError(f"gave {json.dumps(found)[:60]}")
        checked.add(definition)
    executions, begin, until = 0, time.process_time(), time.monotonic() + asked["seconds"]
    while time.monotonic() < until:
        run(definition, data)
        executions += 1
    spent_seconds = time.process_time() - begin
    return spent_seconds * 1_000 / executions / asked["transitions"]
