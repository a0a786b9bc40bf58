"""The fields of single states, and the small queries in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, assert_never

from holdfast.api.payloads import display, reference_of
from holdfast.api.runs_on import BatchJob, Fargate, Lambda, Worker
from holdfast.api.services import HTTP_TARGET, AwsCall, ServiceCall
from holdfast.api.surface import CompensationFailed, Retry, StepInterrupted, Task
from holdfast.asl import error_names
from holdfast.asl.resources import CHOSEN_POOL, CONTAINER, POLL, POOL, SEND, SEND_LATER
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.emit.assembler import StateNames
from holdfast.compiler.emit.containers import batch_request, fargate_request
from holdfast.compiler.emit.regions import UndoStep
from holdfast.compiler.expressions.query import (
    NULL,
    STATES,
    ArrayOf,
    Binary,
    Constant,
    FieldOf,
    ItemOf,
    ObjectOf,
    QueryTree,
    Variable,
    cause_of,
    expression,
    template,
)
from holdfast.compiler.ir import (
    Ask,
    RunWorkflow,
    SendEvent,
    SendRequest,
    StartWorkflow,
    StopExecution,
    Target,
    TaskAction,
    UndoAction,
    WaitForEvent,
)
from holdfast.compiler.searching import Noted
from holdfast.compiler.types.failures import ErrorClasses, names_of
from holdfast.limits import CONTAINER_HEARTBEAT_SECONDS, POOL_HEARTBEAT_SECONDS, TAKEOVERS_MAX
from holdfast.service_models import action_of

_BRANCHED: Final = re.compile(r"^(.*?\b(?:parallel|first|each))\(")


@dataclass(slots=True)
class MachineParts:
    """The values that all branches of one machine share, and the data for its source map."""

    world: ErrorClasses
    names: StateNames = field(default_factory=StateNames)
    #: The tasks by name, each with the module that defines it.
    tasks: dict[str, str] = field(default_factory=dict)
    #: The tasks that were renamed, from the old name to the new one.
    renamed: dict[str, str] = field(default_factory=dict)
    #: The called workflows by name, each with the place that defines it.
    workflows: dict[str, str] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    #: For each part of the code that has undo steps, the undo steps of a stop in that part. The
    #: innermost part is first.
    undos: list[dict[str, Any]] = field(default_factory=list)
    #: Each item is a set of states that a cancellation does not interrupt.
    shielded: list[list[str]] = field(default_factory=list)
    #: The blocks that have a time limit, the innermost first.
    deadlines: list[dict[str, Any]] = field(default_factory=list)

    def note_task(self, task: Task[..., Any]) -> None:
        self.tasks[task.name] = task.function.__module__
        if task.renamed is not None:
            self.renamed[task.renamed] = task.name

    @property
    def extension(self) -> dict[str, Any]:
        """The field `Holdfast` of the machine; see docs/reference/extensions.md."""
        parts = {"Undo": self.undos, "Shielded": self.shielded, "Deadlines": self.deadlines}
        return {name: rows for name, rows in parts.items() if rows}


def task_state(machine: MachineParts, task: Task[..., Any], arguments: Any) -> dict[str, Any]:
    state = {
        "Type": "Task",
        "Resource": _resource_of(machine, task),
        "Arguments": arguments,
    }
    if task.timeout is not None:
        state["TimeoutSeconds"] = int(task.timeout.total_seconds())
    if task.heartbeat is not None:
        state["HeartbeatSeconds"] = int(task.heartbeat.total_seconds())
    if task.retry is not None and task.retry.max_attempts > 1:
        state["Retry"] = _retriers(machine, task.retry)
    if task.at_most_once:
        state = _at_most_once(state, task.retry)
    if task.polling is not None:
        polling = task.polling
        state["Holdfast"] = {
            "Poll": {
                "Seconds": int(polling.every.total_seconds()),
                "Backoff": polling.backoff,
                "SecondsMax": int(polling.most.total_seconds()),
            }
        }
    match task.runs_on:
        case Worker():
            return _elsewhere(task, state, POOL_HEARTBEAT_SECONDS)
        case Fargate() as fargate:
            return _in_container(task, state, fargate_request(fargate), CONTAINER_HEARTBEAT_SECONDS)
        case BatchJob() as job:
            # A job may wait in its queue for hours before it starts and sends heartbeats. So it has
            # no heartbeat time-out.
            return _in_container(task, state, batch_request(task.name, job), None)
        case Lambda() | None:
            return state
        case _:
            assert_never(task.runs_on)


def _at_most_once(state: dict[str, Any], retry: Retry | None) -> dict[str, Any]:
    """Return the state of a task whose attempts each start it at most once. A retry rule for all
    errors does not include the loss of the worker.
    """
    state = {**state, "Holdfast": {"AtMostOnce": True}}
    if "Retry" in state and (retry is None or StepInterrupted not in retry.on):
        unrepeated = {"ErrorEquals": [StepInterrupted.__name__], "MaxAttempts": 0}
        state["Retry"] = [unrepeated, *state["Retry"]]
    return state


#: The retry for a worker of a pool that misses its heartbeats, and is therefore lost. The attempt
#: is made again even for a task without a retry rule, as it is when a worker of Holdfast itself is
#: lost.
_RETRY_OF_LOST: Final[Mapping[str, Any]] = {
    "ErrorEquals": [error_names.HEARTBEAT_TIMEOUT],
    "IntervalSeconds": 1,
    "MaxAttempts": TAKEOVERS_MAX,
    "BackoffRate": 1,
}


def _in_container(
    task: Task[..., Any],
    state: dict[str, Any],
    request: dict[str, Any],
    silence_seconds: int | None,
) -> dict[str, Any]:
    """Return the state of a task that runs in a container of its own. `request` starts it."""
    state = _elsewhere(task, state, silence_seconds)
    return {**state, "Arguments": {**state["Arguments"], "request": request}}


def _elsewhere(
    task: Task[..., Any], state: dict[str, Any], silence_seconds: int | None
) -> dict[str, Any]:
    """Return the state of a task that another process runs. Without a heartbeat of its own, the
    process sends the task's heartbeats, and is lost after `silence_seconds` without one.
    """
    given = {"task": task.name, "arguments": state["Arguments"]}
    if task.heartbeat is not None:
        given["beats"] = True
    elif silence_seconds is not None and (
        task.timeout is None or task.timeout.total_seconds() > silence_seconds
    ):
        state["HeartbeatSeconds"] = silence_seconds
    state["Arguments"] = given
    state["Retry"] = [dict(_RETRY_OF_LOST), *state.get("Retry", ())]
    return state


def in_chosen_pool(state: Mapping[str, Any], pool: Any) -> dict[str, Any]:
    """Return the state of a task that runs in the pool which its argument `pool` names."""
    arguments = {**state["Arguments"], "pool": pool}
    return {**state, "Resource": CHOSEN_POOL, "Arguments": arguments}


def _resource_of(machine: MachineParts, task: Task[..., Any]) -> str:
    match task:
        case AwsCall():
            # The action is known to exist, because the arguments of the call were checked against
            # the model of the service.
            return f"arn:aws:states:::{action_of(task.service, task.action).target}"
        case ServiceCall():
            return f"arn:aws:states:::{HTTP_TARGET}"
        case _:
            machine.note_task(task)
            match task.runs_on:
                case Worker(pool):
                    return f"{POOL}{pool}"
                case Fargate():
                    return f"holdfast:{CONTAINER}ecs:runTask.waitForTaskToken"
                case BatchJob():
                    return f"holdfast:{CONTAINER}batch:submitJob.waitForTaskToken"
            if task.polling is not None:
                return f"{POLL}{task.name}"
            return f"holdfast:{'pure' if task.is_pure else 'task'}:{task.name}"


#: Python raises at once when the expression of an argument fails, so this failure is not retried
#: either.
NO_RETRY_OF_EXPRESSIONS: Final[Mapping[str, Any]] = {
    "ErrorEquals": [error_names.QUERY_EVALUATION_ERROR],
    "MaxAttempts": 0,
}


def _retriers(machine: MachineParts, retry: Retry) -> list[dict[str, Any]]:
    """The first retrier that names an error decides about it."""
    if not retry.not_on:
        return [_retrier(machine, retry)]
    names = names_of(retry.not_on, machine.world)
    return [{"ErrorEquals": list(names), "MaxAttempts": 0}, _retrier(machine, retry)]


def _retrier(machine: MachineParts, retry: Retry) -> dict[str, Any]:
    names = names_of(retry.on, machine.world) if retry.on else (error_names.ALL,)
    delays = tuple(int(delay.total_seconds()) for delay in retry.delays or ())
    rate = _rate_of(delays)
    retrier: dict[str, Any] = {
        "ErrorEquals": list(names),
        "IntervalSeconds": int(retry.interval.total_seconds()),
        "MaxAttempts": retry.max_attempts - 1,
        "BackoffRate": rate or retry.backoff,
    }
    if retry.max_delay is not None:
        retrier["MaxDelaySeconds"] = int(retry.max_delay.total_seconds())
    if retry.jitter:
        retrier["JitterStrategy"] = "FULL"
    if not delays:
        return retrier
    if rate is None:
        return {**retrier, "Holdfast": {"Delays": list(delays)}}
    # Retries beyond the list wait for its last delay.
    is_longer = retry.max_attempts > len(delays) + 1 and rate > 1
    return {**retrier, "MaxDelaySeconds": delays[-1]} if is_longer else retrier


def _rate_of(delays: Sequence[int]) -> float | None:
    """Return the BackoffRate that gives exactly these delays; None without one."""
    if not delays:
        return None
    first, rate = delays[0], delays[min(1, len(delays) - 1)] / delays[0]
    is_exact = all(first * rate**number == delay for number, delay in enumerate(delays))
    return rate if rate >= 1 and is_exact else None


def workflow_state(machine: MachineParts, call: RunWorkflow) -> tuple[str, dict[str, Any]]:
    workflow, name = call.workflow, call.workflow.name
    machine.workflows[name] = reference_of(workflow.function)
    arguments = template(call.arguments.query)
    state: dict[str, Any] = {"Type": "Task", "Resource": f"holdfast:workflow:{name}"}
    state["Arguments"] = arguments
    if workflow.call_timeout is not None:
        state["TimeoutSeconds"] = int(workflow.call_timeout.total_seconds())
    if workflow.retry is not None and workflow.retry.max_attempts > 1:
        state["Retry"] = _retriers(machine, workflow.retry)
    return workflow.label or name, state


def start_state(machine: MachineParts, start: StartWorkflow) -> tuple[str, dict[str, Any]]:
    name = start.workflow.name
    machine.workflows[name] = reference_of(start.workflow.function)
    resource = f"holdfast:{'start' if start.later is None else 'start_later'}:{name}"
    given = template(arguments_of(start))
    return f"start {name}", {"Type": "Task", "Resource": resource, "Arguments": given}


def arguments_of(action: UndoAction) -> QueryTree:
    """Return the whole `Arguments` of the action's state."""
    match action:
        case StartWorkflow(_, arguments, ObjectOf(items)):
            return ObjectOf((("input", arguments.query), *items))
        case _:
            return action.arguments.query


def send_state(sent: SendEvent) -> tuple[str, dict[str, Any]]:
    resource = f"holdfast:{SEND_LATER if sent.is_later else SEND}"
    given = template(sent.arguments.query)
    return f"send {sent.event}", {"Type": "Task", "Resource": resource, "Arguments": given}


def stop_state(stopped: StopExecution) -> tuple[str, dict[str, Any]]:
    given = template(stopped.arguments.query)
    return "stop execution", {"Type": "Task", "Resource": "holdfast:stop", "Arguments": given}


def undo_step_of(machine: MachineParts, name: str, action: UndoAction) -> tuple[str, UndoStep]:
    """Return the name of the undo step in the list of steps, and the step. Equal names mean equal
    states.
    """

    def other(found: tuple[str, dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
        return lambda arguments: {**found[1], "Arguments": arguments}

    match action:
        case TaskAction(task):
            return task.name, UndoStep(name, partial(task_state, machine, task))
        case RunWorkflow():
            key, state_of = (
                f"workflow {action.workflow.name}",
                other(workflow_state(machine, action)),
            )
        case StartWorkflow(workflow, _, later):
            key = f"start {workflow.name}{'' if later is None else ' later'}"
            state_of = other(start_state(machine, action))
        case SendEvent(event, _, is_later):
            key, state_of = f"send {event}{' later' * is_later}", other(send_state(action))
        case StopExecution():
            key, state_of = "stop execution", other(stop_state(action))
    return key, UndoStep(name, state_of)


def event_state(machine: MachineParts, wait: WaitForEvent) -> tuple[str, dict[str, Any]]:
    machine.events[wait.event] = wait.payload
    state = {
        "Type": "Task",
        "Resource": "holdfast:event.waitForTaskToken",
        "Arguments": {
            "event": wait.event,
            "key": template(wait.key.query),
            **({} if wait.kept else {"kept": False}),
        },
    }
    return f"wait for {wait.event}", _with_timeout(state, wait.timeout)


def question_state(question: Ask) -> tuple[str, dict[str, Any]]:
    state = {
        "Type": "Task",
        "Resource": "holdfast:ask.waitForTaskToken",
        "Arguments": template(question.arguments.query),
    }
    name = f"ask for {display(reference_of(question.answer))}"
    return name, _with_timeout(state, question.timeout)


def request_state(request: SendRequest) -> tuple[str, dict[str, Any]]:
    state = {
        "Type": "Task",
        "Resource": "holdfast:request.waitForTaskToken",
        "Arguments": template(request.arguments.query),
    }
    return f"request {request.request}", _with_timeout(state, request.timeout)


def _with_timeout(state: Mapping[str, Any], timeout: TypedQuery | None) -> dict[str, Any]:
    if timeout is None:
        return dict(state)
    return {**state, "TimeoutSeconds": template(timeout.query)}


def note_state(attributes: Noted) -> tuple[str, dict[str, Any]]:
    """Return the name and the fields of the state that sets search attributes."""
    noted = {name: {kind: template(one.query)} for name, kind, one in attributes}
    return f"note {', '.join(noted)}", {"Type": "Pass", "Holdfast": {"Note": noted}}


def output_of(value: QueryTree) -> Any:
    """Return an Output for the value. None is written as an expression, because ASL would read a
    null as an absent Output.
    """
    return expression(NULL) if value == NULL else template(value)


def part_of(result: QueryTree, target: Target) -> str:
    part = result if target.part is None else ItemOf(result, Constant(target.part))
    return expression(part)


def is_one_of(error: Variable, names: tuple[str, ...]) -> QueryTree:
    listed = ArrayOf(tuple(Constant(name) for name in names))
    return Binary("in", FieldOf(error, "Error"), listed)


def compensation_failed(task_name: str) -> Any:
    """Return the error that `surface.compensating` raises for a failed undo of this task."""
    text = Constant(f"undo of {task_name} failed: ")
    cause = Binary("&", text, cause_of(FieldOf(STATES, "errorOutput")))
    name = Constant(CompensationFailed.__name__)
    return template(ObjectOf((("Error", name), ("Cause", cause))))


def short_name(text: str) -> str:
    """Shorten `parcels = each(order.lines, lambda …)` to `parcels = each(…)`."""
    found = _BRANCHED.match(text)
    return f"{found.group(1)}(…)" if found else text
