"""Operators who fork executions, drawn for each schedule: running ones and ended ones, at any step
that the main line has entered.

A fork has the input and the variables of its origin. So it has the end that the reference says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from holdfast.asl.resources import BULK_WORKFLOW
from holdfast.core.events import Event
from holdfast.runtime.commands.api import Front
from holdfast_simulator.evidence import ForkAnswer
from holdfast_simulator.histories import history
from holdfast_simulator.operators import noting
from holdfast_simulator.simulation import Simulation

#: The most forks of one schedule; a fork may be forked, too.
_FORKS_MAX: Final = 2
#: An operator may fork it in both.
_MOMENTS: Final = ("running", "ended")


class Forking:
    """The operators that fork. `insist` is that of `People`."""

    def __init__(self, simulation: Simulation, front: Front, insist: Callable[..., None]) -> None:
        self._simulation, self._front, self._insist = simulation, front, insist
        self._left = _FORKS_MAX
        self._seen: set[tuple[str, str, str]] = set()

    def maybe_fork(self, tenant: str, run: str) -> None:
        """Decide on a fork once when the execution begins, and once when it ends."""
        simulation = self._simulation
        moment = _MOMENTS[(tenant, run) not in simulation.open]
        place = (tenant, run, moment)
        if place in self._seen or not self._left or not simulation.has_faults:
            return
        self._seen.add(place)
        if simulation.tape.number("fork", 100) >= 100 - simulation.swarm.fork_percent:
            self._left -= 1
            delay_ms = simulation.tape.number("fork time", 60) ** 2 * 30
            simulation.after(delay_ms, lambda: self._fork(tenant, run))

    def _fork(self, tenant: str, run: str) -> None:
        simulation = self._simulation
        found = history(simulation.services, tenant, run)
        steps = _entered(found.events)
        if not steps or found.state.origin is not None:
            return  # an execution of a state machine is not forked
        if found.state.workflow == BULK_WORKFLOW:
            return  # its fork gives the commands again, as the operator has asked
        step = steps[simulation.tape.number("fork which", len(steps))]
        request = {"step": step, "reason": "drawn", "by": "operator"}
        chance = simulation.number().to_bytes(8, "big")
        note = noting(simulation, "fork", tenant, run, request)

        def told(answer: Any, refused: str | None, asked_ms: int) -> None:
            note(answer, refused, asked_ms)
            if refused is None:
                fork = ForkAnswer(tenant, str(answer["execution"]), run, step)
                simulation.evidence.forks.append(fork)

        make = partial(self._front.fork, tenant, run, request, chance)
        self._insist("fork", tenant, make, told, 0)


def _entered(events: tuple[Event, ...]) -> list[str]:
    """Return the states that the main line has entered, in their order."""
    names = (
        event.details["name"]
        for event in events
        if event.type.endswith("StateEntered") and "frame" not in event.holdfast
    )
    return list(dict.fromkeys(names))
