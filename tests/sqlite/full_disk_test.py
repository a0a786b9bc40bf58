"""`serve` on a disk that is full, or read-only: refusals that say so, and nothing is lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.local.stack import deployment_of
from tests.sqlite.killed_workflows import CALLS
from tests.sqlite.kills import PATIENCE_SECONDS, Server, free_ports

MODULE = "tests.sqlite.killed_workflows"


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Server]]:
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    servers: list[Server] = []

    def started(folder: Path) -> Server:
        made = Server(deployment_of([MODULE]), folder / "holdfast.db", *free_ports(1))
        made.start()
        servers.append(made)
        return made

    yield started
    for server in servers:
        server.kill()


def start(server: Server, name: str) -> tuple[int, Any]:
    request = {"workflow": "chain", "input": {"key": name}, "name": name}
    return server.call("POST", "/executions", request)


def fill(server: Server) -> tuple[list[str], tuple[int, Any]]:
    """Start executions until one is refused; return the accepted names and the refusal."""
    accepted: list[str] = []
    while True:
        name = f"n{len(accepted)}"
        status, answer = start(server, name)
        if status >= 300:
            return accepted, (status, answer)
        accepted.append(name)


def require_ends(server: Server, names: list[str]) -> None:
    """Send the events, and see that all executions end well."""
    for name in names:
        event = {"name": "released", "key": name, "data": {"by": "test"}, "id": name}
        assert server.call("POST", "/events", event)[0] < 300
    deadline = time.monotonic() + PATIENCE_SECONDS
    left = set(names)
    while left:
        assert time.monotonic() < deadline, left
        shown = {name: server.call("GET", f"/executions/{name}")[1] for name in left}
        left = {name for name, one in shown.items() if one.get("status") != "SUCCEEDED"}
        time.sleep(0.05)


def test_a_file_that_may_not_grow_refuses_starts_and_goes_on_when_it_may(
    tmp_path: Path, serve: Callable[[Path], Server]
) -> None:
    server = serve(tmp_path)
    assert start(server, "n0")[0] == 201
    # The kernel refuses each write beyond this, as a disk does that has no room left.
    size = max((tmp_path / f"holdfast.db{ending}").stat().st_size for ending in ("", "-wal"))
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size + 20_000, -1))
    accepted, (status, refusal) = fill(server)

    # A commit that fails on the way to the disk leaves its write in doubt (HF320).
    assert (status, refusal["error"]["code"]) in {(503, "HF285"), (503, "HF320")}
    assert str(tmp_path / "holdfast.db") in refusal["error"]["message"]

    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1_000, -1))
    assert server.call("GET", "/health")[0] == 503
    assert server.call("GET", "/executions/n0")[1]["status"] == "RUNNING"

    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
    assert server.call("GET", "/health")[0] == 200
    require_ends(server, accepted)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a disk of its own")
    command = [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine mounts no tmpfs")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_named_and_work_goes_on_when_there_is_room(
    small_disk: Path, serve: Callable[[Path], Server]
) -> None:
    server = serve(small_disk)
    accepted, (status, refusal) = fill(server)
    assert accepted
    assert (status, refusal["error"]["code"]) == (503, "HF284")
    assert "full: make room" in refusal["error"]["message"]

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    require_ends(server, accepted)


@pytest.mark.slow
def test_a_disk_that_turns_read_only_is_named_and_loses_nothing(
    small_disk: Path, serve: Callable[[Path], Server]
) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    server = serve(small_disk)
    assert start(server, "n0")[0] == 201
    server.kill()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(SystemExit):
        server.start()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    server.start()
    require_ends(server, ["n0"])
