"""The share of AWS's recorded behaviour that `serve` reproduces, over HTTP and boto3."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.conformance import api_test

CASES: Final = api_test.SHARED / "cases.jsonl"
SAMPLE_CASES: Final = 24
SAMPLE_CASES_OF_CATEGORY: Final = 3
THREADS: Final = 6
#: Which part of the cases has to be right: in its outcome, and in all of its events or members.
OUTCOMES_MIN: Final = 0.98
HISTORIES_MIN: Final = 0.95
RESPONSES_MIN: Final = 0.85  # recordings of several years, each with the members of its time

pytestmark = [
    pytest.mark.skipif(not CASES.exists(), reason="the recordings are not here"),
    pytest.mark.xdist_group("recorded"),
    # The runner leaves the closing of its files to the interpreter.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Totals = dict[str, dict[str, int]]
Replay = Callable[[list[dict[str, Any]]], Totals]


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    """Yield cases to the runner's totals, by category."""
    runner = api_test._runner()
    with serving(deployment_of([]), port=0) as served:

        def replayed(cases: list[dict[str, Any]]) -> Totals:
            chosen, report = tmp_path / "cases.jsonl", tmp_path / "report.json"
            chosen.write_text("".join(f"{json.dumps(case)}\n" for case in cases))
            options = ["--endpoint", served.url, "--cases", chosen, "--report", report]
            options += ["--threads", THREADS]
            monkeypatch.setattr("sys.argv", ["run.py", *map(str, options)])
            runner.main()
            totals: Totals = json.loads(report.read_text())["totals"]
            return totals

        yield replayed


def all_cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def sample() -> list[dict[str, Any]]:
    """Return cases that need no other service and no patience, of each category some."""
    chosen: list[dict[str, Any]] = []
    of_category = Counter[str]()
    for case in sorted(filter(is_quick, all_cases()), key=digest):
        of_category[case["category"]] += 1
        if of_category[case["category"]] <= SAMPLE_CASES_OF_CATEGORY:
            chosen.append(case)
    return chosen[:SAMPLE_CASES]


def digest(case: dict[str, Any]) -> str:
    return hashlib.sha256(str(case["id"]).encode()).hexdigest()


def is_quick(case: dict[str, Any]) -> bool:
    return not case["services"] and not sleeps(case["steps"]) and is_comparable(case)


def sleeps(steps: list[dict[str, Any]]) -> bool:
    """Return True when the case itself sleeps, on the real clock."""
    return any(step["op"] == "sleep" or sleeps(step.get("steps", [])) for step in steps)


def is_comparable(case: dict[str, Any]) -> bool:
    """The API sends outputs as text. The runner reads it where the recording holds an object, but
    not where it holds a list or a number: those recordings no answer is equal to.
    """
    events = (case.get("expected") or {}).get("events") or []
    details = [value for event in events for value in event.values() if isinstance(value, dict)]
    return all(isinstance(one.get("output", ""), str | dict) for one in details)


def require_the_bar(totals: Totals) -> None:
    executions, calls = totals["= execution cases"], totals["= api cases"]
    assert executions["A"] >= OUTCOMES_MIN * executions["cases"], executions
    assert calls["A"] >= OUTCOMES_MIN * calls["cases"], calls
    assert executions["C"] >= HISTORIES_MIN * executions["histories"], executions
    assert calls["C"] >= RESPONSES_MIN * calls["histories"], calls


def test_a_sample_of_the_recordings_comes_out_as_it_did_on_aws(replay: Replay) -> None:
    chosen = sample()
    assert len(chosen) == SAMPLE_CASES
    require_the_bar(replay(chosen))


@pytest.mark.slow
def test_the_recordings_come_out_as_they_did_on_aws(replay: Replay) -> None:
    require_the_bar(replay(all_cases()))
