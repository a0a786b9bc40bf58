"""A machine as graphs: one per level, its edges with what they assign and what holds on them.

A level is the machine itself, a branch or an item processor. A line that is cancelled goes on in a
second copy of the undo's states, because no handler sees a cancellation: from the undo's end it
goes further outwards, or on behind the block whose time is over, and nowhere else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from holdfast.asl.documents import Language, config_of, language_of, processor_of
from holdfast.asl.program import Json
from holdfast.proofs.expressions import Comparison, facts_of, tree_of

StateJson = Mapping[str, Any]
_ENDS: Final = frozenset({"Succeed", "Fail"})


class Node(NamedTuple):
    state: str
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """`kind`: "next", "rule", "default", "catch", "undo" or "deadline"."""

    source: Node
    target: Node
    kind: str
    assign: Mapping[str, Json]
    facts: tuple[Comparison | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrier:
    """`attempts_max` retries; the n-th waits `interval x rate^n` seconds, at most the cap."""

    errors: tuple[str, ...]
    attempts_max: int
    interval_seconds: float
    rate: float
    delay_seconds_max: float | None

    @classmethod
    def of(cls, written: StateJson) -> Retrier:
        return cls(
            errors=tuple(written.get("ErrorEquals", ())),
            attempts_max=written.get("MaxAttempts", 3),
            interval_seconds=written.get("IntervalSeconds", 1),
            rate=written.get("BackoffRate", 2.0),
            delay_seconds_max=written.get("MaxDelaySeconds"),
        )


@dataclass(frozen=True)
class Level:
    """`around` is the level and state that this one is in; None for the machine."""

    path: str
    start: str
    states: Mapping[str, StateJson]
    language: Language
    extension: Mapping[str, Any]
    around: tuple[Level, str] | None = None
    inner: dict[str, list[Level]] = field(default_factory=lambda: defaultdict(list))

    def language_at(self, name: str) -> Language:
        return language_of(self.states[name], self.language)

    def location(self, name: str) -> str:
        return f"{self.path}/States/{name}"

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        return tuple(_edges(self))

    @cached_property
    def outgoing(self) -> Mapping[Node, tuple[Edge, ...]]:
        found: dict[Node, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            found[edge.source].append(edge)
        return {node: tuple(edges) for node, edges in found.items()}

    def assigned(self) -> Mapping[str, list[tuple[Edge, Json]]]:
        """Every assignment of this level by the variable's name."""
        found: dict[str, list[tuple[Edge, Json]]] = defaultdict(list)
        for edge in [*self.edges, *self.leaving]:
            for name, value in edge.assign.items():
                found[name].append((edge, value))
        return found

    @cached_property
    def leaving(self) -> tuple[Edge, ...]:
        """The ends of states that end the level: they may assign, for nobody to read."""
        return tuple(
            Edge(Node(name), Node(name), "end", _assign(state))
            for name, state in self.states.items()
            if state.get("End")
        )


def levels_of(document: StateJson) -> list[Level]:
    """Outer levels first. The document has validated."""
    extension = document.get("Holdfast", {})
    return list(_levels(document, "", language_of(document, "JSONPath"), extension, None))


def _levels(
    machine: StateJson,
    path: str,
    language: Language,
    extension: StateJson,
    around: tuple[Level, str] | None,
) -> Iterator[Level]:
    level = Level(path, machine["StartAt"], machine["States"], language, extension, around)
    if around is not None:
        around[0].inner[around[1]].append(level)
    yield level
    for name, state in level.states.items():
        place = level.location(name)
        for number, branch in enumerate(state.get("Branches", ())):
            yield from _levels(
                branch, f"{place}/Branches[{number}]", language, extension, (level, name)
            )
        processor = processor_of(state)
        if processor:
            key = "ItemProcessor" if "ItemProcessor" in state else "Iterator"
            yield from _levels(processor, f"{place}/{key}", language, extension, (level, name))


def is_distributed(state: StateJson) -> bool:
    return state["Type"] == "Map" and config_of(state).get("Mode") == "DISTRIBUTED"


def is_end(state: StateJson) -> bool:
    return state["Type"] in _ENDS or bool(state.get("End"))


# -- edges -----------------------------------------------------------------------------------------


def _assign(holder: StateJson) -> Mapping[str, Json]:
    """Names without the `.$` by which JSONPath marks what is evaluated."""
    written = holder.get("Assign")
    if not isinstance(written, dict):
        return {}
    return {name.removesuffix(".$"): value for name, value in written.items()}


def _edges(level: Level) -> Iterator[Edge]:
    for name in level.states:
        yield from _edges_of(level, Node(name))
    yield from _cancelling(level)


def _edges_of(level: Level, node: Node) -> Iterator[Edge]:
    state = level.states[node.state]

    def target(name: str) -> Node:
        return Node(name, node.is_cancelled)

    if state["Type"] == "Choice":
        yield from _choices(state, node)
    elif "Next" in state:
        yield Edge(node, target(state["Next"]), "next", _assign(state))
    for catcher in _used(state.get("Catch", ())):
        yield Edge(node, target(catcher["Next"]), "catch", _assign(catcher))


def _used(catchers: Iterable[StateJson]) -> Iterator[StateJson]:
    seen: set[str] = set()
    for catcher in catchers:
        if not is_shadowed(catcher["ErrorEquals"], seen):
            yield catcher
        seen.update(catcher["ErrorEquals"])


def is_shadowed(errors: Iterable[str], seen: set[str]) -> bool:
    """Whether earlier entries have taken every one of the errors, or nobody handles it."""
    return "States.ALL" in seen or all(
        error in seen or error == "States.Runtime" for error in errors
    )


def _choices(state: StateJson, node: Node) -> Iterator[Edge]:
    """A rule is asked only when those before it are false; after one that is always true, none."""
    before: list[Comparison | str] = []
    for rule in state["Choices"]:
        condition = rule.get("Condition")
        if condition in (False, "{% false %}"):
            continue
        target = Node(rule["Next"], node.is_cancelled)
        tree = tree_of(condition)
        holds = (*before, *facts_of(tree, is_true=True))
        yield Edge(node, target, "rule", _assign(rule), holds)
        if condition in (True, "{% true %}"):
            return
        before += facts_of(tree, is_true=False)
    if "Default" in state:
        target = Node(state["Default"], node.is_cancelled)
        yield Edge(node, target, "default", _assign(state), tuple(before))


def _cancelling(level: Level) -> Iterator[Edge]:
    """Into undos, through a copy of their states, and out of them."""
    undos = [undo for undo in level.extension.get("Undo", ()) if undo["Begin"] in level.states]
    blocks = [due for due in level.extension.get("Deadlines", ()) if due["Begin"] in level.states]
    for undo in undos:
        inside = set(undo["States"])
        own = own_states(level, undo)
        begin = Node(undo["Begin"], is_cancelled=True)
        for name in inside & level.states.keys():
            yield Edge(Node(name), begin, "undo", _assign(undo))
        for name in own - {undo["End"]}:
            yield from _edges_of(level, Node(name, is_cancelled=True))
        end = Node(undo["End"], is_cancelled=True)
        for outer in undos:
            if outer is not undo and undo["End"] in outer["States"]:
                target = Node(outer["Begin"], is_cancelled=True)
                yield Edge(end, target, "undo", _assign(outer))
        for block in blocks:
            if "Next" in block and undo["Begin"] in block["States"]:
                yield Edge(end, Node(block["Next"]), "deadline", _assign(block))
    for block in blocks:
        for name in {block["Begin"], *block["States"]} & level.states.keys():
            if "Next" in block:
                yield Edge(Node(name), Node(block["Next"]), "deadline", _assign(block))


def own_states(level: Level, undo: StateJson, *, with_catches: bool = True) -> set[str]:
    """The states from an undo's Begin up to its End, with or without where a Catch leads."""
    found, pending = set[str](), [undo["Begin"]]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        if name != undo["End"]:
            pending += [
                edge.target.state
                for edge in _edges_of(level, Node(name))
                if with_catches or edge.kind != "catch"
            ]
    return found


def is_shielded_at(level: Level, name: str) -> bool:
    """Whether neither a time-out nor a deadline ends the state: shielded, or a part of an undo."""
    undos = [undo for undo in level.extension.get("Undo", ()) if undo["Begin"] in level.states]
    return any(name in part for part in level.extension.get("Shielded", ())) or any(
        name != undo["End"] and name in own_states(level, undo, with_catches=False)
        for undo in undos
    )


def reachable(level: Level, start: Iterable[Node]) -> set[Node]:
    found: set[Node] = set()
    pending = list(start)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [edge.target for edge in level.outgoing.get(node, ())]
    return found
