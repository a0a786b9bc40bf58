"""The state of an execution as JSON, for a snapshot, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

from holdfast.core.results import Results
from holdfast.core.state import (
    PRIORITY_DEFAULT,
    Admission,
    Attempt,
    Attribute,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Lease,
    OpenDeadline,
    Pause,
    Queued,
    Timer,
    WaitingFor,
)
from holdfast.core.waits import awaited

#: Each kind of wait by the name that it has in a snapshot (`_name_of`).
_WAITING: Final[Mapping[str, type[Any]]] = {
    "Entered": Entered,
    "Exited": Exited,
    "Failed": FailedState,
    "Admission": Admission,
    "Attempt": Attempt,
    "Awaiting": Awaiting,
    "Timer": Timer,
    "Delay": Delay,
    "Lanes": Lanes,
    "Children": ChildExecutions,
}


def _name_of(waiting: WaitingFor) -> str:
    """Return the name of the wait's kind in a snapshot. Class names may change, stored names never
    do.
    """
    match waiting:
        case Entered():
            return "Entered"
        case Exited():
            return "Exited"
        case FailedState():
            return "Failed"
        case Admission():
            return "Admission"
        case Attempt():
            return "Attempt"
        case Awaiting():
            return "Awaiting"
        case Timer():
            return "Timer"
        case Delay():
            return "Delay"
        case Lanes():
            return "Lanes"
        case ChildExecutions():
            return "Children"
        case _:
            assert_never(waiting)


class UnknownState(Exception):  # noqa: N818
    """A snapshot that another release wrote: its fields differ from those of this state."""


def to_json(state: Execution) -> dict[str, Any]:
    """Return the state as JSON, for a snapshot. `from_json` gives back an equal state.

    A new field needs a default that is right for every older snapshot, which lacks the field.
    """
    # Omit a field that is absent or has its default. A release that does not know the field can
    # then read the snapshot.
    paused = {} if state.paused is None else {"paused": _fields(state.paused, ())}
    priority = {} if state.priority == PRIORITY_DEFAULT else {"priority": state.priority}
    fork_of = {} if state.fork_of is None else {"fork_of": dict(state.fork_of)}
    published = {"published": dict(state.published)} if state.published else {}
    renewed = {"renewed_event": state.renewed_event} if state.renewed_event else {}
    migrated = {"migrated_from": state.migrated_from} if state.migrated_from else {}
    attributes = {name: list(one) for name, one in state.attributes.items()}
    noted = {"attributes": attributes} if attributes else {}
    notes = {"notes": state.notes} if state.notes else {}
    optional = (
        "migrated_from",
        "renewed_event",
        "paused",
        "priority",
        "fork_of",
        "published",
        "attributes",
        "notes",
    )
    return {
        **_fields(state, ("frames", "resting", "children", *optional)),
        **paused,
        **priority,
        **fork_of,
        **published,
        **renewed,
        **migrated,
        **noted,
        **notes,
        "frames": [_frame_to_json(frame) for frame in state.frames.values()],
        "resting": [_frame_to_json(frame) for frame in state.resting.values()],
        "children": sorted(map(list, state.children)),
    }


def from_json(document: Mapping[str, Any]) -> Execution:
    """Return the state in a snapshot. Raises UnknownState when another release wrote other
    fields.
    """
    frames = {
        name: {frame.id: frame for frame in map(_frame_from_json, document.get(name, []))}
        for name in ("frames", "resting")
    }
    children = document.get("children")
    # A snapshot of an earlier release has no list of children. Use the children for which frames
    # wait, because only these may still have to be stopped.
    if children is None:
        children = awaited([*frames["frames"].values(), *frames["resting"].values()])
    children = frozenset(map(tuple, children))
    parts: dict[str, Any] = {**frames, "children": children}
    if document.get("paused"):
        parts["paused"] = _made(Pause, document["paused"])
    if document.get("attributes"):
        parts["attributes"] = {
            name: Attribute(*one) for name, one in document["attributes"].items()
        }
    state: Execution = _made(Execution, {**document, **parts})
    return state


def _made(kind: type[Any], fields: dict[str, Any]) -> Any:
    try:
        return kind(**fields)
    except TypeError:
        names = ", ".join(sorted(fields))
        raise UnknownState(f"{kind.__name__} with the fields {names}") from None


def _frame_to_json(frame: Frame) -> dict[str, Any]:
    waiting = _fields(frame.waiting, ())
    if isinstance(frame.waiting, Attempt) and frame.waiting.claim is not None:
        waiting["claim"] = _fields(frame.waiting.claim, ())
    if isinstance(frame.waiting, Attempt):
        # Omit the field when it is absent. A release that does not know the field can then read the
        # snapshot.
        del waiting["queued"]
        if frame.waiting.queued is not None:
            waiting["queued"] = _fields(frame.waiting.queued, ())
        if not frame.waiting.polls:
            del waiting["polls"], waiting["polled_ms"]
    if isinstance(frame.waiting, Admission):
        waiting["queued"] = _fields(frame.waiting.queued, ())
    if isinstance(frame.waiting, Awaiting) and frame.waiting.timeout_seconds is None:
        # Omit the field when it is absent. A release that does not know the field could not read
        # the snapshot and would have to read the whole log instead.
        del waiting["timeout_seconds"]
    if isinstance(frame.waiting, FailedState) and frame.waiting.lanes is not None:
        waiting["lanes"] = _lanes_to_json(frame.waiting.lanes)
    if isinstance(frame.waiting, Lanes):
        waiting["results"] = frame.waiting.results.pairs
    if isinstance(frame.waiting, ChildExecutions):
        waiting = _children_to_json(frame.waiting)
    if isinstance(frame.waiting, Attempt | FailedState):
        # Omit the field when it is absent, for releases that do not know it.
        del waiting["children"]
        if frame.waiting.children is not None:
            waiting["children"] = _children_to_json(frame.waiting.children)
    # Omit the error when it is absent. A release that does not know the field can then read the
    # snapshot.
    error = {} if frame.error is None else {"error": frame.error}
    return {
        **_fields(frame, ("waiting", "retries", "deadlines", "error")),
        **error,
        "retries": _pairs(frame.retries),
        "deadlines": [list(due) for due in frame.deadlines],
        "waiting": {"kind_of_wait": _name_of(frame.waiting), **waiting},
    }


def _lanes_to_json(lanes: Lanes) -> dict[str, Any]:
    return {**_fields(lanes, ()), "results": lanes.results.pairs}


def _children_to_json(children: ChildExecutions) -> dict[str, Any]:
    """Omit each field that has its default, for releases that do not know the field."""
    fields = _fields(children, ())
    for name in ("count", "percentage"):
        if fields[name] is None:
            del fields[name]
    for name in ("redrives", "redriven_ms", "begun", "held"):
        if not fields[name]:
            del fields[name]
    return {**fields, "results": children.results.pairs}


def _children_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    held = tuple(document.get("held", ()))
    return {**document, "results": Results(document["results"]), "held": held}


def _frame_from_json(document: Mapping[str, Any]) -> Frame:
    waiting = dict(document["waiting"])
    name = waiting.pop("kind_of_wait")
    kind = _WAITING.get(name)
    if kind is None:
        raise UnknownState(f"a wait of kind {name!r:.40}")
    if waiting.get("claim"):
        waiting["claim"] = Lease(**waiting["claim"])
    if waiting.get("queued"):
        kept = tuple(map(tuple, waiting["queued"]["kept"]))
        waiting["queued"] = _made(Queued, {**waiting["queued"], "kept": kept})
    if waiting.get("lanes"):
        waiting["lanes"] = Lanes(**_lanes_from_json(waiting["lanes"]))
    if kind is Lanes:
        waiting = _lanes_from_json(waiting)
    if kind is ChildExecutions:
        waiting = _children_from_json(waiting)
    elif waiting.get("children"):
        waiting["children"] = ChildExecutions(**_children_from_json(waiting["children"]))
    parts = {
        "retries": dict(document["retries"]),
        "deadlines": tuple(OpenDeadline(*due) for due in document["deadlines"]),
        "waiting": _made(kind, waiting),
    }
    frame: Frame = _made(Frame, {**document, **parts})
    return frame


def _lanes_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    after = tuple(map(tuple, document["after"]))
    return {**document, "results": Results(document["results"]), "after": after}


def _pairs(numbered: Mapping[int, Any]) -> list[list[Any]]:
    """Return a mapping as a list of pairs. JSON objects have no numbers as keys; pairs keep the
    numbers and their order.
    """
    return [[number, value] for number, value in numbered.items()]


def _fields(value: Any, without: tuple[str, ...]) -> dict[str, Any]:
    names = (
        value._fields
        if isinstance(value, Frame | Execution | Lanes)
        else value.__dataclass_fields__
    )
    return {name: getattr(value, name) for name in names if name not in without}
