"""The states that a run can reach, and the handlers that no error can reach."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.asl import error_names
from holdfast.asl.documents import StateJson
from holdfast.proofs.findings import ProofFinding
from holdfast.proofs.graph import GraphNode, MachineLevel, is_end, is_shadowed, reachable


def find_reach(levels: Sequence[MachineLevel], *, may_run_for_ever: bool) -> Iterator[ProofFinding]:
    """Yield the findings HF090, HF091, HF092, HF0A4. The inside of an unreachable state is not
    reported again.
    """
    hidden: set[str] = set()
    for level in levels:
        if level.around is not None and level.around[0].location(level.around[1]) in hidden:
            hidden |= {level.location(name) for name in level.states}
            continue
        reached = _reached(level)
        unreached = [name for name in level.states if name not in reached]
        hidden |= {level.location(name) for name in unreached}
        yield from _unreached(level, unreached)
        if not may_run_for_ever:
            yield from _dead_ends(level, reached)
        for name in level.states:
            if name in reached:
                yield from _open_choice(level, name)
                yield from _unused_handlers(level, name)


def _reached(level: MachineLevel) -> set[str]:
    """Return the reachable states. If an undo runs only after a stop, the states after its errors
    count, too.
    """
    found = {node.state for node in reachable(level, [GraphNode(level.start)])}
    ends = [undo["End"] for undo in level.undos if undo["End"] in found]
    return found | {node.state for node in reachable(level, map(GraphNode, ends))}


def _unreached(level: MachineLevel, names: list[str]) -> Iterator[ProofFinding]:
    for name in _roots(level, names):
        yield ProofFinding(
            "HF090",
            "warning",
            name,
            level.location(name),
            f'no run can reach "{name}": what leads to it never happens',
            "remove it, or let a rule before it be false",
        )


def _dead_ends(level: MachineLevel, reached: set[str]) -> Iterator[ProofFinding]:
    leading: dict[str, set[str]] = {}
    for edge in level.edges:
        leading.setdefault(edge.target.state, set()).add(edge.source.state)
    alive = {name for name, state in level.states.items() if is_end(state)}
    pending = list(alive)
    while pending:
        for name in leading.get(pending.pop(), set()) - alive:
            alive.add(name)
            pending.append(name)
    dead = [name for name in level.states if name in reached and name not in alive]
    for name in _roots(level, dead):
        yield ProofFinding(
            "HF091",
            "warning",
            name,
            level.location(name),
            f'from "{name}" no end can be reached: only a failure, a stop or a time-out ends it',
            "`break`, `return` or `raise` on some way; or @workflow(key=…), which may run for ever",
            'add a way to a state with "End": true, a Succeed or a Fail',
        )


def _roots(level: MachineLevel, names: Iterable[str]) -> list[str]:
    """Return those states to which no other one of them leads; of a cycle the first one."""
    chosen = list(names)
    targets = {
        edge.target.state
        for edge in level.edges
        if edge.source.state in chosen and edge.source.state != edge.target.state
    }
    return [name for name in chosen if name not in targets] or chosen[:1]


def _open_choice(level: MachineLevel, name: str) -> Iterator[ProofFinding]:
    state = level.states[name]
    if state["Type"] != "Choice" or "Default" in state or _is_exhaustive(state["Choices"]):
        return
    yield ProofFinding(
        "HF092",
        "warning",
        name,
        level.location(name),
        f'all rules of "{name}" may be false: the run then fails with States.NoChoiceMatched',
        '"Default": "…", a Fail that says what was not expected',
    )


def _is_exhaustive(rules: Sequence[StateJson]) -> bool:
    """Return True when the rules certainly cover all cases: one is always true, or is the negation
    of another.
    """
    conditions = [_condition(rule) for rule in rules]
    if any(condition in {"true", '{"Variable":"true"}'} for condition in conditions):
        return True
    negated = {f"$not({condition})" for condition in conditions}
    tests = [{k: v for k, v in rule.items() if k not in _BESIDE} for rule in rules]
    denied = [test["Not"] for test in tests if set(test) == {"Not"}]
    flags = [(test.get("Variable"), test.get("BooleanEquals")) for test in tests if len(test) == 2]
    return (
        any(condition in negated for condition in conditions)
        or any(test in denied for test in tests)
        or any((path, not value) in flags for path, value in flags if isinstance(value, bool))
    )


_BESIDE = frozenset({"Next", "Assign", "Output", "Comment"})


def _condition(rule: StateJson) -> str:
    written: Any = rule.get("Condition")
    if isinstance(written, str):
        return written.removeprefix("{%").removesuffix("%}").strip()
    return json.dumps(written)


def _unused_handlers(level: MachineLevel, name: str) -> Iterator[ProofFinding]:
    for field in ("Retry", "Catch"):
        seen: set[str] = set()
        for number, entry in enumerate(level.states[name].get(field, ())):
            errors = entry["ErrorEquals"]
            if is_shadowed(errors, seen):
                is_runtime = set(errors) == {error_names.RUNTIME}
                why = "no handler takes States.Runtime" if is_runtime else "entries before it match"
                yield ProofFinding(
                    "HF0A4",
                    "warning",
                    name,
                    f"{level.location(name)}/{field}[{number}]",
                    f'{field} of {", ".join(errors)} in "{name}" can never be used: {why}',
                    "remove it, or put it before the others",
                )
            seen.update(errors)
