"""A copy of the file and its log, as a snapshot of the volume takes it, is as good as the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def copies(*arguments: str) -> None:
    command = [sys.executable, "-m", "tests.sqlite.copies", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert min(json.loads(done.stdout)["accepted"]) > 0


def test_a_copy_under_load_goes_on_with_all_that_was_accepted() -> None:
    copies("--copies", "1", "--seed", "1")


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_fifty_copies_lose_nothing(processes: str) -> None:
    copies("--copies", "50", "--seed", "2", "--processes", processes)
