"""States and the edges between them. An edge leads to a label until the name of its state is
known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast import limits
from holdfast.compiler.ir import SourcePlace

_FIELD_ORDER: Final = (
    "Type Resource Arguments Seconds Timestamp Items MaxConcurrency Holdfast ItemProcessor Branches"
    " Choices Default Error Cause TimeoutSeconds HeartbeatSeconds Retry Output Assign Catch Next"
    " End"
)
_ORDER: Final = {name: place for place, name in enumerate(_FIELD_ORDER.split())}
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Label:
    """A point of the flow: the next state that is added, or another label.

    `is_used`: a state leads here. No state leads to the end of an endless loop without a `break`.
    """

    def __init__(self) -> None:
        self.target: Label | str | None = None
        self.is_used = False

    @property
    def state(self) -> str:
        found: Label | str | None = self
        while isinstance(found, Label):
            found = found.target
        assert found is not None, "a label was never placed"
        return found


@dataclass(slots=True)
class StateNames:
    """The names of states, which are unique in the whole machine, branches included. Each has its
    origin in the source.

    `mark` is added to the names in the copies of a `finally` body, so that they differ.
    """

    origins: dict[str, SourcePlace] = field(default_factory=dict)
    mark: str = ""

    def give(self, wanted: str, origin: SourcePlace) -> str:
        wanted = _UNPRINTABLE.sub(" ", wanted).strip() or "state"
        mark = f" ({self.mark})" if self.mark else ""
        attempt = 1
        name = _cut(wanted, mark)
        while name in self.origins:
            attempt += 1
            name = _cut(wanted, f"{mark} ({attempt})")
        self.origins[name] = origin
        return name


def _cut(text: str, suffix: str) -> str:
    room = limits.NAME_CHARACTERS_MAX - len(suffix)
    return (text if len(text) <= room else f"{text[: room - 1]}…") + suffix


class Assembler:
    """The states of a machine or of one branch, added in the order of the source."""

    def __init__(self, names: StateNames) -> None:
        self.names = names
        self._states: dict[str, dict[str, Any]] = {}
        self._start = Label()
        self._start.is_used = True
        self._pending = [self._start]

    @property
    def is_reachable(self) -> bool:
        """Return True when some state leads to the state that is added next."""
        return any(label.is_used for label in self._pending)

    @property
    def size(self) -> int:
        return len(self._states)

    def names_since(self, size: int) -> list[str]:
        """Return the names of the states that were added after the first `size`."""
        return list(itertools.islice(self._states, size, None))

    def place(self, label: Label) -> None:
        """Place `label` at the state that is added next."""
        self._pending.append(label)

    def jump(self, label: Label) -> None:
        """Make every edge that leads here lead to `label` instead."""
        label.is_used = label.is_used or self.is_reachable
        for pending in self._pending:
            pending.target = label
        self._pending = []

    def add(self, origin: SourcePlace, name: str, state: dict[str, Any]) -> str:
        """Add a state that continues with the state added next, and return its name."""
        following = Label()
        given = self.end(origin, name, {**state, "Next": following})
        self._pending = [following]
        return given

    def end(self, origin: SourcePlace, name: str, state: dict[str, Any]) -> str:
        """Add a state that does not continue with the next one, and return its name."""
        given = self.names.give(name, origin)
        for pending in self._pending:
            pending.target = given
        self._pending = []
        self._states[given] = state
        for label in _ways_out(state):
            label.is_used = True
        return given

    def machine(self) -> dict[str, Any]:
        """Return `StartAt` and `States`, with every label replaced by the name of its state."""
        assert not self.is_reachable, "the flow ends without a state"
        states = {name: _finished(state) for name, state in self._states.items()}
        return {"StartAt": self._start.state, "States": states}


def _ways_out(state: dict[str, Any]) -> Iterator[Label]:
    """Yield the labels in one state. Machines inside of it have labels of their own, which were
    already replaced.
    """
    for row in (state, *state.get("Choices", ()), *state.get("Catch", ())):
        if "Next" in row:
            yield row["Next"]
    if "Default" in state:
        yield state["Default"]


def resolved(value: Any) -> Any:
    """Return the value with every label replaced by its state's name."""
    match value:
        case Label():
            return value.state
        case dict():
            return {key: resolved(item) for key, item in value.items()}
        case list():
            return [resolved(item) for item in value]
        case _:
            return value


def _finished(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with its fields in the usual order, and every label replaced by the name of
    its state.
    """
    found = {name: state[name] for name in sorted(state, key=_ORDER.__getitem__)}
    for name in ("Next", "Default"):
        if name in state:
            found[name] = state[name].state
    for name in ("Choices", "Catch"):
        if name in state:
            found[name] = [{**row, "Next": row["Next"].state} for row in state[name]]
    return found
