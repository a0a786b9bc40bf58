"""The content of a picture: the states of a machine, the edges between them, and their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

NodeKind: TypeAlias = Literal[
    "task",
    "pure",
    "event",
    "ask",
    "child",
    "wait",
    "choice",
    "pass",
    "succeed",
    "fail",
    "parallel",
    "map",
]
#: "forward": the state runs when nothing fails. "handler": it runs only after an error. "undo": it
#: undoes finished work.
Role: TypeAlias = Literal["forward", "handler", "undo"]
#: "next": the way without errors. "catch": the way after an error. "deadline": the way after the
#: time limit of a block.
EdgeKind: TypeAlias = Literal["next", "catch", "deadline"]
StateMark: TypeAlias = Literal["succeeded", "running", "failed", "cancelled", "not_reached"]


@dataclass(frozen=True, slots=True)
class DrawnSource:
    """The source line of a state; `line` from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class DrawnState:
    """One state. `details` are short remarks, `notes` whole sentences for the tooltip.

    `machines`: the branches of a Parallel, or the one processor of a Map. `after`: for each branch
    the positions of the branches that must end first.
    """

    name: str
    kind: NodeKind
    role: Role
    is_end: bool
    details: tuple[str, ...]
    notes: tuple[str, ...]
    source: DrawnSource | None
    machines: tuple[DrawnDefinition, ...] = ()
    after: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """One transition. `label` is its condition or error, "" where none is needed; it may be
    long.
    """

    source: str
    target: str
    kind: EdgeKind
    label: str


@dataclass(frozen=True, slots=True)
class DrawnDefinition:
    """A machine to draw. Two states have one edge for each kind, however many rules lead from one
    to the other.
    """

    start: str
    nodes: tuple[DrawnState, ...]
    edges: tuple[DrawnEdge, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of a picture. `remarks` are about the whole machine: its time-out, its
    language.
    """

    title: str
    remarks: tuple[str, ...]
    machine: DrawnDefinition


@dataclass(frozen=True, slots=True)
class Mark:
    """How an execution has used a state. `count` says how often the state was entered."""

    status: StateMark
    count: int = 1


@dataclass(frozen=True, slots=True)
class Look:
    """How a drawing is shown.

    `marks` are by the name of the state; if it is not empty, a state without a mark was not
    reached. `link_prefix` is the address to which `file#Lline` is appended; "" for no links.
    """

    marks: Mapping[str, Mark] | None = None
    link_prefix: str = ""
