"""A stop where something is open that has to be undone: first undone, then ABORTED."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.facts import StopRequested
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case

STOP = StopRequested("1", "Shop.Closed", "the shop closes")


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


def test_a_second_stop_does_not_wait_for_the_undo() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]))

    assert case.offer(STOP).status == "RUNNING"
    assert case.offer(StopRequested("2", "Now", None)).status == "ABORTED"
    assert case.state.error == "Now"


def test_a_stop_that_a_parent_passes_on_does_not_cut_the_undo_that_somebody_asked_for() -> None:
    case = stopped(undoable({"ship": call("ship")}, ["ship"]))
    seen = len(case.events)

    case.offer(StopRequested("2", None, None, by_parent=True))

    assert (case.status, len(case.events)) == ("RUNNING", seen)


def test_a_stop_that_a_parent_has_passed_on_does_not_count_as_somebodys_first() -> None:
    passed_on = StopRequested("1", None, None, by_parent=True)
    case = stopped(undoable({"ship": call("ship")}, ["ship"]), passed_on)

    assert case.offer(StopRequested("2", "Now", None)).status == "RUNNING"
    assert case.offer(StopRequested("3", "Now", None)).status == "ABORTED"


def test_the_first_stop_of_what_is_too_late_lets_the_undo_finish() -> None:
    case = Case({**undoable({"ship": call("ship")}, ["ship"]), "TimeoutSeconds": 60})
    case.start().after(61).offer(STOP)

    assert case.positions == ["undo"]
    assert case.succeed().status == "ABORTED"


def test_the_second_stop_of_what_is_too_late_does_not() -> None:
    case = Case({**undoable({"ship": call("ship")}, ["ship"]), "TimeoutSeconds": 60})
    case.start().after(61).offer(STOP)

    assert case.offer(StopRequested("2", "Now", None)).status == "ABORTED"


def test_what_is_stopped_is_not_too_late_afterwards() -> None:
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
