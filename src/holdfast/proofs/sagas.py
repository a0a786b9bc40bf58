"""Compensation: what is undone after a failure, and what may be left done twice or half after a
retry or a failure.

An undo is registered by a Pass that appends `{"task": …, "arguments": …}` to a list. It belongs to
the step whose result its arguments read, or else to the step before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.resources import REPLY
from holdfast.proofs.bounds import kind_of, retries_of
from holdfast.proofs.expressions import is_call, nodes, tree_of
from holdfast.proofs.findings import ProofFinding, shortened
from holdfast.proofs.graph import GraphNode, MachineLevel, reachable
from holdfast.proofs.tasks import TaskFacts

FactsByTask = Mapping[str, TaskFacts]
#: The part of a result that is assigned, as in `$states.result[0]`.
_PART: Final = re.compile(r"\[(\d+)\] %\}$")


@dataclass(frozen=True, slots=True)
class Registration:
    """One registered undo: `task` undoes `step` or, if that is None, one of `steps`. A state in
    `between` may fail before the registration. `inner` are the tasks that it undoes in branches, by
    their level and name.
    """

    level: MachineLevel
    state: str
    task: str
    step: str | None
    steps: frozenset[str]
    between: tuple[str, ...]
    is_early: bool
    reads_result: bool = False
    inner: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Saga:
    """The undos of a machine, and the tasks that have none and may have a side effect."""

    registrations: tuple[Registration, ...]
    open_steps: tuple[tuple[MachineLevel, str, str], ...]
    unknown: tuple[str, ...]


def saga_of(levels: Sequence[MachineLevel], facts: FactsByTask) -> Saga:
    registrations = tuple(
        found for level in levels for found in _alike(tuple(_registrations(level)))
    )
    undone = undone_of(registrations)
    takers = {found.task for found in registrations}
    open_steps, unknown = [], []
    for level, state, task in _inline_tasks(levels):
        if task not in facts:
            unknown.append(task)
        elif not (facts[task].may_be_repeated or task in takers or (level.path, state) in undone):
            open_steps.append((level, state, task))
    return Saga(registrations, tuple(open_steps), tuple(sorted(set(unknown))))


def undone_of(registrations: Iterable[Registration]) -> set[tuple[str, str]]:
    """Return the steps that have an undo, by their level and name."""
    undone: set[tuple[str, str]] = set()
    for found in registrations:
        undone |= {(found.level.path, step) for step in found.steps} | found.inner
    return undone


def _inline_tasks(levels: Sequence[MachineLevel]) -> Iterator[tuple[MachineLevel, str, str]]:
    for level in levels:
        for name, state in level.states.items():
            if state["Type"] == "Task" and kind_of(state) == "task":
                yield level, name, state["Resource"].rpartition(":")[2]


# -- registrations ---------------------------------------------------------------------------------


def _registrations(level: MachineLevel) -> Iterator[Registration]:
    for name, state in level.states.items():
        for variable, value in (state.get("Assign") or {}).items():
            task, read = _appended_undo(value, variable)
            if task is not None:
                yield _registration(level, name, task, read)


def _alike(found: tuple[Registration, ...]) -> tuple[Registration, ...]:
    """Return the registrations of one level. If the first one comes before every step, the author
    registers each undo before its step. So an undo that reads no result belongs to the step after
    it, unless no step follows.
    """
    if not found or not found[0].is_early:
        return found
    return tuple(_before_its_step(one) for one in found)


def _before_its_step(found: Registration) -> Registration:
    following = _next_tasks(found.level, found.state)
    if found.step is None or found.reads_result or not following:
        return found
    return replace(found, step=None, steps=following, between=(), is_early=True)


def _appended_undo(value: Any, variable: str) -> tuple[str | None, frozenset[str]]:
    """Return the task that the value registers, and the variables that its arguments read."""
    tree = tree_of(value)
    if tree is None or not is_call(tree, "append", 2):
        return None, frozenset()
    base, more = tree.arguments
    if base.type != "variable" or base.value != variable:
        return None, frozenset()
    for node in nodes(more):
        for key, item in getattr(node, "lhs_object", None) or ():
            if key.value == "task" and item.type == "string":
                read = {part.value for part in nodes(more) if part.type == "variable"}
                return item.value, frozenset(read)
    return None, frozenset()


def _registration(level: MachineLevel, name: str, task: str, read: frozenset[str]) -> Registration:
    """Return the registration. Its step is searched backwards, as long as a single path leads
    there.
    """
    between: list[str] = []
    nearest: str | None = None
    current, seen = name, {name}
    while (before := _only_before(level, current)) is not None and before not in seen:
        seen.add(before)
        current = before
        state = level.states[before]
        if _is_entry_of_undo(state):
            break
        if state["Type"] == "Task":
            nearest = nearest or before
        if _gives(level, before, read):
            return Registration(
                level,
                name,
                task,
                before,
                frozenset([before]),
                tuple(reversed(between)),
                is_early=False,
                reads_result=True,
                inner=_inner(level, before, read),
            )
        if state["Type"] not in {"Pass", "Choice"} and not _goes_on_to(level, before, name):
            between.append(before)
    giving = _giving(level, read)
    if nearest is not None and not giving:
        return Registration(level, name, task, nearest, frozenset([nearest]), (), is_early=False)
    steps = giving or _next_tasks(level, name)
    inner = frozenset[tuple[str, str]]().union(*(_inner(level, one, read) for one in giving))
    return Registration(level, name, task, None, steps, (), is_early=not giving, inner=inner)


def _goes_on_to(level: MachineLevel, name: str, registration: str) -> bool:
    """Return True when every failure of the state is caught, and the flow may then still reach the
    registration.
    """
    catchers = level.states[name].get("Catch", ())
    return any(catcher["ErrorEquals"] == [error_names.ALL] for catcher in catchers) and all(
        GraphNode(registration) in reachable(level, [GraphNode(catcher["Next"])])
        for catcher in catchers
    )


def _only_before(level: MachineLevel, name: str) -> str | None:
    """Return the only state that leads here on success; None when there is none, or several."""
    leading = {
        edge.source.state
        for edge in level.edges
        if edge.target.state == name and not edge.target.is_cancelled and edge.kind != "catch"
    }
    return leading.pop() if len(leading) == 1 else None


def _is_entry_of_undo(state: Mapping[str, Any]) -> bool:
    """Return True for the Pass that begins a list of undo steps. Steps before it are not undone."""
    return state["Type"] == "Pass" and [] in (state.get("Assign") or {}).values()


def _giving(level: MachineLevel, read: frozenset[str]) -> frozenset[str]:
    """Return the tasks and branches whose results are read."""
    return frozenset(name for name in level.states if _gives(level, name, read))


def _gives(level: MachineLevel, name: str, read: frozenset[str]) -> bool:
    """Return True when the state is a task, or has tasks in its branches, and one of the variables
    is its result.
    """
    state = level.states[name]
    if not read & (state.get("Assign") or {}).keys():
        return False
    return state["Type"] == "Task" or any(map(_tasks_in, level.inner.get(name, ())))


def _inner(level: MachineLevel, name: str, read: frozenset[str]) -> frozenset[tuple[str, str]]:
    """Return the tasks of the branches whose results are read. For a branch of several tasks it is
    not known which of them is undone.
    """
    assign: Mapping[str, Any] = level.states[name].get("Assign") or {}
    parts = {_PART.search(str(assign[variable])) for variable in read & assign.keys()}
    is_whole = None in parts or level.states[name]["Type"] == "Map"
    numbers = {int(part.group(1)) for part in parts if part is not None}
    branches = enumerate(level.inner.get(name, ()))
    tasks = [_tasks_in(inner) for number, inner in branches if is_whole or number in numbers]
    return frozenset(one for found in tasks if len(found) == 1 for one in found)


def _tasks_in(level: MachineLevel) -> list[tuple[str, str]]:
    """Return the tasks of a branch, also those of the branches in it."""
    levels = [level]
    for around in levels:
        levels += [inner for found in around.inner.values() for inner in found]
    return [(inner.path, name) for inner, name, _ in _inline_tasks(levels)]


def _next_tasks(level: MachineLevel, name: str) -> frozenset[str]:
    """Return the next tasks that can follow a state, without another task in between."""
    found, pending, seen = set[str](), [name], set[str]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if level.states[current]["Type"] == "Task":
            found.add(current)
        else:
            pending += [edge.target.state for edge in level.outgoing.get(GraphNode(current), ())]
    return frozenset(found)


def occasions(level: MachineLevel) -> str:
    """Return when undos run. They run after a failure only if every step in their block passes all
    errors to them, or to a handler in the block.

    If a step is in several blocks, the innermost one gets the error first and passes it on.
    """
    undos = [one for one in level.undos if not _is_rejection(level, one)]
    begins = {undo["Begin"] for undo in undos}
    is_total = all(
        any(
            catcher["ErrorEquals"] == [error_names.ALL]
            and catcher["Next"] in begins | set(undo["States"])
            for catcher in level.states[name].get("Catch", ())
        )
        for undo in undos
        for name in undo["States"]
        if level.states.get(name, {}).get("Type") in {"Task", "Parallel", "Map"}
    )
    if not undos:
        return "where a Catch leads to it"
    return "on failure, stop and time-out" if is_total else "on stop and time-out"


def _is_rejection(level: MachineLevel, undo: Mapping[str, Any]) -> bool:
    """Return True for the undo of a request: it rejects the request and takes nothing back."""
    return level.states[undo["Begin"]].get("Resource") == f"holdfast:{REPLY}"


# -- findings --------------------------------------------------------------------------------------


def find_sagas(levels: Sequence[MachineLevel], facts: FactsByTask) -> Iterator[ProofFinding]:
    """Yield the findings HF0A0 to HF0A3. Without facts about a task there is no finding about
    it.
    """
    saga = saga_of(levels, facts)
    undone = undone_of(saga.registrations)
    repeated: dict[str, tuple[MachineLevel, str]] = {}
    for level, name, task in _inline_tasks(levels):
        retries = retries_of(level.states[name])
        is_safe = task not in facts or facts[task].may_be_repeated
        if retries and not is_safe and (level.path, name) not in undone:
            # The key belongs into the task, so one finding serves all its calls.
            repeated.setdefault(task, (level, name))
    for task, (level, name) in repeated.items():
        yield _repeats(level, name, task)
    once = [
        (level, name) for level, name, _ in saga.open_steps if not retries_of(level.states[name])
    ]
    if once:
        yield _open(once)
    for found in saga.registrations:
        yield from _windows(found)


def _repeats(level: MachineLevel, name: str, task: str) -> ProofFinding:
    return ProofFinding(
        "HF0A0",
        "warning",
        name,
        level.location(name),
        f'a retry of "{name}" may do again what {task} has done: it has no idempotency key',
        "pass task_context().idempotency_key on to what it calls; or @task(idempotent=True)",
    )


def _open(steps: Sequence[tuple[MachineLevel, str]]) -> ProofFinding:
    level, first = steps[0]
    names = shortened([name for _, name in steps])
    count = f"{len(steps)} tasks have" if len(steps) != 1 else "1 task has"
    return ProofFinding(
        "HF0A1",
        "note",
        first,
        level.location(first),
        f"what is done stays done: {count} neither an undo nor an idempotency key: {names}",
        "undo(…) after it, task_context().idempotency_key in it, or @task(idempotent=True)",
    )


def _windows(found: Registration) -> Iterator[ProofFinding]:
    place = found.level.location(found.state)
    if found.between:
        names = shortened(found.between)
        yield ProofFinding(
            "HF0A2",
            "warning",
            found.state,
            place,
            f'when {names} fails, "{found.step}" may stay done: {found.task} comes after it',
            f'undo({found.task}, …) directly after "{found.step}"',
        )
    elif found.is_early:
        yield ProofFinding(
            "HF0A3",
            "note",
            found.state,
            place,
            f"{found.task} is registered before a step that it could take back: "
            "it also runs when that step has not",
            f"undo({found.task}, …) after the step, or a {found.task} that may find nothing",
        )
