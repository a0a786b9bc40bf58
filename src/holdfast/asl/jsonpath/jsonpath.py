"""Paths as Step Functions reads them: the dialect of an old version of the Java library Jayway.

    $.a.b[0]   $['a b']   $.items[*].id   $.items[1:]   $..id   $.users[?(@.age > 17)]
    $$.Execution.Id (the context object)   $answer.text (a variable)

A path of names and single indexes is *definite*: it gives a value or fails. Any other path gives a
list, which is empty when nothing is found (as recordings show). Two rules of that old version:
names in quotes have no escapes but that of the quote, and `length()` is a name like any other. A
path is compiled once and read many times, by many threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from holdfast.asl.java_text import java_text, shown
from holdfast.asl.jsonata.values import StrictJson
from holdfast.asl.jsonpath.roots import CONTEXT, INPUT, PATH_CHARACTERS_MAX, PathSyntaxError

__all__ = [
    "Path",
    "PathMissing",
    "PathSyntaxError",
    "ReferenceConflict",
    "ReferencePath",
    "compile_path",
    "compile_reference",
]

_CACHED_PATHS_MAX: Final = 4_096
_ABSENT: Final[Any] = object()
# The simple form that nearly every path has. Only other paths need the parser, whose import takes
# time.
_PLAIN: Final = re.compile(r"(\$\$|\$[^\W\d]\w*|\$)((?:\.[^\W\d][\w-]*|\[[0-9]{1,18}\])*)")
_PLAIN_KEY: Final = re.compile(r"\.([\w-]+)|\[([0-9]+)\]")
_Key: TypeAlias = str | int


class PathMissing(Exception):  # noqa: N818  # not an error yet: IsPresent asks for it
    """A definite path leads to no value. `reason` is Jayway's sentence about it. For IsPresent this
    is not an error.
    """

    def __init__(self, reason: str, *, is_misuse: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        #: True for an index on a value that is not an array. AWS then shows the message of Jayway,
        #: its library for JSONPath.
        self.is_misuse = is_misuse


class ReferenceConflict(Exception):  # noqa: N818  # becomes States.ReferencePathConflict
    """A value cannot be put at a reference path, because a value on the way is not an object."""

    def __init__(self, step: _Key, document: StrictJson) -> None:
        self.reason = f'Unable to apply step "{step}" to input {shown(document)}'
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path. `root` is "$", "$$" or the name of a variable. `find` reads the path's value
    in the value of the root.
    """

    text: str
    root: str
    is_definite: bool
    find: Callable[[StrictJson], StrictJson]
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
    """A definite path in the input, at which a value can be put."""

    text: str
    keys: tuple[_Key, ...]

    def put(self, document: StrictJson, value: StrictJson) -> StrictJson:
        """Return a copy of the document with the value in it. Missing objects on the way are
        created; an array is not, because its other items would be missing.

        ({"a": 1}, at $.b.c, 2) gives {"a": 1, "b": {"c": 2}}. Raises ReferenceConflict when a value
        on the way is not an object, or an array is missing or does not have the index.
        """
        if not self.keys:
            return value
        copy: Any = self._opened(document, self.keys[0], document)
        here = copy
        for key, following in zip(self.keys, self.keys[1:], strict=False):
            inner = here.get(key, _ABSENT) if isinstance(here, dict) else here[key]
            here[key] = self._opened({} if inner is _ABSENT else inner, following, document)
            here = here[key]
        here[self.keys[-1]] = value
        whole: StrictJson = copy
        return whole

    def _opened(self, container: StrictJson, key: _Key, document: StrictJson) -> Any:
        """Return a shallow copy of a container that can have the key."""
        match container:
            case dict() if isinstance(key, str):
                return dict(container)
            case list() if isinstance(key, int) and -len(container) <= key < len(container):
                return list(container)
            case _:
                raise ReferenceConflict(key, document)


@lru_cache(maxsize=_CACHED_PATHS_MAX)
def compile_path(text: str) -> Path:
    """Compile a path. Raises PathSyntaxError."""
    if len(text) > PATH_CHARACTERS_MAX:
        raise PathSyntaxError(text, f"is longer than {PATH_CHARACTERS_MAX:,} characters")
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return _compile_parsed(text)
    root, steps = plain.groups()
    keys = tuple(name or int(index) for name, index in _PLAIN_KEY.findall(steps))
    root = root if root in (INPUT, CONTEXT) else root.removeprefix(INPUT)
    return Path(text, root, is_definite=True, find=_definite(keys), keys=keys)


def _compile_parsed(text: str) -> Path:
    from holdfast.asl.jsonpath import parse  # noqa: PLC0415  # see there
    from holdfast.asl.jsonpath.steps import compile_steps  # noqa: PLC0415

    root, steps = parse.parse_path(text)
    keys = parse.keys_of(steps)
    if keys is not None:
        return Path(text, root, is_definite=True, find=_definite(keys), keys=keys)
    parents = parse.keys_of(steps[:-1])
    if parents is not None and isinstance(steps[-1], parse.Merge):
        find = _merged(parents, steps[-1].names)
        return Path(text, root, is_definite=True, find=find, keys=None)
    return Path(text, root, is_definite=False, find=_indefinite(compile_steps(steps)), keys=None)


@lru_cache(maxsize=_CACHED_PATHS_MAX)
def compile_reference(text: str) -> ReferencePath:
    """Compile the path of a ResultPath. Raises PathSyntaxError, also for a path that may lead to
    several values.
    """
    path = compile_path(text)
    if not path.is_input or path.keys is None:
        raise PathSyntaxError(text, "must name one place of the input")
    return ReferencePath(text, path.keys)


def _definite(keys: tuple[_Key, ...]) -> Callable[[StrictJson], StrictJson]:
    def find(root: StrictJson) -> StrictJson:
        here: Any = root
        for key in keys:
            if isinstance(key, str):
                if isinstance(here, dict) and key in here:
                    here = here[key]
                    continue
            elif isinstance(here, list) and -len(here) <= key < len(here):
                here = here[key]
                continue
            raise _missing(root, keys)
        return here  # type: ignore[no-any-return]

    return find


def _merged(
    parents: tuple[_Key, ...], names: tuple[str, ...]
) -> Callable[[StrictJson], StrictJson]:
    """Return an object with those of the fields that exist, for `$.a['b','c']` at the end of a
    path.
    """
    find_parent = _definite(parents)

    def find(root: StrictJson) -> StrictJson:
        parent = find_parent(root)
        if not isinstance(parent, dict):
            raise _missing(root, (*parents, names[0]))
        return {name: parent[name] for name in names if name in parent}

    return find


def _indefinite(
    select: Callable[[StrictJson], list[StrictJson]],
) -> Callable[[StrictJson], StrictJson]:
    from holdfast.asl.jsonpath.steps import PathBudgetError  # noqa: PLC0415

    def find(root: StrictJson) -> StrictJson:
        try:
            return select(root)
        except PathBudgetError as problem:
            raise PathMissing(str(problem), is_misuse=True) from None
        except RecursionError:
            raise PathMissing("The value is nested too deep", is_misuse=True) from None

    return find


def _missing(root: StrictJson, keys: tuple[_Key, ...]) -> PathMissing:
    """Return Jayway's sentence about a definite path that leads to no value."""
    here, at = root, 0
    while (problem := _problem_at(here, keys, at)) is None:
        here, at = _child(here, keys[at]), at + 1
        if here is _ABSENT:
            return PathMissing(f"No results for path: {_shown(keys)}")
    return problem


def _problem_at(here: Any, keys: tuple[_Key, ...], at: int) -> PathMissing | None:
    key = keys[at]
    match here:
        case dict() if isinstance(key, str):
            if key not in here and at + 1 < len(keys):
                return PathMissing(f"Missing property in path {_shown(keys[: at + 1])}")
            return None
        case list() if isinstance(key, int):
            return None
        case _ if isinstance(key, str):
            return PathMissing(f"Property ['{key}'] not found in path {_shown(keys[:at])}")
        case None:
            return PathMissing(f"The path {_shown(keys[:at])} is null")
        case _:
            reason = f"Filter: [{key}] can only be applied to arrays. Current context is: "
            return PathMissing(reason + shown(here, java_text), is_misuse=True)


def _child(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError):
        return _ABSENT


def _shown(keys: tuple[_Key, ...]) -> str:
    """Return the keys as a path: ("a", 0) gives $['a'][0]."""
    steps = (f"['{key}']" if isinstance(key, str) else f"[{key}]" for key in keys)
    return "$" + "".join(steps)
