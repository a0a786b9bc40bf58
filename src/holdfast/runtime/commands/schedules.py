"""Schedules, for operators and for the deployed code: create, show, pause, resume, delete, and make
up for past times.

Code declares a schedule, and an operator pauses it. A deployment changes the declared part and
keeps the pause. docs/how-to/schedule.md shows the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.timestamps import nanos_of
from holdfast.core.decision import iso_time
from holdfast.core.schedules import Progress, Rule, fault_in, next_after
from holdfast.errors import RequestError, ServiceFault
from holdfast.limits import CAUSE_CHARACTERS_MAX, NAME_CHARACTERS_MAX, SCHEDULE_NAME_CHARACTERS_MAX
from holdfast.runtime import schedules
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import (
    Clock,
    Delete,
    Effect,
    JsonResult,
    NoResult,
    PutIfAbsent,
    Replace,
)
from holdfast.runtime.schedules import Plan, StoredSchedule
from holdfast.runtime.storage import keys, tables
from holdfast.sealed import hidden

_RACES_MAX: Final = 5
_SHOWN_TIMES: Final = 5
_MINUTE_SECONDS: Final = 60
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "overlap": ("skip", "queue-one", "queue-all", "cancel-other", "allow"),
    "missing": ("shift", "skip"),
    "repeated": ("first", "last"),
}
Change = Callable[[StoredSchedule, int], StoredSchedule]


# -- reading ---------------------------------------------------------------------------------------


def schedules_of(tenant: str) -> JsonResult:
    """Return {"schedules": [...]}, by name; see `schedule`."""
    found = yield from schedules.all_of(tenant)
    return {"schedules": [_shown(one) for one in found]}


def schedule(known: Lookup, tenant: str, name: str) -> JsonResult:
    """Return one schedule with its next five nominal times. Raises RequestError HF245 (404).

    A schedule notes the end of an execution at its next time; `running` is read from the logs.
    """
    found = yield from _require(tenant, name)
    times, at_ms = list[int](), found.progress.next_ms
    while at_ms is not None and len(times) < _SHOWN_TIMES and not found.progress.is_paused:
        times.append(at_ms)
        at_ms = next_after(found.plan.rule, at_ms)
    now_ms = yield Clock()
    running, _ = yield from schedules.running(tenant, found.progress.open, now_ms, known.formats)
    return {**_shown(found), "running": list(running), "times": list(map(iso_time, times))}


def _require(tenant: str, name: str) -> Generator[Effect, Any, StoredSchedule]:
    found: StoredSchedule | None = yield from schedules.find(tenant, name)
    if found is None:
        raise RequestError(
            "HF245",
            f"there is no schedule {name!r:.90}",
            status=404,
            help="`holdfast schedule list` shows them",
        )
    return found


def _shown(found: StoredSchedule) -> dict[str, Any]:
    plan, rule, progress = found.plan, found.plan.rule, found.progress
    shown: dict[str, Any] = {
        "name": found.name,
        "workflow": plan.workflow,
        **({"cron": rule.cron, "zone": rule.zone} if rule.cron else {}),
        **({"every": rule.every_ms // 1_000} if rule.every_ms else {}),
        "overlap": plan.overlap,
        "declared": "in code" if found.is_code else "by command",
        "input": hidden(dict(plan.input)),
        "started": progress.started,
        "skipped": progress.skipped,
        "missed": progress.missed,
        "late": progress.late,
        "running": list(progress.open),
    }
    if progress.next_ms is not None and not progress.is_paused:
        shown["next"] = iso_time(progress.next_ms)
    if progress.is_paused:
        shown["paused"] = {"since": iso_time(found.at_ms), "reason": found.reason, "by": found.by}
    if progress.queued:
        shown["queued"] = len(progress.queued)
    if progress.backfill is not None:
        shown["backfill"] = {
            "reached": iso_time(progress.backfill[0]),
            "until": iso_time(progress.backfill[1]),
        }
    if progress.refused:
        shown |= {"refused": progress.refused, "fault": progress.fault}
    return shown


# -- create and delete -----------------------------------------------------------------------------


def create(known: Lookup, tenant: str, request: Mapping[str, Any]) -> JsonResult:
    """Create a schedule. `request`: name, workflow, cron? or every? (seconds), zone?, input?,
    time_as?, overlap?, missing?, repeated?, catch_up? and jitter? (seconds), pause_on_failure?.

    If the same request is sent twice, there is one schedule. Raises RequestError HF201, HF205,
    HF210, HF246, HF247.
    """
    name = _name(request.get("name"))
    plan = _plan(known, tenant, request)
    now_ms = yield Clock()
    wanted = fresh(tenant, name, plan, now_ms, is_code=False)
    yield from schedules.put_row(tenant, name, now_ms)
    there = yield PutIfAbsent(tables.MAIL, schedules.item_of(wanted))
    found = wanted if there is None else schedules.read(there)
    if _comparable(found.plan) != _comparable(plan) or found.is_code:
        raise RequestError(
            "HF247",
            f"a schedule {name!r} exists, and is another one",
            status=409,
            help="delete it first, or choose another name",
        )
    return _shown(found)


def _comparable(plan: Plan) -> Plan:
    """Return the plan with its secrets hidden. Encryption is randomised, so two plans with the same
    secret are equal only in this form.
    """
    return replace(plan, input=hidden(dict(plan.input)))


def fresh(tenant: str, name: str, plan: Plan, now_ms: int, *, is_code: bool) -> StoredSchedule:
    """Return a schedule that has not started anything yet."""
    progress = Progress(next_after(plan.rule, now_ms))
    return StoredSchedule(tenant, name, plan, progress, is_code, at_ms=now_ms)


def delete(tenant: str, name: str) -> JsonResult:
    """Delete a schedule; executions that it has started continue. Raises RequestError HF245,
    HF248.
    """
    found = yield from _require(tenant, name)
    if found.is_code:
        raise RequestError(
            "HF248",
            f"the schedule {name!r} is declared in code",
            status=409,
            help="`holdfast schedule pause` holds it; without it in the code, a deploy ends it",
        )
    yield Delete(tables.MAIL, keys.schedules(tenant), name)
    return {"name": name, "deleted": True}


# -- pause, resume, backfill -----------------------------------------------------------------------


def pause(tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
    """Pause a schedule: it starts nothing until the resume. `request`: reason, by?. Raises
    RequestError HF245, HF246.
    """
    texts = _texts(request)

    def paused(found: StoredSchedule, now_ms: int) -> StoredSchedule:
        if found.progress.is_paused:
            return found
        progress = replace(found.progress, is_paused=True)
        return schedules.later(found, progress=progress, at_ms=now_ms, **texts)

    return (yield from _change(tenant, name, paused))


def resume(tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
    """Resume a schedule from its first nominal time after now. `request`: reason, by?. Raises as
    `pause`.

    Nominal times during the pause are not made up for: `backfill` does that.
    """
    texts = _texts(request)

    def resumed(found: StoredSchedule, now_ms: int) -> StoredSchedule:
        if not found.progress.is_paused:
            return found
        next_ms = next_after(found.plan.rule, now_ms)
        # Keep `open`: executions that still run count for the overlap rule. The execution whose
        # failure paused the schedule is not among them.
        progress = replace(found.progress, is_paused=False, next_ms=next_ms)
        return schedules.later(found, progress=progress, at_ms=now_ms, **texts)

    return (yield from _change(tenant, name, resumed))


def backfill(tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
    """Start an execution for each nominal time in a past range for which none exists. `request`:
    since, until (ISO times, both included). Raises RequestError HF245, HF246, HF249.
    """
    since_ms, until_ms = _instant(request, "since"), _instant(request, "until")

    def filling(found: StoredSchedule, now_ms: int) -> StoredSchedule:
        if not since_ms <= until_ms <= now_ms:
            raise _bad("`since` is not before `until`, or `until` is not past", "a past range")
        if found.progress.backfill is not None:
            raise RequestError(
                "HF249",
                f"the schedule {name!r} makes up for another range",
                status=409,
                help=f"it has reached {iso_time(found.progress.backfill[0])}; try again later",
            )
        progress = replace(found.progress, backfill=(since_ms - 1, until_ms))
        return schedules.later(found, progress=progress)

    return (yield from _change(tenant, name, filling))


def _change(tenant: str, name: str, change: Change) -> JsonResult:
    for _ in range(_RACES_MAX):
        found = yield from _require(tenant, name)
        now_ms = yield Clock()
        changed = change(found, now_ms)
        if changed is found:
            return _shown(found)
        if (yield Replace(tables.MAIL, schedules.item_of(changed), found.rv)):
            # Put the row after the schedule. If this process crashes between the two, the sweeper
            # still reads the schedule's old row within an hour.
            yield from schedules.put_row(tenant, name, now_ms)
            return _shown(changed)
    raise ServiceFault("HF321", f"others changed the schedule {name} meanwhile", retry="now")


# -- the deployed code -----------------------------------------------------------------------------


def deploy(tenant: str, declared: Mapping[str, Plan]) -> NoResult:
    """Make the stored schedules equal to those that the code declares. A paused schedule stays
    paused.
    """
    stored = {one.name: one for one in (yield from schedules.all_of(tenant))}
    now_ms = yield Clock()
    for name, plan in declared.items():
        found = stored.get(name)
        if found is None:
            yield from schedules.put_row(tenant, name, now_ms)
            first = fresh(tenant, name, plan, now_ms, is_code=True)
            yield PutIfAbsent(tables.MAIL, schedules.item_of(first))
        elif found.plan != plan or not found.is_code:
            progress = found.progress
            if found.plan.rule != plan.rule:
                progress = replace(progress, next_ms=next_after(plan.rule, now_ms))
            changed = schedules.later(found, plan=plan, progress=progress, is_code=True)
            yield Replace(tables.MAIL, schedules.item_of(changed), found.rv)
            yield from schedules.put_row(tenant, name, now_ms)
    for name, found in stored.items():
        if found.is_code and name not in declared:
            yield Delete(tables.MAIL, keys.schedules(tenant), name)


# -- the fields of a request -----------------------------------------------------------------------


def _name(value: Any) -> str:
    name = keys.require_name(value, "the name of the schedule")
    if len(name) > SCHEDULE_NAME_CHARACTERS_MAX:
        raise _bad(
            f"the name has {len(name)} characters", f"at most {SCHEDULE_NAME_CHARACTERS_MAX}"
        )
    return name


def _plan(known: Lookup, tenant: str, request: Mapping[str, Any]) -> Plan:
    known.workflow(request.get("workflow"))
    workflow = str(request["workflow"])
    rule = rule_of(request)
    data = request.get("input", {})
    time_as = request.get("time_as", "")
    if not isinstance(data, dict) or not isinstance(time_as, str):
        raise _bad("`input` is no object, or `time_as` is no text", "the workflow's parameters")
    example = {**data, **({time_as: iso_time(0)} if time_as else {})}
    normal = known.types.normalise_input(tenant, workflow, example)
    # `normalise_input` has encrypted the secrets, because the table must never store one in plain
    # text. Leave out the field `time_as`: its value here is only an example, and each start sets it
    # to its own nominal time.
    kept = {key: value for key, value in normal.items() if key != time_as}  # type: ignore[union-attr]
    return Plan(
        workflow,
        rule,
        kept,
        time_as,
        _choice(request, "overlap"),
        _seconds(request, "catch_up", 365 * 86_400) * 1_000,
        request.get("pause_on_failure") is True,
    )


def rule_of(request: Mapping[str, Any]) -> Rule:
    """Return the rule of a request. Raises RequestError HF246."""
    cron, every = request.get("cron"), _seconds(request, "every", 0)
    if (cron is None) == (every == 0):
        raise _bad("not one of `cron` and `every` is given", "one of the two")
    if every % _MINUTE_SECONDS:
        raise _bad(f"`every` is {every} s", "whole minutes")
    zone = request.get("zone", "UTC")
    if not isinstance(cron or "", str) or not isinstance(zone, str):
        raise _bad("`cron` or `zone` is no text", "0 9 * * MON-FRI, and Europe/Berlin")
    rule = Rule(
        cron or "",
        zone,
        every * 1_000,
        _choice(request, "missing"),  # type: ignore[arg-type]
        _choice(request, "repeated"),  # type: ignore[arg-type]
        _seconds(request, "jitter", 0) * 1_000,
    )
    fault = fault_in(rule)
    if fault is not None:
        raise _bad(fault, "minute hour day month weekday, and a zone like Europe/Berlin")
    return rule


def _choice(request: Mapping[str, Any], field: str) -> str:
    allowed = _CHOICES[field]
    value = request.get(field, allowed[0])
    if value not in allowed:
        raise _bad(f"`{field}` is {value!r:.40}", f"one of {', '.join(allowed)}")
    return str(value)


def _seconds(request: Mapping[str, Any], field: str, default: int) -> int:
    value = request.get(field, default)
    if type(value) is not int or not 0 <= value <= 10 * 365 * 86_400:
        raise _bad(f"`{field}` is {value!r:.40}", "whole seconds, at most ten years")
    return int(value)


def _instant(request: Mapping[str, Any], field: str) -> int:
    value = request.get(field)
    nanos = nanos_of(value) if isinstance(value, str) else None
    if nanos is None:
        raise _bad(f"`{field}` is {value!r:.40}", "an ISO time: 2026-03-01T00:00:00Z")
    return nanos // 1_000_000


def _texts(request: Mapping[str, Any]) -> dict[str, str]:
    reason, by = request.get("reason"), request.get("by", "")
    if not isinstance(reason, str) or not reason.strip() or not isinstance(by, str):
        raise _bad("`reason` is missing", "say why: `holdfast schedule show` prints it")
    return {"reason": reason[:CAUSE_CHARACTERS_MAX], "by": by[:NAME_CHARACTERS_MAX]}


def _bad(found: str, expected: str) -> RequestError:
    return RequestError("HF246", found, help=f"expected: {expected}")
