"""Workflows with limits that are started at a later time."""

from __future__ import annotations

from holdfast import Limit, seconds, sleep, workflow


@workflow(limits=[Limit("one", concurrency=1)])
def limited(name: str) -> str:
    sleep(seconds(60))
    return name


@workflow(limits=[Limit("each", concurrency=1, key="name")])
def limited_by_name(name: str) -> str:
    sleep(seconds(60))
    return name
