"""Redrive: a failed, timed-out or stopped execution continues where it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.facts import FailedWith, Opened, RedriveRequested, StopRequested, Succeeded
from holdfast.core.run_ids import run_of_uuid
from holdfast.core.state import Attempt, Lanes
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import Message, PutIfAbsent, RunTask, Send, TaskFailed, TaskSucceeded
from holdfast.runtime.storage import keys
from tests.builders import Machine, call, machine
from tests.unit.core_kit import Case, part
from tests.unit.core_stopping_test import undoable
from tests.unit.core_tasks_test import begun
from tests.unit.states_world import Office, states

REDRIVE = RedriveRequested("5")
TWO = {"prepare": call("prepare", "ship"), "ship": call("ship")}


def failed(definition: Machine) -> Case:
    """The first task is done, the second has failed."""
    return Case(definition).start({"n": 1}).succeed({"n": 2}).fail("Broken", "why")


# -- data after a redrive --------------------------------------------------------------------------


def test_a_task_that_failed_is_scheduled_again_with_its_input() -> None:
    case = failed(machine(TWO))
    assert case.status == "FAILED"

    case.offer(REDRIVE)

    assert (case.status, case.state.error, case.state.redrives) == ("RUNNING", None, 1)
    assert case.positions == ["ship"]
    assert case.frame("ship").input == {"n": 2}
    assert case.types[-2:] == ["ExecutionRedriven", "TaskScheduled"]
    assert case.succeed("done").output == "done"
    assert case.types.count("TaskStateEntered") == 2


def test_the_history_says_how_often() -> None:
    case = failed(machine(TWO)).offer(REDRIVE).fail("Broken").offer(RedriveRequested("6"))
    counts = [e.details["redriveCount"] for e in case.events if e.type == "ExecutionRedriven"]
    assert counts == [1, 2]


def test_a_rescheduled_task_follows_the_redrive() -> None:
    case = failed(machine(TWO)).offer(REDRIVE)
    redriven, scheduled = (event for event in case.events[-2:])
    assert redriven.previous == redriven.id - 1
    assert scheduled.previous == redriven.id


def test_retries_are_counted_from_zero_again() -> None:
    again = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    case = Case(machine({"it": call("ship", Retry=again)})).start().fail("E").fail("E")
    assert case.status == "FAILED"
    case.offer(REDRIVE).fail("E")
    assert case.status == "RUNNING"


def test_variables_are_kept() -> None:
    body = {
        "set": {"Type": "Pass", "Assign": {"v": 7}, "Next": "ship"},
        "ship": call("ship", Output="{% $v %}"),
    }
    case = Case(machine(body)).start().fail("E").offer(REDRIVE)
    assert case.succeed().output == 7


def test_a_fail_state_fails_again() -> None:
    case = Case(machine({"no": {"Type": "Fail", "Error": "E"}})).start().offer(REDRIVE)
    assert (case.status, case.state.redrives) == ("FAILED", 1)


def test_of_a_parallel_the_branches_that_had_ended_are_not_run_again() -> None:
    branches = [
        {"StartAt": name, "States": {name: call(name)}} for name in ("first", "second", "third")
    ]
    case = Case(machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}})).start()
    case.succeed(1, at="first").fail("E", at="second")
    assert case.status == "FAILED"

    case.offer(REDRIVE)

    assert case.positions == ["second", "third"]
    assert case.succeed(2, at="second").succeed(3, at="third").output == [1, 2, 3]


def test_of_a_map_the_iterations_that_had_ended_are_not_run_again() -> None:
    processor = {"StartAt": "pack", "States": {"pack": call("pack")}}
    body = {"Type": "Map", "ItemProcessor": processor, "MaxConcurrency": 2, "End": True}
    case = Case(machine({"all": body})).start(["a", "b", "c"])
    _answer(case, "a", 1)
    _answer(case, "b", None)
    assert case.status == "FAILED"

    case.offer(REDRIVE)

    assert sorted(_open(case)) == ["b", "c"]
    lanes = case.frame("all").waiting
    assert isinstance(lanes, Lanes)
    assert dict(lanes.results) == {0: 1}
    _answer(case, "b", 2)
    _answer(case, "c", 3)
    assert case.output == [1, 2, 3]


def _open(case: Case) -> dict[str, Attempt]:
    frames = case.state.frames.values()
    return {str(f.input): f.waiting for f in frames if isinstance(f.waiting, Attempt)}


def _answer(case: Case, item: str, output: Any) -> None:
    """Return the answer; None: it fails."""
    waiting = _open(case)[item]
    if output is None:
        case.offer(FailedWith(waiting.entry, waiting.attempt, "E", None))
    else:
        case.offer(Succeeded(waiting.entry, waiting.attempt, output))


# -- conditions of a redrive -----------------------------------------------------------------------


def test_a_stopped_execution_continues_and_the_stop_is_over() -> None:
    case = Case(machine(TWO)).start().offer(StopRequested("4", "E", None)).offer(REDRIVE)
    assert (case.status, case.positions) == ("RUNNING", ["prepare"])
    seen = len(case.events)
    case.offer(StopRequested("4", "E", None))
    assert len(case.events) == seen


def test_an_execution_that_was_undone_is_not_redriven() -> None:
    """There is no step to continue from: it failed with the error of its undo."""
    definition = undoable({"pay": call("pay", "ship"), "ship": call("ship")}, ["ship"])
    case = Case(definition).start().succeed().offer(StopRequested("4", None, None)).succeed()
    assert (case.status, case.state.is_undone) == ("ABORTED", True)
    seen = len(case.events)
    case.offer(REDRIVE)
    assert (case.status, len(case.events)) == ("ABORTED", seen)


def lanes(*undoable_names: str) -> Machine:
    """The branches pay, break and reserve; some of them are parts that can be taken back."""
    parts = {name: part(name) for name in undoable_names}
    branches = [
        {"StartAt": name, "States": parts[name][0] if name in parts else {name: call(name)}}
        for name in ("pay", "break", "reserve")
    ]
    body = {"Type": "Parallel", "Branches": branches, "End": True}
    return machine({"all": body}, Holdfast={"Undo": [undo for _, undo in parts.values()]})


def failed_lanes(*undoable_names: str) -> Case:
    """One branch has paid, then another fails."""
    return Case(lanes(*undoable_names)).start().succeed(1, at="pay").fail("Broken", at="break")


def test_lanes_of_which_one_was_undone_are_not_run_again() -> None:
    """The one that has succeeded would pay twice."""
    case = failed_lanes("reserve").succeed(at="undo reserve")
    assert (case.failure[0], case.state.is_undone) == ("Broken", True)
    seen = len(case.events)
    case.offer(REDRIVE)
    assert (case.status, len(case.events)) == ("FAILED", seen)


def test_lanes_that_a_stop_has_undone_are_not_run_again() -> None:
    case = Case(lanes("reserve")).start().succeed(1, at="pay")
    case.offer(StopRequested("1", None, None)).succeed(at="undo reserve")
    assert (case.status, case.state.is_undone) == ("ABORTED", True)
    assert case.offer(REDRIVE).status == "ABORTED"


def test_lanes_that_were_being_undone_are_not_run_again() -> None:
    case = failed_lanes("reserve")
    assert "undo reserve" in case.positions
    case.offer(StopRequested("1", None, None), StopRequested("2", None, None, now=True))
    assert (case.status, case.state.is_undone) == ("ABORTED", True)
    assert case.offer(REDRIVE).status == "ABORTED"


@pytest.mark.parametrize(("broken", "left"), [("break", "slow"), ("slow", "undo reserve")])
def test_undone_steps_in_lanes_of_a_lane_count_as_well(broken: str, left: str) -> None:
    """That lane fails with it, or is cancelled with it."""
    states, undo = part("reserve")
    deep = parallel({"reserve": states, "break": {"break": call("break")}})
    body = parallel({"deep": {"deep": deep}, "slow": {"slow": call("slow")}})
    extension = {"Undo": [undo], "Shielded": [["slow"]]}
    case = begun(body, Holdfast=extension).fail("Broken", at=broken)
    if broken == "break":
        case.succeed(at="undo reserve")
    assert (case.succeed(at=left).failure[0], case.state.is_undone) == ("Broken", True)


def parallel(branches: dict[str, Machine]) -> Machine:
    shown = [{"StartAt": name, "States": states} for name, states in branches.items()]
    return {"Type": "Parallel", "Branches": shown, "End": True}


def test_without_anything_to_undo_the_branches_that_had_ended_are_kept() -> None:
    case = failed_lanes("pay")  # that one is over, and its part with it
    assert (case.status, case.state.is_undone) == ("FAILED", False)
    case.offer(REDRIVE)
    assert case.positions == ["break", "reserve"]
    assert case.succeed(2, at="break").succeed(3, at="reserve").output == [1, 2, 3]


def test_a_race_whose_result_was_too_large_is_run_again() -> None:
    branches = [{"StartAt": name, "States": {name: call(name)}} for name in ("a", "b")]
    race = {"Type": "Parallel", "Branches": branches, "Holdfast": {"Needed": 1}}
    case = begun(race)
    case.succeed("x" * (PAYLOAD_BYTES_MAX - len('""')), at="a")
    assert case.failure[0] == "States.DataLimitExceeded"

    case.offer(REDRIVE)

    assert case.positions == ["a", "b"]
    assert case.succeed("short", at="a").output == ["short", None]


def test_a_redriven_execution_is_neither_stopping_nor_watched() -> None:
    definition = machine(TWO, Holdfast={"Shielded": [["prepare"]]})
    case = Case(definition).start().offer(Opened(1), StopRequested("4", None, None)).succeed()
    assert case.status == "ABORTED"

    case.offer(REDRIVE)

    assert (case.state.stopping, case.state.is_opened) == (None, False)
    assert case.succeed("shipped").output == "shipped"


def test_a_redriven_execution_that_timed_out_has_its_whole_time() -> None:
    case = Case(machine(TWO, TimeoutSeconds=60)).start().after(100)
    assert case.status == "TIMED_OUT"
    assert case.offer(REDRIVE).state.due_ms == case.now_ms + 60_000
    assert case.after(30).status == "RUNNING"
    assert case.after(31).status == "TIMED_OUT"


@pytest.mark.parametrize("control_id", ["5", "4"])
def test_a_redrive_counts_once_and_an_older_one_not_at_all(control_id: str) -> None:
    case = failed(machine(TWO)).offer(REDRIVE).fail("E")
    seen = len(case.events)
    case.offer(RedriveRequested(control_id))
    assert len(case.events) == seen


@pytest.mark.parametrize(("early_ms", "status"), [(1_000, "RUNNING"), (1_001, "FAILED")])
def test_a_redrive_of_an_earlier_end_does_not_apply_to_the_next_one(
    early_ms: int, status: str
) -> None:
    """Two operators request a retry at once, and one request is read after the next failure; the
    clocks of operator and worker may differ by a second.
    """
    case = failed(machine(TWO))
    case.offer(RedriveRequested(f"{case.now_ms:015d}a")).after(60).fail("Broken")
    assert case.status == "FAILED"
    case.offer(RedriveRequested(f"{case.now_ms - early_ms:015d}"))
    assert case.status == status


def test_a_redrive_does_not_apply_to_an_end_in_the_same_record() -> None:
    """It was read for an earlier end, and another redrive was faster; then came a stop, and all are
    offered again at once.
    """
    case = failed(machine(TWO))
    first, stop, wish = (f"{case.now_ms:015d}{who}" for who in "abc")
    case.offer(RedriveRequested(first))
    case.offer(StopRequested(stop, None, None), RedriveRequested(wish))
    assert case.status == "ABORTED"
    assert case.offer(RedriveRequested(wish)).status == "RUNNING"


def test_a_running_or_succeeded_execution_is_left_alone() -> None:
    case = Case(machine(TWO)).start().offer(REDRIVE)
    assert "ExecutionRedriven" not in case.types
    case.succeed().succeed().offer(REDRIVE)
    assert case.status == "SUCCEEDED"


def test_a_result_from_before_the_redrive_leaves_no_trace() -> None:
    case = Case(machine(TWO)).start()
    old = case.waiting()
    case.offer(StopRequested("4", None, None)).offer(REDRIVE)
    seen = len(case.events)
    case.offer(Succeeded(old.entry, old.attempt, "late"))
    assert len(case.events) == seen


# -- through the API -------------------------------------------------------------------------------

CALLBACK = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
ASK = {"Type": "Task", "Resource": CALLBACK, "Arguments": {"QueueUrl": "q", "MessageBody": "m"}}


class Redriven:
    """An execution whose call fails once. It was redriven, and waits for an answer."""

    def __init__(self) -> None:
        self._is_broken = True
        self.office = Office(self._call)
        self.machine = self.office.create(states(Ask=ASK))
        self.execution = self.office.start(self.machine)
        self.office.wait(1)
        assert self.listed == {"FAILED": 1, "RUNNING": 0}
        self.office.wait(60)
        self.office.call("RedriveExecution", executionArn=self.execution)
        self.office.wait(1)

    def _call(self, _: RunTask) -> TaskSucceeded | TaskFailed:
        was_broken, self._is_broken = self._is_broken, False
        return TaskFailed("Broken", None) if was_broken else TaskSucceeded({})

    @property
    def listed(self) -> dict[str, int]:
        return {
            status: len(
                self.office.call(
                    "ListExecutions", stateMachineArn=self.machine, statusFilter=status
                )["executions"]
            )
            for status in ("FAILED", "RUNNING")
        }


def tell(office: Office, execution: str, control_id: str, fields: dict[str, str]) -> None:
    """Return a control message with this id, at any time."""
    run = str(run_of_uuid(execution.rpartition(":")[2]))
    item = inbox.control_item("default", run, control_id, office.world.now_ms, fields)
    office.world.perform(PutIfAbsent("mail", item))
    wake = messages.wake_mail("default", run, keys.control(control_id))
    office.world.perform(Send((Message(wake),)))
    office.wait(1)


def test_the_row_of_the_failure_goes_and_that_of_the_running_comes() -> None:
    redriven = Redriven()
    assert redriven.listed == {"FAILED": 0, "RUNNING": 1}
    assert redriven.office.describe(redriven.execution)["status"] == "RUNNING"


def test_the_api_gives_the_reason_why_an_undone_execution_is_not_redriven() -> None:
    """A redrive that is stored all the same, by a caller with an old state, changes nothing."""
    office = Office(lambda _: TaskSucceeded({}))
    extension = {"Undo": [{"States": ["Wait"], "Begin": "Back", "End": "Gone", "Assign": {}}]}
    body = states(
        Wait={"Type": "Wait", "Seconds": 60, "Next": "Done"},
        Back={"Type": "Wait", "Seconds": 1, "Next": "Gone"},
        Gone={"Type": "Fail", "Error": "Gone"},
        Done={"Type": "Succeed"},
    )
    execution = office.start(office.create({**body, "Holdfast": extension}))
    office.wait(1)
    office.call("StopExecution", executionArn=execution)
    office.wait(3)
    shown = office.describe(execution)
    reason = "Execution has undone what it had done and cannot be redriven"
    assert (shown["status"], shown["redriveStatusReason"]) == ("ABORTED", reason)
    refusal = office.refusal("RedriveExecution", executionArn=execution)
    assert refusal == ("ExecutionNotRedrivable", f"Execution Not Redrivable: '{reason}'")
    tell(office, execution, f"{office.world.now_ms:015d}000000000000", {"kind": inbox.REDRIVE})
    assert office.describe(execution)["status"] == "ABORTED"


def test_a_stop_from_before_the_redrive_does_not_end_the_redriven_execution() -> None:
    redriven = Redriven()
    early_ms = redriven.office.world.now_ms - 30_000
    tell(redriven.office, redriven.execution, f"{early_ms:015d}000000000000", {})
    assert redriven.office.describe(redriven.execution)["status"] == "RUNNING"
    tell(
        redriven.office, redriven.execution, f"{redriven.office.world.now_ms:015d}000000000000", {}
    )
    assert redriven.office.describe(redriven.execution)["status"] == "ABORTED"
