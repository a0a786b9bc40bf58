"""Workflows whose tasks run on a pool of workers."""

from __future__ import annotations

from collections.abc import Callable

from holdfast import (
    BatchJob,
    Fargate,
    Retry,
    TaskError,
    WaitTimeout,
    Worker,
    heartbeat,
    hours,
    minutes,
    seconds,
    task,
    task_context,
    workflow,
)

SEEN: list[str] = []
#: What a test does while `render` runs.
MEANWHILE: list[Callable[[], None]] = []


class Corrupt(TaskError): ...  # noqa: N818


@task(runs_on=Worker("gpu"), timeout=hours(6))
def render(film: str, frames: int = 3) -> str:
    if frames < 0:
        raise Corrupt(film)
    for act in MEANWHILE:
        act()
    context = task_context()
    SEEN.append(f"{context.workflow}/{context.name} attempt {context.attempt}")
    return f"{film}, {frames} frames"


@task(runs_on=Worker("gpu"), timeout=minutes(30), heartbeat=minutes(1))
def convert(film: str) -> str:
    heartbeat()
    return film.upper()


@task(runs_on=Worker("gpu"), timeout=hours(6), retry=Retry(max_attempts=2, interval=seconds(60)))
def upload(film: str) -> str:
    raise Corrupt(film)


@task(runs_on=Worker("tape"))
def archive(film: str) -> str:
    return f"archived {film}"


@task(runs_on=Worker("gpu"), timeout=hours(6), retry=Retry(max_attempts=2, interval=seconds(1)))
def dub(film: str, scenes: int) -> str:
    first = task_context().progress or 0
    for scene in range(first, scenes):
        heartbeat(scene)
        if scene == 2 and task_context().attempt == 1:
            raise Corrupt(film)
    return f"{film}, from scene {first}"


@workflow
def dubbed(name: str, scenes: int) -> str:
    return dub(name, scenes)


@workflow
def film(name: str, frames: int) -> str:
    try:
        return render(name, frames=frames)
    except Corrupt:
        return "corrupt"
    except WaitTimeout:
        return "too late"


@workflow
def converted(name: str) -> str:
    try:
        return convert(name)
    except WaitTimeout:
        return "too late"


@workflow
def uploaded(name: str) -> str:
    try:
        return upload(name)
    except Corrupt as error:
        return f"corrupt {error}"


@workflow
def archived(name: str) -> str:
    return archive(name)


# -- containers ------------------------------------------------------------------------------------

FARGATE = Fargate(
    "films", "mix:3", "main", subnets=("subnet-1", "subnet-2"), security_groups=("sg-1",)
)


@task(runs_on=FARGATE, timeout=hours(2))
def mix(film: str, frames: int) -> str:
    for act in MEANWHILE:
        act()
    return f"{film} {frames} {task_context().workflow}"


@task(runs_on=BatchJob(queue="gpu", definition="grade:1"), timeout=hours(2))
def grade(film: str) -> str:
    return f"graded {film}"


@workflow
def mixed(name: str, frames: int) -> str:
    try:
        return mix(name, frames)
    except WaitTimeout:
        return "too late"


@workflow
def graded(name: str) -> str:
    return grade(name)
