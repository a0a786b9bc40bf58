"""Deployments that change the spread of new ids while the executions of a schedule run.

Every process reads the partitions of the greatest spread, as it does two minutes after the sweeper
has stored it. So executions of several spreads are in one stack, and their children, forks and
retries, too.
"""

from __future__ import annotations

from typing import Final

from holdfast.core.run_ids import SPREAD_MAX
from holdfast_simulator.simulation import Simulation

_CHANGES: Final = 4


class Growth:
    def __init__(self, simulation: Simulation) -> None:
        if not simulation.swarm.grows:
            return
        self._simulation = simulation
        simulation.spread.read = SPREAD_MAX
        self._change()
        for number in range(1, _CHANGES):
            simulation.after(number * simulation.swarm.safety_ms // _CHANGES, self._change)

    def _change(self) -> None:
        simulation = self._simulation
        simulation.spread.minted = simulation.tape.number("spread", SPREAD_MAX + 1)
