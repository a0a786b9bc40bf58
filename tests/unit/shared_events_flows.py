"""Workflows whose executions wait for one name and key."""

from __future__ import annotations

from holdfast import WaitTimeout, minutes, parallel, receive, wait_for_event, workflow


@workflow
def listener(key: str) -> str:
    try:
        return wait_for_event("word", str, key=key, timeout=minutes(10))
    except WaitTimeout:
        return "nothing"


@workflow
def listeners(key: str) -> tuple[str, str]:
    return parallel(lambda: listener(key), lambda: listener(key))


@workflow(key="key")
def clerk(key: str) -> str:
    with receive("signature", str, key=key, timeout=minutes(10)) as request:
        request.reply(f"signed {request.data}")
    return request.data
