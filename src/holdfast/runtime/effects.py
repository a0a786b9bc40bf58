"""Effects: the requests of a handler to the outside.

Handlers are generators: they yield one of these values and receive its result, which the docstring
of each class names. The same generator runs with boto3 (`aws.ports`), with models in memory
(`holdfast_simulator.services`) and, in the simulator, under a scheduler that crashes, suspends and
reorders handlers at every `yield`.

Every effect that can fail may raise `ServiceFault` inside the handler. `Doubt` is a special case: a
conditional put may or may not have been stored (time-out, lost answer). The handler must then read
the key again (rule R6 in docs/reference/log.md).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast.asl.program import TaskKind
from holdfast.errors import ServiceFault
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import LIST_READ_MAX
from holdfast.resources import EXECUTIONS_NAME, LIST_PARTITION, LIST_SORT

#: A stored item: a flat mapping from attribute names to texts, whole numbers or bytes.
Item: TypeAlias = Mapping[str, str | int | bytes]
TableName: TypeAlias = Literal["executions", "mail"]
QueueName: TypeAlias = Literal["work", "single", "starts"]
Handler: TypeAlias = Generator["Effect", Any, Any]
#: Identifies one task that a handler has begun: its entry number and its attempt.
Ticket: TypeAlias = tuple[int, int]
#: A handler without a result.
NoResult: TypeAlias = Generator["Effect", Any, None]
#: A handler whose result is a JSON object.
JsonResult: TypeAlias = Generator["Effect", Any, dict[str, Any]]


class Doubt(ServiceFault):
    """A conditional put was sent and got no answer: it may be stored now, later or never."""

    def __init__(self, message: str) -> None:
        super().__init__("HF320", message, retry="now")


@dataclass(frozen=True, slots=True)
class Query:
    """Result: list[Item], in the order of the sort key (descending when `reverse`). With
    `is_strong` it is strongly consistent. Without, it costs half, and may lack the newest writes.

    `after` (exclusive) and `until` (inclusive) bound the sort key; `begins_with` is for sort keys
    that are texts.
    """

    table: TableName
    pk: str
    after: int | str | None = None
    until: int | str | None = None
    begins_with: str | None = None
    reverse: bool = False
    limit: int | None = None
    is_strong: bool = True


@dataclass(frozen=True, slots=True)
class QueryList:
    """Result: ListPage of the index `list` of the executions table, newest first, eventually
    consistent.

    `partition` is a whole `lp` value. The items have only the attributes in
    `resources.EXECUTIONS.index.projected`, the keys and the index keys. `before` (exclusive) is the
    `ls` value at which the next page begins. `where` are conditions for each entry; with them the
    query reads at most `reads` entries.

    In the table "mail" it reads whole items, in the order of the table's own sort key.
    """

    partition: str
    limit: int
    before: str | None = None
    where: tuple[Condition, ...] = ()
    table: TableName = EXECUTIONS_NAME
    reads: int = LIST_READ_MAX


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the list. `read_to` is the key of the last entry that the query read, "" when it
    has read the whole partition.
    """

    items: Sequence[Item]
    read_to: str


def list_page(query: QueryList, items: Sequence[Item], read_to: str) -> ListPage:
    """Return at most as many of the found items as the query wants. The others count as not
    read.
    """
    limit = query.limit
    if len(items) > limit:
        return ListPage(items[:limit], str(items[limit - 1][list_keys(query.table)[1]]))
    return ListPage(items, read_to)


def list_keys(table: TableName) -> tuple[str, str]:
    """Return the two attributes by which a `QueryList` of the table selects and sorts."""
    return (LIST_PARTITION, LIST_SORT) if table == EXECUTIONS_NAME else ("pk", "sk")


@dataclass(frozen=True, slots=True)
class Together:
    """Result: list[ListPage], in the order of `queries`. The reads do not depend on each other.

    On AWS they run in parallel, so that eight of them take as long as one.
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
    """Result: list[Item]: those of at most 100 keys that exist, in any order, eventually
    consistent.
    """

    table: TableName
    keys: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class PutIfAbsent:
    """Result: None when stored, or the Item that already exists. Raises `Doubt` when no answer
    came.

    Condition: `attribute_not_exists(pk)`. The SDK never retries it, because a retry of a stored put
    would look like a refused one.
    """

    table: TableName
    item: Item


@dataclass(frozen=True, slots=True)
class Put:
    """Result: None. Unconditional. Only for items whose bytes are the same each time they are
    written.
    """

    table: TableName
    item: Item


@dataclass(frozen=True, slots=True)
class Replace:
    """Result: True when stored. False when the stored item is gone or has another `rv` than `seen`.

    For items that people change: `item["rv"]` is `seen` + 1. Without an answer it raises
    ServiceFault.
    """

    table: TableName
    item: Item
    seen: int


#: The comparison that a `Condition` makes between the stored attribute and its value.
Test: TypeAlias = Literal["absent", "present", "=", "<", "<=", ">", "begins with", "contains"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of one stored attribute. If the item does not have the attribute, only the test
    "absent" is true, and every test with `or_absent`.
    """

    attribute: str
    test: Test
    value: str | int = 0
    or_absent: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Result: Updated. One conditional write of some attributes; it creates an absent item.

    `put` sets attributes, `add` adds to numbers (an absent one counts as 0), `remove` removes
    attributes. All conditions in `where` must be true. The SDK may send the write again after a
    lost answer, so the change may be applied twice. The handler reads the item to find out whether
    its first write was stored.
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
    """The result of an `Update`. `item` is the item after the write; after a refused write the
    stored item, {} when there is none.
    """

    is_done: bool
    item: Item


@dataclass(frozen=True, slots=True)
class Delete:
    """Result: None, also when the item did not exist, or when a condition in `where` is false."""

    table: TableName
    pk: str
    sk: int | str
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Unlist:
    """Result: None. Removes the attributes lp and ls of a log record, unless TTL has deleted the
    record.
    """

    pk: str
    sk: int


@dataclass(frozen=True, slots=True)
class Extend:
    """Result: None. Sets the `ttl` of the item of a name, if the item exists and names the
    execution `run`.
    """

    pk: str
    sk: str
    run: str
    ttl: int


@dataclass(frozen=True, slots=True)
class PutBlob:
    """Result: None. It can be repeated: the key ends in the hash of the bytes."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class GetBlob:
    """Result: bytes. Raises ServiceFault when the blob is missing."""

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
    """Result: Archived | None, the last object whose key begins with `prefix` and is not greater
    than `until`, if that is given. None also in a stack without an archive.
    """

    prefix: str
    until: str = ""

    def last_of(self, keys: Iterable[str]) -> str | None:
        """Return the key of that object. `keys` begin with the prefix."""
        return max((key for key in keys if not self.until or key <= self.until), default=None)


@dataclass(frozen=True, slots=True)
class Archived:
    """An object of the archive. `place` is for people: a URL or a path."""

    place: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """One queue message. `body` is JSON; its field `t` (the tenant) becomes the message group
    id.
    """

    body: Mapping[str, Any]
    delay_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Result: None when the queue has stored every message. They are sent in batches of ten."""

    messages: tuple[Message, ...]
    queue: QueueName = "work"


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """Result: None. SQS delivers this handler's message again after this many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class RunTask:
    """Result: TaskResult. Runs user code, or calls a service; never raises.

    * `name` is the Task's `target`, `resource` its resource in the definition.
    * `credentials` is the role that the definition of a state machine names.
    * `arns` are those of the state machine and of its execution, when there is one.
    * `is_poll`: the call was made earlier, and `submitted` is its response. The effect reads the
      state of the job that the call started; TaskPending says that the job still runs.
    * `trace`: the result of an HTTP task has the request and its response, for TestState. `PUBLIC`
      leaves out what a connection has added to the request.
    * `is_batch`: `arguments` is a list with the arguments of many attempts, and the output is a
      list of {"output"} or {"error", "cause"}.
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
    #: The longest time that may pass between two heartbeats of a task that runs in this process.
    heartbeat_seconds: int | None = None
    is_batch: bool = False
    #: True when the task has a time-out: the engine stops waiting for it at `deadline_ms`.
    is_timed: bool = False
    #: The progress that an earlier attempt has reported, for an attempt in another process.
    progress: Any = None
    trace: Literal["PUBLIC", "ALL"] | None = None


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """The request of an HTTP task, and its response. `status` is None when none came."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: str | None
    status: int | None
    response_headers: Mapping[str, str]
    response_body: str


@dataclass(frozen=True, slots=True)
class TaskSucceeded:
    output: Any
    exchange: HttpExchange | None = None


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The task has failed. `traceback` holds the frames of the author's code, if that code
    raised.
    """

    error: str | None
    cause: str | None
    traceback: str | None = None
    exchange: HttpExchange | None = None


@dataclass(frozen=True, slots=True)
class TaskPending:
    """The job that was polled has not ended."""


@dataclass(frozen=True, slots=True)
class TaskThrottled:
    """The dependency (the called service) asked to be called later, after `retry_after_ms`."""

    retry_after_ms: int
    cause: str | None
    traceback: str | None = None


#: The result of a function that the user wrote. `TaskPending` is not among these results, because
#: only a job of an AWS service can be pending.
OwnResult: TypeAlias = TaskSucceeded | TaskFailed | TaskThrottled
TaskResult: TypeAlias = OwnResult | TaskPending
#: The error of a task when a secret could not be encrypted or decrypted.
SECRET_UNAVAILABLE: Final = "Holdfast.SecretUnavailable"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Publish:
    """Result: None. Puts one event on the default event bus of the account; `at_ms` is its time."""

    source: str
    detail_type: str
    detail: Mapping[str, Any]
    resources: tuple[str, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Result: None. Begins `effect` in the background. A later `Finished` returns its result, under
    `ticket`.
    """

    ticket: tuple[int, int]
    effect: RunTask


@dataclass(frozen=True, slots=True)
class Finished:
    """Result: list[(ticket, result)]: everything begun with `Begin` that has finished.

    Waits for at least one result, at most until `until_ms` by the clock of this host; then the list
    is empty.
    """

    until_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Result: None, after this time has passed.

    For a caller that waits for an answer, and for a worker that waits a few seconds for the next
    token of a rate limit.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Clock:
    """Result: int, the time of this host's clock in ms since the epoch.

    `is_for_id`: the time becomes part of the id of a control message or a fork. If the command is
    repeated, the result is the time of its first try, so that the id is the same
    (`commands/once.py`).
    """

    is_for_id: bool = False


@dataclass(frozen=True, slots=True)
class WriteDeadline:
    """Result: int, ms since the epoch. After this time the invocation must not write anything.

    It is the end of the invocation, or the end of the message's visibility if that comes first,
    minus a margin.
    """


@dataclass(frozen=True, slots=True)
class Deadline:
    """Result: int, ms since the epoch: the end of this invocation, minus a margin.

    It does not depend on the visibility of the message, which is extended while the invocation
    runs.
    """


class Labels(NamedTuple):
    """The labels of a measurement; "" where a label does not apply.

    All labels are names from code: of a workflow or a state machine, a task, an error's class, a
    kind of wait and its target, a limit, an operator's command. Values of executions are never
    labels, because they may be private and would create too many time series.
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
    """Result: None. Adds `value` to the metric `name`. If a measurement is lost, no execution is
    affected.
    """

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
