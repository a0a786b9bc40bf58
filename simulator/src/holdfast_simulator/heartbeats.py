"""Heartbeats of people whose answer takes a long time."""

from __future__ import annotations

from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import Handler
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.tasks import send_task_heartbeat
from holdfast_simulator.scenarios import AttemptOutcome


def moments_ms(outcome: AttemptOutcome) -> list[int]:
    """Return the times of the heartbeats, counted from the beginning of the work."""
    if not outcome.beat_seconds:
        return []
    beats = int(outcome.seconds / outcome.beat_seconds)
    return [int(number * outcome.beat_seconds * 1_000) for number in range(1, beats + 1)]


def beat(front: Front, tenant: str, token: str) -> Handler:
    """Return {}, or the code under `refused`."""
    service = Service(front.programs, front.keys, tenant, ArnRegion("local", "0"), None)
    try:
        return (yield from send_task_heartbeat(service, {"taskToken": token}, b""))
    except StatesFault as fault:
        return {"refused": fault.code}
