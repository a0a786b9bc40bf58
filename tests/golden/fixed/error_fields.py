# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import TaskError, task, workflow


class Refused(TaskError):
    code: str

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class Late(TaskError): ...


@task
def charge(cents: int) -> int: ...


@workflow
def flow(cents: int) -> str:
    try:
        charge(cents)
    except Refused as err:
        return err.code
    raise Late("too late")
