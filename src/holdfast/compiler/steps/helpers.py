"""Plain helpers: an undecorated `def` of the author, whose body replaces its call.

The problem
-----------
A helper is not a step: no record names it, and a newer version of it must not
change a running execution. So the compiler copies its body into the state machine, once for each
call. The body is in the language of workflows, and may contain durable calls.

Two forms ---------
* An expression: docstring, names that are assigned once and more, `if`, `return`. It becomes part
  of the JSONata expression around the call. So the call is possible anywhere, also where an
  expression is evaluated never or many times: `[price(line) for line in lines]`
  (`expressions/inlining.py`).
* Statements: anything else, such as loops, `try`, `raise`, and durable calls. The body runs before
  the statement that contains the call, in the same way as a durable call (`steps/hoisting.py` and
  `statements/inlining.py`).

A helper is a `def` at the top of a module of the author, or a local `def` of the workflow or of
another helper; `class_helpers` has the methods of models. Generators and decorated functions are
not helpers: their call runs more code than their body. Functions of libraries are not helpers
either: an update of a library would change definitions.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any, Final

from holdfast.compiler.context import Dispatch, Helper, NamedValue, Repeated, Taking, Unit
from holdfast.compiler.expressions.outside import tasks_by_name
from holdfast.compiler.source import Source
from holdfast.compiler.statements.aliases import TAKES, changed_names, is_change, kept_by_statements
from holdfast.compiler.statements.local_names import bound_names, local_names
from holdfast.compiler.steps.durable import find_durable
from holdfast.compiler.types.failures import is_own
from holdfast.compiler.variable_names import VariableScopeNames
from holdfast.compiler.walking import children, walk


def find_step(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> Any:
    """Return what `node` calls if it must become a statement of its own before the present one: a
    durable call, a helper with statements, or a change that also gives a value, such as `xs.pop()`.
    None for any other node.
    """
    found = find_durable(unit, scope, node) or find_tools(unit, scope, node)
    if found is not None:
        return found
    helper = find_helper(unit, scope, node)
    if helper is not None:
        return None if helper.is_expression else helper
    return find_taking(scope, node) or find_repeated(unit, scope, node)


#: Functions that use all items of a generator. `any` and `all` stop early.
_USERS: Final = frozenset(
    {"dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"}
)


def find_repeated(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> Repeated | None:
    """Return Repeated for a comprehension that contains a step; None for any other node."""
    match node:
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            pass
        case ast.GeneratorExp() if node in unit.used_up:
            pass
        case ast.Call(func=ast.Name("any" | "all"), args=[ast.GeneratorExp()], keywords=[]):
            pass
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as items, *_]) if (
            name in _USERS and not scope.is_local(name)
        ):
            unit.used_up.add(items)
            return None
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.GeneratorExp() as items]):
            unit.used_up.add(items)
            return None
        case _:
            return None
    is_repeated = any(_is_step(unit, scope, part) for part in _evaluated_parts(unit, node))
    return Repeated() if is_repeated else None


def _is_step(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> bool:
    if isinstance(node, ast.expr) and node in unit.library.steps:
        return True
    return isinstance(node, ast.Call) and find_step(unit, scope, node) is not None


def _evaluated_parts(unit: Unit, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes inside of an expression, without those of its lambdas. An expression that
    another one replaces is not evaluated.
    """
    for child in children(node):
        part = unit.library.rewritten.get(child, child) if isinstance(child, ast.expr) else child
        if not isinstance(part, ast.Lambda):
            yield part
            yield from _evaluated_parts(unit, part)


def find_taking(scope: VariableScopeNames, node: ast.AST) -> Taking | None:
    """Return the change that a call such as `xs.pop()` makes to a local list or dict while it gives
    a value. None for any other node.
    """
    match node:
        case ast.NamedExpr(target=ast.Name(id=name)):
            return NamedValue(name)
        case ast.Call(func=ast.Attribute(value=path, attr=method)) if method in TAKES:
            while isinstance(path, ast.Attribute | ast.Subscript):
                path = path.value
            is_local = isinstance(path, ast.Name) and scope.is_local(path.id)
            return Taking(path.id) if isinstance(path, ast.Name) and is_local else None
        case _:
            return None


def find_tools(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> Dispatch | None:
    """Return the tasks among which a call such as `TOOLS[name](…)` chooses; None for any other
    node.
    """
    match node:
        case ast.Call(func=ast.Subscript(value=ast.Name() | ast.Attribute() as base)):
            root: ast.expr = base
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and scope.is_local(root.id):
                return None
            tasks = tasks_by_name(unit.outside(base))
            return None if tasks is None else Dispatch(tasks)
        case _:
            return None


def find_helper(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> Helper | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return None
    if node not in unit.helpers:
        unit.helpers[node] = helper_called(unit, scope, node.func, ())
    return unit.helpers[node]


def is_step(unit: Unit, scope: VariableScopeNames, node: ast.AST) -> bool:
    """Return True for a durable call. It gets copies of its arguments."""
    return find_durable(unit, scope, node) is not None


def keeps_parameters(helper: Helper, around: tuple[ast.FunctionDef, ...] = ()) -> bool:
    """Return True when the body of a helper may keep a list or dict from its arguments. `around`:
    the bodies that call it.
    """
    node, unit = helper.node, helper.unit
    if node in around:
        return True
    inner = VariableScopeNames(None, local_names(node), helper.sees)

    def keeps_nothing(part: ast.AST) -> bool:
        if is_step(unit, helper.sees, part):
            return True
        called = None
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            called = helper_called(unit, inner, part.func, (*around, node))
        return called is not None and not keeps_parameters(called, (*around, node))

    kept = kept_by_statements(node, keeps_nothing)
    return any(part.arg in kept for part in walk(node.args) if isinstance(part, ast.arg))


def changed_by(helper: Helper) -> frozenset[str]:
    """Return the parameters and outer variables that a helper changes for its caller, too."""
    return _changed_by(helper, ())


def _changed_by(helper: Helper, around: tuple[ast.FunctionDef, ...]) -> frozenset[str]:
    node, known = helper.node, helper.unit.changed
    # The function of a comprehension has a name that no author can write.
    if node in around or not node.name.isidentifier():
        return frozenset()
    if node not in known:
        scope = VariableScopeNames(None, local_names(node), helper.sees)
        parts = list(own_parts(node))
        changed = {*changed_names(parts), *_changed_by_calls(helper, scope, (*around, node))}
        parameters = {part.arg for part in walk(node.args) if isinstance(part, ast.arg)}
        found = {name for name in changed & parameters if not is_bound_in_body(node, name)}
        if helper.is_local:
            found |= changed - scope.local_names.keys()
            for part in parts:
                found.update(part.names if isinstance(part, ast.Nonlocal) else ())
        known[node] = frozenset(found)
    return known[node]


def _changed_by_calls(
    helper: Helper, scope: VariableScopeNames, around: tuple[ast.FunctionDef, ...]
) -> Iterator[str]:
    """Yield the names that the helpers which a helper calls change."""
    for part in own_parts(helper.node):
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Name)):
            continue
        called = helper_called(helper.unit, scope, part.func, around)
        if called is None:
            continue
        changed = _changed_by(called, around)
        places = [one.arg for one in (*called.node.args.posonlyargs, *called.node.args.args)]
        given = [*zip(places, part.args, strict=False)]
        given += [(str(word.arg), word.value) for word in part.keywords]
        for name, value in given:
            if name in changed and isinstance(value, ast.Name):
                yield value.id
        if called.is_local:
            yield from changed - {*places}


def pasted_functions(
    unit: Unit, scope: VariableScopeNames, function: ast.FunctionDef
) -> tuple[ast.FunctionDef, ...]:
    """Return the local helpers that change variables of `function`, if each of their names only
    stands in calls that become statements of `function` itself.
    """
    found: dict[str, ast.FunctionDef] = {}
    for part in own_parts(function):
        if isinstance(part, ast.FunctionDef):
            helper = _helper(unit, scope, part, (), is_local=True)
            if changed_by(helper) and not has_functions(part):
                found[part.name] = part
    called = [part for one in (function, *found.values()) for part in own_parts(one)]
    calls = [
        part.func.id
        for part in called
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    ]
    named = [part.id for part in walk(function) if isinstance(part, ast.Name)]
    is_called = all(named.count(name) == calls.count(name) for name in found)
    return tuple(found.values()) if is_called else ()


def lacks_nonlocal(helper: Helper) -> bool:
    """Return True when `nonlocal` is missing in a local helper: it changes a variable of its own
    that has no value, and Python raises UnboundLocalError.
    """
    parameters = {part.arg for part in walk(helper.node.args) if isinstance(part, ast.arg)}
    own = {*local_names(helper.node)} - parameters - {*changed_by(helper)}
    return any(
        isinstance(part, ast.AugAssign)
        and isinstance(part.target, ast.Name)
        and part.target.id in own
        and helper.sees.is_local(part.target.id)
        for part in own_parts(helper.node)
    )


def has_functions(node: ast.FunctionDef) -> bool:
    """Return True when a function contains a `def` or a `lambda` that may keep a value. The key of
    an order keeps none.
    """
    parts = list(own_parts(node))
    words = [word for part in parts if isinstance(part, ast.Call) for word in part.keywords]
    keys = {word.value for word in words if word.arg == "key"}
    return any(isinstance(part, ast.FunctionDef | ast.Lambda) for part in {*parts} - keys)


def calls_changing(unit: Unit, scope: VariableScopeNames, function: ast.FunctionDef) -> bool:
    """Return True when a function calls a helper that changes its arguments, or may call such a
    method. A local helper that changes something does so inside of the function.
    """
    own = local_names(function)
    for part in walk(function):
        match part:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                if name in own:
                    return True
            case ast.Call(func=ast.Name(id=name)) if name not in own:
                helper = helper_called(unit, scope, part.func, ())
                if helper is not None and changed_by(helper):
                    return True
    return False


def is_helper(function: object) -> bool:
    return isinstance(function, FunctionType) and _definition(function) is not None


def helper_called(
    unit: Unit,
    scope: VariableScopeNames,
    function: ast.expr,
    around: tuple[ast.FunctionDef, ...],
) -> Helper | None:
    """Return the helper that this function names. `around`: the bodies around the call."""
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return None
    if scope.is_local(root.id):
        return _local(unit, scope, root.id, around) if root is function else None
    if isinstance(function, ast.Attribute):
        of_class = class_method(unit, unit.outside(function.value), function.attr, around)
        if of_class is not None:
            return of_class
    found = unit.outside(function)
    definition = _definition(found) if isinstance(found, FunctionType) else None
    return None if definition is None else helper_of(unit, found, definition, around)


def class_method(
    unit: Unit, cls: object, name: str, around: tuple[ast.FunctionDef, ...] = ()
) -> Helper | None:
    """Return the helper for a `@classmethod` of a class of the author, whose `cls` is the class on
    which it is called; None for others.
    """
    found = inspect.getattr_static(cls, name, None) if isinstance(cls, type) else None
    if not isinstance(cls, type) or not isinstance(found, classmethod):
        return None
    function: Any = found.__func__
    if not isinstance(function, FunctionType):
        return None
    definition = definition_in_class(function, ("classmethod",))
    named = cls.__name__
    if definition is None or function.__globals__.get(named) is not cls:
        return None
    source, node = definition
    own = _of_class(node, named)
    return None if own is None else helper_of(unit, function, (source, own), around)


@functools.lru_cache(maxsize=1024)
def _of_class(node: ast.FunctionDef, cls: str) -> ast.FunctionDef | None:
    """Return the function without its first parameter, whose name is replaced by that of the class;
    None if the body assigns it.
    """
    copied = copy.deepcopy(node)
    places = copied.args.posonlyargs or copied.args.args
    if not places or is_bound_in_body(copied, places[0].arg):
        return None
    first = places.pop(0).arg
    for part in walk(copied):
        if isinstance(part, ast.Name) and part.id == first:
            part.id = cls
    return copied


_Definition = tuple[Source, ast.FunctionDef]


def helper_of(
    unit: Unit,
    function: FunctionType,
    definition: _Definition,
    around: tuple[ast.FunctionDef, ...] = (),
) -> Helper:
    """Return the helper for a function of the author."""
    source, node = definition
    sees = VariableScopeNames(None, ())
    return _helper(unit.beside(source, function), sees, node, around, is_local=False)


def _definition(function: FunctionType) -> _Definition | None:
    """Return the source of a plain function at the top of a module of the author, or of a
    `@staticmethod`; None for others.
    """
    if "." in function.__qualname__:
        return definition_in_class(function, ("staticmethod",))
    return _defined(function, ())


def definition_in_class(function: FunctionType, decorators: tuple[str, ...]) -> _Definition | None:
    """Return the source of a function in the body of a class at the top of a module."""
    is_in_class = function.__qualname__.count(".") == 1
    return _defined(function, decorators) if is_in_class else None


def _defined(function: FunctionType, decorators: tuple[str, ...]) -> _Definition | None:
    module = sys.modules.get(function.__module__)
    if module is None or not is_own(module):
        return None
    if function.__code__.co_filename != module.__file__:
        return None
    try:
        source = Source.of(module)
    except (OSError, TypeError):
        return None
    node = source.find(function)
    if not isinstance(node, ast.FunctionDef) or node.name != function.__code__.co_name:
        return None
    given = tuple(map(ast.unparse, node.decorator_list))
    return None if given != decorators or _is_generator(node) else (source, node)


def _is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own_parts(node))


def _local(
    unit: Unit, scope: VariableScopeNames, name: str, around: tuple[ast.FunctionDef, ...]
) -> Helper | None:
    """Return the `def` that assigns a local name; with several, the first one."""
    owner: VariableScopeNames | None = scope
    while owner is not None and name not in owner.local_names:
        owner = owner.sees
    function = None if owner is None else unit.functions.get(owner)
    if owner is None or function is None:
        return None
    defined = [
        part
        for part in own_parts(function)
        if isinstance(part, ast.FunctionDef) and part.name == name
    ]
    if not defined:
        return None
    found = _helper(unit, owner, defined[0], around, is_local=True)
    return found if len(defined) == 1 else replace(found, is_expression=False, is_quiet=False)


def own_parts(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without those of functions inside it."""
    pending: list[ast.AST] = [*reversed(function.body)]
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            pending += reversed(children(part))


# The form.


def _helper(
    unit: Unit,
    scope: VariableScopeNames,
    node: ast.FunctionDef,
    around: tuple[ast.FunctionDef, ...],
    *,
    is_local: bool,
) -> Helper:
    """Return the helper. A function that calls itself cannot be written as an expression."""
    is_recursive = node in around
    called = () if is_recursive else _called(unit, scope, node, around)
    is_plain = not is_recursive and _is_plain(node.body) and node not in unit.library.helpers
    is_quiet = not is_recursive and not any(_is_loud(part) for part in own_parts(node))
    return Helper(
        node,
        unit,
        scope,
        is_local,
        is_expression=is_plain and all(one is not None and one.is_expression for one in called),
        is_quiet=is_quiet and all(one is not None and one.is_quiet for one in called),
    )


def _is_loud(node: ast.AST) -> bool:
    """Return True for a statement that may do more than compute: it raises, or writes a log
    line.
    """
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and not is_change(node)
    return isinstance(node, _LOUD)


_LOUD: Final = (ast.Raise, ast.Assert, ast.While, ast.With)


def _called(
    unit: Unit,
    scope: VariableScopeNames,
    node: ast.FunctionDef,
    around: tuple[ast.FunctionDef, ...],
) -> tuple[Helper | None, ...]:
    """Return the helpers that a body calls, with None in place of each durable call and each
    `xs.pop()`.
    """
    inner = VariableScopeNames(None, local_names(node), scope)
    found: list[Helper | None] = []
    for part in own_parts(node):
        if not isinstance(part, ast.Call):
            continue
        durable = find_durable(unit, inner, part) or find_tools(unit, inner, part)
        if durable is not None or find_taking(inner, part) is not None:
            found.append(None)
        elif helper := helper_called(unit, inner, part.func, (*around, node)):
            found.append(helper)
    return tuple(found)


def _is_plain(body: list[ast.stmt]) -> bool:
    for place, statement in enumerate(body):
        is_last = place == len(body) - 1
        match statement:
            case ast.Return():
                return is_last
            case (
                ast.Assign(targets=[ast.Name()])
                | ast.AnnAssign(target=ast.Name(), value=ast.expr())
            ):
                pass
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.If(body=inner, orelse=orelse):
                if not _is_plain(inner) or not _is_plain(orelse):
                    return False
                # One of the two arms must return, unless the `if` is the last statement. Otherwise
                # each arm would need a copy of the statements after the `if`.
                if not (is_last or returns(inner) or returns(orelse)):
                    return False
            case _:
                return False
    return True


def returns(body: list[ast.stmt]) -> bool:
    """Return True when every way through a plain body ends in a `return`."""
    match body[-1:]:
        case [ast.Return()]:
            return True
        case [ast.If(body=inner, orelse=orelse)]:
            return returns(inner) and returns(orelse)
        case _:
            return False


def is_bound_in_body(function: ast.FunctionDef, name: str) -> bool:
    """Return True when the body assigns another value to the parameter `name`."""
    return any(name in bound_names(statement) for statement in function.body)
