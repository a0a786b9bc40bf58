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

The redrive of a map run. The parent continues, and its unsuccessful children must continue, too. A
child may still be stopping at that moment, or may have succeeded although it was to be stopped. So
the log of the child decides, whenever the parent looks:

    child has no log                     send its start
    child runs                           nothing: its end wakes the parent, which looks again
    child has succeeded                  its result counts
    child ended otherwise, before this   send it a redrive with the number of the map run's redrive
    redrive                              (`round`); a child that cannot continue counts as failed
    child ended after this redrive       its result counts

The notice of an end has the child's round in its key. A notice of an earlier round only makes the
parent look.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Json, MapState, Program
from holdfast.core import facts
from holdfast.core.apply.map_run import children_to_resume
from holdfast.core.run_ids import child_name, child_run
from holdfast.core.state import (
    ChildExecutions,
    ChildResult,
    Execution,
    Frame,
    MachineOrigin,
    Parent,
)
from holdfast.core.waits import awaited, open_lanes
from holdfast.errors import HoldfastError
from holdfast.limits import CLOCK_ERROR_MS, CONTROL_RETENTION_SECONDS
from holdfast.runtime import child_workflows, inbox, messages
from holdfast.runtime.commands.control import send_control, wake_for_control
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    Message,
    NoResult,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.log import Log

#: The cause of the failure of a child whose log was deleted before its map run was redriven.
_GONE: Final = "The history of the execution is not kept any longer."
ChildEnds = Generator[Effect, Any, list[facts.ChildEnded]]

#: Inbox messages with this prefix report the end of a child: `k#<entry>#<lane>`.
NOTICE_PREFIX: Final = "k#"


def notice_key(entry: int, lane: int, redrives: int = 0) -> str:
    """Return the key of a notice. With lane -1 it sorts before that of the first lane. `redrives`
    is the redrive of the map run after which the child has ended.
    """
    again = f"#{redrives:04d}" if redrives else ""
    return f"{NOTICE_PREFIX}{entry}#{lane:06d}{again}"


def place_of_notice(key: str) -> tuple[int, int]:
    """Return the lane and the redrive of a notice's key."""
    with reading("a key of a notice"):
        lane, _, redrives = key.removeprefix(NOTICE_PREFIX).partition("#")[2].partition("#")
        return int(lane), int(redrives or 0)


# -- starting --------------------------------------------------------------------------------------


def start(log: Log, program: Program, entry: int, lane: int, now_ms: int) -> ChildEnds:
    """Start one child of a Map, or redrive it. Return its end, if it has ended already.

    A repeated start message changes nothing in the child's log. It makes a child that has ended
    report its end again.
    """
    assert log.state is not None
    frame = log.state.frame_of(entry)
    assert frame is not None, "it is owed by this very state"
    children = frame.waiting
    assert isinstance(children, ChildExecutions)
    if lane < children.begun:
        child = yield from _load(log, child_run(log.run, entry, lane))
        if child.state is not None or child.is_gone:
            return (yield from _redrive(child, children, lane, now_ms))
    yield from _send_start(log, program, frame, lane, now_ms)
    return []


def _load(log: Log, run: str) -> Generator[Effect, Any, Log]:
    """Return the log of another execution, for the worker that has `log` in hand."""
    other = Log(log.tenant, run, log.owner, log.message, log.formats)
    yield from other.load()
    return other


def _redrive(child: Log, children: ChildExecutions, lane: int, now_ms: int) -> ChildEnds:
    """Redrive a child that has begun before the redrive of its map run. Return its end when it
    needs no redrive, or cannot continue.
    """
    state = child.state
    if state is None:
        gone: ChildResult = {
            "status": "FAILED",
            "started_ms": now_ms,
            "stopped_ms": now_ms,
            "error": error_names.RUNTIME,
            "cause": _GONE,
        }
        return [facts.ChildEnded(children.entry, lane, gone)]
    if not state.is_ended:
        return []
    assert state.parent is not None
    is_over = state.status == "SUCCEEDED" or state.is_undone
    if is_over or state.parent.get("round", 0) == children.redrives:
        return [facts.ChildEnded(children.entry, lane, _result_of(state))]
    fields: Item = {"kind": inbox.REDRIVE, "round": children.redrives}
    yield from _send_control(child, fields, now_ms)
    return []


def _send_control(child: Log, fields: Item, now_ms: int) -> NoResult:
    """Send a control message of this kind and round once. A repeated call wakes the child again.

    The id is greater than every stored one, and made of them, so two workers that send the message
    at the same time store it once.
    """
    stored: list[Item] = yield Query(
        tables.MAIL, keys.inbox(child.tenant, child.run), begins_with=keys.CONTROL_PREFIX
    )
    last_ms = 0 if child.state is None else child.state.stopped_ms or 0
    for item in stored:
        control_id = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
        if item.get("kind") == fields["kind"] and item.get("round") == fields["round"]:
            yield from wake_for_control(child.tenant, child.run, control_id)
            return
        last_ms = max(last_ms, int(control_id[:15]) + 1)
    yield from send_control(child.tenant, child.run, f"{last_ms:015d}{'0' * 12}", now_ms, fields)


def _send_start(log: Log, program: Program, frame: Frame, lane: int, now_ms: int) -> NoResult:
    assert log.state is not None
    children = frame.waiting
    assert isinstance(children, ChildExecutions)
    entry = children.entry
    run = child_run(log.run, entry, lane)
    stowed = yield from inbox.stow(log.tenant, run, children.inputs[lane])
    parent: Parent = {"run": log.run, "entry": entry, "attempt": 1, "lane": lane}
    if lane >= children.begun and children.redrives:
        # A child that was to begin before the redrive begins as it would have then. A stop of that
        # time may be stored, and would otherwise count as an end after the redrive.
        parent["round"] = children.redrives
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
        lane = parent.get("lane")
        yield Send((Message(messages.wake_child_ended(log.tenant, parent["run"], key, lane)),))


def _may_wait(log: Log, parent: str) -> Generator[Effect, Any, bool]:
    """Return False when the parent has ended or has counted this child, so that a wake changes
    nothing.

    Without this test, each repeated delivery of an end would wake the parent, which would wake its
    own parent. If messages cannot be deleted for a while, their number would multiply at each
    level.
    """
    try:
        above = yield from _load(log, parent)
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
    key = notice_key(parent["entry"], lane, parent.get("round", 0))
    fields = yield from _lane_fields(tenant, state, parent)
    return {**item, "sk": key, **fields}, f"{NOTICE_PREFIX}{parent['entry']}"


def _answer_fields(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return the end of a task's child as the answer to a callback: the output or error of a
    workflow, or the description of a state machine's execution.
    """
    if state.origin is None and state.status != "SUCCEEDED":
        return child_workflows.error_of(state)
    output = state.output
    if state.origin is not None:
        # Imported here for cold starts: most stacks have no state machine that starts another one.
        from holdfast.core.nested import finished_error, finished_output  # noqa: PLC0415

        if state.status != "SUCCEEDED":
            error, cause = finished_error(state)
            return {"error": error, "cause": cause}
        output = finished_output(state, as_json=parent.get("as_json", False))
    return (yield from inbox.stow(tenant, parent["run"], output))


def _lane_fields(
    tenant: str, state: Execution, parent: Parent
) -> Generator[Effect, Any, dict[str, Any]]:
    return (yield from inbox.stow(tenant, parent["run"], dict(_result_of(state))))


def _result_of(state: Execution) -> ChildResult:
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
    return result


def notices(tenant: str, state: Execution, children: ChildExecutions) -> ChildEnds:
    """Return the reported ends of children that the parent's log does not have yet. `children` is a
    Map of this parent that waits, so at least one of its children has not ended.
    """
    run, lanes = state.run, open_lanes(state, children)
    # Read only the notices from the first to the last open child. The log of a large Map already
    # has the notices of thousands of earlier children, and reading all of them would take too long.
    items: list[Item] = yield Query(
        tables.MAIL,
        keys.inbox(tenant, run),
        after=notice_key(children.entry, lanes[0] - 1),
        # The notices of later redrives of the last lane follow its first one.
        until=f"{notice_key(children.entry, lanes[-1])}#~",
    )
    is_open = set(lanes)
    told, earlier = set[int](), set[int]()
    found: list[facts.ChildEnded] = []
    for item in items:
        require_format(item, "a notice")
        lane, redrives = place_of_notice(str(item["sk"]))
        if lane in is_open and redrives == children.redrives:
            result: Json = yield from inbox.unstow(tenant, run, item)
            found.append(facts.ChildEnded(children.entry, lane, result))  # type: ignore[arg-type]
            told.add(lane)
        elif lane in is_open and int(item["at"]) >= children.redriven_ms - 2 * CLOCK_ERROR_MS:
            # The redrive itself has looked at each child that had ended before it.
            earlier.add(lane)
    for lane in sorted(earlier - told):
        found += yield from _look(tenant, child_run(run, children.entry, lane), children, lane)
    return found


def _look(tenant: str, run: str, children: ChildExecutions, lane: int) -> ChildEnds:
    """Redrive a child that has ended in an earlier round, unless that was done."""
    child = Log(tenant, run, "parent", "")
    yield from child.load()
    now_ms = yield Clock()
    return (yield from _redrive(child, children, lane, now_ms))


def all_notices(tenant: str, state: Execution) -> ChildEnds:
    """Return the stored ends of the children of every open Map. A recovering worker needs them
    because the wakes may never have been sent.
    """
    found: list[facts.ChildEnded] = []
    for frame in state.frames.values():
        if isinstance(frame.waiting, ChildExecutions):
            found += yield from notices(tenant, state, frame.waiting)
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
    redrives = _redrives_of(log, entry)
    if not redrives:
        fields = {"kind": inbox.PARENT}
        yield from send_control(log.tenant, run, _CONTROL_ID, now_ms, fields)
        return
    child = yield from _load(log, run)
    yield from _send_control(child, {"kind": inbox.PARENT, "round": redrives}, now_ms)


def _redrives_of(log: Log, entry: int) -> int:
    """Return how often the map run with the entry was redriven; 0 for a task's child."""
    assert log.state is not None
    for frame in (*log.state.frames.values(), *log.state.resting.values()):
        children = children_to_resume(frame.waiting)
        if children is not None and children.entry == entry:
            return children.redrives
    return 0


def has_ended(log: Log, entry: int, number: int) -> Generator[Effect, Any, bool]:
    """Return True when the child has reported its end: as a child of a Map, or of a task."""
    inbox = keys.inbox(log.tenant, log.run)
    own_key = notice_key(entry, number, _redrives_of(log, entry))
    for key in (own_key, keys.answer(entry, number)):
        item = yield Get(tables.MAIL, inbox, key)
        if item is not None:
            return True
    return False


def is_awaited(state: Execution, run: str) -> bool:
    """Return True when the execution waits for that child, whether the child has begun or not."""
    children = awaited(state.frames.values())
    return any(run == child_run(state.run, entry, number) for entry, number in children)
