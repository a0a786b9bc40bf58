"""Histories that AWS recorded, against ours: every case that needs nothing but the language.

Chosen by what a definition uses, never by its id. The same definition and input run through the
core; ids, predecessors, types and details have to be AWS's. `pytest --log-level=INFO -rA` shows
the numbers.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.parsing.parse import DefinitionError
from holdfast.core.state import Delay, Timer
from holdfast.runtime.commands.presentation import _event
from tests.unit.core_kit import Case

LOG = logging.getLogger(__name__)
CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "cases.jsonl"

#: Fields that AWS adds around the values, and fields that differ in every run.
NOISE = {
    "inputDetails",
    "outputDetails",
    "assignedVariablesDetails",
    "roleArn",
    "timestamp",
    "holdfast",
}
#: Words that replace values that differ in every run.
PLACEHOLDERS = ("timestamp", "date")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    if not CASES.exists():
        pytest.skip(f"the recordings are not at {CASES}")
    found = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [case for case in found if _is_language_only(case)]


def _is_language_only(case: dict[str, Any]) -> bool:
    if case["kind"] != "execution" or case["services"] or "events" not in case["expected"]:
        return False
    definition = json.loads(case["definition"])
    return definition.get("QueryLanguage") == "JSONata" and '"Task"' not in case["definition"]


def ours(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an execution of the case's machine; its timers fire at once."""
    execution = Case(json.loads(case["definition"])).start(json.loads(case["input"] or "{}"))
    while not execution.state.is_ended:
        dues = [
            frame.waiting.due_ms
            for frame in execution.state.frames.values()
            if isinstance(frame.waiting, Timer | Delay)
        ]
        execution.after((min(dues) - execution.now_ms) / 1_000)
    return [_event(event) for event in execution.events if event.id]


def plain(value: Any) -> Any:
    """Return JSON text as its value, without noise: the rest has to be equal."""
    if isinstance(value, dict):
        found = {key: plain(item) for key, item in value.items() if key not in NOISE}
        return {key: item for key, item in found.items() if item != {}}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def is_same(found: Any, recorded: Any) -> bool:
    if isinstance(recorded, dict) and isinstance(found, dict):
        return found.keys() == recorded.keys() and all(
            is_same(found[key], recorded[key]) for key in recorded
        )
    return bool(found == recorded) or recorded in PLACEHOLDERS


def links(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(event["id"], event["previousEventId"], event["type"]) for event in events]


def test_histories_are_those_that_aws_recorded(cases: list[dict[str, Any]]) -> None:
    refused, linked, whole = 0, 0, 0
    for case in cases:
        try:
            found = plain(ours(case))
        except DefinitionError as error:
            refused += 1
            LOG.info("refused %s: %s", case["id"], error)
            continue
        recorded = plain(case["expected"]["events"])
        linked += links(found) == links(recorded)
        differences = [pair for pair in zip(found, recorded, strict=False) if not is_same(*pair)]
        whole += not differences
        for mine, theirs in differences[:1]:
            LOG.info("%s\n   ours %s\n   AWS  %s", case["id"], mine, theirs)
    LOG.info("of %s: %s refused, %s with AWS's ids, %s whole", len(cases), refused, linked, whole)
    # A Map's ToleratedFailureCount, and the words for a value of the wrong type, are to come.
    assert refused <= 1
    assert linked >= 31
    assert whole >= 21
