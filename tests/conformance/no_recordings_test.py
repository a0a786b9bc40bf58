"""The engine implements rules and never looks up recordings: the shipped code contains no text of a
recorded case.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RECORDINGS: Final = ROOT.parent / "shared" / "conformance" / "cases.jsonl"
SHIPPED: Final = ("src", "functions", "infra")
SUFFIXES: Final = {".py", ".json", ".toml", ".yaml", ".yml", ".txt"}
#: A shorter text is in both by chance: a word, a path, a number.
LITERAL_CHARACTERS_MIN: Final = 40
PARAMETER_PARTS_MIN: Final = 2  # Parts of a joined name: TIMEOUT_SECONDS may belong to any test
COMMENT_CHARACTERS_MIN: Final = 12
#: Where a recorded text is a sentence of AWS's own, which has to be the same.
SENTENCES: Final = {
    *("cause", "Cause", "message", "Message", "errorMessage", "location", "headers"),
    *("redriveStatusReason", "RedriveStatusReason"),
}

pytestmark = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not here")


# -- the recordings --------------------------------------------------------------------------------


@cache
def cases() -> tuple[dict[str, Any], ...]:
    return tuple(map(json.loads, RECORDINGS.read_text(encoding="utf-8").splitlines()))


@cache
def names_of_tests() -> frozenset[str]:
    """Return the recorded tests' functions and classes, and the parameters that no other
    text uses.
    """
    found: set[str] = set()
    for case in cases():
        found |= set(re.findall(r"::(\w+)", case["id"]))
        parameters = re.findall(r"[A-Za-z]\w+", case["id"].partition("[")[2])
        found |= {word for word in parameters if word.count("_") >= PARAMETER_PARTS_MIN}
    return frozenset(found)


def values(document: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (the field it stands in, text) of every text in the document."""
    match document:
        case dict():
            for key, value in document.items():
                yield from values(value, key)
        case list():
            for value in document:
                yield from values(value, name)
        case str():
            yield name, document
            if document[:1] in {"{", "["}:
                yield from values(_parsed(document), name)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


@cache
def comments() -> frozenset[str]:
    found = {
        text
        for case in cases()
        for step in case["steps"]
        for name, text in values(step.get("params"))
        if name == "Comment" and len(text) >= COMMENT_CHARACTERS_MIN
    }
    # The subject of a quota or a rule may be a single word.
    return frozenset(text for text in found if " " in text or "_" in text)


@cache
def outputs() -> frozenset[str]:
    """Return long texts that executions gave, but for the sentences of AWS among them."""
    return frozenset(
        text
        for case in cases()
        for check in [case.get("expected"), *case["checks"]]
        for name, text in values(_outputs(check))
        if name not in SENTENCES and len(text) >= LITERAL_CHARACTERS_MIN
    )


def _outputs(document: Any) -> Any:
    """Return everything below a field `output` or `result`."""
    match document:
        case dict():
            own = [document[key] for key in ("output", "result", "input") if key in document]
            inner = [_outputs(document[key]) for key in document if key not in SENTENCES]
            return [*own, *inner]
        case list():
            return [_outputs(value) for value in document]
        case _:
            return None


# -- shipped code ----------------------------------------------------------------------------------


def sources() -> list[Path]:
    found = [path for name in SHIPPED for path in sorted((ROOT / name).rglob("*"))]
    return [path for path in found if path.suffix in SUFFIXES and "__pycache__" not in path.parts]


def literals(path: Path) -> set[str]:
    """Return the long texts of a Python module, without its docstrings."""
    if path.suffix != ".py":
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in said and len(node.value) >= LITERAL_CHARACTERS_MIN
    }


def recorded_in(text: str, found: frozenset[str], whole_words: frozenset[str]) -> set[str]:
    """Return which of the recorded texts stand in it; `whole_words` only by themselves."""
    words = set(re.findall(r"\w+", text))
    return {one for one in found if one in text} | (whole_words & words)


def test_no_source_names_a_recorded_test_or_holds_its_texts() -> None:
    names, texts = names_of_tests(), comments() | outputs()
    assert len(names) > 300
    assert len(texts) > 150
    for path in sources():
        assert recorded_in(path.read_text(encoding="utf-8"), texts, names) == set(), path


def test_no_literal_of_a_source_is_part_of_a_recorded_output() -> None:
    everything = "\n".join(outputs())
    for path in sources():
        assert {text for text in literals(path) if text in everything} == set(), path


def test_a_plant_would_be_found() -> None:
    """The scan itself: each kind of thing that it looks for, taken from the recordings."""
    names, texts = names_of_tests(), comments() | outputs()
    for planted in (min(names), min(comments()), max(outputs())):
        assert recorded_in(f"if x == {planted}:\n    pass\n", texts, names)
