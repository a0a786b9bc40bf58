"""The bound after the last fault, on scenes in which it is kept, broken, and says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.process import last_fault, workflows
from tests.process.chaos import LAST_SECONDS, Harm, Kind, Wanted, draw_faults
from tests.process.evidence import place
from tests.process.plan import LATE_MAX, LATE_SECONDS, LATE_SHARE, calls_of, is_first, make_plan
from tests.process.rehearsal import Rehearsal, of_workflow, with_log
from tests.process.scene import Scene


@pytest.fixture(scope="module")
def played() -> Iterator[Scene]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflows, "_take_a_while", lambda: None)
        yield Rehearsal().play(executions=30, seconds=40.0, seed=1)


@pytest.fixture
def scene(played: Scene) -> Scene:
    """Return a scene: it ends in the middle of a task, whose process was frozen until then."""
    for begun in played.ledger:
        at = begun.at + 0.1
        frozen = Harm("freeze", "worker-1", begun.pid, at - 5, at)
        found = replace(played, last_at=at, harms=(frozen,))
        if not list(last_fault.violations(found)):
            return found
    raise AssertionError("at no moment there is something of everything")


def _texts(scene: Scene) -> list[str]:
    return [text for _, text in last_fault.violations(scene)]


def test_open_executions_at_the_last_fault_are_reported(scene: Scene) -> None:
    figures = last_fault.figures(scene)
    assert figures["open at the last fault"] > 1
    assert figures["timers that were overdue then"] > 0
    assert figures["attempts claimed then"] > 0
    assert figures["attempts in frozen hands then"] > 0
    assert 0 < figures["slowest end of these, seconds after"] < last_fault.END_SECONDS


def test_a_bound_that_nothing_could_have_missed_is_refused(played: Scene) -> None:
    missing = " ".join(_texts(played))
    for what in ("no execution was open", "no timer was overdue", "no attempt was claimed"):
        assert what in missing


@pytest.mark.parametrize("kind, hands", [("freeze", "frozen hands"), ("kill", "dead hands")])
def test_hands_are_read_where_a_fault_hit_a_process(scene: Scene, kind: Kind, hands: str) -> None:
    (hit,) = scene.harms
    idle = replace(hit, kind=kind, pid=1)
    assert hands in " ".join(_texts(replace(scene, harms=(idle,))))
    assert _texts(replace(scene, harms=(replace(hit, kind=kind),))) == []
    assert _texts(replace(scene, harms=())) == []


def test_a_process_killed_before_the_attempt_began_is_another_process(scene: Scene) -> None:
    """Numbers of processes are given again."""
    (hit,) = scene.harms
    before = replace(hit, kind="kill", begun_at=hit.begun_at - 100, ended_at=hit.ended_at - 100)
    assert "dead hands" in " ".join(_texts(replace(scene, harms=(before,))))


def test_an_end_more_than_a_minute_after_the_last_fault_is_late(scene: Scene) -> None:
    log = scene.found.logs[last_fault.AtLast(scene).opened[-1].run]
    last = place(log.items[-1])
    for seconds, is_late in ((59, False), (61, True)):
        arrived = {**scene.arrived, last: scene.last_at + seconds}
        assert ("it ended" in " ".join(_texts(replace(scene, arrived=arrived)))) is is_late


def test_lateness_is_measured_by_the_cloud_and_not_by_the_writer(scene: Scene) -> None:
    """A process that continues after a freeze writes an old decision."""
    log = scene.found.logs[last_fault.AtLast(scene).opened[-1].run]
    arrived = {**scene.arrived, place(log.items[-1]): scene.last_at + 61}
    assert log.records[-1].at_ms < (scene.last_at + 61) * 1_000
    assert "it ended 61 s" in " ".join(_texts(replace(scene, arrived=arrived)))


def test_an_execution_that_began_after_the_last_fault_has_a_minute_from_then(played: Scene) -> None:
    early = replace(played, last_at=min(played.accepted.values()) - 100)
    assert "it ended" not in " ".join(_texts(early))


def test_an_unplanned_execution_that_never_ends_is_found(scene: Scene) -> None:
    parent = of_workflow(scene, "p_parent")
    child = next(log for run, log in scene.found.logs.items() if run.startswith(f"{parent.run}."))
    open_still = replace(child, state=child.state._replace(status="RUNNING"))
    assert "has not ended" in " ".join(_texts(with_log(scene, open_still)))


# -- planned faults --------------------------------------------------------------------------------


@pytest.mark.parametrize("executions, seconds", [(40, 25.0), (150, 60.0), (2_000, 1_000.0)])
def test_a_share_of_all_executions_begins_among_the_last_faults(
    executions: int, seconds: float
) -> None:
    first, last = LATE_SECONDS
    starts = [
        call.at_seconds
        for call in calls_of(make_plan(executions, seconds, 7))
        if is_first(call.key)
    ]
    late = [at for at in starts if seconds - first <= at <= seconds - last]
    assert len(late) >= 0.9 * min(executions // LATE_SHARE, LATE_MAX)
    assert max(starts) <= seconds - last


def test_faults_of_every_kind_are_over_together_at_the_end() -> None:
    for seed in range(20):
        faults = draw_faults(Wanted(kills=25, freezes=5, stalls=2, seconds=25), seed)
        assert len(faults) == 25 + 5 + 2
        last = [fault for fault in faults if fault.at_seconds + fault.seconds == 25]
        assert {fault.kind for fault in last} == {"kill", "freeze", "stall"}
        assert {fault.target for fault in last if fault.kind == "kill"} >= {"worker", "sweeper"}
        assert max(fault.seconds for fault in last) == LAST_SECONDS
