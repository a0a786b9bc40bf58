"""Which tasks and workflows can be steps, and why others cannot."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any, Final

from holdfast import limits
from holdfast.api import surface
from holdfast.api.runs_on import BatchJob, Fargate, Worker
from holdfast.api.services import ServiceCall
from holdfast.api.step_types import HumanApproval
from holdfast.api.surface import Pure, Task, Workflow
from holdfast.api.workflow_only import help_for, message_of
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.types.models import secret_in
from holdfast.errors import RequestError


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a task or workflow cannot be a step, with the code to type instead."""

    code: str
    message: str
    help: str


#: The functions of the language that belong to workflows alone, by identity.
_LONGEST: Final = timedelta(seconds=limits.STATE_SECONDS_MAX)
WHOLE_SECONDS: Final = f"whole seconds, from 1 to {limits.STATE_SECONDS_MAX:,}"
_WORKFLOW_ONLY: Final = frozenset(
    map(
        id,
        (
            surface.sleep,
            surface.sleep_until,
            surface.wait_for_event,
            surface.receive,
            surface.request,
            surface.ask,
            surface.publish,
            surface.note,
            surface.again,
            surface.send,
            surface.start,
            surface.stop,
            surface.execution_id,
            surface.execution_name,
            surface.execution_started,
        ),
    )
)
#: The longest time-out of a task that runs in the worker itself. The compiler refuses a longer one.
_inline_seconds_max: ContextVar[int] = ContextVar(
    "inline_seconds_max", default=limits.INLINE_TIMEOUT_SECONDS_MAX
)


@contextmanager
def for_this_machine() -> Iterator[None]:
    """Compile for a worker process on this machine: it may run longer than a Lambda function, so
    tasks may have longer time-outs.
    """
    before = _inline_seconds_max.set(limits.LOCAL_TIMEOUT_SECONDS_MAX)
    try:
        yield
    finally:
        _inline_seconds_max.reset(before)


def obstacles_of(declared: Task[..., Any] | Workflow[..., Any]) -> tuple[Obstacle, ...]:
    return _obstacles_of(declared, _inline_seconds_max.get())


@lru_cache(maxsize=1024)
def _obstacles_of(
    declared: Task[..., Any] | Workflow[..., Any], seconds_max: int
) -> tuple[Obstacle, ...]:
    return tuple(_obstacles(declared, seconds_max))


def boundary_fault(declared: Task[..., Any] | Workflow[..., Any]) -> RequestError | None:
    """Return why the first call of the function would fail: pydantic cannot read an annotation.
    None when it reads all of them.
    """
    try:
        _ = declared.boundary
    except RequestError as error:
        return error
    return None


def _obstacles(
    declared: Task[..., Any] | Workflow[..., Any], seconds_max: int
) -> Iterator[Obstacle]:
    if isinstance(declared, ServiceCall):
        message = f"`{declared.name}` is called in a workflow, with its parameters by name"
        yield Obstacle("HF008", message, "call it in a @workflow: docs/how-to/services.md")
        return
    signature = signature_of(declared.function)
    if signature.fault is not None:
        message = f"an annotation of `{declared.name}` {signature.fault.message}"
        yield Obstacle("HF004", message, signature.fault.help)
    elif (refused := boundary_fault(declared)) is not None:
        message = f"`{declared.name}` cannot be called: {refused.message}"
        yield Obstacle(refused.code, message, refused.help)
    if not signature.has_plain_parameters:
        message = f"`{declared.name}` takes arguments without names, which JSON cannot carry"
        help_ = f"def {declared.function.__name__}(first: str, second: int)"
        yield Obstacle("HF008", message, help_)
    if isinstance(declared, Workflow):
        if not is_whole(declared.call_timeout):
            message = f"the timeout of a call of `{declared.name}` must be {WHOLE_SECONDS}"
            yield Obstacle("HF052", message, "options(timeout=seconds(90))")
        return
    types = (*signature.parameters.values(), signature.result)
    if declared.runs_on is not None and any(map(secret_in, types)):
        message = f"`{declared.name}` runs outside of the engine, where no secret is opened"
        yield Obstacle("HF187", message, "pass the name of the secret, which the function reads")
    if isinstance(declared, Pure):
        yield from _tasks_inside(declared)
    if isinstance(declared, HumanApproval):
        # The compiler makes a question of it. Its function asks in direct runs alone.
        return
    for function in _steps_inside(getattr(declared.function, "__code__", None), declared):
        yield Obstacle("HF080", message_of(function, declared.name), help_for(function))
    if not is_whole(declared.timeout) or not is_whole(declared.heartbeat):
        message = f"the timeout and heartbeat of `{declared.name}` must be {WHOLE_SECONDS}"
        yield Obstacle("HF052", message, "@task(timeout=seconds(90))")
    if isinstance(declared.runs_on, Worker | Fargate | BatchJob):
        return
    if declared.timeout is not None and declared.timeout.total_seconds() > seconds_max:
        message = (
            f"`{declared.name}` has a timeout of {declared.timeout}; a task that runs inside the "
            f"engine's function has at most {seconds_max // 60} minutes"
        )
        help_ = (
            'runs_on=Worker("pool"), Fargate(…) or BatchJob(…), see docs/how-to/long-tasks.md; or '
            "start the work in a short @task, then wait_for_event(…) for its end"
        )
        yield Obstacle("HF060", message, help_)


def _tasks_inside(declared: Pure[..., Any]) -> Iterator[Obstacle]:
    """Yield the tasks that a `@pure` function calls: the engine would neither record nor retry
    them.
    """
    code = getattr(declared.function, "__code__", None)
    if code is None:
        return
    for part in dis.get_instructions(code):
        found = (
            declared.function.__globals__.get(part.argval) if part.opname == "LOAD_GLOBAL" else 0
        )
        if isinstance(found, Task) and not found.is_pure:
            message = f"`{declared.name}` is @pure and calls the task `{part.argval}` inside"
            help_ = f"call `{part.argval}` in the workflow, and give `{declared.name}` its result"
            yield Obstacle("HF059", message, help_)
            return


def _steps_inside(code: CodeType | None, declared: Task[..., Any]) -> Iterator[str]:
    """Yield the names of the steps of workflows that a task's own code calls. They do nothing in a
    task, or fail there.
    """
    if code is None:
        return
    found: Any = None
    for part in dis.get_instructions(code):
        match part.opname:
            case "LOAD_GLOBAL":
                found = declared.function.__globals__.get(part.argval)
            case "LOAD_ATTR" | "LOAD_METHOD":
                is_ours = isinstance(found, ModuleType) and found.__name__ == "holdfast"
                found = getattr(found, part.argval, None) if is_ours else None
            case "LOAD_CONST" if isinstance(part.argval, CodeType):
                yield from _steps_inside(part.argval, declared)
                continue
            case _:
                continue
        if id(found) in _WORKFLOW_ONLY:
            yield part.argval
            return


def is_whole(duration: timedelta | None) -> bool:
    return duration is None or (duration.microseconds == 0 and timedelta() < duration <= _LONGEST)
