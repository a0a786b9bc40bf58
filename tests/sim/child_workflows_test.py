"""Workflows that call workflows, with a crash at every effect: start, submission, end of a child,
stop.

One child for each call, in spite of crashes; it ends once, and reports to its parent once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskResult, TaskSucceeded
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import CrashAt, Hook, RandomCrashes, When, no_faults
from tests.builders import call, machine, wait_for
from tests.thorough import some
from tests.unit.child_kit import Family, call_of

ERROR = "{% $states.errorOutput.Error & ': ' & $states.errorOutput.Cause %}"
SHOP = {
    "outer": machine(
        {
            "ship": call_of("ship", "bill", Arguments={"n": 1}),
            "bill": call_of(
                "bill",
                Arguments={"n": "{% $states.input.n %}"},
                Catch=[{"ErrorEquals": ["Declined"], "Output": ERROR, "Next": "declined"}],
            ),
            "declined": call("note", Arguments={"n": "{% $states.input %}"}),
        }
    ),
    # A child that waits, and calls another.
    "ship": machine(
        {
            "rest": {"Type": "Wait", "Seconds": 5, "Next": "pack"},
            "pack": call_of("pack", Arguments={"n": "{% $states.input.n %}"}),
        }
    ),
    "pack": machine({"add": call("add", Arguments={"n": "{% $states.input.n %}"})}),
    "bill": machine({"no": {"Type": "Fail", "Error": "Declined", "Cause": "no money"}}),
}
OUTPUT = {"n": "Declined: no money"}
PATIENT = {
    "outer": machine({"call": call_of("inner", Arguments={})}),
    "inner": machine({"call": call_of("last", Arguments={})}),
    "last": machine({"wait": wait_for("paid")}),
}
LOOK_MS = 500


def work(effect: RunTask) -> TaskResult:
    number = effect.arguments["n"]
    return TaskSucceeded({"n": number + 1} if effect.name == "add" else {"n": number})


def shop(hook: Hook = no_faults) -> Family:
    return Family(SHOP, work, hook)


def assert_whole(family: Family, note: object = None) -> None:
    """Check: a child for each call, each end reported once, everything in the logs once."""
    children = [(child.state.workflow, child.state.status) for child in family.children]
    expected = [("bill", "FAILED"), ("pack", "SUCCEEDED"), ("ship", "SUCCEEDED")]
    assert sorted(children) == expected, note
    told = [item["sk"] for item in family.world.services.items("mail")]
    assert sorted(key for key in told if str(key).startswith("t#")) == ["t#0.1", "t#1.1", "t#1.1"]
    assert family.is_sound(), note


def stopped(hook: Hook = no_faults) -> Family:
    """Stopped as soon as the last of three waits, one in another."""
    family = Family(PATIENT, work, hook)
    run = family.start()

    def stop() -> None:
        waits = [
            frame.position
            for found in histories(family.world)
            for frame in found.state.frames.values()
        ]
        if "wait" in waits:
            family.stop(run)
        else:
            family.world.at(family.world.now_ms + LOOK_MS, stop)

    family.world.at(family.world.now_ms + LOOK_MS, stop)
    family.world.run()
    return family


def assert_stopped(family: Family, note: object = None) -> None:
    assert family.statuses() == ("ABORTED", ["ABORTED", "ABORTED"]), note
    assert family.is_sound(), note


def test_children_start_once_and_report_their_end_once() -> None:
    family = shop()
    assert family.run().state.output == OUTPUT
    assert_whole(family)


def test_a_stop_goes_down_to_the_last_child() -> None:
    assert_stopped(stopped())


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    counting = CrashAt(None, when)
    shop(counting).run()
    assert counting.seen > 100
    for number in some(counting.numbers):
        family = shop(CrashAt(number, when))
        assert family.run().state.output == OUTPUT, number
        assert family.world.kills == 1
        assert_whole(family, number)


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_does_not_keep_a_stop_from_any_child(when: When) -> None:
    counting = CrashAt(None, when)
    stopped(counting)
    assert counting.seen > 60
    for number in some(counting.numbers):
        assert_stopped(stopped(CrashAt(number, when)), number)


@pytest.mark.parametrize("play", [shop, stopped], ids=["an order", "a stop"])
def test_crashes_at_random_lose_no_child(play: Callable[[Hook], Any]) -> None:
    """Up to three: an attempt that takes four workers with it fails, and starts no child."""
    for seed in some(range(10)):
        print(f"seed {seed}")
        family: Family = play(RandomCrashes(seed, chance=0.03, crashes_max=3))
        if play is stopped:
            assert_stopped(family, seed)
        else:
            assert family.run().state.output == OUTPUT, seed
            assert_whole(family, seed)
