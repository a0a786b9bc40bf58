# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import BaseModel

from holdfast import receive, request, task, workflow


class Question(BaseModel):
    text: str


@task
def work(n: int) -> int:
    return n


@workflow
def without_reply(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(work(request.data))
    return 1


@workflow
def after_reply(key: str) -> int:
    with receive("ask", int, key=key) as request:
        work(1)
        request.reply(1)
    return 1


@workflow
def sometimes(key: str) -> int:
    with receive("ask", int, key=key) as request:
        if request.data > 1:
            request.reply(1)
        else:
            request.reply(work(1))
    return 1


@workflow
def leaves(key: str) -> int:
    with receive("ask", int, key=key) as request:
        if request.data > 1:
            request.reply(2)
            return 2
        request.reply(1)
    return 1


@workflow
def in_a_loop(key: str) -> int:
    with receive("ask", int, key=key) as request:
        for n in [1, 2]:
            work(n)
        request.reply(2)
    return 1


@workflow
def two_values(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(1)
    return 1


@workflow
def without_a_name(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(1)
    return 1


@workflow
def without_with(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(1)
    return 1


@workflow
def with_a_wrong_type(key: str) -> int:
    with receive("ask", Question, key=key) as request:
        request.reply(1)
    return 1


@workflow
def kept(key: str) -> list[int]:
    seen: list[int] = []
    with receive("ask", int, key=key) as request:
        seen.append(request.data)
        request.reply(1)
    return seen


@workflow
def only_raises(key: str) -> int:
    with receive("ask", str, key=key) as request:
        raise ValueError(request.data)
    return 1


@workflow
def asks_too(key: str) -> int:
    with receive("ask", int, key=key) as asked:
        asked.reply(request("more", 1, key=key, returns=int))
    return 1
