"""Operators who pause an execution and resume it later, drawn at random for each schedule.

After each pause they request the resume until it is accepted, or until there is nothing to resume:
the execution has ended, or a stop has ended the pause. So a scenario has the same end with pauses
as without, and the reference interpreter need not know of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from holdfast.core.state import PAUSE_TIMERS
from holdfast.runtime.commands.api import Front
from holdfast_simulator.operators import noting
from holdfast_simulator.simulation import Simulation

#: The most pauses of one execution.
_PAUSES_MAX: Final = 3
#: A pause that was accepted is applied within this time, unless its execution ends before.
_PATIENCE_MS: Final = 86_400_000
_AGAIN_MS: Final = 60_000
_NOT_PAUSED: Final = "HF236"
_OTHER_PAUSE: Final = "HF235"


class Pausing:
    """The operators that pause and resume. `insist` is that of `People`."""

    def __init__(self, simulation: Simulation, front: Front, insist: Callable[..., None]) -> None:
        self._simulation, self._front, self._insist = simulation, front, insist
        self._times: dict[tuple[str, str], int] = {}

    def maybe_pause(self, tenant: str, run: str) -> None:
        simulation, place = self._simulation, (tenant, run)
        if not simulation.scenario.pauses or not simulation.swarm.pause_percent:
            return
        times = self._times.get(place, 0)
        if times == _PAUSES_MAX or (times == 0 and place in self._times):
            return
        self._times[place] = times + 1
        if simulation.tape.number("pause", 100) >= 100 - simulation.swarm.pause_percent:
            self._pause(tenant, run, simulation.tape.number("pause time", 60) ** 2 * 50)

    def _pause(self, tenant: str, run: str, delay_ms: int) -> None:
        simulation = self._simulation
        timers = PAUSE_TIMERS[simulation.tape.number("pause timers", len(PAUSE_TIMERS))]
        length_ms = simulation.tape.number("pause length", 60) ** 2 * 100
        request = {"reason": "drawn", "by": "operator", "timers": timers}
        chance = self._chance()
        note = noting(simulation, "pause", tenant, run, request)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            note(answer, refused, asked_ms)
            if refused in (None, _OTHER_PAUSE):
                until_ms = simulation.now_ms + length_ms + _PATIENCE_MS
                self._resume(tenant, run, length_ms, until_ms)

        make = partial(self._front.pause, tenant, run, request, chance)
        self._insist("pause", tenant, make, told, delay_ms)

    def _resume(self, tenant: str, run: str, delay_ms: int, until_ms: int) -> None:
        simulation = self._simulation
        request = {"reason": "drawn", "by": "operator"}
        chance = self._chance()
        note = noting(simulation, "resume", tenant, run, request)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            note(answer, refused, asked_ms)
            if refused == _NOT_PAUSED and simulation.now_ms < until_ms:
                self._resume(tenant, run, _AGAIN_MS, until_ms)  # the pause may not be applied yet
            elif refused is None:
                self.maybe_pause(tenant, run)

        make = partial(self._front.resume, tenant, run, request, chance)
        self._insist("resume", tenant, make, told, delay_ms)

    def _chance(self) -> bytes:
        return self._simulation.number().to_bytes(8, "big")
