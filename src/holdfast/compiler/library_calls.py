"""Expressions without an exact form in JSONata that Python's library computes, as steps.

The problem
-----------
`name.title()` and `f"{ratio}"` have no exact form in JSONata, but a step of
the library can compute them: `str.title` and `float.__str__`. Steps run before the statement that
needs their results, so the compiler must know them before it lowers the statement. It learns of
them only then, because the methods of a value depend on its type.

So the compiler works in passes. A pass that meets such an expression notes the step that replaces
it, `Unit.library`, and goes on. After that the workflow is lowered again: the hoisting of
steps (`steps/hoisting.py`) finds the noted expressions and moves them. The last pass notes nothing
new. Only its result and its refusals count.

A comprehension with such an expression becomes a loop. Where no step is possible, such as in the
key of an order, nothing is noted and the expression is refused.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.api.library import library_task
from holdfast.api.library_models import name_of_model_step
from holdfast.api.library_signatures import SIGNATURES
from holdfast.compiler.context import (
    COMPREHENSION,
    CONDITION,
    REFUSED_EXPRESSION,
    LibraryStep,
    Lowering,
    NamedFailure,
    TypedQuery,
)


def as_library_step(
    lowering: Lowering,
    node: ast.expr,
    name: str,
    arguments: Sequence[ast.expr],
    keywords: Sequence[ast.keyword] = (),
) -> TypedQuery | None:
    """Note that the step `name` of the library computes `node`.

    Return None when there is no such step, when it does not take the arguments, or when no step can
    stand here.
    """
    given = _by_name(name, arguments, keywords)
    return None if given is None else _noted(lowering, node, name, given)


def as_model_step(
    lowering: Lowering, node: ast.expr, call: str, model: Any, value: ast.expr
) -> TypedQuery | None:
    """Note that a step which runs the author's `model` computes `node`; see `library_models`."""
    name = name_of_model_step(call, model)
    return None if name is None else _noted(lowering, node, name, {"value": value})


def is_caught(lowering: Lowering, error: str) -> bool:
    """Return True when a handler around this point catches the builtin `error` by a name, or when
    the calling workflow may do so. For the caller alone a comprehension does not become a loop,
    which would have states for each of many items.
    """
    library = lowering.unit.library
    if library.is_called and lowering.place != COMPREHENSION:
        return True
    caught = tuple(library.caught)
    return bool(caught) and issubclass(getattr(builtins, error), caught)


def note_failure(lowering: Lowering, node: ast.expr, error: str) -> None:
    """Note that the error of `node` needs its own name, because a handler catches it by name."""
    if is_caught(lowering, error) and _can_move(lowering, node):
        lowering.unit.library.steps[node] = NamedFailure()


def _can_move(lowering: Lowering, node: ast.expr) -> bool:
    is_movable = lowering.place in ("", CONDITION, COMPREHENSION)
    return is_movable and node not in lowering.unit.library.steps


def _noted(
    lowering: Lowering, node: ast.expr, name: str, given: Mapping[str, ast.expr]
) -> TypedQuery | None:
    known = lowering.unit.library
    if not _can_move(lowering, node):
        return None
    task = library_task(name)
    assert task is not None
    function = ast.copy_location(ast.Constant(name), node)
    words = [ast.keyword(word, value) for word, value in given.items()]
    call = ast.copy_location(ast.Call(function, [], words), node)
    known.steps[node] = LibraryStep(call, task)
    return REFUSED_EXPRESSION


def _by_name(
    name: str, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
) -> Mapping[str, ast.expr] | None:
    """Return the arguments by parameter; None when they do not fit the step."""
    if name not in SIGNATURES:
        return None
    parameters = [one.removeprefix("*") for one in SIGNATURES[name][0]]
    names = [one.partition(":")[0] for one in parameters]
    required = [one.partition(":")[0] for one in parameters if not one.endswith("=")]
    is_odd = any(isinstance(one, ast.Starred) for one in arguments)
    given = dict(zip(names, arguments, strict=False))
    given.update({str(word.arg): word.value for word in keywords})
    is_whole = len(given) == len(arguments) + len(keywords) and {*required} <= given.keys()
    return given if is_whole and given.keys() <= {*names} and not is_odd else None


def constant(node: ast.expr, value: str | int) -> ast.Constant:
    """Return an argument that stands nowhere in the source, in the place of `node`."""
    return ast.copy_location(ast.Constant(value), node)
