"""`python -m tests.sqlite.kills`: SIGKILL for `serve`, again and again, on one file.

A client starts executions and sends their events while the processes of one file are killed at
random moments. At the end:

* every start and event that was accepted has had its effect: the execution SUCCEEDED;
* nothing is doubled: a name has one execution, the result of each step is that of its last call,
  and no step was called after a later one.

A task that was running when its process was killed runs again; its first result was never recorded.
A start that is sent again may run the first step beside the first start; one of the two results is
recorded.

The parent imports everything once and forks the processes, so that a start takes no time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.deployment import Deployment
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.sqlite.killed_workflows import CALLS

UP_SECONDS = (0.05, 0.6)
PATIENCE_SECONDS = 90
WORKFLOW = "chain"


@dataclass
class Server:
    """One process of the file, at a port of its own."""

    deployment: Deployment
    data: Path
    port: int
    pid: int = 0

    def start(self) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _serve(self, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as ready:
            if not ready.read(1):
                sys.exit("`serve` ended at its start")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def _serve(server: Server, ready: int) -> None:
    """The child: it never returns."""
    try:
        with serving(server.deployment, server.port, data=server.data) as served:
            os.write(ready, b"+")
            os.close(ready)
            served.ended.wait()
    finally:
        os._exit(1)


@dataclass
class Client:
    """Starts executions and sends events; what was not answered is sent again."""

    draw: random.Random
    numbers: Iterator[int] = field(default_factory=count)
    #: The execution of each accepted name.
    started: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    #: A name whose start has had no answer yet.
    unsure: str | None = None

    def act(self, server: Server) -> None:
        if self.unsure is not None:
            self._start(server, self.unsure)
        elif self.waiting and self.draw.random() < 0.5:
            self._release(server, self.waiting[-1])
        elif self.started and self.draw.random() < 0.1:
            self._start(server, self.draw.choice(list(self.started)))
        else:
            self._start(server, f"n{next(self.numbers)}")

    def finish(self, server: Server) -> None:
        if self.unsure is not None:
            self._start(server, self.unsure)
        while self.waiting:
            self._release(server, self.waiting[-1])

    def _start(self, server: Server, name: str) -> None:
        request = {"workflow": WORKFLOW, "input": {"key": name}, "name": name}
        self.unsure = name
        status, answer = server.call("POST", "/executions", request)
        if status >= 300:
            raise ConnectionError(answer)
        self.unsure = None
        known = self.started.get(name)
        if known is None:
            self.started[name] = answer["execution"]
            self.waiting.append(name)
        elif known != answer["execution"]:
            self.doubled.append(name)

    def _release(self, server: Server, name: str) -> None:
        request = {"name": "released", "key": name, "data": {"by": "test"}, "id": name}
        status, answer = server.call("POST", "/events", request)
        if status >= 300:
            raise ConnectionError(answer)
        self.waiting.remove(name)


def run(kills: int, processes: int, seed: int, folder: Path) -> dict[str, Any]:
    os.environ[CALLS] = str(folder / "calls")
    deployment = deployment_of(["tests.sqlite.killed_workflows"])
    servers = [Server(deployment, folder / "holdfast.db", port) for port in free_ports(processes)]
    draw = random.Random(f"kills {seed}")
    client = Client(random.Random(f"client {seed}"))
    began = time.monotonic()
    for server in servers:
        server.start()
    for _ in range(kills):
        victim = draw.choice(servers)
        until = time.monotonic() + draw.uniform(*UP_SECONDS)
        # The kill comes from the client's own thread, so it falls between two calls: a process of
        # its own sends it in the middle of one.
        killer = _kill_at(victim.pid, until)
        while time.monotonic() < until:
            try:
                client.act(draw.choice(servers))
            except (OSError, http.client.HTTPException, ValueError):
                continue
        os.waitpid(killer, 0)
        os.waitpid(victim.pid, 0)
        victim.start()
    try:
        found = _judged(client, servers, folder)
    finally:
        for server in servers:
            server.kill()
    return {"kills": kills, "seconds": round(time.monotonic() - began, 1), **found}


def _kill_at(pid: int, until: float) -> int:
    killer = os.fork()
    if killer == 0:
        time.sleep(max(0.0, until - time.monotonic()))
        os.kill(pid, signal.SIGKILL)
        os._exit(0)
    return killer


def _judged(client: Client, servers: list[Server], folder: Path) -> dict[str, Any]:
    client.finish(servers[0])
    ends: dict[str, Any] = {}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(ends) < len(client.started) and time.monotonic() < deadline:
        for name in client.started.keys() - ends.keys():
            status, shown = servers[0].call("GET", f"/executions/{client.started[name]}")
            if status == 200 and shown["status"] != "RUNNING":
                ends[name] = shown
        time.sleep(0.2)
    calls: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in (folder / "calls").read_text().splitlines():
        key, step, call = line.split()
        calls[key].append((int(step), call))
    lost = sorted(client.started.keys() - ends.keys())
    failed = [name for name, shown in ends.items() if shown["status"] != "SUCCEEDED"]
    doubled = [name for name in ends if name not in failed and _is_doubled(ends[name], calls[name])]
    return {
        "started": len(client.started),
        "repeated calls": sum(len(found) - len({s for s, _ in found}) for found in calls.values()),
        "statuses": dict(Counter(shown["status"] for shown in ends.values())),
        "lost": lost,
        "failed": [(name, ends[name].get("error")) for name in failed],
        "doubled": sorted({*doubled, *client.doubled}),
        "strangers": sorted(calls.keys() - client.started.keys()),
    }


def _is_doubled(shown: Any, calls: list[tuple[int, str]]) -> bool:
    steps = [step for step, _ in calls]
    last = dict(calls)
    first, *others = shown["output"]
    is_one_of_first = (1, first) in calls
    return steps != sorted(steps) or not is_one_of_first or others != [last[2], last[3]]


def free_ports(number: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(arguments.kills, arguments.processes, arguments.seed, Path(folder))
    print(json.dumps({"seed": arguments.seed, **found}))
    return 1 if found["lost"] or found["failed"] or found["doubled"] else 0


if __name__ == "__main__":
    sys.exit(main())
