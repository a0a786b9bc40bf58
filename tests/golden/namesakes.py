# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import task, workflow


@task(name="reply")
def by_mail(n: int) -> str:
    return f"mail {n}"


@task(name="reply")
def by_chat(n: int) -> str:
    return f"chat {n}"


@workflow
def flow(n: int) -> str:
    first = by_mail(n)
    return first + by_chat(n)
