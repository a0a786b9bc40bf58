"""Fork an execution: start a new one that begins with its history up to a step and continues there.

The origin is not changed, and none of its work is undone. The response says what the origin has
done after the step, which the fork may do again. The start message of the fork has a format of its
own. Otherwise a worker of an older release would begin the execution from its first state.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core import forking
from holdfast.core.events import Event
from holdfast.core.run_ids import child_run, spread_of
from holdfast.core.state import Execution
from holdfast.errors import RequestError
from holdfast.limits import RECORD_RETENTION_SECONDS, START_INPUT_BYTES_MAX
from holdfast.runtime import inbox, messages, pending_starts
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.graphs import find_workflow, normalised_input
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, Effect, JsonResult, Message, Put, Query, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.histories import read_records

_SHOWN_MAX: Final = 20


def fork(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Start a fork. `request`: step, input?, set? (an object: variables by name), on? ("latest":
    the fork continues on the newest definition), reason, by?.

    Return `execution`, `fork_of`, `step`, and `not_taken_back`: the tasks that have run in the
    origin since it entered the step, its child executions, and the events it has used since.
    Raises RequestError HF205, HF210, HF211, HF216, HF217, HF234, HF412, HF413, HF444.
    """
    words = reason_and_author(request)
    log = yield from known.require_log(tenant, identifier)
    if log.state is None:
        raise _no_step(log.run, request.get("step"), ())
    if log.state.origin is not None:
        raise _cannot(log.run, "is of a state machine", "start the machine again")
    rule = keyed.rule_for(known, log.state.workflow)
    if rule is not None:
        why = f"has the key {rule.parameter}, for which one execution runs"
        raise _cannot(log.run, why, "stop it, and start another one with that key")
    records = yield from read_records(tenant, log.run, known.formats)
    events = [event for record in records for event in record.events]
    if not events or events[0].type != "ExecutionStarted":
        raise _cannot(log.run, "is so old that its first events are deleted", "start a new one")
    entered = _entered(log.run, events, request.get("step"))
    place = forking.begin_of(events, entered)
    assert place is not None
    begun = forking.base(events[: place + 1])
    given = yield from _overrides(known, tenant, begun, request)
    if request.get("on") is not None:
        given |= yield from _move(known, tenant, _with_set(begun, given["set"]), request["on"])
    step = str(request["step"])
    of = {"run": log.run, "event": entered, "step": step}
    run = yield from _send(known, tenant, begun, {"of": of, **given, **words}, chance)
    return {
        "execution": run,
        "fork_of": log.run,
        "step": step,
        "not_taken_back": _since(log.run, events[place + 1 :]),
    }


def forks_of(tenant: str, run: str) -> Generator[Effect, Any, list[str]]:
    """Return the ids of the executions that began as copies of this one."""
    rows = yield Query(tables.MAIL, keys.inbox(tenant, run), begins_with=keys.FORK_PREFIX)
    return [str(row["sk"]).removeprefix(keys.FORK_PREFIX) for row in rows]


def _send(
    known: Lookup, tenant: str, origin: Execution, request: dict[str, Json], chance: bytes
) -> Generator[Effect, Any, str]:
    """Store the rows by which the forks of the origin are found, then send the start message of the
    fork (R12).
    """
    now_ms = yield Clock(is_for_id=True)
    # A repeated step of a bulk operation forks with the same time and the same chance. The stack's
    # spread may have changed since, and with another spread the id would be that of a second fork.
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret, spread_of(origin.run))
    yield Put(
        tables.MAIL,
        {
            "pk": keys.inbox(tenant, origin.run),
            "sk": keys.fork(run),
            FORMAT_FIELD: FORMAT,
            "at": now_ms,
            "ttl": now_ms // 1_000 + RECORD_RETENTION_SECONDS,
        },
    )
    stowed = yield from inbox.stow(tenant, run, request, START_INPUT_BYTES_MAX)
    fields = {"workflow": origin.workflow, "definition": origin.definition, "t0": now_ms}
    body = messages.fork(tenant, run, is_moved="move" in request, **fields, input=stowed)
    yield from pending_starts.guard(body, None)
    yield Send((Message(body),), "starts")
    return run


def _entered(run: str, events: Sequence[Event], step: Any) -> int:
    """Return the id of the event with which the origin last entered the step."""
    found = forking.entries(events)
    if not isinstance(step, str) or step not in found:
        raise _no_step(run, step, tuple(found))
    return events[found[step]].id


def _overrides(
    known: Lookup, tenant: str, begun: Execution, request: Mapping[str, Any]
) -> Generator[Effect, Any, dict[str, Json]]:
    """Return `set`, and `input` where it is given. Raises RequestError HF205, HF210, HF211, HF216,
    HF217, HF444.
    """
    (frame,) = begun.frames.values()
    if frame.cancelled is not None or begun.stopping is not None:
        raise _cannot(begun.run, f"undoes its work in {frame.position}", "fork at an earlier step")
    changed = request.get("set") or {}
    if not isinstance(changed, dict) or not changed.keys() <= frame.variables.keys():
        unknown = sorted(set(changed) - frame.variables.keys()) if isinstance(changed, dict) else []
        raise RequestError(
            "HF217",
            f"{frame.position} has no variable {', '.join(unknown)[:90] or repr(changed)[:90]}",
            help=f"those that it has: {', '.join(sorted(frame.variables)) or 'none'}",
        )
    if changed:
        definition = yield from known.programs.fetch(tenant, begun.definition)
        _require_forms(definition.source_map.get("shapes", {}), changed)
    given: dict[str, Json] = {"set": changed}
    if "input" not in request:
        return given
    if frame.entry_previous:
        raise RequestError(
            "HF217",
            f"{frame.position} is not the first step: it takes its data from variables",
            help="give variables instead: --set NAME=JSON",
        )
    found = yield from find_workflow(known, tenant, begun.workflow)
    return {**given, "input": normalised_input(known, tenant, found, request["input"])}


def _move(
    known: Lookup, tenant: str, begun: Execution, wanted: Any
) -> Generator[Effect, Any, dict[str, Json]]:
    """Return the fields of the move to the newest definition; {} when the fork has that definition
    already.

    The proof is the one of a migration, for a step that runs from its beginning: the earlier steps,
    the variables and the undo steps must be those that the new definition needs. Raises
    RequestError HF412 with each obligation that does not hold, HF413.
    """
    # Imported here for cold starts: most forks keep their definition.
    from holdfast.migration.positions import position_of_fork  # noqa: PLC0415
    from holdfast.runtime.commands.migrate import LATEST, migration_of, with_computed  # noqa: PLC0415

    if wanted != LATEST:
        raise RequestError("HF413", f"`on` is {wanted!r:.80}, expected latest", help="--on latest")
    target = (yield from find_workflow(known, tenant, begun.workflow)).definition
    if target.hash == begun.definition:
        return {}
    old = yield from known.programs.fetch(tenant, begun.definition)
    migration = migration_of(old, target)
    verdict = migration.judge(position_of_fork(begun, migration.old))
    if verdict.plan is None:
        reasons = "; ".join(map(str, verdict.obstacles))
        raise RequestError(
            "HF412",
            f"a fork of execution {begun.run} may not continue on {target.hash[:12]}: {reasons}",
            status=409,
            help="fork at a step before the change, or leave out `--on latest`",
        )
    plan = with_computed(known, tenant, begun, migration, verdict.plan)
    yield from known.programs.store(tenant, target)
    return {"move": {"from": old.hash, "to": target.hash, "plan": plan}}


def _with_set(begun: Execution, changed: Any) -> Execution:
    """Return the state with the variables of the request, from which others may be computed."""
    (frame,) = begun.frames.values()
    moved = frame._replace(variables={**frame.variables, **changed})
    return begun._replace(frames={frame.id: moved})


def _require_forms(shapes: Mapping[str, Any], changed: Mapping[str, Json]) -> None:
    """Raise RequestError HF211 for a value that the workflow's own code could not have assigned."""
    from holdfast.runtime.commands.variable_forms import misfit  # noqa: PLC0415  # rarely needed

    for name, value in changed.items():
        why = misfit(shapes, name, value)
        if why is not None:
            raise RequestError(
                "HF211",
                f"the value of the variable {name} does not fit: {why}",
                help="`holdfast history` shows the values that it had",
            )


def _since(run: str, events: Sequence[Event]) -> dict[str, list[str]]:
    """Return what the origin has done after the step, by kind."""
    tasks: list[str] = []
    children: list[str] = []
    used: list[str] = []
    for event in events:
        resource, own = str(event.details.get("resource", "")), event.holdfast
        if event.type == "TaskScheduled" and resource.startswith("task:"):
            tasks.append(resource.removeprefix("task:"))
        elif event.type == "TaskScheduled" and resource.startswith("workflow:"):
            children.append(child_run(run, own["entry"], own["attempt"]))
        elif "event" in own:
            used.append(str(own["event"]))
    found = {"tasks": list(dict.fromkeys(tasks)), "children": children, "events": used}
    return {name: values[:_SHOWN_MAX] for name, values in found.items() if values}


def _no_step(run: str, step: Any, steps: Sequence[str]) -> RequestError:
    return RequestError(
        "HF216",
        f"execution {run} has entered no step {step!r:.90} outside of branches",
        status=409,
        help=f"a fork may begin at: {', '.join(steps[:_SHOWN_MAX]) or 'none'}",
    )


def _cannot(run: str, why: str, fix: str) -> RequestError:
    return RequestError(
        "HF217", f"execution {run} {why}, and cannot be forked", status=409, help=fix
    )
