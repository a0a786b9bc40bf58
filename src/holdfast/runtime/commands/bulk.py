"""Start a bulk operation, or count the executions that it would act on. `runtime/bulk.py` explains
bulk operations.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.asl.resources import BULK_WORKFLOW
from holdfast.core.state import PAUSE_TIMERS, STATUSES
from holdfast.errors import RequestError
from holdfast.runtime import bulk
from holdfast.runtime.bulk import OPERATIONS, RATE_DEFAULT, RATE_MAX, RATE_MIN, Operation
from holdfast.runtime.commands import queries
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.graphs import find_workflow
from holdfast.runtime.commands.list_filter import among, list_filter
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import normalised
from holdfast.runtime.commands.start import NameTakenError, accept
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import Clock, Effect, JsonResult
from holdfast.runtime.storage import keys

#: The response to one dry run reads at most this many pages of the list.
_DRY_PAGES_MAX: Final = 10
_SAMPLE_MAX: Final = 5
#: The fields of a request whose values are given to executions. Such a value may be a secret, which
#: the log of the bulk operation must not contain.
_VALUES: Final = ("result", "input", "set")


def start(known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Start a bulk operation. `request`: operation, filters, fields?, reason, by?, rate?, name?,
    expected?.

    `filters` are those of `queries.executions`, `fields` those of the operation's own request.
    `expected` is the number of executions that a dry run has found. Return `execution`, the id of
    the bulk operation. The same name and request start only one. Raises RequestError HF204, HF212,
    HF234, HF500 to HF502, HF504.
    """
    asked = yield from _checked(known, tenant, request)
    now_ms = yield Clock()
    name = request.get("name")
    if name is not None:
        keys.require_execution_name(name)
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret, known.spread.minted)
    definition = bulk.definition()
    yield from known.programs.store(tenant, definition)
    if request["operation"] == "migrate":
        workflow = request["filters"].get("workflow")
        # Store the definition here. During a deployment a worker of the previous release may
        # process this operation, and it finds the newest definition only in the table.
        if workflow in known.workflows:
            yield from known.programs.store(tenant, known.workflows[workflow])
    wanted = Start(run, BULK_WORKFLOW, name, now_ms, definition.hash, None, {})
    try:
        accepted = yield from accept(known, tenant, wanted, asked, has_row=False)
    except NameTakenError:
        raise RequestError(
            "HF212",
            f"a bulk operation named {name!r} exists and differs",
            status=409,
            help="choose another name, or send the same request to get the same bulk",
        ) from None
    return {"execution": accepted.start.run, "name": name, "workflow": BULK_WORKFLOW}


def dry_run(known: Lookup, tenant: str, request: Mapping[str, Any]) -> JsonResult:
    """Count the executions that the bulk operation would select now. `request`: as for `start`, and
    after?.

    Return `matching`, a `sample` of them, and `next` while there may be more: another dry run
    begins at that place.
    """
    asked = yield from _checked(known, tenant, request)
    matching, after = 0, request.get("after")
    sample: list[dict[str, Any]] = []
    for _ in range(_DRY_PAGES_MAX):
        rows, after = yield from selected(known, tenant, asked, after, bulk.PAGE_MAX)
        matching += len(rows)
        sample += rows[: _SAMPLE_MAX - len(sample)]
        if after is None:
            break
    found: dict[str, Any] = {"operation": asked["operation"], "matching": matching}
    found["sample"] = sample
    return found if after is None else {**found, "next": after}


def selected(
    known: Lookup, tenant: str, asked: Mapping[str, Any], after: str | None, limit: int
) -> Generator[Effect, Any, tuple[list[dict[str, Any]], str | None]]:
    """Return the rows of one page of the list that the bulk operation acts on, and the place of the
    next page.

    A bulk operation never acts on another one. A retry leaves out executions that another execution
    called: the retry of the caller calls them again, and both would do the same work.
    """
    operation = str(asked["operation"])
    wanted = {**asked["filters"], "limit": limit, "after": after}
    page = yield from queries.executions(known, tenant, wanted, statuses=_statuses(asked))
    rows = [
        row
        for row in page["executions"]
        if row["workflow"] != BULK_WORKFLOW
        and not (operation == "retry" and "." in row["execution"])
    ]
    return rows, page.get("next")


# -- the request -----------------------------------------------------------------------------------


def _checked(
    known: Lookup, tenant: str, request: Mapping[str, Any]
) -> Generator[Effect, Any, dict[str, Json]]:
    """Return the input of the bulk execution: the same for the same request."""
    name = request.get("operation")
    operation = OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is None:
        raise RequestError(
            "HF501",
            f"there is no bulk operation {name!r:.40}",
            help=f"known: {', '.join(OPERATIONS)}",
        )
    words = reason_and_author(request)
    given = _fields(str(name), operation, request)
    rate = _rate(request.get("rate"))
    asked: dict[str, Any] = {
        "operation": name,
        "filters": _filters(request),
        "fields": given,
        **words,
        "rate": rate,
        "page": bulk.page_of(rate),
    }
    _require_possible(known, asked)
    if name == "migrate":
        asked["fields"] = {**given, "to": (yield from _target(known, tenant, asked))}
    if name == "event":
        wanted = yield from known.event_payload(tenant, given["name"], "")
        data = normalised(known.types, tenant, wanted, given["data"], f"event {given['name']!r}")
        asked["fields"] = {**given, "data": data}
    _require_no_secrets(known, asked)
    expected = request.get("expected")
    return {**asked, "expected": expected} if type(expected) is int else asked


def _fields(name: str, operation: Operation, request: Mapping[str, Any]) -> dict[str, Json]:
    given = request.get("fields", {})
    if not isinstance(given, dict):
        raise RequestError("HF501", "`fields` is no object", help="see docs/explanation/bulk.md")
    unknown = sorted(given.keys() - set(operation.fields))
    missing = [field for field in operation.required if field not in given]
    if unknown or missing:
        what = f"has no field {unknown[0]!r:.90}" if unknown else f"needs the field {missing[0]!r}"
        known = ", ".join(operation.fields) or "none"
        raise RequestError("HF501", f"bulk {name} {what}", help=f"known: {known}")
    timers = given.get("timers", PAUSE_TIMERS[0])
    if timers not in PAUSE_TIMERS:
        raise RequestError("HF234", f"`timers` is {timers!r:.40}, expected freeze or run")
    return given


def _target(known: Lookup, tenant: str, asked: Mapping[str, Any]) -> Generator[Effect, Any, Any]:
    """Return the version that all executions move to. "Latest" is replaced by a hash: during a
    deployment two workers have different newest versions, and would move executions to different
    ones. Raises RequestError HF204, HF501.
    """
    # Imported here for cold starts: most bulk operations need none of these modules, which read
    # whole definitions.
    from holdfast.runtime.commands.migrate import LATEST  # noqa: PLC0415

    to = asked["fields"].get("to", LATEST)
    if to != LATEST:
        return to
    workflow = asked["filters"].get("workflow")
    if workflow is None:
        raise RequestError(
            "HF501",
            "bulk migrate to the newest version needs one workflow",
            help="add the filter `workflow`, or name the version: --to HASH, --to back",
        )
    return (yield from find_workflow(known, tenant, workflow)).definition.hash


def _filters(request: Mapping[str, Any]) -> dict[str, Json]:
    filters = request.get("filters")
    given = filters if isinstance(filters, dict) else {}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        raise RequestError(
            "HF500",
            "a bulk operation needs a filter",
            help="for example a workflow; `holdfast list` takes the same filters",
        )
    return chosen


def _statuses(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the statuses of executions that the operation selects. Raises RequestError HF502 when
    the filter leaves none.
    """
    operation, named = OPERATIONS[asked["operation"]], asked["filters"].get("status")
    # An invalid status is refused later, together with the other filters.
    if named is None or named not in STATUSES:
        return operation.statuses
    if named in {*operation.statuses, *operation.on_request}:
        return (named,)
    possible = ", ".join((*operation.statuses, *operation.on_request))
    raise RequestError(
        "HF502",
        f"bulk {asked['operation']} cannot act on executions that are {named}",
        help=f"status is one of {possible}",
    )


def _require_possible(known: Lookup, asked: Mapping[str, Any]) -> None:
    """Raise RequestError HF204, HF205, HF480, HF481 for invalid filters, HF502 for filters that
    select nothing.
    """
    statuses = _statuses(asked)
    wanted = list_filter(asked["filters"], known.search_attributes())
    if not among(wanted, statuses).statuses:
        raise RequestError(
            "HF502",
            f"the filters select no execution that is {' or '.join(statuses)}",
            help="`error` selects failed executions, `last_error` and `waiting_for` running ones",
        )


def _rate(value: Any) -> float:
    if value is None:
        return RATE_DEFAULT
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not RATE_MIN <= value <= RATE_MAX:
        raise RequestError(
            "HF501",
            f"`rate` is {value!r:.40}, expected commands per second",
            help=f"a number from 0.017, one a minute, to {RATE_MAX:g}",
        )
    return float(value)


def _require_no_secrets(known: Lookup, asked: Mapping[str, Any]) -> None:
    """Raise RequestError HF504 for values that may be secrets. The log of the bulk operation stores
    the values, and no type says which of them to encrypt.
    """
    given = [field for field in _VALUES if field in asked["fields"]]
    if not given:
        return
    workflow = asked["filters"].get("workflow")
    definition = known.workflows.get(workflow)
    if definition is None or definition.source_map.get("secrets"):
        raise RequestError(
            "HF504",
            f"bulk {asked['operation']} takes `{given[0]}` only for one workflow without secrets",
            help="add the filter `workflow`, a deployed one; or give the command to each execution",
        )
