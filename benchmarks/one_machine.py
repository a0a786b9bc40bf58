"""`serve` on a file with many open executions: start rate, memory, `list`, restart.

    uv run python benchmarks/one_machine.py --executions 10000

    uv run python benchmarks/one_machine.py --workloads

The server is a process of its own. Its executions run one task and then wait for an event. The
workloads are a chain of ten steps, a list of 100 items with a step each, a loop of 1,000 steps, and
200 chains at once; the CPU is that of the whole server process, starts over HTTP included.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

MODULE = """
from __future__ import annotations
import time
from pydantic import BaseModel
from holdfast import each, task, wait_for_event, workflow

class Paid(BaseModel):
    by: str

@task
def reserve(order: str) -> str:
    return order

@workflow
def pay(order: str) -> str:
    reserve(order)
    paid = wait_for_event("paid", Paid, key=order)
    return paid.by

@task
def add(number: int) -> int:
    return number + 1

@workflow
def chain(number: int) -> int:
    for _ in range(10):
        number = add(number)
    return number

@workflow
def fan(numbers: list[int]) -> list[int]:
    return each(numbers, add)

@workflow
def loop(until: int) -> int:
    number = 0
    while number < until:
        number = add(number)
    return number

@task
def moment() -> int:
    return time.time_ns() // 1_000

@workflow
def first() -> int:
    return moment()
"""
CLIENTS = 16


class Server:
    def __init__(self, folder: Path) -> None:
        began = time.perf_counter()
        program = "import sys; from holdfast.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "serve", "--port", "0", "--json"]
        self.process = subprocess.Popen(
            [*command, "--modules", "paying"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(url.rpartition(":")[2])
        self.seconds_to_start = time.perf_counter() - began

    def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0.0

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def queued_seconds(self) -> float:
        """Return how long its threads were ready and waited for a CPU: what other work adds."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(one.read_text().split()[1]) for one in threads) / 1e9

    def start(self, number: int) -> None:
        request = {"workflow": "pay", "input": {"order": f"o{number}"}, "name": f"o{number}"}
        assert "execution" in self.call("POST", "/executions", request)

    def settle(self) -> None:
        while any(self.call("GET", "/health")["queued"].values()):
            time.sleep(0.5)


def run_chains(executions: int) -> dict[str, Any]:
    """Chains of ten steps, started at once; the CPU is that of the whole server process."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "paying.py").write_text(MODULE)
        server = Server(folder)

        def start(number: int) -> str:
            request = {"workflow": "chain", "input": {"number": 0}, "name": f"c{number}"}
            return str(server.call("POST", "/executions", request)["execution"])

        def result(execution: str) -> None:
            while server.call("GET", f"/executions/{execution}")["status"] == "RUNNING":
                time.sleep(0.2)

        before, began = server.cpu_seconds(), time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            runs = list(pool.map(start, range(executions)))
            server.settle()
            seconds = time.perf_counter() - began
            cpu_ms = (server.cpu_seconds() - before) * 1_000
            list(pool.map(result, runs))
        server.process.kill()
        server.process.wait()
    steps = executions * 10
    return {
        "chains": executions,
        "CPU ms per step": round(cpu_ms / steps, 3),
        "steps per s": round(steps / seconds),
    }


@dataclass(frozen=True)
class Workload:
    """`count` executions of a workflow, all started before the first result is asked for."""

    name: str
    workflow: str
    given: dict[str, Any]
    steps: int
    count: int = 1


WORKLOADS = (
    Workload("W1: a chain of 10 steps", "chain", {"number": 0}, 10),
    Workload("W2: 100 items, a step each", "fan", {"numbers": list(range(100))}, 100),
    Workload("W3: a loop of 1,000 steps", "loop", {"until": 1_000}, 1_000),
    Workload("W4: 200 chains at once", "chain", {"number": 0}, 10, 200),
)
LATENCIES = 50
STEPS_MIN = 200
#: As `holdfast.Client` polls. The CPU of these requests counts, too.
POLL_SECONDS = 0.1


def run_workloads(repeats: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "paying.py").write_text(MODULE)
        server = Server(folder)
        for workload in WORKLOADS:
            _run(server, workload)  # to warm up
            # The system counts CPU in ticks of 10 ms, so short executions need many rounds.
            times = repeats * max(1, STEPS_MIN // workload.steps)
            before = server.cpu_seconds()
            seconds = [_run(server, workload) for _ in range(times)]
            cpu_ms = (server.cpu_seconds() - before) * 1_000
            steps = workload.steps * workload.count
            found[workload.name] = {
                "CPU ms per step": round(cpu_ms / steps / times, 3),
                "steps per s": round(steps / median(seconds)),
            }
        waits = sorted(_until_first_task(server) for _ in range(LATENCIES))
        found["ms from start to first task"] = {"median": waits[LATENCIES // 2], "worst": waits[-1]}
        server.process.kill()
        server.process.wait()
    return found


def _run(server: Server, workload: Workload) -> float:
    """Return the seconds from the first start to the last result."""

    def start(_: int) -> str:
        request = {"workflow": workload.workflow, "input": workload.given}
        return str(server.call("POST", "/executions", request)["execution"])

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        runs = list(pool.map(start, range(workload.count)))
    for run in runs:
        _output(server, run)
    return time.perf_counter() - began


def _output(server: Server, run: str) -> Any:
    while (shown := server.call("GET", f"/executions/{run}"))["status"] == "RUNNING":
        time.sleep(POLL_SECONDS)
    assert shown["status"] == "SUCCEEDED", shown
    return shown.get("output")


def _until_first_task(server: Server) -> float:
    began_us = time.time_ns() // 1_000
    run = server.call("POST", "/executions", {"workflow": "first", "input": {}})["execution"]
    return round((_output(server, run) - began_us) / 1_000, 1)


def timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return round(time.perf_counter() - began, 3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executions", type=int, default=10_000)
    parser.add_argument("--chains", type=int, default=0, help="measure this workload instead")
    parser.add_argument("--workloads", action="store_true", help="measure the four workloads")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.workloads:
        print(json.dumps(run_workloads(arguments.repeats), indent=1))
        return
    if arguments.chains:
        print(json.dumps(run_chains(arguments.chains)))
        return
    executions = arguments.executions
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "paying.py").write_text(MODULE)
        server = Server(folder)
        found: dict[str, Any] = {"executions": executions, "empty MB": round(server.megabytes())}
        with ThreadPoolExecutor(CLIENTS) as pool:
            found["starts s"] = timed(lambda: list(pool.map(server.start, range(executions))))
        found["settled s"] = timed(server.settle)
        found["CPU ms per execution"] = round(server.cpu_seconds() * 1_000 / executions, 2)
        found["MB"] = round(server.megabytes())
        found["list s"] = timed(lambda: server.call("GET", "/executions?limit=100"))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        again = Server(folder)
        found["restart s"] = round(again.seconds_to_start, 2)
        found["restart CPU s"] = round(again.cpu_seconds(), 2)
        found["restart, waiting for a CPU s"] = round(again.queued_seconds(), 2)
        found["list after restart s"] = timed(
            lambda: again.call("GET", "/executions?status=RUNNING&limit=100")
        )
        event = {"name": "paid", "key": "o0", "data": {"by": "card"}}
        found["event s"] = timed(lambda: again.call("POST", "/events", event))
        found["restarted MB"] = round(again.megabytes())
        found["file MB"] = round((folder / ".holdfast" / "holdfast.db").stat().st_size / 1e6)
        again.process.kill()
        again.process.wait()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
