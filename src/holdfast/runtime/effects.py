"""Effects: the requests of a handler to the outside.

Handlers are generators: they yield one of these values and receive its result. The same generator
runs over boto3 (`aws.ports`), over models in memory (`holdfast_simulator.services`) and, in the
simulator, under a scheduler that kills, freezes and reorders at every `yield`.

Every effect that can fail may raise `ServiceFault` inside the handler. One of them is special:
`Doubt` says that a conditional put may or may not have been stored (time-out, lost answer). The
only right reaction is to read the key again (rule R6 in docs/reference/log.md).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast.asl.program import TaskKind
from holdfast.errors import ServiceFault
from holdfast.resources import EXECUTIONS_NAME, LIST_PARTITION, LIST_SORT

#: A stored item: flat, attribute name -> text, whole number or bytes.
Item: TypeAlias = Mapping[str, str | int | bytes]
TableName: TypeAlias = Literal["executions", "mail"]
QueueName: TypeAlias = Literal["work", "single", "starts"]
Handler: TypeAlias = Generator["Effect", Any, Any]
#: The identity of one task that a handler has begun: its entry and its attempt.
Ticket: TypeAlias = tuple[int, int]
#: A handler that returns nothing, and one that returns a JSON object.
NoResult: TypeAlias = Generator["Effect", Any, None]
JsonResult: TypeAlias = Generator["Effect", Any, dict[str, Any]]


class Doubt(ServiceFault):
    """A conditional put was sent and its answer never came: it may apply now, later or never."""

    def __init__(self, message: str) -> None:
        super().__init__("HF320", message, retry="now")


@dataclass(frozen=True, slots=True)
class Query:
    """Result: list[Item], strongly consistent, in sort-key order (descending when `reverse`).

    `after` (exclusive) and `until` (inclusive) bound the sort key; `begins_with` is for text keys.
    """

    table: TableName
    pk: str
    after: int | str | None = None
    until: int | str | None = None
    begins_with: str | None = None
    reverse: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryList:
    """Result: ListPage of the executions table's `list` index, newest first, eventually consistent.

    `partition` is a whole `lp` value. Only `resources.EXECUTIONS.index.projected`, the keys and the
    index keys come back. `before` (exclusive) is an `ls` value to page on from. `where`: what each
    entry must fulfil; the query then reads at most `limits.LIST_READ_MAX` entries.

    Of the table "mail" it reads whole items, in the order of its own sort key.
    """

    partition: str
    limit: int
    before: str | None = None
    where: tuple[Condition, ...] = ()
    table: TableName = EXECUTIONS_NAME


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the list. `read_to` is the key of the last entry that the query read, "" at the
    partition's end.
    """

    items: Sequence[Item]
    read_to: str


def list_page(query: QueryList, items: Sequence[Item], read_to: str) -> ListPage:
    """Return at most as many of the found items as the query wants; the others count as unread."""
    limit = query.limit
    if len(items) > limit:
        return ListPage(items[:limit], str(items[limit - 1][list_keys(query.table)[1]]))
    return ListPage(items, read_to)


def list_keys(table: TableName) -> tuple[str, str]:
    """Return the attributes by which a `QueryList` of the table selects and sorts."""
    return (LIST_PARTITION, LIST_SORT) if table == EXECUTIONS_NAME else ("pk", "sk")


@dataclass(frozen=True, slots=True)
class Together:
    """Result: list[ListPage], in the order of `queries`: reads that do not depend on each other.

    On AWS they are sent side by side, so that eight of them take as long as one.
    """

    queries: tuple[QueryList, ...]


@dataclass(frozen=True, slots=True)
class Get:
    """Result: Item | None, strongly consistent."""

    table: TableName
    pk: str
    sk: int | str


@dataclass(frozen=True, slots=True)
class GetMany:
    """Result: list[Item], the existing items among at most 100 keys, in any order, eventually
    consistent.
    """

    table: TableName
    keys: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class PutIfAbsent:
    """Result: None when stored, or the Item that is already there. Raises `Doubt` without an
    answer.

    Condition: `attribute_not_exists(pk)`. Never retried by the SDK.
    """

    table: TableName
    item: Item


@dataclass(frozen=True, slots=True)
class Put:
    """Result: None. Unconditional: only for items whose bytes are the same each time."""

    table: TableName
    item: Item


@dataclass(frozen=True, slots=True)
class Replace:
    """Result: True when stored. False when the stored item has another `rv` than `seen`, or is
    gone.

    For items that people change: `item["rv"]` is `seen` + 1. A lost answer is a ServiceFault.
    """

    table: TableName
    item: Item
    seen: int


#: How `Condition` compares the stored attribute with its value.
Test: TypeAlias = Literal["absent", "present", "=", "<", "<=", ">", "begins with", "contains"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one stored attribute. Every test but "absent" is false for an attribute that the
    item does not have, unless `or_absent`.
    """

    attribute: str
    test: Test
    value: str | int = 0
    or_absent: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Result: Updated. One conditional write of some attributes; it creates an absent item.

    `put` sets attributes, `add` adds to numbers (an absent one counts as 0), `remove` removes
    attributes. All of `where` must hold. The SDK may send the write again after a lost answer, so
    the change may be applied twice. The handler reads the item to learn whether its first write was
    stored.
    """

    table: TableName
    pk: str
    sk: int | str
    put: Mapping[str, str | int] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Updated:
    """The result of an `Update`. `item` is the item after the write. After a refused write it is
    the stored item, {} when there is none.
    """

    is_done: bool
    item: Item


@dataclass(frozen=True, slots=True)
class Delete:
    """Result: None, also when the item did not exist."""

    table: TableName
    pk: str
    sk: int | str


@dataclass(frozen=True, slots=True)
class Unlist:
    """Result: None. REMOVE lp, ls of a log record IF attribute_exists(lp): TTL may have
    taken it.
    """

    pk: str
    sk: int


@dataclass(frozen=True, slots=True)
class Extend:
    """Result: None. SET ttl of a name item IF it exists AND names `run`."""

    pk: str
    sk: str
    run: str
    ttl: int


@dataclass(frozen=True, slots=True)
class PutBlob:
    """Result: None. Idempotent: the key ends in the hash of the bytes."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class GetBlob:
    """Result: bytes. A missing blob is a ServiceFault."""

    key: str


@dataclass(frozen=True, slots=True)
class PutArchive:
    """Result: None. Stores an ended execution in the archive. A put that is repeated replaces the
    object by one with the same history.
    """

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class GetArchive:
    """Result: Archived | None, the last object whose key begins with `prefix`. None also in a stack
    without an archive.
    """

    prefix: str


@dataclass(frozen=True, slots=True)
class Archived:
    """An object of the archive. `place` is for people: a URL or a path."""

    place: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """One queue message. `body` is JSON; its `t` (tenant) becomes the message group id."""

    body: Mapping[str, Any]
    delay_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Result: None when every message is durable in the queue. Batches of ten."""

    messages: tuple[Message, ...]
    queue: QueueName = "work"


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """Result: None. SQS delivers the handler's message again after this many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class RunTask:
    """Result: TaskResult. Runs user code, or calls a service; never raises.

    `name` is the Task's `target`, `resource` its resource in the definition. `credentials` is the
    role that a state machine's definition names. `arns` are those of the state machine and of its
    execution, when there is one. `is_poll`: the call was made before and `submitted` is its
    response. Now the effect reads the state of its job; TaskPending says that the job still runs.
    `is_batch`: `arguments` is a list of the arguments of many attempts, and the output a list of
    {"output"} or {"error", "cause"}.
    """

    name: str
    kind: TaskKind
    arguments: Any
    tenant: str
    run: str
    run_name: str | None
    workflow: str
    entry: int
    attempt: int
    deadline_ms: int
    credentials: str | None = None
    arns: tuple[str, ...] = ()
    resource: str = ""
    is_poll: bool = False
    submitted: Any = None
    #: The longest time between two heartbeats of a task that this process runs.
    heartbeat_seconds: int | None = None
    is_batch: bool = False


@dataclass(frozen=True, slots=True)
class TaskSucceeded:
    output: Any


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The task has failed. `traceback`: the author's frames, for an exception in the author's
    code.
    """

    error: str | None
    cause: str | None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPending:
    """The polled job has not ended."""


@dataclass(frozen=True, slots=True)
class TaskThrottled:
    """The dependency asked to be called later, in `retry_after_ms`."""

    retry_after_ms: int
    cause: str | None
    traceback: str | None = None


TaskResult: TypeAlias = TaskSucceeded | TaskFailed | TaskPending | TaskThrottled


@dataclass(frozen=True, slots=True)
class Publish:
    """Result: None. One event on the account's default bus; `at_ms` is its time."""

    source: str
    detail_type: str
    detail: Mapping[str, Any]
    resources: tuple[str, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Result: None. Starts `effect`; its result comes with a later `Finished`, under `ticket`."""

    ticket: tuple[int, int]
    effect: RunTask


@dataclass(frozen=True, slots=True)
class Finished:
    """Result: list[(ticket, result)]: everything begun that has finished.

    Waits for at least one, but not past `until_ms` of this host's clock; then the list is empty.
    """

    until_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Result: None, after this time has passed.

    For a caller that waits for an answer, and for the seconds until a limit's next token.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Clock:
    """Result: int, milliseconds since the epoch, from this host's clock.

    `is_for_id`: the time becomes part of the id of a control message or a fork. A command that is
    given again gets the time of the first, so that the id is the same (`commands/once.py`).
    """

    is_for_id: bool = False


@dataclass(frozen=True, slots=True)
class WriteDeadline:
    """Result: int, milliseconds since the epoch: past it this invocation may write nothing more.

    The end of the invocation or of its message's visibility, whichever comes first, less a margin.
    """


@dataclass(frozen=True, slots=True)
class Deadline:
    """Result: int, milliseconds since the epoch: the end of this invocation, less a margin.

    Later than `WriteDeadline`, which moves on with the message's visibility while that is kept.
    """


class Labels(NamedTuple):
    """The subject of a measurement; "" where a label does not apply. All are names from code: of a
    workflow or a state machine of the API, of a task, an error's class, a kind of wait and its
    target, a limit, an operator's command. Values of executions are never labels.
    """

    workflow: str = ""
    state_machine: str = ""
    task: str = ""
    error: str = ""
    wait: str = ""
    target: str = ""
    limit: str = ""
    action: str = ""


NO_LABELS: Final = Labels()


@dataclass(frozen=True, slots=True)
class Measure:
    """Result: None. Adds `value` to the metric `name`. A lost measurement affects no execution."""

    name: str
    value: float
    unit: Literal["Count", "Seconds", "Bytes"] = "Count"
    labels: Labels = NO_LABELS


Effect: TypeAlias = (
    Query
    | QueryList
    | Together
    | Get
    | GetMany
    | PutIfAbsent
    | Put
    | Replace
    | Update
    | Delete
    | Unlist
    | Extend
    | PutBlob
    | GetBlob
    | PutArchive
    | GetArchive
    | Send
    | SetVisibility
    | RunTask
    | Publish
    | Begin
    | Finished
    | Pause
    | Clock
    | WriteDeadline
    | Deadline
    | Measure
)
