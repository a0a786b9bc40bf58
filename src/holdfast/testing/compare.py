"""The comparison of two runs of a workflow: finds their first difference.

Compared are: how and when they end (status, output as JSON, error name and text), and the calls of
each line of control in their order, with arguments, pools, times, time-outs and attempts. Calls of
different branches are ordered only by their times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from holdfast.asl import error_names
from holdfast.asl.whole_numbers import with_whole_numbers
from holdfast.testing.ends import End
from holdfast.testing.timeline import Call, Trace


class Difference(AssertionError):  # noqa: N818
    """The compiled workflow does not do the same as its Python."""


def difference(direct: Trace, compiled: Trace, *, has_sets: bool = False) -> str | None:
    """Return the first difference between the runs, or None. `has_sets`: the result has a set."""
    for path in sorted({call.path for call in (*direct.calls, *compiled.calls)}):
        found = _calls_differ(_of(path, direct.calls), _of(path, compiled.calls))
        if found is not None:
            where = f"in branch {path}" if path else "outside of branches"
            return f"the calls {where} differ:\n{found}"
    if compiled.end is None:
        return f"the compiled run cannot go on: {compiled.why}"
    assert direct.end is not None
    if not _ends_alike(direct.end, compiled.end, has_sets=has_sets):
        return f"direct:   {_shown(direct.end)}\ncompiled: {_shown(compiled.end)}"
    if direct.ended_ms != compiled.ended_ms:
        return f"the direct run ends {compiled.ended_ms - direct.ended_ms} ms before the compiled"
    return None


def _of(path: str, calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if call.path == path]


def _calls_differ(direct: list[Call], compiled: list[Call]) -> str | None:
    for number, (one, other) in enumerate(zip_longest(direct, compiled), start=1):
        if one is None or other is None or not _are_alike(one, other):
            return (
                f"  {number}. direct:   {one or 'ended'}\n  {number}. compiled: {other or 'ended'}"
            )
    return None


def _are_alike(direct: Call, compiled: Call) -> bool:
    if direct.has_sets:
        return unordered(_row(direct)) == unordered(_row(compiled))
    return canonical(_row(direct)) == canonical(_row(compiled))


def _row(call: Call) -> list[Any]:
    return [call.kind, call.name, call.arguments, call.at, call.attempt, call.timeout, call.pool]


def _ends_alike(direct: End, compiled: End, *, has_sets: bool) -> bool:
    if compiled.error == error_names.QUERY_EVALUATION_ERROR:
        return direct.status == "FAILED" and direct.may_be_expression
    form = unordered if has_sets else canonical
    return (direct.status, direct.error, direct.cause) == (
        compiled.status,
        compiled.error,
        compiled.cause,
    ) and form(direct.output) == form(compiled.output)


def _shown(end: End) -> str:
    if end.status == "SUCCEEDED":
        return f"SUCCEEDED with {json.dumps(end.output, ensure_ascii=False)}"
    return f"{end.status} {end.error or ''} {end.cause}".rstrip()


def canonical(value: Any) -> str:
    """Return the same text for values that are equal in JSON: for 1 and 1.0, but not True; with
    keys in any order.
    """
    return json.dumps(with_whole_numbers(value), sort_keys=True, ensure_ascii=False)


def unordered(value: Any) -> str:
    """Return a text that the order of lists does not change: Python gives the members of a set in
    another order in each process.
    """
    match value:
        case dict():
            rows = sorted((str(key), unordered(inner)) for key, inner in value.items())
            return f"{{{rows}}}"
        case list() | tuple():
            return f"{sorted(map(unordered, value))}"
        case _:
            return canonical(value)
