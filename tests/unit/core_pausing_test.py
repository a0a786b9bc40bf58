"""Pause and resume in the core: facts are applied, no state is evaluated, frozen dues move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.advance import advance
from holdfast.core.commands import RegisterForEvent, RunAttempt, StartTimer
from holdfast.core.diagnosis import diagnose, next_dues
from holdfast.core.facts import (
    DecisionInputs,
    EventReceived,
    PauseRequested,
    RedriveRequested,
    ResumeRequested,
    StopRequested,
    TakenOver,
)
from holdfast.core.state import Attempt, Pause, PauseTimers, Timer
from holdfast.core.state_json import from_json, to_json
from holdfast.core.waits import has_more, overdue_frames, pending_commands
from tests.builders import call, machine, wait_for
from tests.unit.core_kit import START_MS, Case, nobody, one, part

WHY = "the bank is down"
TWO = machine({"reserve": call("reserve", "ship"), "ship": call("ship")})
BOOK, UNDO = part("book")
SAGA = machine({"first": call("first", "book"), **BOOK}, Holdfast={"Undo": [UNDO]})
NAP = one({"Type": "Wait", "Seconds": 60})


def pause(case: Case, timers: PauseTimers = "freeze", number: str = "3") -> Case:
    return case.offer(PauseRequested(number, WHY, "ann", timers))


def resume(case: Case, after_seconds: float = 0, number: str = "4") -> Case:
    case.now_ms += int(after_seconds * 1_000)
    return case.offer(ResumeRequested(number, "it is up again", "ann"))


def at(case: Case) -> list[str]:
    return [frame.position for frame in case.state.frames.values()]


def began(case: Case, since: int) -> list[str]:
    """Return the events since then that begin something."""
    return [event.type for event in case.events[since:] if event.type.endswith("Scheduled")]


# -- work that a pause delays ----------------------------------------------------------------------


def test_a_result_in_hand_is_recorded_and_the_next_state_waits_for_the_resume() -> None:
    case = pause(Case(TWO).start({"n": 1}))
    assert case.state.paused == Pause(START_MS, WHY, "ann", "freeze")
    so_far = len(case.events)

    case.succeed({"n": 2})

    assert case.types[-1] == "TaskStateEntered"
    assert (began(case, so_far), has_more(case.state)) == ([], False)
    assert resume(case).types[-2:] == ["Resumed", "TaskScheduled"]
    assert case.succeed("done").output == "done"


def test_a_failure_in_hand_is_recorded_and_its_retry_gets_no_lease() -> None:
    retried = one({**call("it"), "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 0}]})
    for definition in (retried, one({**call("it"), "Retry": [{"ErrorEquals": ["Busy"]}]})):
        case = pause(Case(definition).start()).fail("Busy")
        assert case.waiting().claim is None
        assert pending_commands(case.state) == []
        assert pending_commands(resume(case, 5).state) != []


def test_a_lost_attempt_is_not_taken_over_before_the_resume() -> None:
    case = pause(Case(TWO).start())
    so_far = len(case.events)
    case.offer(TakenOver(0, 1))
    assert len(case.events) == so_far
    resume(case).offer(TakenOver(0, 1))
    assert case.types[-1] == "Claimed"


def test_an_attempt_that_runs_without_a_lease_may_get_one_during_the_pause() -> None:
    case = pause(Case(TWO, claim=nobody).start())
    assert pending_commands(case.state) == []
    case._claim = Case(TWO)._claim
    case.offer(TakenOver(0, 1, is_handed=True))
    assert isinstance(case.waiting(), Attempt)
    assert case.waiting().claim is not None


def test_an_attempt_with_a_lease_stays_asked_for_and_nothing_else_does() -> None:
    case = Case(TWO).start()
    before = pending_commands(case.state)
    assert pending_commands(pause(case).state) == before
    assert isinstance(before[0], RunAttempt)

    waiting = Case(one(wait_for("paid", TimeoutSeconds=60)), claim=nobody).start()
    asked = pending_commands(waiting.state)
    assert {type(command) for command in asked} == {RegisterForEvent, StartTimer}
    assert pending_commands(pause(waiting).state) == []
    assert len(pending_commands(resume(waiting).state)) == len(asked)


def test_an_event_that_comes_during_the_pause_is_recorded() -> None:
    flow = machine({"paid": wait_for("paid", "ship"), "ship": call("ship")})
    case = pause(Case(flow).start())
    case.offer(EventReceived(0, "e1", {"n": 1}, START_MS + 60_000))
    assert at(case) == ["ship"]
    assert began(resume(case), 0)[-1] == "TaskScheduled"


# -- time ------------------------------------------------------------------------------------------


def test_frozen_timers_stand_still_and_move_by_the_paused_time() -> None:
    case = pause(Case(NAP).start().after(10))
    case.after(3_600)
    assert case.status == "RUNNING"
    assert list(next_dues(case.state)) == []
    assert overdue_frames(case.state, case.now_ms) == []
    assert diagnose(case.state, case.now_ms) == ()

    resume(case)

    assert case.frame("it").waiting == Timer(0, START_MS + 3_660_000)
    assert case.after(49).status == "RUNNING"
    assert case.after(1).status == "SUCCEEDED"


def test_a_time_out_and_the_execution_s_own_are_frozen_too() -> None:
    case = Case(one(wait_for("paid", TimeoutSeconds=60), TimeoutSeconds=90)).start()
    pause(case).after(3_600)
    resume(case)
    assert case.state.due_ms == START_MS + 3_690_000
    assert case.after(59).status == "RUNNING"
    assert case.after(1).failure == ("States.Timeout", None)


def test_running_timers_pass_and_the_state_after_them_waits() -> None:
    flow = machine({"nap": {"Type": "Wait", "Seconds": 60, "Next": "ship"}, "ship": call("ship")})
    case = pause(Case(flow).start(), "run")
    assert pending_commands(case.state) == [StartTimer(0, START_MS + 60_000)]
    case.after(60)
    assert (at(case), began(case, 0)) == (["ship"], [])
    assert began(resume(case), 0) == ["TaskScheduled"]


def test_the_execution_s_own_time_out_lifts_a_pause_with_running_timers() -> None:
    case = pause(Case(one(call("it"), TimeoutSeconds=60)).start(), "run").after(60)
    assert (case.status, case.state.paused) == ("TIMED_OUT", None)
    assert "Resumed" in case.types


@pytest.mark.parametrize("timers", ["freeze", "run"])
def test_the_wake_of_a_retry_from_before_the_pause_fits_no_more(timers: PauseTimers) -> None:
    """Else the old wake and that of the resume would both run the attempt."""
    retried = one({**call("it"), "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 60}]})
    case = Case(retried, claim=nobody).start().fail("Busy")
    due_ms = case.waiting().due_ms
    resume(pause(case, timers))
    assert case.waiting().due_ms == due_ms + 1


# -- requests that do not fit ----------------------------------------------------------------------


def test_a_refused_pause_leaves_no_trace() -> None:
    case = Case(TWO).start()
    so_far = len(case.events)
    resume(case, number="2")
    assert len(case.events) == so_far
    pause(pause(case, number="5"), number="6")
    pause(resume(case, number="7"), number="7")
    assert case.types.count("Paused") == 1


def test_a_stop_lifts_the_pause_and_undoes() -> None:
    case = pause(Case(SAGA).start().succeed())
    case.offer(StopRequested("5", None, None))
    assert case.state.paused is None
    assert case.types.index("Resumed") < case.types.index("Stopping")
    so_far = len(case.events)
    pause(case, number="6")
    assert len(case.events) == so_far


def test_a_stop_at_once_ends_a_paused_execution_and_it_may_be_redriven() -> None:
    case = pause(Case(TWO).start()).offer(StopRequested("5", None, None, now=True))
    assert (case.status, case.state.paused) == ("ABORTED", None)
    case.offer(RedriveRequested("9"))
    assert case.succeed().succeed("done").output == "done"


# -- stored data -----------------------------------------------------------------------------------


def test_a_snapshot_without_a_pause_is_as_it_was_and_an_old_one_is_read() -> None:
    case = Case(TWO).start()
    document: dict[str, Any] = to_json(case.state)
    assert "paused" not in document
    assert from_json(document).paused is None
    assert to_json(pause(case).state)["paused"] == {
        "since_ms": START_MS,
        "reason": WHY,
        "by": "ann",
        "timers": "freeze",
    }


def test_the_history_says_who_paused_it_why_and_when() -> None:
    case = resume(pause(Case(TWO).start()), 60)
    paused, resumed = (event for event in case.events if event.type in ("Paused", "Resumed"))
    assert (paused.id, resumed.id) == (0, 0)
    assert paused.holdfast["reason"] == WHY
    assert (paused.holdfast["by"], resumed.holdfast["by"]) == ("ann", "ann")
    assert resumed.at_ms - paused.at_ms == 60_000


# -- dues that a resume moves ----------------------------------------------------------------------


@pytest.mark.parametrize(("timers", "shift_ms"), [("freeze", 60_000), ("run", 0)])
def test_a_deadline_a_time_out_and_a_heartbeat_move_unless_they_run_on(
    timers: PauseTimers, shift_ms: int
) -> None:
    wait = wait_for("paid", TimeoutSeconds=900, HeartbeatSeconds=600)
    block = {"Begin": "it", "Seconds": 3_600, "States": ["it"]}
    case = Case(one(wait, Holdfast={"Deadlines": [block]})).start()
    before, frame = case.waiting(), case.frame()

    resume(pause(case, timers), 60)

    assert case.waiting().due_ms == before.due_ms + shift_ms
    assert case.waiting().heartbeat_due_ms == before.heartbeat_due_ms + shift_ms
    assert case.frame().deadlines[0].due_ms == frame.deadlines[0].due_ms + shift_ms


def test_a_lease_that_lapsed_in_the_pause_lapses_at_the_resume() -> None:
    """Else `doctor` would report a lapse that no worker was allowed to follow."""
    case = pause(Case(TWO).start())
    until_ms = case.waiting().claim.until_ms
    resume(case, 10)
    assert case.waiting().claim.until_ms == until_ms
    resume(pause(case, number="5"), 3_600, number="6")
    assert case.waiting().claim == replace(case.waiting().claim, until_ms=case.now_ms)


def test_the_clock_error_is_added_to_the_paused_time() -> None:
    case = pause(Case(NAP).start())
    inputs = DecisionInputs(START_MS + 60_000, lambda: 0.5, nobody, clock_error_ms=500)
    fact = ResumeRequested("4", "it is up again", "ann")
    (event,) = advance(case.program, case.state, [fact], inputs).events
    assert event.holdfast == {
        "control": "4",
        "reason": "it is up again",
        "by": "ann",
        "shift": 61_000,
    }


def test_a_pause_and_a_resume_count_once_by_their_ids() -> None:
    case = pause(Case(TWO).start(), number="5")
    assert case.state.last_control == "5"
    assert resume(case, number="5").state.paused is not None
    assert resume(case, number="6").state.last_control == "6"


def test_a_pause_that_a_stop_lifts_says_so_in_the_history() -> None:
    case = pause(Case(TWO).start()).offer(StopRequested("5", None, None))
    (lifted,) = (event for event in case.events if event.type == "Resumed")
    assert (lifted.holdfast["by"], lifted.holdfast["reason"]) == (
        "holdfast",
        "the execution is stopped",
    )
