"""The rules of `levels`: how many levels of each form of expression are alone, and are distinct."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.api.surface import ask, each, first, parallel, wait_for_event
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.compiler.context import Chain, Helper, Unit
from holdfast.compiler.environment import EVERYTHING, Environment, Held
from holdfast.compiler.expressions.iteration import bind, walk
from holdfast.compiler.expressions.query import Variable
from holdfast.compiler.statements.new_values import gives_closed_value
from holdfast.compiler.statements.ownership import (
    chains_in,
    has_parts_that_may_change,
    may_change,
    shared_levels,
)
from holdfast.compiler.steps.durable import find_durable, find_outside
from holdfast.compiler.steps.helpers import find_step
from holdfast.compiler.types.annotations import is_model
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    UNKNOWN,
    ModelOf,
    RequestOf,
    TupleOf,
    Type,
    is_refused,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions
    from holdfast.compiler.statements.statements import Statements

#: The methods whose result is read from JSON, and those that check a value and keep its parts.
_FROM_JSON: Final = frozenset({"loads", "model_validate_json", "validate_json"})
_VALIDATORS: Final = frozenset({"model_validate", "validate_python"})
#: The functions whose result has the items of their only argument, each once.
_SAME_ITEMS: Final = frozenset({"dict", "enumerate", "list", "reversed", "sorted", "tuple"})
_SAME_ITEMS_METHODS: Final = frozenset({"copy", "items", "model_copy", "model_dump", "values"})


def is_deep_copy(node: ast.AST) -> bool:
    """Return True for a copy that has no part in common with the original."""
    match node:
        case ast.Call(func=ast.Attribute(attr="deepcopy") | ast.Name("deepcopy"), args=[_]):
            return True
        case ast.Call(
            func=ast.Attribute(attr="model_copy"),
            keywords=[ast.keyword(arg="deep", value=ast.Constant(True))],
        ):
            return True
        case _:
            return False


def depth_of(target: ast.expr, items: ast.expr) -> int:
    """Return how many levels below the value of `items` the names of a loop are."""
    match items:
        case ast.Call(func=ast.Name("enumerate") | ast.Attribute(attr="items")):
            is_pair = True
        case _:
            is_pair = False
    return 1 if isinstance(target, ast.Name) or is_pair else 2


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of expressions at one point."""

    statements: Statements
    expressions: Expressions

    @property
    def environment(self) -> Environment:
        return self.expressions.environment

    def distinct(self, node: ast.expr) -> int:
        if not may_change(self._type(node)):
            return EVERYTHING
        if isinstance(node, ast.Name):
            entry = self.environment.entries.get(node.id)
            return max(1, entry.distinct) if isinstance(entry, Held) else 1
        match node:
            case ast.Attribute() | ast.Subscript() if self._is_access(node):
                return max(1, self.distinct(node.value) - 1)
            case ast.IfExp(body=body, orelse=orelse):
                return min(self.distinct(body), self.distinct(orelse))
            case ast.BoolOp(values=values):
                return min(map(self.distinct, values))
        if (same := self._with_same_items(node)) is not None:
            return self.distinct(same)
        match node:
            case ast.Call() if is_deep_copy(node):
                return self.alone(node)
            case ast.Call() if (helper := self.statements.helper(node)) is not None:
                return self._of_helper(node, helper)
            case ast.Call(func=ast.Name("max" | "min" | "next"), args=[items]):
                return max(1, self.distinct(items) - 1)
            case ast.Call(func=ast.Attribute(value=base, attr="get" | "pop"), args=[_, *others]):
                return min([max(1, self.distinct(base) - 1), *map(self.distinct, others)])
            case ast.Call(func=ast.Attribute(attr=method)) if method in _FROM_JSON:
                return EVERYTHING
            case ast.Call(func=ast.Attribute(attr=method), args=[value, *_]) if (
                method in _VALIDATORS
            ):
                return self.distinct(value)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._of_loop(node, self.distinct(node.generators[0].iter))
        if (changed := _changed_copy(node)) is not None:
            return self._of_changed_copy(*changed)
        parts = self._parts(node)
        kept = [part for part in parts or () if self._alone_part(part) < EVERYTHING]
        if len(kept) == 1 and not self._has_common(parts or ()):
            (part,) = kept
            if isinstance(part, ast.Starred):
                return self.distinct(part.value)
            return 1 + self.distinct(part)
        return max(1, self.alone(node))

    def alone(self, node: ast.expr) -> int:
        type_ = self._type(node)
        if not may_change(type_):
            return EVERYTHING
        if (taken := self.statements.unit.taken_levels.get(node)) is not None:
            return taken
        if isinstance(node, ast.Name):
            entry = self.environment.entries.get(node.id)
            return entry.owned if isinstance(entry, Held) else 0
        match node:
            case ast.Constant():
                return EVERYTHING
            case ast.Attribute() | ast.Subscript() if self._is_access(node):
                return max(0, self.alone(node.value) - 1)
            case ast.IfExp(body=body, orelse=orelse):
                return min(self.alone(body), self.alone(orelse))
            case ast.BoolOp(values=values):
                return min(map(self.alone, values))
            case ast.Call() if self.statements.is_durable(node):
                return self._of_step(node)
            case ast.Call() if is_deep_copy(node):
                return self.distinct(_original(node))
        is_new = self.statements.is_fresh(node)
        if is_new and not has_parts_that_may_change(type_):
            return EVERYTHING
        if (same := self._with_same_items(node)) is not None:
            return max(1, self.alone(same))
        match node:
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._of_loop(node, self.alone(node.generators[0].iter))
            case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
                if not self._has_common([left, right]):
                    return max(1, min(self.alone(left), self.alone(right)))
                return 1
            case ast.Call() if self.statements.helper(node) is not None:
                return 1 if is_new else 0
        parts = self._parts(node)
        if parts is None:
            return 1 if is_new else 0
        if self._has_common(parts):
            return 1
        return 1 + min(map(self._alone_part, parts), default=EVERYTHING)

    def _alone_part(self, node: ast.expr) -> int:
        """Return the alone levels of a part of a written value; `*items` is as many parts."""
        if isinstance(node, ast.Starred):
            return max(0, self.alone(node.value) - 1)
        return self.alone(node)

    def _of_changed_copy(self, base: ast.expr, changes: Mapping[str, ast.expr]) -> int:
        """Return the distinct levels of a copy with some new fields. A new value of a field may be
        made of the old value of that field, which the copy does not hold.
        """
        levels, values = self.distinct(base), list(changes.values())
        if self._has_common(values):
            return 1
        base_names = self.kept_names(base)
        for field, value in changes.items():
            names = self.kept_names(value)
            of_field = all(
                chain.accesses[:1] == (field,)
                for chain in chains_in(value, self._copies)
                if chain.name in base_names
            )
            is_own = isinstance(base, ast.Name) and names <= base_names and of_field
            if names & base_names and not is_own:
                return 1
            levels = min(levels, 1 + (self.distinct(value) if is_own else self.alone(value)))
        return levels

    def _type(self, node: ast.expr) -> Type:
        if isinstance(node, ast.Name) and isinstance(
            entry := self.environment.entries.get(node.id), Held
        ):
            return self.environment.facts.get(node.id, entry.type)
        with _unnoted(self.statements.unit):
            type_ = self.expressions.gone_through(node).type
        return UNKNOWN if is_refused(type_) else type_

    def _is_access(self, node: ast.Attribute | ast.Subscript) -> bool:
        """Return True for an access that gives a part, and is not a property with a value of its
        own.
        """
        if isinstance(node, ast.Subscript):
            return not isinstance(node.slice, ast.Slice)
        match self._type(node.value):
            case ModelOf(model):
                return node.attr in fields_of(model)
            case TupleOf(names=names):
                return node.attr in names
            case RequestOf():
                return node.attr == "data"
            case _:
                return False

    def _with_same_items(self, node: ast.expr) -> ast.expr | None:
        """Return the value whose items are those of `node`, each at most once."""
        match node:
            case ast.Subscript(value=base, slice=ast.Slice()):
                return base
            case ast.Call(func=ast.Name(id=name), args=[items]) if name in _SAME_ITEMS:
                return items if self.statements.expressions.is_builtin(name) else None
            case ast.Call(func=ast.Attribute(value=base, attr=method), args=[], keywords=[]):
                is_known = method in _SAME_ITEMS_METHODS and self.statements.helper(node) is None
                return base if is_known else None
            case _:
                return None

    def _parts(self, node: ast.expr) -> Sequence[ast.expr] | None:
        """Return the values of which a written list, dict, set or model is made; None for another
        expression.
        """
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return parts
            case ast.Dict(keys=keys, values=parts):
                return None if None in keys else parts
            case ast.Call(func=ast.Name() as cls) if is_model(self.statements.unit.outside(cls)):
                return [*node.args, *(keyword.value for keyword in node.keywords)]
            case _:
                return None

    def _has_common(self, parts: Sequence[ast.expr]) -> bool:
        """Return True when two of the parts may hold one object by one name."""
        seen: set[str] = set()
        for part in parts:
            names = self.kept_names(part)
            if names & seen:
                return True
            seen |= names
        return False

    def is_plain(self, node: ast.expr) -> bool:
        """Return True when the evaluation gives no name another value, and changes none. A step
        gets copies.
        """
        unit, scope = self.statements.unit, self.statements.scope
        return all(
            find_durable(unit, scope, part) is not None or find_step(unit, scope, part) is None
            for part in ast.walk(node)
        )

    def kept_names(self, node: ast.expr) -> set[str]:
        return {chain.name for chain in self.kept_chains(node)}

    def kept_chains(self, node: ast.expr) -> Iterator[Chain]:
        """Yield the parts of names that the value of an expression may hold."""
        if not may_change(self._type(node)):
            return
        for chain in chains_in(node, self._copies):
            is_whole = not chain.accesses and not chain.is_inner
            entry = self.environment.entries.get(chain.name)
            if not isinstance(entry, Held):
                continue
            if shared_levels(self.environment, chain) < EVERYTHING or (
                is_whole and may_change(entry.type)
            ):
                yield chain

    def _copies(self, node: ast.AST) -> bool:
        is_taken = node in self.statements.unit.taken_levels
        return is_taken or is_deep_copy(node) or self.statements.is_durable(node)

    def _of_step(self, node: ast.Call) -> int:
        step = find_durable(self.statements.unit, self.statements.scope, node)
        if isinstance(step, Task | Workflow) or step in (ask, wait_for_event):
            return EVERYTHING
        is_list = step in (each, parallel)
        branches = node.args[1:2] if step is each else node.args
        if (is_list or step is first) and branches and all(map(self._is_copied, branches)):
            return EVERYTHING
        return int(self.statements.is_fresh(node))

    def _is_copied(self, branch: ast.expr) -> bool:
        """Return True for a branch that gives the result of a task or of another workflow."""
        unit, scope = self.statements.unit, self.statements.scope
        match branch:
            case ast.Lambda(body=ast.Call() as body):
                step = find_durable(unit, scope, body)
            case ast.Name() | ast.Attribute():
                step = find_outside(unit, scope, branch)
            case _:
                return False
        return isinstance(step, Task | Workflow)

    def _of_helper(self, node: ast.Call, helper: Helper) -> int:
        known = self.statements.unit.distinct_calls.get(node)
        if known is not None:
            return known
        return EVERYTHING if helper.is_expression and gives_closed_value(helper) else 1

    def _of_loop(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        levels: int,
    ) -> int:
        """Return the levels of a comprehension, whose first iterable has `levels`."""
        inner: Levels = self
        key: ast.AST = node
        for one in node.generators:
            if key is not node:
                levels = inner.alone(one.iter)
            inner, key = inner._in_round(key, one, levels), one
        return 1 + inner.alone(node.value if isinstance(node, ast.DictComp) else node.elt)

    def _in_round(self, key: ast.AST, generator: ast.comprehension, levels: int) -> Levels:
        """Return the levels in a round of a loop. The items are alone as far as the iterable is;
        other names hold the same value in each round.
        """
        unit, target, items = self.statements.unit, generator.target, generator.iter
        with _unnoted(unit):
            through = walk(self.expressions, items, Variable("_item"), Variable("_position"))
            names = bind(self.expressions, target, through.element)
        environment = self.environment.shared((name, 0) for name in self.environment.entries)
        left = levels - depth_of(target, items)
        distinct = max(1, self.distinct(items) - depth_of(target, items))
        for name, held in names:
            known = held._replace(owned=max(0, left), distinct=distinct)
            environment = environment.with_entry(name.id, known)
        scope = unit.scope(self.expressions.scope, key, [name.id for name, _ in names])
        inner = replace(self.expressions, scope=scope, environment=environment)
        return Levels(self.statements, inner)


def _original(node: ast.Call) -> ast.expr:
    """Return what a deep copy copies."""
    match node.func:
        case ast.Attribute(value=base, attr="model_copy"):
            return base
        case _:
            return node.args[0]


def _changed_copy(node: ast.expr) -> tuple[ast.expr, Mapping[str, ast.expr]] | None:
    """Return the value and the new fields of `order.model_copy(update={…})` or `replace(order, …)`;
    None for another expression.
    """
    match node:
        case ast.Call(
            func=ast.Attribute(value=base, attr="model_copy"),
            args=[],
            keywords=[ast.keyword(arg="update", value=ast.Dict(keys=keys, values=values))],
        ):
            names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
            is_known = all(isinstance(name, str) for name in names)
            return (base, dict(zip(map(str, names), values, strict=True))) if is_known else None
        case ast.Call(
            func=ast.Name("replace") | ast.Attribute(attr="replace"), args=[base], keywords=[_, *_]
        ):
            return base, {str(word.arg): word.value for word in node.keywords}
        case _:
            return None


@contextmanager
def _unnoted(unit: Unit) -> Iterator[None]:
    """Lower code only to see its type. Its notes for the next pass are dropped, too: the code may
    be lowered here with fewer facts than at its own place.
    """
    library = unit.library
    steps, helpers = set(library.steps), set(library.helpers)
    with unit.trial():
        yield
    for node in library.steps.keys() - steps:
        del library.steps[node]
    library.helpers.intersection_update(helpers)
