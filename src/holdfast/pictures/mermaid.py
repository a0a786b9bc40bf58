"""A drawing as Mermaid text: a flowchart with a subgraph for each branch.

Mermaid's state diagrams are not used: their names and labels cannot be escaped reliably.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.pictures.model import Drawing, DrawnDefinition, DrawnEdge, DrawnState
from holdfast.pictures.text import shown

#: For each kind of state, the brackets before and after its text. A kind that is not listed is a
#: plain box.
_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "choice": ("{{", "}}"),
    "succeed": ("([", "])"),
    "fail": ("([", "])"),
    "event": ("[/", "/]"),
    "ask": ("[/", "/]"),
    "wait": ("[/", "/]"),
}
_CLASSES: Final = (
    "classDef handler stroke:#bc4c00,stroke-width:2px",
    "classDef undo stroke:#8250df,stroke-width:2px",
    "classDef failure stroke:#cf222e,stroke-width:2px",
    "classDef done stroke:#1a7f37,stroke-width:2px",
)
#: These characters are written as entities, which begin with `#` in Mermaid. Letters and digits of
#: any script need no entity.
_SPECIAL: Final = re.compile(r"[^\w\s.,:/()=+*'!?·\u00d7≥≤%…-]")


def draw_mermaid(drawing: Drawing) -> str:
    """Return a `flowchart TD`; its states are s0, s1 … in the order of the definition."""
    ids = {node.name: f"s{n}" for n, node in enumerate(_nodes(drawing.machine))}
    lines = ["flowchart TD", *_Writer(ids).machine(drawing.machine, "begin", "    ")]
    return "\n".join([*lines, *(f"    {line}" for line in _CLASSES), ""])


def _nodes(machine: DrawnDefinition) -> Iterator[DrawnState]:
    for node in machine.nodes:
        yield node
        for inner in node.machines:
            yield from _nodes(inner)


@dataclass(frozen=True, slots=True)
class _Writer:
    ids: Mapping[str, str]

    def machine(self, machine: DrawnDefinition, begin: str, indent: str) -> Iterator[str]:
        yield f"{indent}{begin}((( )))"
        for node in machine.nodes:
            yield from self._node(node, indent)
        yield f"{indent}{begin} --> {self.ids[machine.start]}"
        for edge in machine.edges:
            yield f"{indent}{self._edge(edge)}"

    def _node(self, node: DrawnState, indent: str) -> Iterator[str]:
        name, text = self.ids[node.name], _caption(node)
        if not node.machines:
            opening, closing = _SHAPES.get(node.kind, ("[", "]"))
            yield f'{indent}{name}{opening}"{text}"{closing}{_class(node)}'
            return
        yield f'{indent}subgraph {name}["{text}"]'
        for number, machine in enumerate(node.machines):
            branch = f"{name}b{number}"
            is_one = node.kind == "map"
            inner = indent + "    " * (1 if is_one else 2)
            if not is_one:
                yield f'{indent}    subgraph {branch}["{number + 1}"]'
            yield f"{inner}direction TB"
            yield from self.machine(machine, f"{branch}begin", inner)
            if not is_one:
                yield f"{indent}    end"
        for number, waits in enumerate(node.after):
            yield from (f"{indent}    {name}b{wait} --> {name}b{number}" for wait in waits)
        yield f"{indent}end"

    def _edge(self, edge: DrawnEdge) -> str:
        line = "-->" if edge.kind == "next" else "-.->"
        word = f'|"{_escaped(edge.label)}"|' if edge.label else ""
        return f"{self.ids[edge.source]} {line}{word} {self.ids[edge.target]}"


def _class(node: DrawnState) -> str:
    if node.kind == "fail":
        return ":::failure"
    if node.role != "forward":
        return f":::{node.role}"
    return ":::done" if node.is_end else ""


def _caption(node: DrawnState) -> str:
    lines = [node.name, " · ".join(node.details)]
    if node.source is not None:
        file = node.source.file.replace("\\", "/").rpartition("/")[2]
        lines.append(f"{file}:{node.source.line}")
    return "<br/>".join(_escaped(line) for line in lines if line)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", shown(text)) or "#32;"
