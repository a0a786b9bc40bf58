"""The types of events and answers. The engine finds them again by their names.

A reference is the text of the type, with the module before each class: `shop:Payment`,
`list[shop:Payment]`, `dict[str, builtins:int]`, `shop:Payment | shop:Refusal`, `None`.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import operator
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from types import NoneType
from typing import Any, Final

from holdfast.errors import GoneTypeError, RequestError, VaultFault, WorkflowError
from holdfast.limits import REQUEST_SUFFIX

#: The reference of `None`, the type of an event without data. `builtins` has no `NoneType`.
_NONE: Final = "None"
_SCALARS: Final = (str, int, float, bool)
_MODULE: Final = re.compile(r"[\w.]+:")
_LIST: Final = re.compile(r"list\[(.+)\]")
_DICT: Final = re.compile(r"dict\[str, (.+)\]")
#: Matches the `|` between the members of a union, and brackets. Brackets must be counted, because a
#: `|` inside them belongs to an inner type.
_BETWEEN: Final = re.compile(r"( \| )|[\[\]]")


def can_be_named(found: Any) -> bool:
    """Return True when the engine finds the type again by its reference."""
    if _is_union(found):
        return all(map(can_be_named, typing.get_args(found)))
    if isinstance(found, types.GenericAlias):
        origin, arguments = typing.get_origin(found), typing.get_args(found)
        is_container = origin is list or (origin is dict and arguments[0] is str)
        return is_container and can_be_named(arguments[-1])
    return found is NoneType or found in _SCALARS or _is_module_level(found)


def union_of(members: Iterable[Any]) -> Any:
    """Return `A | B` for two or more types, and the type itself for one."""
    return functools.reduce(operator.or_, members)


def _is_union(found: Any) -> bool:
    return typing.get_origin(found) in (types.UnionType, typing.Union)


def _is_module_level(found: Any) -> bool:
    if not isinstance(found, type) or found.__module__ == builtins.__name__:
        return False
    return getattr(sys.modules.get(found.__module__), found.__qualname__, None) is found


def reference_of(payload: Any) -> str:
    if payload is NoneType:
        return _NONE
    if _is_union(payload):
        return " | ".join(map(reference_of, typing.get_args(payload)))
    match typing.get_origin(payload):
        case None:
            return f"{payload.__module__}:{payload.__qualname__}"
        case origin if origin is list:
            return f"list[{reference_of(typing.get_args(payload)[0])}]"
        case _:
            return f"dict[str, {reference_of(typing.get_args(payload)[1])}]"


def resolve(reference: str) -> Any:
    """Return the type of a reference, and import its module. Raises GoneTypeError."""
    if reference == _NONE:
        return NoneType
    members = _members(reference)
    if len(members) > 1:
        return union_of(map(resolve, members))
    if (inner := _LIST.fullmatch(reference)) is not None:
        return list[resolve(inner[1])]  # type: ignore[misc]
    if (inner := _DICT.fullmatch(reference)) is not None:
        return dict[str, resolve(inner[1])]  # type: ignore[misc]
    module, _, name = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            raise GoneTypeError(reference) from None
        # The module exists, but one of its own imports fails. That error must not be reported as a
        # missing type.
        raise
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise GoneTypeError(reference) from None
    if isinstance(found, type):
        return found
    raise GoneTypeError(reference)


def _members(reference: str) -> list[str]:
    """Return the references of a union's members: `list[m:A | m:B] | m:C` has two."""
    members, depth, begin = [], 0, 0
    for found in _BETWEEN.finditer(reference):
        if found[1] is None:
            depth += 1 if found[0] == "[" else -1
        elif depth == 0:
            members.append(reference[begin : found.start()])
            begin = found.end()
    return [*members, reference[begin:]]


def _ordered(reference: str) -> str:
    """Return the reference with the members of each union in alphabetical order: equal types then
    have equal texts, as `A | B` and `B | A` are equal in Python.
    """
    members = _members(reference)
    if len(members) > 1:
        return " | ".join(sorted(map(_ordered, members)))
    inner = _LIST.fullmatch(reference) or _DICT.fullmatch(reference)
    return reference if inner is None else reference.replace(inner[1], _ordered(inner[1]))


def display(reference: str) -> str:
    """Return the reference without its modules: `list[Payment]`."""
    return _MODULE.sub("", reference)


def require_one_type(declared: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse two types of one event: all its senders would have the type of one workflow, and the
    data for the other would not fit. `declared` has, by workflow, the references of the types by
    the names of the events.

    Raises WorkflowError HF162.
    """
    known: dict[str, tuple[str, str]] = {}
    for workflow, events in declared.items():
        for event, reference in events.items():
            other, first = known.setdefault(event, (workflow, reference))
            if _ordered(first) != _ordered(reference):
                raise _two_types(event, (other, first), (workflow, reference))


def _two_types(event: str, first: tuple[str, str], second: tuple[str, str]) -> WorkflowError:
    name = event.removesuffix(REQUEST_SUFFIX)
    what, wait = ("event", "wait_for_event") if name == event else ("request", "receive")
    types = [display(reference) for _, reference in (first, second)]
    if types[0] == types[1]:
        # Two modules have a class of this name, so the modules distinguish them.
        types = [reference.replace(":", ".") for _, reference in (first, second)]
    union = " | ".join(dict.fromkeys(chain.from_iterable(map(_members, types))))
    return WorkflowError(
        "HF162",
        f"the {what} {name!r} is {types[0]} in {first[0]} and {types[1]} in {second[0]}",
        help=f'give both workflows one type, or both a union, {wait}("{name}", '
        f"{union}, key=…), or rename one {what}: docs/how-to/talk.md",
    )


@contextmanager
def validating(code: str, what: str) -> Iterator[None]:
    """Replace an error of the author's own validators, which may raise any exception with a secret
    in its text: only its class is shown.

    Otherwise the error would be raised again at each delivery of a message, or its text would be
    logged.
    """
    try:
        yield
    except (RequestError, VaultFault, GoneTypeError):
        raise
    except Exception as error:  # noqa: BLE001
        kind = type(error).__name__
        raise RequestError(code, f"{what} cannot be validated: {kind}") from None
