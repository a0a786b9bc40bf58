"""Evaluated expressions, evaluated again by jsonata-js 2.0.6, the version that AWS names.

    python -m tests.conformance.jsonata_js FILE

replays a file with one evaluation a line:
{"text", "bindings", "answer": {"value": …} or {"error": code} or {}}; {} is "undefined".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast.asl.jsonata import jsonata
from holdfast.asl.jsonata.jsonata import (
    UNDEFINED,
    EvaluationMoment,
    JsonataError,
    compile_expression,
)
from tests.conformance.node_kit import ask

#: Functions that AWS has and jsonata-js lacks, and functions of chance and time.
NOT_IN_JS = re.compile(r"\$(partition|range|hash|random|uuid|now|millis|shuffle)\(")
_NAME = re.compile(r"\$(\w+)")
_LISTS_KEYS = re.compile(r"\$(keys|each|spread)\(")


@dataclass
class Recorder:
    """Distinct evaluations, as lines of JSON with the bindings that the text names."""

    lines: dict[str, None] = field(default_factory=dict)

    def note(self, text: str, bindings: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        if not NOT_IN_JS.search(text):
            used = {name: bindings[name] for name in _NAME.findall(text) if name in bindings}
            line = {"text": text, "bindings": used, "answer": answer}
            self.lines[json.dumps(line)] = None

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@contextmanager
def recording() -> Iterator[Recorder]:
    """All evaluations of this process while the block runs."""
    recorder = Recorder()
    evaluate = jsonata._Expression.evaluate

    def noting(self: Any, bindings: Mapping[str, Any], moment: EvaluationMoment) -> Any:
        try:
            value = evaluate(self, bindings, moment)
        except JsonataError as error:
            recorder.note(self.text, bindings, {"error": error.code})
            raise
        recorder.note(self.text, bindings, {} if value is UNDEFINED else {"value": value})
        return value

    with patch.object(jsonata._Expression, "evaluate", noting):
        yield recorder


@dataclass(frozen=True)
class Replayed:
    """`differences` are those that nothing explains; `of_order` those of keys like "3"."""

    evaluations: int
    expressions: int
    of_order: int
    differences: list[dict[str, Any]]


def replay(evaluations: Iterable[dict[str, Any]]) -> Replayed:
    asked = list(evaluations)
    differing = [
        {**ours, "js": theirs}
        for ours, theirs in zip(asked, _answers_of_js(asked), strict=True)
        if not same(ours["answer"], theirs)
    ]
    again = [_without_numbers_as_keys(difference) for difference in differing]
    unexplained = [
        difference
        for difference, ours, theirs in zip(differing, again, _answers_of_js(again), strict=True)
        if ours["bindings"] == difference["bindings"] or not same(ours["answer"], theirs)
        if not _lists_made_keys(difference)
    ]
    expressions = len({ours["text"] for ours in asked})
    explained = len(differing) - len(unexplained)
    return Replayed(len(asked), expressions, explained, unexplained)


def _answers_of_js(asked: list[dict[str, Any]]) -> list[Any]:
    return ask("jsonata_replay.mjs", "jsonata", asked)


def _without_numbers_as_keys(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """JavaScript puts keys that look like integers first. The same, evaluated without such keys."""
    bindings = _renamed(evaluation["bindings"])
    moment = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
    try:
        value = compile_expression(evaluation["text"]).evaluate(bindings, moment)
    except JsonataError as error:
        answer: dict[str, Any] = {"error": error.code}
    else:
        answer = {} if value is UNDEFINED else {"value": value}
    return {"text": evaluation["text"], "bindings": bindings, "answer": answer}


def _renamed(value: Any) -> Any:
    match value:
        case dict():
            return {
                f"k{key}" if key.isdigit() else key: _renamed(item) for key, item in value.items()
            }
        case list():
            return [_renamed(item) for item in value]
        case _:
            return value


def _lists_made_keys(difference: Mapping[str, Any]) -> bool:
    """Keys that the expression itself makes of numbers, listed in another order."""
    text = difference["text"]
    makes = "$string(" in text and _LISTS_KEYS.search(text)
    return bool(makes) and _sorted(difference["answer"]) == _sorted(difference["js"])


def same(ours: Any, theirs: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1; the order of keys does not count."""
    match ours, theirs:
        case dict(), dict():
            return ours.keys() == theirs.keys() and all(
                same(ours[key], theirs[key]) for key in ours
            )
        case list(), list():
            return len(ours) == len(theirs) and all(map(same, ours, theirs))
        case (bool(), _) | (_, bool()):
            return ours is theirs
        case _:
            return bool(ours == theirs)


def _sorted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted(item) for key, item in value.items()}
        case list():
            return sorted((_sorted(item) for item in value), key=json.dumps)
        case _:
            return value


def main(path: str) -> int:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    replayed = replay(json.loads(line) for line in lines)
    for difference in replayed.differences:
        print(json.dumps(difference))
    print(
        f"{replayed.evaluations:,} evaluations of {replayed.expressions:,} expressions: "
        f"{len(replayed.differences)} differences, {replayed.of_order} in the order of keys"
    )
    return 1 if replayed.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
