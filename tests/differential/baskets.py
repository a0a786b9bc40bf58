"""More material of generated programs: models that workflows change in place, with methods, and an
error that makes its text.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import BaseModel, Field

from holdfast import TaskError, task
from tests.differential.shop import Line

__all__ = [
    "Basket",
    "Rejected",
    "Tally",
    "Wrapped",
    "asdict",
    "basket_of",
    "copy",
    "keep_in",
    "look",
    "replace",
    "suppress",
]


@dataclass
class Tally:
    count: int = 0
    by_name: dict[str, int] = field(default_factory=dict)
    best: Line | None = None

    def is_empty(self) -> bool:
        return self.count == 0 and not self.by_name


class Basket(BaseModel):
    status: str = "new"
    lines: list[Line] = []
    notes: dict[str, int] = {}
    groups: dict[str, list[int]] = {}
    best: Line | None = None
    tally: Tally = Tally()

    @property
    def size(self) -> int:
        return len(self.lines)

    def total(self) -> int:
        return sum(line.qty for line in self.lines) + self.size

    def largest(self) -> int:
        found = 0
        for line in self.lines:
            if line.qty > found:
                found = line.qty
        return found

    def first_line(self) -> Line | None:
        return self.lines[0] if self.lines else None

    def skus(self) -> list[str]:
        return [line.sku for line in self.lines]

    def tags(self) -> list[str]:
        return self.lines[0].tags if self.lines else []

    def itself(self) -> Basket:
        return self

    def put(self, line: Line, scale: int = 1) -> int:
        """Changes its object, and reads it after."""
        self.lines.append(line)
        for name in sorted(self.notes):
            self.notes[name] *= scale
        self.status += line.sku
        return self.size

    @staticmethod
    def label(number: int) -> str:
        return f"n{number}" if number > 0 else "none"


class Wrapped(BaseModel):
    what: Any
    number: int = Field(default=3, ge=5)


class Rejected(TaskError):  # noqa: N818
    reason: str
    number: int
    place: str | None = None

    def __init__(self, reason: str, number: int = 7) -> None:
        self.reason = reason
        super().__init__(f"rejected: {self.reason} {number}")
        self.number = number + 1


@task
def basket_of(number: int) -> Basket:
    raise NotImplementedError


STEP = 3


def keep_in(items: list[int], one: int) -> int:
    """Changes its argument, by a helper, too."""
    number = len(items) - STEP
    if one == 1:
        return number
    push(items, one * STEP)
    for item in [item for item in items if item > one]:
        push(items, item)
    return number


def push(found: list[int], number: int) -> None:
    found.append(number)
    found.sort()


@task
def look(what: Any) -> int:
    raise NotImplementedError
