"""Bugs of doors that refuse what they should take, or do not keep what they took (I7, I9, I12)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.core.state import Awaiting
from holdfast.errors import RequestError
from holdfast.runtime import follow_ups, heartbeats
from holdfast.runtime.commands import answers, events, start, tokens
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.lookup import Lookup, no_execution
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import Effect, Handler, Item, Put, Query
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions import tasks
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.scenarios import corpus
from tests.sim.planted.kit import Patch, Planted
from tests.sim.planted.outside import (
    FAULTS,
    PAID_TWICE,
    QUESTIONS,
    STARTED,
    STOPPED,
    read_no_answer,
)

CALLED_BACK, CALLED_BACK_LATER, ALIVE, CHOSEN_POOL = (
    next(one for one in corpus() if one.name == name)
    for name in (
        "an answer before there is a log",
        "an answer before the call is over",
        "alive until the answer",
        "chosen pool",
    )
)


def _refuse_answers_before_a_log(patch: Patch) -> None:
    real = answers.answer_fields

    def answer_fields(known: Lookup, token: tokens.Token, request: Any) -> Handler:
        log = known.log(token.tenant, token.run)
        yield from log.load()
        if log.state is None:
            raise RequestError("HF232", "nobody waits", status=409)
        return (yield from real(known, token, request))

    patch.setattr(answers, "answer_fields", answer_fields)


def _refuse_answers_before_a_wait(patch: Patch) -> None:
    """Accept answers only for open waits, and not for a call that is about to wait."""
    patch.setattr(answers, "takes_answer", lambda waiting, _attempt: isinstance(waiting, Awaiting))


def _refuse_who_repeats_an_answer(patch: Patch) -> None:
    def answered_before(*_given: Any) -> Handler:
        raise RequestError("HF232", "nobody waits", status=409)
        yield

    patch.setattr(answers, "answered_before", answered_before)


def _refuse_heartbeats_during_the_call(patch: Patch) -> None:
    real = tasks._require_wait

    def require_wait(token: tokens.Token) -> Handler:
        log = Log(token.tenant, token.run, "api", "")
        yield from log.load()
        frame = None if log.state is None else log.state.frame_of(token.entry)
        if frame is None or not isinstance(frame.waiting, Awaiting):
            raise StatesFault("TaskTimedOut", "Task Timed Out")
        return (yield from real(token))

    patch.setattr(tasks, "_require_wait", require_wait)


def _put_heartbeats_over_newer_ones(patch: Patch) -> None:
    """As they land, not as they were made."""

    def is_put_over(_found: Item | None, item: Item) -> Handler:
        yield Put("mail", item)
        return True

    patch.setattr(heartbeats, "_is_put_over", is_put_over)


def _refuse_early_events(patch: Patch) -> None:
    real = events.event

    def event(known: Lookup, tenant: str, request: Any, chance: bytes, **own: Any) -> Handler:
        partition = keys.event(tenant, str(request["name"]), request["key"])
        if not (yield Query("mail", partition, begins_with=keys.REGISTRATION_PREFIX)):
            raise RequestError("HF206", "nobody waits for it", status=404)
        return (yield from real(known, tenant, request, chance, **own))

    patch.setattr(events, "event", event)


def _show_nothing_of_who_waits(patch: Patch) -> None:
    real = Front.describe

    def describe(self: Front, tenant: str, identifier: str) -> Handler:
        answer = yield from real(self, tenant, identifier)
        if answer["waits"]:
            raise RequestError("HF207", "there is no execution", status=404)
        return answer

    patch.setattr(Front, "describe", describe)


def _refuse_stops_of_what_has_not_begun(patch: Patch) -> None:
    def require_log(self: Lookup, tenant: str, identifier: str) -> Handler:
        log = self.log(tenant, identifier)
        yield from log.load()
        if log.state is None:
            raise no_execution(identifier)
        return log

    patch.setattr(Lookup, "require_log", require_log)


def _refuse_who_starts_again(patch: Patch) -> None:
    """Refuse a repeated start: a used name is refused, also for the same input."""

    real = start.claim_name

    def claim(tenant: str, wanted: Start, data: Any) -> Generator[Effect, Any, Start]:
        owner = yield from real(tenant, wanted, data)
        if owner.run != wanted.run:
            raise start.NameTakenError
        return owner

    patch.setattr(start, "claim_name", claim)


_I7 = frozenset({"I7"})


def _offer_to_another_pool(patch: Patch) -> None:
    """Offer the task of a chosen pool to the machines of another one."""
    patch.setattr(follow_ups, "_offered_to", _another_pool)


def _another_pool(log: Log, awaiting: Awaiting) -> dict[str, str]:
    return {"pk": keys.pool_tasks(log.tenant, "host-8"), "task": "weigh", "workflow": "main"}


PLANTED = (
    Planted(
        "a task is offered to another pool than the chosen one",
        _offer_to_another_pool,
        frozenset({"I13"}),
        CHOSEN_POOL,
        {},
    ),
    Planted(
        "an answer before there is a log is refused",
        _refuse_answers_before_a_log,
        _I7,
        CALLED_BACK,
        {"answered early": 0.8},
    ),
    Planted(
        "an answer before its wait is refused",
        _refuse_answers_before_a_wait,
        _I7,
        CALLED_BACK_LATER,
        {"answered early": 0.8},
    ),
    Planted(
        "a repeated answer is refused once it has ended the wait",
        _refuse_who_repeats_an_answer,
        _I7,
        QUESTIONS,
        {"duplicated": 0.5},
    ),
    Planted(
        "an answer that came before there was a log is not looked for",
        read_no_answer,
        _I7,
        CALLED_BACK,
        {"answered early": 0.8},
        {"safety_ms": 2_000},
    ),
    Planted(
        "a heartbeat is refused while the call still runs",
        _refuse_heartbeats_during_the_call,
        _I7,
        ALIVE,
        {"answered early": 0.8},
    ),
    Planted(
        "a heartbeat is put over a newer one",
        _put_heartbeats_over_newer_ones,
        _I7 | {"I8"},
        ALIVE,
        {"done later": 0.15, "slow": 0.1},
        seed=539,
    ),
    Planted("an early event is refused", _refuse_early_events, _I7, PAID_TWICE, {}),
    Planted("the waits cannot be seen", _show_nothing_of_who_waits, _I7, QUESTIONS, {}),
    Planted(
        "a stop of an execution that has not begun is refused",
        _refuse_stops_of_what_has_not_begun,
        frozenset({"I9"}),
        STOPPED,
        {"killed before": 0.1, "late": 0.2},
        {"stop_percent": 100},
    ),
    Planted(
        "a repeated start is refused",
        _refuse_who_starts_again,
        frozenset({"I12"}),
        STARTED,
        FAULTS,
        {"callers": 1},
    ),
)
