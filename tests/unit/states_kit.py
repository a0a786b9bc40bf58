"""The API in memory: one stack whose clock moves only on request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

from botocore.loaders import Loader

from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local.clock import VirtualClock
from holdfast.runtime.driver import run
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.storage.definitions import Programs
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.services import Services
from tests.builders import KEYS

START_MS = 1_760_000_000_000
PLACE = ArnRegion("eu-west-1", "123456789012")
ROLE = "arn:aws:iam::123456789012:role/clerk"
PASS = '{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}'


@cache
def documented(operation: str) -> frozenset[str]:
    """Return the exceptions that AWS documents for the operation, and those of every operation."""
    model = Loader().load_data("stepfunctions/2016-11-23/service-2")
    found = model["operations"].get(operation, {"errors": [{"shape": "UnknownOperationException"}]})
    common = {"ValidationException", "SerializationException", "ThrottlingException"}
    return frozenset({error["shape"] for error in found.get("errors", ())} | common)


def definition(comment: str) -> str:
    """Return a definition that differs from every other by its comment."""
    return PASS[:-1] + f', "Comment": "{comment}"}}'


def nobody(_: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskFailed("Nobody", "knows")


class Desk:
    """Calls operations as a client does, one after the other, a second apart."""

    def __init__(
        self,
        tasks: Callable[[RunTask], TaskSucceeded | TaskFailed] = nobody,
        tenant: str = "default",
        services: Services | None = None,
    ) -> None:
        self.clock = VirtualClock(START_MS)
        self.services = services or Services(self.clock, tasks=tasks)
        self.service = Service(Programs(), KEYS, tenant, PLACE, PAYLOAD_BYTES_MAX)
        self.api = StatesApi(self.service)
        self._numbers = count()

    def call(self, operation: str, **request: Any) -> Any:
        self.clock.advance(1_000)
        chance = hashlib.sha256(str(next(self._numbers)).encode()).digest()[:CHANCE_BYTES]
        return run(self.api.call(operation, request, chance), self.services.perform)

    def refusal(self, operation: str, **request: Any) -> tuple[str, str]:
        """Return code and message of the fault."""
        try:
            answer = self.call(operation, **request)
        except StatesFault as fault:
            assert fault.code in documented(operation), fault
            return fault.code, fault.message
        raise AssertionError(f"{operation} was not refused: {answer}")

    def create(self, name: str = "m", text: str = PASS, **request: Any) -> str:
        """Return the ARN of a new state machine."""
        made = self.call("CreateStateMachine", name=name, definition=text, roleArn=ROLE, **request)
        return str(made["stateMachineArn"])
