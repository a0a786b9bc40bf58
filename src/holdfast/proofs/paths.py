"""The heaviest path through a level, in which a bounded loop counts as often as its bound allows.

A loop is bounded by edges that a counter allows only so many times (`rounds`). These edges are
removed, the rest of the loop is examined in the same way, and its weight counts once for each
round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from holdfast.proofs.amounts import ZERO, Bound, most, plus, times
from holdfast.proofs.graph import GraphEdge, GraphNode

#: The edges of a loop that a counter bounds, and how often these edges can be passed each time that
#: the loop is entered.
LoopRounds: TypeAlias = "tuple[frozenset[GraphEdge], Bound] | None"


RoundsOf: TypeAlias = Callable[[frozenset[GraphNode], Sequence[GraphEdge]], LoopRounds]
Weights: TypeAlias = Mapping[GraphNode, Bound]
#: The weight of a loop for which no number of rounds is known.
OfEndless: TypeAlias = Callable[[frozenset[GraphNode]], Bound]


def _unknown(_nodes: frozenset[GraphNode]) -> Bound:
    return None


@dataclass(frozen=True)
class _Part:
    """A strongly connected part of the graph. `entries` are the nodes at which a path can enter
    it.
    """

    nodes: frozenset[GraphNode]
    entries: frozenset[GraphNode]
    edges: tuple[GraphEdge, ...]
    after: frozenset[int]
    rounds_of: RoundsOf

    @cached_property
    def turns(self) -> tuple[Bound, Paths, Paths] | None:
        """Return the number of rounds, the paths of the first round, and those of later ones; None
        without a bound.
        """
        rounds = self.rounds_of(self.nodes, self.edges)
        if rounds is None:
            return None
        bounded, count = rounds
        rest = tuple(edge for edge in self.edges if edge not in bounded)
        again = frozenset(edge.target for edge in bounded)
        first, others = (Paths(starts, rest, self.rounds_of) for starts in (self.entries, again))
        return count, first, others

    def weight(self, weights: Weights, of_endless: OfEndless) -> Bound:
        if not self.edges:
            (node,) = self.nodes
            return weights[node]
        if all(weights[node] == ZERO for node in self.nodes):
            return ZERO
        if self.turns is None:
            return of_endless(self.nodes)
        count, first, others = self.turns
        later = times(count, others.heaviest(weights, of_endless))
        return plus(first.heaviest(weights, of_endless), later)


@dataclass(frozen=True)
class Paths:
    """All paths that begin at one of `starts`. Their weight can be computed for several kinds of
    weights.
    """

    starts: frozenset[GraphNode]
    edges: tuple[GraphEdge, ...]
    rounds_of: RoundsOf

    def heaviest(self, weights: Weights, of_endless: OfEndless = _unknown) -> Bound:
        best: list[Bound] = []
        # Each part comes after the parts to which it leads, so their weights are known here.
        for part in self._parts:
            own = part.weight(weights, of_endless)
            best.append(plus(own, most(best[number] for number in part.after)))
        return most(
            best[number] for number, part in enumerate(self._parts) if part.nodes & self.starts
        )

    @cached_property
    def _parts(self) -> list[_Part]:
        parts = components(sorted(self.starts), self.edges)
        part_of = {node: number for number, part in enumerate(parts) for node in part}
        inside: dict[int, list[GraphEdge]] = defaultdict(list)
        after: dict[int, set[int]] = defaultdict(set)
        entries: dict[int, set[GraphNode]] = defaultdict(set)
        for start in self.starts:
            entries[part_of[start]].add(start)
        for edge in self.edges:
            if edge.source not in part_of:
                continue
            source, target = part_of[edge.source], part_of[edge.target]
            if source == target:
                inside[source].append(edge)
            else:
                after[source].add(target)
                entries[target].add(edge.target)
        return [
            _Part(
                nodes=part,
                entries=frozenset(entries[number]),
                edges=tuple(inside[number]),
                after=frozenset(after[number]),
                rounds_of=self.rounds_of,
            )
            for number, part in enumerate(parts)
        ]


def components(
    starts: Iterable[GraphNode], edges: Sequence[GraphEdge]
) -> list[frozenset[GraphNode]]:
    """Return the strongly connected parts of the reachable graph, each after those to which it
    leads (Tarjan).

    It uses no recursion, because a definition may have thousands of states in a row.
    """
    targets: dict[GraphNode, list[GraphNode]] = {}
    for edge in edges:
        targets.setdefault(edge.source, []).append(edge.target)
    order: dict[GraphNode, int] = {}
    low: dict[GraphNode, int] = {}
    stack: list[GraphNode] = []
    stacked: set[GraphNode] = set()
    found: list[frozenset[GraphNode]] = []
    for start in starts:
        if start in order:
            continue
        calls = [(start, iter(targets.get(start, ())))]
        order[start] = low[start] = len(order)
        stack.append(start)
        stacked.add(start)
        while calls:
            node, rest = calls[-1]
            following = next(rest, None)
            if following is None:
                calls.pop()
                if calls:
                    above = calls[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found.append(frozenset(stack[at:]))
                    stacked.difference_update(stack[at:])
                    del stack[at:]
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                stacked.add(following)
                calls.append((following, iter(targets.get(following, ()))))
            elif following in stacked:
                low[node] = min(low[node], order[following])
    return found
