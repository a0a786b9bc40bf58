"""Bulk operations drawn at random, several at once, in worlds with faults.

Each has a reason of its own, so that the histories say which commands were applied. A command is
applied at most once, only to an execution that the report calls done, and all executions end.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from random import Random
from typing import Any

import pytest

from holdfast.runtime.worker import bulk_pages
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, Work
from tests.sim.scope_pauses_test import MINUTE_MS, drill

_WORKS = 24
_BULKS = 8
_FLOW = {"workflow": "flow"}
_APPLIED = {"ExecutionRedriven", "StepSkipped", "Paused", "Resumed"}
#: The operations, with their filters and fields.
_DRAWN: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("retry", _FLOW, {}),
    ("retry", {**_FLOW, "error": "BankDown"}, {}),
    ("pause", _FLOW, {}),
    ("pause", {**_FLOW, "name": "o1*"}, {"timers": "run"}),
    ("resume", {"paused": "true"}, {}),
    ("skip", {**_FLOW, "status": "FAILED"}, {"step": "1", "result": "by hand"}),
    ("stop", {**_FLOW, "name": "o2*"}, {}),
)


def bulk(world: FlowWorld, number: int, drawn: int) -> str:
    operation, filters, fields = _DRAWN[drawn]
    request = {
        "operation": operation,
        "filters": filters,
        "fields": fields,
        "reason": f"bulk {number}.",
        "rate": 2,
    }
    chance = number.to_bytes(8, "big")
    told = world.call(world.front.bulk("default", request, chance))
    world._poll()
    return str(told["execution"])


def played(seed: int) -> Counter[str]:
    random = Random(seed)
    world, bank = drill(seed=seed)
    bank.until_ms = 600_000
    world.faults = Faults(0.02, end_ms=900_000, skew_ms=300, duplicates=0.1, late=0.1)
    for number in range(_WORKS):
        world.start(Work(random.randint(0, 120_000)), f"o{number}")
    bulks: dict[str, str] = {}
    for number in range(_BULKS):
        world.run(START_MS + 60_000 + 90_000 * number)
        bulks[f"bulk {number}."] = bulk(world, number, random.randrange(len(_DRAWN)))
    world.run(START_MS + 60 * MINUTE_MS)
    _finish(world, bulks)
    assert world.errors == []
    statuses = Counter(_described(world, run)["status"] for run in world.works)
    assert statuses.keys() <= {"SUCCEEDED", "ABORTED"}, statuses
    return statuses + _judged(world, bulks)


def _finish(world: FlowWorld, bulks: dict[str, str]) -> None:
    """Resume the paused and retry the failed, with the bank up and without faults."""
    for number, drawn in ((_BULKS, 4), (_BULKS + 1, 0)):
        bulks[f"bulk {number}."] = bulk(world, number, drawn)
        world.run(world.now_ms + 30 * MINUTE_MS)


def _described(world: FlowWorld, run: str) -> Any:
    return world.call(world.front.describe("default", run))


def _judged(world: FlowWorld, bulks: dict[str, str]) -> Counter[str]:
    """Compare the reports with the histories of the executions."""
    applied = {run: _reasons(world, run) for run in world.works}
    counts: Counter[str] = Counter()
    for reason, run in bulks.items():
        assert _described(world, run)["status"] == "SUCCEEDED", reason
        report = _report(world, run)
        for execution, reasons in applied.items():
            outcome = report.get(execution, "not selected")
            assert reasons[reason] <= (outcome == bulk_pages.DONE), (reason, execution, outcome)
            counts[f"applied {reasons[reason]}"] += 1
        counts.update(outcome[:5] for outcome in report.values())
    return counts


def _reasons(world: FlowWorld, run: str) -> Counter[str]:
    """Return how often each reason was applied. The skip of a failed step has two events."""
    applied: dict[str, Counter[str]] = defaultdict(Counter)
    for event in world.call(world.front.history("default", run))["events"]:
        own = event.get("holdfast", {})
        reason = own.get("stopping", {}).get("cause")
        if event["type"] in _APPLIED:
            reason = own["reason"]
        if reason is not None:
            applied[reason][event["type"]] += 1
    return Counter({reason: max(types.values()) for reason, types in applied.items()})


def _report(world: FlowWorld, run: str) -> dict[str, str]:
    report: dict[str, str] = {}
    for event in world.call(world.front.history("default", run))["events"]:
        details = event.get("taskSucceededEventDetails", {})
        if details.get("resource") == "bulk:act":
            report |= json.loads(details["output"])["outcomes"]
    return report


@pytest.mark.parametrize("seed", range(3))
def test_drawn_bulks_apply_each_command_once(seed: int) -> None:
    print(f"seed {seed}")
    assert played(seed)["applied 1"] > 0


@pytest.mark.slow
def test_drawn_bulks_of_200_worlds_apply_each_command_once() -> None:
    counts: Counter[str] = Counter()
    for seed in range(100, 300):
        print(f"seed {seed}")
        counts += played(seed)
    print(counts)


def test_a_command_with_a_new_id_each_time_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_pages, "once", lambda command, _moment: command)
    with pytest.raises(AssertionError):
        for seed in range(12):
            played(seed)
