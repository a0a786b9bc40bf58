"""What may undo finished work: a task, a child workflow, an event, a start and a stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from holdfast import (
    TaskError,
    compensating,
    hours,
    minutes,
    send,
    sleep,
    start,
    stop,
    task,
    workflow,
)
from holdfast.compiler.compile import compile_module, compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World
from tests.unit.dsl_kit import loaded


class Refused(TaskError): ...  # noqa: N818


@task
def reserve(room: str) -> str:
    return room


@task
def release(place: str, reason: str) -> None: ...


@task
def pay(room: str) -> None: ...


@workflow
def give_back(place: str, reason: str = "failed") -> None:
    release(place, reason)
    release(place, "all")


@workflow
def by_child(room: str) -> None:
    with compensating() as undo:
        place = reserve(room)
        undo(give_back, place)
        undo(give_back, place, reason="late")
        undo(release, place, "task")
        pay(room)


def test_a_child_workflow_undoes_with_its_defaults_and_in_reverse_order() -> None:
    run = World({reserve: "p1", pay: Refused("no")}).run(by_child, "r1")
    assert (run.error, run.cause) == ("Refused", "no")
    reasons = [call.arguments["reason"] for call in run.calls if call.name == "release"]
    assert reasons == ["task", "late", "all", "failed", "all"]


def test_a_child_workflow_that_fails_leaves_the_other_undo_steps_to_run() -> None:
    outcomes = {reserve: "p1", pay: Refused("no"), release: Refused("closed")}
    run = World(outcomes).run(by_child, "r1")
    assert (run.error, run.cause) == ("CompensationFailed", "undo of give_back failed: closed")
    assert run.steps.count("release") == 3


@workflow
def first_of(places: list[str]) -> str:
    return places[0]


@workflow
def by_child_with_an_expression(room: str) -> None:
    with compensating() as undo:
        undo(first_of, [])
        pay(room)


def test_the_error_of_an_expression_of_an_undoing_child_reads_as_in_python() -> None:
    run = World({pay: Refused("no")}).run(by_child_with_an_expression, "r1")
    assert run.cause == "undo of first_of failed: list index out of range"


@workflow
def waiting(room: str) -> None:
    with compensating() as undo:
        undo(give_back, room)
        undo(send, "rooms.free", room, key=room)
        sleep(hours(3))


def test_a_stop_runs_a_child_workflow_and_sends_an_event_as_undo_steps() -> None:
    world = World({})
    world.stop(at=hours(1))
    run = world.run(waiting, "r1")
    assert run.status == "ABORTED"
    assert run.steps == ["rooms.free", "give_back", "release", "release"]


@workflow
def by_messages(room: str) -> None:
    with compensating() as undo:
        place = reserve(room)
        undo(send, "rooms.free", {"place": place}, key=room)
        undo(send, "rooms.free", {"place": place}, key=room, delay=minutes(5))
        undo(start, give_back, place)
        undo(start, give_back, place, delay=minutes(3))
        undo(stop, f"cleaning:{place}")
        place = "another"
        pay(room)


def test_events_starts_and_stops_undo_with_the_values_of_their_registration() -> None:
    run = World({reserve: "p1", pay: Refused("no")}).run(by_messages, "r1")
    undone = [(call.kind, call.arguments, call.after) for call in run.calls[2:]]
    given = {"place": "p1", "reason": "failed"}
    sent = {"key": "r1", "data": {"place": "p1"}}
    assert undone == [
        ("stop", None, None),
        ("start", given, 180.0),
        ("start", given, None),
        ("send", sent, 300.0),
        ("send", sent, None),
    ]
    assert run.calls[2].name == "cleaning:p1"


@task
def revoke(token: SecretStr) -> None: ...


@workflow
def with_a_secret(token: SecretStr) -> None:
    with compensating() as undo:
        undo(revoke, token)
        pay("r1")


def test_the_secrets_of_an_undo_step_are_noted_as_those_of_any_step() -> None:
    compiled = compile_workflow(with_a_secret)
    assert compiled.secrets == ("revoke.token", "with_a_secret.token")


@pytest.mark.parametrize(
    "registered", ["undo(helper, 'p')", "undo(lambda: release('p'))", "undo(sleep, minutes(1))"]
)
def test_what_is_no_single_state_cannot_undo(registered: str, tmp_path: Path) -> None:
    source = f"""
from holdfast import compensating, minutes, sleep, task, workflow

@task
def release(place: str) -> None: ...

def helper(place: str) -> None:
    release(place)

@workflow
def flow() -> None:
    with compensating() as undo:
        {registered}
        release("q")
"""
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_module(module)
    (found,) = refused.value.diagnostics
    assert found.code == "HF008"
    assert "undo(refund, payment.id)" in found.help
    assert ("put @workflow before `def helper`" in found.help) == ("helper" in registered)
