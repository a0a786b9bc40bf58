"""Claims: an event that several executions may use is used by one of them."""

from __future__ import annotations

from typing import Any

from holdfast.runtime import inbox
from holdfast.runtime.effects import Effect, Update
from holdfast_simulator.invariants import check, lost
from tests.builders import Shop, machine, wait_for

HOUR_MS = 3_600_000

#: Waits for an event, and ends with its data.
WAITER = machine({"wait": wait_for("paid", TimeoutSeconds=30 * 86_400)})


class Waiters:
    """Executions that wait for the event `paid` with one key."""

    def __init__(self, count: int = 0) -> None:
        self.shop = Shop(WAITER)
        self.world = self.shop.world
        self.runs: list[str] = []
        for _ in range(count):
            self.begin()

    def begin(self) -> str:
        run = self.shop.start(name=f"waiter-{len(self.runs)}")
        self.runs.append(run)
        self.rest()
        return run

    def rest(self, milliseconds: int = 1_000) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def send(self, data: Any = "first", event_id: str = "e1") -> None:
        self.shop.send_event(data=data, event_id=event_id)
        self.rest()

    def outcome(self, run: str) -> Any:
        state = self.shop.history(run).state
        return state.output if state.status == "SUCCEEDED" else state.status

    def outcomes(self) -> list[Any]:
        return [self.outcome(run) for run in self.runs]

    def stop(self, run: str) -> None:
        self.shop.stop(run)
        self.rest()

    def event(self, event_id: str = "e1") -> dict[str, Any]:
        rows = self.world.services.items("mail")
        return next(dict(row) for row in rows if row["sk"] == f"e#{event_id}" and "expires" in row)

    def problems(self) -> list[Any]:
        return [*check(self.world), *lost(self.world)]


def is_claim(effect: Effect) -> bool:
    return isinstance(effect, Update) and inbox.CLAIMED in effect.put


def test_an_event_is_not_used_by_a_second_execution_that_waits_later() -> None:
    waiters = Waiters(1)
    waiters.send()
    waiters.begin()
    assert waiters.outcomes() == ["first", "RUNNING"]
    waiters.send("second", "e2")
    assert waiters.outcomes() == ["first", "second"]
    assert waiters.problems() == []


def test_of_two_executions_that_wait_at_once_one_uses_the_event() -> None:
    waiters = Waiters(2)
    waiters.send()
    assert sorted(waiters.outcomes()) == ["RUNNING", "first"]
    waiters.send("second", "e2")
    assert sorted(waiters.outcomes()) == ["first", "second"]
    assert waiters.problems() == []
