"""Random machines with every extension in one another, as the compiler lays them out.

Each part names its states anew. A step that is taken back stands before the part that its undo
covers; an error in that part leads to the undo, and from its end to the next one around it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.builders import Machine, call, machine, wait_for

SECONDS_MAX = 100
_DEPTH_MAX = 4
_ALL = ["States.ALL"]


@dataclass
class Level:
    """The states of one line. `handler`: where an error goes, None: to whoever opened the line."""

    states: dict[str, Machine] = field(default_factory=dict)
    handler: str | None = None


@dataclass
class Generator:
    """`machine()` gives one. `called` are the workflows that its tasks may call."""

    random: Random
    called: tuple[str, ...] = ()
    undo: list[Machine] = field(default_factory=list)
    deadlines: list[Machine] = field(default_factory=list)
    shielded: list[list[str]] = field(default_factory=list)
    count: int = 0

    def machine(self) -> Machine:
        level = Level()
        start = self._parts(level, 0, self._end(level))
        states = {start: level.states[start], **level.states}
        extension = {"Undo": self.undo, "Deadlines": self.deadlines, "Shielded": self.shielded}
        top: dict[str, Any] = {"Holdfast": {name: one for name, one in extension.items() if one}}
        if self.random.random() < 0.2:
            top["TimeoutSeconds"] = self.random.randint(1, 3 * SECONDS_MAX)
        return machine(states, **top)

    # -- parts: each adds its states to the level, and gives the name of the first -----------------

    def _parts(self, level: Level, depth: int, target: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            target = self._part(level, depth, target)
        return target

    def _part(self, level: Level, depth: int, target: str) -> str:
        simple: list[Callable[[Level, str], str]] = [self._task, self._task, self._pass, self._wait]
        if depth >= _DEPTH_MAX or self.random.random() < 0.3:
            return self.random.choice(simple)(level, target)
        nested = [
            self._undone,
            self._undone,
            self._shield,
            self._block,
            self._branches,
            self._items,
        ]
        return self.random.choice(nested)(level, depth, target)

    def _task(self, level: Level, target: str) -> str:
        name = self._name("task")
        chance = self.random.random()
        if chance < 0.2:
            body = wait_for("paid", target, TimeoutSeconds=SECONDS_MAX)
        elif chance < 0.4 and self.called:
            workflow = self.random.choice(self.called)
            body = call("work", target, Resource=f"holdfast:workflow:{workflow}", Arguments={})
        else:
            body = call("work", target)
        return self._add(level, name, body | self._handled(level))

    def _pass(self, level: Level, target: str) -> str:
        return self._add(level, self._name("pass"), {"Type": "Pass", "Next": target})

    def _wait(self, level: Level, target: str) -> str:
        seconds = self.random.randint(1, SECONDS_MAX)
        return self._add(
            level, self._name("wait"), {"Type": "Wait", "Seconds": seconds, "Next": target}
        )

    def _end(self, level: Level) -> str:
        return self._add(level, self._name("end"), {"Type": "Succeed"})

    def _undone(self, level: Level, depth: int, target: str) -> str:
        """with compensating(undo): …, begun by a step."""
        begin, end = self._name("undo"), self._name("undone")
        outer = level.handler
        after: Machine = {"Type": "Fail", "Error": "Again"}
        if outer is not None:
            after = {"Type": "Pass", "Next": outer}
        catch = [{"ErrorEquals": _ALL, "Next": end}]
        inside = self._inside(level, depth, target, handler=begin)
        self._add(level, begin, call("undo", end, Catch=catch))
        self._add(level, end, after)
        self.undo.append({"States": inside[1], "Begin": begin, "End": end})
        return self._task(level, inside[0])

    def _shield(self, level: Level, depth: int, target: str) -> str:
        start, names = self._inside(level, depth, target, handler=level.handler)
        self.shielded.append(names)
        return start

    def _block(self, level: Level, depth: int, target: str) -> str:
        begin, late = self._name("block"), self._task(level, target)
        start, names = self._inside(level, depth, target, handler=level.handler)
        self._add(level, begin, {"Type": "Pass", "Next": start})
        seconds = self.random.randint(1, SECONDS_MAX)
        self.deadlines.append({"Begin": begin, "Seconds": seconds, "States": names, "Next": late})
        return begin

    def _branches(self, level: Level, depth: int, target: str) -> str:
        count = self.random.randint(1, 3)
        body: Machine = {"Type": "Parallel", "Branches": [self._lane(depth) for _ in range(count)]}
        extension = self._quorum(count)
        if self.random.random() < 0.3:
            extension["After"] = [
                [other for other in range(lane) if self.random.random() < 0.5]
                for lane in range(count)
            ]
        return self._lanes(level, body, extension, target)

    def _items(self, level: Level, depth: int, target: str) -> str:
        count = self.random.randint(0, 4)
        body: Machine = {
            "Type": "Map",
            "Items": list(range(count)),
            "ItemProcessor": self._lane(depth),
            "MaxConcurrency": self.random.randint(1, 3),
        }
        if self.random.random() < 0.2:
            body["ItemSelector"] = "{% $states.context.Map.Item.Index = 1 ? $error('no') : 1 %}"
        return self._lanes(level, body, self._quorum(max(count, 1)), target)

    def _lanes(self, level: Level, body: Machine, extension: Machine, target: str) -> str:
        if extension:
            body["Holdfast"] = extension
        if self.random.random() < 0.3:
            body["Retry"] = [{"ErrorEquals": _ALL, "MaxAttempts": 1, "IntervalSeconds": 2}]
        return self._add(
            level, self._name("lanes"), {**body, "Next": target} | self._handled(level)
        )

    # -- what they are made of ---------------------------------------------------------------------

    def _inside(
        self, level: Level, depth: int, target: str, *, handler: str | None
    ) -> tuple[str, list[str]]:
        """-> the first state of the parts in another one, and the names of all on this line."""
        inner = Level(level.states, handler)
        before = set(level.states)
        start = self._parts(inner, depth + 1, target)
        return start, [name for name in level.states if name not in before]

    def _lane(self, depth: int) -> Machine:
        level = Level()
        start = self._parts(level, depth + 1, self._end(level))
        return {"StartAt": start, "States": level.states}

    def _quorum(self, count: int) -> Machine:
        extension: Machine = {}
        if self.random.random() < 0.4:
            extension["Needed"] = self.random.randint(1, count)
        if self.random.random() < 0.4:
            extension["Tolerated"] = self.random.randint(0, count)
        return extension

    def _handled(self, level: Level) -> Machine:
        if level.handler is None:
            return {}
        return {"Catch": [{"ErrorEquals": _ALL, "Next": level.handler}]}

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind} {self.count}"

    def _add(self, level: Level, name: str, state: Machine) -> str:
        level.states[name] = state
        return name
