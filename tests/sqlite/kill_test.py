"""SIGKILL at random moments: no start and no event is lost, nothing is doubled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def kills(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sqlite.kills", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_an_execution_accepted_before_a_kill_ends_after_it() -> None:
    assert kills("--kills", "2", "--seed", "1")["started"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_five_hundred_kills_lose_nothing(processes: str) -> None:
    found = kills("--kills", "500", "--seed", "2", "--processes", processes)
    assert found["started"] > 500
