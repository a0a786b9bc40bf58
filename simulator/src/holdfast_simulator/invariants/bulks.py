"""I26: a bulk operation gives each selected execution its command at most once.

The reports of the bulk operation are compared with the histories of the executions. Each bulk
operation has a reason of its own, which the applied commands repeat.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from holdfast_simulator.evidence import BulkAnswer
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case

#: The outcome of an execution that got its command.
_DONE: Final = "done"
_APPLIED: Final = frozenset({"ExecutionRedriven", "Paused", "Resumed"})


def given_once(case: Case) -> Iterator[str]:
    bulks = case.schedule.bulks
    if not bulks:
        return
    found = {(one.tenant, one.run): one for one in case.histories}
    applied = Counter(
        (history.tenant, reason, run) for history in found.values() for reason, run in _of(history)
    )
    for bulk in {(one.tenant, one.run): one for one in bulks}.values():
        report = found.get((bulk.tenant, bulk.run))
        if report is not None:  # I16 reports one that never began
            for text in _judged(bulk, report, applied):
                yield f"{bulk.run}: {bulk.operation} {text}"


def _judged(
    bulk: BulkAnswer, report: StoredHistory, applied: Counter[tuple[str, str, str]]
) -> Iterator[str]:
    chosen, outcomes = _reported(report)
    for (tenant, reason, run), times in applied.items():
        if (tenant, reason) != (bulk.tenant, bulk.reason):
            continue
        if times > 1:
            yield f"was applied {times} times to {run}"
        if run not in chosen:
            yield f"was applied to {run}, which no page has"
        elif outcomes.get(run, _DONE) != _DONE:
            yield f"was applied to {run}, and the report says {outcomes[run]}"


def _reported(report: StoredHistory) -> tuple[set[str], dict[str, str]]:
    """Return the executions of all pages, and the outcome of each whose page is done."""
    chosen: set[str] = set()
    outcomes: dict[str, str] = {}
    for event in report.events:
        if event.type != "TaskSucceeded":
            continue
        result: Any = event.details["output"]
        result = json.loads(result) if isinstance(result, str) else result
        match event.details["resource"]:
            case "bulk:select":
                chosen.update(result["executions"])
            case "bulk:act":
                outcomes |= result["outcomes"]
    return chosen, outcomes


def _of(history: StoredHistory) -> Iterator[tuple[str, str]]:
    """Yield the reason of each command that was applied, and the execution that got it."""
    for event in history.events[history.copied :]:
        own = event.holdfast
        if event.type in _APPLIED and "reason" in own:
            yield str(own["reason"]), history.run
        elif event.type == "ExecutionForked":
            yield str(own["reason"]), str(own["of"]["run"])
        elif event.type == "Stopping":
            yield str(own["stopping"].get("cause")), history.run
