"""Finds for each state of the old definition the same state in the new one.

The compiler makes the names of states from the source, and numbers equal ones: `ask for Decision
(2)`. If a new question is inserted before an old one, it gets the old one's number. So where
several states have the same name, the name alone proves nothing, and the contents decide:

1. a hint of the author: `renamed=` of the workflow or of a task;

2. the name, if both definitions have it once;

3. for states with the same name: the contents, if one state in each definition has them; or the
order, if both definitions have the same states in the same order;

4. only the contents, for a block of branches whose name has changed together with a variable's.

Any other state has no counterpart. A state with several possible counterparts is ambiguous, and the
author must name one.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.asl.documents import StateJson
from holdfast.asl.template import is_expression
from holdfast.migration.version import Version, named_task

_NUMBERED: Final = re.compile(r"(.+?)(?: \((\d+)\))?", re.DOTALL)
_CONTENTS: Final = ("Type", "Resource", "Arguments", "Items", "Seconds", "Timestamp", "Output")
_UNDO: Final = "undo: "
_LANES: Final = frozenset({"Parallel", "Map"})


@dataclass(frozen=True, slots=True)
class Renames:
    """The author's hints, old name to new name. `names` are those of variables and states."""

    names: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    assumed_done: frozenset[str] = frozenset()

    @classmethod
    def between(cls, old: Version, new: Version) -> Renames:
        """Return the hints for a move from `old` to `new`. The hints of both count; those of `old`
        in reverse, for a move back.
        """
        ahead, back = new.hints, old.hints
        return cls(
            {**_inverted(back.get("renamed", {})), **ahead.get("renamed", {})},
            {**_inverted(back.get("tasks", {})), **ahead.get("tasks", {})},
            frozenset(ahead.get("assumed_done", ())),
        )

    def variables(self, old: Version, new: Version) -> dict[str, str]:
        return {
            name: to
            for name, to in self.names.items()
            if name in old.variables and to in new.variables
        }


def _inverted(names: Mapping[str, str]) -> dict[str, str]:
    return {to: name for name, to in names.items()}


@dataclass(frozen=True, slots=True)
class Matching:
    """`states` maps old names to new names. `ambiguous` gives for an old name its possible
    counterparts.
    """

    states: Mapping[str, str]
    ambiguous: Mapping[str, tuple[str, ...]]


def match(old: Version, new: Version, renames: Renames) -> Matching:
    variables = renames.variables(old, new)
    states = {
        name: to for name, to in renames.names.items() if name in old.places and to in new.places
    }
    ambiguous: dict[str, tuple[str, ...]] = {}
    contents = _Contents(variables, renames.tasks)
    before = _groups(set(old.places) - states.keys(), renames.tasks)
    after = _groups(set(new.places) - set(states.values()), {})
    for stem, names in before.items():
        found = after.get(stem, [])
        pairs, unclear = _paired(old, new, contents, names, found)
        states |= pairs
        ambiguous |= {name: tuple(found) for name in unclear}
    states |= _by_contents(old, new, contents, states)
    return Matching(states, ambiguous)


def _groups(names: Iterable[str], tasks: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names by their stem, each group sorted by the number at the end."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        matched = _NUMBERED.fullmatch(name)
        assert matched is not None
        stem, number = matched[1], int(matched[2] or 1)
        task = stem.removeprefix(_UNDO)
        prefix = stem[: len(stem) - len(task)]
        found[prefix + tasks.get(task, task)].append((number, name))
    return {stem: [name for _, name in sorted(group)] for stem, group in sorted(found.items())}


def _paired(
    old: Version, new: Version, contents: _Contents, names: list[str], found: list[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the pairs of two groups, and the old names without a certain counterpart."""
    if not found:
        return {}, []
    if len(names) == len(found) == 1:
        return {names[0]: found[0]}, []
    texts = [contents.of_old(old, name) for name in names]
    others = [contents.of_new(new, name) for name in found]
    if texts == others:
        return dict(zip(names, found, strict=True)), []
    pairs = {
        name: found[others.index(text)]
        for name, text in zip(names, texts, strict=True)
        if texts.count(text) == 1 and others.count(text) == 1
    }
    return pairs, [name for name in names if name not in pairs]


def _by_contents(
    old: Version, new: Version, contents: _Contents, states: Mapping[str, str]
) -> dict[str, str]:
    """Return the pairs of blocks of branches that have no counterpart by name."""
    taken = set(states.values())
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for name, place in old.places.items():
        if name not in states and place.state["Type"] in _LANES:
            before[contents.of_old(old, name)].append(name)
    for name, place in new.places.items():
        if name not in taken and place.state["Type"] in _LANES:
            after[contents.of_new(new, name)].append(name)
    return {
        names[0]: after[text][0]
        for text, names in before.items()
        if len(names) == 1 and len(after.get(text, ())) == 1
    }


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of states as comparable text. Those of the old definition are written with the
    new names.
    """

    variables: Mapping[str, str]
    tasks: Mapping[str, str]

    def of_old(self, old: Version, name: str) -> str:
        return _text(self.renamed(_contents(old, name)))

    def of_new(self, new: Version, name: str) -> str:
        return _text(_contents(new, name))

    def renamed(self, value: Any) -> Any:
        match value:
            case str() if is_expression(value):
                for name, to in self.variables.items():
                    value = re.sub(rf"\${re.escape(name)}(?!\w)", f"$\0{to}", value)
                return value.replace("$\0", "$")
            case str() if named_task(value)[0]:
                kind, task = named_task(value)
                return kind + self.tasks.get(task, task)
            case dict():
                return {key: self.renamed(item) for key, item in value.items()}
            case list():
                return [self.renamed(item) for item in value]
            case _:
                return value


def contents_differ(
    pair: tuple[StateJson, StateJson],
    fields: Iterable[str],
    renames: Renames,
    variables: Mapping[str, str],
) -> bool:
    """Return True when a field of the old state, written with the new names, differs from the new
    one.
    """
    old, new = pair
    contents = _Contents(variables, renames.tasks)
    return any(contents.renamed(old.get(name)) != new.get(name) for name in fields)


def branch_text(
    version: Version, owner: str, branch: int, renames: Renames, variables: Mapping[str, str]
) -> str:
    """Return a whole branch as text. For the old definition pass the renames; for the new one
    none.
    """
    level = version.places[owner].level.inner[owner][branch]
    found = {"StartAt": level.start, "States": {**level.states}}
    return _text(_Contents(variables, renames.tasks).renamed(found))


def _contents(version: Version, name: str) -> dict[str, Any]:
    place = version.places[name]
    own = {key: place.state[key] for key in _CONTENTS if key in place.state}
    inner = [
        [_contents(version, one) for one in level.states]
        for level in place.level.inner.get(name, ())
    ]
    return {**own, "inner": inner} if inner else own


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
