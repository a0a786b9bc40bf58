"""Executions through AWS's API: start, describe, list, stop, redrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import advance, decision
from holdfast.core.run_ids import (
    SPREAD_MAX,
    child_run,
    map_run_uuid,
    run_of_map_run,
    run_of_uuid,
    spread_of,
    uuid_of,
)
from holdfast.core.state import Parent
from holdfast.errors import RequestError, ServiceFault
from holdfast.limits import CHILD_DEPTH_MAX, PAYLOAD_BYTES_MAX
from holdfast.runtime.commands.retry import retry
from holdfast.runtime.driver import run as drive
from holdfast.runtime.effects import Delete, Effect, Put, Send, TaskFailed, TaskSucceeded
from holdfast.runtime.storage import keys
from holdfast.stepfunctions.api import StatesApi
from holdfast.stepfunctions.executions import start_nested
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.world import SimulatorWorld, When
from tests.unit.states_kit import PLACE, ROLE
from tests.unit.states_world import PASS, WAIT, Office, states

CALL = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets", "Arguments": {}}
FLOW = states(A=PASS)
SLOW = states(A=WAIT)


# -- ids -------------------------------------------------------------------------------------------


@given(
    now_ms=st.integers(0, 2**45 - 1),
    chance=st.binary(min_size=16, max_size=16),
    spread=st.integers(0, SPREAD_MAX),
)
def test_a_run_and_its_uuid_are_one_another(now_ms: int, chance: bytes, spread: int) -> None:
    run = keys.mint_run("default", now_ms, chance, b"secret", spread)
    assert run_of_uuid(uuid_of(run)) == run
    assert keys.minted_ms(run) == now_ms
    assert spread_of(run) == spread_of(child_run(run, 7, 0)) == spread


@given(chance=st.binary(min_size=16, max_size=16), entry=st.integers(0, 2**20 - 1))
def test_a_map_run_names_its_run_and_entry(chance: bytes, entry: int) -> None:
    run = keys.mint_run("default", 1_760_000_000_000, chance, b"secret")
    found = keys.map_runs("default", map_run_uuid(run, entry), [b"other", b"secret"])
    assert (run, entry) in found


@pytest.mark.parametrize("text", ["", "order-1", "0" * 36, "A" * 8 + "-0000-0000-0000-" + "0" * 12])
def test_a_text_that_is_no_uuid_is_no_run(text: str) -> None:
    assert run_of_uuid(text) is None
    assert run_of_map_run(text) is None


def test_a_map_run_of_a_child_has_a_name_too() -> None:
    run = f"{keys.mint_run('default', 1, b'x', b's')}.3.4"
    assert len(map_run_uuid(run, 1)) == len(map_run_uuid(run[:26], 1))
    assert map_run_uuid(run, 1) != map_run_uuid(run, 2)


# -- start -----------------------------------------------------------------------------------------


def test_an_execution_without_a_name_is_named_by_a_uuid_that_is_its_run() -> None:
    office = Office()
    execution = office.start(office.create(FLOW))
    name = execution.rpartition(":")[2]
    assert execution == PLACE.execution("flow", name)
    assert keys.is_minted("default", str(run_of_uuid(name)), office.service.keys.secret)


def test_a_start_costs_two_rows_and_a_message() -> None:
    office = Office()
    machine = office.create(FLOW)
    before = office.world.services.effects.copy()
    office.start(machine)
    assert office.world.services.effects - before == {
        "Get": 1,  # the machine
        "Clock": 2,
        "PutIfAbsent": 1,  # the row by which it is described
        "Put": 1,  # the row by which the sweeper finds it
        "Send": 1,
    }


def test_the_context_object_speaks_of_arns() -> None:
    office = Office()
    flow = states(A={"Type": "Pass", "Output": "{% $states.context %}"})
    execution = office.start(office.create(flow), {"n": 1}, name="first")
    office.wait()
    context = json.loads(office.describe(execution)["output"])
    assert context["Execution"] | {"StartTime": "any"} == {
        "Id": execution,
        "Input": {"n": 1},
        "Name": "first",
        "RoleArn": ROLE,
        "StartTime": "any",
        "RedriveCount": 0,
    }
    assert context["StateMachine"] == {"Id": PLACE.machine("flow"), "Name": "flow"}


def test_the_same_name_and_input_give_the_same_execution_while_it_runs() -> None:
    office = Office()
    machine = office.create(SLOW)
    request = {"stateMachineArn": machine, "name": "first", "input": '{"a": 1, "b": 2}'}
    first = office.call("StartExecution", **request)
    office.world.now_ms += 5_000
    assert office.call("StartExecution", **request) == first
    office.wait(1)
    again = office.call("StartExecution", **{**request, "input": '{"b":2,"a":1}'})
    assert again == first
    office.wait(200)
    assert office.refusal("StartExecution", **request) == (
        "ExecutionAlreadyExists",
        f"Execution Already Exists: '{first['executionArn']}'",
    )
    assert len(office.call("ListExecutions", stateMachineArn=machine)["executions"]) == 1


def test_the_same_name_with_another_input_is_refused() -> None:
    office = Office()
    machine = office.create(SLOW)
    execution = office.start(machine, name="first")
    assert office.refusal("StartExecution", stateMachineArn=machine, name="first", input="[]") == (
        "ExecutionAlreadyExists",
        f"Execution Already Exists: '{execution}'",
    )


def test_a_name_that_has_the_form_of_a_uuid_is_a_name_as_any_other() -> None:
    office = Office()
    name = "01234567-89ab-cdef-0123-456789abcdef"
    execution = office.start(office.create(FLOW), name=name)
    assert office.describe(execution)["status"] == "RUNNING"
    office.wait()
    assert office.describe(execution)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("name", ["a b", "a#b", "a:b", "a/b", "a\x7fb"])
def test_a_name_with_a_character_that_aws_refuses(name: str) -> None:
    office = Office()
    machine = office.create(FLOW)
    found = office.refusal("StartExecution", stateMachineArn=machine, name=name)
    assert found == ("InvalidName", f"Invalid Name: '{name}'")


def test_an_input_that_is_no_json_is_refused_in_the_words_of_jackson() -> None:
    office = Office()
    machine = office.create(FLOW)
    code, message = office.refusal("StartExecution", stateMachineArn=machine, input="nope")
    assert code == "InvalidExecutionInput"
    assert message == (
        "Invalid State Machine Execution Input: 'com.fasterxml.jackson.core.JsonParseException: "
        "Unrecognized token 'nope': was expecting (JSON String, Number, Array, Object or token "
        "'null', 'true' or 'false')\n at [Source: (String)\"nope\"; line: 1, column: 5]'"
    )


def test_a_field_that_is_there_twice_is_no_reason_to_refuse_an_input() -> None:
    office = Office()
    machine = office.create(FLOW)
    answer = office.call("StartExecution", stateMachineArn=machine, input='{"a": 1, "a": 2}')
    assert office.describe(answer["executionArn"])["input"] == '{"a":2}'


def test_the_machine_has_to_exist() -> None:
    office = Office()
    arn = PLACE.machine("nobody")
    assert office.refusal("StartExecution", stateMachineArn=arn) == (
        "StateMachineDoesNotExist",
        f"State Machine Does Not Exist: '{arn}'",
    )


def test_a_large_input_travels_as_a_blob() -> None:
    office = Office()
    text = "x" * 50_000
    execution = office.start(office.create(FLOW), text)
    assert json.loads(office.describe(execution)["input"]) == text
    office.wait()
    assert json.loads(office.describe(execution)["output"]) == text


# -- describe --------------------------------------------------------------------------------------


def test_an_execution_without_a_record_is_running() -> None:
    office = Office()
    machine = office.create(FLOW)
    execution = office.start(machine, {"n": 1}, name="first")
    assert office.describe(execution) == {
        "executionArn": execution,
        "stateMachineArn": machine,
        "name": "first",
        "status": "RUNNING",
        "startDate": office.world.now_ms / 1_000,
        "input": '{"n":1}',
        "inputDetails": {"included": True},
        "redriveCount": 0,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "Execution is RUNNING and cannot be redriven",
    }


def test_the_trace_header_of_a_start_is_told_again() -> None:
    office = Office()
    machine, header = office.create(states(A=PASS)), "Root=1-5759e988-bd862e3fe1be46a994272793"
    execution = office.start(machine, traceHeader=header)
    assert office.describe(execution)["traceHeader"] == header  # before the first record, too
    office.wait(1)
    assert office.describe(execution)["traceHeader"] == header
    assert "traceHeader" not in office.describe(office.start(machine))
    quick = office.create(states(A=PASS), "quick", type="EXPRESS")
    ended = office.call("StartSyncExecution", stateMachineArn=quick, traceHeader=header)
    assert ended["traceHeader"] == header
    assert "traceHeader" not in office.call("StartSyncExecution", stateMachineArn=quick)


def test_a_success_has_an_output_and_cannot_be_redriven() -> None:
    office = Office()
    machine = office.create(FLOW)
    execution = office.start(machine, {"n": 1})
    office.wait()
    found = office.describe(execution)
    assert found == {
        "executionArn": execution,
        "stateMachineArn": machine,
        "name": execution.rpartition(":")[2],
        "status": "SUCCEEDED",
        "startDate": found["startDate"],
        "stopDate": found["stopDate"],
        "input": '{"n":1}',
        "inputDetails": {"included": True},
        "output": '{"n":1}',
        "outputDetails": {"included": True},
        "redriveCount": 0,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
    }


def test_a_failure_has_error_and_cause_and_can_be_redriven_for_two_weeks() -> None:
    office = Office()
    machine = office.create(states(A={"Type": "Fail", "Error": "Broken", "Cause": "why"}))
    execution = office.start(machine)
    office.wait()
    found = office.describe(execution)
    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Broken", "why")
    assert found["redriveStatus"] == "REDRIVABLE"
    assert {"output", "outputDetails", "redriveStatusReason"}.isdisjoint(found)
    office.wait(15 * 86_400)
    late = office.describe(execution)
    assert late["redriveStatusReason"] == "Execution redrivable period exceeded"


def test_metadata_only_leaves_the_data_out() -> None:
    office = Office()
    execution = office.start(office.create(FLOW), {"n": 1})
    office.wait()
    found = office.call("DescribeExecution", executionArn=execution, includedData="METADATA_ONLY")
    assert {"input", "output"}.isdisjoint(found)
    assert found["outputDetails"] == {"included": False}


@pytest.mark.parametrize(
    "arn",
    [
        PLACE.execution("flow", "nobody"),
        PLACE.execution("other", "first"),
        PLACE.execution("flow", "first").replace("eu-west-1", "us-east-1"),
        PLACE.execution("flow", "01234567-89ab-cdef-0123-456789abcdef"),
    ],
)
def test_an_execution_that_is_not_here(arn: str) -> None:
    office = Office()
    office.start(office.create(FLOW), name="first")
    expected = ("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
    for operation in ("DescribeExecution", "GetExecutionHistory", "StopExecution"):
        assert office.refusal(operation, executionArn=arn) == expected


def test_an_execution_is_found_under_its_own_machine_alone() -> None:
    office = Office()
    office.create(FLOW, "other")
    execution = office.start(office.create(FLOW))
    office.wait()
    arn = execution.replace(":flow:", ":other:")
    assert office.refusal("DescribeExecution", executionArn=arn)[0] == "ExecutionDoesNotExist"


def test_an_invalid_arn_is_refused() -> None:
    assert Office().refusal("DescribeExecution", executionArn="nonsense") == (
        "InvalidArn",
        "Invalid Arn: 'Invalid ARN prefix: nonsense'",
    )


def test_the_machine_of_an_execution_is_the_one_it_was_started_with() -> None:
    office = Office()
    machine = office.create(FLOW)
    execution = office.start(machine)
    office.world.now_ms += 1_000
    office.call("UpdateStateMachine", stateMachineArn=machine, definition=json.dumps(SLOW))
    found = office.call("DescribeStateMachineForExecution", executionArn=execution)
    assert json.loads(found["definition"]) == FLOW
    assert (found["name"], found["stateMachineArn"], found["roleArn"]) == ("flow", machine, ROLE)
    assert found["updateDate"] == (office.world.now_ms - 1_000) / 1_000
    office.call("DeleteStateMachine", stateMachineArn=machine)
    gone = office.call("DescribeStateMachineForExecution", executionArn=execution)
    assert json.loads(gone["definition"]) == FLOW
    assert gone["loggingConfiguration"] == {"level": "OFF", "includeExecutionData": False}


def test_a_machine_made_since_in_the_name_of_the_executions_own_is_another() -> None:
    office = Office()
    machine = office.create(FLOW)
    execution = office.start(machine)
    office.wait()
    office.call("DeleteStateMachine", stateMachineArn=machine)
    office.world.now_ms += 1_000
    office.create(FLOW, tracingConfiguration={"enabled": True})
    found = office.call("DescribeStateMachineForExecution", executionArn=execution)
    assert found["tracingConfiguration"] == {"enabled": False}
    assert found["updateDate"] == (office.world.now_ms - 1_000) / 1_000


def test_an_execution_gives_its_machines_definition_letter_by_letter() -> None:
    office = Office()
    texts = [json.dumps(FLOW, indent=blanks) for blanks in range(6)]  # one definition, six texts
    for number, text in enumerate(texts):
        request = {"name": f"flow-{number}", "definition": text, "roleArn": ROLE}
        machine = office.call("CreateStateMachine", **request)["stateMachineArn"]
        execution = office.start(machine)
        found = office.call("DescribeStateMachineForExecution", executionArn=execution)
        assert found["definition"] == text


def test_a_deleted_machine_is_deleting_until_its_executions_have_ended() -> None:
    office = Office()
    machine = office.create(SLOW, publish=True)
    execution = office.start(machine)
    office.wait(10)
    office.call("DeleteStateMachine", stateMachineArn=machine)
    described = office.call("DescribeStateMachine", stateMachineArn=machine)
    assert described["status"] == "DELETING"
    text = json.dumps(SLOW)
    again = {"name": "flow", "definition": text, "roleArn": ROLE}
    route = {"stateMachineVersionArn": f"{machine}:1", "weight": 100}
    for operation, request in (
        ("StartExecution", {"stateMachineArn": machine}),
        ("UpdateStateMachine", {"stateMachineArn": machine, "definition": text}),
        ("PublishStateMachineVersion", {"stateMachineArn": machine}),
        ("CreateStateMachine", again),
        ("CreateStateMachineAlias", {"name": "live", "routingConfiguration": [route]}),
        ("UpdateStateMachineAlias", {"stateMachineAliasArn": f"{machine}:live", "description": ""}),
        ("ListStateMachineAliases", {"stateMachineArn": machine}),
    ):
        refused = office.refusal(operation, **request)
        assert refused == ("StateMachineDeleting", f"State Machine Deleting: '{machine}'")
    office.wait(10)
    assert office.describe(execution)["status"] == "ABORTED"
    assert office.call("ListStateMachines")["stateMachines"] == []
    refused = office.refusal("DescribeStateMachine", stateMachineArn=machine)
    assert refused[0] == "StateMachineDoesNotExist"
    assert office.call("CreateStateMachine", **again)["stateMachineArn"] == machine


def test_a_late_removal_of_a_deleted_machine_leaves_the_one_created_since() -> None:
    again = {"name": "flow", "definition": json.dumps(SLOW), "roleArn": ROLE}
    removals: list[Effect] = []

    def overtake(_: SimulatorWorld, effect: Effect, when: When) -> None:
        is_removal = isinstance(effect, Delete) and effect.sk == "flow" and when == "before"
        if is_removal and not removals:
            removals.append(effect)
            assert office.call("ListStateMachines")["stateMachines"] == []
            office.call("CreateStateMachine", **again)

    office = Office(hook=overtake)
    machine = office.create(SLOW)
    office.start(machine)
    office.wait(10)
    office.call("DeleteStateMachine", stateMachineArn=machine)
    office.wait(10)
    assert office.refusal("DescribeStateMachine", stateMachineArn=machine)
    assert len(removals) == 1
    assert office.call("DescribeStateMachine", stateMachineArn=machine)["status"] == "ACTIVE"


# -- versions and aliases --------------------------------------------------------------------------


def test_an_execution_of_an_alias_names_version_and_alias() -> None:
    office = Office()
    machine = office.create(FLOW, publish=True)
    routes = [{"stateMachineVersionArn": f"{machine}:1", "weight": 100}]
    alias = office.call("CreateStateMachineAlias", name="prod", routingConfiguration=routes)[
        "stateMachineAliasArn"
    ]
    of_alias, of_version, of_machine = map(office.start, (alias, f"{machine}:1", machine))
    for _ in range(2):
        found = office.describe(of_alias)
        assert found["stateMachineAliasArn"] == alias
        assert found["stateMachineVersionArn"] == f"{machine}:1"
        assert "stateMachineAliasArn" not in office.describe(of_version)
        assert "stateMachineVersionArn" not in office.describe(of_machine)
        listed = {
            arn: {
                row["executionArn"]
                for row in office.call("ListExecutions", stateMachineArn=arn)["executions"]
            }
            for arn in (alias, f"{machine}:1", machine)
        }
        assert listed == {
            alias: {of_alias},
            f"{machine}:1": {of_alias, of_version},
            machine: {of_alias, of_version, of_machine},
        }
        office.wait()


# -- list ------------------------------------------------------------------------------------------


def test_the_newest_execution_is_listed_first() -> None:
    office = Office()
    machine = office.create(SLOW)
    first = office.start(machine, name="first")
    office.wait(10)
    second = office.start(machine, name="second")
    rows = office.call("ListExecutions", stateMachineArn=machine)["executions"]
    assert [row["executionArn"] for row in rows] == [second, first]
    assert rows[0] == {
        "executionArn": second,
        "name": "second",
        "redriveCount": 0,
        "startDate": office.world.now_ms / 1_000,
        "stateMachineArn": machine,
        "status": "RUNNING",
    }
    office.wait(200)
    rows = office.call("ListExecutions", stateMachineArn=machine)["executions"]
    assert {row["status"] for row in rows} == {"SUCCEEDED"}
    assert all("stopDate" in row for row in rows)


def test_one_whose_log_cannot_be_read_hides_no_other_in_a_list() -> None:
    office = Office()
    machine = office.create(SLOW)
    hurt = office.start(machine, name="hurt")
    office.wait(1)
    (record,) = office.world.services.items("executions")
    unlisted = {name: value for name, value in record.items() if name not in {"lp", "ls"}}
    office.world.services.perform(Put("executions", {**unlisted, "bl": "0" * 64}))
    other = office.start(machine, name="other")
    rows = office.call("ListExecutions", stateMachineArn=machine)["executions"]
    assert {row["executionArn"]: row["status"] for row in rows} == {
        hurt: "RUNNING",
        other: "RUNNING",
    }


def test_a_list_of_one_status() -> None:
    office = Office()
    machine = office.create(SLOW)
    office.start(machine, name="first")
    office.wait(200)
    office.start(machine, name="second")

    def listed(status: str) -> list[str]:
        answer = office.call("ListExecutions", stateMachineArn=machine, statusFilter=status)
        return [row["name"] for row in answer["executions"]]

    assert (listed("RUNNING"), listed("SUCCEEDED"), listed("FAILED")) == (
        ["second"],
        ["first"],
        [],
    )


@pytest.mark.parametrize("waits", [0, 1, 3_000])
def test_pages_hold_everything_once_and_in_order(waits: int) -> None:
    office = Office()
    machine = office.create(FLOW)
    started = []
    for number in range(25):
        started.append(office.start(machine, name=f"e{number:02}"))
        office.world.now_ms += 10
    office.wait(waits)
    found: list[str] = []
    request = {"stateMachineArn": machine, "maxResults": 4}
    while True:
        answer = office.call("ListExecutions", **request)
        found += [row["executionArn"] for row in answer["executions"]]
        if "nextToken" not in answer:
            break
        request["nextToken"] = answer["nextToken"]
    assert found == started[::-1]


def test_a_token_of_another_list_is_invalid() -> None:
    office = Office()
    machine, other = office.create(FLOW), office.create(FLOW, "other")
    for name in ("a", "b"):
        office.start(machine, name=name)
        office.world.now_ms += 10
    token = office.call("ListExecutions", stateMachineArn=machine, maxResults=1)["nextToken"]
    for arn, given_token in ((other, token), (machine, "nonsense")):
        assert office.refusal("ListExecutions", stateMachineArn=arn, nextToken=given_token) == (
            "InvalidToken",
            "Invalid Token: 'Invalid token'",
        )


def test_a_list_of_a_machine_that_is_not_there() -> None:
    arn = PLACE.machine("nobody")
    assert Office().refusal("ListExecutions", stateMachineArn=arn) == (
        "StateMachineDoesNotExist",
        f"State Machine Does Not Exist: '{arn}'",
    )


# -- stop and redrive ------------------------------------------------------------------------------


def test_a_stop_ends_the_execution_with_the_error_that_was_given() -> None:
    office = Office()
    execution = office.start(office.create(SLOW))
    office.wait(1)
    answer = office.call("StopExecution", executionArn=execution, error="Enough", cause="why")
    assert answer == {"stopDate": office.world.now_ms / 1_000}
    office.wait(1)
    found = office.describe(execution)
    assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "Enough", "why")


def test_a_stop_before_the_first_record_waits_for_it() -> None:
    office = Office()
    execution = office.start(office.create(SLOW))
    office.call("StopExecution", executionArn=execution)
    office.wait(1)
    assert office.describe(execution)["status"] == "ABORTED"


def test_a_stop_of_an_ended_execution_returns_the_time_of_the_end() -> None:
    office = Office()
    execution = office.start(office.create(FLOW))
    office.wait(5)
    stopped = office.describe(execution)["stopDate"]
    assert office.call("StopExecution", executionArn=execution) == {"stopDate": stopped}
    assert office.describe(execution)["status"] == "SUCCEEDED"


def test_a_running_or_succeeded_execution_is_not_redriven() -> None:
    office = Office()
    execution = office.start(office.create(SLOW))
    for status, seconds in (("RUNNING", 200), ("SUCCEEDED", 0)):
        assert office.refusal("RedriveExecution", executionArn=execution) == (
            "ExecutionNotRedrivable",
            f"Execution Not Redrivable: 'Execution is {status} and cannot be redriven'",
        )
        office.wait(seconds)


def test_an_execution_whose_machine_is_being_deleted_is_not_redriven() -> None:
    office = Office(lambda task: TaskFailed("Broken", str(task.arguments)))
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% $states.input %}", "Next": "C"}]}
    definition = states(A={**choice, "Default": "B"}, B={**WAIT, "End": True}, C=CALL)
    machine = office.create(definition)
    failed, open_ = office.start(machine, True), office.start(machine, False)
    office.wait(1)
    assert office.describe(failed)["redriveStatus"] == "REDRIVABLE"
    office.call("DeleteStateMachine", stateMachineArn=machine)
    reason = "State machine is in DELETING status"
    found = office.describe(failed)
    assert found["redriveStatus"] == "NOT_REDRIVABLE"
    assert found["redriveStatusReason"] == reason
    assert office.refusal("RedriveExecution", executionArn=failed) == (
        "ExecutionNotRedrivable",
        f"Execution Not Redrivable: '{reason}'",
    )
    office.wait(10)
    assert office.describe(open_)["status"] == "ABORTED"
    # The machine is removed with its last open execution. The log has all that a redrive needs.
    assert office.describe(failed)["redriveStatus"] == "REDRIVABLE"


def test_a_history_that_is_full_has_no_room_for_a_redrive(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (decision, advance):
        monkeypatch.setattr(module, "HISTORY_EVENTS_MAX", 10)
    office = _failing()
    office.service = replace(office.service, has_history_limit=True)
    office.api = StatesApi(office.service)
    fits, full = states(A=PASS, B=CALL), states(A=PASS, B=PASS, C=CALL)
    reasons = []
    for name, definition in (("fits", fits), ("full", full)):
        execution = office.start(office.create(definition, name))
        office.wait(1)
        found = office.describe(execution)
        assert found["status"] == "FAILED"
        reasons.append((len(office.history(execution)), found.get("redriveStatusReason")))
    # AWS docs, RedriveExecution: at least two events must fit, here with a limit of 10.
    assert reasons == [(8, None), (10, "Execution history event limit exceeded")]
    assert office.refusal("RedriveExecution", executionArn=execution) == (
        "ExecutionNotRedrivable",
        "Execution Not Redrivable: 'Execution history event limit exceeded'",
    )
    name = execution.rpartition(":")[2]
    with pytest.raises(RequestError) as refused:
        drive(retry(office.service.known, "default", name, {}, bytes(16)), office.perform)
    assert refused.value.code == "HF218"


def test_a_redrive_continues_where_the_execution_failed() -> None:
    answers: Iterator[TaskSucceeded | TaskFailed] = iter(
        (TaskFailed("Broken", "why"), TaskSucceeded({"n": 2}))
    )
    office = Office(lambda _: next(answers))
    machine = office.create(states(A=PASS, B=CALL))
    execution = office.start(machine)
    office.wait()
    assert office.describe(execution)["status"] == "FAILED"
    office.world.now_ms += 60_000
    answer = office.call("RedriveExecution", executionArn=execution)
    assert answer == {"redriveDate": office.world.now_ms / 1_000}
    office.wait()
    found = office.describe(execution)
    assert (found["status"], found["redriveCount"]) == ("SUCCEEDED", 1)
    rows = office.call("ListExecutions", stateMachineArn=machine, redriveFilter="REDRIVEN")
    shown = [(row["redriveCount"], row["redriveDate"]) for row in rows["executions"]]
    assert shown == [(1, answer["redriveDate"])]
    rows = office.call("ListExecutions", stateMachineArn=machine, redriveFilter="NOT_REDRIVEN")
    assert rows == {"executions": []}


def _failed(office: Office) -> str:
    execution = office.start(office.create(states(A=CALL)))
    office.wait()
    assert office.describe(execution)["status"] == "FAILED"
    office.world.now_ms += 60_000
    return execution


def _failing() -> Office:
    return Office(lambda _: TaskFailed("Broken", "why"))


def test_a_redriven_execution_is_listed_as_running_at_once() -> None:
    answers: Iterator[TaskSucceeded | TaskFailed] = iter(
        (TaskFailed("Broken", "why"), TaskSucceeded({}))
    )
    office = Office(lambda _: next(answers))
    machine = office.create(states(Do=CALL, Nap=WAIT))
    execution = office.start(machine)
    office.wait(10)
    office.world.now_ms += 86_400_000  # too late for the row of the start
    office.call("RedriveExecution", executionArn=execution)
    for _ in range(2):
        for status, count in (("FAILED", 0), ("RUNNING", 1)):
            request = {"stateMachineArn": machine, "statusFilter": status}
            assert len(office.call("ListExecutions", **request)["executions"]) == count
        office.wait(10)


def test_a_redriven_execution_runs_at_once_and_has_the_date() -> None:
    office = _failing()
    execution = _failed(office)
    date = office.call("RedriveExecution", executionArn=execution)["redriveDate"]
    found = office.describe(execution)
    assert {"stopDate", "error", "cause"}.isdisjoint(found)
    reason = "Execution is RUNNING and cannot be redriven"
    assert (found["status"], found["redriveCount"], found["redriveDate"]) == ("RUNNING", 1, date)
    assert (found["redriveStatus"], found["redriveStatusReason"]) == ("NOT_REDRIVABLE", reason)
    assert office.refusal("RedriveExecution", executionArn=execution, clientToken="other") == (
        "ExecutionNotRedrivable",
        f"Execution Not Redrivable: '{reason}'",
    )
    office.wait()
    found = office.describe(execution)
    assert (found["status"], found["redriveCount"], found["redriveDate"]) == ("FAILED", 1, date)
    assert found["redriveStatus"] == "REDRIVABLE"


def test_a_client_token_redrives_once_in_fifteen_minutes() -> None:
    office = _failing()
    execution = _failed(office)
    wanted = {"executionArn": execution, "clientToken": "mine"}
    first = office.call("RedriveExecution", **wanted)
    office.world.now_ms += 1_000
    assert office.call("RedriveExecution", **wanted) == first
    office.wait()
    assert office.call("RedriveExecution", **wanted) == first
    assert office.describe(execution)["redriveCount"] == 1
    office.world.now_ms += 15 * 60_000
    assert office.call("RedriveExecution", **wanted) != first
    office.wait()
    assert office.describe(execution)["redriveCount"] == 2


def test_a_redrive_whose_wake_was_lost_is_carried_out_when_the_caller_repeats_it() -> None:
    office = _failing()
    execution = _failed(office)
    lost = iter((True,))
    real = office.perform

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Send) and next(lost, False):
            raise ServiceFault("HF301", "no answer")
        return real(effect)

    office.perform = perform  # type: ignore[method-assign]
    with pytest.raises(ServiceFault):
        office.call("RedriveExecution", executionArn=execution)
    office.wait()
    assert office.describe(execution)["status"] == "RUNNING"
    assert office.refusal("RedriveExecution", executionArn=execution)[0] == "ExecutionNotRedrivable"
    office.wait()
    found = office.describe(execution)
    assert (found["status"], found["redriveCount"]) == ("FAILED", 1)


def test_a_stop_after_an_accepted_redrive_stops_it() -> None:
    office = _failing()
    execution = _failed(office)
    office.call("RedriveExecution", executionArn=execution)
    office.world.now_ms += 5
    stopped = office.call("StopExecution", executionArn=execution)
    assert stopped == {"stopDate": office.world.now_ms / 1_000}
    office.wait()
    found = office.describe(execution)
    assert (found["status"], found["redriveCount"]) == ("ABORTED", 1)


# -- nested ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "inner"])
def test_a_nested_start_may_be_repeated_and_reports_to_its_parent(name: str | None) -> None:
    office = Office()
    outer = office.start(office.create(SLOW, "outer"))
    office.wait(1)
    run = str(run_of_uuid(outer.rpartition(":")[2]))
    parent: Parent = {"run": run, "entry": 5, "attempt": 1}
    request = {"stateMachineArn": office.create(FLOW), **({} if name is None else {"name": name})}

    def start() -> str:
        nested = start_nested(office.service, request, b"0123456789abcdef", parent)
        return str(drive(nested, office.perform)["executionArn"])

    first = start()
    assert office.describe(first)["status"] == "RUNNING"
    assert start() == first
    office.wait(1)
    assert start() == first
    assert office.describe(first)["status"] == "SUCCEEDED"
    rows = office.call("ListExecutions", stateMachineArn=request["stateMachineArn"])["executions"]
    assert [row["executionArn"] for row in rows] == [first]
    answers = [
        item for item in office.world.services.items("mail") if item["sk"] == keys.answer(5, 1)
    ]
    assert [item["pk"] for item in answers] == [keys.inbox("default", run)]


def test_a_nested_start_that_was_repeated_later_is_listed_once_whatever_the_pages() -> None:
    office = Office()
    machine = office.create(FLOW)
    run = str(run_of_uuid(office.start(machine).rpartition(":")[2]))
    parent: Parent = {"run": run, "entry": 5, "attempt": 1}
    request = {"stateMachineArn": machine}

    def start() -> str:
        office.world.now_ms += 1_000
        nested = start_nested(office.service, request, b"0123456789abcdef", parent)
        return str(drive(nested, office.perform)["executionArn"])

    first = start()
    for _ in range(9):  # enough for every shard of the list
        office.world.now_ms += 1_000
        office.start(machine)
    assert start() == first
    office.wait(1)
    listed, token = list[str](), dict[str, str]()
    while True:
        page = office.call("ListExecutions", stateMachineArn=machine, maxResults=1, **token)
        listed += [row["executionArn"] for row in page["executions"]]
        if "nextToken" not in page:
            break
        token = {"nextToken": page["nextToken"]}
    assert len(listed) == len(set(listed)) == 11


def test_a_nested_start_by_a_name_that_is_taken_is_refused() -> None:
    office = Office()
    machine = office.create(SLOW)
    run = str(run_of_uuid(office.start(machine).rpartition(":")[2]))
    office.start(machine, name="inner")
    request = {"stateMachineArn": machine, "name": "inner"}
    parent: Parent = {"run": run, "entry": 5, "attempt": 1}
    with pytest.raises(StatesFault, match="ExecutionAlreadyExists"):
        drive(start_nested(office.service, request, b"0123456789abcdef", parent), office.perform)


def test_a_nested_start_whose_id_would_grow_too_long_is_refused() -> None:
    office = Office()
    request = {"stateMachineArn": office.create(FLOW)}
    chance = b"0123456789abcdef"
    run = str(run_of_uuid(office.start(request["stateMachineArn"]).rpartition(":")[2]))
    for _ in range(CHILD_DEPTH_MAX):
        parent: Parent = {"run": run, "entry": 5, "attempt": 1}
        drive(start_nested(office.service, request, chance, parent), office.perform)
        run = child_run(run, 5, 1)
    parent = {"run": run, "entry": 5, "attempt": 1}
    with pytest.raises(StatesFault, match=r"Holdfast\.TooDeep: flow was called 51 executions deep"):
        drive(start_nested(office.service, request, chance, parent), office.perform)


def test_the_limit_on_the_size_of_data_can_be_lifted() -> None:
    office = Office()
    office.api = StatesApi(replace(office.service, payload_bytes_max=None))
    large = {"text": "x" * PAYLOAD_BYTES_MAX}
    doubled = {"Type": "Pass", "Parameters": {"a.$": "$", "b.$": "$"}, "End": True}
    arn = office.start(office.create({"StartAt": "it", "States": {"it": doubled}}), large)
    office.world.run()

    assert json.loads(office.describe(arn)["output"]) == {"a": large, "b": large}
