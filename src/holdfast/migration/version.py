"""One definition, as a migration reads it: its states by name, the steps before and after each, and
the variables that may be read later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from holdfast.asl.documents import StateJson
from holdfast.asl.resources import POLL, POOL, runs_in_container
from holdfast.migration.model import Source
from holdfast.proofs.expressions import nodes, reads, tree_of
from holdfast.proofs.graph import GraphEdge, GraphNode, MachineLevel, levels_of, reachable

TASK: Final = "holdfast:task:"
_PURE: Final = "holdfast:pure:"
_BRANCHES: Final = ("Branches", "ItemProcessor", "Iterator")
#: The fields of a state that are evaluated before its wait begins.
_BEFORE_THE_WAIT: Final = (
    "Arguments",
    "Items",
    "Seconds",
    "Timestamp",
    "Parameters",
    "ItemSelector",
)


@dataclass(frozen=True, slots=True)
class Place:
    """A state, and the level (machine, branch or item processor) that it belongs to."""

    name: str
    level: MachineLevel

    @property
    def state(self) -> StateJson:
        return self.level.states[self.name]

    @property
    def owner(self) -> str | None:
        """Return the name of the state that contains the branch of this one; None at the top
        level.
        """
        return None if self.level.around is None else self.level.around[1]

    @property
    def branch(self) -> int:
        """Return the number of the branch in which this state is."""
        if self.level.around is None:
            return 0
        outer, name = self.level.around
        return outer.inner[name].index(self.level)


class Version:
    """One definition. `source_map` is the compiler's map."""

    def __init__(self, hash: str, asl: Any, source_map: Mapping[str, Any]) -> None:  # noqa: A002
        self.hash = hash
        self.asl = asl
        self.source_map = source_map
        self.levels = levels_of(asl)
        self.places = {name: Place(name, level) for level in self.levels for name in level.states}

    @property
    def extension(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.asl.get("Holdfast", {})
        return found

    @property
    def hints(self) -> Mapping[str, Any]:
        """Return the author's hints for the previous version: `renamed`, `tasks`,
        `assumed_done`.
        """
        found: Mapping[str, Any] = self.source_map.get("migration", {})
        return found

    def source(self, name: str) -> Source:
        row = self.source_map.get("sources", {}).get(name)
        return Source() if row is None else Source(row["file"], row["line"], row["text"])

    @cached_property
    def variables(self) -> frozenset[str]:
        """Return every variable that some state assigns."""
        return frozenset().union(*(level.assigned() for level in self.levels))

    # -- steps -------------------------------------------------------------------------------------

    def steps_in(self, name: str) -> Iterator[str]:
        """Yield the steps with an effect in the state: the state itself, or those in its
        branches.
        """
        place = self.places[name]
        resource = str(place.state.get("Resource", ""))
        if resource and not resource.startswith(_PURE):
            yield name
        for level in place.level.inner.get(name, ()):
            for inner in level.states:
                yield from self.steps_in(inner)

    def before(self, name: str) -> frozenset[str]:
        """Return the steps that may have run when the state is entered for the first time."""
        place = self.places[name]
        start = GraphNode(place.level.start)
        nodes = self._reached(place.level, [start], without=name) if start.state != name else set()
        leading = self._leading(place.level, name)
        found = {step for one in nodes & leading for step in self.steps_in(one)}
        if place.owner is not None:
            found |= self.before(place.owner)
        return frozenset(found)

    def after(self, name: str) -> frozenset[str]:
        """Return the steps that may run after the state."""
        place = self.places[name]
        nodes = self._reached(place.level, self._next(place.level, name))
        found = {step for one in nodes for step in self.steps_in(one)}
        if place.owner is not None:
            found |= self.after(place.owner)
        return frozenset(found)

    def _next(self, level: MachineLevel, name: str) -> Iterable[GraphNode]:
        return [edge.target for edge in level.outgoing.get(GraphNode(name), ()) if _is_flow(edge)]

    def _reached(
        self, level: MachineLevel, start: Iterable[GraphNode], without: str | None = None
    ) -> set[str]:
        found: set[str] = set()
        pending = [node.state for node in start]
        while pending:
            name = pending.pop()
            if name not in found and name != without:
                found.add(name)
                pending += [node.state for node in self._next(level, name)]
        return found

    def _leading(self, level: MachineLevel, name: str) -> set[str]:
        """Return the states of the level that may lead to the state."""
        before: dict[str, list[str]] = {}
        for edge in filter(_is_flow, level.edges):
            before.setdefault(edge.target.state, []).append(edge.source.state)
        found: set[str] = set()
        pending = list(before.get(name, ()))
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += before.get(one, ())
        return found

    # -- variables ---------------------------------------------------------------------------------

    def read_from(self, name: str, *, from_the_start: bool) -> Mapping[str, str]:
        """Return the variables that may be read, before they are assigned, from the wait of the
        state on; for each of them a state that reads it. `from_the_start`: the state is entered
        again.
        """
        place = self.places[name]
        skipped = () if from_the_start or place.state.get("Retry") else _BEFORE_THE_WAIT
        needed: dict[str, str] = {}
        node = GraphNode(name)
        for found in self._own_reads(place, skipped):
            needed.setdefault(found, name)
        for edge in place.level.outgoing.get(node, ()):
            for found, reader in self._read_at_entry(place.level).get(edge.target, {}).items():
                if found not in edge.assign:
                    needed.setdefault(found, reader)
        return needed

    def _own_reads(self, place: Place, skipped: Iterable[str] = ()) -> frozenset[str]:
        """Return the variables that the state itself reads, whichever way it is left."""
        left_out = {*skipped, *_BRANCHES}
        own = {key: value for key, value in place.state.items() if key not in left_out}
        found = set(reads(own))
        for level in place.level.inner.get(place.name, ()):
            found |= self._read_at_entry(level)[GraphNode(level.start)].keys()
        return frozenset(found)

    def _read_at_entry(self, level: MachineLevel) -> Mapping[GraphNode, dict[str, str]]:
        """Return, for each node of the level, the variables that may be read from its entry on."""
        if level.path not in self._live:
            self._live[level.path] = self._solved(level)
        return self._live[level.path]

    @cached_property
    def _live(self) -> dict[str, Mapping[GraphNode, dict[str, str]]]:
        return {}

    def _solved(self, level: MachineLevel) -> Mapping[GraphNode, dict[str, str]]:
        nodes = reachable(level, [GraphNode(level.start), *map(GraphNode, level.states)])
        found = {
            node: dict.fromkeys(self._own_reads(Place(node.state, level)), node.state)
            for node in nodes
        }
        changed = True
        while changed:
            changed = False
            for edge in level.edges:
                if edge.source not in found or edge.target not in found:
                    continue
                for name, reader in found[edge.target].items():
                    if name not in edge.assign and name not in found[edge.source]:
                        found[edge.source][name] = reader
                        changed = True
        return found

    # -- scopes ------------------------------------------------------------------------------------

    def undo_scopes(self, name: str) -> list[Mapping[str, Any]]:
        """Return the undo scopes around the state in its own level, innermost first."""
        return [undo for undo in self.extension.get("Undo", ()) if name in undo["States"]]

    def undo_list(self, undo: Mapping[str, Any]) -> str | None:
        """Return the variable in which the undo scope stores its registered steps."""
        found = reads(undo.get("Assign", {})) & self.variables
        return next(iter(sorted(found)), None)

    def undone_by(self, undo: Mapping[str, Any], level: MachineLevel) -> frozenset[str]:
        """Return the undo steps of the scope, as the list of registered steps names them: the
        rules compare their names.
        """
        if undo["Begin"] not in level.states:
            return frozenset()
        rules = level.states[undo["Begin"]].get("Choices", ())
        trees = [tree for rule in rules if (tree := tree_of(rule.get("Condition"))) is not None]
        return frozenset(
            part.value for tree in trees for part in nodes(tree) if part.type == "string"
        )

    def deadlines(self, name: str) -> list[int]:
        """Return the numbers of the time limits around the state in its own level, innermost
        first.
        """
        rows = enumerate(self.extension.get("Deadlines", ()))
        return [number for number, due in rows if name in due["States"]]


def _is_flow(edge: GraphEdge) -> bool:
    """Return True for an edge that a line can take while it is not cancelled."""
    return not (edge.source.is_cancelled or edge.target.is_cancelled)


def task_of(state: StateJson) -> str:
    """Return the name of the function that a Task calls; "" for another state."""
    resource = str(state.get("Resource", ""))
    if resource.startswith(POOL) or runs_in_container(resource):
        return str(state["Arguments"]["task"])
    return named_task(resource)[1]


def named_task(resource: str) -> tuple[str, str]:
    """Split a task's resource into its prefix and the name of its function; "" for a resource
    without a function.
    """
    found = next((one for one in (TASK, POLL) if resource.startswith(one)), "")
    return found, resource.removeprefix(found) if found else ""
