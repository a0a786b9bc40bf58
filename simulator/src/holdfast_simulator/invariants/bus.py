"""I4 for the event bus: every begin and end of a state machine's execution is published."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case


def told(case: Case) -> Iterator[str]:
    """Check that each status was published at least once, and no other. An exception: a worker that
    crashed before it published, and whose message then vanished, publishes nothing.
    """
    published = {
        (str(one.detail["executionArn"]), str(one.detail["status"]))
        for one in case.services.published
    }
    asked = set()
    for history in case.histories:
        for status in _statuses(history):
            assert history.state.origin is not None
            news = (history.state.origin["execution_arn"], status)
            asked.add(news)
            if news not in published and history.run not in case.schedule.lost:
                yield f"{history.run} is {status}, and the bus was not told"
    for arn, status in sorted(published - asked):
        yield f"the bus was told that {arn} is {status}"


def _statuses(history: StoredHistory) -> set[str]:
    """Return the statuses that the execution has had."""
    origin = history.state.origin
    if origin is None or origin["type"] != "STANDARD":
        return set()
    return {"RUNNING", *(state.status for state in history.states)}
