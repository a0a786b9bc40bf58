"""Every loop of a machine, with its bound if one is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.proofs.amounts import Bound
from holdfast.proofs.bounds import WAITS, kind_of
from holdfast.proofs.counters import Counters
from holdfast.proofs.expressions import whole
from holdfast.proofs.findings import ProofFinding
from holdfast.proofs.graph import GraphEdge, GraphNode, MachineLevel, reachable
from holdfast.proofs.paths import components


@dataclass(frozen=True, slots=True)
class BoundedLoop:
    """A loop. With `rounds` None no bound is known. `waits`: every round contains a wait."""

    level: MachineLevel
    state: str
    rounds: Bound
    waits: bool


def loops_of(levels: Sequence[MachineLevel]) -> list[BoundedLoop]:
    """Return the loops, outer ones first. The loops of an undo are found in the copy that runs
    after errors.
    """
    return [loop for level in levels for loop in _level(level)]


def _level(level: MachineLevel) -> Iterator[BoundedLoop]:
    start = GraphNode(level.start)
    reached = reachable(level, [start])
    edges = [edge for edge in level.edges if edge.source in reached and not edge.source[1]]
    yield from _within(level, Counters(level), {start}, edges)


def _within(
    level: MachineLevel, counters: Counters, starts: set[GraphNode], edges: Sequence[GraphEdge]
) -> Iterator[BoundedLoop]:
    for part in reversed(components(sorted(starts), edges)):
        inside = [edge for edge in edges if edge.source in part and edge.target in part]
        if not inside:
            continue
        rounds = counters.rounds_of(part, inside)
        order = list(level.states)
        if rounds is None:
            first = min(part, key=lambda node: order.index(node.state)).state
            yield BoundedLoop(level, first, None, waits=_always_waits(level, counters, part, inside))
            continue
        bounded, count = rounds
        head = min((edge.source.state for edge in bounded), key=order.index)
        yield BoundedLoop(level, head, count, waits=_always_waits(level, counters, part, inside))
        rest = [edge for edge in inside if edge not in bounded]
        yield from _within(level, counters, set(part), rest)


def _always_waits(
    level: MachineLevel,
    counters: Counters,
    part: frozenset[GraphNode],
    edges: Sequence[GraphEdge],
) -> bool:
    """Return True when every cycle contains a state that waits, or ends after a known number of
    rounds: a `for` inside a loop that waits does not keep the loop from waiting.
    """
    moving = {node for node in part if not is_wait(level, node.state)}
    rest = [edge for edge in edges if edge.source in moving and edge.target in moving]
    return all(_ends(counters, circle, rest) for circle in components(sorted(moving), rest))


def _ends(counters: Counters, part: frozenset[GraphNode], edges: Sequence[GraphEdge]) -> bool:
    """Return True when every cycle in this part of the graph has a bound."""
    inside = [edge for edge in edges if edge.source in part and edge.target in part]
    if not inside:
        return True
    rounds = counters.rounds_of(part, inside)
    if rounds is None:
        return False
    bounded, _ = rounds
    rest = [edge for edge in inside if edge not in bounded]
    return all(_ends(counters, circle, rest) for circle in components(sorted(part), rest))


def is_wait(level: MachineLevel, name: str) -> bool:
    """Return True when the state always takes time. A computed sleep may take zero seconds."""
    state = level.states[name]
    if state["Type"] == "Wait":
        return (whole(state.get("Seconds")) or 0) > 0
    return state["Type"] == "Task" and kind_of(state) in WAITS


def find_loops(loops: Sequence[BoundedLoop]) -> Iterator[ProofFinding]:
    """Yield the findings HF096 and HF097."""
    for loop in loops:
        if loop.rounds is not None:
            continue
        place = loop.level.location(loop.state)
        if loop.waits:
            yield ProofFinding(
                "HF097",
                "note",
                loop.state,
                place,
                f'no bound is known for the loop at "{loop.state}"; each round waits',
                "count the rounds: for attempt in range(10)",
            )
        else:
            yield ProofFinding(
                "HF096",
                "warning",
                loop.state,
                place,
                f'no bound is known for the loop at "{loop.state}", and a round need not wait',
                "count the rounds: for attempt in range(10); or sleep(minutes(1)) in each",
            )
