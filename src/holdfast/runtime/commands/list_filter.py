"""The filters of one request for the list of executions, checked.

A filter narrows the list in one of three ways:

    status, error, paused,
    waiting_for, …           the partitions to read: an execution with an error has failed
    since, until             the keys to read: a key begins with the start time
    the rest                 a condition that DynamoDB tests on each entry that it reads

With the third way DynamoDB also reads entries that do not match, at most `LIST_READ_MAX` for each
query. A page that is full sooner costs less (`listing.read_page`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast import resources
from holdfast.asl.timestamps import nanos_of
from holdfast.core.state import STATUSES
from holdfast.core.subjects import ERROR_CHARACTERS_MAX as SHORT_ERROR_CHARACTERS
from holdfast.core.subjects import TARGET_CHARACTERS_MAX, WaitKind
from holdfast.errors import RequestError
from holdfast.limits import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX, REQUEST_SUFFIX
from holdfast.runtime.attribute_filter import (
    AttributeCondition,
    is_ordered_by_value,
    read_conditions,
)
from holdfast.runtime.effects import Condition, Test
from holdfast.runtime.listing import NEWEST, PageFilter, unknown_page
from holdfast.runtime.storage import keys
from holdfast.runtime.waiting_list import WaitFilter

LISTED_MAX: Final = 100
#: The form of a key of the list. It consists of the start time and the id of the execution.
_LIST_KEY: Final = re.compile(r"[0-9]{15}#[0-9A-Za-z.:-]{1,900}")
#: The form of a key of the value rows of numbers and times (`search_rows.py`).
_VALUE_KEY: Final = re.compile(r"[it][0-9]{19}#[0-9]{15}#[0-9A-Za-z.:-]{1,900}")
#: The statuses of executions that can have an error.
_FAILED: Final = ("FAILED", "TIMED_OUT", "ABORTED")
_OPEN: Final = ("RUNNING",)
_ENDED: Final = tuple(status for status in STATUSES if status not in _OPEN)
#: The statuses of executions that can have each field.
_POSSIBLE: Final[Mapping[str, tuple[str, ...]]] = {
    "error": _FAILED,
    "paused": _OPEN,
    "ended_since": _ENDED,
    "ended_until": _ENDED,
    "waiting_for": _OPEN,
    "waiting_since": _OPEN,
    "last_error": _OPEN,
}
_HASH_CHARACTERS: Final = 64
_LISTED_HASH_CHARACTERS: Final = 12


@dataclass(frozen=True, slots=True)
class ListFilter(PageFilter):
    """The checked filters of a request.

    * `name`: a whole name, or the beginning of a name followed by "*".
    * `waits`: a filter of waits; None for any wait, or none.
    * `attributes`: conditions on search attributes.
    * `after_value`: where the previous page ended, in a list that is sorted by a value.
    """

    name: str | None = None
    waits: WaitFilter | None = None
    attributes: tuple[AttributeCondition, ...] = ()
    after_value: str | None = None

    def fits_waiting(self, row: Mapping[str, Any], after: str) -> bool:
        """Return True when an execution that has not begun, which has only this row, belongs to
        this page.
        """
        key = keys.list_sort(row["started_ms"], row["execution"])
        is_on_page = after <= key < self.before and key >= self.since
        has_kind = row["status"] in self.statuses and self.workflow in {None, row["workflow"]}
        has_name_only = len(self.where) == (self.name is not None) and not self.waits
        has_name_only = has_name_only and not self.attributes
        return is_on_page and has_kind and has_name_only and self._is_named(str(row["name"]))

    def _is_named(self, name: str) -> bool:
        if self.name is None:
            return True
        beginning = self.name.removesuffix("*")
        return name.startswith(beginning) if beginning != self.name else name == self.name


def list_filter(
    request: Mapping[str, Any], declared: Iterable[tuple[str, Mapping[str, str]]] = ()
) -> ListFilter:
    """Check the fields of a request; see `queries.executions`. `declared` has the search attributes
    of each deployed workflow. Raises RequestError HF204, HF205, HF209, HF480, HF481.
    """
    workflow = _workflow(request)
    attributes = _attributes(request, workflow, declared)
    is_by_value = is_ordered_by_value(attributes)
    after_value = _after_value(request) if is_by_value else None
    name = _text(request, "name", NAME_CHARACTERS_MAX)
    return ListFilter(
        workflow=workflow,
        statuses=_possible_statuses(request),
        before=_before({**request, "after": None} if is_by_value else request),
        since=_key_of(_time_ms(request, "since")) or "",
        where=(*_of_name(name), *_of_entry(request)),
        name=name,
        limit=_limit(request),
        waits=_waits(request),
        attributes=attributes,
        after_value=after_value,
    )


def among(wanted: ListFilter, statuses: Collection[str]) -> ListFilter:
    """Return the filter limited to executions with one of these statuses."""
    return replace(wanted, statuses=tuple(one for one in wanted.statuses if one in statuses))


def _of_name(name: str | None) -> Iterator[Condition]:
    if name is not None:
        beginning = name.removesuffix("*")
        test: Test = "=" if beginning == name else "begins with"
        yield Condition(resources.LIST_NAME, test, beginning)


def _of_entry(request: Mapping[str, Any]) -> Iterator[Condition]:
    error = _text(request, "error", ERROR_CHARACTERS_MAX)
    if error is not None:
        yield Condition(resources.LIST_ERROR, "=", error)
    if _is_paused(request):
        yield Condition(resources.LIST_PAUSED, "present")
    ended_since_ms = _time_ms(request, "ended_since")
    if ended_since_ms is not None:
        yield Condition(resources.LIST_STOPPED, ">", ended_since_ms - 1)
    ended_until_ms = _time_ms(request, "ended_until")
    if ended_until_ms is not None:
        yield Condition(resources.LIST_STOPPED, "<", ended_until_ms)
    definition = _text(request, "definition", _HASH_CHARACTERS)
    if definition is not None:
        beginning = definition[:_LISTED_HASH_CHARACTERS]
        yield Condition(resources.LIST_DEFINITION, "begins with", beginning)
    parent = _parent(request)
    if parent is not None:
        yield Condition(resources.LIST_NAME, "begins with", f"{parent}.")


def _possible_statuses(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the requested statuses that executions with all given fields can have."""
    statuses = _statuses(request)
    for field, possible in _POSSIBLE.items():
        if request.get(field) is not None:
            statuses = _only(statuses, possible, field)
    return statuses


def _parent(request: Mapping[str, Any]) -> str | None:
    parent = request.get("parent")
    if parent is None:
        return None
    if not (isinstance(parent, str) and keys.is_run(parent)):
        raise RequestError(
            "HF204",
            f"parent is {parent!r:.90}; expected the id of an execution",
            help="`holdfast show NAME` prints the id",
        )
    return parent


def _waits(request: Mapping[str, Any]) -> WaitFilter | None:
    waiting_for = _text(request, "waiting_for", TARGET_CHARACTERS_MAX + 20)
    error = _text(request, "last_error", ERROR_CHARACTERS_MAX)
    until_ms = _time_ms(request, "waiting_since")
    if waiting_for is None and error is None and until_ms is None:
        return None
    kind, _, target = (waiting_for or "").partition(":")
    if kind == "request" and target:
        kind, target = WaitKind.EVENT, target + REQUEST_SUFFIX
    if waiting_for is not None and kind not in set(WaitKind):
        raise RequestError(
            "HF204",
            f"waiting_for is {waiting_for!r:.90}; {kind!r:.40} is no kind of wait",
            help=f"use one of {', '.join(WaitKind)}; a target may follow, as in `event:paid`; "
            "or `request:NAME`",
        )
    return WaitFilter(
        kind=WaitKind(kind) if kind else None,
        target=target[:TARGET_CHARACTERS_MAX] or None,
        error=None if error is None else error[:SHORT_ERROR_CHARACTERS],
        until_ms=until_ms,
    )


def _attributes(
    request: Mapping[str, Any],
    workflow: str | None,
    declared: Iterable[tuple[str, Mapping[str, str]]],
) -> tuple[AttributeCondition, ...]:
    given = request.get("where")
    if given is None:
        return ()
    known = list(declared)
    own = [one for one in known if one[0] == workflow]
    return read_conditions(given, own or known)


def _after_value(request: Mapping[str, Any]) -> str | None:
    after = request.get("after")
    if after is not None and not (isinstance(after, str) and _VALUE_KEY.fullmatch(after)):
        raise unknown_page()
    return after


def _workflow(request: Mapping[str, Any]) -> str | None:
    workflow = request.get("workflow")
    if workflow is not None and not keys.is_list_workflow(workflow):
        raise RequestError(
            "HF205",
            f"there is no workflow {workflow!r:.90}",
            status=404,
            help="see `GET /workflows`",
        )
    return workflow


def _statuses(request: Mapping[str, Any]) -> tuple[str, ...]:
    status = request.get("status")
    if status is None:
        return STATUSES
    if status not in STATUSES:
        expected = ", ".join(STATUSES)
        raise RequestError("HF204", f"status {status!r:.90} is not one of {expected}")
    return (status,)


def _only(statuses: tuple[str, ...], possible: tuple[str, ...], field: str) -> tuple[str, ...]:
    kept = tuple(status for status in statuses if status in possible)
    if not kept:
        raise RequestError(
            "HF204",
            f"no execution with status {statuses[0]} can have `{field}`",
            help=f"with `{field}`, status is one of {', '.join(possible)}",
        )
    return kept


def _before(request: Mapping[str, Any]) -> str:
    """Return the key at which the page begins: the end of the previous page, or the latest start
    time.
    """
    after = request.get("after")
    if after is not None and not (isinstance(after, str) and _LIST_KEY.fullmatch(after)):
        raise unknown_page()
    until = _key_of(_time_ms(request, "until"))
    return min(after or NEWEST, until or NEWEST)


def _key_of(at_ms: int | None) -> str | None:
    """Return a key that sorts before those of all executions that started at that time or later."""
    return None if at_ms is None else f"{max(at_ms, 0):015d}"


def _limit(request: Mapping[str, Any]) -> int:
    limit = request.get("limit", LISTED_MAX)
    if isinstance(limit, str) and limit.isdecimal() and limit.isascii():
        limit = int(limit[:9])
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LISTED_MAX:
        raise RequestError(
            "HF204", f"limit is {limit!r:.90}; expected a whole number from 1 to {LISTED_MAX}"
        )
    return limit


def _text(request: Mapping[str, Any], field: str, longest: int) -> str | None:
    value = request.get(field)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise RequestError("HF204", f"{field} is {value!r:.90}; expected 1 to {longest} characters")
    return value


def _is_paused(request: Mapping[str, Any]) -> bool:
    value = request.get("paused")
    if value not in {None, "true"}:
        raise RequestError(
            "HF204", f"paused is {value!r:.90}; expected `true`", help="leave it out for all"
        )
    return value is not None


def _time_ms(request: Mapping[str, Any], field: str) -> int | None:
    value = request.get(field)
    if value is None:
        return None
    nanos = nanos_of(value) if isinstance(value, str) else None
    if nanos is None:
        raise RequestError(
            "HF204",
            f"{field} is {value!r:.90}; expected a time with its zone",
            help="for example 2027-01-15T08:00:00Z",
        )
    return nanos // 1_000_000
