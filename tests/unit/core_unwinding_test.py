"""Cancellations that meet: a stop, deadlines and failures in the same line.
docs/reference/extensions.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import cancelling
from holdfast.core.facts import RedriveRequested, StopRequested
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case, part

STOP = StopRequested("1", None, None)


def block(begin: str, seconds: int, states: list[str], following: str | None) -> Machine:
    found: Machine = {"Begin": begin, "Seconds": seconds, "States": states}
    return found if following is None else {**found, "Next": following}


def passed(target: str) -> Machine:
    return {"Type": "Pass", "Next": target}


# -- a deadline around an undo ---------------------------------------------------------------------


def undone_in_a_block(seconds: int = 60) -> Machine:
    """with timeout(seconds): one, taken back by `undo one`; then after, or late."""
    states, undo = part("one", "after")
    inside = ["one", "undo one", "one undone"]
    return machine(
        {"block": passed("one"), **states, "after": call("after"), "late": call("late")},
        Holdfast={"Undo": [undo], "Deadlines": [block("block", seconds, inside, "late")]},
    )


def test_a_deadline_does_not_interrupt_the_undo_of_a_stop() -> None:
    case = Case(undone_in_a_block()).start().after(50).offer(STOP)
    assert case.after(20).positions == ["undo one"]

    assert case.succeed().status == "ABORTED"


def test_an_inner_deadline_does_not_interrupt_the_undo_of_an_outer_one() -> None:
    states, undo = part("one", "after")
    inside = ["one", "undo one", "one undone"]
    rest = {"after": call("after"), "early": call("early"), "late": call("late")}
    inner = block("inner", 70, inside, "early")
    outer = block("outer", 60, ["inner", *inside, "early"], "late")
    definition = machine(
        {"outer": passed("inner"), "inner": passed("one"), **states, **rest},
        Holdfast={"Undo": [undo], "Deadlines": [inner, outer]},
    )
    case = Case(definition).start().after(61)
    assert case.positions == ["undo one"]

    assert case.after(20).positions == ["undo one"]
    assert case.succeed().positions == ["late"]


def test_a_deadline_that_passes_while_its_block_is_undone_is_over() -> None:
    """Else every look at the execution would find it overdue."""
    case = Case(undone_in_a_block()).start().after(50).offer(STOP).after(20)

    assert case.frame("undo one").deadlines == ()


def test_a_deadline_within_an_undo_holds_while_it_runs() -> None:
    states, undo = part("one")
    states["undo one"] = passed("refund")
    rest = {"refund": call("refund", "one undone"), "give up": call("give up", "one undone")}
    definition = machine(
        {**states, **rest},
        Holdfast={
            "Undo": [undo],
            "Deadlines": [block("undo one", 60, ["refund"], "give up")],
            "Shielded": [["undo one", "refund", "give up"]],
        },
    )
    case = Case(definition).start().offer(STOP)
    assert case.positions == ["refund"]

    assert case.after(61).positions == ["give up"]
    assert case.succeed().status == "ABORTED"


# -- three at once ---------------------------------------------------------------------------------


def test_a_stop_is_not_forgotten_when_two_deadlines_pass_after_it() -> None:
    """with shielded(): with timeout(100): with shielded(): with timeout(60): one (undone)."""
    states, undo = part("one", "after")
    inside = ["one", "undo one", "one undone"]
    inner = block("inner", 60, inside, "early")
    outer = block("outer", 100, ["inner", *inside, "early"], "late")
    rest = {"early": call("early", "after"), "late": call("late", "after"), "after": call("after")}
    shields = [["inner", *inside, "early"], ["outer", "inner", *inside, "early", "late"]]
    definition = machine(
        {"outer": passed("inner"), "inner": passed("one"), **states, **rest},
        Holdfast={"Undo": [undo], "Deadlines": [inner, outer], "Shielded": shields},
    )
    case = Case(definition).start().after(61)
    case.offer(STOP).after(40)
    assert case.positions == ["undo one"]

    assert case.succeed().positions == ["early"]
    assert case.succeed().positions == ["late"]
    assert case.succeed().status == "ABORTED"


def test_a_stop_ends_a_loop_that_never_waits_behind_a_shield(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """with shielded(): with timeout(60): one (undone). Then a loop that only sends events. The stop
    is requested after the deadline has passed.
    """
    monkeypatch.setattr(cancelling, "PLAIN_TASKS_WHEN_CANCELLED_MAX", 5)
    states, undo = part("one", "after")
    inside = ["one", "undo one", "one undone"]
    event = {"name": "paid", "key": "k", "data": 1}
    loop = {"Type": "Task", "Resource": "holdfast:send", "Arguments": event, "Next": "loop"}
    definition = machine(
        {"inner": passed("one"), **states, "after": call("after"), "loop": loop},
        Holdfast={
            "Undo": [undo],
            "Deadlines": [block("inner", 60, inside, "loop")],
            "Shielded": [["inner", *inside]],
        },
    )
    case = Case(definition).start().after(61).offer(STOP).succeed()
    assert case.positions == ["loop"]
    for _ in range(10):
        if case.status == "RUNNING":
            case.succeed()
    assert case.status == "ABORTED"


# -- lanes -----------------------------------------------------------------------------------------


def test_an_item_that_cannot_be_selected_begins_no_more_items() -> None:
    """The first item has something to undo: the Map waits for that, and for nothing else."""
    states, undo = part("pack")
    selector = "{% $states.context.Map.Item.Value = 1 ? $error('no') : 1 %}"
    lanes: dict[str, Any] = {
        "Type": "Map",
        "Items": [0, 1, 2, 3],
        "ItemSelector": selector,
        "ItemProcessor": {"StartAt": "pack", "States": states},
        "End": True,
    }
    case = Case(machine({"all": lanes}, Holdfast={"Undo": [undo]})).start()
    assert case.positions == ["undo pack"]

    assert case.succeed().failure[0] == "States.QueryEvaluationError"


def test_many_items_that_cannot_be_selected_are_tolerated() -> None:
    count = 3_000
    lanes: dict[str, Any] = {
        "Type": "Map",
        "Items": list(range(count)),
        "ItemSelector": "{% $error('no') %}",
        "ItemProcessor": {"StartAt": "pack", "States": {"pack": call("pack")}},
        "Holdfast": {"Tolerated": count},
        "MaxConcurrency": 1,
        "End": True,
    }
    case = Case(machine({"all": lanes})).start()

    assert case.output == [None] * count


def test_lanes_whose_undo_cannot_begin_are_over_all_the_same() -> None:
    """A branch whose undo fails at its beginning, then one without anything to undo."""
    states, undo = part("a")
    undo["Assign"] = {"x": "{% $error('no') %}"}
    branches = [
        {"StartAt": "a", "States": states},
        {"StartAt": "b", "States": {"b": call("b")}},
        {"StartAt": "c", "States": {"c": call("c")}},
    ]
    catch = [{"ErrorEquals": ["Broken"], "Next": "caught"}]
    lanes = {"Type": "Parallel", "Branches": branches, "End": True, "Catch": catch}
    definition = machine({"all": lanes, "caught": call("caught")}, Holdfast={"Undo": [undo]})
    case = Case(definition).start().fail("Broken", at="c")

    assert case.positions == ["caught"]


def test_a_sibling_is_cancelled_for_the_failure_though_a_stop_waits_outside() -> None:
    states, undo = part("a")
    branches = [
        {"StartAt": "a", "States": states},
        {"StartAt": "b", "States": {"b": call("b")}},
    ]
    lanes = {"Type": "Parallel", "Branches": branches, "Next": "then"}
    shields = [["all", *states, "b"]]
    definition = machine(
        {"all": lanes, "then": call("then")}, Holdfast={"Undo": [undo], "Shielded": shields}
    )
    case = Case(definition).start().offer(STOP).fail("Broken", at="b")

    assert case.frame("undo a").variables["why_a"] == "Holdfast.Cancelled"
    assert case.succeed().status == "ABORTED"


# -- a block that begins again ---------------------------------------------------------------------


def test_a_loop_that_enters_its_block_again_has_one_clock() -> None:
    """The block's first state is one of its own, and is where the loop continues."""
    definition = machine(
        {"one": call("one", "two"), "two": call("two", "one"), "late": call("late")},
        Holdfast={"Deadlines": [block("one", 60, ["one", "two"], "late")]},
    )
    case = Case(definition).start()
    for _ in range(3):
        case.after(50).succeed().succeed()

    assert len(case.frame("one").deadlines) == 1
    assert case.after(61).positions == ["late"]


def test_a_retry_of_a_blocks_first_state_does_not_give_it_more_time() -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 9, "IntervalSeconds": 1}]
    branch = {"StartAt": "a", "States": {"a": call("a")}}
    lanes = {"Type": "Parallel", "Branches": [branch], "End": True, "Retry": retry}
    definition = machine(
        {"all": lanes, "late": call("late")},
        Holdfast={"Deadlines": [block("all", 60, ["all"], "late")]},
    )
    case = Case(definition).start().after(50).fail("Broken", at="a").after(2)
    assert case.positions == ["a"]
    assert len(case.frame("all").deadlines) == 1

    assert case.after(9).positions == ["late"]


def test_a_redrive_at_a_blocks_first_state_has_one_clock() -> None:
    definition = machine(
        {"one": call("one"), "late": call("late")},
        Holdfast={"Deadlines": [block("one", 60, ["one"], "late")]},
    )
    case = Case(definition).start().after(50).fail("Broken").offer(RedriveRequested("5"))

    assert len(case.frame("one").deadlines) == 1
    assert case.after(50).positions == ["one"]
    assert case.after(11).positions == ["late"]


def test_a_redrive_restarts_lanes_when_too_few_have_succeeded() -> None:
    branches = [{"StartAt": name, "States": {name: call(name)}} for name in ("a", "b")]
    quorum = {"Needed": 2, "Tolerated": 1}
    lanes = {"Type": "Parallel", "Branches": branches, "End": True, "Holdfast": quorum}
    case = Case(machine({"all": lanes})).start().succeed(1, at="a").fail("Broken", at="b")
    assert case.failure[0] == "Holdfast.TooFewSucceeded"

    case.offer(RedriveRequested("5"))

    assert case.positions == ["a", "b"]
    assert case.succeed(1, at="a").succeed(2, at="b").output == [1, 2]


def test_a_redrive_restarts_lanes_whose_block_had_no_time_left() -> None:
    branches = [{"StartAt": name, "States": {name: call(name)}} for name in ("a", "b")]
    lanes = {"Type": "Parallel", "Branches": branches, "End": True}
    deadline = {"Begin": "all", "Seconds": 60, "States": ["all"]}
    definition = machine({"all": lanes}, Holdfast={"Deadlines": [deadline]})
    case = Case(definition).start().succeed(1, at="a").after(60)
    assert case.failure == ("BlockTimeout", "")

    case.offer(RedriveRequested("5"))

    assert case.positions == ["a", "b"]
