"""The signs of a doubled, lost or early event, and their detection: a sound scene, then damaged."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast.core.events import Event
from holdfast.runtime.effects import Item
from tests.process import doubles, evidence, workflows
from tests.process.chaos import Harm
from tests.process.evidence import Log, place
from tests.process.journal import Journal, digest
from tests.process.ledger import Begun
from tests.process.rehearsal import Rehearsal, of_workflow, with_events, with_log, with_logs
from tests.process.roles import Answer
from tests.process.scene import Scene

RESULT = "TaskSucceeded"


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflows, "_take_a_while", lambda: None)
        yield Rehearsal().play(executions=20, seconds=40.0, seed=1)


def _texts(scene: Scene) -> str:
    return "\n".join(text for _, text in doubles.violations(scene))


def test_an_undisturbed_plan_is_sound(scene: Scene) -> None:
    assert _texts(scene) == ""
    assert {log.state.workflow for log in scene.found.logs.values()} >= {"p_parent", "p_stopped"}
    for log in scene.found.logs.values():
        assert list(evidence._of_log(log)) == []


# -- damage ----------------------------------------------------------------------------------------


def _without(scene: Scene, run: str) -> Scene:
    return with_logs(scene, {key: log for key, log in scene.found.logs.items() if key != run})


def _child(scene: Scene) -> Log:
    return next(log for run, log in scene.found.logs.items() if "." in run)


def _a_caller_was_told_of_another(scene: Scene) -> Scene:
    first = next(answer for answer in scene.answers if answer.is_start)
    return replace(scene, answers=(*scene.answers, Answer(first.key, first.at, "another")))


def _a_name_was_begun_twice(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_chain")
    return with_log(scene, replace(log, run="00000000000000000000000000"))


def _a_child_is_gone(scene: Scene) -> Scene:
    return _without(scene, _child(scene).run)


def _a_child_was_begun_twice(scene: Scene) -> Scene:
    child = _child(scene)
    return with_log(scene, replace(child, run=f"{child.run}2"))


def _a_child_came_to_something_else(scene: Scene) -> Scene:
    child = _child(scene)
    return with_log(scene, replace(child, state=child.state._replace(output="else")))


def _a_child_failed_and_nobody_minds(scene: Scene) -> Scene:
    child = _child(scene)
    return with_log(scene, replace(child, state=child.state._replace(status="FAILED")))


def _a_step_was_taken_twice(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_chain")
    return with_log(scene, with_events(log, lambda e: [e, e] if e.type == "TaskScheduled" else [e]))


def _a_step_was_left_out(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_fan")
    steps = [event for event in log.events if event.type == "TaskScheduled"]
    return with_log(scene, with_events(log, lambda e: [] if e == steps[-1] else [e]))


def _a_retry_too_many(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_unsteady")
    last = [event for event in log.events if event.type == "TaskScheduled"][-1]
    again = {**last.holdfast, "attempt": 4}
    more = last._replace(holdfast=again)
    return with_log(scene, with_events(log, lambda e: [e, more] if e == last else [e]))


def _an_attempt_has_two_results(scene: Scene) -> Scene:
    """While another line has an attempt without any."""
    log = of_workflow(scene, "p_fan")
    first = next(event for event in log.events if event.type == RESULT)
    return with_log(scene, with_events(log, lambda e: [e, e] if e == first else [e]))


def _a_result_of_what_never_ran(scene: Scene) -> Scene:
    return replace(scene, ledger=scene.ledger[1:])


def _a_result_before_its_task(scene: Scene) -> Scene:
    first, *rest = scene.ledger
    return replace(scene, ledger=(replace(first, at=first.at + 1_000), *rest))


def _an_attempt_before_its_pause_was_over(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_unsteady")
    again = next(e for e in log.events if e.type == "TaskScheduled" and "due" in e.holdfast)
    attempt = f"{log.run} {again.holdfast['entry']} {again.holdfast['attempt']}"
    early = again.holdfast["due"] / 1_000 - 0.1
    ledger = (replace(b, at=early) if b.attempt == attempt else b for b in scene.ledger)
    return replace(scene, ledger=tuple(ledger))


def _the_last_record_was_let_in_and_is_gone(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_chain")
    return with_log(scene, replace(log, items=log.items[:-1], records=log.records[:-1]))


def _a_record_was_changed_afterwards(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_chain")
    return with_log(scene, replace(log, items=({**log.items[0], "at": 0}, *log.items[1:])))


def _an_end_is_not_in_the_list(scene: Scene) -> Scene:
    log = of_workflow(scene, "p_chain")
    last = {name: value for name, value in log.items[-1].items() if name != "lp"}
    return with_log(scene, replace(log, items=(*log.items[:-1], last)))


def _a_task_was_begun_again_for_no_reason(scene: Scene) -> Scene:
    return replace(scene, ledger=(*scene.ledger, _again(scene)))


def _again(scene: Scene) -> Begun:
    first = scene.ledger[0]
    return replace(first, pid=7, at=first.at + 1)


@pytest.mark.parametrize(
    "damage, expected",
    [
        (_a_caller_was_told_of_another, "was told another"),
        (_a_name_was_begun_twice, "without a caller"),
        (_a_child_is_gone, "lost: a child"),
        (_a_child_was_begun_twice, "a child that no log asked for"),
        (_a_child_came_to_something_else, "came to 'else'"),
        (_a_child_failed_and_nobody_minds, "ended FAILED"),
        (_a_step_was_taken_twice, "doubled: the step"),
        (_a_step_was_left_out, "lost: the step"),
        (_a_retry_too_many, "was taken 4 times, not 3"),
        (_an_attempt_has_two_results, "is of no open attempt"),
        (_a_result_of_what_never_ran, "had not begun"),
        (_a_result_before_its_task, "had not begun"),
        (_an_attempt_before_its_pause_was_over, "began early"),
        (_the_last_record_was_let_in_and_is_gone, "was accepted and is gone"),
        (_a_record_was_changed_afterwards, "is not what was accepted"),
        (_an_end_is_not_in_the_list, "is listed as"),
        (_a_task_was_begun_again_for_no_reason, "for no reason"),
    ],
)
def test_damage_is_found(scene: Scene, damage: Callable[[Scene], Scene], expected: str) -> None:
    assert expected in _texts(damage(scene))


# -- reasons ---------------------------------------------------------------------------------------


def test_a_task_lost_to_a_fault_may_begin_again(scene: Scene) -> None:
    again, first = _again(scene), scene.ledger[0]
    killed = Harm("kill", "worker-1", first.pid, first.at + 0.5, first.at + 0.5)
    doubled = replace(scene, ledger=(*scene.ledger, again))
    assert _texts(replace(doubled, harms=(killed,))) == ""
    assert "for no reason" in _texts(replace(doubled, harms=(replace(killed, pid=8),)))


def test_a_process_may_begin_an_ended_attempt_after_a_freeze(scene: Scene) -> None:
    first = scene.ledger[0]
    late = replace(first, pid=7, at=first.at + 40)
    frozen = Harm("freeze", "worker-2", 7, first.at - 1, first.at + 39)
    doubled = replace(scene, ledger=(*scene.ledger, late))
    assert _texts(replace(doubled, harms=(frozen,))) == ""
    assert "for no reason" in _texts(doubled)


def test_an_attempt_without_a_lease_may_begin_by_its_wake_and_by_a_recovery(scene: Scene) -> None:
    log = of_workflow(scene, "p_unsteady")
    claimed, free = (
        next(b for b in scene.ledger if b.attempt == f"{log.run} 0 {n}") for n in (1, 2)
    )
    third = Harm("kill", "worker-3", 9, free.at - 10, free.at - 10)
    for begun, is_sound in ((free, True), (claimed, False)):
        again = replace(begun, pid=7, at=begun.at + 0.2)
        doubled = replace(scene, ledger=(*scene.ledger, again))
        assert (_texts(replace(doubled, harms=(third,))) == "") is is_sound
        assert "for no reason" in _texts(doubled)


def test_two_starts_may_begin_one_task(scene: Scene) -> None:
    run = scene.ledger[0].attempt.split()[0]
    doubled = replace(scene, ledger=(*scene.ledger, _again(scene)))
    assert _texts(replace(doubled, starts={**scene.starts, run: 2})) == ""


# -- undoing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", ["p_saga", "p_stopped"])
def test_a_permit_given_back_twice_or_not_at_all_is_found(scene: Scene, workflow: str) -> None:
    log = of_workflow(scene, workflow)

    def undone(event: Event) -> bool:
        return event.type == "TaskScheduled" and event.details["resource"] == "task:unbook"

    assert list(evidence._undone_in_reverse(log)) == []
    twice = with_events(log, lambda event: [event, event] if undone(event) else [event])
    never = with_events(log, lambda event: [] if undone(event) else [event])
    for damaged in (twice, never):
        assert "given back" in " ".join(evidence._undone_in_reverse(damaged))


# -- the journal -----------------------------------------------------------------------------------


def _put_request(item: Item) -> bytes:
    """Return the request that botocore sends."""
    attributes = {
        name: {"B": b64encode(value).decode()}
        if isinstance(value, bytes)
        else {"N": str(value)}
        if isinstance(value, int)
        else {"S": value}
        for name, value in item.items()
    }
    return json.dumps({"TableName": "executions", "Item": attributes}).encode()


def test_the_journal_knows_a_record_as_the_table_holds_it(scene: Scene) -> None:
    """Bytes are text on the wire: a digest of that would fit no record."""
    item = next(item for log in scene.found.logs.values() for item in log.items)
    journal = Journal("executions")
    journal.note("DynamoDB_20120810.PutItem", _put_request({**item, "eb": b"\x00\xff"}), 200, 5.0)
    assert journal.digests == {place(item): digest({**item, "eb": b"\x00\xff"})}
    assert journal.arrived == {place(item): 5.0}
