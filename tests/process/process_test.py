"""A short trial, as the long one is run: by the command, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.last_fault import END_SECONDS

ROOT = Path(__file__).parents[2]
TRIAL = {
    "kills": 25,
    "freezes": 5,
    "stalls": 2,
    "executions": 40,
    "seconds": 25,
    "redrives": 40,
    "seed": 1,
}
SECONDS_MAX = 300


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_processes_are_killed_and_frozen(tmp_path: Path) -> None:
    arguments = [text for name, value in TRIAL.items() for text in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.process", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert "violations: 0" in done.stdout
    assert "\nkill: 25\n" in done.stdout
    figures = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    for what in (
        "open at the last fault",
        "attempts in frozen hands then",
        "attempts in dead hands then",
    ):
        assert int(figures[what]) > 0, "the bound after the last fault would say nothing"
    assert float(figures["slowest end of these, seconds after"]) <= END_SECONDS
