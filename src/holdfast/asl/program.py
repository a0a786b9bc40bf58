"""A program: one ASL definition, parsed, checked and compiled once.

State names are unique in a whole definition (ASL requires it), so one flat mapping holds the states
of every branch. A branch or an item processor is identified by the name of its first state.

A program does not depend on a query language. The fields of its states are compiled to templates:
`arguments` gives the data that a state works with, `output` its output, `assign` its variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from holdfast.asl.template import Template
from holdfast.lazy_dataclass import dataclass

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Retrier:
    """One rule of a Retry. `attempts_max` counts the retries, without the first attempt. With
    `delay_seconds_max` None the delay has no upper bound. `delays` are those of the retries in
    seconds, in place of interval and rate; further retries have the last one.
    """

    errors: tuple[str, ...]
    interval_seconds: int
    attempts_max: int
    backoff_rate: float
    delay_seconds_max: int | None
    has_full_jitter: bool
    delays: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Catcher:
    errors: tuple[str, ...]
    next: str
    assign: Template | None
    output: Template | None


#: The types of search attributes. The value of a datetime is a text in RFC 3339.
AttributeKind: TypeAlias = Literal["str", "int", "bool", "datetime"]
ATTRIBUTE_KINDS: Final[tuple[AttributeKind, ...]] = get_args(AttributeKind)


@dataclass(frozen=True, slots=True)
class PassState:
    """A Pass state. `result` is evaluated once and bound, when both Assign and the output use it.

    `publish` gives an object: the values that others may read, by name. `note` gives the search
    attributes, by name: `{"customer": {"str": "C-17"}}`.
    """

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    result: Template | None = None
    publish: Template | None = None
    note: Template | None = None


@dataclass(frozen=True, slots=True)
class SucceedState:
    name: str
    output: Template | None


@dataclass(frozen=True, slots=True)
class FailState:
    name: str
    error: Template | None
    cause: Template | None


@dataclass(frozen=True, slots=True)
class WaitState:
    """A Wait state. Exactly one of `seconds` and `timestamp` is set."""

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    seconds: Template | None
    timestamp: Template | None


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    condition: Template
    next: str
    assign: Template | None
    output: Template | None


@dataclass(frozen=True, slots=True)
class ChoiceState:
    """A Choice state. `assign` and `output` are those of the Default; each rule has its own."""

    name: str
    rules: tuple[ChoiceRule, ...]
    default: str | None
    assign: Template | None
    output: Template | None


#: The kinds of work that a Task requests:
#: * "task", "pure": a registered function.
#: * "event": an event by business key. "ask": the answer of a person. "token": an answer with the
#:   callback token.
#: * "lambda": a Lambda function by its ARN. "service": one call of a service.
#: * "callback": a call, and then the answer with the token that the call has passed on.
#: * "sync": a call, and then the end of the job or execution that it has started.
#: * "activity": work that a poller takes.
#: * "read", "write": the reading of items and the writing of results of a distributed Map. A
#:   definition does not contain them as a Task.
TaskKind: TypeAlias = Literal[
    "task",
    "pure",
    "event",
    "ask",
    "token",
    "lambda",
    "service",
    "callback",
    "sync",
    "command",
    "activity",
    "read",
    "write",
]


@dataclass(frozen=True, slots=True)
class PollRule:
    """When a task that returned null is called again: after `seconds`, then each time `backoff`
    times later, at most `seconds_max`.

    An extension of ASL.
    """

    seconds: int
    backoff: float
    seconds_max: int


@dataclass(frozen=True, slots=True)
class TaskState:
    """A Task state. `target` depends on the kind: the function's name or its ARN, the service's
    action ("sqs:sendMessage", "aws-sdk:s3:getObject"), the activity's ARN or
    "holdfast:pool:<name>", or the called "workflow:<name>"; for other kinds it is empty.
    `credentials` gives {"RoleArn": …}. `poll`: the task is called until it returns a value.
    `is_at_most_once`: no attempt starts the function twice.
    """

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    resource: str
    kind: TaskKind
    target: str
    arguments: Template | None
    credentials: Template | None
    timeout_seconds: Template | None
    heartbeat_seconds: Template | None
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]
    poll: PollRule | None = None
    is_at_most_once: bool = False


@dataclass(frozen=True, slots=True)
class Quorum:
    """The bounds of a Parallel or Map: how many branches or iterations must succeed (None: all that
    do not fail), and how many may fail (None: none).

    With `returns_errors` the state does not fail because of them: the result has the error of each
    that failed, and one of its own for each that did not end. It is an extension of ASL, like
    `after` of a Parallel.
    """

    needed: Template | None
    tolerated: Template | None
    returns_errors: bool = False


@dataclass(frozen=True, slots=True)
class ParallelState:
    """A Parallel state. `after` gives for each branch the branches that must end before it starts;
    when it is empty, all start at once.
    """

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    arguments: Template | None
    branches: tuple[str, ...]
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]
    quorum: Quorum | None = None
    after: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ItemReader:
    """The source of a distributed Map's items: "s3:getObject", "s3:listObjectsV2".

    `config` is the ReaderConfig with its texts and paths evaluated: InputType, MaxItems,
    CSVHeaderLocation, CSVHeaders, CSVDelimiter, ItemsPointer, ManifestType.
    """

    target: str
    arguments: Template | None
    config: Template | None


@dataclass(frozen=True, slots=True)
class ItemBatcher:
    """An ItemBatcher. `input` is the BatchInput. The bounds are whole numbers; an absent one, or 0,
    means no bound.
    """

    items_max: Template | None
    bytes_max: Template | None
    input: Template | None


@dataclass(frozen=True, slots=True)
class ResultWriter:
    """A ResultWriter. With `arguments` None the results are not written to files, only formatted as
    `config` says.
    """

    target: str
    arguments: Template | None
    config: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DistributedMap:
    """The settings of a distributed Map, whose items run as child executions."""

    label: str
    execution_type: Literal["STANDARD", "EXPRESS"]
    reader: ItemReader | None
    batcher: ItemBatcher | None
    writer: ResultWriter | None
    tolerated_count: Template | None
    tolerated_percentage: Template | None


@dataclass(frozen=True, slots=True)
class MapState:
    """A Map state. Without `concurrency_max`, or with 0, the limit is
    limits.MAX_CONCURRENCY_DEFAULT, as for AWS's inline Map.

    `items` gives the list. `item_selector` is evaluated for each item, with Map.Item in the context
    object. `run` is None for an inline Map.
    """

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    items: Template | None
    item_selector: Template | None
    concurrency_max: Template | None
    run: DistributedMap | None
    processor: str
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]
    quorum: Quorum | None = None


State: TypeAlias = (
    PassState
    | SucceedState
    | FailState
    | WaitState
    | ChoiceState
    | TaskState
    | ParallelState
    | MapState
)


@dataclass(frozen=True, slots=True)
class UndoRule:
    """The undo of a part of a machine, for a line of control that is cancelled inside of it.

    The undo begins at the state `begin` after `assign` was applied (`$states.errorOutput` is the
    reason); at `end` everything is undone. `own` are the states from `begin` up to `end`.
    """

    states: frozenset[str]
    begin: str
    end: str
    assign: Template | None
    own: frozenset[str]


#: The only value of the field `Cuts` of a deadline.
CUTS_STEPS: Final = "steps"


@dataclass(frozen=True, slots=True)
class BlockDeadline:
    """The time limit of a block. Entering `begin` starts the clock, leaving `states` stops it. When
    the time is over, the line continues at `next`; None: it fails.

    `cuts_steps_only`: a line that leaves the block before its next step leaves it in time, even if
    the time is over. Definitions of earlier releases do not have it: in them such a line is late.
    """

    states: frozenset[str]
    begin: str
    seconds: Template
    next: str | None
    assign: Template | None
    cuts_steps_only: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled definition. `hash` is the sha256 of its compact JSON, with keys in the written
    order.

    Extensions of ASL: `undos` and `deadlines` are sorted, the innermost first. A line is not
    cancelled while it is in one of the sets of states in `shielded`.
    """

    hash: str
    comment: str
    start_at: str
    states: Mapping[str, State]
    timeout_seconds: int | None
    undos: tuple[UndoRule, ...] = ()
    deadlines: tuple[BlockDeadline, ...] = ()
    shielded: tuple[frozenset[str], ...] = ()
