"""Answers: the result that a person or another service gives to a wait, identified by its token.

An answer is stored under the key of the wait's attempt, so only the first one counts. If the same
answer is sent again, the request succeeds again (R12), because the first response may have been
lost.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.decision import iso_time
from holdfast.core.waits import takes_answer
from holdfast.errors import RequestError
from holdfast.limits import EVENT_RETENTION_SECONDS, NAME_CHARACTERS_MAX
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands import fields
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Payload, is_same, mark_of_secrets, normalised
from holdfast.runtime.commands.tokens import Token, is_marked, mark_of, require_token
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    JsonResult,
    Message,
    PutIfAbsent,
    Send,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.json_values import require_plain

_SHOW: Final = "`holdfast show {}` says what the execution waits for now"


def answer(known: Lookup, tenant: str, request: Mapping[str, Any]) -> JsonResult:
    """Store an answer. `request`: token, and output, or error and cause?.

    Raises RequestError HF211, HF215, HF230 to HF233, HF243.
    """
    now_ms = yield Clock()
    token = require_token(str(request.get("token", "")), known.keys, tenant, now_ms)
    return (yield from give(known, token, request))


def give(known: Lookup, token: Token, request: Mapping[str, Any]) -> JsonResult:
    """Store the answer to the wait that `token` names. `by` in the request is the author of the
    answer.
    """
    now_ms = yield Clock()
    given = yield from answer_fields(known, token, request)
    mark: dict[str, str] = {"ah": mark_of(_text_of(request), known.keys)}
    if request.get("by"):
        mark["by"] = str(request["by"])[:NAME_CHARACTERS_MAX]
    if not (yield from store_answer(token, now_ms, given, mark)):
        partition = keys.inbox(token.tenant, token.run)
        first = yield Get(tables.MAIL, partition, keys.answer(token.entry, token.attempt))
        raise RequestError(
            "HF231",
            f"another answer was given before{_told(first)}",
            status=409,
            help=_SHOW.format(token.run),
        )
    return {"execution": token.run}


def store_answer(
    token: Token, now_ms: int, given: Mapping[str, Any], more: Item
) -> Generator[Effect, Any, bool]:
    """Store the answer and wake the execution. Return False when another answer is already stored.

    `more` are attributes of the item that do not belong to the answer. The item is kept longer than
    the wait, even if no worker processes the execution for long.
    """
    key = keys.answer(token.entry, token.attempt)
    item = {
        "pk": keys.inbox(token.tenant, token.run),
        "sk": key,
        FORMAT_FIELD: FORMAT,
        "at": now_ms,
        "ttl": expiry_of(token),
        **more,
        **given,
    }
    found = yield PutIfAbsent(tables.MAIL, item)
    if found is not None and not is_same(inbox.answer_in(found), given):
        return False
    yield Send((Message(messages.wake_mail(token.tenant, token.run, key)),))
    return True


def expiry_of(token: Token) -> int:
    """Return the time after which TTL may delete an item about the wait, in seconds since the
    epoch.
    """
    return token.expires_ms // 1_000 + EVENT_RETENTION_SECONDS


def answer_fields(known: Lookup, token: Token, request: Mapping[str, Any]) -> JsonResult:
    """Return the fields of the answer's item. Raises RequestError when no wait can take the
    answer.
    """
    log = known.log(token.tenant, token.run)
    yield from log.load()
    state = log.state
    frame = None if state is None else state.frame_of(token.entry)
    if state is None:
        # A first task may give its token to another system before record 0 is written (R3). So
        # without a log the answer is accepted if the execution may still begin.
        is_open = yield from known.may_begin(log)
    else:
        is_open = frame is not None and takes_answer(frame.waiting, token.attempt)
    if not is_open:
        return (yield from answered_before(known, token, request))
    if "error" in request:
        return _failure(request)
    output = request.get("output")
    # Only the answer to a question has a type. A question is never open before record 0, because
    # its token is made from the log. So without a log there is no type to check.
    if state is not None and frame is not None:
        definition = yield from known.programs.fetch(token.tenant, state.definition)
        wanted = Payload.of_answer(definition, frame.position)
        what = f"answer to {frame.position}"
        output = normalised(known.types, token.tenant, wanted, output, what)
    return {**(yield from inbox.stow(token.tenant, token.run, output)), **mark_of_secrets(output)}


def answered_before(known: Lookup, token: Token, request: Mapping[str, Any]) -> JsonResult:
    """Handle an answer to a wait that has ended. The answer that ended the wait succeeds again
    (R12); any other answer is refused.
    """
    partition = keys.inbox(token.tenant, token.run)
    found = yield Get(tables.MAIL, partition, keys.answer(token.entry, token.attempt))
    if found is None or not _is_repeated(known, found, request):
        message = (
            "the execution does not wait for this answer"
            if found is None
            else f"another answer was given before{_told(found)}"
        )
        raise RequestError("HF232", message, status=409, help=_SHOW.format(token.run))
    return inbox.answer_in(found)


def _told(item: Item | None) -> str:
    """Return the author and the time of a stored answer. A callback's answer has no author."""
    if item is None:
        return ""
    by = f" by {item['by']!s}" if "by" in item else ""
    return f"{by} at {iso_time(int(item['at']))}"


def _is_repeated(known: Lookup, found: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return True when this request has the same bytes as the request that stored the answer.

    The stored value may differ from the request, because the value was converted to its type. An
    answer from the Step Functions API has no digest of its request; then the values are compared.
    """
    text = _text_of(request)
    if "ah" in found:
        return is_marked(text, str(found["ah"]), known.keys)
    if "error" in request:
        return inbox.answer_in(found) == _failure(request)
    return inbox.answer_in(found) == inbox.form_of(request.get("output"))[0]


def _text_of(request: Mapping[str, Any]) -> str:
    """Return the answer as text, as it was sent. Raises RequestError HF243."""
    given = {name: request[name] for name in ("output", "error", "cause") if name in request}
    for value in given.values():
        require_plain(value, "the answer")
    return json.dumps(given, sort_keys=True)


def _failure(request: Mapping[str, Any]) -> dict[str, str]:
    """Return error and cause of an answer. Raises RequestError HF233 when it also has an output."""
    if "output" in request:
        raise RequestError("HF233", "an answer is either an output or an error, and this is both")
    return fields.error_and_cause(request)
