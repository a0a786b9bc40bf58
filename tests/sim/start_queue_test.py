"""Starts have a queue of their own: many of them do not delay executions that are under way."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.commands import start
from holdfast.runtime.effects import Message, Send
from holdfast_simulator.flow import START_MS, FlowWorld, Work
from tests.builders import call, wait_for

STARTS = 400
FEW_STARTS = 100  # enough to keep all workers busy for two minutes
IMPORT_MS = 30_000
EVENT_MS = IMPORT_MS + 5_000  # all workers that may take starts are busy with them by then
WORKERS = 9
START_WORKERS = 3  # a third, as on AWS and on the laptop
TASK_SECONDS = 12

IS_ORDER = "{% $states.input.customer = 'order' %}"
MACHINE: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "which",
    "States": {
        "which": {
            "Type": "Choice",
            "Choices": [{"Condition": IS_ORDER, "Next": "wait"}],
            "Default": "0",
        },
        "wait": wait_for("paid", "ship"),
        "ship": call("ship"),
        "0": call("import", TimeoutSeconds=20),
    },
}


def delay_of_order(start_workers: int, starts: int) -> tuple[float, FlowWorld]:
    """Return seconds from the event to the task after it, among the starts; and the world
    afterwards.
    """
    world = FlowWorld({}, MACHINE, seed=1, workers=WORKERS, start_workers=start_workers)
    world.start(Work(0, customer="order"), "order")
    for number in range(starts):
        world.start(Work(IMPORT_MS, customer="import", seconds=TASK_SECONDS), f"import{number}")

    def pay() -> None:
        request = {"name": "paid", "key": "k1", "data": {}}
        assert world.call(world.front.event("default", request, b"payspays"))["waiting"] == 1
        world._poll()

    world.at(START_MS + EVENT_MS, pay)
    world.run(START_MS + 60 * 60_000)
    assert world.errors == []
    assert world.open_runs() == []
    (shipped,) = [one.began.at_ms for one in world.task_runs if one.began.task == "ship"]
    return (shipped - START_MS - EVENT_MS) / 1_000, world


def test_an_order_goes_on_within_two_seconds_of_its_event_behind_400_queued_starts() -> None:
    delay, world = delay_of_order(START_WORKERS, STARTS)
    assert delay < 2
    imports = [one for one in world.task_runs if one.began.task == "import"]
    # The sweeper sends a start again that waits for longer than 15 minutes. Where the two messages
    # are received at once, the first task may run twice.
    assert len({one.began.run for one in imports}) == STARTS
    assert len(imports) <= STARTS + START_WORKERS
    # The bound slows the intake alone: three at once, twelve seconds each.
    assert max(one.ended_ms or 0 for one in imports) >= (
        START_MS + IMPORT_MS + STARTS * TASK_SECONDS * 1_000 // START_WORKERS
    )


def test_without_a_bound_for_starts_the_same_order_waits_until_one_of_them_ends() -> None:
    delay, _ = delay_of_order(WORKERS, FEW_STARTS)
    assert delay > TASK_SECONDS / 2


def test_in_one_queue_with_the_starts_the_same_order_waits_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def send_to_work(messages: tuple[Message, ...], _: str) -> Send:
        return Send(messages, "work")

    monkeypatch.setattr(start, "Send", send_to_work)
    delay, _ = delay_of_order(START_WORKERS, FEW_STARTS)
    queued = FEW_STARTS * TASK_SECONDS / WORKERS - (EVENT_MS - IMPORT_MS) / 1_000
    assert delay > queued * 0.9
