"""The number of rounds of a loop, from counters that approach a limit and from the lengths of
lists.

A loop is bounded if one of its edges requires `$i < limit`, `$i` has grown each time the edge is
passed again, nothing else in the loop changes `$i`, and `limit` stays the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.proofs.amounts import ZERO, Bound, most, number, plus, symbol, times
from holdfast.proofs.expressions import (
    LimitComparison,
    is_call,
    is_stable,
    nodes,
    plain_text,
    step_of,
    tree_of,
    whole,
)
from holdfast.proofs.graph import GraphEdge, GraphNode, MachineLevel
from holdfast.proofs.paths import LoopRounds, Paths

# The longest chain of variables that is followed, in which each variable gets the value of the
# next.
_DEPTH_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class _Counter:
    """A counter: the edges that are only passed while the variable is below its limit, and those
    that increase it.
    """

    variable: str
    step: int
    limits: tuple[tuple[str, Any], ...]
    tests: frozenset[GraphEdge]


@dataclass
class Counters:
    """The loops of one level (machine, branch or item processor). `lengths` are those of variables
    that are being computed, so that a cycle among them ends.
    """

    level: MachineLevel
    _lengths: dict[str, Bound] = field(default_factory=dict)
    _assigned: Mapping[str, list[tuple[GraphEdge, Json]]] = field(init=False)

    def __post_init__(self) -> None:
        merged: dict[str, list[tuple[GraphEdge, Json]]] = defaultdict(list)
        level: MachineLevel | None = self.level
        while level is not None:
            for name, given in level.assigned().items():
                merged[name] += given
            level = None if level.around is None else level.around[0]
        self._assigned = merged

    @cached_property
    def paths(self) -> Paths:
        """Return the paths that begin at the start of the level."""
        return Paths(frozenset([GraphNode(self.level.start)]), self.level.edges, self.rounds_of)

    def rounds_of(self, part: frozenset[GraphNode], edges: Sequence[GraphEdge]) -> LoopRounds:
        """Return the edges that a counter bounds, and how often all of them together can be
        passed.
        """
        inside = frozenset(edges)
        for counter in _counters(edges):
            given = self._assigned.get(counter.variable, ())
            # A change in the same direction brings the variable only nearer to its limit. So only
            # the other changes outside the loop matter.
            before = [
                value
                for edge, value in given
                if edge not in inside
                and (step_of(value, counter.variable) or 0) * counter.step <= 0
            ]
            return counter.tests, self._count(counter, before, part)
        return None

    def _count(self, counter: _Counter, starts: list[Json], part: frozenset[GraphNode]) -> Bound:
        """Return a bound of the rounds: ceil((limit - start) / step), for the worst start and
        limit.
        """
        name = min(node.state for node in part)
        return most(
            self._distance(counter, operator, limit, start) or symbol(f"rounds({name})")
            for operator, limit in counter.limits
            for start in starts or [None]
        )

    def _distance(self, counter: _Counter, operator: str, limit: Any, start: Json) -> Bound:
        """Return the distance; None when it is not known, so that the symbol of the loop replaces
        it.
        """
        extra = 1 if operator in {"<=", ">="} else 0
        first, last = whole(start), self._known(limit)
        if first is None:
            tree = tree_of(start)
            first = None if tree is None else whole(tree)
        if first is not None and last is not None:
            way = (last - first if counter.step > 0 else first - last) + extra
            return number(max(0, math.ceil(way / abs(counter.step))))
        if counter.step > 0 and first is not None:
            return self._from(limit, extra - first)
        if counter.step < 0 and last is not None:
            return self._from(tree_of(start), extra - last)
        return None

    def _known(self, tree: Any) -> int | None:
        """Return the number, also that of a variable which gets only this one."""
        text = None if whole(tree) is not None else plain_text(tree)
        return whole(tree if text is None else self._only_value(text))

    def _from(self, tree: Any, more: int) -> Bound:
        """Return a bound for the value of an expression plus `more`."""
        value = None if tree is None else self.value(tree)
        return None if value is None else plus(value, number(max(0, more)))

    # -- values ------------------------------------------------------------------------------------

    def value(self, tree: Any, depth: int = 0) -> Bound:
        """Return a bound for the value of a number, which may contain symbols; None when none is
        known.
        """
        known = whole(tree)
        if known is not None:
            return number(known)
        if is_call(tree, "count"):
            return self.length(tree.arguments[0])
        if is_call(tree, "max") and tree.arguments[0].value == "[":
            return most(self.value(part, depth + 1) for part in tree.arguments[0].expressions)
        if tree.type == "binary" and tree.value in {"+", "*"}:
            parts = [self.value(part, depth + 1) for part in (tree.lhs, tree.rhs)]
            if None in parts or (tree.value == "*" and not _is_scaled(tree)):
                return None
            return plus(*parts) if tree.value == "+" else times(*parts)
        text = plain_text(tree)
        if text is None:
            return self._greatest_element(tree)
        written = self._only_value(text)
        inner = None if written is None else tree_of(written)
        if written is not None and whole(written) is not None:
            return number(whole(written) or 0)
        if inner is not None and depth < _DEPTH_MAX and text not in _reads(inner):
            return self.value(inner, depth + 1) or symbol(text)
        return symbol(text)

    def _greatest_element(self, tree: Any) -> Bound:
        """Return the greatest element of `$list[$index]`, where the list is a literal."""
        if tree.type != "variable" or len(getattr(tree, "predicate", None) or ()) != 1:
            return None
        written: Json = f"{{% ${tree.value} %}}"
        for _ in range(_DEPTH_MAX):
            inner = tree_of(written)
            if inner is None or inner.type != "variable" or getattr(inner, "predicate", None):
                break
            written = self._only_value(inner.value)
        numbers = [whole(item) for item in written] if isinstance(written, list) else []
        known = [item for item in numbers if item is not None]
        return number(max(known)) if known and len(known) == len(numbers) else None

    def _only_value(self, variable: str) -> Json:
        """Return the only value that a variable gets; None if it gets several."""
        values = [value for _, value in self._assigned.get(variable, ())]
        return values[0] if len(values) == 1 else None

    def length(self, tree: Any) -> Bound:
        """Return a bound for the number of elements of an expression's value."""
        text = plain_text(tree)
        if text is None:
            fixed = _fixed_length(tree)
            return symbol("len(…)") if fixed is None else number(fixed)
        if text not in self._lengths:
            self._lengths[text] = symbol(f"len({text})")
            self._lengths[text] = self._length_of(text)
        return self._lengths[text]

    def _length_of(self, variable: str) -> Bound:
        given = self._assigned.get(variable, [])
        if not given:
            return symbol(f"len({variable})")
        if len(given) == 1 and _is_path(given[0][1]):
            return self.length(tree_of(given[0][1]))
        own = frozenset(self.level.edges)
        whole_lists: list[Bound] = []
        grown: list[Bound] = []
        for edge, value in given:
            appended = _appended(value, variable)
            if appended is not None:
                if edge not in own:
                    return symbol(f"len({variable})")
                grown.append(times(self._visits(edge), number(appended)))
                continue
            fixed = len(value) if isinstance(value, list) else _fixed_length(tree_of(value))
            if fixed is None:
                return symbol(f"len({variable})")
            whole_lists.append(number(fixed))
        total = plus(most(whole_lists), *grown)
        return symbol(f"len({variable})") if total is None else total

    def _visits(self, edge: GraphEdge) -> Bound:
        """Return how often an edge is passed in one run of the level."""
        weights: dict[GraphNode, Bound] = defaultdict(lambda: ZERO)
        weights[edge.source] = number(1)
        return self.paths.heaviest(weights)


def _is_scaled(tree: Any) -> bool:
    """Return True when one factor is a number of at least 0. Two negative factors would give a
    positive product.
    """
    return any((whole(part) or -1) >= 0 for part in (tree.lhs, tree.rhs))


def _is_path(value: Json) -> bool:
    tree = tree_of(value)
    return tree is not None and plain_text(tree) is not None and is_stable(tree)


def _fixed_length(tree: Any) -> int | None:
    """Return the length of a literal such as `[a, b]`; None if it contains a range."""
    if tree is None or tree.type != "unary" or tree.value != "[":
        return None
    if getattr(tree, "predicate", None) or any(part.value == ".." for part in tree.expressions):
        return None
    # Give up on a list that contains other lists. They may be flattened, and the number of elements
    # would then be larger.
    if any(part.type not in {"number", "string", "value"} for part in tree.expressions):
        return None
    return len(tree.expressions)


def _appended(value: Json, variable: str) -> int | None:
    """Return how many elements `$append($variable, [{…}])` adds."""
    tree = tree_of(value)
    if tree is None or not is_call(tree, "append", 2):
        return None
    base, more = tree.arguments
    if plain_text(base) != variable or more.type != "unary" or more.value != "[":
        return None
    items = more.expressions
    are_objects = all(item.type == "unary" and item.value == "{" for item in items)
    return len(items) if are_objects else None


# -- finding a counter -----------------------------------------------------------------------------


def _counters(edges: Sequence[GraphEdge]) -> Iterator[_Counter]:
    assigned: dict[str, list[tuple[GraphEdge, Json]]] = defaultdict(list)
    for edge in edges:
        for name, value in edge.assign.items():
            assigned[name].append((edge, value))
    for variable, changes in assigned.items():
        steps = [step_of(value, variable) for _, value in changes]
        known = [step for step in steps if step]
        if len(known) < len(steps) or not (min(known) > 0 or max(known) < 0):
            continue
        counter = _tested(variable, known, changes, edges, assigned)
        if counter is not None:
            yield counter


def _tested(
    variable: str,
    steps: list[int],
    changes: list[tuple[GraphEdge, Json]],
    edges: Sequence[GraphEdge],
    assigned: Mapping[str, Any],
) -> _Counter | None:
    wanted = {"<", "<="} if steps[0] > 0 else {">", ">="}
    found: dict[GraphEdge, tuple[str, Any]] = {}
    for edge in edges:
        for fact in edge.facts:
            if isinstance(fact, LimitComparison) and fact.variable == variable:
                is_fixed = is_stable(fact.limit) and not _reads(fact.limit) & assigned.keys()
                if fact.operator in wanted and is_fixed:
                    found.setdefault(edge, (fact.operator, fact.limit))
    tests = frozenset(found)
    moves = {edge for edge, _ in changes}
    if not tests or not _moves_between(tests, moves, edges):
        return None
    least = min(steps, key=abs)
    return _Counter(variable, least, tuple(found.values()), tests)


def _reads(tree: Any) -> frozenset[str]:
    return frozenset(node.value for node in nodes(tree) if node.type == "variable")


def _moves_between(
    tests: frozenset[GraphEdge], moves: set[GraphEdge], edges: Sequence[GraphEdge]
) -> bool:
    """Return True when every path from one test to the next moves the counter."""
    rest: dict[GraphNode, list[GraphNode]] = defaultdict(list)
    for edge in edges:
        if edge not in moves:
            rest[edge.source].append(edge.target)
    sources = {edge.source for edge in tests}
    still = [edge.target for edge in tests if edge not in moves]
    return not _walk(still, rest) & sources


def _walk(
    starts: Iterable[GraphNode], targets: Mapping[GraphNode, list[GraphNode]]
) -> set[GraphNode]:
    seen: set[GraphNode] = set()
    pending = list(starts)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += targets.get(node, ())
    return seen
