"""`collections.Counter` and `collections.defaultdict` in a local variable, written as dicts.

The problem
-----------
JSON has only plain dicts, so a value cannot say that a missing key has a default. But a variable
can: the code of its function says which class each value of it has. So the functions of a module
are rewritten once, before the compiler reads them:

    counts = Counter(names)             counts = <the number of each name, as a dict>
    counts[name] += 1                   counts[name] = counts.get(name, 0) + 1
    groups = defaultdict(list)          groups = {}
    groups[key].append(one)             groups.setdefault(key, []).append(one)
    total = sums[key]                   total = sums.setdefault(key, 0)

A defaultdict keeps a key that is only read, and a Counter does not.

The rules
---------
The name is rewritten only if each of its uses is known to do the same with a plain dict. Anything
that could give the object another name, such as an argument of a helper, or show its class, such
as its text, leaves the function as it is, and the call of the class is refused.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from holdfast.compiler.default_dict_uses import DefaultKind, VariableUses, outside, own_nodes
from holdfast.compiler.rewriting import load, located, replace_nodes


class CountOf(ast.Call):
    """`Counter(items)`: the dict of how often each item is there. With two arguments the items are
    added to the dict that is the first one.
    """


def write_default_dicts(function: ast.AST, module: ModuleType, *, is_workflow: bool) -> None:
    """Rewrite the variables of a function whose values are all Counters or defaultdicts.

    `is_workflow`: what it returns becomes JSON.
    """
    names = vars(module)
    kinds = _kinds_of(function, names)
    for name, kind in kinds.items():
        uses = VariableUses(function, names, name, kind, is_workflow=is_workflow)
        if uses.knows_all():
            _Writer(uses).write()


def _kinds_of(function: ast.AST, names: Mapping[str, Any]) -> dict[str, DefaultKind]:
    """Return the variables that are bound only by calls of one of the classes, in one way."""
    found: dict[str, set[DefaultKind | None]] = {}
    values: set[ast.AST] = set()
    for node in own_nodes(function):
        target, value = _binding(node)
        kind = None if value is None else _kind_of(value, names)
        if target is not None and kind is not None:
            found.setdefault(target.id, set()).add(kind)
            values.add(target)
    if not found:
        return {}
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in values:
            found.pop(node.id, None)
        if isinstance(node, ast.arg):
            found.pop(node.arg, None)
    for node in ast.walk(function):
        if isinstance(node, ast.Nonlocal | ast.Global):
            for name in node.names:
                found.pop(name, None)
    return {
        name: kind
        for name, kinds in found.items()
        if len(kinds) == 1 and (kind := next(iter(kinds))) is not None
    }


def _binding(node: ast.AST) -> tuple[ast.Name | None, ast.expr | None]:
    match node:
        case ast.Assign(targets=[ast.Name() as target], value=value):
            return target, value
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
            return target, value
        case _:
            return None, None


def _kind_of(value: ast.expr, names: Mapping[str, Any]) -> DefaultKind | None:
    match value:
        case ast.Call(func=function, args=[factory, *rest], keywords=[]) if (
            outside(function, names) is collections.defaultdict and len(rest) < 2
        ):
            default = _default(factory, names)
            return None if default is None else DefaultKind(is_counter=False, default=default)
        case ast.Call(func=function, args=args) if (
            outside(function, names) is collections.Counter and len(args) < 2
        ):
            is_odd = any(isinstance(one, ast.Starred) for one in args)
            is_odd = is_odd or any(one.arg is None for one in value.keywords)
            is_mixed = bool(args and value.keywords)
            return None if is_odd or is_mixed else DefaultKind(is_counter=True, default="0")
        case _:
            return None


#: The code that makes the value of a missing key.
_DEFAULTS: Final[Mapping[object, str]] = {
    int: "0",
    float: "0.0",
    str: "''",
    bool: "False",
    list: "[]",
    set: "set()",
}


def _default(factory: ast.expr, names: Mapping[str, Any]) -> str | None:
    match factory:
        case ast.Lambda(
            args=ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kwarg=None),
            body=ast.Constant(value=bool() | int() | float() | str()) as body,
        ):
            return repr(body.value)
        case ast.Name():
            found = outside(factory, names)
            return next((code for one, code in _DEFAULTS.items() if one is found), None)
        case _:
            return None


class _Writer:
    """Rewrites one variable of one function."""

    def __init__(self, uses: VariableUses) -> None:
        self.uses = uses
        self.function = uses.function
        self.name = uses.name
        self.kind = uses.kind
        self.used = {node.id for node in ast.walk(uses.function) if isinstance(node, ast.Name)}
        self.used |= {node.arg for node in ast.walk(uses.function) if isinstance(node, ast.arg)}

    def write(self) -> None:
        for node in list(ast.walk(self.function)):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list):
                    body[:] = [new for one in body for new in self._statement(one)]
        replace_nodes(self.function, _Reads(self).rule)

    def _statement(self, node: ast.AST) -> list[Any]:
        match node:
            case ast.Assign(targets=[ast.Name(id=self.name)], value=ast.Call() as value):
                return [located(ast.Assign(node.targets, self._start(value)), node)]
            case ast.AnnAssign(target=ast.Name(id=self.name) as target, value=ast.Call() as value):
                return [self._annotated(node, target, self._start(value))]
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=self.name)) as target):
                return self._changed(node, target)
            case ast.Delete(targets=[ast.Subscript(value=ast.Name(id=self.name), slice=key)]) if (
                self.kind.is_counter
            ):
                call = self.call("pop", key, ast.Constant(None))
                return [located(ast.Expr(call), node)]
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=self.name), attr="update"), args=[more]
                )
            ) if self.kind.is_counter:
                added = CountOf(load("dict"), [load(self.name), more], [])
                whole = ast.Call(load("dict"), [added], [])
                return [located(ast.Assign([ast.Name(self.name, ast.Store())], whole), node)]
            case _:
                return [node]

    def _start(self, call: ast.Call) -> ast.expr:
        """Return the first value of the variable."""
        given = call.args if self.kind.is_counter else call.args[1:]
        if call.keywords:
            keys: list[ast.expr | None] = [ast.Constant(word.arg) for word in call.keywords]
            return ast.Dict(keys, [word.value for word in call.keywords])
        if not given:
            return ast.Dict([], [])
        dict_ = load("dict")
        if not self.kind.is_counter:
            return ast.Call(dict_, given, [])
        return ast.Call(dict_, [CountOf(call.func, given, [])], [])

    def _annotated(self, node: ast.AnnAssign, target: ast.Name, value: ast.expr) -> ast.stmt:
        annotation = node.annotation
        match annotation:
            case ast.Subscript(value=ast.Name() | ast.Attribute() as base, slice=inside) if outside(
                base, self.uses.names
            ) in (collections.defaultdict, collections.Counter):
                if outside(base, self.uses.names) is collections.Counter:
                    inside = ast.Tuple([inside, load("int")], ast.Load())
                annotation = ast.Subscript(load("dict"), inside, ast.Load())
            case ast.Name() | ast.Attribute() if outside(annotation, self.uses.names) in (
                collections.defaultdict,
                collections.Counter,
            ):
                return located(ast.Assign([target], value), node)
        return located(ast.AnnAssign(target, annotation, value, 1), node)

    def _changed(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        """Return the statements for `counts[key] += value`."""
        key, before = target.slice, []
        if self.kind.default == "[]":
            longer = ast.Attribute(self.call("setdefault", key, self._default()), "extend")
            return [located(ast.Expr(ast.Call(longer, [node.value], [])), node)]
        is_simple = isinstance(node.value, ast.Name | ast.Constant)
        if not isinstance(key, ast.Constant) and not (isinstance(key, ast.Name) and is_simple):
            # The key is computed once, and before the value.
            name = self._new_name()
            before.append(located(ast.Assign([ast.Name(name, ast.Store())], key), node))
            key = ast.copy_location(load(name), key)
        store = ast.copy_location(ast.Subscript(load(self.name), key, ast.Store()), target)
        if self.kind.is_counter or is_simple:
            old = ast.copy_location(self.call("get", key, self._default()), target)
            total = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
            return [*before, located(ast.Assign([store], total), node)]
        # The key stays if the value cannot be computed.
        added = located(ast.Expr(self.call("setdefault", key, self._default())), node)
        return [*before, added, located(ast.AugAssign(store, node.op, node.value), node)]

    def _new_name(self) -> str:
        name, number = f"{self.name}_key", 2
        while name in self.used:
            name, number = f"{self.name}_key_{number}", number + 1
        self.used.add(name)
        return name

    def _default(self) -> ast.expr:
        return _parsed(self.kind.default)

    def call(self, method: str, *given: ast.expr) -> ast.Call:
        return ast.Call(ast.Attribute(load(self.name), method, ast.Load()), [*given], [])

    def read(self, item: ast.Subscript) -> ast.expr:
        if self.kind.is_counter:
            return self.call("get", item.slice, self._default())
        return self.call("setdefault", item.slice, self._default())

    def stays(self, item: ast.Subscript) -> bool:
        return not self.kind.is_counter and self.uses.is_present(item)


class _Reads:
    """The rule that replaces the reads of the variable."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer

    def rule(self, node: ast.AST) -> ast.AST:
        writer = self.writer
        match node:
            case ast.Subscript() if _is_read_of(node, writer.name) and not writer.stays(node):
                return located(writer.read(node), node)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=writer.name), attr="total")) if (
                writer.kind.is_counter
            ):
                return located(ast.Call(load("sum"), [writer.call("values")], []), node)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=writer.name), attr="most_common"), args=given
            ) if writer.kind.is_counter:
                return located(_most_common(writer.call("items"), given), node)
            case _:
                return node


def _is_read_of(node: ast.Subscript, name: str) -> bool:
    is_own = isinstance(node.value, ast.Name) and node.value.id == name
    return is_own and isinstance(node.ctx, ast.Load)


def _most_common(items: ast.expr, given: list[ast.expr]) -> ast.expr:
    """Return `sorted(items, key=lambda pair: pair[1], reverse=True)[: max(n, 0)]`."""
    made = _parsed("sorted(x, key=lambda pair: pair[1], reverse=True)")
    assert isinstance(made, ast.Call)
    made.args = [items]
    match given:
        case [] | [ast.Constant(value=None)]:
            return made
        case [ast.Constant(value=int()) as number]:
            stop: ast.expr = number
        case [number]:
            zero = ast.Constant(0)
            stop = ast.Call(load("max"), [number, zero], [])
    return ast.Subscript(made, ast.Slice(None, stop), ast.Load())


def _parsed(code: str) -> ast.expr:
    """Return new code without a place: it gets that of the code that it replaces."""
    made = ast.parse(code, mode="eval").body
    for part in ast.walk(made):
        for attribute in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if hasattr(part, attribute):
                delattr(part, attribute)
    return made
