"""Every choice of a schedule, from one place, written down.

Points are asked by name: the nth question at a point has an *ordinary* answer (no fault, 0), and
whatever else was answered is on the tape. A drawn tape answers from a seed; a written one gives
the answers that stand on it, and the ordinary one everywhere else.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol, TypeAlias

#: Point, which question there (from 0), and the answer.
DrawnChoice: TypeAlias = tuple[str, int, str | int]


class Menu:
    """Kinds of fault that fit one point, with the rate of each in one schedule."""

    def __init__(self, rates: Mapping[str, float]) -> None:
        self.kinds = tuple(kind for kind, rate in rates.items() if rate > 0)
        self.bounds = tuple(accumulate(rates[kind] for kind in self.kinds))
        self.total = self.bounds[-1] if self.bounds else 0.0

    def at(self, draw: float) -> str:
        return self.kinds[bisect_right(self.bounds, draw)]


class Tape(Protocol):
    """The source of choices. `taken` holds all choices that were not ordinary."""

    taken: list[DrawnChoice]

    @property
    def is_spent(self) -> bool:
        """True when every further choice is the ordinary one."""

    def fault(self, point: str, menu: Menu) -> str | None:
        """Return a kind of the menu, or None: all goes well here."""

    def number(self, point: str, below: int) -> int:
        """Return from 0 up to, and without, `below`."""

    def stop(self) -> None:
        """End the faults; the order of events stays open."""

    def go_on(self) -> None:
        """Begin the faults."""


@dataclass
class DrawnTape:
    """A tape with choices from a seed."""

    seed: int
    taken: list[DrawnChoice] = field(default_factory=list)
    _asked: Counter[str] = field(default_factory=Counter)
    _has_faults: bool = True

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  # repeatable, not secret

    @property
    def is_spent(self) -> bool:
        return False

    def fault(self, point: str, menu: Menu) -> str | None:
        asked = self._asked[point]
        self._asked[point] = asked + 1
        draw = self._random.random()
        if draw >= menu.total or not self._has_faults:
            return None
        kind = menu.at(draw)
        self.taken.append((point, asked, kind))
        return kind

    def number(self, point: str, below: int) -> int:
        asked = self._asked[point]
        self._asked[point] = asked + 1
        answer = int(self._random.random() * below)
        if answer:
            self.taken.append((point, asked, answer))
        return answer

    def stop(self) -> None:
        self._has_faults = False

    def go_on(self) -> None:
        self._has_faults = True


@dataclass
class WrittenTape:
    """A tape with given choices. `asked` counts the questions at each point."""

    choices: Iterable[DrawnChoice]
    taken: list[DrawnChoice] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    _answers: dict[tuple[str, int], str | int] = field(init=False)
    _has_faults: bool = True

    def __post_init__(self) -> None:
        self._answers = {(point, nth): answer for point, nth, answer in self.choices}

    @property
    def is_spent(self) -> bool:
        return len(self.taken) == len(self._answers)

    def fault(self, point: str, menu: Menu) -> str | None:
        del menu  # also what its rates never give
        answer = self._answer(point)
        return str(answer) if answer is not None and self._has_faults else None

    def number(self, point: str, below: int) -> int:
        answer = self._answer(point)
        return min(int(answer), below - 1) if isinstance(answer, int) else 0

    def _answer(self, point: str) -> str | int | None:
        asked = self.asked[point]
        self.asked[point] = asked + 1
        answer = self._answers.get((point, asked))
        if answer is not None:
            self.taken.append((point, asked, answer))
        return answer

    def stop(self) -> None:
        self._has_faults = False

    def go_on(self) -> None:
        self._has_faults = True
