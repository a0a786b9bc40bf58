"""ListExecutions and redriven executions: each costs a row, and the list says what the log says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import (
    Effect,
    PutIfAbsent,
    Query,
    RunTask,
    Send,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from tests.unit.states_world import WAIT, Office, states

DAY_MS = 86_400_000
CALL = {"Type": "Task", "Resource": "holdfast:task:charge"}
LATER = {"Type": "Task", "Resource": "holdfast:task:ship"}


class Shop:
    """Executions of one machine that have failed, a day ago."""

    def __init__(self, number: int, charge: Callable[[int], TaskResult]) -> None:
        self.charge, self.calls = charge, 0
        self.office = Office(self._task)
        self.machine = self.office.create(states(Do=CALL, Nap=WAIT, Later=LATER))
        self.executions = [self.office.start(self.machine) for _ in range(number)]
        self.office.wait(10)
        # Too late for the rows of the starts.
        self.office.world.now_ms += DAY_MS

    def _task(self, effect: RunTask) -> TaskResult:
        if effect.name == "ship":
            return TaskFailed("Broken", "why")
        self.calls += 1
        return self.charge(self.calls)

    def redrive(self) -> None:
        for execution in self.executions:
            self.office.call("RedriveExecution", executionArn=execution)

    def listed(self, **request: object) -> list[str]:
        """Return the statuses of all pages, and compare each entry with its description."""
        found: list[str] = []
        more: dict[str, object] = {}
        while True:
            page = self.office.call(
                "ListExecutions", stateMachineArn=self.machine, **request, **more
            )
            for row in page["executions"]:
                described = self.office.describe(row["executionArn"])
                shared = row.keys() & described.keys()
                assert {name: row[name] for name in shared} == {
                    name: described[name] for name in shared
                }
                found.append(row["status"])
            if "nextToken" not in page:
                return found
            more = {"nextToken": page["nextToken"]}


def _failing_at_first(number: int) -> Shop:
    return Shop(
        number,
        lambda call: TaskSucceeded({}) if call > number else TaskFailed("Broken", "why"),
    )


def _queries(shop: Shop, **request: object) -> tuple[int, int]:
    """Return how many records and how many ranges of other rows a list reads."""
    seen: list[Query] = []
    real = shop.office.perform

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Query):
            seen.append(effect)
        return real(effect)

    shop.office.perform = perform  # type: ignore[method-assign]
    shop.office.call("ListExecutions", stateMachineArn=shop.machine, **request)
    shop.office.perform = real  # type: ignore[method-assign]
    logs = [one for one in seen if one.table == "executions"]
    return len(logs), len(seen) - len(logs)


def test_a_list_of_redriven_executions_reads_no_log() -> None:
    counted = []
    for number in (1, 20):
        shop = _failing_at_first(number)
        shop.redrive()
        logs, others = _queries(shop)
        counted.append((logs, others - number))  # one for the date of each redrive
        assert shop.listed() == ["RUNNING"] * number
    assert counted[0] == counted[1]
    assert counted[0][0] == 0


def test_a_redriven_execution_is_listed_as_it_is_described_at_every_moment() -> None:
    shop = _failing_at_first(1)
    for status, count in (("FAILED", 1), ("RUNNING", 0)):
        assert len(shop.listed(statusFilter=status)) == count
    shop.redrive()
    for status, count in (("FAILED", 0), ("RUNNING", 1)):
        assert len(shop.listed(statusFilter=status)) == count
    shop.office.wait(10)  # it waits
    for status, count in (("FAILED", 0), ("RUNNING", 1)):
        assert len(shop.listed(statusFilter=status)) == count
    shop.office.wait(200)  # it has failed again, in the same twenty minutes
    for status, count in (("FAILED", 1), ("RUNNING", 0)):
        assert len(shop.listed(statusFilter=status)) == count
    assert shop.listed() == ["FAILED"]
    shop.redrive()
    assert shop.listed() == ["RUNNING"]
    assert shop.listed(redriveFilter="NOT_REDRIVEN") == []


def test_pages_have_every_redriven_execution_once() -> None:
    shop = _failing_at_first(7)
    shop.redrive()
    assert shop.listed(maxResults=2) == ["RUNNING"] * 7
    assert shop.listed(maxResults=2, statusFilter="RUNNING") == ["RUNNING"] * 7
    assert shop.listed(maxResults=2, statusFilter="FAILED") == []


@pytest.mark.parametrize("effect_type", [PutIfAbsent, Send])
def test_a_redrive_whose_call_failed_is_listed_only_when_it_is_stored(
    effect_type: type[Effect],
) -> None:
    shop = _failing_at_first(1)
    real = shop.office.perform

    def perform(effect: Effect) -> Any:
        if isinstance(effect, effect_type):
            raise ServiceFault("HF301", "no answer")
        return real(effect)

    shop.office.perform = perform  # type: ignore[method-assign]
    with pytest.raises(ServiceFault):
        shop.redrive()
    shop.office.perform = real  # type: ignore[method-assign]
    if effect_type is PutIfAbsent:
        assert shop.listed() == ["FAILED"]
        return
    # The caller repeats the call, and hears that the execution runs.
    shop.office.refusal("RedriveExecution", executionArn=shop.executions[0])
    assert shop.listed() == ["RUNNING"]
