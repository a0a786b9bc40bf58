"""Processes of `holdfast worker`: one that is killed, one that is asked to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve")]

PROGRAM = """
from __future__ import annotations

import sys
import time

from holdfast import Worker, heartbeat, seconds, task, task_context, workflow


@task(runs_on=Worker("gpu"), timeout=seconds(60), heartbeat=seconds(3))
def render(sleeps: float) -> int:
    attempt = task_context().attempt
    print("rendering", file=sys.stderr, flush=True)
    for _ in range(int(sleeps * 10)):
        heartbeat()
        time.sleep(0.1)
        if attempt > 1:
            break
    return attempt


@workflow
def film(sleeps: float) -> int:
    return render(sleeps)


@workflow
def film_on(host: str) -> int:
    return render.options(runs_on=Worker(host))(0)
"""


class Machine:
    """A project of its own, with the processes of its `serve` and of its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        (folder / "films.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "pyproject.toml").write_text('[tool.holdfast]\nmodules = ["films"]\n')

    def run(self, *command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *command],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.processes.append(process)
        return process

    def serve(self) -> Client:
        serve = self.run("serve", "--port", "0", "--json", "--in-memory")
        assert serve.stdout is not None
        return Client(json.loads(serve.stdout.readline())["url"])

    def worker(self, client_url: str, pool: str = "gpu", *more: str) -> subprocess.Popen[str]:
        return self.run("worker", "--pool", pool, *more, "--endpoint", client_url)

    def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.communicate()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.end()


def until_line(process: subprocess.Popen[str], is_it: Callable[[str], bool]) -> str:
    """Return the first line of its stderr that is it. A process that ends fails the test."""
    assert process.stderr is not None
    for line in process.stderr:
        if is_it(line):
            return line
    raise AssertionError("the process ended before that line")


def test_a_killed_worker_loses_its_attempt_to_another_one(machine: Machine) -> None:
    client: Any = machine.serve()
    url = client._api.where
    handle = client.start("film", {"sleeps": 60}, name="f1")
    first = machine.worker(url)
    until_line(first, lambda line: "rendering" in line)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = machine.worker(url)
    assert handle.result(timeout=40) == 2
    until_line(second, lambda line: "answered" in line)
    types = [event["type"] for event in client.history(handle.execution)]
    assert types.count("ActivityTimedOut") == 1


def test_a_worker_finishes_its_task_at_sigterm_and_takes_no_other(machine: Machine) -> None:
    client: Any = machine.serve()
    url = client._api.where
    given = {"sleeps": 1}
    handle = client.start("film", given, name="f1")
    worker = machine.worker(url)
    until_line(worker, lambda line: "begun" in line)
    later = client.start("film", given, name="f2")
    worker.send_signal(signal.SIGTERM)
    assert handle.result(timeout=20) == 1
    assert worker.wait(20) == 0
    assert client.describe(later.execution)["waits"][0]["pool"] == "gpu"
    assert client.pools()[0]["workers"] == []


def test_a_worker_of_a_chosen_pool_runs_the_tasks_of_the_declared_one(machine: Machine) -> None:
    client: Any = machine.serve()
    url = client._api.where
    handle = client.start("film_on", {"host": "box-7"}, name="f1")
    worker = machine.worker(url, "box-7", "--tasks-of", "gpu")
    until_line(worker, lambda line: "works for the pool box-7: render" in line)
    assert handle.result(timeout=20) == 1
    assert [(one["pool"], len(one["workers"])) for one in client.pools()] == [
        ("box-7", 1),
        ("gpu", 0),
    ]
