"""A task whose dependency asks several times to be called later, behind a limit of concurrency."""

from __future__ import annotations

from holdfast import Limit, Throttled, seconds, task, workflow

#: How often the dependency still refuses a call.
refusals = [0]


@task(limits=[Limit("api", concurrency=50)])
def call(name: str) -> str:
    if refusals[0]:
        refusals[0] -= 1
        raise Throttled("busy", retry_after=seconds(5))
    return name


@workflow
def calls(name: str) -> str:
    return call(name)
