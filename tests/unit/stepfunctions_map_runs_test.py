"""ListMapRuns, DescribeMapRun and UpdateMapRun: the results of a distributed Map."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from tests.unit.states_kit import PLACE
from tests.unit.states_world import PASS, WAIT, Office, states

DAY_SECONDS = 86_400


def flow(state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Do",
        "States": {"Do": {**state, **({} if state["Type"] == "Fail" else {"End": True})}},
    }
    items = {"Items": "{% $states.input %}", "Label": "Each", "ItemProcessor": processor}
    return states(Over={"Type": "Map", **items, **fields})


def only_run(office: Office, execution: str) -> Any:
    [run] = office.call("ListMapRuns", executionArn=execution)["mapRuns"]
    return run


def test_a_map_run_is_listed_and_described() -> None:
    office = Office()
    execution = office.start(office.create(flow(PASS, MaxConcurrency=2)), [1, 2, 3])
    office.wait(60)
    run = only_run(office, execution)
    assert run["executionArn"] == execution
    assert run["mapRunArn"].startswith(PLACE.arn("mapRun", "flow/Each") + ":")
    assert run["stateMachineArn"] == PLACE.machine("flow/Each")
    counts = {
        "aborted": 0,
        "failed": 0,
        "pending": 0,
        "resultsWritten": 3,
        "running": 0,
        "succeeded": 3,
        "timedOut": 0,
        "total": 3,
    }
    assert office.call("DescribeMapRun", mapRunArn=run["mapRunArn"]) == {
        "mapRunArn": run["mapRunArn"],
        "executionArn": execution,
        "status": "SUCCEEDED",
        "startDate": run["startDate"],
        "stopDate": run["stopDate"],
        "maxConcurrency": 2,
        "toleratedFailurePercentage": 0.0,
        "toleratedFailureCount": 0,
        "itemCounts": counts,
        "executionCounts": counts,
    }


def test_the_executions_of_a_map_run_are_listed_and_described() -> None:
    office = Office()
    execution = office.start(office.create(flow(PASS)), ["a", "b"])
    office.wait(60)
    map_run = only_run(office, execution)["mapRunArn"]
    rows = office.call("ListExecutions", mapRunArn=map_run)["executions"]
    assert len(rows) == 2
    for row in rows:
        assert (row["status"], row["mapRunArn"]) == ("SUCCEEDED", map_run)
        found = office.describe(row["executionArn"])
        assert found["mapRunArn"] == map_run
        assert found["stateMachineArn"] == row["stateMachineArn"] == PLACE.machine("flow/Each")
        assert found["name"] == row["name"]
    assert {office.describe(row["executionArn"])["input"] for row in rows} == {'"a"', '"b"'}
    machine = PLACE.machine("flow")
    listed = office.call("ListExecutions", stateMachineArn=machine)["executions"]
    assert [row["executionArn"] for row in listed] == [execution]


def test_open_items_are_counted_while_it_runs() -> None:
    office = Office()
    execution = office.start(office.create(flow(WAIT, MaxConcurrency=2)), [1, 2, 3])
    office.wait(10)
    run = office.call("DescribeMapRun", mapRunArn=only_run(office, execution)["mapRunArn"])
    counts = run["executionCounts"]
    assert run["status"] == "RUNNING"
    assert "stopDate" not in run
    assert (counts["running"], counts["pending"], counts["total"]) == (2, 1, 3)


def test_a_run_that_failed_counts_its_failures() -> None:
    office = Office()
    definition = flow({"Type": "Fail", "Error": "Broken"}, ToleratedFailureCount=1)
    execution = office.start(office.create(definition), [1, 2, 3])
    office.wait(60)
    run = office.call("DescribeMapRun", mapRunArn=only_run(office, execution)["mapRunArn"])
    assert (run["status"], run["toleratedFailureCount"]) == ("FAILED", 1)
    assert run["executionCounts"]["failed"] >= 2
    assert run["executionCounts"]["total"] == 3


def test_a_run_of_a_stopped_execution_was_aborted() -> None:
    office = Office()
    execution = office.start(office.create(flow(WAIT)), [1])
    office.wait(10)
    office.call("StopExecution", executionArn=execution)
    office.wait(10)
    run = office.call("DescribeMapRun", mapRunArn=only_run(office, execution)["mapRunArn"])
    assert run["status"] == "ABORTED"


def test_a_map_run_is_described_though_the_beginning_of_its_parent_is_gone() -> None:
    """TTL takes a record after 90 days."""
    office = Office()
    nap = {"Type": "Wait", "Seconds": 100 * DAY_SECONDS}
    definition = flow(WAIT)
    definition["States"] = {"Nap": {**nap, "Next": "Over"}, **definition["States"]}
    definition["StartAt"] = "Nap"
    execution = office.start(office.create(definition), [1])
    office.wait(100 * DAY_SECONDS + 10)

    run = office.call("DescribeMapRun", mapRunArn=only_run(office, execution)["mapRunArn"])
    assert office.types(execution)[0] != "ExecutionStarted"
    assert (run["executionArn"], run["status"]) == (execution, "RUNNING")


@pytest.mark.parametrize("identifier", ["nobody", "01234567-89ab-cdef-0123-456789abcdef"])
def test_a_map_run_that_is_not_there(identifier: str) -> None:
    arn = PLACE.map_run("flow", "Each", identifier)
    code, _ = Office().refusal("DescribeMapRun", mapRunArn=arn)
    assert Office().refusal("ListExecutions", mapRunArn=arn)[0] == code
    assert code == "ResourceNotFound"


BOUNDS = {"maxConcurrency": 3, "toleratedFailureCount": 2, "toleratedFailurePercentage": 50.0}


def test_a_higher_concurrency_starts_more_children_at_once() -> None:
    office = Office()
    execution = office.start(office.create(flow(WAIT, MaxConcurrency=1)), [1, 2, 3, 4])
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    assert office.call("UpdateMapRun", mapRunArn=arn, maxConcurrency=3) == {}
    office.wait(10)
    run = office.call("DescribeMapRun", mapRunArn=arn)
    assert run["maxConcurrency"] == 3
    assert (run["executionCounts"]["running"], run["executionCounts"]["pending"]) == (3, 1)
    assert len(office.call("ListExecutions", mapRunArn=arn)["executions"]) == 3


def test_a_description_has_a_change_before_the_parent_applies_it() -> None:
    office = Office()
    execution = office.start(office.create(flow(WAIT)), [1])
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    for name, bound in BOUNDS.items():
        office.call("UpdateMapRun", mapRunArn=arn, **{name: bound})
    described = office.call("DescribeMapRun", mapRunArn=arn)
    assert {name: described[name] for name in BOUNDS} == BOUNDS
    office.wait(10)
    assert office.call("DescribeMapRun", mapRunArn=arn) == described


def test_failures_that_an_update_tolerates_do_not_fail_the_run() -> None:
    office = Office()
    waiting = flow(WAIT)
    inner = waiting["States"]["Over"]["ItemProcessor"]["States"]
    inner |= {"Do": {**WAIT, "Next": "Bad"}, "Bad": {"Type": "Fail"}}
    execution = office.start(office.create(waiting), [1, 2, 3])
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    office.call("UpdateMapRun", mapRunArn=arn, toleratedFailurePercentage=100)
    office.wait(200)
    assert office.call("DescribeMapRun", mapRunArn=arn)["status"] == "SUCCEEDED"


def test_a_run_with_more_failures_than_an_update_tolerates_fails_at_once() -> None:
    office = Office()
    mixed = flow(PASS, MaxConcurrency=1, ToleratedFailureCount=3)
    mixed["States"]["Over"]["ItemProcessor"]["StartAt"] = "Which"
    mixed["States"]["Over"]["ItemProcessor"]["States"] = {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input = 0 %}", "Next": "Bad"}],
            "Default": "Nap",
        },
        "Bad": {"Type": "Fail"},
        "Nap": {**WAIT, "End": True},
    }
    execution = office.start(office.create(mixed), [0, 1, 2])
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    office.call("UpdateMapRun", mapRunArn=arn, toleratedFailureCount=0)
    office.wait(10)
    assert office.call("DescribeMapRun", mapRunArn=arn)["status"] == "FAILED"
    assert office.describe(execution)["error"] == "States.ExceedToleratedFailureThreshold"


def test_an_update_without_a_bound_or_of_a_run_that_has_ended_is_refused() -> None:
    office = Office()
    execution = office.start(office.create(flow(PASS)), [1])
    office.wait(60)
    arn = only_run(office, execution)["mapRunArn"]
    for request in ({}, {"maxConcurrency": 5}):
        assert office.refusal("UpdateMapRun", mapRunArn=arn, **request)[0] == "ValidationException"


@pytest.mark.parametrize("pause_seconds", [0, 200])
def test_pages_hold_every_run_once_also_when_another_one_begins_meanwhile(
    pause_seconds: int,
) -> None:
    def over(label: str) -> dict[str, Any]:
        state = {**flow(PASS)["States"]["Over"], "Label": label}
        del state["End"]
        processor = state["ItemProcessor"]
        inner = {f"Do{label}": processor["States"]["Do"]}
        return {**state, "ItemProcessor": {**processor, "StartAt": f"Do{label}", "States": inner}}

    maps = {name: over(name) for name in ("A", "B", "C")}
    office = Office()
    execution = office.start(office.create(states(**maps, Nap=WAIT, D=over("D"))), [{}])
    office.wait(60)

    answer = office.call("ListMapRuns", executionArn=execution, maxResults=1)
    office.wait(pause_seconds)
    found = list(answer["mapRuns"])
    while "nextToken" in answer:
        request = {"executionArn": execution, "nextToken": answer["nextToken"], "maxResults": 1}
        answer = office.call("ListMapRuns", **request)
        found += answer["mapRuns"]
    labels = [run["stateMachineArn"].rpartition("/")[2] for run in found]
    assert labels == ["C", "B", "A"]


def test_an_execution_without_a_distributed_map_has_none() -> None:
    office = Office()
    execution = office.start(office.create(states(A=PASS)))
    assert office.call("ListMapRuns", executionArn=execution) == {"mapRuns": []}


# -- redrive ---------------------------------------------------------------------------------------


class Shaky:
    """Calls of which some fail, by the number in their arguments, until they are mended."""

    def __init__(self, *broken: int) -> None:
        self.broken = set(broken)
        self.calls: list[int] = []

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        number = cast("dict[str, int]", effect.arguments)["MaxBuckets"]
        self.calls.append(number)
        return TaskFailed("Broken", None) if number in self.broken else TaskSucceeded(number)


CALL = {
    "Type": "Task",
    "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets",
    "Arguments": {"MaxBuckets": "{% $states.input %}"},
}


@pytest.mark.parametrize("concurrency", [1, 2, 40])
def test_a_redrive_of_the_parent_runs_only_the_items_that_had_not_succeeded(
    concurrency: int,
) -> None:
    shaky = Shaky(3, 4)
    office = Office(shaky)
    definition = flow(CALL, MaxConcurrency=concurrency, ToleratedFailureCount=1)
    execution = office.start(office.create(definition), [1, 2, 3, 4, 5])
    office.wait(100)
    arn = only_run(office, execution)["mapRunArn"]
    assert office.call("DescribeMapRun", mapRunArn=arn)["status"] == "FAILED"
    done = [number for number in shaky.calls if number not in shaky.broken]
    shaky.broken.clear()
    shaky.calls.clear()

    office.call("RedriveExecution", executionArn=execution)
    office.wait(100)
    described = office.describe(execution)
    assert (described["status"], described["output"]) == ("SUCCEEDED", "[1,2,3,4,5]")
    assert sorted(shaky.calls) == sorted({1, 2, 3, 4, 5}.difference(done))
    run = office.call("DescribeMapRun", mapRunArn=arn)
    assert (run["status"], run["redriveCount"]) == ("SUCCEEDED", 1)
    assert run["redriveDate"] >= run["startDate"]
    assert run["executionCounts"]["succeeded"] == run["executionCounts"]["total"] == 5
    assert office.types(execution)[-6:] == [
        "ExecutionRedriven",
        "MapRunRedriven",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ]


def test_a_child_is_redriven_where_it_failed_and_only_through_its_parent() -> None:
    shaky = Shaky(7)
    office = Office(shaky)
    definition = flow(PASS)
    definition["States"]["Over"]["ItemProcessor"]["States"] = {
        "Do": {"Type": "Pass", "Next": "Call"},
        "Call": {**CALL, "End": True},
    }
    execution = office.start(office.create(definition), [7])
    office.wait(100)
    arn = only_run(office, execution)["mapRunArn"]
    [row] = office.call("ListExecutions", mapRunArn=arn)["executions"]
    assert (row["status"], row["itemCount"]) == ("FAILED", 1)
    child = office.describe(row["executionArn"])
    assert child["redriveStatus"] == "REDRIVABLE_BY_MAP_RUN"
    refused = office.refusal("RedriveExecution", executionArn=row["executionArn"])
    assert refused[0] == "ExecutionNotRedrivable"

    shaky.broken.clear()
    office.call("RedriveExecution", executionArn=execution)
    office.wait(100)
    child = office.describe(row["executionArn"])
    assert (child["status"], child["redriveCount"]) == ("SUCCEEDED", 1)
    assert office.types(row["executionArn"]).count("PassStateEntered") == 1
    assert office.describe(execution)["output"] == "[7]"


def test_a_map_run_is_redriven_again_and_again() -> None:
    shaky = Shaky(1, 2)
    office = Office(shaky)
    execution = office.start(office.create(flow(CALL)), [1, 2, 3])
    office.wait(100)
    arn = only_run(office, execution)["mapRunArn"]
    for count in (1, 2):
        shaky.broken.discard(count)
        office.call("RedriveExecution", executionArn=execution)
        office.wait(100)
        assert office.call("DescribeMapRun", mapRunArn=arn)["redriveCount"] == count
    assert office.describe(execution)["output"] == "[1,2,3]"


def test_children_of_a_stopped_execution_are_redriven_even_while_they_stop() -> None:
    office = Office()
    execution = office.start(office.create(flow(WAIT, MaxConcurrency=2)), [1, 2, 3])
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    office.call("StopExecution", executionArn=execution)
    office.wait(0)
    office.call("RedriveExecution", executionArn=execution)
    office.wait(1_000)
    assert office.describe(execution)["status"] == "SUCCEEDED"
    counts = office.call("DescribeMapRun", mapRunArn=arn)["executionCounts"]
    assert (counts["succeeded"], counts["total"]) == (3, 3)


def test_a_stop_after_a_redrive_stops_the_redriven_children() -> None:
    shaky = Shaky(1)
    office = Office(shaky)
    definition = flow(PASS)
    definition["States"]["Over"]["ItemProcessor"]["States"] = {
        "Do": {**CALL, "Output": "{% $states.input %}", "Next": "Nap"},
        "Nap": {**WAIT, "End": True},
    }
    execution = office.start(office.create(definition), [1])
    office.wait(10)
    shaky.broken.clear()
    office.call("RedriveExecution", executionArn=execution)
    office.wait(10)
    office.call("StopExecution", executionArn=execution)
    office.wait(10)
    arn = only_run(office, execution)["mapRunArn"]
    [row] = office.call("ListExecutions", mapRunArn=arn)["executions"]
    assert row["status"] == "ABORTED"


def test_a_map_run_whose_parallel_has_failed_is_aborted_while_the_execution_goes_on() -> None:
    office = Office()
    over = flow(WAIT)["States"]["Over"]
    branches = [
        {"StartAt": "Over", "States": {"Over": {**over, "Items": [1, 2], "End": True}}},
        {
            "StartAt": "Soon",
            "States": {
                "Soon": {"Type": "Wait", "Seconds": 5, "Next": "Bad"},
                "Bad": {"Type": "Fail", "Error": "E"},
            },
        },
    ]
    catch = [{"ErrorEquals": ["E"], "Next": "Later"}]
    both = {"Type": "Parallel", "Branches": branches, "Catch": catch}
    execution = office.start(office.create(states(Both=both, Later=WAIT)))
    office.wait(20)
    assert office.describe(execution)["status"] == "RUNNING"
    [aborted] = [one for one in office.history(execution) if one["type"] == "MapRunAborted"]
    [state] = [one for one in office.history(execution) if one["type"] == "MapStateAborted"]
    assert state["previousEventId"] == aborted["id"]
    assert set(aborted) == {"id", "previousEventId", "timestamp", "type"}
    found = office.call("DescribeMapRun", mapRunArn=only_run(office, execution)["mapRunArn"])
    assert (found["status"], found["stopDate"]) == ("ABORTED", aborted["timestamp"])
    assert found["executionCounts"]["aborted"] == 2
    children = office.call("ListExecutions", mapRunArn=found["mapRunArn"])["executions"]
    assert [row["status"] for row in children] == ["ABORTED", "ABORTED"]
