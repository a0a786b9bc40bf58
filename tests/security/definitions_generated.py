"""Definitions with one random change, and random programs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from holdfast.asl.json_text import read_json
from holdfast.asl.parsing.parse import DefinitionError, parse_definition
from holdfast.asl.validation.validate import diagnose
from tests.refusals.candidates import Candidate
from tests.refusals.runs import KINDS
from tests.refusals.trial import outcome_of
from tests.security.cases import Outcome, generator
from tests.security.definitions_kit import nested
from tests.unit import bad_input

_FILES: Final = Path(__file__).parents[2] / "statemachines"
#: Bytes that JSON has rules about, and some that it has none about.
_PIECES: Final = ['"', "{", "}", "[", "]", ",", ":", "\\", "\\u", "\x00", "\ufeff", "NaN", "1e999"]
_PIECES_MAX: Final = 3
#: One of so many mutants is of a whole file of statemachines/, which takes milliseconds.
_FILES_ARE_ONE_IN: Final = 8


@cache
def _valid_files() -> list[Any]:
    found = [json.loads(path.read_text()) for path in sorted(_FILES.glob("*.asl.json"))]
    assert found
    return found


def _valid(draw: Random) -> Any:
    if not draw.randrange(_FILES_ARE_ONE_IN):
        return draw.choice(_valid_files())
    return nested(draw.choice([2, 3, 70])) if draw.random() < 0.05 else bad_input.definition(draw)


def _mutant(draw: Random) -> str:
    text = bad_input.text_of(draw, bad_input.mutated(draw, _valid(draw)))
    if draw.random() < 0.7:
        return text
    for _ in range(draw.randint(1, _PIECES_MAX)):
        start = draw.randrange(len(text) + 1)
        end = start + draw.choice([0, 0, 1, 2, 20])
        text = text[:start] + draw.choice(_PIECES) + text[end:]
    return text


@generator("definitions", full=50_000)
def changed_definition(draw: Random) -> Outcome:
    """Refused with a code and a sentence, or it becomes a program."""
    text = _mutant(draw)
    found = diagnose(text, draw.choice(["STANDARD", "EXPRESS"]))
    assert all(one.code and one.message for one in found)
    if not found:
        assert parse_definition(read_json(text)).states
        return "accepted"
    try:
        parse_definition(json.loads(text))
    except DefinitionError as refused:
        assert refused.problems
    except (ValueError, RecursionError):
        pass  # Not JSON, so no definition is possible
    return "refused"


#: Of tests/refusals; functions of the standard library are no more than so many.
_PROGRAMS: Final = ("grammatical", "mutants")


@cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory()


@cache
def _programs(kind: str) -> tuple[Random, Iterator[Candidate]]:
    """Generate programs. The start of each kind takes long, so there is one of each, with the
    values set here.
    """
    drawn = Random(0)
    return drawn, KINDS[kind](drawn)


@generator("python", full=20_000)
def program_of_python(draw: Random) -> Outcome:
    """Check a program of tests/refusals: refused with a place and a help, or compiled."""
    drawn, programs = _programs(draw.choice(_PROGRAMS))
    drawn.setstate(draw.getstate())
    candidate = next(programs)
    outcome = outcome_of(candidate.text, candidate.known, Path(_folder().name))
    return "accepted" if outcome == "accepted" else "refused"
