"""The findings of proofs: severity, place, and a possible correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

#: Every code with its meaning. docs/explanation/proofs.md shows this table.
CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "HF090": "a state that no run can reach",
        "HF091": "a state from which no end can be reached",
        "HF092": "a Choice without a Default whose rules may all be false",
        "HF093": "a variable that may have no value where it is read",
        "HF094": "a variable that nothing assigns",
        "HF095": "a variable that a branch assigns and that has a value around it",
        "HF096": "a loop for which no bound is known, and which never waits",
        "HF097": "a loop for which no bound is known, with a wait in it",
        "HF098": "a wait that nothing bounds in time",
        "HF099": "tasks without a timeout",
        "HF0A0": "a retry that may repeat a side effect",
        "HF0A1": "a side effect that has neither an undo nor an idempotency key",
        "HF0A2": "a step that may fail between an action and its undo",
        "HF0A3": "an undo that is registered before its action",
        "HF0A4": "a Retry or Catch that can never be used",
        "HF0A5": "a history that may be longer than Step Functions allows",
    }
)

_NAMED_MAX: Final = 6  # the most states that one message names

Severity: TypeAlias = Literal["error", "warning", "note"]
#: The location of a state in the definition, such as "/States/A/Branches[0]/States/B".
Location: TypeAlias = str


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """One finding. `state` is the state's name, `location` its place in the definition.

    `help_in_json` replaces `help` for a state machine that no Python was compiled to.
    """

    code: str
    severity: Severity
    state: str
    location: Location
    message: str
    help: str
    help_in_json: str = ""


def shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(f'"{name}"' for name in names[:_NAMED_MAX]) + more


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the source. Lines and columns count from 1. `text` is the line, if known; `width`
    is that of the mark under it.
    """

    file: str
    line: int
    column: int
    text: str = ""
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding and its place in a file."""

    finding: ProofFinding
    place: SourceLocation

    def render(self) -> str:
        """Return the place and message, the line of source, a mark under it, and the help."""
        found, place = self.finding, self.place
        lines = [f"{place}: {found.severity}[{found.code}]: {found.message}"]
        margin = f"{place.line:5} | "
        blank = " " * (len(margin) - 2)
        if place.text:
            lines.append(f"{margin}{place.text}")
            lines.append(f"{blank}| {' ' * (place.column - 1)}{'^' * place.width}")
        if found.help:
            lines.append(f"{blank}= help: {found.help}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        found, place = self.finding, self.place
        return {
            "file": place.file,
            "line": place.line,
            "column": place.column,
            "severity": found.severity.upper(),
            "code": found.code,
            "message": found.message,
            "location": found.location,
            "help": found.help,
        }
