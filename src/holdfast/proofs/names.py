"""The variables that have a value on every path to the place where they are used.

A forward analysis: a name is known at a state if it is known on every edge into it. A branch can
read the names that are known at its state; the names that it assigns are only its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from holdfast.asl.program import Json
from holdfast.proofs.expressions import path_reads, reads
from holdfast.proofs.findings import ProofFinding
from holdfast.proofs.graph import GraphEdge, GraphNode, MachineLevel

VariableNames = frozenset[str]
#: The fields that the state itself does not evaluate, or that are examined separately.
_APART = frozenset({"Branches", "ItemProcessor", "Iterator", "Next", "Default", "Comment", "Type"})


def find_names(levels: Sequence[MachineLevel]) -> Iterator[ProofFinding]:
    """Yield the findings HF093, HF094 and HF095."""
    known: dict[str, Mapping[GraphNode, VariableNames]] = {}
    for level in levels:
        start = _at_start(level, known)
        known[level.path] = {} if start is None else _known(level, start)
        yield from _shadowing(level, start or frozenset())
        yield from _unknown(level, known[level.path])


def _at_start(
    level: MachineLevel, known: Mapping[str, Mapping[GraphNode, VariableNames]]
) -> VariableNames | None:
    """Return the variables of the levels around a branch; None if the state of the branch is never
    reached.
    """
    if level.around is None:
        return frozenset()
    outer, name = level.around
    nodes = known[outer.path]
    ways = [
        nodes[node]
        for node in (GraphNode(name), GraphNode(name, is_cancelled=True))
        if node in nodes
    ]
    return frozenset.intersection(*ways) if ways else None


def _known(level: MachineLevel, start: VariableNames) -> Mapping[GraphNode, VariableNames]:
    """Return, for each reachable node, the names that have a value on every path to it."""
    found: dict[GraphNode, VariableNames] = {GraphNode(level.start): start}
    pending = [GraphNode(level.start)]
    while pending:
        node = pending.pop()
        for edge in level.outgoing.get(node, ()):
            arriving = found[node].union(edge.assign, _asked(edge))
            before = found.get(edge.target)
            after = arriving if before is None else before & arriving
            if after != before:
                found[edge.target] = after
                pending.append(edge.target)
    return found


def _asked(edge: GraphEdge) -> VariableNames:
    """Return the variables that a condition tests with `$exists`."""
    return frozenset(fact for fact in edge.facts if isinstance(fact, str))


def _unknown(
    level: MachineLevel, known: Mapping[GraphNode, VariableNames]
) -> Iterator[ProofFinding]:
    assigned = _assigned_around(level)
    told: set[tuple[str, str]] = set()
    for node, names in known.items():
        for name, holds in _reads(level, node.state):
            if name in names | holds or (node.state, name) in told:
                continue
            told.add((node.state, name))
            yield _finding(level, node.state, name, is_assigned=name in assigned)


def _finding(level: MachineLevel, state: str, name: str, *, is_assigned: bool) -> ProofFinding:
    place = level.location(state)
    if is_assigned:
        message = f'"{state}" reads ${name}, which has no value on every way to it'
        fix = f'assign it before the ways part: "Assign": {{"{name}": …}}'
        return ProofFinding("HF093", "warning", state, place, message, fix)
    message = f'"{state}" reads ${name}, which no state assigns'
    fix = f'"Assign": {{"{name}": …}} in a state before it'
    return ProofFinding("HF094", "error", state, place, message, fix)


def _assigned_around(level: MachineLevel | None) -> set[str]:
    found: set[str] = set()
    while level is not None:
        found |= level.assigned().keys()
        level = level.around[0] if level.around is not None else None
    return found


def _shadowing(level: MachineLevel, outer: VariableNames) -> Iterator[ProofFinding]:
    """Find names that hide a variable outside of the branch. If that variable has no value there,
    the name is only used twice, which is not a problem.
    """
    for name, given in level.assigned().items():
        if name in outer:
            state = given[0][0].source.state
            yield ProofFinding(
                "HF095",
                "warning",
                state,
                level.location(state),
                f'"{state}" assigns ${name}, which has a value in the level around it already',
                "give it another name: the one outside keeps its value",
            )


# -- variables that a state reads ------------------------------------------------------------------


def _reads(level: MachineLevel, name: str) -> Iterator[tuple[str, VariableNames]]:
    """Yield the names that a state reads, each with the names that are known there in addition to
    those at its entry.
    """
    state = level.states[name]
    read = reads if level.language_at(name) == "JSONata" else path_reads
    nothing: VariableNames = frozenset()
    for field, value in state.items():
        if field == "Choices":
            yield from _read_by_rules(level, name)
        elif field not in _APART:
            for found in read({field: value}):
                yield found, nothing


def _read_by_rules(level: MachineLevel, name: str) -> Iterator[tuple[str, VariableNames]]:
    """Yield the names that rules read. A rule is evaluated only after all rules before it were
    false.
    """
    read = reads if level.language_at(name) == "JSONata" else path_reads
    facts: dict[str, list[GraphEdge]] = defaultdict(list)
    for edge in level.outgoing.get(GraphNode(name), ()):
        facts[edge.kind].append(edge)
    holds: VariableNames = frozenset()
    for edge, rule in zip(facts["rule"], level.states[name]["Choices"], strict=False):
        for found in read(rule.get("Condition", _tests(rule))):
            yield found, holds
        holds = _asked(edge)
        for found in read([{"Assign": rule.get("Assign")}, rule.get("Output")]):
            yield found, holds


def _tests(rule: Mapping[str, Json]) -> Json:
    return {key: value for key, value in rule.items() if key not in {"Next", "Assign", "Output"}}
