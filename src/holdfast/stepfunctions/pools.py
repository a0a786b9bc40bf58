"""The door of the workers of a pool: a poll, a heartbeat, an answer.

A pool is an activity by another name. `@task(runs_on=Worker("gpu"))` is a Task whose Resource is
`holdfast:pool:gpu`, so its attempt waits, is taken, beats and ends as a task of the activity `gpu`
(activities.py, tasks.py). Where a workflow computes the pool, the Resource is `holdfast:pool:`, and
ActivityScheduled names the pool. Three things differ for a worker of Holdfast:

* It names the tasks that its code has, and gets no other. After a deployment an old worker leaves
  the tasks that it does not know to a new one.
* A poll is one look, and the worker itself pauses between two. A poll that waited in the API's
  function would be billed for every second in which nothing comes.
* A worker gets the message that every process gets which runs an attempt for the engine, and
  answers with its result (`runtime/handed_attempts.py`). So the function sees the `task_context()`
  that it would see anywhere.

    worker                        API                              execution
    POST /pools/gpu/announce  ──► the worker's row, each minute
    POST /pools/gpu/poll      ──► look ── `s#` item, wake ───────► ActivityStarted
    POST /pools/gpu/heartbeat ──► `h#` item, with progress; HF433 once it is over
    POST /pools/gpu/answer    ──► `t#` item, wake ───────────────► ActivitySucceeded, or …Failed

A container of ECS or Batch runs one attempt and has its token: it fetches the attempt, in place of
the poll, and goes on as a worker does.

A poll whose answer is lost has taken the task: its heartbeat is then missed, and the attempt is
retried. A heartbeat and an answer may be sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Final, assert_never

from holdfast.asl.resources import CONTAINER
from holdfast.core.state import Attempt, Awaiting
from holdfast.errors import HoldfastError, RequestError
from holdfast.limits import PROGRESS_BYTES_MAX
from holdfast.runtime.commands.pools import PoolWorkerRow
from holdfast.runtime.effects import (
    Clock,
    Delete,
    Effect,
    JsonResult,
    Put,
    RunTask,
    TaskFailed,
    TaskSucceeded,
    TaskThrottled,
)
from holdfast.runtime.handed_attempts import HandedAttempt, attempt_message, read_result
from holdfast.runtime.heartbeats import Step, progress_of
from holdfast.runtime.offers import execution_of
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.json_values import json_text, plain_text
from holdfast.stepfunctions import tasks
from holdfast.stepfunctions.activities import Poll, Taken, look
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault

#: The most tasks that a worker may name in one poll.
TASKS_MAX: Final = 500
WORKER_CHARACTERS_MAX: Final = 80


def poll(service: Service, pool: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Return the attempt that this worker now has, or {}.

    Raises RequestError HF432 for a request of another form.
    """
    worker = _text(request, "worker", WORKER_CHARACTERS_MAX)
    known, name = frozenset(_tasks(request)), keys.require_name(pool, "the pool")
    asked = Poll(service, name, worker, chance.hex(), known)
    now_ms = yield Clock()
    taken = yield from look(asked, now_ms)
    return {} if taken is None else (yield from _handed(service, taken))


def fetch(service: Service, pool: str, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Return the attempt of a token, which a container got when it was started.

    Raises RequestError HF433 (409) for an attempt that the engine does not wait for.
    """
    keys.require_name(pool, "the pool")
    text = _text(request, "token")
    try:
        token, _now_ms = yield from tasks.require_open_token(service, {"taskToken": text})
    except StatesFault as fault:
        raise _refused(fault) from None
    execution = yield from execution_of(service.tenant, token.run)
    frame = None if execution is None else execution.frame_of(token.entry)
    if execution is None or frame is None:
        raise _over()
    waiting = frame.waiting
    if not isinstance(waiting, Attempt | Awaiting) or waiting.attempt != token.attempt:
        raise _over()
    if not waiting.target.startswith(CONTAINER):
        raise _malformed("the token is not that of a container")
    return (yield from _handed(service, Taken(text, execution, waiting)))


def _handed(service: Service, taken: Taken) -> JsonResult:
    """Return the attempt as every process gets it that runs tasks for the engine. The worker finds
    the module: it has the workflow's code. A later attempt gets the progress of those before it.
    """
    execution, waiting = taken.execution, taken.waiting
    progress = None
    if waiting.attempt > 1:
        progress = yield from progress_of(Step(service.tenant, execution.run, waiting.entry))
    given: Any = waiting.arguments
    effect = RunTask(
        name=given["task"],
        kind="task",
        arguments=given["arguments"],
        tenant=service.tenant,
        run=execution.run,
        run_name=execution.name,
        workflow=execution.workflow,
        entry=waiting.entry,
        attempt=waiting.attempt,
        deadline_ms=0,
        heartbeat_seconds=waiting.heartbeat_seconds,
        progress=progress,
    )
    message = attempt_message(HandedAttempt(effect, module=""))
    return {"token": taken.token, "attempt": message, "beats": bool(given.get("beats"))}


def announce(service: Service, pool: str, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Store that the worker is there, with its `slots` and how many are `busy`. No slots: it
    leaves.
    """
    worker = _text(request, "worker", WORKER_CHARACTERS_MAX)
    partition = keys.pool_workers(service.tenant, keys.require_name(pool, "the pool"))
    slots, busy, since_ms = (_count(request, name) for name in ("slots", "busy", "since"))
    if not slots:
        yield Delete(tables.MAIL, partition, worker)
        return {}
    now_ms = yield Clock()
    row = PoolWorkerRow(worker, since_ms or now_ms, now_ms, slots, busy, tuple(_tasks(request)))
    yield Put(tables.MAIL, row.item(service.tenant, pool))
    return {"since": row.since_ms}


def beat(service: Service, pool: str, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Store a heartbeat, with the progress that it may carry.

    Raises RequestError HF433 (409) once the engine no longer waits for the attempt.
    """
    keys.require_name(pool, "the pool")
    given = {"taskToken": _text(request, "token")}
    progress = request.get("progress")
    size = len(plain_text(progress, "`progress`").encode())
    if size > PROGRESS_BYTES_MAX:
        raise _malformed(f"`progress` has {size} bytes, and {PROGRESS_BYTES_MAX} is the most")

    def send(to: Service, sent: Mapping[str, Any], _: bytes) -> JsonResult:
        return (yield from tasks.store_heartbeat(to, sent, progress))

    return (yield from _told(send, service, given))


def answer(service: Service, pool: str, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Store the result, or the error, of the attempt. The same answer may be sent again.

    Raises RequestError HF433 (409) once the engine no longer waits for the attempt.
    """
    keys.require_name(pool, "the pool")
    given = {"taskToken": _text(request, "token")}
    try:
        result = read_result(request.get("result"), "the task")
    except RequestError:
        raise
    except HoldfastError as error:
        raise _malformed(error.message) from None
    match result:
        case TaskSucceeded(output):
            given["output"] = json_text(output)
            # Step Functions limits the size of a result. Remove that limit here, because a task of
            # a pool is a task of Holdfast.
            unbounded = replace(service, payload_bytes_max=None)
            return (yield from _told(tasks.send_task_success, unbounded, given))
        case TaskFailed(error=name, cause=cause):
            failed = {**given, "error": name or "", "cause": cause or ""}
            return (yield from _told(tasks.send_task_failure, service, failed))
        case TaskThrottled(cause=cause):
            # Report a failure. Only an attempt in a worker of the engine can wait at a limit.
            failed = {**given, "error": "Throttled", "cause": cause or ""}
            return (yield from _told(tasks.send_task_failure, service, failed))
        case _:
            assert_never(result)


_Send = Callable[[Service, Mapping[str, Any], bytes], JsonResult]


def _told(
    send: _Send, service: Service, given: Mapping[str, Any]
) -> Generator[Effect, Any, dict[str, Any]]:
    try:
        return dict((yield from send(service, given, b"")))
    except StatesFault as fault:
        raise _refused(fault) from None


def _refused(fault: StatesFault) -> RequestError:
    return _over() if fault.code == "TaskTimedOut" else _malformed(fault.message)


def _over() -> RequestError:
    return RequestError(
        "HF433",
        "the engine no longer waits for this attempt",
        status=409,
        help="end the work: the execution was stopped, timed out or went on without it",
    )


def _tasks(request: Mapping[str, Any]) -> list[str]:
    known = request.get("tasks")
    if not isinstance(known, list) or len(known) > TASKS_MAX or not all(map(keys.is_name, known)):
        raise _malformed(f"`tasks` is not a list of at most {TASKS_MAX} names")
    return known


def _count(request: Mapping[str, Any], name: str) -> int:
    value = request.get(name, 0)
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise _malformed(f"`{name}` is not a whole number")
    return value


def _text(request: Mapping[str, Any], name: str, characters_max: int = 2_048) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= characters_max:
        raise _malformed(f"`{name}` is not a text of 1 to {characters_max} characters")
    return value


def _malformed(problem: str) -> RequestError:
    return RequestError("HF432", f"a worker of a pool sent: {problem}")


#: The functions for the routes of a pool, by the last part of the path. Each of them gets 16 random
#: bytes.
ACTIONS: Final[Mapping[str, Callable[[Service, str, Mapping[str, Any], bytes], JsonResult]]] = {
    "announce": announce,
    "poll": poll,
    "fetch": fetch,
    "heartbeat": beat,
    "answer": answer,
}
