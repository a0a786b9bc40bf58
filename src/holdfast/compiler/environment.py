"""The names at one point of the flow, and what is known about their values.

The problem
-----------
The same name has different types at different points of a function. JSONata
and Python agree only for certain types, so the lowering must know the type of each name where it is
read:

    coupon = find_coupon(order)        # coupon: str | None
    if coupon is not None:
        text = coupon.upper()          # coupon: str here, so `.upper()` has an exact form
    print_label(text)                  # refused: on one way `text` has no value

The environment
---------------
An `Environment` is immutable. Each change gives a new one, so an `if` can keep the environment
before it for its `else`. It has two parts:

* `entries`: for each name the query that reads it and its type (`Held`), or a local function, or
  the handle of `compensating`. `is_definite` is False when some way to this point does not assign
  it.
* `facts`: narrower types of paths such as `order.coupon` and `state["count"]`, learned from
  conditions and assignments. A fact stays
  true because values are snapshots. Only an assignment to the first name of the path ends it.

Where two ways meet, `join_environments` keeps only knowledge that holds on both:

                 coupon: str | None
                    │
          ┌── coupon is None? ──┐
       yes│                     │no
    coupon = ""              fact: coupon is str
          └──────── join ───────┘
                 coupon: str

An environment of None is a point that no way reaches. A join with None is the other environment.

A loop body is lowered several times, until the environment at its head no longer changes. Only the
refusals of the last round count. `without_refused` removes the placeholders of earlier rounds, so
that they do not hide a refusal of the last round. `bounded` makes the rounds end: a type that nests
too deeply becomes unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from holdfast.compiler.expressions.query import QueryTree
from holdfast.compiler.types.types import Type, bounded, is_refused, join
from holdfast.compiler.variable_names import VariableScopeNames

NameEntry: TypeAlias = "Held | LocalFunction | UndoHandle"

#: All levels of a value: no other name refers to any part of it.
EVERYTHING: Final = 99


class Held(NamedTuple):
    """One variable: the query that reads its value, and whether every path to this point has
    assigned it.

    `owned`: how many levels of the value no other name refers to. 1 is the list, dict or model
    itself, 2 also each value in it, and so on; see `ownership`. `distinct`: in how many levels no
    object stands twice; see `levels`.
    """

    value: QueryTree
    type: Type
    is_definite: bool = True
    owned: int = 0
    distinct: int = 1


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A `def` inside the workflow: a branch, or a helper. `scope` is the scope in which it is
    defined.
    """

    node: ast.FunctionDef
    scope: VariableScopeNames


@dataclass(frozen=True, slots=True)
class UndoHandle:
    """The name after `with compensating() as`, and the ASL variable of its steps."""

    steps: str
    scope: VariableScopeNames


class Environment(NamedTuple):
    """The names at one point of the flow. `facts` are narrower types of paths like `order.coupon`.

    A fact stays true because values are snapshots. Only an assignment to the first name of the path
    ends it.
    """

    entries: Mapping[str, NameEntry]
    facts: Mapping[str, Type] = MappingProxyType({})

    def with_entry(self, name: str, entry: NameEntry) -> Environment:
        entries = dict(self.entries)
        # Remove the name first, so that its new entry becomes the last one.
        entries.pop(name, None)
        entries[name] = entry
        return Environment(entries, self._facts_without(name))

    def without(self, name: str) -> Environment:
        entries = dict(self.entries)
        entries.pop(name, None)
        return Environment(entries, self._facts_without(name))

    def _facts_without(self, name: str) -> Mapping[str, Type]:
        if not self.facts:
            return self.facts
        inside = (f"{name}.", f"{name}[")
        return {
            path: type_
            for path, type_ in self.facts.items()
            if path != name and not path.startswith(inside)
        }

    def shared(self, levels: Iterable[tuple[str, int]]) -> Environment:
        """Return the environment with the information that no name owns more than these levels of
        its value: other names may refer to the values below.
        """
        changed: dict[str, NameEntry] = {}
        for name, owned in levels:
            entry = changed.get(name, self.entries.get(name))
            if isinstance(entry, Held) and entry.owned > owned:
                changed[name] = entry._replace(owned=owned)
        return Environment({**self.entries, **changed}, self.facts) if changed else self

    def known(self, path: str) -> Type | None:
        """Return the type of the path: from a fact, or for a name from its entry; None when it has
        neither.
        """
        entry = self.entries.get(path)
        return self.facts.get(path, entry.type if isinstance(entry, Held) else None)

    def with_fact(self, path: str, type_: Type) -> Environment:
        return Environment(self.entries, {**self.facts, path: type_})


def without_refused(environment: Environment | None, known: Environment) -> Environment | None:
    """Return `environment`, but with the entries of `known` for refused names.

    A loop's body is lowered several times, and only the last time counts. A name that was refused
    earlier would silence refusals of the last time.
    """
    if environment is None:
        return None
    entries = dict(environment.entries)
    for name, entry in environment.entries.items():
        if isinstance(entry, Held) and is_refused(entry.type):
            old = known.entries.get(name)
            if isinstance(old, Held):
                entries[name] = entry._replace(value=old.value, type=old.type)
            else:
                del entries[name]
    return Environment(entries, environment.facts)


def join_environments(
    left: Environment | None, right: Environment | None, included: Environment | None = None
) -> Environment | None:
    """Return the names and facts that are true on every way to this point. None is a point that no
    way reaches.

    `included` was already joined into `left`. An entry that has not changed since then adds
    nothing.
    """
    if left is None or right is None or left is right:
        return left or right
    if left.entries is right.entries:
        return Environment(left.entries, _join_facts(left, right, left.entries))
    before = None if included is None else included.entries
    entries: dict[str, NameEntry] = {}
    for name, entry in left.entries.items():
        other = right.entries.get(name)
        # Skip the join for an entry that is the same on both ways. Most entries are, because a
        # statement changes few names.
        is_known = entry is other or (before is not None and before.get(name) is other)
        joined = entry if is_known else _join_entries(entry, other)
        if joined is not None:
            entries[name] = joined
    for name, entry in right.entries.items():
        if name not in left.entries and (joined := _join_entries(None, entry)) is not None:
            entries[name] = joined
    return Environment(entries, _join_facts(left, right, entries))


def _join_facts(
    left: Environment, right: Environment, entries: Mapping[str, NameEntry]
) -> Mapping[str, Type]:
    """Join what two ways know about the fields of names, such as those after `if note is None: note
    = ""`.

    A fact about a field is dropped when the name has another value on one way. So is a fact that
    says no more than `entries`.
    """
    if not (left.facts or right.facts):
        return left.facts
    joined: dict[str, Type] = {}
    for path in {**left.facts, **right.facts}:
        some, other, entry = left.known(path), right.known(path), entries.get(path)
        if some is not None and other is not None:
            type_ = bounded(join(some, other))
            if not isinstance(entry, Held) or entry.type != type_:
                joined[path] = type_
    return joined


def is_alike(some: Environment, other: Environment) -> bool:
    """Return True when the code after both points can be compiled in the same way. Names without a
    sure value are left out: reading such a name is refused anyway.
    """
    return some.facts == other.facts and _readable(some) == _readable(other)


def _readable(environment: Environment) -> dict[str, NameEntry]:
    return {
        name: entry
        for name, entry in environment.entries.items()
        if not isinstance(entry, Held) or entry.is_definite
    }


def _join_entries(left: NameEntry | None, right: NameEntry | None) -> NameEntry | None:
    if isinstance(left, Held) and isinstance(right, Held):
        is_definite = left.is_definite and right.is_definite
        owned, distinct = min(left.owned, right.owned), min(left.distinct, right.distinct)
        type_ = bounded(join(left.type, right.type))
        return Held(left.value, type_, is_definite, owned, distinct)
    only = left if right is None else right
    if isinstance(only, Held) and (left is None or right is None):
        return only._replace(is_definite=False) if only.is_definite else only
    return left if left == right else None


def item_path(path: str, key: str) -> str:
    return f'{path}["{key}"]'


def path_of(node: ast.expr) -> str | None:
    """Return the text `order.coupon` or `results[1]` for a name or a chain of accesses of a name;
    None for other nodes.
    """
    match node:
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))) if key.isidentifier():
            path = path_of(base)
            return None if path is None else item_path(path, key)
        case ast.Subscript(value=base, slice=ast.Constant(value=int(place))) if type(place) is int:
            path = path_of(base)
            return None if path is None else f"{path}[{place}]"
        case ast.Name(id=name) | ast.NamedExpr(target=ast.Name(id=name)):
            return name
        case ast.Attribute(value=base, attr=name):
            path = path_of(base)
            return None if path is None else f"{path}.{name}"
    return None
