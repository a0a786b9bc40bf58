"""A workflow whose second task runs on the host that ran the first."""

from __future__ import annotations

from holdfast import Retry, TaskError, Worker, days, minutes, task, task_context, workflow

#: The files of each host, which no other host has.
DISKS: dict[str, dict[str, str]] = {}
#: The host on which the test runs a worker.
HOST: list[str] = []


class Broken(TaskError): ...  # noqa: N818


@task(runs_on=Worker("hosts"), timeout=minutes(30))
def fetch(url: str) -> tuple[str, str]:
    host = HOST[-1]
    DISKS.setdefault(host, {})["film.raw"] = url
    return host, "film.raw"


@task(runs_on=Worker("hosts"), timeout=minutes(30), retry=Retry(max_attempts=3))
def shrink(path: str) -> str:
    host, attempt = HOST[-1], task_context().attempt
    if attempt == 1 and "flaky" in DISKS[host][path]:
        raise Broken(path)
    return f"{DISKS[host][path]} on {host}, attempt {attempt}"


@task
def record(text: str) -> str:
    return text


@workflow(timeout=days(30))
def on_one_host(url: str) -> str:
    host, path = fetch(url)
    try:
        return shrink.options(runs_on=Worker(host))(path)
    except Exception:  # noqa: BLE001 - the error of an expression has no other name
        return "no name"
