"""Operators who start bulk operations over the executions of the schedule, and stop some of them.

Each bulk operation has a reason of its own, so the histories say which commands were applied (I26).
It gives only commands that the scenario has anyway: a retry always, the others where an operator
may give them to one execution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from holdfast.runtime.commands.api import Front
from holdfast_simulator.evidence import BulkAnswer
from holdfast_simulator.operators import noting
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.simulation import Simulation

_BULKS_MAX: Final = 2
#: Commands per second: a low rate makes one page for each execution.
_RATES: Final = (20, 0.2)
#: In one of so many bulk operations an operator stops it.
_ABORTED_ONE_IN: Final = 4
_MOMENTS: Final = 60


class Bulking:
    """The operators of bulk operations. `insist` is that of `People`."""

    def __init__(self, simulation: Simulation, front: Front, insist: Callable[..., None]) -> None:
        self._simulation, self._front, self._insist = simulation, front, insist

    def begin(self, tenant: str) -> None:
        """Draw the bulk operations of the schedule."""
        simulation = self._simulation
        if not simulation.swarm.bulk_percent:
            return
        for number in range(_BULKS_MAX):
            if simulation.tape.number("bulk", 100) >= 100 - simulation.swarm.bulk_percent:
                self._bulk(tenant, f"bulk {number}.")

    def _bulk(self, tenant: str, reason: str) -> None:
        simulation = self._simulation
        kinds = list(_kinds(simulation.scenario))
        operation, fields = kinds[simulation.tape.number("bulk which", len(kinds))]
        delay_ms = simulation.tape.number("bulk time", _MOMENTS) ** 2 * 100
        request = {
            "operation": operation,
            "filters": {"workflow": simulation.scenario.started},
            "fields": fields,
            "reason": reason,
            "by": "operator",
            "rate": _RATES[simulation.tape.number("bulk rate", len(_RATES))],
            "name": reason.strip(".").replace(" ", "-"),
        }
        chance = simulation.number().to_bytes(8, "big")
        note = noting(simulation, "bulk", tenant, None, request)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            note(answer, refused, asked_ms)
            if refused is None:
                run = str(answer["execution"])
                simulation.evidence.bulks.append(BulkAnswer(tenant, run, operation, reason))
                self._maybe_abort(tenant, run)

        make = partial(self._front.bulk, tenant, request, chance)
        self._insist("bulk", tenant, make, told, delay_ms)

    def _maybe_abort(self, tenant: str, run: str) -> None:
        simulation = self._simulation
        if simulation.tape.number("bulk abort", _ABORTED_ONE_IN) < _ABORTED_ONE_IN - 1:
            return
        delay_ms = simulation.tape.number("bulk abort time", _MOMENTS) ** 2 * 10
        chance = simulation.number().to_bytes(8, "big")
        make = partial(self._front.stop, tenant, run, {}, chance)
        told = noting(simulation, "stop", tenant, run, {})
        self._insist("stop", tenant, make, told, delay_ms)


def _kinds(scenario: Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the operations after which the reference still knows the end, with their fields."""
    yield "retry", {}
    machine: Any = scenario.machines[scenario.started]
    yield "fork", {"step": machine["StartAt"]}
    if scenario.pauses:
        yield "pause", {}
        yield "resume", {}
    if scenario.stops:
        yield "stop", {}
