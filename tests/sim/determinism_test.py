"""Same seed, same trace: in one process, in another, and whatever the seed of its hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from holdfast_simulator import levels, runner
from holdfast_simulator.runner import play
from holdfast_simulator.schedule import WrittenTape
from tests.thorough import IS_THOROUGH

ROOT: Final = Path(__file__).parents[2]
STATEMACHINES: Final = ROOT / "statemachines"
FAST, SLOW = 30 if IS_THOROUGH else 8, 1_000


def _traces(count: int) -> list[str]:
    return [levels.scheduled(seed, STATEMACHINES).trace for seed in range(count)]


@cache
def _remembered() -> list[str]:
    return _traces(FAST)


def _hash_of_all(count: int, hash_seed: str) -> str:
    """Return the hash that a separate process computes."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast_simulator", "--hashes", "--schedules", str(count)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_seed_gives_the_same_trace_twice() -> None:
    first = _remembered()
    assert first == _traces(FAST)
    assert len(set(first)) == FAST


def test_a_seed_gives_the_same_trace_in_processes_that_hash_otherwise() -> None:
    assert _hash_of_all(FAST, "1") == _hash_of_all(FAST, "random")


def test_the_choices_of_a_seed_give_its_trace_without_the_seed() -> None:
    for seed in range(FAST):
        drawn = levels.scheduled(seed, STATEMACHINES)
        deployed = levels.deployed_for(seed, STATEMACHINES)
        written = play(deployed, drawn.swarm, WrittenTape(drawn.choices))
        assert written.trace == drawn.trace, f"seed {seed}"
        assert written.choices == drawn.choices, f"seed {seed}"


def test_a_trace_is_the_same_where_every_host_reads_the_log_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remembering = _remembered()
    monkeypatch.setattr(runner, "remembered", nullcontext)
    assert _traces(FAST) == remembering


@pytest.mark.slow
def test_a_thousand_seeds_give_the_same_traces_under_every_hash_seed() -> None:
    said = {_hash_of_all(SLOW, hash_seed) for hash_seed in ("0", "1", "random")}
    print(said)
    assert len(said) == 1
