"""A program: one ASL definition, parsed, checked and compiled once.

State names are unique in a whole definition (ASL demands it), so one flat mapping holds the states
of every branch; a branch or an item processor is known by the name it starts at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from holdfast.asl.template import Template

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Retrier:
    """`attempts_max` counts retries, not tries. `delay_seconds_max` None: no cap."""

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


@dataclass(frozen=True, slots=True)
class Pass:
    name: str
    next: str | None
    assign: Template | None
    output: Template | None


@dataclass(frozen=True, slots=True)
class Succeed:
    name: str
    output: Template | None


@dataclass(frozen=True, slots=True)
class Fail:
    name: str
    error: Template | None
    cause: Template | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Exactly one of `seconds` and `timestamp` is set."""

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    seconds: Template | None
    timestamp: Template | None


@dataclass(frozen=True, slots=True)
class Rule:
    condition: Template
    next: str
    assign: Template | None
    output: Template | None


@dataclass(frozen=True, slots=True)
class Choice:
    """`assign` and `output` belong to the default; a rule has its own."""

    name: str
    rules: tuple[Rule, ...]
    default: str | None
    assign: Template | None
    output: Template | None


#: What a Task asks for. "task" and "pure" run a registered function, "event" waits for an event by
#: business key, "ask" waits for a person, "token" waits for whoever holds the callback token.
TaskKind: TypeAlias = Literal["task", "pure", "event", "ask", "token"]


@dataclass(frozen=True, slots=True)
class Task:
    """`target` is the function's name for "task" and "pure", else empty."""

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    resource: str
    kind: TaskKind
    target: str
    arguments: Template | None
    timeout_seconds: Template | None
    heartbeat_seconds: Template | None
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    arguments: Template | None
    branches: tuple[str, ...]
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """`concurrency_max` absent or 0: limits.MAX_CONCURRENCY_DEFAULT, as AWS's inline Map."""

    name: str
    next: str | None
    assign: Template | None
    output: Template | None
    items: Template | None
    item_selector: Template | None
    concurrency_max: Template | None
    processor: str
    retry: tuple[Retrier, ...]
    catch: tuple[Catcher, ...]


State: TypeAlias = Pass | Succeed | Fail | Wait | Choice | Task | Parallel | Map


@dataclass(frozen=True, slots=True)
class Program:
    """`hash` is the definition's: sha256 of its compact JSON, keys in written order."""

    hash: str
    comment: str
    start_at: str
    states: Mapping[str, State]
    timeout_seconds: int | None
