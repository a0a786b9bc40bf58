"""The kinds of steps that the document of a graph may name in `type`, apart from the names of
tasks.

service_call, notification   the task with the name of the step's id compensation
the task with the name of the step's id; it undoes the step on which it depends, if the graph does
not succeed human_approval               a question to a role; a refusal fails the graph any other
a kind that the project registers with `@step_type("…")`
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from holdfast.api.branches import run_after
from holdfast.api.surface import ask
from holdfast.api.task_errors import TaskError
from holdfast.api.tasks import Task
from holdfast.lazy_dataclass import dataclass

#: The types of steps that do not name a task. The id of such a step, or its field `service`, is the
#: name of its task.
COMPENSATION: Final = "compensation"
NAMED_BY_ID: Final = ("service_call", "notification", COMPENSATION)
HUMAN_APPROVAL: Final = "human_approval"
APPROVAL_TIMEOUT: Final = timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class StepType:
    """A kind of step that a project registers: every step of this kind runs `task`."""

    name: str
    task: Task[..., Any]


def step_type(name: str) -> Callable[[Task[..., Any]], StepType]:
    """Register a task for all steps of a kind. Write it above `@task`.

    The parameter `step` of the task gets the step of the document as an object, which may have
    fields of the project's own. The other parameters are filled as in every step.
    """

    def register(task: Task[..., Any]) -> StepType:
        return StepType(name, task)

    return register


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's answer to a `human_approval`."""

    approved: bool
    note: str = ""


class Rejected(TaskError):  # noqa: N818  # the word of the business
    """A person has refused a `human_approval`. The text is the person's note."""


class HumanApproval(Task[..., Any]):
    """A step that asks `assignee`. `notify` is a task of the graph that runs before the question,
    with the same arguments.
    """

    def __init__(
        self,
        step_id: str,
        title: str,
        assignee: str,
        *,
        timeout: timedelta = APPROVAL_TIMEOUT,
        notify: Task[..., Any] | None = None,
    ) -> None:
        self.title = title
        self.assignee = assignee
        self.notify = notify
        #: The longest time for the answer. It is not the time-out of the task, which limits a
        #: worker.
        self.answer_within = timeout

        def approve() -> Approval:
            decision = ask(title, Approval, assignee=assignee, timeout=timeout)
            if not decision.approved:
                raise Rejected(decision.note)
            return decision

        super().__init__(approve, name=step_id)

    def __call__(self) -> Approval:
        """Ask in a branch of its own, so that question and outcome become one state."""

        def ask_one() -> Approval:
            if self.notify is not None:
                self.notify()
            answered: Approval = self.function()
            return answered

        answers: list[Approval] = run_after([ask_one], [()])
        return answers[0]
