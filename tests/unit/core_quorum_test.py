"""Lanes that need not all succeed, and lanes that wait for others: docs/reference/extensions.md."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.parsing.parse import DefinitionError, parse_definition
from holdfast.core.facts import Succeeded
from holdfast.core.lanes import TOO_FEW_SUCCEEDED
from holdfast.limits import LANES_MAX
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case, one


def lanes(extension: dict[str, Any], *names: str, **fields: Any) -> Machine:
    branches = [{"StartAt": name, "States": {name: call(name)}} for name in names]
    return one({"Type": "Parallel", "Branches": branches, "Holdfast": extension, **fields})


def items(extension: dict[str, Any], count: int, **fields: Any) -> Machine:
    processor = {"StartAt": "pack", "States": {"pack": call("pack")}}
    state = {"Type": "Map", "Items": list(range(count)), "ItemProcessor": processor}
    return one({**state, "Holdfast": extension, **fields})


FIRST = {"Needed": 1, "Tolerated": 0}
TWO_OF_THREE = {"Needed": 2, "Tolerated": 1}


def test_the_first_to_succeed_ends_the_others() -> None:
    case = Case(lanes(FIRST, "fast", "slow")).start().succeed("won", at="fast")

    assert case.output == ["won", None]
    assert "TaskStateAborted" in case.types


def test_the_first_to_fail_fails_them_all() -> None:
    case = Case(lanes(FIRST, "fast", "slow")).start().fail("Broken", "why", at="slow")

    assert case.failure == ("Broken", "why")


def test_a_failure_that_is_tolerated_leaves_null() -> None:
    case = Case(lanes(TWO_OF_THREE, "a", "b", "c")).start()
    case.succeed(1, at="a").fail("Broken", at="b").succeed(3, at="c")

    assert case.output == [1, None, 3]


def test_as_many_as_are_needed_end_it() -> None:
    case = Case(lanes(TWO_OF_THREE, "a", "b", "c")).start().succeed(1, at="a").succeed(2, at="b")

    assert case.output == [1, 2, None]


def test_a_failure_too_many_is_the_error_of_them_all() -> None:
    case = Case(lanes(TWO_OF_THREE, "a", "b", "c")).start()
    case.fail("First", at="a").fail("Second", "last straw", at="b")

    assert case.failure == ("Second", "last straw")


def test_too_few_successes_are_reported() -> None:
    case = Case(lanes({"Needed": 2, "Tolerated": 2}, "a", "b")).start()
    case.succeed(1, at="a").fail("Broken", at="b")

    assert case.failure == (TOO_FEW_SUCCEEDED, "1 of 2 needed branches succeeded")


def test_errors_are_results_and_a_failure_too_many_joins() -> None:
    case = Case(lanes({"Tolerated": 1, "ReturnErrors": True}, "a", "b", "c", "d")).start()
    case.succeed(1, at="a").fail("First", "why", at="b").fail("Second", at="c")

    assert case.output == [
        1,
        {"Error": "First", "Cause": "why", "Holdfast.Exception": True},
        {"Error": "Second", "Cause": None, "Holdfast.Exception": True},
        {
            "Error": "BranchCancelled",
            "Cause": "the branches were decided before this one ended",
            "Holdfast.Exception": True,
        },
    ]
    assert "ParallelStateFailed" not in case.types


def test_iterations_that_never_began_are_cancelled_results() -> None:
    case = Case(items({"Needed": 2, "ReturnErrors": True}, 3, MaxConcurrency=1)).start()
    case.fail("Broken", at="pack")

    assert [one["Error"] for one in case.output] == ["Broken", "BranchCancelled", "BranchCancelled"]


def test_a_time_out_as_a_result_has_the_cause_that_a_catch_gets() -> None:
    case = Case(lanes({"Tolerated": 2, "ReturnErrors": True}, "a", "b")).start()
    case.fail("States.Timeout", at="a").succeed(2, at="b")

    assert case.output[0] == {"Error": "States.Timeout", "Cause": "", "Holdfast.Exception": True}


def test_the_answer_of_a_late_lane_changes_nothing() -> None:
    after = {
        "it": lanes(FIRST, "fast", "slow")["States"]["it"] | {"Next": "then"},
        "then": call("then"),
    }
    del after["it"]["End"]
    case = Case(machine(after)).start()
    late = case.waiting("slow")
    case.succeed("won", at="fast")
    case.offer(Succeeded(late.entry, late.attempt, "too late"))

    assert case.positions == ["then"]


@pytest.mark.parametrize("count", [1, 2])
def test_iterations_may_fail_up_to_the_tolerance(count: int) -> None:
    case = Case(items({"Tolerated": count}, 3, MaxConcurrency=1)).start()
    for _ in range(count):
        case.fail("Broken")
    while case.status == "RUNNING":
        case.succeed("packed")

    assert case.output == [None] * count + ["packed"] * (3 - count)
    assert case.types.count("MapIterationFailed") == count


def test_one_failure_more_than_the_tolerance_fails_the_map() -> None:
    case = Case(items({"Tolerated": 1}, 3, MaxConcurrency=1)).start().fail("One").fail("Two")

    assert case.failure[0] == "Two"


def test_a_map_may_end_with_the_first_that_succeeds() -> None:
    case = Case(items({"Needed": 1}, 3)).start()
    case.offer(_succeeded(case.state.frames["0.1"]))

    assert case.output == [None, "packed", None]


def test_an_item_that_cannot_be_selected_is_tolerated_like_one_that_fails() -> None:
    selector = "{% $states.context.Map.Item.Value = 1 ? $error('no') : 1 %}"
    case = Case(items({"Tolerated": 1}, 3, ItemSelector=selector)).start()
    while case.status == "RUNNING":
        frame = next(f for f in case.state.frames.values() if f.position == "pack")
        case.succeed("packed", at=None) if len(case.positions) == 1 else case.offer(
            _succeeded(frame)
        )

    assert case.output == ["packed", None, "packed"]


def _succeeded(frame: Any) -> Succeeded:
    return Succeeded(frame.waiting.entry, frame.waiting.attempt, "packed")


def test_numbers_may_be_worked_out() -> None:
    extension = {"Needed": "{% $states.input.n %}", "Tolerated": 1}
    case = Case(lanes(extension, "a", "b")).start({"n": 1}).succeed(1, at="a")

    assert case.output == [1, None]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("Needed", 0, "Needed must be positive."),
        ("Needed", "2", 'The Needed field refers to value "2" which is not a valid integer'),
        ("Tolerated", -1, "Tolerated cannot be negative."),
    ],
)
def test_a_number_that_makes_no_sense_fails_the_state(field: str, value: Any, problem: str) -> None:
    case = Case(lanes({field: "{% $states.input %}"}, "a", "b")).start(value)

    error, cause = case.failure
    assert error == "States.QueryEvaluationError"
    assert cause is not None
    assert cause.endswith(f"#2). {problem}")
    assert case.last("EvaluationFailed").details["location"] == field


def test_as_many_lanes_are_opened_as_one_state_may_have() -> None:
    assert Case(items({}, LANES_MAX, MaxConcurrency=1)).start().positions == ["pack"]


def test_branches_begin_when_those_before_them_have_ended() -> None:
    case = Case(lanes({"After": [[], [], [0], [0, 1]]}, "a", "b", "c", "d")).start()
    assert case.positions == ["a", "b"]

    case.succeed("A", at="a")
    assert case.positions == ["b", "c"]
    assert case.frame("c").input == ["A"]

    case.succeed("B", at="b")
    assert case.frame("d").input == ["A", "B"]

    case.succeed("D", at="d").succeed("C", at="c")
    assert case.output == ["A", "B", "C", "D"]


def test_the_step_after_a_failed_branch_never_begins() -> None:
    case = Case(lanes({"After": [[], [0]]}, "a", "b")).start().fail("Broken", at="a")

    assert case.failure[0] == "Broken"


@pytest.mark.parametrize(
    "extension",
    [
        {"Needed": 0},
        {"Needed": "two"},
        {"Tolerated": -1},
        {"After": [[], [1]]},
        {"After": [[]]},
        {"After": [[], [True]]},
        {"Unknown": 1},
        {"Needed": None},
        {"ReturnErrors": "yes"},
        [],
    ],
)
def test_an_extension_that_makes_no_sense_is_refused(extension: Any) -> None:
    with pytest.raises(DefinitionError, match="Holdfast"):
        parse_definition(lanes(extension, "a", "b"))
