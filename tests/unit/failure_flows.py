"""Workflows that fail in several ways, and one that each failure starts."""

from __future__ import annotations

from pydantic import SecretStr

from holdfast import (
    FailedExecution,
    TaskError,
    hours,
    minutes,
    pure,
    sleep,
    start,
    task,
    wait_for_event,
    workflow,
)


class WorkError(TaskError): ...


@task
def work(how: str) -> str:
    if how == "fails":
        raise WorkError("no")
    return how


@pure
def broken(execution: str) -> None:
    raise WorkError(execution)


@workflow(timeout=minutes(30))
def job(how: str, text: str = "") -> str:
    if how in ("late", "stopped"):
        sleep(hours(1))
    return work(how)


@workflow(key="cart_id")
def cart(cart_id: str, how: str) -> str:
    return work(how)


@workflow
def secret_job(token: SecretStr) -> str:
    return work("fails")


@workflow
def parent(how: str) -> str:
    try:
        return job(how)
    except WorkError:
        return "handled"


@workflow
def starter(how: str) -> str:
    return start(job, how)


@workflow(key="execution", starts_on="holdfast.execution.failed")
def on_failure(execution: str) -> FailedExecution:
    failed = wait_for_event("holdfast.execution.failed", FailedExecution, key=execution)
    if failed.name == "bad-1":
        broken(execution)
    return failed
