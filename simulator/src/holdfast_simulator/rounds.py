"""An operator who runs `holdfast doctor --repair` during the faults, over lists that lag."""

from __future__ import annotations

from typing import Final

from holdfast.errors import ServiceFault
from holdfast.runtime.maintenance import doctor
from holdfast_simulator.aftermath import tenants
from holdfast_simulator.marks import Seen
from holdfast_simulator.simulation import Simulation

#: By how much the index may be behind its table, in ms: as a rule by nothing.
_LAGS_MS: Final = (0, 0, 1_000, 60_000)
#: In this share of schedules no operator does; in the others one does, once.
_RARELY: Final = 4
_MOMENTS: Final = 100


class RepairRounds:
    """The rounds of an operator who repairs every execution of a tenant that seems stuck. A repair
    of one that is not stuck has no effect.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        simulation.services.index_lag_ms = self._lag_ms
        if simulation.tape.number("doctor", _RARELY) == _RARELY - 1:
            moment = simulation.tape.number("doctor time", _MOMENTS)
            simulation.after(moment * simulation.swarm.safety_ms // _MOMENTS, self._walk)

    def _lag_ms(self) -> int:
        if not self._simulation.has_faults:
            return 0
        return _LAGS_MS[self._simulation.tape.number("index", len(_LAGS_MS))]

    def _walk(self) -> None:
        simulation = self._simulation
        if simulation.has_faults:
            simulation.evidence.marks[Seen.REPAIRED] += 1
        for tenant in tenants(simulation):
            host = simulation.host("doctor")
            simulation.spawn(
                host.name,
                tenant,
                host,
                doctor.report(tenant, simulation.spread, None, is_repairing=True),
                finished=lambda _: None,
                failed=self._failed,
            )

    def _failed(self, error: Exception) -> None:
        """A person may or may not repeat a request that a service refused."""
        if not isinstance(error, ServiceFault):
            self._simulation.evidence.refused_by_bug.append(repr(error))
