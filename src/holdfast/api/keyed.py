"""Keyed workflows: at most one execution runs for each business key."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import REQUEST_SUFFIX

#: What happens to an event that an ended execution has not used. With "next" the next execution of
#: the key gets it, and with "drop" it is dropped.
Unread: TypeAlias = Literal["next", "drop"]


@dataclass(frozen=True, slots=True)
class Keyed:
    """The declaration of a keyed workflow. `parameter` has the business key. `starts_on` is the
    event that starts an execution when none runs for the key; None when only a caller starts one.
    """

    parameter: str
    starts_on: str | None
    unread: Unread


@dataclass(frozen=True, slots=True)
class FailedExecution:
    """An execution that has failed, timed out or was stopped: the data of the event
    `holdfast.execution.failed`. `error` and `cause` are those that `client.describe` gives.

    `input`: the arguments by parameter, in which secrets stay encrypted; None where the event would
    be larger than an event may be. `key`: the business key of a keyed execution.
    """

    execution: str
    name: str | None
    workflow: str
    status: Literal["FAILED", "TIMED_OUT", "ABORTED"]
    error: str | None
    cause: str | None
    input: Any = None
    key: str | None = None


def keyed_of(
    workflow: str,
    parameters: Mapping[str, inspect.Parameter],
    key: str | None,
    starts_on: str | None,
    unread: Unread,
) -> Keyed | None:
    """Return what `@workflow(key=…)` declares; None for a workflow without a key. Raises
    WorkflowError HF155.
    """
    if key is None:
        if starts_on is not None:
            raise _bad(workflow, "has starts_on and no key", 'key="cart_id", a parameter')
        return None
    if key not in parameters:
        known = ", ".join(parameters) or "none"
        raise _bad(workflow, f"has no parameter {key!r}", f"one of its parameters: {known}")
    if unread not in ("next", "drop"):
        raise _bad(workflow, f"has unread={unread!r}", 'unread="next" or unread="drop"')
    if starts_on is not None:
        if starts_on.endswith(REQUEST_SUFFIX):
            found = f"has starts_on={starts_on!r}, which ends as the names of requests do"
            raise _bad(workflow, found, f"starts_on={starts_on.rstrip(REQUEST_SUFFIX)!r}")
        _require_defaults(workflow, parameters, key)
    return Keyed(key, starts_on, unread)


def _require_defaults(workflow: str, parameters: Mapping[str, Any], key: str) -> None:
    """Refuse a parameter without a default, because an event gives only the key."""
    for name, parameter in parameters.items():
        if name != key and parameter.default is inspect.Parameter.empty:
            found = f"is started by an event, which does not give {name!r}"
            raise _bad(workflow, found, f"a default for {name!r}, or the event's own data")


def _bad(workflow: str, found: str, expected: str) -> WorkflowError:
    return WorkflowError("HF155", f"the workflow {workflow} {found}", help=f"expected: {expected}")
