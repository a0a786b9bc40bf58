"""`holdfast check FILE.json`: the problems that AWS would report for a state machine, with line and
column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.asl.json_text import JsonDepthError, JsonTextError, positions
from holdfast.asl.validation.validate import DefinitionProblem
from holdfast.errors import RequestError
from holdfast.stepfunctions.actions import problems_of

_PLACE: Final = re.compile(r"; line: (\d+), column: (\d+)\]\Z")
#: A hint for each kind of problem, by the beginning of its code and message.
_FIXES: Final[Mapping[str, str]] = {
    "DUPLICATE_STATE_NAME": "rename one: names are unique in the whole definition, branches too",
    "INVALID_STATE_NAME": "shorten the name",
    "MISSING_END_STATE": 'give a state "End": true, or go on to a Succeed or a Fail',
    "MISSING_TRANSITION_TARGET: Missing": "name a state of the same level",
    "MISSING_TRANSITION_TARGET: State": "let another state go on to it, or remove it",
    "UNSUPPORTED_JSONATA_EXPRESSION: Reference": "the state's input is $states.input",
    "SCHEMA_VALIDATION_FAILED: Field 'workflow_id'": (
        "a graph of steps is compiled first: holdfast compile FILE.json MODULE"
    ),
    "SCHEMA_VALIDATION_FAILED: The QueryLanguage": (
        'use the fields of one language, or set "QueryLanguage" for this state'
    ),
    "SCHEMA_VALIDATION_FAILED: This object should have only one": "add one of them",
    "SCHEMA_VALIDATION_FAILED: There should only be one": "keep one of them",
    "SCHEMA_VALIDATION_FAILED: States.ALL": "make it the last entry, with no other error in it",
    "SCHEMA_VALIDATION_FAILED: String does not match": "write it as 2026-01-31T13:00:00Z",
    "SCHEMA_VALIDATION_FAILED: Value is not a valid resource": (
        "arn:aws:states:::SERVICE:ACTION, or the ARN of a function or of an activity"
    ),
}


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One problem of a file. Line and column (from 1) are those of the problem's location, or of
    the text around it when a field is missing.
    """

    file: str
    line: int
    column: int
    diagnostic: DefinitionProblem

    @property
    def help(self) -> str:
        """Return the hint; "" when there is none."""
        said = f"{self.diagnostic.code}: {self.diagnostic.message}"
        return next((fix for start, fix in _FIXES.items() if said.startswith(start)), "")

    def __str__(self) -> str:
        found = self.diagnostic
        place = "" if found.location is None or "[Source" in found.location else found.location
        message = found.message.partition("\n at [Source")[0].partition(" (start marker at")[0]
        kind = found.severity.lower()
        line = f"{self.file}:{self.line}:{self.column}: {kind}[{found.code}]: {place}: {message}"
        line = line.replace(": : ", ": ")
        return f"{line}\n  = help: {self.help}" if self.help else line

    def to_json(self) -> dict[str, Any]:
        found = self.diagnostic
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": found.severity,
            "code": found.code,
            "message": found.message,
            "location": found.location,
            "help": self.help,
        }


def check_file(path: Path) -> tuple[FileProblem, ...]:
    """Return the problems of a file. Raises RequestError HF282 for a file that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RequestError("HF282", f"{path}: {reason}") from None
    found = problems_of(text, warns=True)
    places = _places(text) if found else {}
    return tuple(FileProblem(str(path), *_position(one, places), one) for one in found)


def is_error(found: FileProblem) -> bool:
    return found.diagnostic.severity == "ERROR"


def _places(text: str) -> Mapping[str, tuple[int, int]]:
    try:
        return positions(text)
    except (JsonTextError, JsonDepthError):
        return {}


def _position(found: DefinitionProblem, places: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    location = found.location or "/"
    written = _PLACE.search(location)
    if written is not None:
        return int(written[1]), int(written[2])
    return next((places[place] for place in _around(location) if place in places), (1, 1))


def _around(location: str) -> Iterator[str]:
    """Yield the location, then each location around it: a missing field has no position of its
    own.
    """
    while location:
        yield location
        location = location[: max(location.rfind("/"), location.rfind("["))]
    yield "/"
