"""`python -m tests.sqlite.copies`: copies of the file and its log, taken under load.

A client starts executions and sends their events. At random moments all processes of the file are
stopped where they are, the file and its log are copied, and the processes go on: the copy is what a
snapshot of the volume has. Then a `serve` opens each copy. At the end every execution that was
accepted before the copy was taken has SUCCEEDED there, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.local.stack import deployment_of
from tests.sqlite.killed_workflows import CALLS
from tests.sqlite.kills import PATIENCE_SECONDS, Client, Server, free_ports

UP_SECONDS = (0.05, 0.5)


@dataclass(frozen=True, slots=True)
class Copy:
    """`started`: the executions that had been accepted, by name."""

    data: Path
    started: dict[str, str]


def run(copies: int, processes: int, seed: int, folder: Path) -> dict[str, Any]:
    os.environ[CALLS] = str(folder / "calls")
    deployment = deployment_of(["tests.sqlite.killed_workflows"])
    *ports, spare = free_ports(processes + 1)
    servers = [Server(deployment, folder / "holdfast.db", port) for port in ports]
    draw = random.Random(f"copies {seed}")
    client = Client(random.Random(f"client {seed}"))
    for server in servers:
        server.start()
    try:
        taken = [_take(draw, client, servers, folder / f"copy{n}.db") for n in range(copies)]
    finally:
        for server in servers:
            server.kill()
    lost = [name for copy in taken for name in _left(Server(deployment, copy.data, spare), copy)]
    return {"copies": copies, "accepted": [len(copy.started) for copy in taken], "lost": lost}


def _take(draw: random.Random, client: Client, servers: Sequence[Server], target: Path) -> Copy:
    """Work for a while, then copy in the middle of the work of another client."""
    until = time.monotonic() + draw.uniform(*UP_SECONDS)
    while time.monotonic() < until:
        client.act(draw.choice(servers))
    accepted = dict(client.started)
    other = os.fork()
    if other == 0:
        while True:
            client.act(draw.choice(servers))
    time.sleep(draw.uniform(0.005, 0.1))
    _signal(servers, signal.SIGSTOP)
    for ending in ("", "-wal"):
        shutil.copy(f"{servers[0].data}{ending}", f"{target}{ending}")
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
    _signal(servers, signal.SIGCONT)
    return Copy(target, accepted)


def _signal(servers: Sequence[Server], number: signal.Signals) -> None:
    for server in servers:
        os.kill(server.pid, number)


def _left(server: Server, copy: Copy) -> list[str]:
    """Return the names whose executions do not succeed on the copy."""
    server.start()
    open_names = set(copy.started)
    try:
        for name in copy.started:
            event = {"name": "released", "key": name, "data": {"by": "copy"}, "id": name}
            server.call("POST", "/events", event)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while open_names and time.monotonic() < deadline:
            for name in sorted(open_names):
                status, shown = server.call("GET", f"/executions/{copy.started[name]}")
                if status == 200 and shown["status"] == "SUCCEEDED":
                    open_names.remove(name)
            time.sleep(0.05)
    finally:
        server.kill()
    return sorted(open_names)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(arguments.copies, arguments.processes, arguments.seed, Path(folder))
    print(json.dumps({"seed": arguments.seed, **found}))
    return 1 if found["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
