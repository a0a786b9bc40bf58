"""Executions that another execution waits for: their starts, and the notice of their end.

Rules of this file:
* A lane of a distributed Map is the execution `run.entry.lane`; its start may be sent twice.
* What a task begins is `run.entry.attempt`: whoever repeats the call starts the same one.
* The notice is stored before the parent is woken, under a key that only this child has (R12).
* The parent counts notices, not wakes: a wake that finds fewer than it needs changes nothing.
* A wake may never be sent: who recovers the parent, or sweeps it, looks for notices as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from holdfast.asl.program import Json, Map, Program
from holdfast.core import facts
from holdfast.core.facts import Fact
from holdfast.core.nested import finished_error, finished_output
from holdfast.core.run_ids import child_name, child_run
from holdfast.core.state import (
    Attempt,
    Awaiting,
    Children,
    ChildResult,
    Execution,
    Frame,
    Origin,
    Parent,
    WaitingFor,
    is_told,
)
from holdfast.errors import HoldfastBug
from holdfast.limits import CONTROL_RETENTION_SECONDS
from holdfast.runtime import child_workflows, keys, mail, messages
from holdfast.runtime.codec import FORMAT, require_format
from holdfast.runtime.effects import Effect, Item, Message, PutIfAbsent, Query, Send
from holdfast.runtime.log import Log

Does = Generator[Effect, Any, None]
Ended = Generator[Effect, Any, list[facts.ChildEnded]]

#: Mail under this prefix is about children: `k#<entry>#<lane>`.
NOTICE_PREFIX: Final = "k#"


def notice_key(entry: int, lane: int) -> str:
    """Lane -1 sorts before the first."""
    return f"{NOTICE_PREFIX}{entry}#{lane:06d}"


# -- starting --------------------------------------------------------------------------------------


def start(log: Log, program: Program, entry: int, lane: int, now_ms: int) -> Does:
    """Sends the start of one lane. A lane that has begun, or ended, ignores it."""
    assert log.state is not None
    frame = log.state.frame_of(entry)
    if frame is None or not isinstance(frame.waiting, Children):
        return
    run = child_run(log.run, entry, lane)
    children = frame.waiting
    stowed = yield from mail.stow(log.tenant, run, children.inputs[lane])
    parent: Parent = {"run": log.run, "entry": entry, "attempt": 1, "lane": lane}
    body = messages.start(
        log.tenant,
        run,
        workflow=keys.map_run_workflow(children.map_run_arn),
        definition=log.state.definition,
        input=stowed,
        t0=now_ms,
        origin=_origin(log.state, program, frame, run),
        parent=parent,
    )
    yield Send((Message(body),))


def _origin(state: Execution, program: Program, frame: Frame, run: str) -> Origin:
    map_state, children = program.states[frame.position], frame.waiting
    if not isinstance(map_state, Map) or map_state.run is None:
        raise HoldfastBug(f"{frame.position} has children and is no distributed Map")
    assert isinstance(children, Children)
    labelled = children.map_run_arn.rpartition(":")[0]
    name = child_name(run)
    arn = labelled.replace(":mapRun:", ":execution:")
    return {
        "execution_arn": f"{arn}:{name}",
        "execution_name": name,
        "state_machine_arn": labelled.replace(":mapRun:", ":stateMachine:"),
        "state_machine_name": labelled.rpartition(":")[2],
        "role_arn": "" if state.origin is None else state.origin["role_arn"],
        "type": map_state.run.execution_type,
        "map_run_arn": children.map_run_arn,
        "start_at": map_state.processor,
        "is_unbounded": state.origin is None or state.origin.get("is_unbounded", False),
    }


# -- ending ----------------------------------------------------------------------------------------


def notify_parent(log: Log) -> Does:
    """The end is stored in the parent's mail, then the parent is woken."""
    state = log.state
    assert state is not None
    parent = state.parent
    if parent is None:
        return
    item, key = yield from _notice(log.tenant, state, parent)
    yield PutIfAbsent("mail", item)
    yield Send((Message(messages.wake_mail(log.tenant, parent["run"], key)),))


def _notice(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, tuple[Item, str]]:
    """-> the item, and the key that a wake names."""
    assert state.stopped_ms is not None
    inbox = keys.inbox(tenant, parent["run"])
    item: dict[str, str | int | bytes] = {
        "pk": inbox,
        "f": FORMAT,
        "at": state.stopped_ms,
        "ttl": state.stopped_ms // 1_000 + CONTROL_RETENTION_SECONDS,
    }
    lane = parent.get("lane")
    if lane is None:
        key = keys.answer(parent["entry"], parent["attempt"])
        fields = yield from _answer_fields(tenant, state, parent)
        return {**item, "sk": key, **fields}, key
    key = notice_key(parent["entry"], lane)
    fields = yield from _lane_fields(tenant, state, parent)
    return {**item, "sk": key, **fields}, f"{NOTICE_PREFIX}{parent['entry']}"


def _answer_fields(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, dict[str, Any]]:
    """What a task has begun answers like any callback: a workflow with its output or its error, a
    state machine's execution with its description."""
    as_json = parent.get("as_json", False)
    if state.status == "SUCCEEDED":
        output = state.output
        if state.origin is not None:
            output = finished_output(state, as_json=as_json)
        return (yield from mail.stow(tenant, parent["run"], output))
    if state.origin is None:
        return child_workflows.error_of(state)
    error, cause = finished_error(state, as_json=as_json)
    return {"error": error, "cause": cause}


def _lane_fields(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, dict[str, Any]]:
    assert state.stopped_ms is not None
    result: ChildResult = {
        "status": state.status,
        "started_ms": state.started_ms,
        "stopped_ms": state.stopped_ms,
    }
    if state.status == "SUCCEEDED":
        result["output"] = state.output
    else:
        result |= {"error": state.error, "cause": state.cause}
    return (yield from mail.stow(tenant, parent["run"], dict(result)))


def notices(tenant: str, run: str, children: Children) -> Ended:
    """-> the ends that the parent has not counted yet."""
    lanes = children.open_lanes
    if not lanes:
        return []
    # Only as far as lanes are open: a large Map has thousands of notices that are counted.
    items: list[Item] = yield Query(
        "mail",
        keys.inbox(tenant, run),
        after=notice_key(children.entry, lanes[0] - 1),
        until=notice_key(children.entry, lanes[-1]),
    )
    is_open = set(lanes)
    found: list[facts.ChildEnded] = []
    for item in items:
        require_format(item, "a notice")
        lane = int(str(item["sk"]).rpartition("#")[2])
        if lane in is_open:
            result: Json = yield from mail.unstow(tenant, run, item)
            found.append(facts.ChildEnded(children.entry, lane, result))  # type: ignore[arg-type]
    return found


def all_notices(tenant: str, state: Execution) -> Ended:
    """Those of every open Map, for a worker that recovers: a wake may never have been sent."""
    found: list[facts.ChildEnded] = []
    for frame in state.frames.values():
        if isinstance(frame.waiting, Children):
            found += yield from notices(tenant, state.run, frame.waiting)
    return found


# -- stopping --------------------------------------------------------------------------------------


def stop(log: Log, before: Execution | None, applied: Sequence[Fact], now_ms: int) -> Does:
    """Stops the children of waits that have closed without them; what the end closes is not here.

    Not owed by the state: lost in a crash, the children run to their end, and nobody counts them.
    """
    after = log.state
    assert after is not None
    if before is None:
        return
    frames = after.resting if after.is_ended else after.frames
    kept = {_run_of(log.run, fact) for fact in applied if isinstance(fact, _ENDS)}
    kept.update(run for frame in frames.values() for run in _open_runs(log.run, frame.waiting))
    for frame in before.frames.values():
        for run in _open_runs(log.run, frame.waiting):
            if run not in kept:
                yield from _stop_child(log.tenant, run, now_ms)


def stop_open(log: Log) -> Does:
    """Stops the children that an execution which has ended has left open: twice is as once."""
    state = log.state
    assert state is not None
    assert state.stopped_ms is not None
    for frame in state.resting.values():
        for run in _open_runs(log.run, frame.waiting):
            yield from _stop_child(log.tenant, run, state.stopped_ms)


def is_awaited(state: Execution, run: str) -> bool:
    """The execution waits for that child, whether it has begun or not."""
    frames = state.frames.values()
    return any(run in _open_runs(state.run, frame.waiting) for frame in frames)


def _stop_child(tenant: str, run: str, at_ms: int) -> Does:
    control_id = f"{at_ms:015d}{hashlib.sha256(run.encode()).hexdigest()[:12]}"
    yield PutIfAbsent("mail", mail.control_item(tenant, run, control_id, at_ms, {}))
    yield Send((Message(messages.wake_mail(tenant, run, keys.control(control_id))),))


#: The facts by which a child's end is known.
_ENDS: Final = (facts.Succeeded, facts.FailedWith, facts.ChildEnded)


def _run_of(run: str, fact: facts.Succeeded | facts.FailedWith | facts.ChildEnded) -> str:
    match fact:
        case facts.ChildEnded(entry, lane):
            return child_run(run, entry, lane)
        case _:
            return child_run(run, fact.entry, fact.attempt)


def _open_runs(run: str, waiting: WaitingFor) -> Iterator[str]:
    """-> those that are waited for here. Of an attempt the call may be under way, and begin one."""
    match waiting:
        case Children(entry=entry):
            for lane in waiting.open_lanes:
                yield child_run(run, entry, lane)
        case Attempt(kind="sync", target=target) | Awaiting(kind="sync", target=target):
            if is_told(target):
                yield child_run(run, waiting.entry, waiting.attempt)
        case _:
            pass
