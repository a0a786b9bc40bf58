"""The values that the paths of one field read: the data behind `$`, the variables, the context
object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, NoReturn

from holdfast.asl import error_names
from holdfast.asl.java_text import shown
from holdfast.asl.jsonata.values import (
    VALUE_DEPTH_MAX,
    VALUE_NODES_MAX,
    EvaluationMoment,
    StrictJson,
)
from holdfast.asl.jsonpath.jsonpath import Path, PathMissing
from holdfast.asl.template import StateError

_TEXT_CHARACTERS_MAX: Final = 16_777_216


class PathScope(NamedTuple):
    data: StrictJson
    bindings: Mapping[str, StrictJson]
    moment: EvaluationMoment

    def root_of(self, path: Path) -> StrictJson:
        """Return the value at which a path begins. Raises PathMissing for a variable that is not
        set.
        """
        if path.is_input:
            return self.data
        if path.is_context:
            return context_of(self.bindings)
        if path.root not in self.bindings:
            raise PathMissing(f"No results for path: ${path.root}")
        return self.bindings[path.root]

    def find(self, path: Path) -> StrictJson:
        """Return the value of the path. Raises PathMissing if the path is definite and leads to no
        value.
        """
        return path.find(self.root_of(path))

    def text_of_root(self, path: Path) -> str:
        """Return the document in which a path was not found, as AWS shows it."""
        try:
            return shown(self.root_of(path))
        except PathMissing:
            return shown(self.data)


def context_of(bindings: Mapping[str, StrictJson]) -> StrictJson:
    states: Any = bindings["states"]
    context: StrictJson = states["context"]
    return context


def is_intrinsic(text: str) -> bool:
    return text.startswith("States.")


def refuse(cause: str) -> NoReturn:
    raise StateError(error_names.RUNTIME, cause)


def require_bounded(value: StrictJson) -> None:
    """Raise StateError for a value that is too large or too deep to be written.

    A document to which a thousand references lead is one object in memory, but a thousand copies in
    the text.
    """
    nodes, characters = 1, 0
    level: list[Any] = [value]
    for _ in range(VALUE_DEPTH_MAX):
        below: list[Any] = []
        for node in level:
            if isinstance(node, str):
                characters += len(node)
            elif isinstance(node, dict | list):
                nodes += len(node)
                if nodes > VALUE_NODES_MAX:
                    refuse("The value is too large")
                below += node.values() if isinstance(node, dict) else node
        if characters > _TEXT_CHARACTERS_MAX:
            refuse("The value is too large")
        if not below:
            return
        level = below
    refuse("The value is nested too deep")


@dataclass(frozen=True, slots=True)
class ConstantTemplate:
    """A template whose value is constant."""

    value: StrictJson

    def evaluate(self, *_: object) -> StrictJson:
        return self.value


@dataclass(frozen=True, slots=True)
class StateData:
    """A template whose value is one of those that the engine provides for a state."""

    name: Literal["input", "result", "errorOutput"]

    def evaluate(self, bindings: Mapping[str, StrictJson], _: EvaluationMoment) -> StrictJson:
        states: Any = bindings["states"]
        data: StrictJson = states[self.name]
        return data


#: The values that `$` may stand for: the state's input, its result, or the error that was caught.
INPUT_DATA: Final = StateData("input")
RESULT_DATA: Final = StateData("result")
ERROR_DATA: Final = StateData("errorOutput")
