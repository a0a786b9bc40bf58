"""The order workflow in a simulated world: real handlers, real tasks, the bank on its own time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast_simulator.invariants import histories
from holdfast_simulator.world import Hook, Killed, SimulatorWorld, no_faults
from statemachines.bank import BankMessage, bank_messages
from statemachines.orders import OrderRequest
from tests.builders import CHANCE, KEYS

TENANT = "default"


def _compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    compiled = compile_workflow(workflow)
    return compiled.asl, json.loads(compiled.map_text)


@cache
def deployment(workflow: str) -> Deployment:
    return Deployment.from_modules([f"statemachines.{workflow}"], _compiled)


class OrderShop:
    """Callers and the bank try again until they get an answer, as they do in life."""

    def __init__(self, hook: Hook = no_faults, workflow: str = "order_fulfilment") -> None:
        deployed = deployment(workflow)
        programs = deployed.programs()
        self._workflow = workflow
        self.front = deployed.front(programs, KEYS)
        self.world = SimulatorWorld(
            deployed.setting(programs, lambda: KEYS), deployed.run_task, hook
        )

    def fulfil(self, requests: Iterable[OrderRequest]) -> Counter[str]:
        """Starts every order, lets the bank speak and time pass; returns reasons and their
        counts.
        """
        for number, request in enumerate(requests):
            self._bank(request)
            self._start(request, number)
        self.world.run()
        return self.outcomes()

    def _start(self, request: OrderRequest, number: int) -> None:
        asked = {"workflow": self._workflow, "name": request.name, "input": request.input}
        self._insist(lambda: self.front.start(TENANT, asked, number.to_bytes(8, "big")))

    def _bank(self, request: OrderRequest) -> None:
        for message in bank_messages(request.order):
            at_ms = self.world.now_ms + message.delay_seconds * 1_000
            if message.delay_seconds:
                self.world.at(at_ms, partial(self._send, message))
            else:
                self._send(message)

    def _send(self, message: BankMessage) -> None:
        detail = {"name": message.name, "key": message.key, "data": message.data}
        self._insist(lambda: self.front.bus_event(TENANT, message.event_id, detail, CHANCE))

    def _insist(self, make: Any) -> None:
        for _ in range(20):
            try:
                self.world.call(make())
            except Killed:
                self.world.kills += 1
            else:
                return
        raise AssertionError("no answer in twenty tries")

    def outcomes(self) -> Counter[str]:
        return Counter(
            history.state.output["reason"]
            if history.state.status == "SUCCEEDED" and isinstance(history.state.output, dict)
            else f"{history.state.status} {history.state.error}"
            for history in histories(self.world)
        )
