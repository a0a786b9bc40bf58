"""A list or dict may be changed only while one name refers to it.

Python shows a change through every name of the list. A state machine has values, not references, so
it would show the change through one name only. A name owns its list from the assignment of a new
list until the list itself is assigned or passed to something else. Only in between may it be
changed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from holdfast.compiler.walking import children, walk

_INNER_CHANGES: Final = frozenset({"add", "append", "extend"})
#: The methods that change the list, dict or set on which they are called.
CHANGES: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "sort", "update"}
)
#: The methods that change the list or dict on which they are called and also return a value.
TAKES: Final = frozenset({"pop", "setdefault"})
#: The methods that do not store their arguments. After such a call no new name refers to an
#: argument.
_HARMLESS_METHODS: Final = frozenset(
    [
        "count",
        "endswith",
        "extend",
        "find",
        "index",
        "join",
        "removeprefix",
        "removesuffix",
        "replace",
        "split",
        "startswith",
        "strip",
    ]
)
KEEPING_FUNCTIONS: Final = frozenset({"max", "min", "next"})
_FRESH_METHODS: Final = frozenset(
    {"copy", "deepcopy", "items", "keys", "model_copy", "split", "splitlines", "values"}
    | {"difference", "intersection", "union"}
)

#: A comprehension with steps becomes a loop that makes its list longer in place.
_LOOPS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

IsDurable = Callable[[ast.AST], bool]
#: A function that returns True when a call returns a list or dict to which no other name refers. It
#: returns None when only the form of the call can decide.
IsFreshCall = Callable[[ast.Call], bool | None]


def changes_in_place(function: ast.AST) -> bool:
    """Return True when something in a function changes a list, dict or set, or may change one."""
    return any(is_change(node) or isinstance(node, _LOOPS) for node in walk(function))


def is_change(node: ast.AST) -> bool:
    """Return True for a statement or a call that changes a list, dict or set, or may change one."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Name() | ast.Attribute() | ast.Subscript(), attr=method
                )
            )
        ):
            return method in CHANGES or method in TAKES
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in TAKES
        case ast.AugAssign() | ast.Delete():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(), attr=method))):
            # `inner_lists.py` handles these changes.
            return method in _INNER_CHANGES
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Subscript | ast.Attribute) for target in targets)
        case ast.AnnAssign(target=ast.Subscript() | ast.Attribute()):
            return True
        case _:
            return False


def changed_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names whose values the nodes change in place, or a part of them."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=path, attr=method)) if (
                method in CHANGES or method in TAKES
            ):
                yield from _root_of(path)
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del())
                | ast.Subscript(ctx=ast.Store() | ast.Del())
            ):
                yield from _root_of(node)


def _root_of(node: ast.expr) -> Iterator[str]:
    """Yield the name of `order` in `order.lines[0]`, and in `order.groups.setdefault("a", [])`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def captured_names(
    function: ast.FunctionDef, is_step: IsDurable, pasted: Collection[ast.FunctionDef]
) -> frozenset[str]:
    """Return the outer names that branches keep or return: another name may refer to their values
    then. `pasted` functions are no branches.
    """
    found: set[str] = set()
    functions = {
        node.name
        for node in walk(function)
        # Leave out the workflow itself. A call of its name starts a child, which gets copies of the
        # arguments.
        if isinstance(node, ast.FunctionDef) and node is not function
    }
    for node in walk(function):
        if isinstance(node, ast.Lambda):
            found.update(kept_names(node.body, is_step, is_kept=True))
            found.update(_given_to(functions, node.body, is_step))
        elif isinstance(node, ast.FunctionDef) and node not in (function, *pasted):
            found.update(kept_by_statements(node, is_step) - _given_names(node))
    return frozenset(found)


def _given_to(functions: Collection[str], node: ast.expr, is_step: IsDurable) -> Iterator[str]:
    """Yield the arguments of a call that the called local function may keep."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in functions:
            for argument in arguments:
                yield from kept_names(argument, is_step, is_kept=True)


def kept_by_statements(function: ast.FunctionDef, is_step: IsDurable) -> set[str]:
    """Return the names whose values the statements of a function keep or return."""
    return {
        name
        for part in walk(function)
        if isinstance(part, ast.expr)
        for name in kept_names(part, is_step, is_kept=False)
    } | {
        name
        for part in walk(function)
        if isinstance(part, ast.Return | ast.Assign | ast.AnnAssign) and part.value is not None
        for name in kept_names(part.value, is_step, is_kept=True)
    }


def _given_names(function: ast.FunctionDef) -> set[str]:
    """Return the names that are local to the branch."""
    own = {part.arg for part in walk(function.args) if isinstance(part, ast.arg)}
    return own | {
        part.id
        for part in walk(function)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def kept_names(node: ast.AST, is_durable: IsDurable, *, is_kept: bool) -> Iterator[str]:
    """Yield the names whose value is part of the result of `node`, or is kept by a part of it.

    `is_kept` says whether the result is used. A step gets copies, so it keeps nothing.
    """
    match node:
        case ast.Name(id=name):
            if is_kept:
                yield name
            return
        case ast.Lambda():
            return
        case ast.Call() if is_durable(node):
            return
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            inner = [(part, True) for part in parts]
        case ast.Dict(keys=keys, values=values):
            # `**other` copies the items of the other dict, so the new dict does not keep the other
            # dict itself.
            inner = [(value, key is not None) for key, value in zip(keys, values, strict=True)]
        case ast.BoolOp(values=parts):
            inner = [(part, is_kept) for part in parts]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            inner = [(test, False), (body, is_kept), (orelse, is_kept)]
        case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
            inner = [(element, True), *((part.iter, False) for part in node.generators)]
        case ast.DictComp(value=value):
            inner = [(value, True), *((part.iter, False) for part in node.generators)]
        case ast.Call(func=function, args=arguments, keywords=keywords):
            keeps = _keeps_arguments(function)
            named = [(keyword.value, True) for keyword in keywords]
            inner = [(function, False), *((part, keeps) for part in arguments), *named]
        case _:
            inner = [(child, False) for child in children(node) if isinstance(child, ast.expr)]
    for part, is_part_kept in inner:
        yield from kept_names(part, is_durable, is_kept=is_part_kept)


def _keeps_arguments(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name):
            # A function of the author may keep or return its arguments, so another name may refer
            # to them after the call.
            return name in KEEPING_FUNCTIONS or not hasattr(builtins, name)
        case ast.Attribute(attr=method):
            return method not in _HARMLESS_METHODS
        case _:
            return True


def is_fresh(node: ast.AST, is_fresh_call: IsFreshCall) -> bool:
    """Return True when nothing else can refer to the list or dict that `node` gives."""
    match node:
        case ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp() | ast.BinOp():
            return True
        case ast.Set() | ast.SetComp():
            return True
        case ast.Subscript(slice=ast.Slice()):
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return is_fresh(body, is_fresh_call) and is_fresh(orelse, is_fresh_call)
        case ast.BoolOp(values=parts):
            return all(is_fresh(part, is_fresh_call) for part in parts)
        case ast.Call() if (known := is_fresh_call(node)) is not None:
            return known
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _FRESH_METHODS
        case ast.Call(func=ast.Name(id=name)):
            return name not in KEEPING_FUNCTIONS
        case _:
            return False


def walked_names(node: ast.expr) -> Iterator[str]:
    """Yield the names over which a `for` with this iterable iterates while its body runs."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute() | ast.Subscript():
            yield path_text(node)
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=arguments):
            for argument in arguments:
                yield from walked_names(argument)
        case ast.Call(func=ast.Attribute(value=base, attr="items" | "keys" | "values")):
            yield from walked_names(base)
        case ast.IfExp(body=body, orelse=orelse):
            yield from walked_names(body)
            yield from walked_names(orelse)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from walked_names(part)


def path_text(node: ast.expr) -> str:
    """Return the text of a path, the same for all subscripts, because two of them may mean the same
    item.
    """
    match node:
        case ast.Attribute(value=base, attr=name):
            return f"{path_text(base)}.{name}"
        case ast.Subscript(value=base):
            return f"{path_text(base)}[…]"
        case _:
            return ast.unparse(node)
