"""Workflows that a workflow calls: how an attempt starts one, and how its end becomes a result.

The id of the child execution is `run.entry.attempt`, so a repeated attempt starts the same one. The
definition that it runs is the one in its record 0, even if several start messages were sent.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Json
from holdfast.asl.resources import CHILD_WORKFLOW
from holdfast.core import facts
from holdfast.core.run_ids import TOO_DEEP, child_run, too_deep
from holdfast.core.state import PRIORITY_DEFAULT, Attempt, Execution, Parent
from holdfast.errors import RequestError, VaultFault
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import START_INPUT_BYTES_MAX
from holdfast.runtime import inbox, messages, pending_starts
from holdfast.runtime.effects import SECRET_UNAVAILABLE, Effect, Message, Send
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.log import Log

if TYPE_CHECKING:
    from holdfast.runtime.commands.payloads import Types

#: The error of a called workflow whose arguments have the wrong type. A task has the same one:
#: `api.task_errors.InvalidArguments`.
INVALID_ARGUMENTS: Final = "InvalidArguments"
ABORTED: Final = "Holdfast.Aborted"


class Untyped:
    """Stands for `Types` in a stack without workflows: every value is accepted unchanged."""

    def normalise_input(self, _tenant: str, _workflow: str, value: Json) -> Json:
        return value

    def normalise_payload(self, _tenant: str, _reference: str, value: Json, _what: str) -> Json:
        return value

    def schema_of(self, _reference: str) -> dict[str, Any]:
        return {}

    def normalise_result(self, _tenant: str, _name: str, value: Json, _is_workflow: bool) -> Json:
        return value

    def convert(self, _tenant: str, _function: str, _values: Mapping[str, Json]) -> Json:
        return None


@dataclass(frozen=True, slots=True)
class Workflows:
    """The workflows that this process can start, each with its newest definition.

    `types` are for data that comes from workflows: its secrets are already encrypted.
    """

    definitions: Mapping[str, Definition]
    types: Types

    def is_awaited(self, event: str) -> bool:
        """Return True when one of the workflows waits for an event of this name."""
        declared = (one.source_map.get("events", ()) for one in self.definitions.values())
        return any(event in names for names in declared)


#: The value for a process that can start no workflow and therefore never checks an input.
NO_WORKFLOWS: Final = Workflows({}, Untyped())


def name_in(target: str) -> str | None:
    """Return the workflow that the target of a task names; None when it names something else."""
    return target.removeprefix(CHILD_WORKFLOW) if target.startswith(CHILD_WORKFLOW) else None


# -- starting --------------------------------------------------------------------------------------


def inherited(state: Execution | None) -> dict[str, int]:
    """Return the fields of the child's start message that come from its parent: the priority."""
    is_usual = state is None or state.priority == PRIORITY_DEFAULT
    return {} if is_usual or state is None else {"priority": state.priority}


def call(
    log: Log, programs: Programs, workflows: Workflows, attempt: Attempt, now_ms: int
) -> Generator[Effect, Any, facts.Submitted | facts.FailedWith]:
    """Start the child execution. Return the fact that it is started, or the reason why it cannot
    be. A repeated call gives the same result.
    """
    workflow = name_in(attempt.target)
    assert workflow is not None
    run = child_run(log.run, attempt.entry, attempt.attempt)
    cause = too_deep(run, workflow)
    if cause is not None:
        return facts.FailedWith(attempt.entry, attempt.attempt, TOO_DEEP, cause)
    try:
        data = workflows.types.normalise_input(log.tenant, workflow, attempt.arguments)
        stowed = yield from inbox.stow(log.tenant, run, data, START_INPUT_BYTES_MAX)
    except RequestError as misfit:
        return facts.FailedWith(attempt.entry, attempt.attempt, INVALID_ARGUMENTS, misfit.message)
    except VaultFault as fault:
        return facts.FailedWith(attempt.entry, attempt.attempt, SECRET_UNAVAILABLE, fault.message)
    definition = workflows.definitions[workflow]
    yield from programs.store(log.tenant, definition)
    parent: Parent = {"run": log.run, "entry": attempt.entry, "attempt": attempt.attempt}
    body = messages.start(
        log.tenant,
        run,
        workflow=workflow,
        definition=definition.hash,
        input=stowed,
        t0=now_ms,
        parent=parent,
        **inherited(log.state),
    )
    # If this start message is lost, the sweeper sends it again from the row that `guard` stores. A
    # recovery of the parent would not: it repeats only the start messages of a Map's children.
    yield from pending_starts.guard(body)
    yield Send((Message(body),))
    submitted = {"execution": run, "workflow": workflow}
    return facts.Submitted(attempt.entry, attempt.attempt, submitted)


# -- ending ----------------------------------------------------------------------------------------


def error_of(state: Execution) -> dict[str, str]:
    """Return error and cause of the call when the child has not succeeded: those of the child.

    States.Runtime gets another name here. No Catch takes that error, but the parent must be able to
    catch the failure of its child.
    """
    match state.status:
        case "TIMED_OUT":
            return {"error": error_names.TIMEOUT}
        case "ABORTED":
            told = ": ".join(text for text in (state.error, state.cause) if text)
            return {"error": ABORTED, "cause": f"{state.workflow} was stopped: {told}".rstrip(": ")}
        case _:
            error = (
                error_names.TASK_FAILED
                if state.error in {None, error_names.RUNTIME}
                else str(state.error)
            )
            return {"error": error, **({} if state.cause is None else {"cause": state.cause})}
