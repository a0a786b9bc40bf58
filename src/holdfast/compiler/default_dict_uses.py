"""The uses of a variable that holds a Counter or a defaultdict; see `default_dicts`."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from holdfast.api.surface import publish
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow

#: The methods that do the same with a plain dict of the same items.
_METHODS: Final = frozenset(
    {"clear", "get", "items", "keys", "pop", "setdefault", "update", "values"}
)
#: The functions whose result does not contain the object itself.
_READERS: Final = frozenset(
    {"all", "any", "dict", "enumerate", "len", "list", "max", "min", "set", "sorted", "sum"}
    | {"tuple", "bool", "reversed"}
)
_DISPLAYS: Final = (ast.Dict, ast.List, ast.Tuple)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONTAINERS: Final = ("[]", "set()")


@dataclass(frozen=True, slots=True)
class DefaultKind:
    """The class of a variable's values. `default` makes the value of a missing key."""

    is_counter: bool
    default: str


def outside(node: ast.expr, names: Mapping[str, Any]) -> object:
    """Return the object of the module, or of a module that it imports, that a name refers to."""
    match node:
        case ast.Name(id=name):
            return names.get(name, getattr(builtins, name, None))
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if isinstance(
            names.get(owner), ModuleType
        ):
            return getattr(names[owner], name, None)
        case _:
            return None


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of the functions inside of it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


class VariableUses:
    """The uses of one variable of one function. `names`: those of the module. `is_workflow`: the
    function is a workflow, so what it returns becomes JSON.
    """

    def __init__(
        self,
        function: ast.AST,
        names: Mapping[str, Any],
        name: str,
        kind: DefaultKind,
        *,
        is_workflow: bool,
    ) -> None:
        self.function = function
        self.names = names
        self.name = name
        self.kind = kind
        self.is_workflow = is_workflow
        self.parents = {
            child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)
        }

    def knows_all(self) -> bool:
        names = [node.arg for node in ast.walk(self.function) if isinstance(node, ast.arg)]
        is_free = self.name not in names and self._is_plain("dict", "sorted", "sum", "set")
        return is_free and all(
            self._is_known(node)
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and node.id == self.name
        )

    def _is_plain(self, *functions: str) -> bool:
        """Return True when the builtins that the new code names are still Python's own."""
        return not any(one in self.names or one in self._bound() for one in functions)

    def _bound(self) -> set[str]:
        return {
            node.id
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    def _is_known(self, use: ast.Name) -> bool:
        parent = self.parents[use]
        if isinstance(use.ctx, ast.Store):
            return isinstance(parent, ast.Assign | ast.AnnAssign) and not self._inner(use)
        match parent:
            case ast.Subscript(value=owner) if owner is use:
                return self._knows_item(parent)
            case ast.Attribute(value=owner, attr=attr) if owner is use:
                return self._knows_method(parent, attr)
            case ast.Call(func=function, args=args) if use in args:
                return self._takes(function)
            case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
                return iterated is use
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[container]):
                return container is use
            case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
                # Two Counters are equal, too, where one has a key with 0 that the other has not.
                return not self.kind.is_counter
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                return test is use
            case ast.Dict(keys=keys):
                is_spread = use in parent.values and keys[parent.values.index(use)] is None
                return is_spread or self._becomes_json(use)
            case _:
                return self._becomes_json(use)

    def _takes(self, function: ast.expr) -> bool:
        """Return True for a call whose result does not keep the object, or keeps its JSON."""
        if isinstance(function, ast.Name) and function.id in _READERS:
            return self._is_plain(function.id)
        found = outside(function, self.names)
        return isinstance(found, Task | Workflow) or found is publish or found is json.dumps

    def _becomes_json(self, use: ast.expr) -> bool:
        node: ast.AST = use
        parent = self.parents[node]
        while isinstance(parent, (*_DISPLAYS, ast.keyword)):
            node, parent = parent, self.parents[parent]
        if isinstance(parent, ast.Call) and parent.func is not node:
            found = outside(parent.func, self.names)
            return isinstance(found, Task | Workflow) or found is publish
        return isinstance(parent, ast.Return) and self.is_workflow and not self._inner(use)

    def _inner(self, node: ast.AST) -> bool:
        """Return True inside of a function in the function."""
        return self._is_inside(node, _SCOPES)

    def _is_inside(self, node: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
        while node in self.parents:
            node = self.parents[node]
            if node is self.function:
                return False
            if isinstance(node, kinds):
                return True
        return False

    def _knows_item(self, item: ast.Subscript) -> bool:
        if isinstance(item.slice, ast.Slice):
            return False
        parent = self.parents[item]
        if isinstance(item.ctx, ast.Load):
            return self.kind.is_counter or self._knows_read(item)
        if self._inner(item):
            return False
        is_list = self.kind.default in _CONTAINERS
        match parent:
            case ast.AugAssign(op=operator):
                return not is_list or (self.kind.default == "[]" and isinstance(operator, ast.Add))
            case ast.Delete(targets=targets):
                return not self.kind.is_counter or len(targets) == 1
            case _:
                return isinstance(parent, ast.Assign) and len(parent.targets) == 1

    def _knows_read(self, item: ast.Subscript) -> bool:
        """Return True for a read of a defaultdict, which adds the key if it is missing."""
        if self.is_present(item) or self._method_of(item) is not None:
            return True
        # A read in a branch or a comprehension cannot change the variable.
        return not self._is_inside(item, (*_SCOPES, *_COMPREHENSIONS))

    def _method_of(self, item: ast.Subscript) -> str | None:
        """Return the method of `groups[key].append(one)`, a statement of the function itself."""
        methods = {"[]": ("append", "extend"), "set()": ("add",)}
        function = self.parents[item]
        call = self.parents.get(function)
        is_statement = isinstance(call, ast.Call) and isinstance(self.parents[call], ast.Expr)
        if not (isinstance(function, ast.Attribute) and is_statement) or self._inner(item):
            return None
        known = methods.get(self.kind.default, ())
        return function.attr if function.attr in known else None

    def is_present(self, item: ast.Subscript) -> bool:
        """Return True for `groups[key]` in a loop over the keys of `groups`."""
        if not isinstance(item.slice, ast.Name):
            return False
        key, node = item.slice.id, self.parents[item]
        while node is not self.function:
            if any(_bindings(node, key)):
                # The innermost binding counts.
                is_only = len(list(_bindings(node, key))) == 1
                is_loop = is_only and self._is_loop_over_keys(node, key)
                return is_loop and not self._removes(node)
            node = self.parents[node]
        return False

    def _is_loop_over_keys(self, node: ast.AST, key: str) -> bool:
        match node:
            case ast.For(target=target, iter=items):
                return self._binds(target, items, key)
            case (
                ast.ListComp(generators=loops)
                | ast.SetComp(generators=loops)
                | ast.DictComp(generators=loops)
                | ast.GeneratorExp(generators=loops)
            ):
                return any(self._binds(loop.target, loop.iter, key) for loop in loops)
            case ast.Lambda():
                return self._orders(node, key)
            case _:
                return False

    def _orders(self, function: ast.Lambda, key: str) -> bool:
        """Return True for the key of `sorted(counts, key=lambda name: …)`."""
        word = self.parents[function]
        call = self.parents.get(word)
        match call:
            case ast.Call(func=ast.Name(id="sorted" | "max" | "min"), args=[items]) if (
                isinstance(word, ast.keyword) and word.arg == "key"
            ):
                return self._binds(ast.Name(key), items, key)
            case _:
                return False

    def _binds(self, target: ast.expr, items: ast.expr, key: str) -> bool:
        """Return True when a loop over the items gives `key` each key of the variable."""
        if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.args:
            if items.func.id not in ("list", "sorted"):
                return False
            items = items.args[0]
        match items:
            case ast.Name(id=name):
                is_own = name == self.name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="keys")):
                is_own = name == self.name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items")):
                is_own = name == self.name
                target = target.elts[0] if isinstance(target, ast.Tuple) else ast.Tuple([])
            case _:
                return False
        return is_own and isinstance(target, ast.Name) and target.id == key

    def _removes(self, loop: ast.AST) -> bool:
        """Return True when a key may be removed in the loop, or in a function that it may call."""
        for node in ast.walk(self.function):
            match node:
                case (
                    ast.Subscript(value=ast.Name(id=name), ctx=ast.Del())
                    | ast.Attribute(value=ast.Name(id=name), attr="pop" | "clear")
                    | ast.Name(id=name, ctx=ast.Store())
                ) if name == self.name and (self._inner(node) or self._has(loop, node)):
                    return True
        return False

    def _has(self, outer: ast.AST, node: ast.AST) -> bool:
        while node is not outer and node in self.parents:
            node = self.parents[node]
        return node is outer

    def _knows_update(self, call: ast.Call) -> bool:
        if len(call.args) != 1 or call.keywords or self._inner(call):
            return False
        # Python goes through the items while it changes the Counter.
        names = {node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)}
        return isinstance(self.parents[call], ast.Expr) and self.name not in names

    def _knows_method(self, attribute: ast.Attribute, attr: str) -> bool:
        parent = self.parents[attribute]
        is_call = isinstance(parent, ast.Call) and parent.func is attribute
        if self.kind.is_counter and attr in ("most_common", "total"):
            is_known = isinstance(parent, ast.Call) and len(parent.args) < 2 and not parent.keywords
            return is_call and is_known and self._is_plain("max")
        if self.kind.is_counter and attr == "update":
            return isinstance(parent, ast.Call) and is_call and self._knows_update(parent)
        return attr in _METHODS


def _bindings(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield each place that gives the name a value."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=bound, ctx=ast.Store()) | ast.arg(arg=bound) if bound == name:
                yield part
