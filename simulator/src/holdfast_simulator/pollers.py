"""Pollers that take and do the tasks of activities and pools, through the API's own operations.

A pool is named "holdfast:pool:<pool>" here, as in the log. Its poller answers with the name of the
pool, so a task that is offered to a wrong pool ends with a wrong result.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

from holdfast.asl.resources import POOL
from holdfast.errors import ServiceFault
from holdfast.limits import LIMIT_MARGIN_MS
from holdfast.resources import API
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import require_token
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Clock, Deadline, Effect, Handler, Query
from holdfast.runtime.storage import keys, tables
from holdfast.stepfunctions import pools
from holdfast.stepfunctions.activities import create_activity, get_activity_task
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.tasks import send_task_failure, send_task_success
from holdfast_simulator import faults, heartbeats
from holdfast_simulator.operators import Insist, noting
from holdfast_simulator.scenarios import AttemptOutcome
from holdfast_simulator.simulation import Simulation

_CHANCE_BYTES: Final = 8
#: The only task of the pools in scenarios.
POOL_TASK: Final = "weigh"
_PLACE: Final = ArnRegion("local", "0")
_ACTIVITY: Final = re.compile(r"arn:aws:states:local:0:activity:(\w+)")


class Pollers:
    """Pollers ask for a task whenever one is offered, sometimes two at once. `insist` is that of
    `People`. A poller that crashes polls again as long as a task is offered.
    """

    def __init__(self, simulation: Simulation, front: Front, insist: Insist) -> None:
        self._simulation = simulation
        self._front = front
        self._insist = insist
        self._duplicate_menu = faults.menu(simulation.swarm, "duplicated")
        simulation.on_offer.append(self._offered)

    def begin(self, tenant: str) -> None:
        """Create the activities, without faults: a task whose activity is missing fails."""
        for activity in activities_of(self._simulation.scenario.machines):
            run(create(self._front, tenant, activity), self._simulation.services.perform)

    def _offered(self, tenant: str, activity: str) -> None:
        self._poll(tenant, activity, 0)
        if self._simulation.tape.fault("poll", self._duplicate_menu):
            self._poll(tenant, activity, 0)

    def _poll(self, tenant: str, activity: str, delay_ms: int) -> None:
        simulation = self._simulation

        def told(answer: Any, refused: str | None, _asked_ms: int) -> None:
            if refused is None and "taskToken" in answer:
                self._work(tenant, activity, answer["taskToken"], answer["input"])
            if self._is_offered(tenant, activity):
                self._poll(tenant, activity, 1_000)

        chance = simulation.number().to_bytes(_CHANCE_BYTES, "big")
        polls = itertools.count()

        def make() -> Handler:
            if next(polls) == 0 or self._is_offered(tenant, activity):
                return poll(self._front, tenant, activity, chance)
            return _nothing()  # Where hosts crash all the time, a long poll may never be answered

        self._insist("poller", tenant, make, told, delay_ms)

    def _is_offered(self, tenant: str, activity: str) -> bool:
        return bool(self._simulation.services.perform(offers(tenant, activity)))

    def _work(self, tenant: str, activity: str, token: str, data: str) -> None:
        place = require_token(token, self._front.keys, tenant, 0)
        outcome = self._simulation.scenario.outcome(activity, place.attempt)
        request = answer_of(activity, token, outcome, data)
        alive = partial(heartbeats.beat, self._front, tenant, token)
        felt = noting(self._simulation, "heartbeat", tenant, place.run, request)
        for beat_ms in heartbeats.moments_ms(outcome):
            self._insist("beat", tenant, alive, felt, beat_ms)
        make = partial(answer, self._front, tenant, request)
        told = noting(self._simulation, "answer", tenant, place.run, request)
        self._insist("answer", tenant, make, told, int(outcome.seconds * 1_000))


def activities_of(machines: Mapping[str, Any]) -> list[str]:
    return sorted(set(_ACTIVITY.findall(json.dumps(dict(machines)))))


def create(front: Front, tenant: str, activity: str) -> Handler:
    yield from create_activity(_service(front, tenant), {"name": activity}, b"")


def poll(front: Front, tenant: str, activity: str, chance: bytes) -> Handler:
    """Return {"taskToken", "input"} of one task, without the input of one of a pool. Return {} when
    no task came, when the activity does not exist yet, or when the poll failed: a poll that is
    throttled may fail for ever, and need not have found a task.
    """
    request = {"activityArn": _PLACE.activity(activity)}
    try:
        if activity.startswith(POOL):
            asked = {"worker": "box", "tasks": [POOL_TASK]}
            name, service = activity.removeprefix(POOL), _service(front, tenant)
            taken = yield from _timed(pools.poll(service, name, asked, chance))
            return {"taskToken": taken["token"], "input": "null"} if taken else {}
        return (yield from _timed(get_activity_task(_service(front, tenant), request, chance)))
    except (StatesFault, ServiceFault):
        return {}


def _nothing() -> Handler:
    yield Clock()
    return {}


def offers(tenant: str, activity: str) -> Query:
    """Return the query for one task that is offered."""
    partition = keys.activity_tasks(tenant, activity)
    if activity.startswith(POOL):
        partition = keys.pool_tasks(tenant, activity.removeprefix(POOL))
    return Query(tables.MAIL, partition, limit=1)


def answer_of(activity: str, token: str, outcome: AttemptOutcome, data: str) -> dict[str, Any]:
    """Return the report on a task with this input, in the form of people's answers."""
    if outcome.error is not None:
        return {"token": token, "error": outcome.error, "cause": outcome.cause or ""}
    if activity.startswith(POOL):
        return {"token": token, "output": activity.removeprefix(POOL)}
    return {"token": token, "output": outcome.output_for(json.loads(data))}


def answer(front: Front, tenant: str, said: Mapping[str, Any]) -> Handler:
    """Send an answer. Return {}, or {"refused": code}."""
    service, request = _service(front, tenant), {"taskToken": said["token"]}
    try:
        if "error" in said:
            texts = {name: said[name] for name in ("error", "cause")}
            return (yield from send_task_failure(service, {**request, **texts}, b""))
        output = json.dumps(said["output"])
        return (yield from send_task_success(service, {**request, "output": output}, b""))
    except StatesFault as fault:
        return {"refused": fault.code}


def _timed(handler: Handler) -> Generator[Effect, Any, Any]:
    """Run the handler in an invocation of the API, which knows its own end."""
    ends_ms = (yield Clock()) + API.timeout_seconds * 1_000 - LIMIT_MARGIN_MS
    step: Callable[[], Effect] = partial(next, handler)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            return stop.value
        if isinstance(effect, Deadline):
            step = partial(handler.send, ends_ms)
            continue
        try:
            step = partial(handler.send, (yield effect))
        except ServiceFault as fault:
            step = partial(handler.throw, fault)


def _service(front: Front, tenant: str) -> Service:
    return Service(front.programs, front.keys, tenant, _PLACE, None)
