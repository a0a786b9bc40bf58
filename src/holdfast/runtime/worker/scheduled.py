"""A nominal time of a schedule has come: a worker decides, starts the executions, and stores the
progress.

Each nominal time starts one execution, because of this order: the executions are started before the
progress is stored. A crash between the two repeats the decision. The repeated starts have the same
names, so they find the executions that exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from holdfast.core.decision import iso_time
from holdfast.core.schedules import Decision, decide, execution_name
from holdfast.errors import RequestError
from holdfast.limits import SCHEDULE_OPEN_MAX, SCHEDULE_UNKNOWN_MS
from holdfast.runtime import messages, schedules
from holdfast.runtime.commands import start
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.effects import Clock, Effect, Get, Message, NoResult, Replace, Send
from holdfast.runtime.follow_ups import delay_until
from holdfast.runtime.schedules import StoredSchedule
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.config import WorkerConfig


def tick(setting: WorkerConfig, body: Any) -> Generator[Effect, Any, bool]:
    """Start the executions that are due. Return False when the code of this worker does not have
    the workflow, because code of another release may. After an hour the nominal times are refused.
    """
    tenant, name = str(body["t"]), str(body["schedule"])
    found = yield from schedules.find(tenant, name)
    if found is None:
        return True
    now_ms = yield Clock()
    is_known = found.plan.workflow in setting.workflows.definitions
    if not is_known and now_ms - int(body["due"]) <= SCHEDULE_UNKNOWN_MS:
        return False
    due_ms = found.next_due_ms
    if due_ms is not None and now_ms < due_ms == body["due"]:
        # The message came too early, because the clock of this host is behind the sweeper's. Send
        # it again for the nominal time; otherwise this start would be lost.
        yield Send((Message(messages.schedule(tenant, name, due_ms), delay_until(due_ms, now_ms)),))
    followed = _tracked(found, found.progress.open)
    running, has_failed = yield from schedules.running(tenant, followed, now_ms, setting.formats)
    progress = replace(found.progress, open=running)
    if has_failed and found.plan.pauses_on_failure and not progress.is_paused:
        paused = replace(progress, is_paused=True)
        reason = "an execution has failed"
        yield from _store(schedules.later(found, progress=paused, reason=reason, at_ms=now_ms))
        return True
    plan = found.plan
    decision = decide(plan.rule, plan.policy, name, progress, now_ms)
    if decision.progress == found.progress:
        return True
    if decision.stops_others:
        begun = yield from _begun(found, decision)
        begun, _ = yield from schedules.running(tenant, begun, now_ms, setting.formats)
        for run in dict.fromkeys((*running, *begun)):
            yield from _stop(setting, tenant, run, now_ms)
    progress = yield from _start_all(setting, found, decision)
    yield from _store(schedules.later(found, progress=progress))
    return True


def _store(later: StoredSchedule) -> NoResult:
    """Store the progress. If another worker or an operator has changed the schedule first, this
    progress is dropped. The next decision then repeats the starts and finds the executions by their
    names; the sweeper sends the message for it.
    """
    yield Replace(tables.MAIL, schedules.item_of(later), later.rv - 1)


def _start_all(
    setting: WorkerConfig, found: StoredSchedule, decision: Decision
) -> Generator[Effect, Any, Any]:
    progress = decision.progress
    begun = list[str]()
    for nominal_ms in decision.starts:
        try:
            begun.append((yield from _start(setting, found, nominal_ms)))
        except RequestError as error:
            # The start was refused: the types in the code have changed, or a person has used the
            # name. Note the reason and continue, because later nominal times may still start.
            fault = f"{execution_name(found.name, nominal_ms)}: {error.code}: {error.message}"
            progress = replace(
                progress,
                started=progress.started - 1,
                refused=progress.refused + 1,
                fault=fault[:300],
            )
    others = () if decision.stops_others else progress.open
    return replace(progress, open=_tracked(found, (*others, *begun)))


def _tracked(found: StoredSchedule, runs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the executions whose end the schedule must notice. Their number is bounded, because
    each is loaded at each nominal time.
    """
    if found.plan.overlap == "allow" and not found.plan.pauses_on_failure:
        return ()
    return runs[-SCHEDULE_OPEN_MAX:]


def _begun(found: StoredSchedule, decision: Decision) -> Generator[Effect, Any, tuple[str, ...]]:
    """Return the executions of nominal times that this decision replaces by a later one. A worker
    that crashed before it stored the progress may have started them.
    """
    begun = list[str]()
    for nominal_ms in decision.replaced:
        name = execution_name(found.name, nominal_ms)
        partition = keys.name(found.tenant, found.plan.workflow, name)
        row = yield Get(tables.MAIL, partition, keys.ONLY)
        if row is not None:
            begun.append(str(row["run"]))
    return tuple(begun)


def _start(
    setting: WorkerConfig, found: StoredSchedule, nominal_ms: int
) -> Generator[Effect, Any, str]:
    known = setting.lookup()
    name = execution_name(found.name, nominal_ms)
    data = dict(found.plan.input)
    if found.plan.time_as:
        data[found.plan.time_as] = iso_time(nominal_ms)
    request = {"workflow": found.plan.workflow, "input": data, "name": name}
    # Two workers may start the same name at once, and only one of them gets the name. The bytes for
    # the id need not be secret. They must only differ from those of other schedules and other
    # times.
    chance = hashlib.sha256(f"{found.tenant}.{found.name}.{nominal_ms}".encode()).digest()[:8]
    wanted, normal = yield from start.of_workflow(known, found.tenant, request, chance)
    try:
        accepted = yield from start.accept(known, found.tenant, wanted, normal, has_row=False)
    except start.NameTakenError:
        raise RequestError(
            "HF212", f"an execution {name!r} with another input exists", status=409
        ) from None
    return accepted.start.run


def _stop(setting: WorkerConfig, tenant: str, run: str, now_ms: int) -> NoResult:
    log = Log(tenant, run, "schedule", "", setting.formats)
    yield from log.load()
    chance = hashlib.sha256(f"{run}.{now_ms}".encode()).digest()[:8]
    cause = {"error": "Holdfast.Overlap", "cause": "the next execution is due"}
    yield from request_control(tenant, run, log.state, (now_ms, chance), cause)
