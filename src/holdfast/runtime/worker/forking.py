"""The start of a fork: reads the fork's request and the history of its origin, as a fact."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from holdfast.asl.program import Json
from holdfast.core.events import Event
from holdfast.core.facts import Forked, ForkMove, Started
from holdfast.core.forking import begin_of
from holdfast.errors import HoldfastBug
from holdfast.runtime.effects import Effect
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.histories import read_records
from holdfast.runtime.storage.log import Log


def read(
    log: Log, programs: Programs, started: Started, request: Json
) -> Generator[Effect, Any, Forked]:
    """Return the fork as a fact. The log of the origin only grows, so each delivery of the start
    message copies the same history.
    """
    assert isinstance(request, dict)
    of: Any = request["of"]
    records = yield from read_records(log.tenant, of["run"], log.formats)
    events = [event for record in records for event in record.events]
    move = None
    if "move" in request:
        asked: Any = request["move"]
        yield from programs.fetch(log.tenant, asked["to"])
        program = programs.program(asked["to"])
        move = ForkMove(asked["from"], asked["to"], asked["plan"], program)
    return Forked(
        started,
        _until(events, of["event"]),
        {"run": of["run"], "event": of["event"], "step": of["step"]},
        (request["input"],) if "input" in request else None,
        request["set"],
        str(request["reason"]),
        str(request["by"]),
        move,
    )


def _until(events: Sequence[Event], event_id: int) -> tuple[Event, ...]:
    place = begin_of(events, event_id)
    if place is None:
        raise HoldfastBug(f"the history to fork has no event {event_id}")
    return tuple(events[: place + 1])
