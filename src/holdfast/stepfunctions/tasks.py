"""SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat: answers with the token of one attempt.

The token is checked before anything is read. An answer may arrive before the record of its wait,
while the call that has passed on the token still runs. Then it stays in the inbox until a worker
reads it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any

from holdfast.asl.program import Json
from holdfast.core.state import Attempt, Awaiting
from holdfast.errors import RequestError
from holdfast.runtime import heartbeats, inbox
from holdfast.runtime.commands.answers import expiry_of, store_answer
from holdfast.runtime.commands.tokens import Token, require_token
from holdfast.runtime.effects import Clock, Effect, Item, JsonResult
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault, invalid_token, throttled, validation
from holdfast.stepfunctions.starts import json_problem


def send_task_success(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    token, now_ms = yield from require_open_token(service, request)
    text = str(request["output"])
    limit = service.payload_bytes_max
    if limit is not None and len(text.encode()) > limit:
        raise validation(
            "1 validation error detected: Value at 'output' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limit}"
        )
    problem = json_problem(text)
    if problem is not None:
        raise StatesFault("InvalidOutput", f"Invalid Output: '{problem}'")
    waiting = yield from _require_wait(token)
    stowed = yield from inbox.stow(service.tenant, token.run, json.loads(text))
    return (yield from _answer(token, waiting, now_ms, stowed))


def send_task_failure(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    token, now_ms = yield from require_open_token(service, request)
    waiting = yield from _require_wait(token)
    texts = {name: str(request[name]) for name in ("error", "cause") if name in request}
    return (yield from _answer(token, waiting, now_ms, texts))


def send_task_heartbeat(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    return (yield from store_heartbeat(service, request, None))


def store_heartbeat(service: Service, request: Mapping[str, Any], progress: Json) -> JsonResult:
    """Store a heartbeat. No wake is sent: the timer of the missed heartbeat reads the inbox before
    it fires (R14). Raises ThrottlingException after too many tries.
    """
    token, now_ms = yield from require_open_token(service, request)
    yield from _require_wait(token)
    step = heartbeats.Step(token.tenant, token.run, token.entry)
    if not (yield from heartbeats.store(step, now_ms, expiry_of(token), progress)):
        raise throttled()
    return {}


def require_open_token(
    service: Service, request: Mapping[str, Any]
) -> Generator[Effect, Any, tuple[Token, int]]:
    """Return the token, and the present time. Raises InvalidToken; TaskTimedOut when it has
    expired.
    """
    now_ms = yield Clock()
    try:
        token = require_token(str(request["taskToken"]), service.keys, service.tenant, 0)
    except RequestError:
        raise invalid_token() from None
    if token.expires_ms <= now_ms:
        raise _timed_out()
    return token, now_ms


def _answer(token: Token, waiting: str, now_ms: int, given: Mapping[str, Any]) -> JsonResult:
    """Store the answer. Only the first answer counts. If the same answer is sent again while the
    wait is open, another wake is sent (R12).
    """
    more: Item = {"act": 1} if waiting == "activity" else {}
    if not (yield from store_answer(token, now_ms, given, more)):
        raise _timed_out()
    return {}


def _require_wait(token: Token) -> Generator[Effect, Any, str]:
    """Return the kind of the wait. Raises TaskTimedOut when it has ended.

    A workflow's question has a type, which only the API of Holdfast checks. For it this raises
    InvalidToken.

    The first task of an execution may run, and be answered, before the first record (R3). Then
    there is no log to read, and the authentic token proves that the attempt exists.
    """
    log = Log(token.tenant, token.run, "api", "")
    yield from log.load()
    if log.state is None:
        if log.is_gone:
            raise _timed_out()
        return "callback"
    frame = log.state.frame_of(token.entry)
    waiting = None if frame is None else frame.waiting
    if not isinstance(waiting, Attempt | Awaiting) or waiting.attempt != token.attempt:
        raise _timed_out()
    if waiting.kind == "ask" and log.state.origin is None:
        raise invalid_token()
    return waiting.kind


def _timed_out() -> StatesFault:
    """Return the error for a task that has ended in any way (AWS docs, TaskTimedOut)."""
    return StatesFault("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
