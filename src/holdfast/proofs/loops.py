"""Every loop of a machine, with its bound if one is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.asl.documents import StateJson
from holdfast.proofs.amounts import Bound
from holdfast.proofs.bounds import WAITS, block_seconds, kind_of
from holdfast.proofs.counters import Counters
from holdfast.proofs.expressions import whole
from holdfast.proofs.findings import ProofFinding, Severity
from holdfast.proofs.graph import GraphEdge, GraphNode, MachineLevel, reachable
from holdfast.proofs.paths import components

#: The test with which the compiler leaves one item out of a list (`expressions/removals.py`).
_TAKING: Final = "$_place != "
_VARIABLE: Final = re.compile(r"\$\w+")
_COUNT: Final = "count the rounds: for attempt in range(10)"


@dataclass(frozen=True, slots=True)
class BoundedLoop:
    """A loop. With `rounds` None no bound is known. `waits`: every round contains a wait.
    `sleeps`: every round contains a wait or a sleep for a computed time, which may be zero.
    `takes`: the variable of a list from which every round takes an item; "" without one. `moves`:
    every round calls a task with something that the loop has changed, as a loop of an agent does.
    `seconds`: the deadline of the block around a loop without `rounds`; None without one.
    """

    level: MachineLevel
    state: str
    rounds: Bound
    waits: bool
    sleeps: bool = False
    takes: str = ""
    moves: bool = False
    seconds: int | None = None


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
            waits = _always_waits(level, counters, part, inside)
            sleeps = _always_waits(level, counters, part, inside, with_computed=True)
            takes = _always_taken(counters, part, inside)
            moves = _always_moves(counters, part, inside)
            seconds = block_seconds(level, frozenset(node.state for node in part))
            yield BoundedLoop(level, first, None, waits, sleeps, takes, moves, seconds)
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
    *,
    with_computed: bool = False,
) -> bool:
    """Return True when every cycle contains a state that waits, or ends after a known number of
    rounds: a `for` inside a loop that waits does not keep the loop from waiting.
    """
    moving = {node for node in part if not is_wait(level, node.state, with_computed=with_computed)}
    rest = [edge for edge in edges if edge.source in moving and edge.target in moving]
    return _ends(counters, frozenset(moving), rest)


def _always_taken(
    counters: Counters, part: frozenset[GraphNode], edges: Sequence[GraphEdge]
) -> str:
    """Return the variable from which every round takes an item, as `queue.pop(0)` does."""
    takers: dict[str, set[GraphNode]] = {}
    for node in part:
        for name, value in (counters.level.states[node.state].get("Assign") or {}).items():
            if isinstance(value, str) and f"(${name}, function(" in value and _TAKING in value:
                takers.setdefault(name, set()).add(node)
    return next(
        (name for name, found in takers.items() if _ends(counters, part - found, edges)), ""
    )


def _always_moves(
    counters: Counters, part: frozenset[GraphNode], edges: Sequence[GraphEdge]
) -> bool:
    """Return True when every round calls a task whose arguments read a variable that the loop
    assigns: it does not ask for the same thing again and again.
    """
    changed = {f"${name}" for edge in edges for name in edge.assign}
    calls = {node for node in part if _reads_one(counters.level.states[node.state], changed)}
    return _ends(counters, part - calls, edges)


def _reads_one(state: StateJson, variables: set[str]) -> bool:
    if state["Type"] != "Task" or kind_of(state) == "pure":
        return False
    return not variables.isdisjoint(_VARIABLE.findall(json.dumps(state.get("Arguments"))))


def _ends(counters: Counters, nodes: frozenset[GraphNode], edges: Sequence[GraphEdge]) -> bool:
    """Return True when every loop among the nodes has a bound."""
    rest = [edge for edge in edges if edge.source in nodes and edge.target in nodes]
    for part in components(sorted(nodes), rest):
        inside = [edge for edge in rest if edge.source in part and edge.target in part]
        rounds = counters.rounds_of(part, inside) if inside else None
        if inside and rounds is None:
            return False
        if rounds is not None:
            left = [edge for edge in inside if edge not in rounds[0]]
            if not _ends(counters, part, left):
                return False
    return True


def is_wait(level: MachineLevel, name: str, *, with_computed: bool) -> bool:
    """Return True when the state always takes time.

    A computed sleep may take zero seconds, so it counts only `with_computed`. A Parallel counts
    when so many of its branches wait that the needed number of results includes one of theirs.
    """
    state = level.states[name]
    match state["Type"]:
        case "Wait":
            seconds = state.get("Seconds")
            return with_computed if whole(seconds) is None else bool(whole(seconds))
        case "Parallel":
            branches = level.inner[name]
            needed = _ends_needed(state.get("Holdfast", {}), len(branches))
            waiting = sum(_waits_on_all_ways(one, with_computed=with_computed) for one in branches)
            return waiting > len(branches) - needed
        case kind:
            return kind == "Task" and kind_of(state) in WAITS


def _ends_needed(extension: StateJson, count: int) -> int:
    """Return how many branches of a Parallel must end, at least, before the flow goes on. Where
    errors are results, so many failures as are not tolerated are enough.
    """
    needed = whole(extension.get("Needed", count)) or 0
    if not extension.get("ReturnErrors", False):
        return needed
    tolerated = whole(extension.get("Tolerated", 0)) or 0
    return min(needed, tolerated + 1)


def _waits_on_all_ways(level: MachineLevel, *, with_computed: bool) -> bool:
    """Return True when no way from the start of a branch to its end is without a wait."""
    unread, seen = [level.start], set[str]()
    while unread:
        name = unread.pop()
        if name in seen or is_wait(level, name, with_computed=with_computed):
            continue
        seen.add(name)
        following = [edge.target.state for edge in level.outgoing.get(GraphNode(name), ())]
        if not following:
            return False
        unread.extend(following)
    return True


def find_loops(loops: Sequence[BoundedLoop], *, may_run_for_ever: bool) -> Iterator[ProofFinding]:
    """Yield the findings HF096 and HF097. A workflow that may run for ever may wait in an endless
    loop.
    """
    for loop in loops:
        if loop.rounds is None and not (loop.waits and may_run_for_ever):
            yield _unbounded(loop)


def _unbounded(loop: BoundedLoop) -> ProofFinding:
    found, mend = f'no bound is known for the loop at "{loop.state}"', _COUNT
    severity: Severity = "note"
    if loop.waits:
        found += "; each round waits"
    elif loop.takes:
        found += f"; each round takes an item from `{loop.takes}`"
    elif loop.sleeps:
        found += "; each round sleeps as computed"
    elif loop.moves:
        found += "; each round calls a task with what has changed"
    else:
        severity, found = "warning", f"{found}, and a round need not wait"
        mend = f"{_COUNT}; or sleep(minutes(1)) in each"
    code = "HF097" if loop.waits else "HF096"
    return ProofFinding(code, severity, loop.state, loop.level.location(loop.state), found, mend)
