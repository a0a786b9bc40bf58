"""A recorded history against changed code: the first step that would differ is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.remote.client import Client
from holdfast.testing import Difference, ScriptError, replay
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

HEADER = """
from datetime import timedelta
from holdfast import (
    BlockTimeout, Retry, TaskError, ask, compensating, each, hours, minutes, pure, seconds, sleep,
    task, timeout, wait_for_event, workflow,
)

calls = []

class BankDown(TaskError): ...

@task
def reserve(order: str) -> str:
    return f"r-{order}"

@task(retry=Retry(max_attempts=2, on=(BankDown,), interval=seconds(2), jitter=False))
def charge(order: str, cents: int) -> int:
    calls.append(order)
    if len(calls) == 1:
        raise BankDown("no answer")
    return cents

@task
def ship(order: str) -> str:
    return f"parcel {order}"

@task
def refund(cents: int) -> None: ...

@pure
def price_of(order: str) -> int:
    return len(order) * 100

"""
ORDER = """
@workflow
def flow(order: str) -> str:
    reserve(order)
    with compensating() as undo:
        undo(refund, 1)
        paid = charge(order, price_of(order))
        sleep(minutes(5))
        if paid > 0:
            return ship(order)
    return ""
"""


def recorded(
    folder: Path, source: str, *, seconds: int = 4_000, act: Any = None, header: str = HEADER
) -> Any:
    """Return the history of one execution of `flow`."""
    with loaded(folder, header + source) as module:
        stack = MemoryStack(module.__name__)
        client = Client.of(stack.api)
        run = client.start("flow", {"order": "o-7"}).execution
        if act is not None:
            act(client, run)
        stack.world.run(until_ms=stack.world.now_ms + seconds * 1_000)
        return client.history(run)


def again(folder: Path, source: str, history: Any, *, header: str = HEADER) -> Any:
    with loaded(folder, header + source) as module:
        return replay(module.flow, history)


def test_the_same_code_follows_its_history(tmp_path: Path) -> None:
    history = recorded(tmp_path, ORDER)
    found = again(tmp_path, ORDER, history)
    assert found.status == "SUCCEEDED"
    assert found.steps == ["reserve", "charge", "sleep", "ship"]

    path = tmp_path / "history.json"
    path.write_text(json.dumps(history))
    assert again(tmp_path, ORDER, path) == found
    path.write_text(json.dumps({"execution": "01", "history": json.dumps(history)}))
    assert again(tmp_path, ORDER, str(path)) == found


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("reserve(order)\n    with", "with", "at its first step"),
        ("ship(order)", 'ship(order + "!")', 'task ship {"order": "o-7"}'),
        ("if paid > 0", "if paid > 900", "today:    the end: SUCCEEDED"),
        ("sleep(minutes(5))", "sleep(minutes(6))", "after reserve, charge:"),
        ("sleep(minutes(5))", "refund(3)", "today:    task refund"),
        ("return ship(order)", "return ship(order) + '.'", "recorded: the end: SUCCEEDED"),
    ],
)
def test_the_first_step_that_differs_is_named(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    history = recorded(tmp_path, ORDER)
    assert old in ORDER
    with pytest.raises(Difference) as differs:
        again(tmp_path, ORDER.replace(old, new), history)
    assert told.replace(':"', ': "') in str(differs.value)


def test_a_changed_pure_function_is_noticed(tmp_path: Path) -> None:
    history = recorded(tmp_path, ORDER)
    changed = ORDER + "\n@pure\ndef price_of(order: str) -> int:\n    return 1\n"
    with pytest.raises(Difference, match=r"today:    task charge .*cents.*1"):
        again(tmp_path, changed, history)


def test_the_difference_has_the_line_of_todays_code(tmp_path: Path) -> None:
    history = recorded(tmp_path, ORDER)
    with pytest.raises(Difference, match=r"\(program_\d+.py:\d+: return ship\(order \* 2\)\)"):
        again(tmp_path, ORDER.replace("ship(order)", "ship(order * 2)"), history)


def test_branches_waits_stops_and_undo_are_followed(tmp_path: Path) -> None:
    source = """
@workflow
def flow(order: str) -> str:
    with compensating() as undo:
        undo(refund, 1)
        found = each([1, 2, 3], lambda n: charge(order, n))
        try:
            with timeout(minutes(2)):
                wait_for_event("never", int, key=order)
        except BlockTimeout:
            pass
        sleep(hours(20))
    return ""
"""

    def stop(client: Client, run: str) -> None:
        client.stop(run)

    assert again(tmp_path, source, recorded(tmp_path, source, seconds=600)).status == "RUNNING"
    ended = again(tmp_path, source, recorded(tmp_path, source, seconds=90_000))
    assert ended.status == "SUCCEEDED"
    assert ended.steps.count("charge") == 3
    stopped = again(tmp_path, source, recorded(tmp_path, source, act=stop))
    assert (stopped.status, stopped.steps[-1]) == ("ABORTED", "refund")


def test_a_skipped_step_is_followed(tmp_path: Path) -> None:
    source = ORDER.replace("charge(order, price_of(order))", "charge(order, 3)").replace(
        "sleep(minutes(5))", "sleep(minutes(5))\n        ask('ok?', bool, assignee='ada')"
    )
    source = source.replace("with compensating() as undo:\n        undo(refund, 1)", "if order:")

    def act(client: Client, run: str) -> None:
        (wait,) = client.describe(run)["waits"]
        client.skip(run, wait["state"], 5, "paid by phone")

    history = recorded(tmp_path, source, act=act)
    assert "StepSkipped" in {event["type"] for event in history}
    found = again(tmp_path, source, history)
    assert (found.status, found.steps) == ("RUNNING", ["reserve", "charge", "sleep", "ok?"])


def test_a_retried_execution_is_followed(tmp_path: Path) -> None:
    source = ORDER.replace("max_attempts=2", "max_attempts=1").replace(
        "with compensating() as undo:\n        undo(refund, 1)", "if order:"
    )
    header = HEADER.replace("max_attempts=2", "max_attempts=1")

    def act(client: Client, run: str) -> None:
        assert client.describe(run)["status"] == "FAILED"
        client.retry(run)

    history = recorded(tmp_path, source, act=act, header=header)
    assert "ExecutionRedriven" in {event["type"] for event in history}
    assert again(tmp_path, source, history, header=header).status == "SUCCEEDED"


def test_a_history_that_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    history = recorded(tmp_path, ORDER)
    other = ORDER.replace("def flow", "def other")
    with loaded(tmp_path, HEADER + other) as module, pytest.raises(ScriptError, match="is of flow"):
        replay(module.other, history)
    with pytest.raises(ScriptError, match="not complete"):
        again(tmp_path, ORDER, history[1:])
    with pytest.raises(ScriptError, match="large values"):
        again(tmp_path, ORDER, [{**history[0], "omitted": ["input"]}, *history[1:]])
    with pytest.raises(ScriptError, match="a fork"):
        again(tmp_path, ORDER, [*history, {**history[0], "type": "ExecutionForked"}])


def test_a_skipped_pure_function_is_computed_and_the_step_after_it_is_compared(
    tmp_path: Path,
) -> None:
    history = recorded(tmp_path, ORDER)
    [place] = [
        number
        for number, event in enumerate(history)
        if event.get("taskScheduledEventDetails", {}).get("resource") == "pure:price_of"
    ]
    assert [history[place + 1]["type"], history[place + 2]["type"]] == [
        "TaskStarted",
        "TaskSucceeded",
    ]
    skip = {
        "type": "StepSkipped",
        "timestamp": history[place]["timestamp"],
        "stepSkippedEventDetails": {"name": "price_of", "output": "300"},
        "holdfast": {"control": "1" * 15, "reason": "by hand", "by": "ann"},
    }
    rest = [{**one, "id": one["id"] - 2} if "id" in one else one for one in history[place + 3 :]]
    skipped = [*history[: place + 1], skip, *rest]
    assert again(tmp_path, ORDER, skipped).steps == ["reserve", "charge", "sleep", "ship"]


def test_a_deadline_of_a_block_with_undo_steps_passes_as_it_did(tmp_path: Path) -> None:
    source = """
@workflow
def flow(order: str) -> str:
    try:
        with timeout(minutes(1)), compensating() as undo:
            undo(refund, 1)
            reserve(order)
            sleep(minutes(5))
    except BlockTimeout:
        return "late"
    return ""
"""
    history = recorded(tmp_path, source)
    types = [event["type"] for event in history]
    assert types.index("Cancelled") < types.index("DeadlinePassed")
    assert again(tmp_path, source, history).steps == ["reserve", "sleep", "refund"]
