"""The data of a migration: the position of an execution, and the result of the proof.

    Position   the states in which an execution is, by its lines. Equal positions have one proof
    Obstacle   one reason why a position must not move, with the lines of the source
    Plan       how a position moves, for the core
    Verdict    the obstacles of a position, or its plan

A position contains names and kinds, and no values. So executions can be counted by position, and a
report of positions may leave production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

#: What a line of control waits for. "running": a worker has the attempt, or takes it soon. "retry":
#: the attempt waits for its next try. "limit": the attempt waits at a limit. "again": a block of
#: branches waits for its next try. "start": the execution has not begun.
Standing: TypeAlias = Literal[
    "running", "retry", "limit", "event", "ask", "token", "answer", "timer", "lanes", "again"
]


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One line of control: the main line, a branch or an iteration.

    * `lane`: the number of the branch; None for the main line and for an iteration of a Map.
    * `variables`: the names that the line can read.
    * `deadlines`: the numbers of the blocks whose time limit is running.
    * `undo`: the tasks that are registered for an undo.
    * `ended`, `waiting`: of a block of branches, the branches that have ended and those that have
      not begun.
    """

    state: str
    standing: Standing
    lane: int | None = None
    count: int = 0
    ended: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    variables: tuple[str, ...] = ()
    deadlines: tuple[int, ...] = ()
    undo: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value not in (None, (), 0)}


@dataclass(frozen=True, slots=True)
class Position:
    """The lines of an execution. The last field says why it cannot be moved now, whatever the
    definitions are; "" for most.
    """

    definition: str
    lines: tuple[Line, ...]
    unready: str = ""

    def to_json(self) -> dict[str, Any]:
        lines = [line.to_json() for line in self.lines]
        return {"definition": self.definition, "lines": lines, "unready": self.unready}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Position:
        lines = tuple(_line(row) for row in document["lines"])
        return cls(document["definition"], lines, document["unready"])


def _line(row: Mapping[str, Any]) -> Line:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    }
    return Line(**fields)


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the author's code. `text` is the line. It is empty for a definition without a
    map.
    """

    file: str = ""
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line, "text": self.text}


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason, as a sentence. `state` is the state in the old definition. `old` and `new` are the
    places in the two sources that the reason is about.
    """

    state: str
    why: str
    old: Source = Source()
    new: Source = Source()

    def to_json(self) -> dict[str, Any]:
        places = {"old": self.old, "new": self.new}
        shown = {name: place.to_json() for name, place in places.items() if place.file}
        return {"state": self.state, "why": self.why, **shown}

    def __str__(self) -> str:
        places = [
            f"{name} {place}"
            for name, place in (("old", self.old), ("new", self.new))
            if place.file
        ]
        return f"{self.why} ({', '.join(places)})" if places else self.why


@dataclass(frozen=True, slots=True)
class Plan:
    """How the core changes the state of the execution.

    * `states`: the states that lines are in, old name to new name.
    * `variables`, `tasks`: those that were renamed.
    * `deadlines`: the numbers of blocks; None: the time limit does not exist any longer.
    * `retries`: for each new state that a line is in, the numbers of its retry rules.
    * `undo`: the new variables with registered undo steps, whose tasks are renamed.
    """

    states: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    deadlines: Mapping[int, int | None] = field(default_factory=dict)
    retries: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    undo: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan in the form of the event `Migrated`, without empty parts."""
        deadlines = [[number, to] for number, to in sorted(self.deadlines.items())]
        retries = {
            name: [list(pair) for pair in sorted(of.items())] for name, of in self.retries.items()
        }
        found = {
            "states": dict(self.states),
            "variables": dict(self.variables),
            "tasks": dict(self.tasks),
            "deadlines": deadlines,
            "retries": retries,
            "undo": list(self.undo),
        }
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the proof. `plan` is None when there are obstacles."""

    obstacles: Sequence[Obstacle]
    plan: Plan | None

    @property
    def may_move(self) -> bool:
        return self.plan is not None
