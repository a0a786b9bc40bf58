"""Paths as Step Functions reads them: an old Jayway dialect, whose every habit can be seen.

    $.a.b[0]   $['a b']   $.items[*].id   $.items[1:]   $..id   $.users[?(@.age > 17)]
    $$.Execution.Id (the context object)   $answer.text (a variable)

A path of names and single indexes is *definite*: it gives a value or fails. Any other gives a list,
an empty one where there is nothing (seen in recordings). Names in quotes are taken as they stand,
without escapes but that of the quote, and `length()` is a name like any other: both were so before
Jayway knew better. A path is compiled once and read many times, by many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from holdfast.asl._jsonata_values import Json
from holdfast.asl._java_text import java_text, json_text
from holdfast.asl._jsonpath_parse import (
    CONTEXT,
    INPUT,
    PATH_CHARACTERS_MAX,
    Children,
    Indexes,
    PathSyntaxError,
    Step,
    parse_path,
)
from holdfast.asl._jsonpath_steps import select

__all__ = ["Path", "PathMissing", "PathSyntaxError", "ReferencePath", "compile_path"]

_CACHED_PATHS_MAX: Final = 4_096
_Key: TypeAlias = str | int


class PathMissing(Exception):  # noqa: N818  # what is missing is no error yet: IsPresent asks
    """Nothing stands at a definite path. `reason` is Jayway's sentence."""

    def __init__(self, reason: str, *, is_misuse: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        #: An index on something that is no array: AWS shows Jayway's sentence for it everywhere.
        self.is_misuse = is_misuse


class ReferenceConflict(Exception):  # noqa: N818  # becomes States.ReferencePathConflict
    """A value cannot be put at a reference path, as something else than an object is there."""

    def __init__(self, step: _Key, document: Json) -> None:
        self.reason = f'Unable to apply step "{step}" to input {json_text(document)}'
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Path:
    """`root` is "$", "$$" or the name of a variable. `find` reads the value that the root has."""

    text: str
    root: str
    is_definite: bool
    find: Callable[[Json], Json]
    keys: tuple[_Key, ...] | None

    @property
    def is_input(self) -> bool:
        return self.root == INPUT

    @property
    def is_context(self) -> bool:
        return self.root == CONTEXT

    @property
    def variable(self) -> str | None:
        return None if self.root in (INPUT, CONTEXT) else self.root


@dataclass(frozen=True, slots=True)
class ReferencePath:
    """A definite path of the input, at which a value can be put."""

    text: str
    keys: tuple[_Key, ...]

    def put(self, document: Json, value: Json) -> Json:
        """A copy of the document with the value in it; objects are made on the way.

        ({"a": 1}, at $.b.c, 2) -> {"a": 1, "b": {"c": 2}}. Raises ReferenceConflict where something
        that is no object is on the way, or an array has no such index.
        """
        if not self.keys:
            return value
        copy = self._opened(document, self.keys[0], document)
        here = copy
        for key, following in zip(self.keys, self.keys[1:], strict=False):
            inner = here.get(key, _ABSENT) if isinstance(here, dict) else here[key]
            here[key] = {} if inner is _ABSENT else self._opened(inner, following, document)
            here = here[key]
        here[self.keys[-1]] = value
        return copy

    def _opened(self, container: Json, key: _Key, document: Json) -> Any:
        """A shallow copy of a container that can hold the key."""
        match container:
            case dict() if isinstance(key, str):
                return dict(container)
            case list() if isinstance(key, int) and -len(container) <= key < len(container):
                return list(container)
            case _:
                raise ReferenceConflict(key, document)


_ABSENT: Final[Any] = object()


@lru_cache(maxsize=_CACHED_PATHS_MAX)
def compile_path(text: str) -> Path:
    """Raises PathSyntaxError."""
    root, steps = parse_path(text)
    keys = _keys(steps)
    if keys is not None:
        return Path(text, root, is_definite=True, find=_definite(keys), keys=keys)
    if len(steps) == 1 and _is_pick(steps[0]) or _is_pick_at_end(steps):
        return Path(text, root, is_definite=True, find=_picked(steps), keys=None)
    return Path(text, root, is_definite=False, find=_indefinite(steps), keys=None)


@lru_cache(maxsize=_CACHED_PATHS_MAX)
def compile_reference(text: str) -> ReferencePath:
    """The path of a ResultPath. Raises PathSyntaxError, also for a path that is not definite."""
    path = compile_path(text)
    if not path.is_input or path.keys is None:
        raise PathSyntaxError(text, "must name one place of the input")
    return ReferencePath(text, path.keys)
