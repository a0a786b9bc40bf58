"""Child executions: their start, the notice of their end to the parent, and their stop.

Rules of this file:
* A child of a distributed Map has the id `run.entry.lane`; its start may be sent twice.
* The child of a task has the id `run.entry.attempt`: a repeated call starts the same one.
* The notice of an end is stored before the parent is woken, under a key of this child alone (R12).
* The parent counts notices, not wakes. A wake that finds too few notices changes nothing.
* A wake may be lost, so a recovery of the parent and the sweeper read the notices, too.
* As long as the parent waits for a child, the end of the child is sent again; then no longer.
* A child whose parent has stopped waiting is stopped. The stop stays a pending command until the
  parent's log records it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast.asl.program import Json, MapState, Program
from holdfast.core import facts
from holdfast.core.nested import finished_error, finished_output
from holdfast.core.run_ids import child_name, child_run
from holdfast.core.state import (
    ChildExecutions,
    ChildResult,
    Execution,
    Frame,
    MachineOrigin,
    Parent,
)
from holdfast.core.waits import awaited
from holdfast.errors import HoldfastError
from holdfast.limits import CONTROL_RETENTION_SECONDS
from holdfast.runtime import child_workflows, inbox, messages
from holdfast.runtime.commands.control import send_control
from holdfast.runtime.effects import Effect, Get, Item, Message, NoResult, PutIfAbsent, Query, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.log import Log

ChildEnds = Generator[Effect, Any, list[facts.ChildEnded]]

#: Inbox messages with this prefix report the end of a child: `k#<entry>#<lane>`.
NOTICE_PREFIX: Final = "k#"


def notice_key(entry: int, lane: int) -> str:
    """Return the key of a notice. With lane -1 it sorts before that of the first lane."""
    return f"{NOTICE_PREFIX}{entry}#{lane:06d}"


# -- starting --------------------------------------------------------------------------------------


def start(log: Log, program: Program, entry: int, lane: int, now_ms: int) -> NoResult:
    """Send the start message of one child of a Map. An execution that has begun or ended ignores
    it.
    """
    assert log.state is not None
    frame = log.state.frame_of(entry)
    assert frame is not None, "it is owed by this very state"
    assert isinstance(frame.waiting, ChildExecutions)
    run = child_run(log.run, entry, lane)
    children = frame.waiting
    stowed = yield from inbox.stow(log.tenant, run, children.inputs[lane])
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
        **child_workflows.inherited(log.state),
    )
    yield Send((Message(body),))


def _origin(state: Execution, program: Program, frame: Frame, run: str) -> MachineOrigin:
    map_state, children = program.states[frame.position], frame.waiting
    assert isinstance(map_state, MapState)
    assert map_state.run is not None
    assert isinstance(children, ChildExecutions)
    labelled = children.map_run_arn.rpartition(":")[0]
    name = child_name(run)
    arn = labelled.replace(":mapRun:", ":execution:")
    origin: MachineOrigin = {
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
    if state.origin is not None and "log" in state.origin:
        origin["log"] = state.origin["log"]
    return origin


# -- ending ----------------------------------------------------------------------------------------


def notify_parent(log: Log) -> NoResult:
    """Store the end in the parent's inbox, then wake the parent. This is repeated as long as the
    parent waits for this child. A parent that begins to wait later reads its inbox itself (R13).
    """
    state = log.state
    assert state is not None
    parent = state.parent
    if parent is None:
        return
    item, key = yield from _notice(log.tenant, state, parent)
    told_before = yield PutIfAbsent(tables.MAIL, item)
    if told_before is None or (yield from _may_wait(log, parent["run"])):
        yield Send((Message(messages.wake_mail(log.tenant, parent["run"], key)),))


def _may_wait(log: Log, parent: str) -> Generator[Effect, Any, bool]:
    """Return False when the parent has ended or has counted this child, so that a wake changes
    nothing.

    Without this test, each repeated delivery of an end would wake the parent, which would wake its
    own parent. If messages cannot be deleted for a while, their number would multiply at each
    level.
    """
    above = Log(log.tenant, parent, log.owner, log.message, log.formats)
    try:
        yield from above.load()
    except HoldfastError:
        # The worker that loads the parent's damaged log reports the damage.
        return True
    if above.state is None:
        return not above.is_gone
    return is_awaited(above.state, log.run)


def _notice(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, tuple[Item, str]]:
    """Return the item of the notice, and the key that the wake message names."""
    assert state.stopped_ms is not None
    inbox = keys.inbox(tenant, parent["run"])
    item: dict[str, str | int | bytes] = {
        "pk": inbox,
        FORMAT_FIELD: FORMAT,
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
    """Return the end of a task's child as the answer to a callback: the output or error of a
    workflow, or the description of a state machine's execution.
    """
    as_json = parent.get("as_json", False)
    if state.status == "SUCCEEDED":
        output = state.output
        if state.origin is not None:
            output = finished_output(state, as_json=as_json)
        return (yield from inbox.stow(tenant, parent["run"], output))
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
    return (yield from inbox.stow(tenant, parent["run"], dict(result)))


def notices(tenant: str, run: str, children: ChildExecutions) -> ChildEnds:
    """Return the reported ends of children that the parent's log does not have yet. `children` is a
    Map that waits, so at least one of its children has not ended.
    """
    lanes = children.open_lanes
    # Read only the notices from the first to the last open child. The log of a large Map already
    # has the notices of thousands of earlier children, and reading all of them would take too long.
    items: list[Item] = yield Query(
        tables.MAIL,
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
            result: Json = yield from inbox.unstow(tenant, run, item)
            found.append(facts.ChildEnded(children.entry, lane, result))  # type: ignore[arg-type]
    return found


def all_notices(tenant: str, state: Execution) -> ChildEnds:
    """Return the stored ends of the children of every open Map. A recovering worker needs them
    because the wakes may never have been sent.
    """
    found: list[facts.ChildEnded] = []
    for frame in state.frames.values():
        if isinstance(frame.waiting, ChildExecutions):
            found += yield from notices(tenant, state.run, frame.waiting)
    return found


# -- stopping --------------------------------------------------------------------------------------

#: The id of each stop that a parent sends to a child, so that a repeated stop counts once. It sorts
#: before all other ids. So a child that was stopped or redriven in the meantime, and has applied a
#: greater id, ignores it.
_CONTROL_ID: Final = "0" * 27


def stop(log: Log, entry: int, number: int, now_ms: int) -> NoResult:
    """Stop a child execution that its parent no longer waits for. A child that has ended ignores
    the stop.
    """
    run = child_run(log.run, entry, number)
    fields = {"kind": inbox.PARENT}
    yield from send_control(log.tenant, run, _CONTROL_ID, now_ms, fields)


def has_ended(log: Log, entry: int, number: int) -> Generator[Effect, Any, bool]:
    """Return True when the child has reported its end: as a child of a Map, or of a task."""
    inbox = keys.inbox(log.tenant, log.run)
    for key in (notice_key(entry, number), keys.answer(entry, number)):
        item = yield Get(tables.MAIL, inbox, key)
        if item is not None:
            return True
    return False


def is_awaited(state: Execution, run: str) -> bool:
    """Return True when the execution waits for that child, whether the child has begun or not."""
    children = awaited(state.frames.values())
    return any(run == child_run(state.run, entry, number) for entry, number in children)
