"""The state of one execution: a tree of frames. It is immutable, and is stored as JSON.

A frame is one line of control: the root, a branch of a Parallel, or an iteration of a Map. It has a
position (a state of the definition), variables, data (`input`), and one thing that it waits for.
The frames are stored flat, by id: "" is the root, "<entry>.<lane>" a branch or iteration. `entry`
is the number of the waiting place of its Parallel or Map, `lane` counts within it.

`Execution` is what folding the history gives, and contains nothing else. `Execution`, `Frame` and
`Lanes` change with every event. They are named tuples, because copying a frozen dataclass takes six
times as long, which would be half of the time of a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from holdfast.core.results import Results
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import CLOCK_ERROR_MS

ROOT: Final = ""
#: The argument of a wait for an event that says whether it uses kept events. Absent: it does.
KEPT: Final = "kept"

#: The kinds of tasks that a worker begins with a call. A task of another kind only waits for an
#: answer.
ATTEMPTED: Final[frozenset[TaskKind]] = frozenset(
    {"task", "pure", "lambda", "service", "callback", "sync", "command"}
)
_NESTED_EXECUTION: Final = "states:startExecution"
#: The kinds of attempts whose answer arrives after the worker's call has ended.
ANSWERED_LATER: Final[frozenset[TaskKind]] = frozenset({"callback", "sync"})


def is_told(target: str) -> bool:
    """Return True when a "sync" task starts an execution, whose end is reported to it; False when
    it starts a job, which is polled.
    """
    return target == _NESTED_EXECUTION or target.startswith(CHILD_WORKFLOW)


Status: TypeAlias = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class Parent(TypedDict):
    """The waiting place of the parent execution, to which this execution reports its end.

    `lane` is set for a child of a distributed Map, and absent for an execution that a task has
    started. `as_json`: the result is reported as JSON (`.sync:2`), not as text. `round`: the
    redrive of the map run that has started or redriven the child, absent before the first one.
    """

    run: str
    entry: int
    attempt: int
    lane: NotRequired[int]
    as_json: NotRequired[bool]
    round: NotRequired[int]


class Attribute(NamedTuple):
    """The type and the value of a search attribute (`core/attributes.py`)."""

    kind: AttributeKind
    value: str | int | bool


class LogSetting(TypedDict):
    """Where and what an execution logs: the name of the log group, the level ("ALL", "ERROR",
    "FATAL"), and whether log events contain data.
    """

    group: str
    level: str
    has_data: bool


class MachineOrigin(TypedDict):
    """The state machine that an execution belongs to, with the data that the Step Functions API
    shows.

    `start_at` is set for a child of a distributed Map: the first state of the Map's item processor.
    `log` is set when the machine had a log at the start of the execution. `has_history_limit`: the
    execution ends at AWS's 25,000 events. `trace_header` is that of the request that started it.
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
    has_history_limit: NotRequired[bool]
    trace_header: NotRequired[str]
    log: NotRequired[LogSetting]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to run an attempt. The lease prevents that two workers do the work;
    only the log prevents that two results count.

    `message` is the id of the queue message that the owner processes, `receive_count` the number of
    its delivery. After `until_ms` another worker may take the attempt over.
    """

    owner: str
    message: str
    receive_count: int
    until_ms: int


#: The prefix of the names of gates at which batch tasks wait. No limit has a name with this prefix.
BATCH_PREFIX: Final = "batch:"


@dataclass(frozen=True, slots=True)
class Queued:
    """The place of an attempt that waits at a gate (a limit) until it may begin.

    `gate` is the gate's id, `since_ms` the time at which the wait began. `fair` is the text by
    which the limit takes turns, "" without one. `kept` are permits that the attempt holds while it
    waits: pairs of gate and owner. An attempt that holds permits goes first. Otherwise two
    attempts, each holding a permit that the other needs, could wait for each other for ever.
    """

    gate: str
    since_ms: int
    fair: str = ""
    kept: tuple[tuple[str, str], ...] = ()
    is_front: bool = False

    @property
    def is_batch(self) -> bool:
        """Return True when the attempt waits to run in a batch. Its result then arrives as an
        answer.
        """
        return self.gate.startswith(BATCH_PREFIX)


@dataclass(frozen=True, slots=True)
class Admission:
    """The wait of an execution that may not begin yet, because the limit of its workflow is
    reached.
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
    """The state failed. A later event of the same record retries it, catches the error, or fails
    the owner.

    `entry` and `attempt` are those of the failed task; None and 0 when the state is no task.
    `lanes` are those of a Parallel or Map, `children` those of a distributed Map: if the execution
    ends with this failure, a redrive continues them.
    """

    entry: int | None
    attempt: int
    lanes: Lanes | None = None
    children: ChildExecutions | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task that a worker runs. `attempt` counts from 1; `due_ms` is the earliest time of its
    begin.

    * `takeovers`: how many owners were lost, so that another worker took the attempt over.
    * `is_unknown`: a worker without the task's function received it. The execution waits for a
      worker that has the function.
    * `heartbeat_seconds`: for a call that is answered later, counted from the end of the call.
    * `credentials`: the role that the call uses.
    * `queued`: a limit refused the attempt. It has no lease and waits for its turn.
    * `polls`: how often the task has returned no value, the last time at `polled_ms`. The attempt
      is the next poll.
    * `children`: those of the distributed Map whose results the attempt writes, without inputs and
      results, which `arguments` has.
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
    polls: int = 0
    polled_ms: int | None = None
    children: ChildExecutions | None = None


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A wait for something outside: an event by business key, a person's answer, a callback, the
    end of a child execution or a job.

    * `due_ms`: when the time-out passes. `heartbeat_due_ms`: when a heartbeat counts as missed.
    * `target`: the activity's ARN, or the action whose end is awaited.
    * `submitted`: the response to the call that began the action. `credentials`: the call's role.
    * `is_begun`: a poller has taken the activity's task.
    * `poll_due_ms`: the next poll of a job; None where the end is reported. `polls` counts the
      polls.
    * `timeout_seconds`: of an activity. Its time-out and its heartbeat count from the moment when a
      poller takes the task; before that, both due times are None.
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

    @property
    def takes_kept_events(self) -> bool:
        """Return False when the wait uses no event that was stored before its execution started."""
        return not (isinstance(self.arguments, dict) and self.arguments.get(KEPT) is False)

    def text(self, name: str) -> str:
        """Return the argument of that name as text; "" when there is none."""
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
    """The reason why the open lanes of a Parallel or Map are cancelled, and what follows after
    them.

    `then` is "join" when enough lanes have succeeded; "fail" when a lane has failed with this
    error, where the next event follows the event `previous`; and "cancel" when the frame that
    started the lanes is cancelled itself. `undone`: an ended lane has undone something.
    """

    then: Literal["join", "fail", "cancel"]
    error: NotRequired[str | None]
    cause: NotRequired[str | None]
    previous: NotRequired[int]
    undone: NotRequired[bool]


#: "freeze": the timers and time-outs of a paused execution stop, and continue at the resume. "run":
#: they continue during the pause.
PauseTimers: TypeAlias = Literal["freeze", "run"]
PAUSE_TIMERS: Final[tuple[PauseTimers, ...]] = get_args(PauseTimers)


class CancelReason(TypedDict):
    """The reason why a frame is cancelled, as its undo steps receive it.

    `deadline` is the number of the block whose time is over: the frame undoes its work up to that
    block and no further. `outer` is a second reason, for a part outside of that block: it waits
    because the block lies in a shielded part. `undone` are the numbers of the undos that have
    begun. `entry` is the next entry number at the time of the cancellation.
    """

    error: str
    cause: str
    deadline: NotRequired[int]
    outer: NotRequired[CancelReason]
    undone: NotRequired[Sequence[int]]
    entry: NotRequired[int]


class OpenDeadline(NamedTuple):
    """The deadline of a block. `number` is the block's number in the program, `entry` that of its
    timer.
    """

    number: int
    entry: int
    due_ms: int
    seconds: int


class Lanes(NamedTuple):
    """The open branches of a Parallel or iterations of a Map. `results` maps lane numbers to
    results.

    `items` is None for a Parallel: each of its branches gets `branch_input`. `needed` lanes must
    succeed (None: all that do not fail). Up to `tolerated` lanes may fail; `failed` counts those
    that have failed, and their results are None. `after` gives for each branch the branches that
    must end before it starts.
    """

    entry: int
    count: int  # type: ignore[assignment]  # of lanes; `tuple.count` is not used
    started: int
    concurrency: int
    items: Json
    branch_input: Json
    results: Results[Json]
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
    """A distributed Map: every item, or batch of items, runs as a child execution.

    `inputs` are by lane number; `items` says how many items are in each. `results` are those of the
    lanes that have ended. Lanes up to `started` that have no result are running. `failures_max`
    counts items, not children; it follows from `count` and `percentage`.

    `redrives` says how often the map run was redriven, the last time at `redriven_ms`. The children
    below `begun` ran before the last redrive, so they are redriven, and not started. `held` are
    those of them that wait for their redrive, because enough children run.
    """

    entry: int
    map_run_arn: str
    inputs: Sequence[Json]
    items: Sequence[int]
    concurrency: int
    failures_max: int
    started: int
    results: Results[ChildResult]
    count: int | None = None
    percentage: float | None = None
    redrives: int = 0
    redriven_ms: int = 0
    begun: int = 0
    held: tuple[int, ...] = ()

    def is_open(self, lane: int) -> bool:
        """Return True when the child runs, or is to run now."""
        if lane >= self.started or lane in self.results:
            return False
        # `held` ascends, and children leave it at its front. So each child from its first one on
        # that has begun and has no result is in it.
        return not (self.held and self.held[0] <= lane < self.begun)

    @property
    def open_lanes(self) -> list[int]:
        """Return each lane that is open. This looks at each lane that has started. The work of a
        worker for one child uses `waits.open_lanes` instead, whose cost does not grow.
        """
        return [lane for lane in range(self.started) if self.is_open(lane)]


class ChildResult(TypedDict):
    """The notice of a child execution's end, with the fields of DescribeExecution. Times are UTC
    ms.
    """

    status: Status
    started_ms: int
    stopped_ms: int
    output: NotRequired[Json]
    error: NotRequired[str | None]
    cause: NotRequired[str | None]


#: Identifies a child execution by two numbers: the entry number of the state that started it, and
#: either the lane of a distributed Map or the attempt of a task.
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

    * `previous`: the id of the last event of this line; the next event follows it.
    * `entry_previous`: the id of the event before the one that entered the state.
    * `retries`: how often each retrier was used, by its number.
    * `deadlines`: those of the blocks around the state.
    * `cancelled`: the reason of the cancellation; None while the line is not cancelled.
    * `error`: the last error of the state, while the state is tried again.
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
    """Return the lanes that the frame's state has open, or had open when it failed."""
    waiting = frame.waiting
    if isinstance(waiting, FailedState):
        return waiting.lanes
    return waiting if isinstance(waiting, Lanes) else None


def is_undone(frame: Frame) -> bool:
    """Return True when the frame, or a lane below it, has begun to undo its work."""
    lanes = lanes_of(frame)
    closing = None if lanes is None else lanes.closing
    return bool(
        (closing and closing.get("undone")) or (frame.cancelled and frame.cancelled.get("undone"))
    )


class Stopping(TypedDict):
    """The final status of an execution that is undoing its work, after a stop or its own time-out.
    `by_parent`: the stop came from a parent that has stopped waiting, and not from an operator.
    """

    status: Literal["ABORTED", "TIMED_OUT"]
    error: NotRequired[str]
    cause: NotRequired[str]
    by_parent: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator has paused the execution: it evaluates no state and begins nothing.

    `since_ms` is the time of the event `Paused`. `timers`: with "freeze" the resume moves every due
    time by the paused time; with "run" timers and time-outs pass during the pause. `by` is the
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
    """The execution that a fork is a copy of: its id, the event that entered the state `step`, and
    that state's name.
    """

    run: str
    event: int
    step: str


#: The priority of an execution whose start gives none.
PRIORITY_DEFAULT: Final = 5
PRIORITY_LAST: Final = 9


class Execution(NamedTuple):
    """The state of one execution, folded from its log. Times are UTC ms.

    * `next_entry`: the number of the next waiting place. `last_event`: the last id of an AWS event.
    * `opened_at`: the sequence number of the record from which the execution has a watchdog row and
      a list entry; None before, while the start message protects it. `opened_ms`: the record's
      time.
    * `origin`: None for a workflow. `parent`: None when no other execution waits for this one.
    * `redrives`: the number of continuations after an end. `resting`: the frames of an execution
      that ended without success, from which a retry continues.
    * `stopping`: the end that follows after the undo.
    * `children`: the executions that this one has started, and of which neither an end is known nor
      a stop was sent (`core/waits.py`).
    * `paused`: the present pause; None in an execution that has ended.
    * `priority`: orders its attempts that wait at a gate, from 0 (first) to 9 (last).
    * `renewed_event`: the last event before the execution continued as new, 0 if it never did.
    * `migrated_from`: the definition before the last migration, "" without one. A migration back
      leads to it.
    * `published`: the values that the workflow lets others read, by name.
    * `attributes`: the search attributes, by name. `notes` counts their changes since `opened_at`.
    * `fork_of`: None unless the execution began as a copy of another one.
    * `used_events`: the ids of events that were used, with the time at which each event expires. An
      event is used at most once in an execution.
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

        An undo in a single lane counts, too. A redrive would start that lane's siblings again, and
        the ones that had succeeded would do their work twice.
        """
        return any(is_undone(frame) for frame in self.resting.values())

    @property
    def is_opened(self) -> bool:
        return self.opened_at is not None

    def frame_of(self, entry: int) -> Frame | None:
        """Return the frame that waits under this entry number; None when that wait has ended."""
        for frame in self.frames.values():
            if getattr(frame.waiting, "entry", None) == entry:
                return frame
        return None

    def is_open(self, entry: int) -> bool:
        """Return True when a wait, or the deadline of a block, has this entry number."""
        dues = (due.entry for frame in self.frames.values() for due in frame.deadlines)
        return entry in dues or self.frame_of(entry) is not None

    def takes_event_of(self, awaiting: Awaiting, stored_ms: int) -> bool:
        """Return True when the wait may use an event that was stored at that time."""
        return stored_ms >= self.takes_events_since_ms(awaiting)

    def awaits_event(self, name: str, key: str, stored_ms: int | None = None) -> bool:
        """Return True when the execution waits for an event of the name and key that was stored at
        that time. None: at any time.
        """
        return any(
            isinstance(wait := frame.waiting, Awaiting)
            and wait.kind == "event"
            and (wait.event_name, wait.event_key) == (name, key)
            and (stored_ms is None or self.takes_event_of(wait, stored_ms))
            for frame in self.frames.values()
        )

    def takes_events_since_ms(self, awaiting: Awaiting) -> int:
        """Return the earliest time at which an event for the wait may be stored.

        The clock of the host that stored the event, and that of the host that accepted the start,
        may each be wrong by `CLOCK_ERROR_MS`. So an event that seems to be that much older than
        the execution still counts. Otherwise an event that was sent after the start, such as a
        cancellation, could be lost.
        """
        return 0 if awaiting.takes_kept_events else self.started_ms - 2 * CLOCK_ERROR_MS

    def with_frame(self, frame: Frame) -> Execution:
        return self._replace(frames={**self.frames, frame.id: frame})
