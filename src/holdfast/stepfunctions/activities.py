"""Activities, and the polls with which workers of users take their tasks.

A scheduled task is a row in the activity's own partition (`keys.activity_tasks`). The worker whose
record scheduled the task puts it there. A poll takes the earliest row that is due:

    load the log: still open?  ─no─►  delete the row, next
          │ yes
    put `s#<entry>.<attempt>` into its inbox, if absent  ─ there ─►  delete the row, next
          │ stored: this poll has the task
    wake the execution (it notes ActivityStarted), delete the row, answer with token and input

The put decides: of many polls only one can store the item, and that poll gets the task. If it
crashes after the put, the task is taken but never answered. As on AWS, the task's time-out and
heartbeat then end the attempt. If another step after the put fails, the poll still returns the
task; the row that is left makes the next poll wake the execution. A task whose log cannot be read
is skipped, so that it does not hide other tasks.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.state import Attempt, Awaiting, Execution
from holdfast.errors import HoldfastError, ServiceFault, is_damage, is_passing
from holdfast.limits import CALLBACK_SECONDS_MAX, CLOCK_ERROR_MS, EVENT_RETENTION_SECONDS
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands.answers import store_answer
from holdfast.runtime.commands.tokens import Token, make_token
from holdfast.runtime.effects import (
    Clock,
    Deadline,
    Delete,
    Effect,
    Get,
    Item,
    JsonResult,
    Message,
    Pause,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.follow_ups import missing_activity
from holdfast.runtime.offers import execution_of, is_held, open_offer, paused_scopes
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.log import put_surely
from holdfast.stepfunctions import catalogue
from holdfast.stepfunctions.arns import ActivityArn, parse_activity_arn, require_name
from holdfast.stepfunctions.catalogue import Activity, Service
from holdfast.stepfunctions.faults import StatesFault, activity_does_not_exist
from holdfast.stepfunctions.pages import page

#: A poll of an activity waits for 60 s (AWS docs, GetActivityTask).
POLL_MS: Final = 60_000
PAUSE_MS_MIN: Final = 100
PAUSE_MS_MAX: Final = 1_000
_ROWS_PER_QUERY: Final = 10
#: The rows of a later query of a pool. Many rows of tasks that this worker does not have may come
#: first. Their logs are not read, so a query may return more of them.
_ROWS_PER_LATER_QUERY: Final = 100
#: The most queries of one check. Without this bound a poll might not end in time if many tasks of
#: damaged logs come first.
_QUERIES_PER_LOOK: Final = 20
#: The most tasks that one check passes over because their executions are paused or their logs are
#: damaged. The check reads the log of each of them to find that out, which takes time.
_LOGS_LEFT_MAX: Final = 200


# -- activities ------------------------------------------------------------------------------------


def create_activity(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Create an activity. An identical repeated request gets the same response, whatever its tags
    (AWS docs).
    """
    from holdfast.stepfunctions import settings, tags  # noqa: PLC0415  # polls need neither

    name = require_name(request["name"])
    encryption = request.get("encryptionConfiguration")
    encryption = settings.encryption_of(encryption)
    now_ms = yield Clock()
    arn = service.place.activity(name)
    own = tags.merged((), request.get("tags", []), arn)
    wanted = Activity(name, now_ms, own, encryption)
    item = yield PutIfAbsent(tables.MAIL, catalogue.activity_item(service.tenant, wanted))
    activity = wanted if item is None else catalogue.read_activity(item)
    if activity.encryption != encryption:
        raise StatesFault("ActivityAlreadyExists", f"Activity Already Exists: '{arn}'")
    return {"activityArn": arn, "creationDate": activity.created_ms}


def describe_activity(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    activity = yield from _require(service, request)
    return {
        "activityArn": service.place.activity(activity.name),
        "name": activity.name,
        "creationDate": activity.created_ms,
        "encryptionConfiguration": dict(activity.encryption or {"type": "AWS_OWNED_KEY"}),
    }


def delete_activity(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Delete an activity. If it does not exist, that is no error.

    Its tasks that no poller has taken fail, because none can take them any longer. A task that was
    taken goes on: its worker has the token.
    """
    arn = parse_activity_arn(request["activityArn"])
    if arn.place != service.place:
        return {}
    # Delete the activity first. A task that is offered later fails at its offer.
    yield Delete(tables.MAIL, keys.activities(service.tenant), arn.name)
    partition = keys.activity_tasks(service.tenant, arn.name)
    rows: list[Item] = yield Query(tables.MAIL, partition)
    for row in rows:
        yield from _fail_untaken(service.tenant, row, arn.text)
    return {}


def _fail_untaken(tenant: str, row: Item, arn: str) -> Generator[Effect, Any, None]:
    """Answer the task of the row with the failure of a missing activity, unless it was taken."""
    with reading("a task of an activity"):
        run, entry, attempt = str(row["run"]), int(row["entry"]), int(row["attempt"])
    taken = yield Get(tables.MAIL, keys.inbox(tenant, run), keys.taken(entry, attempt))
    if taken is None:
        now_ms = yield Clock()
        error, cause = missing_activity(arn)
        token = Token(tenant, run, entry, attempt, now_ms + CALLBACK_SECONDS_MAX * 1_000)
        yield from store_answer(token, now_ms, {"error": error, "cause": cause}, {})
    yield _drop(row)


def list_activities(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    activities = yield from catalogue.activities(service.tenant)
    shown, token = yield from page(service, request, activities, "activities", lambda one: one.name)
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
    """One poll. `tasks`: the names of the tasks that a worker of a pool knows, and no other is
    handed to it; None for a poller of AWS's API, which takes every task of the activity.
    """

    service: Service
    activity: str
    worker: str | None
    nonce: str
    tasks: frozenset[str] | None = None

    @property
    def partition(self) -> str:
        is_of_pool, tenant = self.tasks is not None, self.service.tenant
        return (keys.pool_tasks if is_of_pool else keys.activity_tasks)(tenant, self.activity)

    def passes_over(self, row: Item, paused: frozenset[str]) -> bool:
        """Return True for a row whose task the worker of a pool must leave for another worker, or
        for later. `paused`: the gates of the paused scopes.
        """
        if self.tasks is None:
            return False
        return row.get("task") not in self.tasks or is_held(row, paused)


@dataclass(frozen=True, slots=True)
class Taken:
    """A task that the poll has, with the token of its attempt."""

    token: str
    execution: Execution
    waiting: Attempt | Awaiting


def get_activity_task(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Return token and input of one task, or {} when none arrived during the poll.

    Costs a query for each check: the first at once, then after pauses that grow to a second.
    """
    activity = yield from _require(service, request)
    poll = Poll(service, activity.name, request.get("workerName"), chance.hex())
    until_ms = min((yield Clock()) + POLL_MS, (yield Deadline()))
    pause_ms = PAUSE_MS_MIN
    while True:
        now_ms = yield Clock()
        taken = yield from look(poll, now_ms)
        if taken is not None:
            return {"taskToken": taken.token, "input": json_text(taken.waiting.arguments)}
        if now_ms >= until_ms:
            return {}
        yield Pause(min(pause_ms, until_ms - now_ms))
        pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)


def look(poll: Poll, now_ms: int) -> Generator[Effect, Any, Taken | None]:
    """Return the first task that the poll can take, else None."""
    until, after = keys.due_until(now_ms), None
    most, logs_left = _ROWS_PER_QUERY, 0
    paused: frozenset[str] | None = None
    for _ in range(_QUERIES_PER_LOOK):
        rows = yield Query(tables.MAIL, poll.partition, after=after, until=until, limit=most)
        if rows and poll.tasks is not None and paused is None:
            paused = yield from paused_scopes(now_ms)
        left = 0
        for row in rows:
            if poll.passes_over(row, paused or frozenset()):
                left += 1
                continue
            try:
                found = yield from _take(poll, row, now_ms)
            except HoldfastError as error:
                if is_passing(error):
                    # End this check. The next one finds the same row and repeats the write with the
                    # same nonce. If the poll took another row now, the first task could be lost,
                    # because its `s#` item may have been stored although the write reported an
                    # error.
                    return None
                if not is_damage(error):
                    # The stack's format is newer than this code can read, so no single task is
                    # damaged.
                    raise
                found = _STAYS
            if isinstance(found, Taken):
                return found
            left += found is _STAYS
            logs_left += found is _STAYS
        if left < most or logs_left >= _LOGS_LEFT_MAX:
            return None
        # The next query starts behind these rows. Those of damaged logs and of paused executions
        # stay, because their tasks may be taken later. Those of tasks that this worker does not
        # have stay for another worker.
        after = str(rows[-1]["sk"])
        most = _ROWS_PER_QUERY if poll.tasks is None else _ROWS_PER_LATER_QUERY
    return None


#: The result for a row whose task must not be taken now, so that the row stays.
_STAYS: Final = "stays"


def _take(poll: Poll, row: Item, now_ms: int) -> Generator[Effect, Any, Taken | str | None]:
    """Return the task of the row; None when it cannot be taken, or not yet."""
    with reading("a task of an activity"):
        tenant, run = poll.service.tenant, str(row["run"])
        entry, attempt = int(row["entry"]), int(row["attempt"])
        due_ms = int(str(row["sk"]).partition("#")[0])
    if attempt > 1 and due_ms + 2 * CLOCK_ERROR_MS > now_ms:
        # A retry waits until its due time. A first attempt is due at once.
        return None
    execution = yield from execution_of(tenant, run)
    waiting = None if execution is None else open_offer(execution, entry, attempt)
    if execution is None or waiting is None:
        yield _drop(row)
        return None
    if execution.paused is not None:
        # During a pause no task begins, so a later poll gets this one.
        return _STAYS
    expires_ms = waiting.due_ms or now_ms + CALLBACK_SECONDS_MAX * 1_000
    key = keys.taken(entry, attempt)
    fields: dict[str, str | int | bytes] = {
        "at": now_ms,
        "ttl": expires_ms // 1_000 + EVENT_RETENTION_SECONDS,
    }
    if poll.worker is not None:
        fields["worker"] = poll.worker
    item = inbox.taken_item(tenant, run, key, poll.nonce, fields)
    is_ours = yield from put_surely(tables.MAIL, item)
    if not is_ours:
        # Another poll has taken the task and may have crashed before it sent the wake. So send the
        # wake here (R12).
        yield from _tell(tenant, run, key, row)
        return None
    # An error here is harmless. The `s#` item is stored, so no other poll gets this task, and the
    # log learns of the item when the worker answers, or at a recovery. A poll that finds the row
    # again cannot store the item a second time, and skips the task.
    with suppress(ServiceFault):
        yield from _tell(tenant, run, key, row)
    token = make_token(Token(tenant, run, entry, attempt, expires_ms), poll.service.keys)
    return Taken(token, execution, waiting)


def _tell(tenant: str, run: str, key: str, row: Item) -> Generator[Effect, Any, None]:
    """Send the wake, then delete the row. After a crash in between, the next poll finds the row and
    sends the wake again.
    """
    yield Send((Message(messages.wake_mail(tenant, run, key)),))
    yield _drop(row)


def _drop(row: Item) -> Delete:
    return Delete(tables.MAIL, str(row["pk"]), str(row["sk"]))
