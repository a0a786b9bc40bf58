"""The types of the API's responses. They are plain JSON, to which a newer API may add fields."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = dict[str, Any]
Status: TypeAlias = Literal["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]


class Started(TypedDict):
    """The response to a start. `started` is False when the execution already existed and has not
    succeeded; `undone` is True when it cannot be retried.
    """

    execution: str
    name: str | None
    workflow: str
    started: NotRequired[bool]
    status: NotRequired[Status]
    error: NotRequired[str]
    undone: NotRequired[bool]


class Description(TypedDict):
    """One execution. Times are ISO 8601. `omitted` names the fields that were too large to be
    sent.
    """

    execution: str
    status: Status
    waits: list[Json]
    name: NotRequired[str | None]
    workflow: NotRequired[str]
    definition: NotRequired[str]
    started: NotRequired[str]
    stopped: NotRequired[str]
    input: NotRequired[Any]
    output: NotRequired[Any]
    error: NotRequired[str]
    cause: NotRequired[str]
    paused: NotRequired[Json]
    published: NotRequired[Json]
    attributes: NotRequired[Json]
    last_failure: NotRequired[Json]
    #: The reason why workers did not carry out an accepted retry of a keyed execution.
    void_retry: NotRequired[str]
    #: The path of the execution in the archive bucket. It is present after the records of the
    #: execution have expired.
    archived: NotRequired[str]
    parent: NotRequired[str]
    retries: NotRequired[int]
    arn: NotRequired[str]
    omitted: NotRequired[list[str]]


class ExecutionRow(TypedDict):
    """One execution in a list."""

    execution: str
    status: Status
    name: str | None
    workflow: str
    started: str
    stopped: NotRequired[str]
    error: NotRequired[str]
    waits_for: NotRequired[str]
    waits: NotRequired[list[Json]]
    attributes: NotRequired[Json]
    paused: NotRequired[Json]
    last_failure: NotRequired[Json]


class Page(NamedTuple):
    """Executions, newest first. `after` is the place of the next older one, None at the end."""

    rows: list[ExecutionRow]
    after: str | None


class Counts(NamedTuple):
    """Numbers of executions by group. `rows` has the labels of each group, and `count`. `oldest` is
    the execution that has waited longest, `at` the time at which the count began. `after` is where
    the count stopped early, None when all were counted.
    """

    rows: list[Json]
    oldest: Json | None
    at: str
    after: str | None


class QuestionPage(NamedTuple):
    """Open questions to people. `after` is the place of the next page, None at the end."""

    rows: list[Json]
    after: str | None


class Filters(TypedDict, total=False):
    """The filters of a list; see docs/how-to/find.md. None means no filter."""

    workflow: str | None
    status: Status | None
    error: str | None
    name: str | None
    paused: bool
    since: datetime | str | None
    until: datetime | str | None
    ended_since: datetime | str | None
    ended_until: datetime | str | None
    waiting_for: str | None
    waiting_since: datetime | str | None
    last_error: str | None
    parent: str | None
    definition: str | None
    where: str | Sequence[str] | None
