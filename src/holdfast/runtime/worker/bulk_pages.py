"""The two steps of a bulk operation: choose a page of executions, and give each its command."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.asl.resources import BULK_SELECT
from holdfast.core.state import Attempt, Awaiting, Execution
from holdfast.errors import HoldfastError, RequestError, ServiceFault, is_damage
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import bulk
from holdfast.runtime.commands import events, fork, keyed, pause, retry, skip, stop
from holdfast.runtime.commands.bulk import selected
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.once import Moment, once
from holdfast.runtime.effects import Clock, Effect, JsonResult, WriteDeadline
from holdfast.runtime.storage import keys

#: The outcome of an execution that got its command. Any other outcome is the reason of a refusal.
DONE: Final = "done"
#: A step reads at most this many pages of the list. Otherwise a step whose filter matches few rows
#: would read the whole list and not end before the invocation's deadline.
_LIST_PAGES_MAX: Final = 10
_CHANCE_BYTES: Final = 7
_REASON_CHARACTERS_MAX: Final = 200


def carry_out(
    known: Lookup, state: Execution, tenant: str, attempt: Attempt
) -> Generator[Effect, Any, Json]:
    """Carry out the step of the attempt. Return its result."""
    given: Any = attempt.arguments
    if attempt.target == BULK_SELECT:
        return (yield from _select(known, state, tenant, given))
    frame = state.frame_of(attempt.entry)
    assert frame is not None
    # Use the time at which the step was entered. A retry of the attempt then creates commands with
    # the same ids, so no command is carried out twice.
    return (yield from _act(known, (tenant, state.run, frame.entered_ms), given))


def _select(known: Lookup, state: Execution, tenant: str, given: Mapping[str, Any]) -> JsonResult:
    """Return the ids of the next page, and the place after it (None at the end). Executions that
    started after the bulk operation are left out.
    """
    asked, after = dict(given["request"]), given["after"]
    chosen: list[str] = []
    for _ in range(_LIST_PAGES_MAX):
        rows, after = yield from selected(known, tenant, asked, after, asked["page"] - len(chosen))
        chosen += [row["execution"] for row in rows if row["started_ms"] <= state.started_ms]
        if after is None or len(chosen) >= asked["page"]:
            break
    return {"executions": chosen, "after": after}


def _act(known: Lookup, place: tuple[str, str, int], given: Mapping[str, Any]) -> JsonResult:
    """Give each execution its command. Return how many were done and refused, the outcome of each,
    and the seconds to pause before the next page.
    """
    asked, outcomes = given["request"], dict[str, str]()
    for run in given["executions"]:
        if (yield Clock()) >= (yield WriteDeadline()):
            # End the delivery before the deadline of the invocation. SQS then delivers the message
            # again, and the repeated step finds the commands that are already stored (R9).
            raise ServiceFault("HF506", "the time of a worker ended in a page of a bulk operation")
        outcomes[run] = yield from _outcome(known, place, run, asked)
    done = sum(outcome == DONE for outcome in outcomes.values())
    return {
        "done": done,
        "refused": len(outcomes) - done,
        "outcomes": outcomes,
        "pause": bulk.pause_of(len(outcomes), asked["rate"]),
    }


def _outcome(
    known: Lookup, place: tuple[str, str, int], run: str, asked: Mapping[str, Any]
) -> Generator[Effect, Any, str]:
    tenant, own, at_ms = place
    chance = _chance(f"{own}.{run}")
    try:
        if asked["operation"] == "event":
            yield from _send_event(known, place, run, asked["fields"])
        else:
            command = _COMMANDS[asked["operation"]](known, tenant, run, asked, chance)
            yield from once(command, Moment(tenant, run, at_ms, chance))
    except RequestError as refusal:
        return f"{refusal.code}: {refusal.message}"[:_REASON_CHARACTERS_MAX]
    except HoldfastError as error:
        if not is_damage(error):
            raise
        return f"{error.code}: its stored data is damaged; see `holdfast doctor`"
    return DONE


def _send_event(
    known: Lookup, place: tuple[str, str, int], run: str, fields: Mapping[str, Any]
) -> Generator[Effect, Any, None]:
    """Send the event to the execution, with each key with which it waits for it. Raises
    RequestError HF507.

    Executions that wait with the same key get an event each, because an event is used by one
    execution. An event that starts a keyed workflow is for the execution of its key: it is sent
    once for a key. The id of the event contains the bulk operation and the execution or key, so the
    event is stored once. A repeated step finds in the used events that the event was sent. Then it
    sends the event only for a wait that began before the step: a later wait may be the result of
    the event that was used.
    """
    tenant, own, at_ms = place
    log = yield from known.require_log(tenant, run)
    name, waits, is_sent = fields["name"], dict[str, int](), False
    if log.state is not None:
        is_sent = any(event_id.startswith(f"{own}.") for event_id in log.state.used_events)
        for frame in log.state.frames.values():
            wait = frame.waiting
            if isinstance(wait, Awaiting) and (wait.kind, wait.event_name) == ("event", name):
                waits[wait.event_key] = frame.entered_ms
    if not waits and not is_sent:
        raise RequestError(
            "HF507", f"execution {run} does not wait for the event {name}", status=409
        )
    for key, since_ms in sorted(waits.items()):
        if is_sent and since_ms >= at_ms - 2 * CLOCK_ERROR_MS:
            continue
        # An event that starts several workflows goes to all of them, so it is sent to this
        # execution alone.
        is_for_key = len(keyed.started_by(known, name)) == 1
        event_id = f"{own}.{keys.text_hash(key if is_for_key else f'{run}#{key}')}"
        request = {"name": name, "key": key, "data": fields["data"], "id": event_id}
        only = {} if is_for_key else {"execution": run}
        # The event may start an execution, whose id is made with these bytes. They are the same
        # each time, so that a repeated step does not start a second execution.
        yield from events.event(known, tenant, {**request, **only}, _chance(event_id))


def _chance(text: str) -> bytes:
    """Return the bytes in place of random ones, the same each time for the same text."""
    return hashlib.sha256(text.encode()).digest()[:_CHANCE_BYTES]


# -- the commands ----------------------------------------------------------------------------------

_Command = Callable[[Lookup, str, str, Mapping[str, Any], bytes], JsonResult]


def _words(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**asked["fields"], "reason": asked["reason"], "by": asked["by"]}


def _retry(
    known: Lookup, tenant: str, run: str, asked: Mapping[str, Any], chance: bytes
) -> JsonResult:
    request = {"reason": asked["reason"]}
    return retry.retry(known, tenant, run, request, chance, by=asked["by"] or None)


def _stop(
    known: Lookup, tenant: str, run: str, asked: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Stop the execution. A stop has no field for the reason, so the reason is its cause if none is
    given.
    """
    return stop.stop(known, tenant, run, {"cause": asked["reason"], **asked["fields"]}, chance)


def _migrate(
    known: Lookup, tenant: str, run: str, asked: Mapping[str, Any], chance: bytes
) -> JsonResult:
    # Imported here for cold starts: most workers need none of these modules.
    from holdfast.runtime.commands import migrate  # noqa: PLC0415

    told = yield from migrate.migrate(known, tenant, run, _words(asked), chance)
    if not told["moves"]:
        raise RequestError("HF544", f"execution {run} has that version already", status=409)
    return told


_COMMANDS: Final[Mapping[str, _Command]] = {
    "retry": _retry,
    "stop": _stop,
    "migrate": _migrate,
    "pause": lambda known, tenant, run, asked, chance: pause.pause(
        known, tenant, run, _words(asked), chance
    ),
    "resume": lambda known, tenant, run, asked, chance: pause.resume(
        known, tenant, run, _words(asked), chance
    ),
    "skip": lambda known, tenant, run, asked, chance: skip.skip(
        known, tenant, run, _words(asked), chance
    ),
    "fork": lambda known, tenant, run, asked, chance: fork.fork(
        known, tenant, run, _words(asked), chance
    ),
}
