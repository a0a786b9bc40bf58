"""The state of drawing one program: its variables, and the allowed jumps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.differential.choices import Choices
from tests.differential.expressions import Expressions

Rows = list[str]
INDENT: Final = "    "


class Drawing(ABC):
    """A statement gives its rows, and whether control comes out at its end."""

    def __init__(self, choices: Choices, counts: Counter[str]) -> None:
        self.choices = choices
        self.counts = counts
        self.expressions = Expressions(choices, counts)
        self._in_loop = False
        #: Inside a `finally` or the `else` of a loop no jump leaves, so the code behind it is
        #: reached.
        self._must_stay = False
        #: Inside a branch only its own variables may be assigned.
        self._assignable: set[str] | None = None
        #: The parts with a rule of their own that the statement is in.
        self._around: list[str] = []

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        self._around.append(part)
        yield
        self._around.pop()

    @abstractmethod
    def statement(self, depth: int) -> tuple[Rows, bool]:
        """With statements inside, `depth` deep."""

    def block(self, depth: int, *, at_most: int = 3) -> tuple[Rows, bool]:
        """Draw statements whose variables are invisible after them."""
        kept = dict(self.expressions.variables)
        rows, falls = self._open_block(depth, at_most)
        self.expressions.variables = kept
        return rows, falls

    def _open_block(self, depth: int, at_most: int = 2) -> tuple[Rows, bool]:
        """Draw statements whose variables are visible after them."""
        rows: Rows = []
        for _ in range(1 + self.choices.below(at_most)):
            made, falls = self.statement(depth)
            rows += [INDENT + row for row in made]
            if not falls:
                return rows, False
        return rows, True

    def e(self, type_: str, depth: int = 2) -> str:
        return self.expressions.draw(type_, depth)

    def name(self, type_: str) -> str:
        return self.expressions.name(type_)

    # -- variables ---------------------------------------------------------------------------------

    def _declare(self, type_: str) -> str:
        name = self.expressions.new_name()
        self._own(name, type_)
        return name

    def _own(self, name: str, type_: str) -> None:
        self.expressions.variables[name] = type_
        if self._assignable is not None:
            self._assignable.add(name)

    def _target(self, type_: str) -> str:
        """A variable to assign: one that is there, or a new one."""
        there = [
            name
            for name in self.expressions.names_of(type_)
            if self._assignable is None or name in self._assignable
        ]
        if there and self.choices.chance(60):
            return self.choices.pick(there)
        return self.expressions.new_name()

    def _assigned(self, type_: str, value: str) -> str:
        name = self._target(type_)
        self._own(name, type_)
        return f"{name} = {value}"
