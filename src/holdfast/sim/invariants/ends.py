"""I9, I10, I13: how executions end."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.events import TERMINAL_EVENTS
from holdfast.sim import reference
from holdfast.sim.invariants.case import Case
from holdfast.sim.rulings import ended, rulings_of


def one_end(case: Case) -> Iterator[str]:
    for history in case.histories:
        redrives = sum(event.type == "ExecutionRedriven" for event in history.events)
        ends = sum(event.type in TERMINAL_EVENTS for event in history.events)
        if ends > redrives + 1:
            yield f"{history.run}: {ends} ends and {redrives} redrives"


def undone_in_reverse(case: Case) -> Iterator[str]:
    del case
    yield from ()


def as_the_reference_says(case: Case) -> Iterator[str]:
    """What the engine made of an execution, beside what the reference interpreter makes of it."""
    scenario = case.schedule.scenario
    rulings = rulings_of(case.histories)
    for history in case.histories:
        if history.state.workflow not in scenario.machines:
            continue
        try:
            expected = reference.expected(scenario, rulings[history.run])
        except (reference.Undecided, reference.Contradiction) as error:
            yield f"{history.run}: {type(error).__name__}: {error}"
            continue
        found = ended(history.events)
        if expected is not None and expected != found:
            yield f"{history.run}: is {found}, and should be {expected}"
