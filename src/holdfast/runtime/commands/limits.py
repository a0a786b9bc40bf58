"""The limits of the stack, for operators: show them, change them, pause and resume them.

A limit is declared in code (`Limit`). A change that is made here takes precedence over the value in
the code, also after deployments, until it is cleared. docs/how-to/limits.md shows the commands.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.decision import iso_time
from holdfast.core.state import Admission, Attempt, Execution, Frame, Queued
from holdfast.errors import RequestError, ServiceFault
from holdfast.limits import CAUSE_CHARACTERS_MAX, NAME_CHARACTERS_MAX
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.scope_pause import pause_fields
from holdfast.runtime.effects import Clock, Effect, JsonResult, Query
from holdfast.runtime.gates import operate
from holdfast.runtime.gates.operate import COUNTED_MAX, GateReport
from holdfast.runtime.gates.queue import permit_id
from holdfast.runtime.gates.rules import (
    MICROSECONDS,
    NO_KEY,
    GateId,
    LimitRule,
    Settings,
    effective,
    interval_us_of,
    starts_per_second,
)
from holdfast.runtime.gates.scopes import Scope, is_scope, scope_of
from holdfast.runtime.storage import keys, tables

_RATE_MAX: Final = 12_800.0
_PLACES_MAX: Final = 2_560
_DAY_SECONDS: Final = 86_400
#: The fields of a request that change a value of the limit.
_CHANGES: Final = ("rate", "burst", "concurrency", "paused")


def limits(known: Lookup) -> JsonResult:
    """Return {"limits": [...]}, by name: each limit of the deployed code (see `limit`), and each
    limit that an operator has changed and the code does not declare, with `"declared": false`.
    """
    settings = yield from operate.changed_limits()
    found = list[dict[str, Any]]()
    in_force = {name for name, changed in settings.items() if changed.is_in_force}
    for name in sorted({*known.limits.rules, *in_force}):
        found += [(yield from _shown(known, name, settings.get(name, Settings()), None))]
    return {"limits": found}


def limit(known: Lookup, name: str, request: Mapping[str, Any]) -> JsonResult:
    """Return one limit and its earlier `changes`, newest first. `request`: key?, a value of the
    limit's key parameter; then the queue of that value is shown.

    The fields:
    * `name`; `rate` (starts a second) and `burst`, or `concurrency`.
    * `in_use`; `waiting` (counted to 1,000 in each gate); `oldest` (ISO time); `seconds` (until the
      last attempt that waits begins).
    * `speed` (1.0 unless the limit was slowed down); `closed_until`; `changed`: what an operator
      has set.

    A limit with a key parameter has one queue for each value: without `key`, only the parameter is
    shown. Raises RequestError HF238 (404), HF239 (400).
    """
    settings = yield from operate.settings_now(name)
    if not settings.rv:
        _declared(known, name)
    shown = yield from _shown(known, name, settings, request.get("key"))
    replaced = yield from operate.changes(name)
    earlier = [_change(one) for one in replaced]
    return {**shown, "changes": earlier} if earlier else shown


def _shown(known: Lookup, name: str, settings: Settings, key_value: str | None) -> JsonResult:
    declared = known.limits.rule(name)
    if declared is None:
        return {"name": name, "declared": False, "changed": _change(settings)}
    rule = effective(declared, settings)
    shown: dict[str, Any] = {"name": name, **_values(rule)}
    parameter = known.limits.key_of(name)
    if parameter is not None:
        shown["key"] = parameter
    if parameter is None or key_value is not None:
        shown |= yield from _use_of(name, _gate_key(name, parameter, key_value), rule)
    if settings.rv:
        shown["changed"] = {**_change(settings), "code": _values(declared)}
    return shown


def _gate_key(name: str, parameter: str | None, value: str | None) -> str:
    if value is None:
        return NO_KEY
    if parameter is None:
        raise _bad(f"`key` is given, and the limit {name} has no keys", "leave `key` out")
    return keys.text_hash(value)


def _use_of(name: str, key: str, rule: LimitRule) -> JsonResult:
    reports = list[GateReport]()
    for shard in range(rule.shards):
        reports += [(yield from operate.report(GateId(name, key, shard), rule))]
    return _use(reports, (yield Clock()))


def change(known: Lookup, name: str, request: Mapping[str, Any]) -> JsonResult:
    """Change a limit. `request`: rate? (per second), burst?, concurrency?, paused?, clear?, reason,
    by?.

    Return the limit after the change, as `limit` shows it. Raises RequestError HF238 (404), HF239
    (400).
    """
    declared = yield from _changeable(known, name, request)
    changed = {
        **_new_values(declared, request),
        "reason": _text(request, "reason", CAUSE_CHARACTERS_MAX),
        "by": _text(request, "by", NAME_CHARACTERS_MAX, default=""),
    }
    stored = yield from operate.change(declared, changed)
    if stored is None:
        raise ServiceFault("HF321", f"others changed the limit {name} meanwhile", retry="now")
    return (yield from limit(known, name, {}))


def _changeable(
    known: Lookup, name: str, request: Mapping[str, Any]
) -> Generator[Effect, Any, LimitRule]:
    """Return the rule that the request changes.

    A limit that the code does not declare can only be cleared. If that were impossible, its
    settings would apply again as soon as the code declares a limit of that name.
    """
    if known.limits.rule(name) is None and request.get("clear") is True:
        settings = yield from operate.settings_now(name)
        if settings.rv:
            return LimitRule(name, interval_us=settings.interval_us, concurrency=1)
    return _declared(known, name)


def _place_of(state: Execution, frame: Frame) -> tuple[Queued, str] | None:
    """Return the place of a waiting attempt or execution, and the last part of its row's key; None
    when it does not wait in a queue.
    """
    match frame.waiting:
        case Admission(entry, queued):
            return queued, permit_id(state.run, entry, 0)
        case Attempt(entry, attempt, queued=queued) if queued is not None:
            return queued, permit_id(state.run, entry, attempt)
        case _:
            return None


def place_in_queue(known: Lookup, queued: Queued, own: str) -> JsonResult:
    """Return the fields that `show` prints for a wait in a queue.

    They are `limit`, `ahead` (counted to 1,000), `seconds` until its turn at the present speed, and
    `paused_by` and `paused_since` when the limit is paused.
    """
    gate_id = GateId.parse(queued.gate)
    if is_scope(gate_id.limit):
        return (yield from _held_back(scope_of(gate_id.limit)))
    shown: dict[str, Any] = {"limit": gate_id.limit}
    rows = yield Query(tables.MAIL, keys.queue(queued.gate), limit=COUNTED_MAX)
    places = [number for number, row in enumerate(rows) if str(row["sk"]).endswith(f"#{own}")]
    # The attempt's own row is not among the rows that were read. If fewer than `COUNTED_MAX` rows
    # exist, the gate has already removed the row and let the attempt begin. Otherwise at least
    # `COUNTED_MAX` attempts are ahead of it.
    missing = COUNTED_MAX if len(rows) >= COUNTED_MAX else 0
    shown["ahead"] = places[0] if places else missing
    declared = known.limits.rule(gate_id.limit)
    if declared is None:
        return shown
    settings = yield from operate.settings_now(gate_id.limit)
    if settings.is_paused:
        since = {"paused_by": settings.paused_by, "paused_since": iso_time(settings.paused_ms)}
        return {**shown, **{name: text for name, text in since.items() if text}}
    rule = effective(declared, settings)
    report = yield from operate.report(gate_id, rule)
    seconds = _seconds(report, shown["ahead"] + 1)
    return shown if seconds is None else {**shown, "seconds": seconds}


def _held_back(scope: Scope) -> JsonResult:
    """Return the fields of a wait because a task, a workflow or the stack is paused. After the
    resume the attempt or execution still waits for its turn among the others.
    """
    shown: dict[str, Any] = {"kind": "paused", "scope": str(scope)}
    settings = yield from operate.settings_now(scope.gate)
    is_paused = settings.is_paused_at((yield Clock()))
    if not is_paused:
        return shown
    fields = pause_fields(settings)
    renamed = {"since": "paused_since", "by": "paused_by"}
    return {**shown, **{renamed.get(name, name): text for name, text in fields.items()}}


def _declared(known: Lookup, name: str) -> LimitRule:
    found = known.limits.rule(name)
    if found is None:
        declared = ", ".join(sorted(known.limits.rules)) or "none"
        raise RequestError(
            "HF238", f"there is no limit {name!r:.60}", status=404, help=f"declared: {declared}"
        )
    return found


def _values(rule: LimitRule) -> dict[str, Any]:
    if rule.interval_us is not None:
        return {"rate": starts_per_second(rule.interval_us), "burst": rule.burst}
    return {"concurrency": rule.concurrency}


def _use(reports: list[GateReport], now_ms: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"waiting": sum(one.waiting for one in reports)}
    if not reports[0].rule.is_rate:
        shown["in_use"] = sum(one.in_use for one in reports)
    oldest = [one.oldest_ms for one in reports if one.oldest_ms is not None]
    if oldest:
        shown["oldest"] = iso_time(min(oldest))
    seconds = [_seconds(one, one.waiting) for one in reports if one.waiting]
    known_seconds = [one for one in seconds if one is not None]
    if known_seconds:
        shown["seconds"] = max(known_seconds)
    speed = min(one.factor for one in reports)
    if speed < 1:
        shown["speed"] = round(speed, 3)
    closed_ms = max(one.closed_ms for one in reports)
    if closed_ms > now_ms:
        shown["closed_until"] = iso_time(closed_ms)
    return shown


def _seconds(report: GateReport, place: int) -> int | None:
    """Return the seconds until the attempt at that place (counted from 1) begins. None for a
    concurrency limit, because the duration of the running attempts is unknown.
    """
    if report.rule.interval_us is None:
        return None
    return math.ceil(place * report.rule.interval_us / MICROSECONDS / report.factor)


def _change(settings: Settings) -> dict[str, Any]:
    shown: dict[str, Any] = {"at": iso_time(settings.at_ms), "reason": settings.reason}
    if settings.by:
        shown["by"] = settings.by
    if settings.is_paused:
        shown["paused"] = True
    plain = {"burst": settings.burst, "concurrency": settings.concurrency}
    shown |= {name: value for name, value in plain.items() if value is not None}
    if settings.interval_us is not None:
        shown["rate"] = starts_per_second(settings.interval_us)
    return shown


# -- the fields of a request -----------------------------------------------------------------------


def _new_values(declared: LimitRule, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Settings` that the request changes."""
    if _flag(request, "clear"):
        others = [field for field in _CHANGES if request.get(field) is not None]
        if others:
            raise _bad(f"`clear` is sent with `{others[0]}`", "clear alone, then a second request")
        return {"interval_us": None, "burst": None, "concurrency": None, "is_paused": False}
    found: dict[str, Any] = {}
    if request.get("rate") is not None:
        _require_kind(declared, "rate", is_rate=True)
        rate = _number(request, "rate", 1 / _DAY_SECONDS, _RATE_MAX)
        found["interval_us"] = interval_us_of(rate)
    if request.get("burst") is not None:
        _require_kind(declared, "burst", is_rate=True)
        found["burst"] = _whole_number(request, "burst", _RATE_MAX)
    if request.get("concurrency") is not None:
        _require_kind(declared, "concurrency", is_rate=False)
        found["concurrency"] = _whole_number(request, "concurrency", _PLACES_MAX)
    paused = _flag(request, "paused")
    if paused is not None:
        found["is_paused"] = paused
    if not found:
        raise _bad("the request changes nothing", "send rate, burst, concurrency, paused or clear")
    return found


def _require_kind(declared: LimitRule, field: str, *, is_rate: bool) -> None:
    if declared.is_rate != is_rate:
        kind = "a rate" if declared.is_rate else "a concurrency"
        raise _bad(
            f"the limit {declared.name} has {kind}, and no `{field}`", "see `holdfast limits`"
        )


def _number(request: Mapping[str, Any], field: str, least: float, most: float) -> float:
    value = request[field]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise _bad(f"`{field}` is {value!r:.40}", f"a number from {least:.6g} to {most:g}")
    return float(value)


def _whole_number(request: Mapping[str, Any], field: str, most: float) -> int:
    value = _number(request, field, 1, most)
    if not value.is_integer():
        raise _bad(f"`{field}` is {value:g}", f"a whole number from 1 to {most:g}")
    return int(value)


def _flag(request: Mapping[str, Any], field: str) -> bool | None:
    value = request.get(field)
    if value is not None and not isinstance(value, bool):
        raise _bad(f"`{field}` is {value!r:.40}", "true or false")
    return value


def _text(request: Mapping[str, Any], field: str, longest: int, default: str | None = None) -> str:
    value = request.get(field, default)
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise _bad(f"`{field}` is missing", "say why: operators read it in `holdfast limits`")
    return value[:longest]


def _bad(found: str, expected: str) -> RequestError:
    return RequestError("HF239", found, help=expected)


def with_places(
    known: Lookup, state: Execution, waits: list[dict[str, Any]]
) -> Generator[Effect, Any, list[dict[str, Any]]]:
    """Return the waits of an execution. Each wait in a queue gets its place in the queue."""
    found = list[dict[str, Any]]()
    for wait in waits:
        entry = wait.pop("entry", None)
        frame = None if entry is None else state.frame_of(entry)
        place = None if frame is None else _place_of(state, frame)
        more = {} if place is None else (yield from place_in_queue(known, *place))
        found += [{**wait, **more}]
    return found
