"""The calls of a worker of a pool. docs/how-to/long-tasks.md shows the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import HoldfastError
from holdfast.remote.operations.requests import Call, Operation, path_part
from holdfast.remote.values import json_bytes

#: The code of the refusal when a worker answers an attempt that the engine no longer waits for.
OVER: Final = "HF433"


@dataclass(frozen=True, slots=True)
class Handed:
    """An attempt that the API hands to a worker: its message (`runtime/handed_attempts.py`) and the
    token for its answer. `beats`: the task sends its own heartbeats.
    """

    token: str
    attempt: Mapping[str, Any]
    beats: bool


def poll(pool: str, worker: str, tasks: Sequence[str]) -> Operation[Handed | None]:
    """Return the attempt that this worker now has to run, or None."""
    answer = yield _post(pool, "poll", worker=worker, tasks=list(tasks))
    return Handed(answer["token"], answer["attempt"], answer["beats"]) if answer else None


def fetch(pool: str, token: str) -> Operation[Handed]:
    """Return the attempt of a token, which a container got when it was started."""
    answer = yield _post(pool, "fetch", token=token)
    return Handed(answer["token"], answer["attempt"], answer["beats"])


def announce(
    pool: str, worker: str, tasks: Sequence[str], *, slots: int, busy: int, since_ms: int
) -> Operation[int]:
    """Announce a worker to the pool, or with `slots` 0 its leave. Return the time since which the
    pool has known the worker.
    """
    fields = {"worker": worker, "tasks": list(tasks), "slots": slots, "busy": busy}
    answer = yield _post(pool, "announce", **fields, since=since_ms)
    return int(answer.get("since", 0))


def heartbeat(pool: str, token: str, progress: Any = None) -> Operation[bool]:
    """Return False once the engine no longer waits for the attempt."""
    # An API of an earlier release refuses the field.
    more = {} if progress is None else {"progress": progress}
    return (yield from _unless_over(_post(pool, "heartbeat", token=token, **more)))


def answer(pool: str, token: str, result: Mapping[str, Any]) -> Operation[bool]:
    """Send the message of a result. Return False when the engine no longer waits for it."""
    return (yield from _unless_over(_post(pool, "answer", token=token, result=result)))


def _post(pool: str, action: str, **fields: Any) -> Call:
    return Call("POST", f"/pools/{path_part('the pool', pool)}/{action}", json_bytes(fields))


def _unless_over(call: Call) -> Operation[bool]:
    try:
        yield call
    except HoldfastError as error:
        if error.code != OVER:
            raise
        return False
    return True
