"""A machine as graphs, one for each level. An edge has the variables that it assigns and its
condition.

A level is the machine itself, a branch or an item processor. A cancelled line of control runs
through a second copy of the undo's states, because no handler can catch a cancellation. From the
end of the undo it runs the next outer undo, or continues after the block whose time is over, and
cannot leave otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from holdfast.asl import error_names
from holdfast.asl.documents import Language, StateJson, config_of, language_of, processor_of
from holdfast.asl.program import Json
from holdfast.proofs.expressions import LimitComparison, facts_of, tree_of

_ENDS: Final = frozenset({"Succeed", "Fail"})


class GraphNode(NamedTuple):
    state: str
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GraphEdge:
    """An edge between states. `kind`: "next", "rule", "default", "catch", "undo" or "deadline"."""

    source: GraphNode
    target: GraphNode
    kind: str
    assign: Mapping[str, Json]
    facts: tuple[LimitComparison | str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryBound:
    """The bound of a retrier: `attempts_max` retries. The n-th waits `interval x rate^n` seconds,
    at most the maximum delay; or `delays[n]` seconds, and the last of them after that.
    """

    errors: tuple[str, ...]
    attempts_max: int
    interval_seconds: float
    rate: float
    delay_seconds_max: float | None
    delays: tuple[float, ...] = ()

    @classmethod
    def of(cls, written: StateJson) -> RetryBound:
        return cls(
            errors=tuple(written.get("ErrorEquals", ())),
            attempts_max=written.get("MaxAttempts", 3),
            interval_seconds=written.get("IntervalSeconds", 1),
            rate=written.get("BackoffRate", 2.0),
            delay_seconds_max=written.get("MaxDelaySeconds"),
            delays=tuple(written.get("Holdfast", {}).get("Delays", ())),
        )


@dataclass(frozen=True)
class MachineLevel:
    """One level of a machine. `around` is the level and state that contain it; None for the
    outermost. `extension` is that of the whole machine, with states of all levels.
    """

    path: str
    start: str
    states: Mapping[str, StateJson]
    language: Language
    extension: Mapping[str, Any]
    around: tuple[MachineLevel, str] | None = None
    inner: dict[str, list[MachineLevel]] = field(default_factory=lambda: defaultdict(list))

    def language_at(self, name: str) -> Language:
        return language_of(self.states[name], self.language)

    def location(self, name: str) -> str:
        return f"{self.path}/States/{name}"

    @cached_property
    def undos(self) -> tuple[Mapping[str, Any], ...]:
        """Return the undos of this level, whose Begin and End are states of this level. The states
        in which they apply may be those of inner levels, too.
        """
        return tuple(one for one in self.extension.get("Undo", ()) if one["Begin"] in self.states)

    @cached_property
    def edges(self) -> tuple[GraphEdge, ...]:
        return tuple(_edges(self))

    @cached_property
    def outgoing(self) -> Mapping[GraphNode, tuple[GraphEdge, ...]]:
        found: dict[GraphNode, list[GraphEdge]] = defaultdict(list)
        for edge in self.edges:
            found[edge.source].append(edge)
        return {node: tuple(edges) for node, edges in found.items()}

    def assigned(self) -> Mapping[str, list[tuple[GraphEdge, Json]]]:
        """Return every assignment in this level, by the variable's name."""
        found: dict[str, list[tuple[GraphEdge, Json]]] = defaultdict(list)
        for edge in [*self.edges, *self.leaving]:
            for name, value in edge.assign.items():
                found[name].append((edge, value))
        return found

    @cached_property
    def leaving(self) -> tuple[GraphEdge, ...]:
        """Return the edges at which the level ends. They may assign variables that are never
        read.
        """
        return tuple(
            GraphEdge(GraphNode(name), GraphNode(name), "end", _assign(state))
            for name, state in self.states.items()
            if state.get("End")
        )


def levels_of(document: StateJson) -> list[MachineLevel]:
    """Return the levels of a validated document, outer levels first."""
    extension = document.get("Holdfast", {})
    return list(_levels(document, "", language_of(document, "JSONPath"), extension, None))


def _levels(
    machine: StateJson,
    path: str,
    language: Language,
    extension: StateJson,
    around: tuple[MachineLevel, str] | None,
) -> Iterator[MachineLevel]:
    level = MachineLevel(path, machine["StartAt"], machine["States"], language, extension, around)
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
    """Return the assignments, with names without the `.$` that JSONPath adds to the names of
    evaluated values.
    """
    written = holder.get("Assign")
    if not isinstance(written, dict):
        return {}
    return {name.removesuffix(".$"): value for name, value in written.items()}


def _edges(level: MachineLevel) -> Iterator[GraphEdge]:
    for name in level.states:
        yield from _edges_of(level, GraphNode(name))
    yield from _cancelling(level)


def _edges_of(level: MachineLevel, node: GraphNode) -> Iterator[GraphEdge]:
    state = level.states[node.state]

    def target(name: str) -> GraphNode:
        return GraphNode(name, node.is_cancelled)

    if state["Type"] == "Choice":
        yield from _choices(state, node)
    elif "Next" in state:
        yield GraphEdge(node, target(state["Next"]), "next", _assign(state))
    for catcher in _used(state.get("Catch", ())):
        yield GraphEdge(node, target(catcher["Next"]), "catch", _assign(catcher))


def _used(catchers: Iterable[StateJson]) -> Iterator[StateJson]:
    seen: set[str] = set()
    for catcher in catchers:
        if not is_shadowed(catcher["ErrorEquals"], seen):
            yield catcher
        seen.update(catcher["ErrorEquals"])


def is_shadowed(errors: Iterable[str], seen: set[str]) -> bool:
    """Return True when earlier entries catch each of the errors, or no entry can catch it."""
    return error_names.ALL in seen or all(
        error in seen or error == error_names.RUNTIME for error in errors
    )


def _choices(state: StateJson, node: GraphNode) -> Iterator[GraphEdge]:
    """Yield the edges of a Choice. A rule is evaluated only when all earlier rules are false; rules
    after one that is always true are never evaluated.
    """
    before: list[LimitComparison | str] = []
    for rule in state["Choices"]:
        condition = rule.get("Condition")
        if condition in (False, "{% false %}"):
            continue
        target = GraphNode(rule["Next"], node.is_cancelled)
        tree = tree_of(condition)
        holds = (*before, *facts_of(tree, is_true=True))
        yield GraphEdge(node, target, "rule", _assign(rule), holds)
        if condition in (True, "{% true %}"):
            return
        before += facts_of(tree, is_true=False)
    if "Default" in state:
        target = GraphNode(state["Default"], node.is_cancelled)
        yield GraphEdge(node, target, "default", _assign(state), tuple(before))


def _cancelling(level: MachineLevel) -> Iterator[GraphEdge]:
    """Yield the edges into undos, through a copy of their states, and out of them."""
    blocks = [due for due in level.extension.get("Deadlines", ()) if due["Begin"] in level.states]
    for undo in level.undos:
        inside = set(undo["States"])
        own = own_states(level, undo)
        begin = GraphNode(undo["Begin"], is_cancelled=True)
        for name in inside & level.states.keys():
            yield GraphEdge(GraphNode(name), begin, "undo", _assign(undo))
        for name in own - {undo["End"]}:
            yield from _edges_of(level, GraphNode(name, is_cancelled=True))
        end = GraphNode(undo["End"], is_cancelled=True)
        for outer in level.undos:
            if outer is not undo and undo["End"] in outer["States"]:
                target = GraphNode(outer["Begin"], is_cancelled=True)
                yield GraphEdge(end, target, "undo", _assign(outer))
        for block in blocks:
            if "Next" in block and undo["Begin"] in block["States"]:
                yield GraphEdge(end, GraphNode(block["Next"]), "deadline", _assign(block))
    for block in blocks:
        for name in {block["Begin"], *block["States"]} & level.states.keys():
            if "Next" in block:
                yield GraphEdge(
                    GraphNode(name), GraphNode(block["Next"]), "deadline", _assign(block)
                )


def own_states(level: MachineLevel, undo: StateJson, *, with_catches: bool = True) -> set[str]:
    """Return the states from the Begin of an undo to its End, with or without those to which a
    Catch leads.
    """
    found, pending = set[str](), [undo["Begin"]]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        if name != undo["End"]:
            pending += [
                edge.target.state
                for edge in _edges_of(level, GraphNode(name))
                if with_catches or edge.kind != "catch"
            ]
    return found


def is_shielded_at(level: MachineLevel, name: str) -> bool:
    """Return True when neither a time-out nor a deadline can end the state: it is shielded, or part
    of an undo.
    """
    return any(name in part for part in level.extension.get("Shielded", ())) or any(
        name != undo["End"] and name in own_states(level, undo, with_catches=False)
        for undo in level.undos
    )


def reachable(level: MachineLevel, start: Iterable[GraphNode]) -> set[GraphNode]:
    found: set[GraphNode] = set()
    pending = list(start)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [edge.target for edge in level.outgoing.get(node, ())]
    return found
