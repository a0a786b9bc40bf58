"""The subject of a `match`, and the values that earlier cases have excluded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import QueryTree
from holdfast.compiler.types.types import (
    BOOL,
    NONE,
    EnumOf,
    ModelOf,
    TextOf,
    Type,
    describe,
    join_all,
    members_of,
)

#: One of the values that the subject of a `match` may have: a constant, None, or all values of a
#: type.
Atom: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a match. `path` is the key of facts about it, None when it has no name.

    `covered` are the values that earlier cases have taken. `owned` says how many levels of the
    value a name of a case takes over.
    """

    query: QueryTree
    type: Type
    path: str | None
    covered: frozenset[Atom] = frozenset()
    owned: int = 0
    distinct: int = 1


@dataclass(frozen=True, slots=True)
class CaseMatch:
    """The match of a case. With `test` None it always matches. `type` is the subject's type in the
    case; `covers` are the values that no later case gets.
    """

    test: TypedQuery | None
    type: Type
    covers: frozenset[Atom]
    bindings: tuple[tuple[str, TypedQuery], ...] = ()
    facts: tuple[tuple[str, Type], ...] = ()


class PatternRefused(Exception):  # noqa: N818 - `matching` catches it
    """This pattern was refused, and the refusal is already reported."""


def atoms_of(type_: Type) -> Iterable[Atom]:
    for member in members_of(type_):
        match member:
            case EnumOf(cls):
                yield from (atom_of(one.value) for one in cls)
            case TextOf(values):
                yield from map(atom_of, values)
            case ModelOf(model):
                yield ("model", model)
            case _ if member == NONE:
                yield atom_of(None)
            case _ if member == BOOL:
                yield from (atom_of(False), atom_of(True))
            case _:
                # The compiler cannot list the values of a text, number or list. So only a pattern
                # that matches all of them covers the type.
                yield ("values", describe(member))


def without(type_: Type, covered: frozenset[Atom]) -> Type:
    """Return the type without the values in `covered`."""
    kept: list[Type] = []
    for member in members_of(type_):
        left = [atom for atom in atoms_of(member) if atom not in covered]
        if isinstance(member, TextOf) and left:
            kept.append(TextOf(tuple(text for text in member.values if atom_of(text) in left)))
        elif left:
            kept.append(member)
    return join_all(kept)


def atom_of(value: object) -> Atom:
    """Return the atom of a constant. True and 1 are different atoms."""
    return (type(value).__name__, repr(value))
