"""The event `Migrated`: the whole state is carried over to another definition.

`migration/model.py` writes the event's `plan`: the new names of states, variables and tasks, and
the new numbers of deadlines and retry rules. All other parts of the state stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.asl.program import Json
from holdfast.core.events import Event
from holdfast.core.state import Attempt, Execution, Frame, OpenDeadline, WaitingFor


class _Plan(NamedTuple):
    states: Mapping[str, str]
    variables: Mapping[str, str]
    tasks: Mapping[str, str]
    deadlines: Mapping[int, int | None]
    retries: Mapping[str, Mapping[int, int]]
    undo: frozenset[str]
    assigned: Mapping[str, Mapping[str, Json]]


def migrated(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    plan = _read(own["plan"])
    return state._replace(
        definition=own["to"],
        migrated_from=own["from"],
        last_control=own["control"],
        frames={frame.id: _moved(frame, plan) for frame in state.frames.values()},
    )


def _read(written: Mapping[str, Any]) -> _Plan:
    return _Plan(
        written["states"],
        written.get("variables", {}),
        written.get("tasks", {}),
        dict(written.get("deadlines", ())),
        {name: dict(pairs) for name, pairs in written.get("retries", {}).items()},
        frozenset(written.get("undo", ())),
        written.get("assigned", {}),
    )


def _moved(frame: Frame, plan: _Plan) -> Frame:
    position = plan.states[frame.position]
    kept = plan.retries.get(position)
    retries = frame.retries
    if kept is not None:
        retries = {kept[number]: count for number, count in retries.items() if number in kept}
    return frame._replace(
        position=position,
        variables=_variables(frame, plan),
        retries=retries,
        deadlines=tuple(_deadlines(frame, plan)),
        waiting=_waiting(frame.waiting, plan),
    )


def _variables(frame: Frame, plan: _Plan) -> dict[str, Json]:
    # Leave out an old variable if the plan gives its name to another variable. Otherwise the old
    # value could replace that of the other variable.
    taken = set(plan.variables.values())
    found = {
        plan.variables.get(name, name): value
        for name, value in frame.variables.items()
        if name in plan.variables or name not in taken
    }
    for name in plan.undo & found.keys():
        found[name] = _with_tasks(found[name], plan.tasks)
    return {**found, **plan.assigned.get(frame.id, {})}


def _with_tasks(steps: Json, tasks: Mapping[str, str]) -> Json:
    """Return a list of registered undo steps, each with the new name of its task."""
    assert isinstance(steps, list)
    return [{**step, "task": tasks.get(step["task"], step["task"])} for step in steps]


def _deadlines(frame: Frame, plan: _Plan) -> list[OpenDeadline]:
    found = []
    for due in frame.deadlines:
        number = plan.deadlines.get(due.number, due.number)
        if number is not None:
            found.append(due._replace(number=number))
    return found


def _waiting(waiting: WaitingFor, plan: _Plan) -> WaitingFor:
    """Return the wait with the new name of its task; entry, attempt and due time stay."""
    if isinstance(waiting, Attempt) and waiting.kind == "task":
        return replace(waiting, target=plan.tasks.get(waiting.target, waiting.target))
    return waiting
