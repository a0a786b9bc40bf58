"""Parallel and Map: lanes, their variables, joins, bounds and failures."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.error_names import too_many_lanes_cause
from holdfast.core import lanes
from holdfast.core.facts import FailedWith, Succeeded
from holdfast.core.state import Attempt, Lanes
from holdfast.limits import LANES_MAX, MAX_CONCURRENCY_DEFAULT
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case, one, run

ALL = {"ErrorEquals": ["States.ALL"]}


def parallel(*branches: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Each branch is one state, named `b0`, `b1` …"""
    machines = [
        {
            "StartAt": f"b{n}",
            "States": {f"b{n}": state if state["Type"] == "Succeed" else {"End": True, **state}},
        }
        for n, state in enumerate(branches)
    ]
    return {"Type": "Parallel", "Branches": machines, **fields}


def map_over(items: Any, state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    ends = {} if state["Type"] in {"Succeed", "Fail"} else {"End": True}
    processor = {"StartAt": "each", "States": {"each": {**ends, **state}}}
    return {"Type": "Map", "Items": items, "ItemProcessor": processor, **fields}


def caught(state: dict[str, Any], **catcher: Any) -> Machine:
    end = {"Type": "Succeed", "Output": "{% $states.input %}"}
    handled = {"Catch": [{**ALL, "Next": "caught", **catcher}], "End": True}
    return machine({"it": {**state, **handled}, "caught": end})


def open_entries(case: Case) -> list[int]:
    lanes = [frame for frame in case.state.frames.values() if frame.owner is not None]
    return [frame.waiting.entry for frame in lanes if isinstance(frame.waiting, Attempt)]


# -- Parallel --------------------------------------------------------------------------------------


def test_branches_get_the_same_input_and_join_in_their_own_order() -> None:
    case = Case(one(parallel(call("left"), call("right")))).start({"a": 1})
    assert [case.waiting(at).arguments for at in ("b0", "b1")] == [{"a": 1}, {"a": 1}]
    case.succeed("right", at="b1")

    assert case.succeed("left", at="b0").output == ["left", "right"]


def test_arguments_of_a_parallel_are_the_input_of_its_branches() -> None:
    flow = one(
        parallel(
            {"Type": "Succeed"}, Arguments={"x": "{% $states.input + 1 %}"}, Output="{% $states %}"
        )
    )
    states = run(flow, 1).output

    assert states["result"] == [{"x": 2}]
    assert states["input"] == 1


def test_a_branch_reads_the_variables_around_it_and_keeps_its_own() -> None:
    flow = machine(
        {
            "set": {"Type": "Pass", "Assign": {"x": 1, "y": 1}, "Next": "it"},
            "it": parallel(
                {"Type": "Pass", "Assign": {"x": 5}, "Output": "{% $x + $y %}"},
                {"Type": "Succeed", "Output": "{% $x %}"},
                Next="see",
            ),
            "see": {"Type": "Succeed", "Output": "{% [$states.input, $x, $y] %}"},
        }
    )

    assert run(flow).output == [2, 1, 1, 1]


def test_a_variable_of_a_branch_is_gone_after_the_join() -> None:
    flow = machine(
        {
            "it": parallel({"Type": "Pass", "Assign": {"own": 1}}, Next="see"),
            "see": {"Type": "Succeed", "Output": "{% $exists($own) %}"},
        }
    )

    assert run(flow).output is False


def test_a_branch_that_fails_closes_the_others_and_their_results_come_too_late() -> None:
    case = Case(one(parallel(call("left"), call("right")))).start()
    late = case.waiting("b1")
    case.fail("Broken", "b0", at="b0")
    before = list(case.events)
    case.offer(Succeeded(late.entry, late.attempt, "late"))

    assert case.failure == ("Broken", "b0")
    assert case.events == before


def test_a_caught_parallel_continues_without_its_branches() -> None:
    case = Case(caught(parallel(call("left"), call("right")))).start()

    assert case.fail("Broken", "why", at="b1").output == {"Error": "Broken", "Cause": "why"}


def test_a_retried_parallel_begins_all_its_branches_again() -> None:
    retry = [{**ALL, "IntervalSeconds": 30, "MaxAttempts": 1}]
    case = Case(one(parallel(call("left"), call("right"), Retry=retry))).start()
    old = case.waiting("b1")
    case.succeed("old", at="b0").fail("Broken", at="b1")
    assert case.positions == ["it"]
    case.after(29)
    assert case.positions == ["it"]
    case.after(1)
    assert case.positions == ["b0", "b1"]
    case.offer(Succeeded(old.entry, old.attempt, "stale"))
    case.succeed("new", at="b0").succeed("newer", at="b1")

    assert case.output == ["new", "newer"]


def test_lanes_inside_lanes_close_with_the_outermost() -> None:
    inner = parallel(call("deep"), call("deeper"))
    outer = {
        "Type": "Parallel",
        "Branches": [
            {"StartAt": "inner", "States": {"inner": {**inner, "End": True}}},
            {"StartAt": "beside", "States": {"beside": call("beside")}},
        ],
    }
    case = Case(one(outer)).start()
    assert case.positions == ["beside", "b0", "b1"]
    case.fail("Broken", at="beside")

    assert case.failure == ("Broken", None)
    assert case.state.frames == {}


def test_a_parallel_is_numbered_as_aws_numbers_it() -> None:
    case = run(one(parallel({"Type": "Pass"}, {"Type": "Pass"})))

    assert case.links == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "ParallelStateEntered"),
        (3, 2, "ParallelStateStarted"),
        (4, 3, "PassStateEntered"),
        (5, 3, "PassStateEntered"),
        (6, 4, "PassStateExited"),
        (7, 5, "PassStateExited"),
        (8, 7, "ParallelStateSucceeded"),
        (9, 7, "ParallelStateExited"),
        (10, 9, "ExecutionSucceeded"),
    ]


# -- Map -------------------------------------------------------------------------------------------


def test_a_map_gives_its_results_in_the_order_of_its_items() -> None:
    case = Case(one(map_over("{% $states.input %}", call("each")))).start([10, 20])
    entries = open_entries(case)
    case.offer(Succeeded(entries[1], 1, "second"), Succeeded(entries[0], 1, "first"))

    assert case.output == ["first", "second"]


def test_a_map_without_items_goes_over_its_input() -> None:
    state = map_over(None, {"Type": "Succeed", "Output": "{% $states.input * 2 %}"})
    del state["Items"]

    assert run(one(state), [1, 2]).output == [2, 4]


def test_a_map_over_nothing_is_an_empty_list() -> None:
    case = run(one(map_over([], call("each"))))

    assert case.output == []
    assert case.types.count("MapIterationStarted") == 0


def test_an_input_that_is_no_list_is_shown_in_the_failure_of_its_map() -> None:
    state = map_over(None, {"Type": "Succeed"})
    del state["Items"]
    case = run(one(state), {"a": True, "b": "é"})
    details = case.last("EvaluationFailed").details

    assert "location" not in details
    shown = '{"a":true,"b":"é"}'
    assert details["cause"].endswith(f"Map state input must be an array but was: {shown}")
    assert case.types[-3:] == ["EvaluationFailed", "MapStateFailed", "ExecutionFailed"]


def test_more_branches_than_one_state_may_have_fail_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LANES_MAX", 2)
    three = parallel(*[{"Type": "Succeed"}] * 3)

    assert run(one(three)).failure[0] == "Holdfast.TooManyLanes"


def test_more_items_than_one_state_may_have_fail_the_map() -> None:
    case = run(one(map_over("{% $states.input %}", call("each"))), [0] * (LANES_MAX + 1))

    error, cause = case.failure
    assert error == "Holdfast.TooManyLanes"
    assert cause == too_many_lanes_cause(LANES_MAX + 1, LANES_MAX)
    assert cause.startswith("6251 branches or iterations in one state; 6250 are allowed. Give it ")
    assert "MapStateStarted" not in case.types


@pytest.mark.parametrize("items", ["{% 'text' %}", "{% {'a': 1} %}", "{% 5 %}"])
def test_items_that_are_no_list_fail_the_map(items: Any) -> None:
    case = run(one(map_over(items, call("each"))))

    assert case.last("EvaluationFailed").details["location"] == "Items"


def test_a_selector_sees_the_maps_input_and_the_item_and_its_index() -> None:
    selector = {
        "all": "{% $states.input.tag %}",
        "item": "{% $states.context.Map.Item.Value %}",
        "at": "{% $states.context.Map.Item.Index %}",
        "state": "{% $states.context.State.Name %}",
    }
    state = map_over("{% $states.input.list %}", {"Type": "Succeed"}, ItemSelector=selector)

    assert run(one(state), {"tag": "t", "list": ["a", "b"]}).output == [
        {"all": "t", "item": "a", "at": 0, "state": "it"},
        {"all": "t", "item": "b", "at": 1, "state": "it"},
    ]


def test_a_selector_is_at_the_map_whenever_it_is_asked() -> None:
    entered = "{% $states.context.State.EnteredTime %}"
    flow = map_over([1, 2], call("each"), ItemSelector=entered, MaxConcurrency=1)
    case = Case(one(flow)).start().after(10).succeed()

    assert case.waiting().arguments == "2027-01-15T08:00:00.000Z"


def test_a_state_inside_a_map_knows_the_innermost_item() -> None:
    inner = map_over(
        "{% $states.input %}",
        {"Type": "Succeed", "Output": "{% $states.context.Map.Item.Value %}"},
    )
    outer = {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "in", "States": {"in": {**inner, "End": True}}},
    }

    assert run(one(outer), [[1, 2], [3]]).output == [[1, 2], [3]]


def test_a_selector_that_fails_ends_the_map_before_other_items_begin() -> None:
    state = map_over([1, 2, 3], call("each"), ItemSelector="{% $nothing %}")
    case = run(one(state))

    assert case.last("EvaluationFailed").details["location"] == "ItemSelector"
    assert case.types.count("MapIterationStarted") == 1
    assert case.status == "FAILED"


def test_a_selector_that_fails_for_a_later_item_fails_the_map() -> None:
    selector = "{% $states.context.Map.Item.Index = 2 ? $nothing : 1 %}"
    state = map_over([1, 2, 3], call("each"), ItemSelector=selector, MaxConcurrency=2)
    case = Case(one(state)).start()
    case.offer(Succeeded(open_entries(case)[0], 1, "ok"))

    assert case.failure[0] == "States.QueryEvaluationError"


@pytest.mark.parametrize(
    ("declared", "most"), [(3, 3), ("{% 1 + 1 %}", 2), (0, MAX_CONCURRENCY_DEFAULT)]
)
def test_no_more_items_are_worked_on_at_once_than_the_bound(declared: Any, most: int) -> None:
    state = map_over("{% [1..50] %}", call("each"), MaxConcurrency=declared)
    case = Case(one(state)).start()
    seen = 0
    while not case.state.is_ended:
        entries = open_entries(case)
        seen = max(seen, len(entries))
        case.offer(Succeeded(entries[-1], 1, None))

    assert seen == most
    assert len(case.output) == 50


@pytest.mark.parametrize("declared", ["{% -1 %}", "{% 1.5 %}", "{% 'x' %}"])
def test_a_bound_that_is_no_whole_number_fails_the_map(declared: Any) -> None:
    case = run(one(map_over([1], call("each"), MaxConcurrency=declared)))

    assert case.last("EvaluationFailed").details["location"] == "MaxConcurrency"


def test_a_whole_float_is_a_whole_number() -> None:
    case = Case(one(map_over([1, 2], call("each"), MaxConcurrency="{% 2 / 2 %}"))).start()

    assert len(open_entries(case)) == 1


def test_one_item_that_fails_fails_the_map_and_closes_the_others() -> None:
    case = Case(caught(map_over([1, 2, 3], call("each")))).start()
    entries = open_entries(case)
    case.offer(FailedWith(entries[1], 1, "Broken", "item 2"))
    before = list(case.events)
    case.offer(Succeeded(entries[0], 1, "late"))

    assert case.output == {"Error": "Broken", "Cause": "item 2"}
    assert case.events == before
    assert case.last("MapIterationFailed").details == {"index": 1, "name": "it"}


def test_a_map_of_passes_is_numbered_as_aws_numbers_it() -> None:
    case = run(one(map_over([1, 2], {"Type": "Pass"}, MaxConcurrency=1)))

    assert case.links == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "MapStateEntered"),
        (3, 2, "MapStateStarted"),
        (4, 3, "MapIterationStarted"),
        (5, 4, "PassStateEntered"),
        (6, 5, "PassStateExited"),
        (7, 6, "MapIterationSucceeded"),
        (8, 6, "MapIterationStarted"),
        (9, 8, "PassStateEntered"),
        (10, 9, "PassStateExited"),
        (11, 10, "MapIterationSucceeded"),
        (12, 11, "MapStateSucceeded"),
        (13, 11, "MapStateExited"),
        (14, 13, "ExecutionSucceeded"),
    ]


def test_a_retried_map_emits_only_its_start_again_and_one_failure_at_the_end() -> None:
    retry = [{**ALL, "IntervalSeconds": 1, "MaxAttempts": 1}]
    case = Case(caught(map_over([1], {"Type": "Fail", "Error": "E"}, Retry=retry))).start()
    case.after(1)

    assert case.links[2:] == [
        (3, 2, "MapStateStarted"),
        (4, 3, "MapIterationStarted"),
        (5, 4, "FailStateEntered"),
        (6, 5, "MapIterationFailed"),
        (7, 5, "MapStateStarted"),
        (8, 7, "MapIterationStarted"),
        (9, 8, "FailStateEntered"),
        (10, 9, "MapIterationFailed"),
        (11, 9, "MapStateFailed"),
        (12, 11, "MapStateExited"),
        (13, 12, "SucceedStateEntered"),
        (14, 13, "SucceedStateExited"),
        (15, 14, "ExecutionSucceeded"),
    ]


def test_the_open_lanes_know_their_items_and_results() -> None:
    case = Case(one(map_over([7, 8], call("each")))).start()
    case.offer(Succeeded(open_entries(case)[0], 1, "done"))
    lanes = case.waiting("it")

    assert isinstance(lanes, Lanes)
    assert (lanes.count, lanes.started, dict(lanes.results)) == (2, 2, {0: "done"})
