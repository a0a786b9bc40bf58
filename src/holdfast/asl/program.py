"""A program: one ASL definition, parsed, checked and compiled once.

State names are unique in a whole definition (ASL demands it), so one flat mapping holds the states
of every branch; a branch or an item processor is known by the name it starts at.

A program knows no query language. Whatever a state's fields are written in, they are compiled to
templates: `arguments` gives what a state works on, `output` what it hands on, `assign` variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from holdfast.asl.template import Template

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Retrier:
    """One rule of a Retry. `attempts_max` counts retries, without the first attempt.
    `delay_seconds_max` None: no cap.
    """

    errors: tuple[str, ...]
    interval_seconds: int
    attempts_max: int
    backoff_rate: float
    delay_seconds_max: int | None
    has_full_jitter: bool


@dataclass(frozen=True, slots=True)
class Catcher:
    errors: tuple[str, ...]
    next: str
    assign: Template | None
    output: Template | None


#: The types of search attributes. The value of a datetime is RFC 3339 text.
AttributeKind: TypeAlias = Literal["str", "int", "bool", "datetime"]
ATTRIBUTE_KINDS: Final[tuple[AttributeKind, ...]] = get_args(AttributeKind)


@dataclass(frozen=True, slots=True)
class PassState:
    """`result` is worked out once and bound, where both Assign and the output are made of it.

    `publish` gives an object: the values that are readable from outside, by name. `note` gives the
    search attributes, by name: `{"customer": {"str": "C-17"}}`.
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
    """Exactly one of `seconds` and `timestamp` is set."""

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


#: The kinds of work that a Task requests.
#: "task", "pure": a registered function. "event": an event by business key. "ask": a person.
#: "token": the holder of the callback token. "lambda": a Lambda function by its ARN. "service": one
#: call of a service. "callback": a call, then the answer to the token in it. "sync": a call, then
#: the end of what it began, be it a job or another execution. "activity": a worker that polls.
#: "read", "write": the two ends of a distributed Map, which no definition names as a Task.
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
class TaskState:
    """`target` by kind: the function's name, its ARN, the service's action ("sqs:sendMessage",
    "aws-sdk:s3:getObject"), the activity's ARN or "holdfast:pool:<name>", the called
    "workflow:<name>"; else empty. `credentials` gives {"RoleArn": …}.
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


@dataclass(frozen=True, slots=True)
class Quorum:
    """The bounds of a Parallel or Map: how many lanes must succeed (None: all that do not fail),
    and how many may fail (None: none).

    An extension of ASL, like `after` of a Parallel.
    """

    needed: Template | None
    tolerated: Template | None


@dataclass(frozen=True, slots=True)
class ParallelState:
    """A Parallel state. `after`: for each branch, the branches that must end before it starts;
    empty: all start at once.
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

    `config` is the ReaderConfig as written, its texts and fields by path evaluated: InputType,
    MaxItems, CSVHeaderLocation, CSVHeaders, CSVDelimiter, ItemsPointer, ManifestType.
    """

    target: str
    arguments: Template | None
    config: Template | None


@dataclass(frozen=True, slots=True)
class ItemBatcher:
    """An ItemBatcher. `input` is the BatchInput; the bounds are whole numbers, and an absent one or
    0 means no bound.
    """

    items_max: Template | None
    bytes_max: Template | None
    input: Template | None


@dataclass(frozen=True, slots=True)
class ResultWriter:
    """A ResultWriter. `arguments` None: results are not written to files, only formatted as
    `config` says.
    """

    target: str
    arguments: Template | None
    config: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DistributedMap:
    """The settings of a distributed Map: its items run as executions of their own.

    A tolerated failure may be given as a text of digits as well (AWS reads both).
    """

    label: str
    execution_type: Literal["STANDARD", "EXPRESS"]
    reader: ItemReader | None
    batcher: ItemBatcher | None
    writer: ResultWriter | None
    tolerated_count: Template | None
    tolerated_percentage: Template | None


@dataclass(frozen=True, slots=True)
class MapState:
    """`concurrency_max` absent or 0: limits.MAX_CONCURRENCY_DEFAULT, as AWS's inline Map.

    `items` gives the list; `item_selector` is evaluated per item, with Map.Item in the context.
    `run` None: inline.
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
    """The undo of a part of a machine, for a frame that is cancelled inside it.

    `begin` is entered with `assign` applied (`$states.errorOutput` is the reason); at `end`
    everything is undone. `own` are the states from `begin` up to `end`.
    """

    states: frozenset[str]
    begin: str
    end: str
    assign: Template | None
    own: frozenset[str]


@dataclass(frozen=True, slots=True)
class BlockDeadline:
    """Entering `begin` starts the clock; leaving `states` stops it. `next` None: the line fails."""

    states: frozenset[str]
    begin: str
    seconds: Template
    next: str | None
    assign: Template | None


@dataclass(frozen=True, slots=True)
class Program:
    """`hash` is the definition's: sha256 of its compact JSON, keys in written order.

    Extensions of ASL: `undos` and `deadlines` stand innermost first; a line is not cancelled while
    it is in one of `shielded`.
    """

    hash: str
    comment: str
    start_at: str
    states: Mapping[str, State]
    timeout_seconds: int | None
    undos: tuple[UndoRule, ...] = ()
    deadlines: tuple[BlockDeadline, ...] = ()
    shielded: tuple[frozenset[str], ...] = ()
