"""Activities, and the polls of those who do their tasks.

A scheduled task is a row in the activity's own partition (`keys.activity_tasks`), put there by the
worker whose record scheduled it. A poll takes the earliest that is due:

    load the log: still open?  ─no─►  delete the row, next
          │ yes
    put `s#<entry>.<attempt>` into the execution's mail, if absent  ─ there ─►  delete the row, next
          │ stored: this poll has the task
    wake the execution (it notes ActivityStarted), delete the row, answer with token and input

The mail is the claim: of many polls one stores it. Who dies behind that has taken the task along,
as a poller of AWS's does that never answers: the task's time-out and heartbeat see to it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.state import Awaiting
from holdfast.limits import CALLBACK_SECONDS_MAX, EVENT_RETENTION_SECONDS
from holdfast.runtime import keys, mail, messages
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Delete,
    Effect,
    Item,
    Message,
    Pause,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.log import Log, put_surely
from holdfast.runtime.tokens import Token, make_token
from holdfast.runtime.view import json_text
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import ActivityArn, parse_activity_arn, require_name
from holdfast.stepfunctions.catalogue import Activity, Service
from holdfast.stepfunctions.faults import StatesFault, activity_does_not_exist
from holdfast.stepfunctions.pages import page

Answer = Generator[Effect, Any, dict[str, Any]]

#: AWS docs, GetActivityTask: a poll waits for 60 s.
POLL_MS: Final = 60_000
PAUSE_MS_MIN: Final = 100
PAUSE_MS_MAX: Final = 1_000
_ROWS_PER_LOOK: Final = 10


# -- activities ------------------------------------------------------------------------------------


def create_activity(service: Service, request: Mapping[str, Any], _: bytes) -> Answer:
    """An identical repeat gives the same answer; tags do not count for that (AWS docs)."""
    from holdfast.stepfunctions import settings, tags  # noqa: PLC0415  # polls need neither

    name = require_name(request["name"])
    encryption = request.get("encryptionConfiguration")
    encryption = settings.encryption_of(encryption)
    now_ms = yield Clock()
    wanted = Activity(name, now_ms, tags.merged((), request.get("tags", [])), encryption)
    item = yield PutIfAbsent("mail", catalogue.activity_item(service.tenant, wanted))
    activity = wanted if item is None else catalogue.read_activity(item)
    arn = service.place.activity(name)
    if activity.encryption != encryption:
        raise StatesFault("ActivityAlreadyExists", f"Activity Already Exists: '{arn}'")
    return {"activityArn": arn, "creationDate": activity.created_ms}


def describe_activity(service: Service, request: Mapping[str, Any], _: bytes) -> Answer:
    activity = yield from _require(service, request)
    return {
        "activityArn": service.place.activity(activity.name),
        "name": activity.name,
        "creationDate": activity.created_ms,
        "encryptionConfiguration": dict(activity.encryption or {"type": "AWS_OWNED_KEY"}),
    }


def delete_activity(service: Service, request: Mapping[str, Any], _: bytes) -> Answer:
    """Deleting what is not there is no error."""
    arn = parse_activity_arn(request["activityArn"])
    if arn.place == service.place:
        yield Delete("mail", keys.activities(service.tenant), arn.name)
    return {}


def list_activities(service: Service, request: Mapping[str, Any], _: bytes) -> Answer:
    activities = yield from catalogue.activities(service.tenant)
    shown, token = page(service, request, activities, "activities", lambda one: one.name)
    listed = [
        {
            "activityArn": service.place.activity(activity.name),
            "name": activity.name,
            "creationDate": activity.created_ms,
        }
        for activity in shown
    ]
    return {"activities": listed, **token}


def _require(service: Service, request: Mapping[str, Any]) -> Generator[Effect, Any, Activity]:
    arn: ActivityArn = parse_activity_arn(request["activityArn"])
    found = None
    if arn.place == service.place:
        found = yield from catalogue.activity(service.tenant, arn.name)
    if found is None:
        raise activity_does_not_exist(arn.text)
    return found


# -- polls -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Poll:
    service: Service
    activity: str
    worker: str | None
    nonce: str


def get_activity_task(service: Service, request: Mapping[str, Any], chance: bytes) -> Answer:
    """-> token and input of one task, or {} when none came while the poll could wait.

    Costs a query for each look: the first at once, then after pauses that grow to a second.
    """
    activity = yield from _require(service, request)
    poll = Poll(service, activity.name, request.get("workerName"), chance.hex())
    until_ms = min((yield Clock()) + POLL_MS, (yield Deadline()))
    pause_ms = PAUSE_MS_MIN
    while True:
        now_ms = yield Clock()
        task = yield from _look(poll, now_ms)
        if task or now_ms >= until_ms:
            return task
        yield Pause(min(pause_ms, until_ms - now_ms))
        pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)


def _look(poll: Poll, now_ms: int) -> Answer:
    """-> the answer when there was a task for this poll, else {}."""
    partition = keys.activity_tasks(poll.service.tenant, poll.activity)
    rows = yield Query("mail", partition, until=keys.due_until(now_ms), limit=_ROWS_PER_LOOK)
    for row in rows:
        task = yield from _take(poll, row, now_ms)
        if task:
            return task
    return {}


def _take(poll: Poll, row: Item, now_ms: int) -> Answer:
    tenant, run = poll.service.tenant, str(row["run"])
    entry, attempt = int(row["entry"]), int(row["attempt"])
    waiting = yield from _open_wait(tenant, run, entry, attempt)
    key = keys.taken(entry, attempt)
    is_ours = False
    if waiting is not None:
        fields: dict[str, str | int | bytes] = {
            "at": now_ms,
            "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
        }
        if poll.worker is not None:
            fields["worker"] = poll.worker
        item = mail.taken_item(tenant, run, key, poll.nonce, fields)
        is_ours = yield from put_surely("mail", item)
        # Also when another poll has it: that one may have died before it told (R12).
        yield Send((Message(messages.wake_mail(tenant, run, key)),))
    yield Delete("mail", str(row["pk"]), str(row["sk"]))
    if waiting is None or not is_ours:
        return {}
    expires_ms = waiting.due_ms or now_ms + CALLBACK_SECONDS_MAX * 1_000
    token = make_token(Token(tenant, run, entry, attempt, expires_ms), poll.service.keys)
    return {"taskToken": token, "input": json_text(waiting.arguments)}


def _open_wait(
    tenant: str, run: str, entry: int, attempt: int
) -> Generator[Effect, Any, Awaiting | None]:
    """-> the task, unless it was taken, has ended or was tried again."""
    log = Log(tenant, run, "api", "")
    yield from log.load()
    frame = None if log.state is None else log.state.frame_of(entry)
    waiting = None if frame is None else frame.waiting
    is_open = isinstance(waiting, Awaiting) and waiting.attempt == attempt and not waiting.is_begun
    return waiting if is_open else None  # type: ignore[return-value]
