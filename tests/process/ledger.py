"""The tasks that have begun, independent of the logs: each process records one as it begins it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Begun:
    """`attempt`: execution, entry and number in one text. `at`: when, in seconds."""

    attempt: str
    pid: int
    at: float

    @classmethod
    def of(cls, line: str) -> Self:
        attempt, pid, at = line.rsplit(" ", 2)
        return cls(attempt, int(pid), float(at))


def attempt_of(run: str, entry: int, attempt: int) -> str:
    return f"{run} {entry} {attempt}"


def by_attempt(ledger: Iterable[Begun]) -> dict[str, list[Begun]]:
    """Return of each attempt its beginnings, the earliest first."""
    found: dict[str, list[Begun]] = {}
    for begun in sorted(ledger, key=lambda begun: begun.at):
        found.setdefault(begun.attempt, []).append(begun)
    return found
