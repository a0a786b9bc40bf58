"""Skip a step: an operator gives its result, and the execution continues after it.

The step is open (a task, its retry delay, a question, an event or a timer), or it has failed and
ended its execution. The result is checked against the type that the step declares, like an answer
or the task's own result. docs/explanation/repair.md says what happens to a task that is still
running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.asl.program import Json, TaskState, WaitState
from holdfast.core import skipping
from holdfast.core.state import Awaiting, Execution, Frame
from holdfast.errors import GoneTypeError, RequestError
from holdfast.limits import REQUEST_SUFFIX
from holdfast.runtime import inbox
from holdfast.runtime.child_workflows import name_in
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.fields import reason_and_author
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Payload, normalised, require_no_secrets
from holdfast.runtime.commands.retry import WORDS, obstacle
from holdfast.runtime.effects import Clock, JsonResult
from holdfast.runtime.storage.definitions import Definition

#: `charge@3.0` names the step `charge` in the branch or iteration `3.0`.
_ON_LINE: Final = re.compile(r"(.+)@([0-9]+\.[0-9]+)", re.DOTALL)
_SHOWN_MAX: Final = 8


def skip(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a skip. `request`: step, result?, reason, by?. `step` is the name of a state; if
    several branches have that step open, an `@` and the branch follow.

    Return `execution`, `step` and `retries` (True when the execution had ended and continues).
    Raises RequestError HF211, HF215, HF216, HF217, HF234.
    """
    words = reason_and_author(request)
    log = yield from known.require_log(tenant, identifier)
    state = log.state
    if state is None:
        raise _no_step(log.run, request.get("step"), [])
    _require_undecided(state)
    definition = yield from known.programs.fetch(tenant, state.definition)
    program = known.programs.program(state.definition)
    frame = _chosen(state, request.get("step"), skipping.frames_to_skip(program, state))
    step = program.states[frame.position]
    assert isinstance(step, TaskState | WaitState)
    result = _checked(known, tenant, definition, (step, frame), request)
    now_ms = yield Clock(is_for_id=True)
    stowed = yield from inbox.stow(tenant, log.run, result)
    visit = {"frame": frame.id, "entered": frame.entered_event}
    fields = {"kind": inbox.SKIP, **visit, **stowed, **words}
    if state.is_ended:
        yield from keyed.hold_for_retry(known, tenant, state)
    yield from request_control(tenant, log.run, state, (now_ms, chance), fields)
    return {"execution": log.run, "step": frame.position, "retries": state.is_ended}


def _require_undecided(state: Execution) -> None:
    reason = obstacle(state)
    if reason is not None and reason != "RUNNING":
        raise RequestError(
            "HF217",
            f"execution {state.run} {WORDS[reason]}: none of its steps can be skipped",
            status=409,
            help="see `holdfast show`",
        )


def _chosen(state: Execution, named: Any, open_frames: Sequence[Frame]) -> Frame:
    """Return the frame that the request names. Raises RequestError HF216."""
    if not isinstance(named, str):
        raise _no_step(state.run, named, open_frames)
    found = [frame for frame in open_frames if frame.position == named]
    on_line = _ON_LINE.fullmatch(named)
    if not found and on_line is not None:
        found = [one for one in open_frames if (one.position, one.id) == on_line.groups()]
    if len(found) == 1:
        return found[0]
    if found:
        raise RequestError(
            "HF216",
            f"{len(found)} lines of execution {state.run} have the step {named!r:.90} open",
            status=409,
            help=f"name one of them: {_shown(found)}",
        )
    raise _no_step(state.run, named, open_frames)


def _no_step(run: str, named: Any, open_frames: Sequence[Frame]) -> RequestError:
    return RequestError(
        "HF216",
        f"execution {run} has no open or failed step {named!r:.90} that can be skipped",
        status=409,
        help=f"those that can be skipped: {_shown(open_frames) or 'none'}",
    )


def _shown(frames: Sequence[Frame]) -> str:
    positions = [frame.position for frame in frames]
    names = [
        f"{frame.position}@{frame.id}" if positions.count(frame.position) > 1 else frame.position
        for frame in frames
    ]
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more


# -- the result ------------------------------------------------------------------------------------


def _checked(
    known: Lookup,
    tenant: str,
    definition: Definition,
    place: tuple[TaskState | WaitState, Frame],
    request: Mapping[str, Any],
) -> Json:
    """Return the result converted to its type. Raises RequestError HF211, HF215, HF217."""
    step, frame = place
    value: Json = request.get("result")
    what = f"result of {frame.position}"
    match step:
        case WaitState():
            if value is not None:
                raise RequestError(
                    "HF217",
                    f"{frame.position} is a timer, which has no result",
                    help="skip it without a result",
                )
            return None
        case TaskState(kind="task" | "pure" | "sync"):
            return _of_function(known, tenant, definition, step, value)
        case TaskState(kind="event"):
            _require_no_request(definition, frame)
            if not isinstance(frame.waiting, Awaiting):
                # The name of the event was computed, and its wait has ended. So the type of the
                # event is not known any longer.
                return value
            wanted = Payload.of_event(definition, frame.waiting.event_name)
            return normalised(known.types, tenant, wanted, value, what)
        case TaskState():
            wanted = Payload.of_answer(definition, frame.position)
            return normalised(known.types, tenant, wanted, value, what)


def _require_no_request(definition: Definition, frame: Frame) -> None:
    """Refuse the skip of a wait for a request. The result of such a wait is a stored request, and
    its caller waits for a reply, which a skip would not give. Raises RequestError HF217.
    """
    events = definition.source_map.get("events", ())
    requests = [name for name in events if name.endswith(REQUEST_SUFFIX)]
    # An ended execution has no event name for its last wait. The name of the step contains it,
    # because the compiler makes the step's name from it.
    if any(frame.position.startswith(f"wait for {name}") for name in requests):
        raise RequestError(
            "HF217",
            f"{frame.position} waits for a request, which no operator can stand in for",
            help="send a request with `holdfast request`",
        )


def _of_function(
    known: Lookup, tenant: str, definition: Definition, step: TaskState, value: Json
) -> Json:
    workflow = name_in(step.target)
    if step.kind == "sync" and workflow is None:
        return value
    name, is_workflow = (step.target, False) if workflow is None else (workflow, True)
    try:
        return known.types.normalise_result(tenant, name, value, is_workflow)
    except GoneTypeError:
        require_no_secrets(definition, f"result of {name}", name)
        return value
