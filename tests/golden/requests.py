# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import receive, request, task, workflow


@task
def work(n: int) -> int:
    return n


@workflow
def without_reply(key: str) -> int:
    with receive("ask", int, key=key) as request:
        work(request.data)
    return 1


@workflow
def after_reply(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(1)
        work(1)
    return 1


@workflow
def sometimes(key: str) -> int:
    with receive("ask", int, key=key) as request:
        if request.data > 1:
            request.reply(1)
        work(1)
    return 1


@workflow
def leaves(key: str) -> int:
    with receive("ask", int, key=key) as request:
        if request.data > 1:
            return 2
        request.reply(1)
    return 1


@workflow
def in_a_loop(key: str) -> int:
    with receive("ask", int, key=key) as request:
        for n in [1, 2]:
            request.reply(n)
    return 1


@workflow
def two_values(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(1, 2)
    return 1


@workflow
def without_a_name(key: str) -> int:
    with receive("ask", int, key=key):
        work(1)
    return 1


@workflow
def without_with(key: str) -> int:
    request = receive("ask", int, key=key)
    return 1


@workflow
def with_a_wrong_type(key: str) -> int:
    with receive("ask", work, key=key) as request:
        request.reply(1)
    return 1


@workflow
def kept(key: str) -> list[int]:
    seen = []
    with receive("ask", int, key=key) as request:
        seen.append(request)
        request.reply(1)
    return seen


@workflow
def only_raises(key: str) -> int:
    with receive("ask", work, key=key) as request:
        raise ValueError(request.data)
    return 1


@workflow
def asks_too(key: str) -> int:
    with receive("ask", int, key=key) as request:
        request.reply(request("more", 1, key=key, returns=int))
    return 1
