"""A stop where something is open that has to be undone: first undone, then ABORTED."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.facts import RedriveRequested, StopRequested
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case

STOP = StopRequested("1", "Shop.Closed", "the shop closes")
NOW = StopRequested("2", "Now", None, now=True)


def undoable(body: dict[str, Any], inside: list[str], **top: Any) -> Machine:
    """`body`, of which the states `inside` are taken back by the task `release`."""
    undo = {
        "undo": call("release", "undone", Arguments={"why": "{% $failure.Error %}"}),
        "undone": {"Type": "Fail", "Error": "{% $failure.Error %}"},
    }
    part = {
        "States": inside,
        "Begin": "undo",
        "End": "undone",
        "Assign": {"failure": "{% $states.errorOutput %}"},
    }
    extension = {"Undo": [*top.pop("inner", []), part]}
    return machine({**body, **undo}, Holdfast=extension, **top)


def stopped(definition: Machine, *facts: StopRequested) -> Case:
    return Case(definition).start().offer(*(facts or (STOP,)))


def test_a_stop_without_anything_to_undo_ends_at_once() -> None:
    case = stopped(machine({"it": call("ship")}))

    assert (case.status, case.state.error, case.state.cause) == (
        "ABORTED",
        "Shop.Closed",
        "the shop closes",
    )


def test_a_stop_runs_the_undo_of_the_part_it_is_in_and_then_ends_aborted() -> None:
    case = stopped(undoable({"reserve": call("reserve", "ship"), "ship": call("ship")}, ["ship"]))
    assert case.status == "ABORTED"

    case = Case(undoable({"reserve": call("reserve", "ship"), "ship": call("ship")}, ["ship"]))
    case.start().succeed().offer(STOP)

    assert case.status == "RUNNING"
    assert case.waiting("undo").arguments == {"why": "Shop.Closed"}
    assert case.succeed().status == "ABORTED"
    assert (case.state.error, case.state.cause) == ("Shop.Closed", "the shop closes")
    assert case.types[-1] == "ExecutionAborted"


def test_a_stop_without_a_reason_is_undone_as_holdfast_stopped() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]), StopRequested("1", None, None))

    assert case.waiting("undo").arguments == {"why": "Holdfast.Stopped"}
    assert (case.succeed().state.error, case.state.cause) == (None, None)


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        (STOP, {"Error": "Shop.Closed", "Cause": "the shop closes"}),
        (StopRequested("1", None, None), {"Error": "Holdfast.Stopped", "Cause": ""}),
        (None, {"Error": "States.Timeout", "Cause": ""}),
    ],
    ids=["a reason", "no reason", "time-out"],
)
def test_an_undo_sees_error_and_cause(stop: StopRequested | None, why: dict[str, str]) -> None:
    definition = undoable({"ship": call("ship")}, ["ship"], TimeoutSeconds=60)
    case = Case(definition).start()
    if stop is None:
        case.after(61)
    else:
        case.offer(stop)

    assert case.frame("undo").variables["failure"] == why


def test_a_wait_in_the_part_is_left_for_the_undo() -> None:
    case = stopped(undoable({"rest": {"Type": "Wait", "Seconds": 60, "End": True}}, ["rest"]))

    assert case.positions == ["undo"]
    assert case.after(120).positions == ["undo"]


@pytest.mark.parametrize(
    "again",
    [
        StopRequested("1", None, None, now=True),
        StopRequested("2", "Shop.Closed", "the shop closes"),
        StopRequested("2", "Later", None),
        StopRequested("2", None, None, by_parent=True),
    ],
    ids=["the same", "repeated", "with other words", "passed on by a parent"],
)
def test_a_second_stop_changes_nothing(again: StopRequested) -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]))
    seen = len(case.events)

    case.offer(again)

    assert (case.status, len(case.events)) == ("RUNNING", seen)
    assert (case.succeed().status, case.state.error) == ("ABORTED", "Shop.Closed")


def test_two_stops_that_are_read_at_once_are_one() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]), STOP, StopRequested("2", None, None))

    assert (case.status, case.types.count("Stopping")) == ("RUNNING", 1)
    assert case.succeed().status == "ABORTED"


def test_a_stop_that_does_not_wait_ends_an_undo_that_has_begun() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"])).offer(NOW)

    assert (case.status, case.state.is_undone) == ("ABORTED", True)
    assert (case.state.error, case.state.cause) == ("Now", "the shop closes")


def test_a_stop_that_does_not_wait_undoes_nothing_and_is_redriven_from_where_it_was() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]), NOW)
    assert (case.status, case.state.is_undone) == ("ABORTED", False)
    assert {"Stopping", "UndoStarted"}.isdisjoint(case.types)

    assert case.offer(RedriveRequested("3")).positions == ["ship"]
    assert case.succeed().status == "SUCCEEDED"


def test_a_stop_from_a_parent_does_not_count_as_an_operators_first() -> None:
    passed_on = StopRequested("1", None, None, by_parent=True)
    case = stopped(undoable({"ship": call("ship")}, ["ship"]), passed_on)

    assert case.offer(StopRequested("2", "Closed", None)).status == "RUNNING"
    seen = len(case.events)
    assert len(case.offer(StopRequested("3", "Again", None)).events) == seen
    assert (case.succeed().status, case.state.error) == ("ABORTED", "Closed")


def test_the_first_stop_after_a_time_out_lets_the_undo_finish() -> None:
    case = Case({**undoable({"ship": call("ship")}, ["ship"]), "TimeoutSeconds": 60})
    case.start().after(61).offer(STOP)

    assert case.positions == ["undo"]
    assert case.succeed().status == "ABORTED"


@pytest.mark.parametrize("before", [(), (STOP,)], ids=["late", "late and stopped"])
def test_a_stop_that_does_not_wait_ends_the_undo_of_a_time_out(
    before: tuple[StopRequested, ...],
) -> None:
    case = Case({**undoable({"ship": call("ship")}, ["ship"]), "TimeoutSeconds": 60})
    case.start().after(61).offer(*before)
    assert case.positions == ["undo"]

    assert case.offer(NOW).status == "ABORTED"


def test_a_stopped_execution_does_not_time_out_afterwards() -> None:
    case = Case({**undoable({"ship": call("ship")}, ["ship"]), "TimeoutSeconds": 60})
    case.start().offer(STOP).after(61)

    assert case.succeed().status == "ABORTED"


def test_an_undo_that_fails_and_is_not_caught_still_ends_aborted() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"])).fail("Broken")

    assert (case.status, case.state.error) == ("ABORTED", "Shop.Closed")


def test_inner_parts_are_undone_before_those_around_them() -> None:
    inner = {"States": ["ship"], "Begin": "inner undo", "End": "inner undone", "Assign": {}}
    body = {
        "ship": call("ship"),
        "inner undo": call("unload", "inner undone"),
        "inner undone": {"Type": "Fail", "Error": "E"},
    }
    case = stopped(undoable(body, ["ship", "inner undo", "inner undone"], inner=[inner]))

    assert case.positions == ["inner undo"]
    assert case.succeed().positions == ["undo"]
    assert case.succeed().status == "ABORTED"


def test_lanes_are_undone_before_the_line_that_opened_them() -> None:
    lane = {
        "pack": call("pack"),
        "lane undo": call("unpack", "lane undone"),
        "lane undone": {"Type": "Fail", "Error": "E"},
    }
    inner = {"States": ["pack"], "Begin": "lane undo", "End": "lane undone", "Assign": {}}
    branches = [
        {"StartAt": "pack", "States": lane},
        {"StartAt": "bill", "States": {"bill": call("bill")}},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    case = stopped(undoable({"both": both}, ["both"], inner=[inner]))

    assert case.positions == ["lane undo"]
    assert case.succeed().positions == ["undo"]
    assert case.succeed().status == "ABORTED"
