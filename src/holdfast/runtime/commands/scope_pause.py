"""Pause and resume a task, a workflow or the whole stack: nothing that the pause covers begins.

Like a change of a limit, the pause is a setting of the stack. It stays after deployments, until a
resume or until its end. `runtime/gates/scopes.py` says how workers read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from holdfast.asl.timestamps import nanos_of
from holdfast.core.decision import iso_time
from holdfast.errors import RequestError, ServiceFault, known_names
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, JsonResult
from holdfast.runtime.gates import operate
from holdfast.runtime.gates.rules import GateId, Settings, scope_rule
from holdfast.runtime.gates.scopes import ALL, Scope, scope_of


def change_pause(known: Lookup, request: Mapping[str, Any]) -> JsonResult:
    """Pause or resume a task, a workflow or the stack. `request`: one of task, workflow and all
    (true); paused (true or false), until?, reason, by?.

    Return the pause as `pauses` shows it. A second pause with the same reason and end changes
    nothing. Raises RequestError HF226, HF234 (400), HF235, HF236 (409).
    """
    scope, words = _scope_in(known, request), reason_and_author(request)
    is_paused = request.get("paused")
    if not isinstance(is_paused, bool):
        raise _bad(f"`paused` is {is_paused!r:.40}", "true to pause, false to resume")
    now_ms = yield Clock()
    until_ms = _until_ms(request, now_ms)
    settings = yield from operate.settings_now(scope.gate)
    if is_paused and settings.is_paused_at(now_ms):
        _require_same(scope, settings, words["reason"], until_ms)
        return (yield from _shown(scope, settings, now_ms))
    if not is_paused and not settings.is_paused_at(now_ms):
        raise RequestError(
            "HF236", f"{scope} is not paused", status=409, help="see `holdfast pauses`"
        )
    changed = {**words, "is_paused": is_paused, "until_ms": until_ms if is_paused else 0}
    stored = yield from operate.change(scope_rule(scope.gate), changed)
    if stored is None:
        raise ServiceFault("HF321", f"others changed the pause of {scope} meanwhile", retry="now")
    return (yield from _shown(scope, stored, now_ms))


def pauses() -> JsonResult:
    """Return {"pauses": [...]}: each pause that is in force, or that has ended and whose queue is
    not empty yet.

    The fields: `scope` (a text), task, workflow or all; `paused`, and then `since`, `reason`, `by`?
    and `until`?; `waiting` (counted to 1,000) and `oldest`?.
    """
    now_ms = yield Clock()
    found = list[dict[str, Any]]()
    for gate, settings in sorted((yield from operate.changed_scopes()).items()):
        shown = yield from _shown(scope_of(gate), settings, now_ms)
        if shown["paused"] or shown["waiting"]:
            found.append(shown)
    return {"pauses": found}


def pause_fields(settings: Settings) -> dict[str, str]:
    """Return `since`, `reason`, `by`? and `until`? of a pause."""
    shown = {"since": iso_time(settings.paused_ms), "reason": settings.reason}
    if settings.paused_by:
        shown["by"] = settings.paused_by
    if settings.until_ms:
        shown["until"] = iso_time(settings.until_ms)
    return shown


def _shown(scope: Scope, settings: Settings, now_ms: int) -> JsonResult:
    report = yield from operate.report(GateId(scope.gate), scope_rule(scope.gate))
    is_paused = settings.is_paused_at(now_ms)
    shown: dict[str, Any] = {"scope": str(scope), **_fields_of(scope), "paused": is_paused}
    if is_paused:
        shown |= pause_fields(settings)
    shown["waiting"] = report.waiting
    if report.oldest_ms is not None:
        shown["oldest"] = iso_time(report.oldest_ms)
    return shown


def _fields_of(scope: Scope) -> dict[str, Any]:
    match scope.kind:
        case "task" | "workflow":
            return {scope.kind: scope.name}
        case "all":
            return {"all": True}
        case _:
            assert_never(scope.kind)


def _require_same(scope: Scope, settings: Settings, reason: str, until_ms: int) -> None:
    if (settings.reason, settings.until_ms) != (reason, until_ms):
        by = f" by {settings.paused_by}" if settings.paused_by else ""
        raise RequestError(
            "HF235",
            f"{scope} is paused since {iso_time(settings.paused_ms)}{by}: {settings.reason}",
            status=409,
            help="resume it first: `holdfast resume` with the same scope",
        )


# -- the fields of a request -----------------------------------------------------------------------


def _scope_in(known: Lookup, request: Mapping[str, Any]) -> Scope:
    given = {name: request[name] for name in ("task", "workflow", "all") if request.get(name)}
    if len(given) != 1:
        raise _bad(f"{len(given)} of task, workflow and all are given", "exactly one of them")
    ((kind, name),) = given.items()
    if kind == "all":
        if name is not True:
            raise _bad(f"`all` is {name!r:.40}", "true")
        return ALL
    maps = [definition.source_map for definition in known.workflows.values()]
    tasks = {task for source_map in maps for task in source_map.get("tasks", ())}
    deployed = tasks if kind == "task" else set(known.workflows)
    if name not in deployed:
        named = known_names(name, deployed)[:400]
        raise _bad(f"there is no {kind} {name!r:.60}", f"one that is deployed; {named}")
    return Scope("task" if kind == "task" else "workflow", str(name))


def _until_ms(request: Mapping[str, Any], now_ms: int) -> int:
    """Return the end of the pause; 0 without one."""
    value = request.get("until")
    if value is None:
        return 0
    nanos = nanos_of(value) if isinstance(value, str) else None
    if nanos is None or nanos // 1_000_000 <= now_ms:
        raise _bad(f"`until` is {value!r:.60}", "a later time with its zone: 2027-01-15T08:00:00Z")
    return nanos // 1_000_000


def _bad(found: str, expected: str) -> RequestError:
    return RequestError("HF226", found, help=f"expected: {expected}")
