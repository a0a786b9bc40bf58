"""Durable calls inside expressions, moved before the statement in Python's order of evaluation.
This move is called hoisting.

The problem
-----------
A durable call takes time and is a state of its own. A JSONata expression
cannot wait for it. So the call becomes a step before the statement, and a variable replaces it in
the expression:

    return Outcome(tracking=ship(order.id).tracking)

    -> ship_result = ship(order.id)
       return Outcome(tracking=ship_result.tracking)

The move must not change the behaviour of the program. Three things could change.

Whether the call runs
---------------------
Python may skip a part of an expression, or evaluate it
several times. `evaluated` lists only the operands that Python certainly evaluates once, and only
these are searched:

    (ship(x) for x in xs)       only `xs` is searched
    lambda: ship(x)             nothing is searched

A durable call in any other part is not moved. It is refused when its expression is lowered.

A comprehension with a durable call becomes a loop before the statement (`statements/repeated.py`).

`a and b`, `a or b` and `b if a else c` with a durable call in `b` or `c` are choices: the whole
expression becomes an `if` before the statement, and a variable replaces it (`Hoister.choose`).

The order of the calls
----------------------
Operands are hoisted from left to right, inner calls
first:

    add(first_step(x), second_step(inner_step(y)))

    -> first_step, inner_step, second_step, then `add` if it is durable

Failures between the calls
--------------------------
    report(total / count, charge(order))

Python computes `total / count` first. If `count` is 0, Python never calls `charge`. The state
machine would run `charge` first, and a customer would pay. So an operand that may fail is refused
when a durable call follows it (HF013). The help tells the author to write two lines.

An operand that cannot fail may be evaluated after the call: it has no effects, and values do not
change.

A step of Python's library runs before the statement only because its expression has no exact form.
The author cannot see that it is a step, so an operand before it that may fail is not refused. It is
evaluated before the step, in a variable: of two errors, the first counts.

    [10 // n, Line.model_validate(bag)]    ->   operand = 10 // n
                                                line = Line.model_validate(bag)
                                                [operand, line]

The search runs for each expression, and again in each round of a loop. `Unit.with_durable` stores
its results by node.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeGuard

from holdfast.compiler.context import (
    Dispatch,
    Helper,
    LibraryStep,
    NamedFailure,
    NamedValue,
    Repeated,
    Taking,
    TypedQuery,
    Unit,
)
from holdfast.compiler.steps.durable import chosen_pool
from holdfast.compiler.steps.helpers import find_step
from holdfast.compiler.variable_names import VariableScopeNames


class Hoister(Protocol):
    """Lowers one durable call to a step of its own, and returns the result of that step."""

    @property
    def unit(self) -> Unit: ...
    @property
    def scope(self) -> VariableScopeNames: ...
    def hoist(self, node: ast.expr, function: object, /) -> TypedQuery: ...
    def replace(self, node: ast.expr, step: LibraryStep | NamedFailure, /) -> None: ...
    def look_up(self, node: ast.Call, tools: Dispatch, /) -> None: ...
    def choose(self, node: ast.BoolOp | ast.IfExp, /) -> None: ...
    def may_fail(self, node: ast.expr, /) -> bool: ...
    def evaluate_first(self, node: ast.expr, /) -> None: ...


def hoist(hoister: Hoister, node: ast.expr) -> None:
    """Hoist the durable calls that an evaluation of `node` certainly runs, and `node` itself."""
    if not has_durable(hoister, node):
        return
    node = hoister.unit.library.rewritten.get(node, node)
    if is_choice(node, hoister):
        hoister.choose(node)
        return
    library = hoister.unit.library.steps.get(node)
    if library is not None:
        hoist_inside(hoister, node)
        hoister.replace(node, library)
        return
    function = find_step(hoister.unit, hoister.scope, node)
    if isinstance(function, Dispatch):
        assert isinstance(node, ast.Call)
        _look_up_first(hoister, node, function)
    if not isinstance(function, Repeated | NamedValue):
        hoist_inside(hoister, node)
    if function is not None:
        hoister.hoist(node, function)


def _look_up_first(hoister: Hoister, node: ast.Call, tools: Dispatch) -> None:
    """Look the task up before its arguments are evaluated: of two errors the first counts, and no
    step of an argument runs for a key that the table lacks.
    """
    assert isinstance(node.func, ast.Subscript)
    key = node.func.slice
    arguments = (*node.args, *[word.value for word in node.keywords])
    if not any(has_durable(hoister, one) or hoister.may_fail(one) for one in arguments):
        return
    if not has_durable(hoister, key):
        hoister.look_up(node, tools)
        return
    text = hoister.unit.text(key)
    hoister.unit.refuse(
        key,
        "HF013",
        f"`{text}` has a step, and the table may lack the key; Python would then not evaluate the "
        "arguments, and a state machine evaluates them first",
        f"put them on two lines: `x = {text}`, then the call with x",
    )


def hoist_inside(hoister: Hoister, node: ast.expr) -> None:
    """Hoist the durable calls that an evaluation of `node` certainly runs, without `node`
    itself.
    """
    earlier: list[ast.expr] = []
    for child in evaluated(node):
        if has_durable(hoister, child):
            for before in earlier:
                require_safe(hoister, before, child)
                _require_unread(hoister, before, child)
            hoist(hoister, child)
        earlier.append(child)


def require_safe(hoister: Hoister, before: ast.expr, child: ast.expr) -> None:
    """Refuse an operand that may fail before a step, unless it can be evaluated before the step."""
    # A computed pool is part of the called task, which is not an expression of its own.
    is_pool = chosen_pool(hoister.unit, hoister.scope, before) is not None
    if not is_pool and not hoister.may_fail(before):
        return
    kinds = set(_steps_in(hoister, child))
    if kinds <= {_QUIET}:
        return
    if not is_pool and kinds <= {_QUIET, _LIBRARY}:
        hoister.evaluate_first(_written(before))
        if not hoister.may_fail(before):
            return
    text, step = (hoister.unit.text(_written(node)) for node in (before, child))
    hoister.unit.refuse(
        before,
        "HF013",
        f"`{text}` may fail, and Python would then not run the durable step after it; "
        "a state machine runs the step first",
        f"put them on two lines: `x = {step}`, then the line with x"
        # A change such as `groups[name].append(load())` is one expression, and has the step in it.
        if is_pool or step in text
        else f"put them on two lines: `x = {text}`, then the line with `{step}`",
    )


def _require_unread(hoister: Hoister, before: ast.expr, child: ast.expr) -> None:
    """Refuse `len(xs) + xs.pop()`: the list would be read after it has changed."""
    steps = (find_step(hoister.unit, hoister.scope, part) for part in ast.walk(child))
    changed = {step.name for step in steps if isinstance(step, Taking)}
    if changed.isdisjoint(_read_names(hoister, before)):
        return
    text, change = (hoister.unit.text(_written(node)) for node in (before, child))
    hoister.unit.refuse(
        before,
        "HF023",
        f"`{text}` is read before `{change}` changes it; a state machine changes it first",
        f"put them on two lines: `x = {text}`, then the line with `{change}`",
    )


def _read_names(hoister: Hoister, node: ast.AST) -> Iterator[str]:
    """Yield the names in `node` whose values the statement still reads after the steps in `node`
    have run.
    """
    if isinstance(node, ast.Name):
        yield node.id
    elif not (isinstance(node, ast.Call) and _is_durable(hoister, node)):
        for child in ast.iter_child_nodes(node):
            yield from _read_names(hoister, child)


_QUIET: Final = "the body of a helper that only computes"
_LIBRARY: Final = "a step of Python's library"
_DURABLE: Final = "any other step"


def _steps_in(hoister: Hoister, node: ast.AST) -> Iterator[str]:
    """Yield the kind of each step in a node.

    A quiet helper may change places with an operand that may fail: if both fail, the error is the
    same. A handler for an error of Python tells the two apart, so a test of operands
    (`NamedFailure`) counts as a step of the library.
    """
    if isinstance(node, ast.expr):
        node = hoister.unit.library.rewritten.get(node, node)
        if node in hoister.unit.library.steps:
            yield _LIBRARY
    step = find_step(hoister.unit, hoister.scope, node)
    if step is not None:
        yield _QUIET if isinstance(step, Helper) and step.is_quiet else _DURABLE
    for child in ast.iter_child_nodes(node):
        yield from _steps_in(hoister, child)


def _written(node: ast.expr) -> ast.expr:
    """Return the part of an f-string, or of `[*items]`, that could be written on a line of its
    own.
    """
    return node.value if isinstance(node, ast.FormattedValue | ast.Starred) else node


def has_durable(hoister: Hoister, node: ast.expr) -> bool:
    """Return True when the node contains a durable call. The result is cached, because each
    expression around the node and each round of a loop asks again.
    """
    if isinstance(node, ast.Name | ast.Constant):
        return False
    node = hoister.unit.library.rewritten.get(node, node)
    known = hoister.unit.with_durable
    found = known.get(node)
    if found is None:
        found = _is_durable(hoister, node)
        found = found or node in hoister.unit.library.steps
        for child in () if found else (*evaluated(node), *_sometimes_evaluated(node)):
            found = found or has_durable(hoister, child)
        known[node] = found
    return found


def is_choice(node: ast.expr, hoister: Hoister) -> TypeGuard[ast.BoolOp | ast.IfExp]:
    """Return True when a durable call is in a part of the expression that is not always
    evaluated.
    """
    return any(has_durable(hoister, part) for part in _sometimes_evaluated(node))


def _sometimes_evaluated(node: ast.expr) -> Sequence[ast.expr]:
    match node:
        case ast.BoolOp(values=[_, *others]):
            return others
        case ast.IfExp(body=body, orelse=orelse):
            return (body, orelse)
        case _:
            return ()


def _is_durable(hoister: Hoister, node: ast.AST) -> bool:
    return find_step(hoister.unit, hoister.scope, node) is not None


def evaluated(node: ast.AST) -> Sequence[ast.expr]:
    """Return the operands that an evaluation of `node` certainly evaluates, in Python's order."""
    match node:
        case ast.Constant() | ast.Name() | ast.Lambda():
            return ()
        case ast.NamedExpr(value=value):
            return (value,)
        case ast.Attribute(value=value):
            return (value,)
        case ast.Call(func=ast.Attribute(value=base), args=arguments, keywords=keywords):
            # A method is not a value of its own, so its owner stands for it.
            return (base, *arguments, *[keyword.value for keyword in keywords])
        case ast.Call(func=function, args=arguments, keywords=keywords):
            return (function, *arguments, *[keyword.value for keyword in keywords])
        case ast.JoinedStr(values=values):
            return values
        case ast.FormattedValue(value=value, format_spec=None):
            return (value,)
        case ast.BinOp(left=left, right=right):
            return (left, right)
        case ast.BoolOp(values=[first, *_]):
            return (first,)
        case ast.IfExp(test=test):
            return (test,)
        case ast.Compare(left=left, comparators=[right, *_]):
            return (left, right)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return (node.generators[0].iter,)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [part for pair in pairs for part in pair if part is not None]
        case _:
            return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
