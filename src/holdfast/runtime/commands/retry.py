"""Retry an execution that has not succeeded: it continues where it stopped.

Results of earlier steps stay in the log, and a step that succeeded does not run again. The
execution keeps its definition. Task functions are found by name when they run, so a deployment that
corrects a task is enough. AWS calls the same operation a redrive.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, Literal

from holdfast.asl.program import ChoiceState, FailState, Program
from holdfast.core.decision import is_history_full
from holdfast.core.state import Execution, Lanes
from holdfast.errors import RequestError
from holdfast.limits import CAUSE_CHARACTERS_MAX
from holdfast.runtime import inbox
from holdfast.runtime.commands import fields, keyed
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, Effect, JsonResult, NoResult

Obstacle = Literal["RUNNING", "SUCCEEDED", "UNDONE", "FULL"]
#: The longest name of a caller. ARNs of IAM and subjects of tokens are shorter.
CALLER_CHARACTERS_MAX: Final = 256

_HELP: Final[Mapping[Obstacle, str]] = {
    "RUNNING": "`holdfast show` says what it waits for",
    "SUCCEEDED": "start another execution",
    "UNDONE": "start another execution, under another name",
    "FULL": "start another execution",
}
#: How the execution is, for the message of a refusal.
WORDS: Final[Mapping[Obstacle, str]] = {
    "RUNNING": "runs",
    "SUCCEEDED": "has SUCCEEDED",
    "UNDONE": "has undone what it did before it ended",
    "FULL": "has all events that AWS's limit allows",
}


def obstacle(state: Execution | None) -> Obstacle | None:
    """Return the reason why a retry is impossible; None when the execution can continue.

    `state` is None when the execution was accepted and no worker has begun it.
    """
    if state is None or not state.is_ended:
        return "RUNNING"
    if state.status == "SUCCEEDED":
        return "SUCCEEDED"
    if state.is_undone:
        return "UNDONE"
    return "FULL" if is_history_full(state) else None


def retry(
    known: Lookup,
    tenant: str,
    identifier: str,
    request: Mapping[str, Any],
    chance: bytes,
    *,
    by: str | None = None,
) -> JsonResult:
    """Store a retry. `request`: reason?. `by` is the verified identity of the caller. Both are
    recorded in the history.

    Return `retry`: how often it has been retried, this one included; `from`: the steps that run
    again. Raises RequestError HF207, HF214, HF233; HF218 (409) when it runs, has succeeded or has
    undone its work; HF561 (409) when another execution runs for its key.
    """
    words = fields.texts(request, {"reason": CAUSE_CHARACTERS_MAX})
    log = yield from known.require_log(tenant, identifier)
    reason = obstacle(log.state)
    if reason is None and log.state is not None:
        reason = yield from _undone(known, tenant, log.state)
    if reason is not None:
        raise RequestError(
            "HF218",
            f"the execution {identifier[:90]} {WORDS[reason]} and cannot be retried",
            status=409,
            help=_HELP[reason],
        )
    assert log.state is not None
    yield from keyed.hold_for_retry(known, tenant, log.state)
    now_ms = yield Clock(is_for_id=True)
    at = (now_ms, chance)
    yield from send_retry(tenant, log.run, log.state, at, by=by, reason=words.get("reason"))
    return {"execution": log.run, "retry": log.state.redrives + 1, "from": _open_steps(log.state)}


def _undone(
    known: Lookup, tenant: str, state: Execution
) -> Generator[Effect, Any, Literal["UNDONE"] | None]:
    """Return "UNDONE" when a `compensating` block has undone its steps and raised the error again.

    The execution ended at that raise. A retry would raise again at once, because the steps before
    it would not run.
    """
    yield from known.programs.fetch(tenant, state.definition)
    raises = _raises_of(known.programs.program(state.definition))
    is_undone = any(frame.position in raises for frame in state.resting.values())
    return "UNDONE" if is_undone else None


def _raises_of(program: Program) -> set[str]:
    """Return the states that raise an error as soon as an undo has ended. A Choice before them
    looks for a handler of the error.
    """
    found, pending = set[str](), [rule.end for rule in program.undos]
    while pending:
        match program.states[pending.pop()]:
            case FailState(name=name):
                found.add(name)
            case ChoiceState(rules=rules, default=default):
                pending += [rule.next for rule in rules]
                pending += [] if default is None else [default]
            case _:
                pass
    return found


def send_retry(
    tenant: str,
    run: str,
    state: Execution | None,
    at: tuple[int, bytes],
    *,
    by: str | None = None,
    reason: str | None = None,
    token: str | None = None,
) -> NoResult:
    """Store the request of a retry and wake the execution. `at`: see `request_control`. `token`:
    see `redrives`.
    """
    wanted: dict[str, str | int] = {"kind": inbox.REDRIVE}
    if token is not None:
        wanted["token"] = token
    if by is not None:
        wanted["by"] = by[:CALLER_CHARACTERS_MAX]
    if reason is not None:
        wanted["reason"] = reason
    yield from request_control(tenant, run, state, at, wanted)


def _open_steps(state: Execution) -> list[str]:
    """Return the steps that were open at the end. A Parallel or Map that only contains branches
    does not count.
    """
    open_frames = [frame for frame in state.resting.values() if frame.position]
    return sorted({f.position for f in open_frames if not isinstance(f.waiting, Lanes)})
