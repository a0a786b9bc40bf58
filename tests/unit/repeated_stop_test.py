"""A stop that is stored more than once, since its answer was lost, and one that does not wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.runtime.effects import Query, RunTask, TaskSucceeded
from holdfast.runtime.storage import keys
from holdfast_simulator.invariants import check, lost
from tests.builders import CHANCE, Machine, Shop, machine, wait_for
from tests.sim import doctor_kit
from tests.unit.core_stopping_test import undoable
from tests.unit.stack_kit import Stack

HOUR_MS = 3_600_000
REFUND = undoable({"rest": wait_for("paid")}, ["rest"])
#: Its undo waits for an event.
CONFIRMED = machine(
    {**REFUND["States"], "undo": wait_for("signed", "undone")}, Holdfast=REFUND["Holdfast"]
)


class Till(Shop):
    """An execution at the wait that its undo takes back; `ran` are the tasks since."""

    def __init__(self, definition: Machine) -> None:
        self.ran: list[str] = []

        def work(task: RunTask) -> TaskSucceeded:
            self.ran.append(task.name)
            return TaskSucceeded(None)

        super().__init__(definition, tasks=work)
        self.execution = self.start()
        self.pass_ms(1_000)

    def ask(self, **request: Any) -> None:
        """Send a stop as another request: it has an id of its own."""
        self.world.now_ms += 1
        self.world.call(self.front.stop("default", self.execution, request, CHANCE))

    def pass_ms(self, time_ms: int) -> None:
        until_ms = self.world.now_ms + time_ms
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    @property
    def stops(self) -> int:
        inbox = keys.inbox("default", self.execution)
        query = Query("mail", inbox, begins_with=keys.CONTROL_PREFIX)
        return len(self.world.services.perform(query))

    @property
    def end(self) -> tuple[str, str | None]:
        state = self.history(self.execution).state
        return state.status, state.error


def test_a_stop_whose_answer_was_lost_and_that_is_repeated_undoes_all() -> None:
    """The worker reads all of them at once."""
    till = Till(REFUND)
    for error in ("Closed", "Closed again", "Closed for good"):
        till.ask(error=error)
    till.pass_ms(1_000)

    assert till.stops == 3
    assert (till.end, till.ran) == (("ABORTED", "Closed"), ["release"])
    assert (check(till.world), lost(till.world)) == ([], [])


def test_step_functions_stop_that_is_repeated_undoes_all() -> None:
    ran: list[str] = []

    def work(task: RunTask) -> TaskSucceeded:
        ran.append(task.name)
        return TaskSucceeded(None)

    body = {"rest": {"Type": "Wait", "Seconds": 600, "End": True}}
    stack = Stack(json.dumps(undoable(body, ["rest"])), work)
    arn = stack.start(None)
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    for _ in range(3):
        stack.world.now_ms += 1
        stack.stop(arn)
    stack.world.run()

    assert (stack.parent.state.status, ran) == ("ABORTED", ["release"])
    assert stack.is_sound


def test_a_repeated_stop_keeps_no_worker_busy_while_the_undo_waits() -> None:
    """It is never applied: if it counted as unread, it would wake a worker for ever."""
    till = Till(CONFIRMED)
    till.ask()
    till.pass_ms(1_000)
    till.ask()
    till.pass_ms(24 * HOUR_MS)

    assert till.end == ("RUNNING", None)
    assert doctor_kit.findings(till.world) == []
    assert doctor_kit.findings(till.world, is_repairing=True) == []
    till.send_event("signed")
    till.pass_ms(1_000)
    assert till.end == ("ABORTED", None)


@pytest.mark.parametrize("is_undoing", [False, True])
def test_a_stop_that_does_not_wait_ends_the_execution_and_undoes_no_more(is_undoing: bool) -> None:
    till = Till(CONFIRMED)
    if is_undoing:
        till.ask(error="Closed")
        till.pass_ms(1_000)
    till.ask(error="Fire", now=True)
    till.pass_ms(1_000)

    assert till.end == ("ABORTED", "Fire")
    assert till.history(till.execution).state.is_undone is is_undoing
    assert (check(till.world), lost(till.world)) == ([], [])


def test_the_first_stop_gives_the_reason_also_if_another_one_does_not_wait() -> None:
    till = Till(CONFIRMED)
    till.ask(error="Fraud", cause="a stolen card")
    till.pass_ms(1_000)
    till.ask(now=True)
    till.pass_ms(1_000)
    assert till.end == ("ABORTED", "Fraud")


def test_a_stop_that_says_it_waits_does() -> None:
    till = Till(REFUND)
    till.ask(now=False)
    till.ask(now=False)
    till.pass_ms(1_000)

    assert till.ran == ["release"]
