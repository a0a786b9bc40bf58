"""A distributed Map in the core: items in, children counted, results out."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import facts
from holdfast.core.map_results import MapChild, record
from holdfast.core.state import Attempt, ChildExecutions, ChildResult
from holdfast.limits import CHILD_DEPTH_MAX
from tests.builders import call, machine
from tests.unit.core_kit import RUN, START_MS, Case, nobody, one

READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "JSON"},
    "Arguments": {"Bucket": "b", "Key": "k.json"},
}
TIMES = {"started_ms": START_MS, "stopped_ms": START_MS + 7}
WRITER = {"Resource": "arn:aws:states:::s3:putObject", "Arguments": {"Bucket": "b"}}


PROCESSOR = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "inner",
    "States": {"inner": {"Type": "Pass", "End": True}},
}


def a_map(**fields: Any) -> Any:
    return one({"Type": "Map", "Label": "L", "ItemProcessor": PROCESSOR, **fields})


class MapCase(Case):
    @property
    def children(self) -> ChildExecutions:
        waiting = self.frame("it").waiting
        assert isinstance(waiting, ChildExecutions)
        return waiting

    @property
    def attempt(self) -> Attempt:
        waiting = self.frame("it").waiting
        assert isinstance(waiting, Attempt)
        return waiting

    def end(self, lane: int, output: Any = None) -> MapCase:
        return self._tell(lane, {"status": "SUCCEEDED", "output": output, **TIMES})

    def fail_child(self, lane: int) -> MapCase:
        return self._tell(lane, {"status": "FAILED", "error": "E", "cause": "C", **TIMES})

    def _tell(self, lane: int, result: Any) -> MapCase:
        self.offer(facts.ChildEnded(self.children.entry, lane, result))
        return self


def begun(data: Any, **fields: Any) -> MapCase:
    case = MapCase(a_map(Items="{% $states.input %}", **fields))
    case.start(data)
    return case


# -- items and children ----------------------------------------------------------------------------


def test_each_item_is_a_childs_input_and_each_output_stands_in_its_place() -> None:
    case = begun([1, 2])
    assert case.children.inputs == [1, 2]
    case.end(1, "b").end(0, "a")
    assert case.output == ["a", "b"]


def test_the_exit_hangs_off_the_start_of_the_run() -> None:
    assert begun([1]).end(0).links == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "MapStateEntered"),
        (3, 2, "MapStateStarted"),
        (4, 3, "MapRunStarted"),
        (5, 4, "MapRunSucceeded"),
        (6, 5, "MapStateSucceeded"),
        (7, 4, "MapStateExited"),
        (8, 7, "ExecutionSucceeded"),
    ]


def test_the_output_of_a_map_sees_its_results() -> None:
    case = begun([1], Output="{% $states.result %}").end(0, "a")
    assert case.output == ["a"]


def test_every_event_of_a_map_in_a_branch_is_of_that_branch() -> None:
    inner = {"Type": "Map", "ItemProcessor": PROCESSOR, "End": True}
    read_and_written = {**inner, "ItemReader": READER, "ResultWriter": WRITER}
    branch = {"StartAt": "it", "States": {"it": read_and_written}}
    case = MapCase(machine({"both": {"Type": "Parallel", "Branches": [branch], "End": True}}))
    case.start()
    case.succeed({"items": [7], "sources": [["S3://b/x", 1]]})
    case.end(0).succeed("written")
    assert case.output == ["written"]
    outside = {"Execution", "Parallel"}
    inside = [event for event in case.events if not event.type.startswith(tuple(outside))]
    assert {event.holdfast["frame"] for event in inside} == {"0.0"}
    assert [event.type for event in inside if not event.id] == [
        "ItemsAsked",
        "ChildrenStarted",
        "ChildEnded",
        "ResultsAsked",
    ]


def test_no_items_are_no_children() -> None:
    assert begun([]).output == []


def test_the_fields_of_an_object_are_items_with_a_key() -> None:
    case = begun({"x": 1, "y": [2]})
    assert case.last("MapStateStarted").details == {"length": 2}
    assert case.children.inputs == [{"Key": "x", "Value": 1}, {"Key": "y", "Value": [2]}]


@pytest.mark.parametrize(("items", "own"), [({"x": 1}, {"Key": "x"}), ([1], {})])
def test_the_selector_sees_index_key_value_and_source_of_each_item(
    items: Any, own: dict[str, str]
) -> None:
    case = begun(items, ItemSelector="{% $states.context.Map.Item %}")
    assert case.children.inputs == [{"Index": 0, "Value": 1, "Source": "STATE_DATA", **own}]


def test_no_more_children_are_open_than_the_definition_allows() -> None:
    case = begun(list("abcde"), MaxConcurrency=2)
    assert case.children.open_lanes == [0, 1]
    case.end(0)
    assert case.children.open_lanes == [1, 2]


@pytest.mark.parametrize(
    ("depth", "is_open"), [(CHILD_DEPTH_MAX - 1, True), (CHILD_DEPTH_MAX, False)]
)
def test_a_map_whose_childrens_ids_would_grow_too_long_fails_before_the_first(
    depth: int, is_open: bool
) -> None:
    case = MapCase(a_map(Items="{% $states.input %}"))
    run = RUN + ".0.0" * depth
    case.offer(facts.Started(run, None, "flow", [1, 2], START_MS))
    if is_open:
        assert case.children.open_lanes == [0, 1]
    else:
        assert case.failure[0] == "Holdfast.TooDeep"
        assert case.state.children == frozenset()


def test_a_concurrency_that_is_no_number_fails_the_map_by_its_name() -> None:
    case = begun([1], MaxConcurrency="{% 1.5 %}")
    assert case.last("EvaluationFailed").details["location"] == "MaxConcurrency"


def test_a_concurrency_of_none_is_that_of_the_engine() -> None:
    case = begun(list(range(150)), MaxConcurrency=0)
    assert len(case.children.open_lanes) == 100
    assert case.last("MapRunStarted").holdfast["concurrency"] == 0


def test_a_notice_counts_once() -> None:
    case = begun([1, 2]).end(0, "first")
    case.end(0, "second").end(1)
    assert case.output == ["first", None]


def test_a_notice_of_a_map_that_was_given_up_changes_nothing() -> None:
    definition = a_map(Items=[1], Catch=[{"ErrorEquals": ["States.ALL"], "Next": "after"}])
    definition["States"]["after"] = call("after")
    case = MapCase(definition)
    case.start()
    entry = case.children.entry
    case.fail_child(0)
    seen = len(case.events)
    late: ChildResult = {"status": "SUCCEEDED", "started_ms": 0, "stopped_ms": 0}
    case.offer(facts.ChildEnded(entry, 0, late))
    assert (case.positions, len(case.events)) == (["after"], seen)


def test_a_notice_of_a_map_that_is_over_changes_nothing() -> None:
    case = begun([1])
    entry = case.children.entry
    case.end(0, "a")
    late: ChildResult = {"status": "SUCCEEDED", "started_ms": 0, "stopped_ms": 0}
    case.offer(facts.ChildEnded(entry, 0, late))
    assert case.output == ["a"]


@pytest.mark.parametrize(("items", "shown"), [(7, "7"), ("é", '"é"')])
def test_items_that_are_neither_list_nor_object_are_a_failed_evaluation(
    items: Any, shown: str
) -> None:
    case = MapCase(a_map()).start(items)
    error, cause = case.failure
    assert error == "States.QueryEvaluationError"
    assert str(cause).endswith(f" Map state input must be an array but was: {shown}")
    assert "location" not in case.last("EvaluationFailed").details


def test_a_reader_with_failing_arguments_is_not_called() -> None:
    reader = {**READER, "Arguments": {"Bucket": "{% $states.input.nothing %}", "Key": "k"}}
    case = MapCase(a_map(ItemReader=reader))
    case.start({})
    assert case.failure[0] == "States.QueryEvaluationError"
    assert "MapRunStarted" not in case.types


def test_a_map_of_a_workflow_has_children_with_a_region_and_a_name() -> None:
    arn = begun([1]).children.map_run_arn
    assert arn.startswith("arn:holdfast:states:holdfast::mapRun:flow/L:")


# -- batches ---------------------------------------------------------------------------------------


def test_no_items_are_no_batches() -> None:
    assert begun([], ItemBatcher={"MaxItemsPerBatch": 2}).output == []


def test_batches_hold_as_many_items_as_they_may() -> None:
    case = begun([1, 2, 3], ItemBatcher={"MaxItemsPerBatch": 2})
    assert case.children.inputs == [{"Items": [1, 2]}, {"Items": [3]}]
    assert case.children.items == [2, 1]


def test_batches_are_as_large_as_they_may_be_with_all_that_is_in_them() -> None:
    item = "x" * 8
    batch = {"MaxInputBytesPerBatch": len('{"BatchInput":{"a":1},"Items":["xxxxxxxx","xxxxxxxx"]}')}
    case = begun([item] * 3, ItemBatcher={**batch, "BatchInput": {"a": 1}})
    first = {"BatchInput": {"a": 1}, "Items": [item, item]}
    assert case.children.inputs == [first, {"BatchInput": {"a": 1}, "Items": [item]}]


def test_a_batchs_failure_is_that_of_all_its_items() -> None:
    case = begun([1, 2, 3], ItemBatcher={"MaxItemsPerBatch": 2}, ToleratedFailureCount=1)
    assert case.fail_child(0).failure[0] == "States.ExceedToleratedFailureThreshold"


# -- failures --------------------------------------------------------------------------------------


def test_one_failure_is_too_many_when_none_is_tolerated() -> None:
    case = begun([1, 2]).fail_child(0)
    cause = "The specified tolerated failure threshold was exceeded"
    assert case.failure == ("States.ExceedToleratedFailureThreshold", cause)
    assert case.links[4:] == [
        (5, 4, "MapRunFailed"),
        (6, 5, "MapStateFailed"),
        (7, 6, "ExecutionFailed"),
    ]


def test_a_tolerated_failure_is_a_record_among_the_outputs() -> None:
    case = begun([1, 2], ToleratedFailureCount=1).fail_child(1).end(0, "a")
    first, record = case.output
    name = "01run-0-1"
    assert first == "a"
    assert record == {
        "Cause": "C",
        "Error": "E",
        "ExecutionArn": f"arn:holdfast:states:holdfast::execution:flow/L:{name}",
        "Input": "2",
        "InputDetails": {"Included": True},
        "Name": name,
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "REDRIVABLE",
        "StartDate": "2027-01-15T08:00:00.000Z",
        "StateMachineArn": "arn:holdfast:states:holdfast::stateMachine:flow/L",
        "Status": "FAILED",
        "StopDate": "2027-01-15T08:00:00.007Z",
    }


def test_the_lower_of_two_thresholds_holds() -> None:
    both = {"ToleratedFailureCount": 3, "ToleratedFailurePercentage": 25}
    case = begun([1, 2, 3, 4], **both).fail_child(0)
    assert case.status == "RUNNING"
    assert case.fail_child(1).status == "FAILED"


@pytest.mark.parametrize("bound", [3, 3.0])
def test_a_bound_may_be_worked_out(bound: float) -> None:
    case = begun([bound], ToleratedFailureCount="{% $states.input[0] %}")
    assert case.children.failures_max == 3


@pytest.mark.parametrize("bound", ["ToleratedFailureCount", "ToleratedFailurePercentage"])
def test_a_bound_of_none_is_one(bound: str) -> None:
    assert begun([1], **{bound: 0}).children.failures_max == 0


def test_a_hundred_percent_may_fail() -> None:
    case = begun([1, 2], ToleratedFailurePercentage=100).fail_child(0).fail_child(1)
    assert [record["Status"] for record in case.output] == ["FAILED", "FAILED"]


def test_a_threshold_out_of_range_fails_before_the_run_begins() -> None:
    case = begun([1], ToleratedFailurePercentage="{% 100.1 %}")
    where = "An error occurred while executing the state 'it' (entered at the event id #2). "
    cause = "ToleratedFailurePercentage must be between 0 and 100."
    assert case.failure == ("States.QueryEvaluationError", where + cause)
    assert case.links[2:] == [
        (3, 2, "MapStateStarted"),
        (4, 3, "EvaluationFailed"),
        (5, 4, "MapStateFailed"),
        (6, 5, "ExecutionFailed"),
    ]


def test_a_map_that_failed_is_tried_again_with_children_of_its_own() -> None:
    case = begun([1], Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}])
    first = case.children
    case.fail_child(0).after(2)
    assert case.children.entry != first.entry
    assert case.children.map_run_arn != first.map_run_arn
    case.end(0, "a")
    assert case.output == ["a"]


def test_a_failure_can_be_caught() -> None:
    catch = [{"ErrorEquals": ["States.ExceedToleratedFailureThreshold"], "Next": "after"}]
    definition = a_map(Items=[1], Catch=catch)
    definition["States"]["after"] = {"Type": "Pass", "End": True}
    case = MapCase(definition)
    case.start()
    assert case.fail_child(0).output["Error"] == "States.ExceedToleratedFailureThreshold"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            None,
            {
                "RedriveStatus": "NOT_REDRIVABLE",
                "RedriveStatusReason": "Execution is PENDING and cannot be redriven",
                "Status": "PENDING",
            },
        ),
        ({"status": "ABORTED"}, {"RedriveStatus": "REDRIVABLE", "Status": "ABORTED"}),
    ],
)
def test_an_open_child_is_reported_with_its_known_fields_only(result: Any, told: Any) -> None:
    found = record(MapChild("c", "arn:mapRun:m/L:1", False, {"a": ["é"]}, result))
    assert found == {
        "ExecutionArn": "arn:execution:m/L:c",
        "Input": '{"a":["é"]}',
        "InputDetails": {"Included": True},
        "Name": "c",
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "StateMachineArn": "arn:stateMachine:m/L",
        **told,
    }


# -- reading ---------------------------------------------------------------------------------------


def test_a_reader_is_an_attempt_of_the_maps_own() -> None:
    case = MapCase(a_map(ItemReader=READER))
    case.start()
    assert (case.attempt.kind, case.attempt.target) == ("read", "s3:getObject")
    assert case.attempt.arguments == {
        "parameters": {"Bucket": "b", "Key": "k.json"},
        "config": {"InputType": "JSON"},
    }
    assert case.last("MapStateStarted").details == {"length": 0}


def test_the_items_that_are_read_say_where_they_come_from() -> None:
    case = MapCase(a_map(ItemReader=READER, ItemSelector="{% $states.context.Map.Item %}"))
    case.start()
    case.succeed({"items": [7, 8, 9], "sources": [["S3://b/x", 1], ["S3://b/y", 2]]})
    sources = [data["Source"] for data in case.children.inputs]  # type: ignore[index,call-overload]
    assert sources == ["S3://b/x", "S3://b/y", "S3://b/y"]


def test_an_object_that_is_read_has_keys() -> None:
    case = MapCase(a_map(ItemReader=READER))
    case.start()
    case.succeed({"items": {"a": 1}, "sources": [["S3://b/x", 1]]})
    assert case.children.inputs == [{"Key": "a", "Value": 1}]


def test_an_item_that_is_read_and_cannot_be_selected_fails_the_map() -> None:
    case = MapCase(a_map(ItemReader=READER, ItemSelector="{% $nothing %}"))
    case.start()
    case.succeed({"items": [7], "sources": [["S3://b/x", 1]]})
    assert case.failure[0] == "States.QueryEvaluationError"


def test_a_reader_without_a_capable_worker_has_no_lease() -> None:
    case = MapCase(a_map(ItemReader=READER), claim=nobody)
    case.start()
    assert case.attempt.claim is None


def test_a_map_that_is_being_read_can_be_stopped() -> None:
    case = MapCase(a_map(ItemReader=READER))
    case.start()
    case.offer(facts.StopRequested("1", None, None))
    assert (case.status, case.types[-2:]) == ("ABORTED", ["ItemsAsked", "ExecutionAborted"])


def test_a_reader_that_fails_fails_the_run() -> None:
    case = MapCase(a_map(ItemReader=READER))
    case.start()
    case.fail("States.ItemReaderFailed", "no such key")
    assert case.failure == ("States.ItemReaderFailed", "no such key")
    assert case.last("MapRunFailed").details == {
        "error": "States.ItemReaderFailed",
        "cause": "no such key",
    }
    assert case.links[4:] == [
        (5, 4, "MapRunFailed"),
        (6, 5, "MapStateFailed"),
        (7, 6, "ExecutionFailed"),
    ]


def test_a_failure_without_a_cause_is_reported_without_one() -> None:
    case = MapCase(a_map(ItemReader=READER))
    case.start()
    case.fail("States.ItemReaderFailed")
    assert case.last("MapRunFailed").details == {"error": "States.ItemReaderFailed"}


# -- writing ---------------------------------------------------------------------------------------


def test_a_writer_gets_inputs_and_results_and_gives_the_output() -> None:
    case = begun([1, 2], ResultWriter=WRITER, ToleratedFailureCount=1).end(0, "a").fail_child(1)
    assert (case.attempt.kind, case.attempt.target) == ("write", "s3:putObject")
    arguments: Any = case.attempt.arguments
    assert arguments["parameters"] == {"Bucket": "b"}
    assert arguments["inputs"] == [1, 2]
    assert [result["status"] for result in arguments["results"]] == ["SUCCEEDED", "FAILED"]
    case.succeed({"MapRunArn": "x"})
    assert case.output == {"MapRunArn": "x"}


def test_the_known_results_are_written_before_a_run_fails() -> None:
    case = begun([1, 2, 3, 4], ResultWriter=WRITER, MaxConcurrency=2).end(0).fail_child(1)
    arguments: Any = case.attempt.arguments
    statuses = [result and result["status"] for result in arguments["results"]]
    assert statuses == ["SUCCEEDED", "FAILED", "ABORTED", None]
    case.succeed({})
    assert case.failure[0] == "States.ExceedToleratedFailureThreshold"


@pytest.mark.parametrize("is_over", [False, True])
def test_a_writer_with_failing_arguments_fails_the_run(is_over: bool) -> None:
    writer = {**WRITER, "Arguments": {"Bucket": "{% $nothing %}"}}
    case = begun([1], ResultWriter=writer)
    (case.fail_child if is_over else case.end)(0)
    assert case.failure[0] == "States.QueryEvaluationError"


def test_a_writer_that_fails_fails_the_run() -> None:
    case = begun([1], ResultWriter=WRITER).end(0)
    case.fail("States.ResultWriterFailed", "no bucket")
    assert case.failure == ("States.ResultWriterFailed", "no bucket")


def test_a_writer_without_a_bucket_only_formats() -> None:
    def output(**config: str) -> Any:
        writer = {"WriterConfig": {"OutputType": "JSON", **config}}
        return begun([1, 2], ResultWriter=writer).end(0, [1, 2]).end(1, [3]).output

    assert output(Transformation="COMPACT") == [[1, 2], [3]]
    assert output(Transformation="FLATTEN") == [1, 2, 3]
    assert [record["Output"] for record in output(Transformation="NONE")] == ["[1,2]", "[3]"]
    assert output(Transformation="COMPACT", OutputType="JSONL") == "[1,2]\n[3]\n"


# -- bounds that a request changes -----------------------------------------------------------------


def test_a_change_while_the_items_are_read_holds_for_the_children() -> None:
    case = MapCase(a_map(ItemReader=READER, MaxConcurrency=1, ToleratedFailureCount=1))
    case.start({})
    case.offer(facts.BoundsRequested("1", case.attempt.entry, {"concurrency": 3, "count": 5}))
    case.offer(facts.BoundsRequested("2", case.attempt.entry, {"concurrency": 2}))
    case.succeed({"items": [1, 2, 3], "sources": [["S3://b/x", 3]]})
    assert (case.children.started, case.children.failures_max) == (2, 5)


def test_a_lower_concurrency_starts_no_child_until_enough_have_ended() -> None:
    case = begun([1, 2, 3, 4], MaxConcurrency=3)
    case.offer(facts.BoundsRequested("1", case.children.entry, {"concurrency": 1}))
    assert case.children.open_lanes == [0, 1, 2]
    assert case.end(0).end(1).children.open_lanes == [2]
    assert case.end(2).children.open_lanes == [3]


def test_the_smaller_bound_of_failures_holds_after_a_change_of_one() -> None:
    case = begun([1, 2, 3, 4], ToleratedFailurePercentage=50)
    entry = case.children.entry
    case.offer(facts.BoundsRequested("1", entry, {"count": 3}))
    assert case.children.failures_max == 2
    case.offer(facts.BoundsRequested("2", entry, {"percentage": 100}))
    assert case.children.failures_max == 3


def test_a_change_that_is_stored_twice_counts_once() -> None:
    case = begun([1, 2, 3], MaxConcurrency=1)
    asked = facts.BoundsRequested("1", case.children.entry, {"concurrency": 2})
    case.offer(asked)
    case.offer(asked)
    assert [event.type for event in case.events].count("MapRunUpdated") == 1
