"""The JSONPath language against what AWS answered: machines of one state, without an engine.

Goal: every recording of `choice-operators` and `intrinsic-functions` comes out the same, and every
machine that only moves data (Pass, Choice, Wait, Succeed, Fail) hands the recorded data from state
to state. Method: the states' templates are compiled and evaluated as the core would do it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.comparisons import compile_rule
from holdfast.asl.jsonpath.dataflow import (
    INPUT_DATA,
    EffectiveInput,
    PathOutput,
    text_path,
    wait_seconds_path,
    wait_timestamp_path,
)
from holdfast.asl.jsonpath.payload import compile_payload
from holdfast.asl.template import StateError

CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "cases.jsonl"
MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
#: Words in recordings that replace values that differ from run to run.
MADE_AT_RUN_TIME = {"<ArnPart_0idx>", "RandomNumberGenerated", "date"}

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the recordings are not on this machine")


def cases(category: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield definition and case, of those that are written in JSONPath."""
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        if case["category"] != category or not case["definition"]:
            continue
        definition = json.loads(case["definition"])
        if "JSONata" not in case["definition"]:
            yield definition, case


def bindings(case: dict[str, Any], position: str) -> dict[str, Any]:
    data = json.loads(case["input"])
    context = {
        "Execution": {"Input": data},
        "State": {"Name": position},
        "StateMachine": {"Name": "a-machine"},
    }
    return {"states": {"input": data, "context": context}}


def run_choice(definition: dict[str, Any], case: dict[str, Any]) -> Any:
    state = definition["States"][definition["StartAt"]]
    given = bindings(case, definition["StartAt"])
    source = EffectiveInput.of(state)
    following = next(
        (
            rule["Next"]
            for rule in state["Choices"]
            if compile_rule(rule, source).evaluate(given, MOMENT) is True
        ),
        state["Default"],
    )
    return PathOutput.of_pass(definition["States"][following]).evaluate(given, MOMENT)


def run_pass(definition: dict[str, Any], case: dict[str, Any]) -> Any:
    name = definition["StartAt"]
    output = PathOutput.of_pass(definition["States"][name])
    return output.evaluate(bindings(case, name), MOMENT)


def is_as_recorded(recorded: Any, found: Any) -> bool:
    match recorded:
        case dict():
            return (
                isinstance(found, dict)
                and recorded.keys() == found.keys()
                and all(is_as_recorded(item, found[key]) for key, item in recorded.items())
            )
        case str() if recorded in MADE_AT_RUN_TIME:
            return True
        case _:
            return json.dumps(recorded) == json.dumps(found)


@pytest.mark.parametrize(
    ("category", "run", "count_min"),
    [("choice-operators", run_choice, 298), ("intrinsic-functions", run_pass, 87)],
)
def test_every_recording_of_the_category_comes_out_the_same(
    category: str, run: Any, count_min: int
) -> None:
    different: list[str] = []
    count = 0
    for definition, case in cases(category):
        count += 1
        try:
            found: Any = run(definition, case)
        except StateError as error:
            found = str(error)
        if not is_as_recorded(case["expected"]["output"], found):
            different.append(f"{case['id']}: {case['expected']['output']} but {found}")
    assert not different, "\n".join(different)
    assert count >= count_min


# -- machines of several states --------------------------------------------------------------------

MOVES_DATA = {"Pass", "Choice", "Wait", "Succeed", "Fail"}
ARN = "arn:<partition>:states:<region>:111111111111"


class Machine:
    """Walks through the states of one machine, as the core would."""

    def __init__(self, definition: dict[str, Any], given: Any) -> None:
        self.definition = definition
        self.given = given
        self.variables: dict[str, Any] = {}
        self.exits: list[dict[str, Any]] = []

    def run(self) -> tuple[Any, Any] | None:
        """Return error and cause, or None."""
        name, data = self.definition["StartAt"], self.given
        while name is not None:
            state = self.definition["States"][name]
            bound = {**self.variables, "states": self.states(name, data)}
            try:
                if state["Type"] == "Fail":
                    return self.fail(state, bound)
                name, data = self.step(name, state, bound)
            except StateError as error:
                return error.error, error.cause
        return None

    def states(self, name: str, data: Any) -> dict[str, Any]:
        execution = {
            "Id": f"{ARN}:execution:<ArnPart_0idx>:<ExecArnPart_0idx>",
            "Input": self.given,
            "StartTime": "date",
            "Name": "<ExecArnPart_0idx>",
            "RoleArn": "snf_role_arn",
            "RedriveCount": 0,
        }
        machine = {"Id": f"{ARN}:stateMachine:<ArnPart_0idx>", "Name": "<ArnPart_0idx>"}
        position = {"Name": name, "EnteredTime": "date"}
        context = {"Execution": execution, "StateMachine": machine, "State": position}
        return {"input": data, "context": context}

    def fail(self, state: dict[str, Any], bound: Any) -> tuple[Any, Any]:
        found = [
            text_path(f"{field}Path", state[f"{field}Path"], INPUT_DATA).evaluate(bound, MOMENT)
            if f"{field}Path" in state
            else state.get(field)
            for field in ("Error", "Cause")
        ]
        return found[0], found[1]

    def step(self, name: str, state: dict[str, Any], bound: Any) -> tuple[str | None, Any]:
        source = EffectiveInput.of(state)
        chosen = state
        if state["Type"] == "Choice":
            rules = (rule for rule in state["Choices"])
            tests = (
                rule for rule in rules if compile_rule(rule, source).evaluate(bound, MOMENT) is True
            )
            chosen = next(tests, {**state, "Next": state.get("Default")})
        if "SecondsPath" in state:
            wait_seconds_path(state["SecondsPath"], source).evaluate(bound, MOMENT)
        if "TimestampPath" in state:
            wait_timestamp_path(state["TimestampPath"], source).evaluate(bound, MOMENT)
        output = (
            PathOutput.of_pass(state) if state["Type"] == "Pass" else PathOutput.of_input(state)
        )
        assigned: Any = {}
        if "Assign" in chosen:
            assigned = compile_payload(chosen["Assign"], output.selection).evaluate(bound, MOMENT)
        data = output.evaluate(bound, MOMENT)
        self.variables.update(assigned)
        self.exits.append({"name": name, "output": data, "assigned": assigned})
        return chosen.get("Next"), data


def parsed(value: Any) -> Any:
    """JSON texts as values, at any depth: recordings have them either way."""
    match value:
        case str():
            try:
                return parsed(json.loads(value))
            except ValueError:
                return value
        case dict():
            return {key: parsed(item) for key, item in value.items()}
        case list():
            return [parsed(item) for item in value]
        case _:
            return value


def is_reached(case: dict[str, Any], machine: Machine, ended: Any) -> bool:
    expected = case["expected"]
    recorded = [
        event["stateExitedEventDetails"]
        for event in expected["events"]
        if "stateExitedEventDetails" in event
    ]
    if (expected["status"] == "FAILED") != (ended is not None) or len(recorded) != len(
        machine.exits
    ):
        return False
    if ended is not None and not is_failed_as_recorded(expected, *ended):
        return False
    return all(
        was["name"] == now["name"]
        and is_as_recorded(parsed(was.get("output")), parsed(now["output"]))
        and is_as_recorded(parsed(was.get("assignedVariables") or {}), parsed(now["assigned"]))
        for was, now in zip(recorded, machine.exits, strict=True)
    )


def is_failed_as_recorded(expected: dict[str, Any], error: Any, cause: Any) -> bool:
    recorded = expected.get("cause") or ""
    begins, placeholder, _ = recorded.partition("'<json-input:")
    if placeholder:
        begins = begins.partition("). ")[2]
        return bool(error == expected["error"] and cause.startswith(begins))
    return bool(error == expected.get("error") and recorded.endswith(cause or ""))


#: Cases whose recordings hide in one word the values that the definition or the input has in
#: another.
REWRITTEN = ("test_query_context_object_values", "test_wait_timestamp_path[")


def test_machines_that_only_move_data_return_the_output_of_aws() -> None:
    different: list[str] = []
    count = 0
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        definition = json.loads(case["definition"] or '{"States": {}}')
        states: dict[str, Any] = definition.get("States") or {}
        is_wanted = (
            case["kind"] == "execution"
            and case["input"] is not None
            and "JSONata" not in case["definition"]
            and case["expected"]["events"] is not None
            and {state["Type"] for state in states.values()} <= MOVES_DATA
            and not any(name in case["id"] and "NO_" not in case["id"] for name in REWRITTEN)
        )
        if not is_wanted:
            continue
        count += 1
        machine = Machine(definition, json.loads(case["input"]))
        if not is_reached(case, machine, machine.run()):
            different.append(f"{case['id']}: {machine.exits}")
    assert not different, "\n".join(different)
    assert count >= 125
