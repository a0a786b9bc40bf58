"""The order of a graph's steps: which steps run one after the other, and which run in parallel.

The problem
-----------
A step may begin when all steps that it depends on have ended, and must not
wait for any other. ASL has sequences of states and Parallel states. Not every graph consists of
these two alone.

Plans
-----
A step is a number, and `graph[n]` holds the steps that step n depends on.

    SingleStep   one step
    Chain        each part begins when the part before it has ended
    Fork         all branches begin together; it ends with the last of them
    Core         branch n begins when the branches `after[n]` have ended

A graph that is made of sequences and forks alone has a plan of chains and forks alone:

    0 ─┬─► 1 ─┬─► 3       arrange([{}, {0}, {0}, {1, 2}])
       └─► 2 ─┘           -> Chain(0, Fork(1, 2), 3)

The smallest graph that is not is an "N": 2 waits for 0, and 3 waits for 0 and 1. It becomes a core:

    0 ─┬───► 2            arrange([{}, {}, {0}, {0, 1}])
       └─┐                -> Core(branches 0, 1, 2, 3; after (), (), (0), (0, 1))
    1 ───┴─► 3

The method
----------
1. `_parts` removes each edge that other edges imply.

2. `_contracted` joins steps of a sequence into one part, and parts with the same edges into a fork.
It repeats this until nothing changes. A part has the number of its first step. That is enough,
because either all steps of a part come before another part, or none does.

3. `_split` divides the rest. Unconnected parts become a fork. A cut where everything before is an
ancestor of everything after becomes a chain. A rest that cannot be divided becomes a core.

JSON readers limit the depth of a document. Forks in forks are therefore limited to 12 levels
(`_NESTING_MAX`), and `_split` may add at most as many. Deeper parts become a core, which is flat.

Without cores
-------------
A core is an extension of ASL (`After`), which AWS Step Functions does
not have. `by_levels` replaces it by a chain of forks. Then a step may wait for steps on which it
does not depend, and each such `FalseWait` is reported. In the "N" above, 2 would wait for 1:

    Chain(Fork(0, 1), Fork(2, 3))          FalseWait(step=2, other=1)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

Plan: TypeAlias = "SingleStep | Chain | Fork | Core"

#: The greatest depth of forks inside forks. A deeper graph becomes a `Core`, which is flat, because
#: readers of JSON limit the depth of a document. No plan is deeper than twice this number.
_NESTING_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class SingleStep:
    """A plan of one step."""

    number: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A sequence: each part begins when the one before it has ended."""

    parts: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Fork:
    """All branches begin together; it ends when the last of them ends."""

    branches: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Core:
    """Branch n begins when the branches `after[n]` have ended; each of those has a smaller
    number.
    """

    branches: tuple[Plan, ...]
    after: tuple[tuple[int, ...], ...]


Graph: TypeAlias = Sequence[frozenset[int]]


def find_cycles(graph: Graph) -> list[tuple[int, ...]]:
    """Return cycles that share no step, each from its lowest number: `(0, 2)` means that 0 waits
    for 2, and 2 for 0.
    """
    left = set(range(len(graph))) - set(_sorted(graph))
    found: list[tuple[int, ...]] = []
    while left:
        path, place = [min(left)], {min(left): 0}
        while (following := min((n for n in graph[path[-1]] if n in left), default=-1)) >= 0:
            if following in place:
                cycle = path[place[following] :]
                start = cycle.index(min(cycle))
                found.append((*cycle[start:], *cycle[:start]))
                left -= set(cycle)
                break
            place[following] = len(path)
            path.append(following)
        else:
            left.discard(path[-1])
    return found


def arrange(graph: Graph) -> Plan:
    """Return the plan of a graph. `graph[n]` are the steps on which step n depends. The graph has
    at least one step and no cycles.
    """
    return _split(_contracted(graph), _NESTING_MAX)


def singles_of(plan: Plan) -> frozenset[int]:
    """Return the steps beside which no other step runs."""
    parts = plan.parts if isinstance(plan, Chain) else (plan,)
    return frozenset(part.number for part in parts if isinstance(part, SingleStep))


def steps_of(plan: Plan) -> Iterator[int]:
    """Yield the steps in an order in which they could run one by one."""
    match plan:
        case SingleStep(number):
            yield number
        case Chain(parts) | Fork(parts) | Core(parts):
            for part in parts:
                yield from steps_of(part)


def first_of(plan: Plan) -> tuple[int, ...]:
    """Return the steps that begin when `plan` begins."""
    match plan:
        case SingleStep(number):
            return (number,)
        case Chain(parts):
            return first_of(parts[0])
        case Fork(branches):
            return tuple(number for branch in branches for number in first_of(branch))
        case Core(branches, after):
            begun = (branch for branch, earlier in zip(branches, after, strict=True) if not earlier)
            return tuple(number for branch in begun for number in first_of(branch))


def _last_of(plan: Plan) -> tuple[int, ...]:
    """Return the steps of which one is the last to end."""
    match plan:
        case SingleStep(number):
            return (number,)
        case Chain(parts):
            return _last_of(parts[-1])
        case Fork(branches):
            return tuple(number for branch in branches for number in _last_of(branch))
        case Core(branches, after):
            awaited = {other for earlier in after for other in earlier}
            ends = (branch for number, branch in enumerate(branches) if number not in awaited)
            return tuple(number for branch in ends for number in _last_of(branch))


# The levels, for targets without cores.


@dataclass(frozen=True, slots=True)
class FalseWait:
    """A wait that the graph does not require: `step` waits for `other`, but does not depend on
    it.
    """

    step: int
    other: int


def by_levels(plan: Plan) -> tuple[Plan, tuple[FalseWait, ...]]:
    """Return the plan without cores, whose steps run level by level instead. Also return each wait
    that the graph does not require.
    """
    match plan:
        case SingleStep():
            return plan, ()
        case Chain(parts):
            levelled = [by_levels(part) for part in parts]
            return _chain(part for part, _ in levelled), _all_waits(levelled)
        case Fork(branches):
            levelled = [by_levels(branch) for branch in branches]
            return _fork(part for part, _ in levelled), _all_waits(levelled)
        case Core(branches, after):
            return _levelled(branches, after)


def _all_waits(levelled: Iterable[tuple[Plan, tuple[FalseWait, ...]]]) -> tuple[FalseWait, ...]:
    return tuple(wait for _, waits in levelled for wait in waits)


def _levelled(
    branches: tuple[Plan, ...], after: tuple[tuple[int, ...], ...]
) -> tuple[Plan, tuple[FalseWait, ...]]:
    level: list[int] = []
    for earlier in after:
        level.append(1 + max((level[other] for other in earlier), default=-1))
    rows = [[n for n, at in enumerate(level) if at == wanted] for wanted in range(max(level) + 1)]
    waits = [
        FalseWait(step, other)
        for before, row in pairwise(rows)
        for number in row
        for awaited in before
        if awaited not in after[number]
        for step in first_of(branches[number])
        for other in _last_of(branches[awaited])
    ]
    return _chain(_fork(branches[n] for n in row) for row in rows), tuple(waits)


# Sequences and forks.


def _chain(parts: Iterable[Plan]) -> Plan:
    flat: list[Plan] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Chain) else (part,))
    return flat[0] if len(flat) == 1 else Chain(tuple(flat))


def _fork(branches: Iterable[Plan]) -> Plan:
    flat: list[Plan] = []
    for branch in branches:
        flat.extend(branch.branches if isinstance(branch, Fork) else (branch,))
    return flat[0] if len(flat) == 1 else Fork(tuple(flat))


@dataclass(slots=True)
class _Parts:
    """The rest of a graph: its parts by their first step, and the direct edges between them.

    `ancestors` are sets of bits. Either all steps of a part come before another part, or none does,
    so the first step represents the part. `order` is an order in which the parts could run.
    """

    plans: dict[int, Plan]
    before: dict[int, set[int]]
    behind: dict[int, set[int]]
    ancestors: list[int]
    order: list[int]
    depth: dict[int, int]

    def only(self, kept: Iterable[int]) -> _Parts:
        chosen = set(kept)
        return _Parts(
            {number: self.plans[number] for number in chosen},
            {number: self.before[number] & chosen for number in chosen},
            {number: self.behind[number] & chosen for number in chosen},
            self.ancestors,
            [number for number in self.order if number in chosen],
            self.depth,
        )

    def remove(self, number: int) -> None:
        for other in self.before.pop(number):
            self.behind[other].discard(number)
        for other in self.behind.pop(number):
            self.before[other].discard(number)
        del self.plans[number]


def _sorted(graph: Graph) -> list[int]:
    """Return the steps in topological order, the lowest number first, without steps on or after a
    cycle.
    """
    waiting = [len(earlier) for earlier in graph]
    behind: list[list[int]] = [[] for _ in graph]
    for number, earlier in enumerate(graph):
        for other in earlier:
            behind[other].append(number)
    ready = [number for number, count in enumerate(waiting) if not count]
    found: list[int] = []
    while ready:
        number = heapq.heappop(ready)
        found.append(number)
        for other in behind[number]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, other)
    return found


def _parts(graph: Graph) -> _Parts:
    """Return each step as a part, with only those edges that no other edges imply."""
    order, ancestors = _sorted(graph), [0] * len(graph)
    before: dict[int, set[int]] = {number: set() for number in order}
    behind: dict[int, set[int]] = {number: set() for number in order}
    for number in order:
        implied = 0
        for other in graph[number]:
            implied |= ancestors[other]
        direct = [other for other in graph[number] if not implied >> other & 1]
        ancestors[number] = implied
        for other in direct:
            ancestors[number] |= 1 << other
            before[number].add(other)
            behind[other].add(number)
    plans: dict[int, Plan] = {number: SingleStep(number) for number in order}
    return _Parts(plans, before, behind, ancestors, order, dict.fromkeys(order, 0))


def _contracted(graph: Graph) -> _Parts:
    """Return the parts after each sequence and each fork was replaced by one part, until neither is
    left.
    """
    parts = _parts(graph)
    size = 0
    while size != len(parts.plans):
        size = len(parts.plans)
        _contract_chains(parts)
        _contract_forks(parts)
        parts.order = [number for number in parts.order if number in parts.plans]
    return parts


def _contract_chains(parts: _Parts) -> None:
    chains: dict[int, list[int]] = {}
    head: dict[int, int] = {}
    for number in parts.order:
        before = parts.before[number]
        if len(before) == 1 and len(parts.behind[other := next(iter(before))]) == 1:
            head[number] = head.get(other, other)
            chains.setdefault(head[number], [head[number]]).append(number)
    for first, members in chains.items():
        last = members[-1]
        behind = parts.behind[last]
        for other in behind:
            parts.before[other] = (parts.before[other] - {last}) | {first}
        parts.behind[first] = set(behind)
        parts.plans[first] = _chain(parts.plans[number] for number in members)
        parts.depth[first] = max(parts.depth[number] for number in members)
        for number in members[1:]:
            del parts.plans[number], parts.before[number], parts.behind[number]
    parts.order = [number for number in parts.order if number in parts.plans]


def _contract_forks(parts: _Parts) -> None:
    twins: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
    for number in parts.order:
        edges = frozenset(parts.before[number]), frozenset(parts.behind[number])
        twins.setdefault(edges, []).append(number)
    for members in twins.values():
        depth = 1 + max(parts.depth[number] for number in members)
        if len(members) > 1 and depth <= _NESTING_MAX:
            parts.plans[members[0]] = _fork(parts.plans[number] for number in members)
            parts.depth[members[0]] = depth
            for number in members[1:]:
                parts.remove(number)


def _split(parts: _Parts, depth: int) -> Plan:
    """Divide the parts: unconnected parts become a fork, and a part before all others begins a
    sequence.
    """
    if len(parts.order) == 1:
        return parts.plans[parts.order[0]]
    if depth:
        components = _components(parts)
        if len(components) > 1:
            return _fork(_split(parts.only(some), depth - 1) for some in components)
        sections = _sections(parts)
        if len(sections) > 1:
            return _chain(_split(parts.only(some), depth - 1) for some in sections)
    place = {number: place for place, number in enumerate(parts.order)}
    return Core(
        tuple(parts.plans[number] for number in parts.order),
        tuple(tuple(sorted(place[n] for n in parts.before[number])) for number in parts.order),
    )


def _components(parts: _Parts) -> list[list[int]]:
    found: list[list[int]] = []
    seen: set[int] = set()
    for start in parts.order:
        pending, members = [start], []
        while pending:
            number = pending.pop()
            if number not in seen:
                seen.add(number)
                members.append(number)
                pending += [*parts.before[number], *parts.behind[number]]
        if members:
            found.append(members)
    return found


def _sections(parts: _Parts) -> list[list[int]]:
    """Cut the order of the parts wherever everything before the cut is an ancestor of everything
    after it.
    """
    own = sum(1 << number for number in parts.order)
    ancestors: Mapping[int, int] = {n: parts.ancestors[n] & own for n in parts.order}
    ranked = sorted(parts.order, key=lambda number: ancestors[number].bit_count())
    common = [0] * len(ranked)
    shared = own
    for place in range(len(ranked) - 1, -1, -1):
        shared &= ancestors[ranked[place]]
        common[place] = shared
    sections, before = [[ranked[0]]], 1 << ranked[0]
    for place in range(1, len(ranked)):
        if common[place] & before == before:
            sections.append([])
        sections[-1].append(ranked[place])
        before |= 1 << ranked[place]
    return sections
