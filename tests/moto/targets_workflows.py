"""Workflows with what differs between the engine and Step Functions: errors, keys, children."""

from __future__ import annotations

from holdfast import (
    CompensationFailed,
    Retry,
    TaskError,
    WaitTimeout,
    compensating,
    each,
    parallel,
    seconds,
    sleep,
    task,
    task_context,
    workflow,
)


class Refused(TaskError):  # noqa: N818  # a word of the business
    """The error that the tasks of these workflows raise."""


class Closed(Refused):
    """A class below it."""


@task
def refuse(text: str) -> str:
    raise Closed(text)


@task(retry=Retry(max_attempts=2, on=(Refused,), jitter=False))
def second_time(text: str) -> str:
    context = task_context()
    if context.attempt == 1:
        raise Refused(context.idempotency_key)
    return f"{text} {context.attempt} of {context.workflow}"


@task
def key(tag: str) -> str:
    return task_context().idempotency_key


@workflow
def text_of_an_error(text: str) -> str:
    try:
        return refuse(text)
    except Refused as err:
        return f"caught {err}"


@workflow
def text_from_a_branch(text: str) -> list[str]:
    found = ["nothing"]
    try:
        parallel(lambda: refuse(text), lambda: sleep(seconds(1)))
    except Refused as err:
        found = [f"branch: {err}"]
    try:
        each([1], lambda number: refuse(text))
    except Closed as err:
        found.append(f"iteration: {err}")
    return found


@workflow
def text_of_a_failed_undo(text: str) -> str:
    try:
        with compensating() as undo:
            undo(refuse, text)
            refuse("first")
    except CompensationFailed as err:
        return f"caught {err}"
    return "nothing"


@workflow
def retried(text: str) -> str:
    return second_time(text)


@workflow
def many_keys(text: str) -> list[list[str]]:
    return each([1, 2], lambda row: each([1, 2], lambda cell: key("same")))


@workflow
def child(text: str, ending: str = "well") -> str:
    if ending == "badly":
        return refuse(text)
    return f"child: {text}"


@workflow(timeout=seconds(1))
def slow_child(text: str) -> str:
    sleep(seconds(600))
    return text


@workflow
def parent(text: str) -> str:
    heard = child(text)
    try:
        return child(text, ending="badly")
    except Refused as err:
        return f"{heard}, caught {err}"


@workflow
def impatient_parent(text: str) -> str:
    try:
        return slow_child(text)
    except WaitTimeout:
        return "late"


@workflow
def careless_parent(text: str) -> str:
    return child(text, ending="badly")
