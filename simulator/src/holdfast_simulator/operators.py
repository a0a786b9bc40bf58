"""Operators and callers with invalid or repeated requests: contradictions, forgeries, redrives."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.retry import send_retry
from holdfast.runtime.effects import Clock, Handler
from holdfast.runtime.storage.log import Log
from holdfast_simulator import faults
from holdfast_simulator.evidence import Told
from holdfast_simulator.simulation import Simulation

_DAY_MS: Final = 86_400_000
_STRANGER: Final = "other"
#: An execution that ends again and again is redriven only this often.
_REDRIVES_MAX: Final = 2
Insist = Callable[..., None]
#: A callback that gets the answer, or the code of the refusal, and the time at which the answered
#: request began.
Hears = Callable[[Any, str | None, int], None]


def noting(simulation: Simulation, what: str, tenant: str, run: str | None, request: Any) -> Hears:
    """Return a callback that records the answer of a caller."""

    def told(answer: Any, refused: str | None, asked_ms: int) -> None:
        if refused is None and isinstance(answer, dict):
            refused = answer.get("refused")
        one = Told(what, tenant, run, request, refused, simulation.now_ms, asked_ms)
        simulation.evidence.told.append(one)

    return told


class Meddlers:
    """The senders of contradictions, forgeries and redrives. `insist` is that of `People`."""

    def __init__(self, simulation: Simulation, front: Front, insist: Insist) -> None:
        self._simulation = simulation
        self._front = front
        self._insist = insist
        self._redrives: dict[tuple[str, str], int] = {}
        self._contradiction_menu = faults.menu(simulation.swarm, "contradicted")
        self._forgery_menu = faults.menu(simulation.swarm, "forged")

    # -- answers -----------------------------------------------------------------------------------

    def maybe_contradict(self, tenant: str, run: str, request: Any) -> None:
        """After an accepted answer, send another answer with the same token. It comes too late and
        must be refused.
        """
        if self._simulation.tape.fault("contradict", self._contradiction_menu):
            other = {"token": request["token"], "output": {"contradicts": True}}
            delay_ms = self._simulation.pause_ms("contradict") - 1_000
            told = noting(self._simulation, "contradiction", tenant, run, other)
            self._ask(tenant, told, other, delay_ms)

    def maybe_forge(self, tenant: str, run: str, token: str) -> None:
        if not self._simulation.tape.fault("forge", self._forgery_menu):
            return
        others = sorted(other for whose, other in self._simulation.open if whose == tenant)
        forgeries = list(_forgeries(token, tenant, [other for other in others if other != run]))
        by, forged = forgeries[self._simulation.tape.number("forge which", len(forgeries))]
        request = {"token": forged, "output": {"forged": True}}
        told = noting(self._simulation, "forgery", tenant, run, request)
        self._ask(by, told, request, self._simulation.pause_ms("forge") - 1_000)

    def _ask(self, by: str, told: Hears, request: Any, delay_ms: int) -> None:
        # The simulation does not check whose keys it touches: the tenant is in the token.
        self._insist("meddler", "", lambda: self._front.answer(by, request), told, delay_ms)

    # -- redrives ----------------------------------------------------------------------------------

    def maybe_redrive(self, tenant: str, run: str) -> None:
        """Perhaps redrive an execution that has ended, also one that succeeded: the API may have
        read its state before the end.
        """
        simulation = self._simulation
        place = (tenant, run)
        times = self._redrives.get(place, 0)
        is_over = place not in simulation.open
        if not is_over or "." in run or times >= _REDRIVES_MAX or not simulation.has_faults:
            return
        self._redrives[place] = times + 1
        if simulation.tape.number("redrive", 100) < 100 - simulation.swarm.redrive_percent:
            return
        delay_ms = simulation.tape.number("redrive time", 20) ** 2 * 100
        chance = simulation.number().to_bytes(8, "big")
        told = noting(simulation, "redrive", tenant, run, None)
        self._insist("redrive", tenant, lambda: _redrive(tenant, run, chance), told, delay_ms)


def _redrive(tenant: str, run: str, chance: bytes) -> Handler:
    """Request a retry as the API's command does, but without the command's refusals."""
    log = Log(tenant, run, "front", "")
    yield from log.load()
    now_ms = yield Clock()
    yield from send_retry(tenant, run, log.state, (now_ms, chance))


def _forgeries(token: str, tenant: str, others: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the sender, and a token with one changed field, as far as its owner can read it.

    `others`: other open work of the tenant.
    """
    fields = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().split(".")
    stranger = _STRANGER if tenant != _STRANGER else "default"
    yield stranger, token
    yield stranger, _with(fields, 0, stranger)
    yield tenant, _with(fields, 4, str(int(fields[4]) + 1))
    yield tenant, _with(fields, 4, "0" if fields[4] != "0" else "2")
    yield tenant, _with(fields, 5, str(int(fields[5]) + 1))
    yield tenant, _with(fields, 6, str(int(fields[6]) + _DAY_MS))
    for other in others:
        yield tenant, _with(fields, 3, other.replace(".", "/"))


def _with(fields: list[str], place: int, text: str) -> str:
    changed = [*fields[:place], text, *fields[place + 1 :]]
    return base64.urlsafe_b64encode(".".join(changed).encode()).decode().rstrip("=")
