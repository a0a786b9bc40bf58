"""A child that its parent goes on without is stopped, whatever closed the wait and whoever died.

The worker is killed after every commit, and slowly at every effect. Nothing but that stop ends the
child.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.core.waits import abandoned
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import (
    Effect,
    Message,
    PutIfAbsent,
    RunTask,
    Send,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.storage import keys
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import CrashAt, Hook, Killed, SimulatorWorld, When, no_faults
from tests.builders import Machine, call, machine, wait_for
from tests.thorough import some
from tests.unit.child_kit import TENANT, Family, call_of

PATIENT = machine({"wait": wait_for("never")})
NAP = {"Type": "Wait", "Seconds": 3_600, "End": True}
CAUGHT = [{"ErrorEquals": ["States.ALL"], "Next": "nap"}]


def branches(*states: Machine) -> list[Machine]:
    return [
        {"StartAt": f"branch {number}", "States": {f"branch {number}": {**state, "End": True}}}
        for number, state in enumerate(states)
    ]


def both(other: Machine, **fields: Any) -> Machine:
    return {
        "Type": "Parallel",
        "Branches": branches(call_of("patient", Arguments={}), other),
        **fields,
    }


def then_nap(state: Machine, **top: Any) -> Machine:
    return machine({"call": {**state, "Next": "nap"}, "nap": NAP}, **top)


def inside(extension: Machine) -> Machine:
    """The extension's part is the call."""
    states = {
        "call": call_of("patient", Arguments={}),
        "undo": {"Type": "Wait", "Seconds": 3_600, "Next": "undone"},
        "undone": {"Type": "Fail", "Error": "Undone"},
        "nap": NAP,
    }
    return machine(states, Holdfast=extension)


SHORT = {"Type": "Wait", "Seconds": 1}
UNDO = {"States": ["call"], "Begin": "undo", "End": "undone", "Assign": {}}
BLOCK = {"Begin": "call", "Seconds": "{% 2 %}", "States": ["call"], "Next": "nap", "Assign": {}}
#: By what closes the wait.
CLOSED = {
    "a race that another branch wins": then_nap(both(SHORT, Holdfast={"Needed": 1})),
    "a time-out of the call": then_nap(
        call_of("patient", "nap", Arguments={}, TimeoutSeconds=2, Catch=CAUGHT)
    ),
    "a sibling that fails": then_nap(both(call("fail once"), Catch=CAUGHT)),
    "a sibling that fails and is retried": then_nap(
        both(
            call("fail once"),
            Holdfast={"Needed": 1},
            Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "MaxAttempts": 1}],
        )
    ),
    "the deadline of a block": inside({"Deadlines": [BLOCK]}),
    "a stop of the parent, which has something to undo": inside({"Undo": [UNDO]}),
    "the time-out of the parent": machine(
        {"call": call_of("patient", "nap", Arguments={}), "nap": NAP}, TimeoutSeconds=3
    ),
    "a failure of the parent": machine({"call": both(call("fail once"), End=True)}),
    "a failure of the parent, which is redriven at once": machine(
        {"call": both(call("fail once"), Holdfast={"Needed": 1}, Next="nap"), "nap": NAP}
    ),
}


class Play:
    """One parent, which naps for an hour after it has gone on without its child."""

    def __init__(self, closed_by: str, hook: Hook = no_faults) -> None:
        self._failing = 0
        machines = {"outer": CLOSED[closed_by], "patient": PATIENT}
        self.family = Family(machines, self._work, hook)
        self._world = self.family.world
        self._run = self.family.start()
        if closed_by.startswith("a stop"):
            self._world.at(self._world.now_ms + 3_000, lambda: self.family.stop(self._run))
        if closed_by.endswith("redriven at once"):
            self._redrive()
        self.family.settle(20 * 60)

    def assert_nothing_lost(self, note: object = None) -> None:
        """The children are examined while the parent waits: its end would stop them too."""
        statuses = {child.state.status for child in self.family.children}
        assert statuses <= {"ABORTED"}, note  # None: its parent continued before it could begin
        assert not self.family.outer.state.children or self.family.outer.state.is_ended, note
        self._world.run()
        assert self.family.is_sound(), note

    def _work(self, effect: RunTask) -> TaskResult:
        """Fails where it is called first, however often."""
        self._failing = self._failing or effect.entry
        return TaskFailed("Broken", None) if effect.entry == self._failing else TaskSucceeded(None)

    def _redrive(self) -> None:
        """Redrive as soon as the end is in the log: its follow-ups may not have been
        carried out.
        """
        if not any(found.state.resting for found in histories(self._world)):
            self._world.at(self._world.now_ms + 100, self._redrive)
            return
        control_id, fields = f"{self._world.now_ms:015d}{'0' * 12}", {"kind": inbox.REDRIVE}
        item = inbox.control_item(TENANT, self._run, control_id, self._world.now_ms, fields)
        wake = messages.wake_mail(TENANT, self._run, keys.control(control_id))
        for effect in (PutIfAbsent("mail", item), Send((Message(wake),))):
            self._world.services.perform(effect)


@pytest.mark.parametrize("closed_by", CLOSED)
def test_it_is_stopped(closed_by: str) -> None:
    play = Play(closed_by)
    assert play.family.children
    play.assert_nothing_lost()


@dataclass
class CrashAfterCommit:
    """Kills when the record of that number, over all logs, is in its log. None kills nowhere."""

    number: int | None
    seen: int = 0

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" or not isinstance(effect, PutIfAbsent) or effect.table != "executions":
            return
        number, self.seen = self.seen, self.seen + 1
        if number == self.number:
            raise Killed


@pytest.mark.parametrize("closed_by", CLOSED)
def test_one_crash_after_any_commit_does_not_keep_the_stop_from_it(closed_by: str) -> None:
    counting = CrashAfterCommit(None)
    Play(closed_by, counting).assert_nothing_lost()
    assert counting.seen >= 4
    for number in some(range(counting.seen)):
        Play(closed_by, CrashAfterCommit(number)).assert_nothing_lost(number)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("closed_by", CLOSED)
def test_one_crash_at_any_effect_does_not_keep_the_stop_from_it(closed_by: str, when: When) -> None:
    counting = CrashAt(None, when)
    Play(closed_by, counting).assert_nothing_lost()
    assert counting.seen > 40
    for number in some(range(counting.seen)):
        Play(closed_by, CrashAt(number, when)).assert_nothing_lost(number)


def test_a_loop_of_races_leaves_nothing_behind() -> None:
    """Each is won by a timer, so each is closed by another delivery."""
    race = both(SHORT, Holdfast={"Needed": 1})
    again = {"Condition": "{% $i < 40 %}", "Next": "race"}
    states = {
        "begin": {"Type": "Pass", "Assign": {"i": 0}, "Next": "race"},
        "race": {**race, "Assign": {"i": "{% $i + 1 %}"}, "Next": "again?"},
        "again?": {"Type": "Choice", "Choices": [again], "Default": "nap"},
        "nap": NAP,
    }
    family = Family({"outer": machine(states), "patient": PATIENT})
    family.start()
    family.settle(600)
    assert [child.state.status for child in family.children] == ["ABORTED"] * 40
    assert family.outer.state.children == frozenset()
    told = [event for event in family.outer.events if event.type == "ChildrenStopped"]
    assert [len(event.holdfast["children"]) for event in told] == [1] * 40
    assert len(family.outer.records) < 5 * 40


def test_the_sweeper_sees_to_a_stop_whose_message_was_lost_outright() -> None:
    """Nothing else is to be done for a parent that naps for a day."""
    race = both(SHORT, Holdfast={"Needed": 1}, Next="nap")
    nap = {"Type": "Wait", "Seconds": 86_400, "End": True}

    def purge(world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_commit = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if not is_commit or when == "before" or world.kills:
            return
        if any(abandoned(found.state) for found in histories(world)):
            queue = world.services._queues["work"]
            queue.messages.clear()
            queue._heap.clear()
            raise Killed

    family = Family({"outer": machine({"race": race, "nap": nap}), "patient": PATIENT}, hook=purge)
    family.start()
    family.settle(1)
    assert family.statuses() == ("RUNNING", ["RUNNING"])
    family.settle(10 * 60)
    assert family.statuses() == ("RUNNING", ["ABORTED"])


def test_a_parent_and_a_child_that_have_ended_do_not_wake_each_other() -> None:
    """Else each lost acknowledgement of the one is a message to the other, and so on."""
    outer = machine({"race": both(SHORT, Holdfast={"Needed": 1}, End=True)})
    family = Family({"outer": outer, "patient": PATIENT})
    run = family.start()
    family.settle(60)
    assert family.statuses() == ("SUCCEEDED", ["ABORTED"])
    assert family.outer.state.children
    sends = family.world.services.effects["Send"]
    for ended in (run, family.children[0].run):
        recover = Message(messages.recover(TENANT, ended))
        family.world.services.perform(Send((recover,)))
    family.settle(60)
    assert family.world.services.effects["Send"] - sends == 2
