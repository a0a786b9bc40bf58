"""Races, quorums and deadlines through the real worker, with crashes at every place."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.invariants import StoredHistory, check, lost
from holdfast_simulator.world import CrashAt, Hook, RandomCrashes, When, no_faults
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.thorough import some


def tasks(effect: RunTask) -> TaskSucceeded | TaskFailed:
    if effect.name.startswith("fail"):
        return TaskFailed("Broken", "on purpose")
    return TaskSucceeded(f"{effect.name} done")


def undoable(name: str, follow: Machine) -> tuple[Machine, Machine]:
    """A branch: the task `name`, then `follow`; from then on the branch has something to undo."""
    states = {
        name: call(name, f"{name} waits"),
        f"{name} waits": follow,
        f"undo {name}": call(f"undo {name}", f"{name} undone"),
        f"{name} undone": {"Type": "Fail", "Error": "never seen"},
    }
    inside = [f"{name} waits"]
    undo = {"States": inside, "Begin": f"undo {name}", "End": f"{name} undone"}
    return {"StartAt": name, "States": states}, undo


def race() -> Machine:
    """A timer against an event that never comes, in a branch with something to undo."""
    slow, undo = undoable("reserve", wait_for("paid"))
    quick = {"StartAt": "rest", "States": {"rest": {"Type": "Wait", "Seconds": 3_000, "End": True}}}
    state = {"Type": "Parallel", "Branches": [slow, quick], "Next": "then"}
    return machine(
        {"race": {**state, "Holdfast": {"Needed": 1}}, "then": call("then")},
        Holdfast={"Undo": [undo]},
    )


def siblings() -> Machine:
    """One branch fails while another waits that has something to undo."""
    slow, undo = undoable("reserve", wait_for("paid"))
    fails = {
        "StartAt": "rest",
        "States": {
            "rest": {"Type": "Wait", "Seconds": 3_000, "Next": "fail"},
            "fail": call("fail"),
        },
    }
    catch = [{"ErrorEquals": ["Broken"], "Next": "then"}]
    state = {"Type": "Parallel", "Branches": [slow, fails], "Next": "then", "Catch": catch}
    return machine({"both": state, "then": call("then")}, Holdfast={"Undo": [undo]})


def deadline() -> Machine:
    """A block of fifty minutes around an event that never comes, with something to undo in it."""
    branch, undo = undoable("reserve", wait_for("paid", "then"))
    begin = {"block": {"Type": "Pass", "Next": "reserve"}}
    block = {"Begin": "block", "Seconds": 3_000, "States": list(branch["States"]), "Next": "then"}
    return machine(
        {**begin, **branch["States"], "then": call("then")},
        Holdfast={"Undo": [undo], "Deadlines": [block]},
    )


#: Long enough that another worker takes over a crashed worker's task before the time is over.
CASES = {"race": race(), "siblings": siblings(), "deadline": deadline()}


def run(name: str, hook: Hook = no_faults) -> tuple[Shop, StoredHistory]:
    shop = Shop(CASES[name], tasks, hook)
    return shop, shop.run()


def outcome(history: StoredHistory) -> tuple[Any, ...]:
    """Return status, output, and the tasks that ended, in order."""
    ended = [event for event in history.events if event.type in {"TaskSucceeded", "TaskFailed"}]
    return (
        history.state.status,
        history.state.output,
        [event.details["resource"].removeprefix("task:") for event in ended],
    )


EXPECTED = {
    "race": ["reserve", "undo reserve", "then"],
    "siblings": ["reserve", "fail", "undo reserve", "then"],
    "deadline": ["reserve", "undo reserve", "then"],
}


@pytest.mark.parametrize("name", CASES)
def test_a_cancelled_lane_is_undone_before_the_rest_continues(name: str) -> None:
    shop, history = run(name)

    assert outcome(history) == ("SUCCEEDED", "then done", EXPECTED[name])
    assert (check(shop.world), lost(shop.world)) == ([], [])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", CASES)
def test_one_crash_at_any_effect_changes_nothing(name: str, when: When) -> None:
    counting = CrashAt(None, when)
    run(name, counting)
    assert counting.seen > 20
    for number in some(counting.numbers):
        shop, history = run(name, CrashAt(number, when))
        assert outcome(history) == ("SUCCEEDED", "then done", EXPECTED[name]), number
        assert (check(shop.world), lost(shop.world)) == ([], []), number
        assert shop.world.kills == 1


@pytest.mark.parametrize("name", CASES)
def test_crashes_at_random_change_nothing(name: str) -> None:
    for seed in some(range(20)):
        print(f"seed {seed}")
        shop, history = run(name, RandomCrashes(seed, chance=0.05, crashes_max=3))
        assert outcome(history) == ("SUCCEEDED", "then done", EXPECTED[name])
        assert (check(shop.world), lost(shop.world)) == ([], [])
