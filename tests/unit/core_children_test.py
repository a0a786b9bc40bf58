"""The children that the state still has to stop, by the event that closed the wait for them."""

from __future__ import annotations

import pytest

from holdfast.core.commands import StartChild, StopChild
from holdfast.core.facts import ChildrenStopped, FailedWith, StopRequested, TakenOver, TimedOut
from holdfast.core.waits import pending_commands
from holdfast.errors import HoldfastBug
from holdfast.limits import TAKEOVERS_MAX
from tests.builders import machine
from tests.unit.child_kit import call_of
from tests.unit.core_kit import Case
from tests.unit.core_map_run_test import begun
from tests.unit.core_tasks_test import MachineCase

CATCH = [{"ErrorEquals": ["States.ALL"], "Next": "nap"}]
CALL = {
    "call": call_of("inner", "nap", TimeoutSeconds=10, Catch=CATCH),
    "nap": {"Type": "Wait", "Seconds": 60, "End": True},
}
FIRST = (0, 1)


def called(*, is_begun: bool = True) -> MachineCase:
    case = MachineCase(machine(CALL)).begin()
    return case.submit({"execution": "child"}) if is_begun else case


def stops(case: Case) -> list[tuple[int, int]]:
    return [(c.entry, c.number) for c in pending_commands(case.state) if isinstance(c, StopChild)]


def test_a_child_that_is_waited_for_is_owed_nothing() -> None:
    assert stops(called(is_begun=False)) == stops(called()) == []


def test_a_child_with_a_reported_end_is_over() -> None:
    for case in (called().succeed("done"), called().fail("Broken")):
        assert (case.positions, stops(case), case.state.children) == (["nap"], [], frozenset())


def test_a_child_of_a_wait_that_timed_out_is_owed_a_stop() -> None:
    assert stops(called().after(11)) == [FIRST]


def test_a_call_without_a_known_end_may_have_started_a_child() -> None:
    """A repeated call may fail for another reason than the first."""
    failed = called(is_begun=False)
    failed.offer(FailedWith(*FIRST, "InvalidArguments", "n: a number"))
    late = called(is_begun=False)
    late.offer(TimedOut(*FIRST))
    lost = called(is_begun=False)
    lost.offer(*[TakenOver(*FIRST)] * (TAKEOVERS_MAX + 1))
    for case in (failed, late, lost):
        assert (case.positions, stops(case)) == (["nap"], [FIRST])


def test_the_end_closes_every_wait() -> None:
    case = called()
    case.offer(StopRequested("1", None, None))
    assert (case.status, stops(case)) == ("ABORTED", [FIRST])


def test_a_stopped_child_gets_no_second_stop() -> None:
    case = called().after(11)
    case.offer(ChildrenStopped((FIRST,)))
    assert (case.types[-1], stops(case), case.state.children) == (
        "ChildrenStopped",
        [],
        frozenset(),
    )
    assert case.events[-1].id == 0


@pytest.mark.parametrize("child", [FIRST, (7, 1)])
def test_that_a_child_was_stopped_which_is_waited_for_or_unknown_leaves_no_trace(
    child: tuple[int, int],
) -> None:
    case = called()
    seen = len(case.events)
    case.offer(ChildrenStopped((child,)))
    assert len(case.events) == seen


def test_of_a_distributed_map_that_failed_the_lanes_that_were_open_are_owed_a_stop() -> None:
    case = begun([1, 2, 3, 4], MaxConcurrency=2)
    entry = case.children.entry
    assert [c for c in pending_commands(case.state) if isinstance(c, StartChild)] == [
        StartChild(entry, 0),
        StartChild(entry, 1),
    ]
    case.end(0)
    assert (sorted(case.state.children), stops(case)) == ([(entry, 1), (entry, 2)], [])
    case.fail_child(1)
    # The last would have begun in the place of the one that failed.
    assert (case.status, stops(case)) == ("FAILED", [(entry, 2), (entry, 3)])


def test_a_job_that_is_asked_for_is_no_child() -> None:
    job = {"Type": "Task", "Resource": "arn:aws:states:::codebuild:startBuild.sync", "End": True}
    branches = [
        {"StartAt": "call", "States": {"call": call_of("inner")}},
        {"StartAt": "job", "States": {"job": {**job, "Arguments": {}}}},
    ]
    case = MachineCase(machine({"both": {"Type": "Parallel", "Branches": branches, "End": True}}))
    assert stops(case.begin()) == []
    case.fail("Broken", at="job")
    assert (case.status, sorted(case.state.children)) == ("FAILED", stops(case))
    assert len(stops(case)) == 1


def test_a_call_needs_a_worker_that_can_make_its_token() -> None:
    with pytest.raises(
        HoldfastBug,
        match=r": the decision needs the callback token of 0\.1, and its inputs have none\n",
    ):
        Case(machine(CALL)).start()
