"""I7, I12, I15: answers, events, starts and tenants."""

from __future__ import annotations

import json
from collections.abc import Iterator

from holdfast.sim.invariants.case import Case


def used_once(case: Case) -> Iterator[str]:
    for history in case.histories:
        used = [event.holdfast["event"] for event in history.events if "event" in event.holdfast]
        if len(used) != len(set(used)):
            yield f"{history.run}: an event was used twice"


def one_of_a_name(case: Case) -> Iterator[str]:
    runs: dict[tuple[str, str, str | None], dict[str, set[str | None]]] = {}
    for one in case.schedule.started:
        by_input = runs.setdefault((one.tenant, one.workflow, one.name), {})
        data = json.dumps(one.data, sort_keys=True)
        if one.refused is None:
            by_input.setdefault(data, set()).add(one.run)
    for name, by_input in runs.items():
        answered = {run for found in by_input.values() for run in found}
        if len(by_input) > 1:
            yield f"{name}: accepted with {len(by_input)} inputs"
        if len(answered) > 1:
            yield f"{name}: callers were told of {sorted(map(str, answered))}"


def tenants_apart(case: Case) -> Iterator[str]:
    yield from case.schedule.foreign
