"""A report of positions, judged against another definition: for dry runs and the deploy check.

The report is the result of `Client.positions`. Saved as a file, it lets CI prove a change before
the deployment. It contains names of steps and variables, definitions and ids, and no values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.migration.model import Line, Obstacle, Position, Source
from holdfast.migration.proof import Migration
from holdfast.migration.version import Version, task_of

_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """The executions at one position. `is_there`: they already have the target's definition.
    `lost`: tasks that they may still call with their present definition, and that the new code does
    not have.
    """

    position: Position
    executions: Sequence[str]
    where: str
    source: Source
    is_there: bool
    obstacles: Sequence[Obstacle]
    lost: Sequence[str] = ()

    @property
    def count(self) -> int:
        return len(self.executions)

    @property
    def may_move(self) -> bool:
        return not self.is_there and not self.obstacles

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "where": self.where,
            "definition": self.position.definition,
            "count": self.count,
            "moves": self.may_move,
            "has_it": self.is_there,
            "obstacles": [one.to_json() for one in self.obstacles],
            "examples": list(self.executions[:_EXAMPLES]),
        }
        if self.source.file:
            found["source"] = self.source.to_json()
        return {**found, "lost_tasks": list(self.lost)} if self.lost else found


def version_in(document: Mapping[str, Any]) -> Version:
    """Return the definition in an answer of `GET /definitions`."""
    return Version(document["hash"], document["asl"], document["map"])


def judge(
    report: Mapping[str, Any], target: Version | None, tasks: Iterable[str] | None = None
) -> list[Standing]:
    """Return the positions, those with the most executions first. `target` is None when the new
    code has no such workflow. `tasks` are all tasks of the new code; None: not known.
    """
    versions = {name: version_in(one) for name, one in report["definitions"].items()}
    migrations: dict[str, Migration] = {}
    grouped: dict[Position, list[str]] = {}
    for row in report["positions"]:
        grouped.setdefault(Position.from_json(row), []).extend(row["executions"])
    known = None if tasks is None else frozenset(tasks)
    found = []
    for position, executions in grouped.items():
        old = versions[position.definition]
        is_there = target is not None and target.hash == old.hash
        obstacles: Sequence[Obstacle] = ()
        if target is None:
            obstacles = [Obstacle("", "the new code has no workflow of this name")]
        elif not is_there:
            if old.hash not in migrations:
                migrations[old.hash] = Migration(old, target)
            obstacles = migrations[old.hash].judge(position).obstacles
        lost = [] if known is None else sorted(_needed(old, position) - known)
        source = old.source(position.lines[0].state)
        found.append(
            Standing(
                position, executions, where(position), source, is_there, tuple(obstacles), lost
            )
        )
    return sorted(found, key=lambda one: (-one.count, one.where))


def where(position: Position) -> str:
    """Return the position as text: the main line, followed by the steps of its branches."""
    main, *others = position.lines
    if not others:
        return _step(main)
    return f"{_step(main)}: {', '.join(dict.fromkeys(map(_step, others)))}"


def _step(line: Line) -> str:
    notes = {"retry": " (waits to be tried again)", "limit": " (waits at a limit)"}
    return f"{line.state}{notes.get(line.standing, '')}"


def _needed(version: Version, position: Position) -> frozenset[str]:
    """Return the tasks that an execution may still call with its present definition."""
    found: set[str] = set()
    for line in position.lines:
        if line.state in version.places:
            steps = {*version.steps_in(line.state), *version.after(line.state)}
            found |= {task_of(version.places[step].state) for step in steps}
            found.update(line.undo)
    return frozenset(found - {""})


def spread(standings: Iterable[Standing], most: int) -> list[str]:
    """Return up to `most` executions that may move, taking one from each position in turn. So a
    trial with a few executions covers all positions.
    """
    queues = [one.executions for one in standings if one.may_move]
    rounds = itertools.zip_longest(*queues)
    found = (run for turn in rounds for run in turn if run is not None)
    return list(itertools.islice(found, most))
