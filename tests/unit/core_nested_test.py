"""The report of a finished state machine to its parent: its whole description, in text or JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.core.facts import RedriveRequested
from holdfast.core.nested import finished_error, finished_output
from tests.builders import call
from tests.unit.core_kit import START_MS, one
from tests.unit.core_tasks_test import MachineCase
from tests.unit.states_kit import PLACE

DATA = {"a": ["é"]}
AROUND = {
    "ExecutionArn": PLACE.execution("m", "e"),
    "InputDetails": {"Included": True},
    "Name": "e",
    "StartDate": START_MS,
    "StateMachineArn": PLACE.machine("m"),
    "StopDate": START_MS,
}


@pytest.mark.parametrize(("as_json", "shown"), [(True, DATA), (False, '{"a":["é"]}')])
def test_a_success_is_reported_with_input_and_output(as_json: bool, shown: Any) -> None:
    state = MachineCase(one({"Type": "Pass"})).begin(DATA).state
    told = finished_output(state, as_json=as_json)

    assert told == {
        **AROUND,
        "Input": shown,
        "Output": shown,
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "Status": "SUCCEEDED",
    }


def test_a_failure_is_an_error_with_the_description_as_its_cause() -> None:
    case = MachineCase(one(call("work"))).begin(DATA)
    case.fail("E").offer(RedriveRequested("1")).fail("Broken", "why")
    error, cause = finished_error(case.state)

    assert error == "States.TaskFailed"
    assert '"Error":"Broken"' in cause
    assert "é" in cause
    assert json.loads(cause) == {
        **AROUND,
        "Cause": "why",
        "Error": "Broken",
        "Input": '{"a":["é"]}',
        "RedriveCount": 1,
        "RedriveStatus": "REDRIVABLE",
        "Status": "FAILED",
    }


def test_absent_fields_of_a_failure_are_not_reported() -> None:
    case = MachineCase(one(call("work"))).begin()
    _, cause = finished_error(case.fail(None).state)

    assert not {"Error", "Cause", "Output"}.intersection(json.loads(cause))
