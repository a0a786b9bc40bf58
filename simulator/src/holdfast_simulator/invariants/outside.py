"""I12, I15: starts and tenants."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from holdfast_simulator.invariants import refusals
from holdfast_simulator.invariants.case import Case


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
    yield from refusals.of_starts(case)
    yield from _begun(case)


def _begun(case: Case) -> Iterator[str]:
    """Check that the execution of a name is the one that its callers received."""
    states = [history for history in case.histories if history.state.parent is None]
    named = Counter((one.tenant, one.state.workflow, one.state.name) for one in states)
    for name, times in named.items():
        if times > 1 and name[2] is not None:
            yield f"{name}: {times} executions"
    begun = {(one.tenant, one.run): one.state for one in states}
    for one in case.schedule.started:
        state = begun.get((one.tenant, one.run or ""))
        if one.refused is None and state is not None and state.input != one.data:
            yield f"{one.run} was accepted with {one.data!r:.90} and has {state.input!r:.90}"


def tenants_apart(case: Case) -> Iterator[str]:
    yield from case.schedule.foreign
    owners = {history.run: history.tenant for history in case.histories}
    for one in case.schedule.started:
        owner = owners.get(one.run or "", one.tenant)
        if owner != one.tenant:
            yield f"{one.tenant} was told of {one.run}, which is {owner}'s"
