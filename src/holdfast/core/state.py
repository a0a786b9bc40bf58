"""The state of one execution: a tree of frames, frozen, as plain as JSON.

A frame is one line of control: the root, a branch of a Parallel, an iteration of a Map. It has a
position, variables, the data that flows (`input`), and what it waits for. Frames are kept flat by
id: "" is the root, "<entry>.<lane>" a branch or iteration of the lanes that the entry opened.

`Execution` is what folding the history gives. Nothing in it comes from anywhere else. It, `Frame`
and `Lanes` change with every event and are named tuples: copying a frozen dataclass costs six
times as much, and that would be half of what the engine does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import (
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypedDict,
    get_args,
)

from holdfast.asl.program import AttributeKind, Json, TaskKind
from holdfast.asl.resources import CHILD_WORKFLOW

ROOT: Final = ""

#: Tasks that begin with a call by a worker. The other kinds wait for an external answer from the
#: start.
ATTEMPTED: Final[frozenset[TaskKind]] = frozenset(
    {"task", "pure", "lambda", "service", "callback", "sync", "command"}
)
_NESTED_EXECUTION: Final = "states:startExecution"
#: The kinds of attempts whose answer arrives after the worker's call has ended.
ANSWERED_LATER: Final[frozenset[TaskKind]] = frozenset({"callback", "sync"})


def is_told(target: str) -> bool:
    """A "sync" task begins an execution, which reports its end, or a job, which is polled."""
    return target == _NESTED_EXECUTION or target.startswith(CHILD_WORKFLOW)


Status: TypeAlias = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class Parent(TypedDict):
    """The waiting place of the parent execution, to which the end is reported.

    `lane` is a distributed Map's, absent for an execution that a task has begun. `as_json`: the
    result of a state machine's execution is reported as JSON (`.sync:2`), not as text.
    """

    run: str
    entry: int
    attempt: int
    lane: NotRequired[int]
    as_json: NotRequired[bool]


class Attribute(NamedTuple):
    """The type and the value of a search attribute (`core/attributes.py`)."""

    kind: AttributeKind
    value: str | int | bool


class MachineOrigin(TypedDict):
    """The state machine that an execution is one of, as the API knows it.

    `start_at` belongs to an execution that is one item of a distributed Map: where its processor
    starts.
    """

    execution_arn: str
    execution_name: str
    state_machine_arn: str
    state_machine_name: str
    role_arn: str
    type: Literal["STANDARD", "EXPRESS"]
    version_arn: NotRequired[str]
    alias_arn: NotRequired[str]
    map_run_arn: NotRequired[str]
    start_at: NotRequired[str]
    is_unbounded: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Lease:
    """The owner of an attempt. It prevents double work; the log prevents double results.

    `message` is the id of the queue message the owner works for, `receive_count` which of its
    deliveries. Past `until_ms` a recovering worker may take the attempt over.
    """

    owner: str
    message: str
    receive_count: int
    until_ms: int


#: The prefix of a batch task's gate name. No limit's name begins with it.
BATCH_PREFIX: Final = "batch:"


@dataclass(frozen=True, slots=True)
class Queued:
    """The place of an attempt that waits at a gate until a limit lets it begin.

    `gate` is the gate's id (`core/gates.py`), `since_ms` when the attempt began to wait there.
    `fair` is the text that the limit takes turns by, "" without one. `kept` are the permits that
    the attempt holds while it waits: pairs of gate and owner. An attempt that holds permits waits
    in front of all others, so that two full gates cannot pass attempts to and fro.
    """

    gate: str
    since_ms: int
    fair: str = ""
    kept: tuple[tuple[str, str], ...] = ()
    is_front: bool = False

    @property
    def is_batch(self) -> bool:
        """Return True when the attempt waits to run in a batch; its result then arrives as an
        answer.
        """
        return self.gate.startswith(BATCH_PREFIX)


@dataclass(frozen=True, slots=True)
class Admission:
    """The wait of an execution that may not begin yet, because its workflow's limit has no free
    place.
    """

    entry: int
    queued: Queued


@dataclass(frozen=True, slots=True)
class Entered:
    """The state was entered and has not been evaluated yet."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The frame has left its state; the event that enters the next state is in the same record."""


@dataclass(frozen=True, slots=True)
class FailedState:
    """The state failed; the same record has its retry, its catcher, or the failure of its owner.

    `entry` and `attempt` are those of the task that failed, None and 0 when it was no task. `lanes`
    are those of a Parallel or Map: if the execution ends with this failure, a redrive opens them
    again.
    """

    entry: int | None
    attempt: int
    lanes: Lanes | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task that runs in a worker. `attempt` counts from 1; `due_ms` is when it may begin.

    `takeovers` counts the owners that were lost. `is_unknown`: a worker met it that does not know
    the function; the execution is parked until one comes that does. `heartbeat_seconds` counts
    from the end of a call that is answered later; `credentials` is the role that the call takes.
    `queued`: a limit refused the attempt, so it has no lease and waits for its turn.
    """

    entry: int
    attempt: int
    kind: TaskKind
    target: str
    arguments: Json
    timeout_seconds: int | None
    due_ms: int
    claim: Lease | None
    takeovers: int = 0
    is_unknown: bool = False
    heartbeat_seconds: int | None = None
    credentials: str | None = None
    queued: Queued | None = None


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A wait for something outside: an event by business key, a person's answer, a callback, a
    child.

    `due_ms` is the time of its time-out, `heartbeat_due_ms` the time at which a heartbeat is
    missed. `target` is the activity's ARN, or the action whose end is awaited; `submitted` is the
    response of the call. `is_begun`: a poller has taken the activity's task. `poll_due_ms` is the
    time of the next poll of a job, None where the end is reported; `polls` counts the polls so far.
    `credentials` is the role of its call. `timeout_seconds` is an activity's: its time-out and its
    heartbeat count from the moment when a poller takes the task, so both dues are None before.
    """

    entry: int
    attempt: int
    kind: TaskKind
    arguments: Json
    since_ms: int
    due_ms: int | None
    heartbeat_seconds: int | None
    heartbeat_due_ms: int | None
    target: str
    submitted: Json = None
    is_begun: bool = False
    poll_due_ms: int | None = None
    polls: int = 0
    credentials: str | None = None
    timeout_seconds: int | None = None

    @property
    def event_name(self) -> str:
        return self.text("event")

    @property
    def event_key(self) -> str:
        return self.text("key")

    def text(self, name: str) -> str:
        """Return one of the arguments; "" when there is none of that name."""
        return str(self.arguments.get(name, "")) if isinstance(self.arguments, dict) else ""


@dataclass(frozen=True, slots=True)
class Timer:
    """The wait of a Wait state, until `due_ms`."""

    entry: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class Delay:
    """A Parallel or Map that failed and is tried again at `due_ms`."""

    entry: int
    due_ms: int


class Closing(TypedDict):
    """The reason why the open lanes of a Parallel or Map are cancelled, and the next step after
    them.

    "join": enough lanes have succeeded. "fail": a lane has failed with this error; the next event
    follows the event `previous`. "cancel": the frame that opened the lanes is cancelled itself.
    `undone`: something was undone in one of the ended lanes.
    """

    then: Literal["join", "fail", "cancel"]
    error: NotRequired[str | None]
    cause: NotRequired[str | None]
    previous: NotRequired[int]
    undone: NotRequired[bool]


#: "freeze": the timers and time-outs of a paused execution stand still. "run": they pass.
PauseTimers: TypeAlias = Literal["freeze", "run"]
PAUSE_TIMERS: Final[tuple[PauseTimers, ...]] = get_args(PauseTimers)


class CancelReason(TypedDict):
    """The reason why a frame is cancelled, as its undo sees it.

    `deadline` is the number of the block whose time is over: the frame unwinds to that block and no
    further. `outer` is the reason in force outside that block, when the block lies in a shielded
    part of a cancelled frame. `undone` are the numbers of the undos that have begun.
    """

    error: str
    cause: str
    deadline: NotRequired[int]
    outer: NotRequired[CancelReason]
    undone: NotRequired[Sequence[int]]


class OpenDeadline(NamedTuple):
    """A block's deadline, by its number in the program; `entry` is its timer's."""

    number: int
    entry: int
    due_ms: int
    seconds: int


class Lanes(NamedTuple):
    """The open branches of a Parallel or iterations of a Map. `results` by lane number.

    `items` is None for a Parallel: each of its branches gets `branch_input`. `needed` lanes must
    succeed (None: all that do not fail). Up to `tolerated` lanes may fail, and `failed` lanes have;
    the result of a failed lane is None. `after`: for each branch, the branches that must end first.
    """

    entry: int
    count: int  # type: ignore[assignment]  # of lanes; `tuple.count` is not used
    started: int
    concurrency: int
    items: Json
    branch_input: Json
    results: Mapping[int, Json]
    needed: int | None
    tolerated: int
    failed: int = 0
    after: tuple[tuple[int, ...], ...] = ()
    closing: Closing | None = None

    @property
    def succeeded(self) -> int:
        return len(self.results) - self.failed


@dataclass(frozen=True, slots=True)
class ChildExecutions:
    """A distributed Map: every item, or batch of items, is an execution of its own.

    `inputs` by lane number, `items` how many items are in each; `results` of the lanes that have
    ended. Lanes up to `started` without a result are open. `failures_max` counts items.
    """

    entry: int
    map_run_arn: str
    inputs: Sequence[Json]
    items: Sequence[int]
    concurrency: int
    failures_max: int
    started: int
    results: Mapping[int, ChildResult]

    @property
    def open_lanes(self) -> list[int]:
        return [lane for lane in range(self.started) if lane not in self.results]


class ChildResult(TypedDict):
    """The notice of a child's end, with the data of DescribeExecution. Times are UTC ms."""

    status: Status
    started_ms: int
    stopped_ms: int
    output: NotRequired[Json]
    error: NotRequired[str | None]
    cause: NotRequired[str | None]


#: A child, by the entry that it was begun for and its number there: the lane of a distributed Map,
#: or the attempt of a task.
ChildNumber: TypeAlias = tuple[int, int]

WaitingFor: TypeAlias = (
    Entered
    | Exited
    | FailedState
    | Admission
    | Attempt
    | Awaiting
    | Timer
    | Delay
    | Lanes
    | ChildExecutions
)


class Frame(NamedTuple):
    """One line of control: the root, a branch or an iteration.

    `previous` is the id of the branch's last event, `entry_previous` the id before the entry of the
    state; `retries` counts by retrier number. `deadlines` are those of the blocks around the
    frame's state. `cancelled` is the reason of its cancellation, None while it runs. `error` is the
    error with which the state failed last: it is set while the state is tried again.
    """

    id: str
    owner: str | None
    position: str
    input: Json
    variables: Mapping[str, Json]
    previous: int
    entry_previous: int
    entered_event: int
    entered_ms: int
    retries: Mapping[int, int]
    waiting: WaitingFor
    deadlines: tuple[OpenDeadline, ...] = ()
    cancelled: CancelReason | None = None
    error: str | None = None

    @property
    def lane(self) -> int:
        return int(self.id.rpartition(".")[2])


def lanes_of(frame: Frame) -> Lanes | None:
    """Return the lanes that the frame's state has open, or had when it failed."""
    waiting = frame.waiting
    if isinstance(waiting, FailedState):
        return waiting.lanes
    return waiting if isinstance(waiting, Lanes) else None


def is_undone(frame: Frame) -> bool:
    """The undo of the cancelled line has begun, in itself or in its lanes."""
    lanes = lanes_of(frame)
    closing = None if lanes is None else lanes.closing
    return bool(
        (closing and closing.get("undone")) or (frame.cancelled and frame.cancelled.get("undone"))
    )


class Stopping(TypedDict):
    """The end that the execution reaches after its undo: that of a stop, or of its own time-out.
    `by_parent`: its parent execution has stopped waiting, and no operator has stopped it.
    """

    status: Literal["ABORTED", "TIMED_OUT"]
    error: NotRequired[str]
    cause: NotRequired[str]
    by_parent: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator has paused the execution: it evaluates no state and begins nothing.

    `since_ms` is the time of the event `Paused`. `timers`: "freeze" moves every due by the paused
    time at the resume, "run" lets timers and time-outs pass during the pause. `by` is the
    operator's name as the client gave it, "" without one.
    """

    since_ms: int
    reason: str
    by: str
    timers: PauseTimers = "freeze"

    @property
    def is_frozen(self) -> bool:
        return self.timers == "freeze"


class ForkOrigin(TypedDict):
    """The execution that a fork began as a copy of: its id, the event with which it entered the
    state `step`, and that state.
    """

    run: str
    event: int
    step: str


#: The priority of an execution whose start gives none.
PRIORITY_DEFAULT: Final = 5
PRIORITY_LAST: Final = 9


class Execution(NamedTuple):
    """The state of one execution, folded from its log. Times are UTC ms.

    `next_entry` numbers waiting places, `last_event` the events that AWS has.

    `opened_at` is the sequence number of the record with which the watchdog row and the list entry
    began, `opened_ms` the time of that record. `opened_at` is None while the start message still
    guards the execution.

    `origin` is None for a workflow. `parent` is None when no other execution waits for this one.
    `redrives` counts the retries after an end. `resting` holds the frames of an execution that
    ended without success: a retry continues from them. `stopping` is the end that follows after the
    undo. `children` are the executions that this one has started, without a known end and without a
    stop (`core/waits.py`).

    `paused` is the pause in force; None in an execution that has ended. `priority` orders its
    attempts among those that wait at a gate: from 0, the first, to 9, the last.

    `renewed_event` is the last event before the execution went on as new, 0 before the first time.

    `migrated_from` is the definition that the last migration left, "" without one: a migration
    back leads there.

    `published` are the values that the workflow makes readable from outside, by name.

    `attributes` are the search attributes, by name. `notes` counts the changes of them since the
    execution was opened.

    `fork_of` is None unless the execution began as a copy of another one.

    `used_events` maps the ids of consumed, unexpired events to their expiry: an event is used at
    most once per execution.
    """

    run: str
    name: str | None
    workflow: str
    definition: str
    input: Json
    started_ms: int
    due_ms: int | None
    used_events: Mapping[str, int]
    frames: Mapping[str, Frame]
    last_event: int = 1
    status: Status = "RUNNING"
    stopped_ms: int | None = None
    output: Json = None
    error: str | None = None
    cause: str | None = None
    next_entry: int = 0
    opened_at: int | None = None
    opened_ms: int = 0
    last_control: str = ""
    origin: MachineOrigin | None = None
    parent: Parent | None = None
    redrives: int = 0
    resting: Mapping[str, Frame] = MappingProxyType({})
    stopping: Stopping | None = None
    children: frozenset[ChildNumber] = frozenset()
    paused: Pause | None = None
    priority: int = PRIORITY_DEFAULT
    fork_of: ForkOrigin | None = None
    published: Mapping[str, Json] = MappingProxyType({})
    renewed_event: int = 0
    migrated_from: str = ""
    attributes: Mapping[str, Attribute] = MappingProxyType({})
    notes: int = 0

    @property
    def is_ended(self) -> bool:
        return self.status != "RUNNING"

    @property
    def is_undone(self) -> bool:
        """True when the execution has ended and had begun to undo its work: it cannot continue.

        This holds for a lane too. The other lanes would begin again with it, and lanes that had
        succeeded would do their work twice.
        """
        return any(is_undone(frame) for frame in self.resting.values())

    @property
    def is_opened(self) -> bool:
        return self.opened_at is not None

    def frame_of(self, entry: int) -> Frame | None:
        """Return the frame whose waiting place the entry is, or None when it was closed."""
        for frame in self.frames.values():
            if getattr(frame.waiting, "entry", None) == entry:
                return frame
        return None

    def is_open(self, entry: int) -> bool:
        """Return True when a waiting place or a block's deadline has this entry number."""
        dues = (due.entry for frame in self.frames.values() for due in frame.deadlines)
        return entry in dues or self.frame_of(entry) is not None

    def with_frame(self, frame: Frame) -> Execution:
        return self._replace(frames={**self.frames, frame.id: frame})
