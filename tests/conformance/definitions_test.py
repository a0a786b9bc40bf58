"""Validation of definitions, compared with recordings of AWS and with two linters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.parsing.parse import parse_definition, parse_state
from holdfast.asl.validation.validate import DefinitionProblem, diagnose, diagnose_state, sentence

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT.parent / "shared" / "conformance"
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
ROW = re.compile(
    r"^\| `([\w-]+/[\w.-]+\.json)` \| (valid|invalid) \| (valid|invalid) \|", re.MULTILINE
)
REFUSAL = "Invalid State Machine Definition"
ACTIONS = {"create_state_machine", "update_state_machine", "test_state"}

pytestmark = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not here")


def lines(name: str) -> list[dict[str, Any]]:
    text = (RECORDINGS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def calls() -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
    """Every call that has a definition, with its case: (case, step, the definition's text)."""
    for case in lines("cases.jsonl"):
        for step in case["steps"]:
            text = step.get("params", {}).get("definition")
            if step["op"] == "call" and isinstance(text, str):
                yield (
                    case,
                    step,
                    text.replace("__REGION__", "eu-west-1").replace("__ACCOUNT__", "1"),
                )


def found_in(step: dict[str, Any], text: str) -> tuple[DefinitionProblem, ...]:
    if step["action"] == "test_state" and "States" not in json.loads(text):
        return diagnose_state(json.loads(text))
    return diagnose(text, step["params"].get("type", "STANDARD"))


def test_each_definition_that_aws_accepted_is_accepted_and_parsed() -> None:
    looked_at = 0
    for case, step, text in calls():
        if step["action"] not in ACTIONS or REFUSAL in json.dumps(case["checks"]):
            continue
        assert found_in(step, text) == (), case["id"]
        document = json.loads(text)
        if "States" in document:
            assert set(document["States"]) <= set(parse_definition(document).states)
        else:
            assert parse_state("S", document).name == "S"
        looked_at += 1
    assert looked_at > 1_000


def test_each_definition_that_aws_refused_is_refused_in_the_same_words() -> None:
    looked_at = 0
    for case, step, text in calls():
        recorded = json.dumps(case["checks"])
        if step.get("raises") and step["action"] in ACTIONS and REFUSAL in recorded:
            ours = sentence(found_in(step, text)).replace(
                "arn:aws:states", "arn:<partition>:states"
            )
            assert json.dumps(ours)[1:-1] in recorded, case["id"]
            looked_at += 1
    assert looked_at >= 14


def test_a_validation_is_answered_as_aws_answered_it() -> None:
    looked_at = 0
    for case, step, text in calls():
        if step["action"] != "validate_state_machine_definition":
            continue
        ours = [
            {name: getattr(one, name) for name in ("code", "location", "message", "severity")}
            for one in found_in(step, text)
        ]
        shown = [{name: value for name, value in one.items() if value is not None} for one in ours]
        assert shown == case["checks"][0]["expected"]["diagnostics"], case["id"]
        looked_at += 1
    assert looked_at >= 7


def test_where_we_and_a_linter_differ_a_reason_is_written_down() -> None:
    page = PAGE.read_text(encoding="utf-8")
    explained = {name: (theirs, ours) for name, theirs, ours in ROW.findall(page)}
    differences = {}
    for one in lines("definitions.jsonl"):
        theirs = "valid" if one["valid"] else "invalid"
        ours = "invalid" if diagnose(one["definition"]) else "valid"
        if ours != theirs:
            differences[one["id"]] = (theirs, ours)

    assert differences == explained
