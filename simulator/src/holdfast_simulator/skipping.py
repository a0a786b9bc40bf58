"""Operators who give open steps their results by hand: drawn for each schedule.

The scenario says which result a step has anyway. So it has the end that it has without any skip,
and the reference is not told of any.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from holdfast.runtime.commands.api import Front
from holdfast_simulator.operators import noting
from holdfast_simulator.simulation import Simulation

#: Requests for one execution, one after another.
_SKIPS_MAX: Final = 4


class Skipping:
    """The operators that skip steps. `insist` is that of `People`."""

    def __init__(self, simulation: Simulation, front: Front, insist: Callable[..., None]) -> None:
        self._simulation, self._front, self._insist = simulation, front, insist

    def maybe_skip(self, tenant: str, run: str) -> None:
        simulation = self._simulation
        if not simulation.scenario.skips or not simulation.swarm.skip_percent:
            return
        delay_ms = 0
        for _ in range(_SKIPS_MAX):
            delay_ms += simulation.tape.number("skip time", 60) ** 2 * 30
            if simulation.tape.number("skip", 100) >= 100 - simulation.swarm.skip_percent:
                self._skip(tenant, run, delay_ms)

    def _skip(self, tenant: str, run: str, delay_ms: int) -> None:
        simulation = self._simulation
        results = sorted(simulation.scenario.skips.items())
        step, result = results[simulation.tape.number("skip which", len(results))]
        request = {"step": step, "result": result, "reason": "drawn", "by": "operator"}
        chance = simulation.number().to_bytes(8, "big")
        told: Any = noting(simulation, "skip", tenant, run, request)
        make = partial(self._front.skip, tenant, run, request, chance)
        self._insist("skip", tenant, make, told, delay_ms)
