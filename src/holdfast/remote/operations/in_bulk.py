"""The operations on many executions at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from holdfast.remote.answers import Filters, Json, Started
from holdfast.remote.operations.executions import PAGES_MAX, filter_text, history
from holdfast.remote.operations.requests import Operation, post

#: The resource of the step in which a bulk operation gives its commands (`asl/resources.py`).
BULK_ACT: Final = "bulk:act"


def bulk(
    operation: str,
    filters: Filters,
    reason: str,
    *,
    by: str | None = None,
    fields: Mapping[str, object] = {},
    rate: float | None = None,
    name: str | None = None,
    expected: int | None = None,
) -> Operation[Started]:
    """Start a bulk operation: give the command `operation` to each execution that the filters
    select, `rate` a second. `fields` are those of the command. The same `name` starts only one.
    """
    asked = _bulk(operation, filters, reason, by, fields)
    more = {"rate": rate, "name": name, "expected": expected}
    return cast("Started", (yield from post("/bulk", {**asked, **more})))


def bulk_dry_run(
    operation: str,
    filters: Filters,
    reason: str,
    *,
    by: str | None = None,
    fields: Mapping[str, object] = {},
) -> Operation[Json]:
    """Return how many executions a bulk operation would select now (`matching`), and a `sample`.
    Nothing is changed. After `PAGES_MAX` requests the answer has `next`: there are more.
    """
    asked = {**_bulk(operation, filters, reason, by, fields), "dry_run": True}
    found = yield from post("/bulk", asked)
    for _ in range(PAGES_MAX - 1):
        if "next" not in found:
            break
        more = yield from post("/bulk", {**asked, "after": found["next"]})
        sample = found["sample"] or more["sample"]
        found = {**more, "matching": found["matching"] + more["matching"], "sample": sample}
    return found


def bulk_report(execution: str) -> Operation[dict[str, str]]:
    """Return the outcome for each execution that a bulk operation has selected: "done", or the
    reason why the command was refused.
    """
    found: dict[str, str] = {}
    for event in (yield from history(execution)):
        details = event.get("taskSucceededEventDetails", {})
        if details.get("resource") == BULK_ACT:
            found |= json.loads(details["output"])["outcomes"]
    return found


def _bulk(
    operation: str,
    filters: Filters,
    reason: str,
    by: str | None,
    fields: Mapping[str, object],
) -> dict[str, object]:
    chosen = {name: filter_text(value) for name, value in filters.items()}
    given = {name: value for name, value in chosen.items() if value is not None}
    asked = {"operation": operation, "filters": given, "fields": dict(fields)}
    return {**asked, "reason": reason, "by": by}
