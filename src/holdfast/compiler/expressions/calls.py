"""Calls inside expressions: constructors of models, methods, and the functions in a table. Other
calls are refused.
"""

from __future__ import annotations

import ast
import builtins
import collections
import hashlib
import itertools
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, datetime
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.api.library import DIGEST, FROM_TIMESTAMP, NOW
from holdfast.compiler.context import (
    COMPREHENSION,
    NOTHING,
    REFUSED_EXPRESSION,
    UNDO_AFTER_BRANCHES,
    TypedQuery,
)
from holdfast.compiler.environment import Held, UndoHandle
from holdfast.compiler.expressions.asyncio_calls import without_asyncio
from holdfast.compiler.expressions.construct import construct
from holdfast.compiler.expressions.decimals import value_of_call
from holdfast.compiler.expressions.enum_values import lower_member
from holdfast.compiler.expressions.functions import call_function, refuse_call
from holdfast.compiler.expressions.inlining import lower_helper, lower_method
from holdfast.compiler.expressions.methods import call_method
from holdfast.compiler.expressions.model_calls import (
    lower_checked,
    lower_unpacked,
    lower_validation,
)
from holdfast.compiler.expressions.named_tuples import construct_named_tuple, replace_parts
from holdfast.compiler.expressions.typed_dicts import construct_typed_dict
from holdfast.compiler.expressions.uncalled_tools import refuse_uncalled_tools
from holdfast.compiler.library_calls import as_library_step
from holdfast.compiler.steps.class_helpers import method_of
from holdfast.compiler.steps.durable import find_durable
from holdfast.compiler.steps.helpers import find_helper, find_tools
from holdfast.compiler.types.annotations import (
    from_annotation,
    is_model,
    is_named_tuple,
    is_typed_dict,
)
from holdfast.compiler.types.failures import is_own_name
from holdfast.compiler.types.types import (
    ErrorOf,
    RequestOf,
    TupleOf,
    Type,
    TypedDictOf,
    is_numeric,
    is_refused,
    is_text,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_call(expressions: Expressions, node: ast.Call) -> TypedQuery:
    function = node.func
    if (
        find_durable(expressions.unit, expressions.scope, node) is not None
        or find_tools(expressions.unit, expressions.scope, node) is not None
    ):
        return _misplaced(expressions, node)
    helper = find_helper(expressions.unit, expressions.scope, node)
    if helper is not None:
        if helper.is_expression:
            return lower_helper(expressions, node, helper)
        return _misplaced_helper(expressions, node)
    checked = lower_validation(expressions, node)
    if checked is not None:
        return checked
    digest = _digest(expressions, node)
    if digest is not None:
        return digest
    if isinstance(function, ast.Attribute) and not expressions.is_outside(function):
        return _method(expressions, node, function)
    if isinstance(function, ast.Name) and expressions.scope.is_local(function.id):
        return _local(expressions, node, function.id)
    step = _now_in_utc(expressions, node) or _timestamp_in_utc(expressions, node)
    if step is not None:
        return step
    if isinstance(function, ast.Attribute) and isinstance(
        expressions.unit.outside(function.value), type
    ):
        # The function is a method of a class in the author's module. Report the class, which
        # workflows cannot use here.
        return expressions.lower(function.value)
    found = expressions.unit.outside(function) if expressions.is_outside(function) else NOTHING
    if found is NOTHING:
        if isinstance(function, ast.Attribute):
            return _method(expressions, node, function)
        return _unknown_function(expressions, node)
    made = value_of_call(expressions, node, found)
    if made is not None:
        return made
    if is_model(found):
        checked = lower_unpacked(expressions, node, found)
        checked = checked or lower_checked(expressions, node, found)
        return checked or construct(expressions, node, found)
    if is_named_tuple(found):
        return construct_named_tuple(expressions, node, found)
    if is_typed_dict(found) and isinstance(type_ := from_annotation(found), TypedDictOf):
        return construct_typed_dict(expressions, node, type_)
    known = lower_member(expressions, node) or call_function(expressions, node, found)
    return _ordinary(expressions, node, found) if known is None else known


def _now_in_utc(expressions: Expressions, node: ast.Call) -> TypedQuery | None:
    """Lower `datetime.now(timezone.utc)` to the step that reads the clock."""
    match node:
        case (
            ast.Call(args=[zone], keywords=[])
            | ast.Call(args=[], keywords=[ast.keyword(arg="tz", value=zone)])
        ) if expressions.is_outside(node.func):
            is_now = expressions.unit.outside(node.func) == datetime.now
            if is_now and expressions.unit.outside(zone) is UTC:
                return as_library_step(expressions, node, NOW, ())
    return None


def _timestamp_in_utc(expressions: Expressions, node: ast.Call) -> TypedQuery | None:
    """Lower `datetime.fromtimestamp(seconds, tz=timezone.utc)` to a step. Without a time zone the
    result would depend on that of the machine.
    """
    match node:
        case (
            ast.Call(args=[timestamp, zone], keywords=[])
            | ast.Call(args=[timestamp], keywords=[ast.keyword(arg="tz", value=zone)])
        ) if expressions.is_outside(node.func):
            is_read = expressions.unit.outside(node.func) == datetime.fromtimestamp
            if is_read and expressions.unit.outside(zone) is UTC:
                return _of_type(expressions, node, FROM_TIMESTAMP, timestamp, is_numeric)
    return None


def _of_type(
    expressions: Expressions,
    node: ast.Call,
    name: str,
    argument: ast.expr,
    fits: Callable[[Type], bool],
) -> TypedQuery | None:
    """Return the step with this argument; None when the type of the argument does not fit. Python's
    own function would raise another error there.
    """
    given = expressions.lower(argument)
    if is_refused(given.type):
        return REFUSED_EXPRESSION
    return as_library_step(expressions, node, name, [argument]) if fits(given.type) else None


_DIGESTS: Final[Mapping[object, str]] = MappingProxyType(
    {
        hashlib.md5: "md5",
        hashlib.sha1: "sha1",
        hashlib.sha256: "sha256",
        hashlib.sha512: "sha512",
    }
)


def _digest(expressions: Expressions, node: ast.Call) -> TypedQuery | None:
    """Lower `hashlib.sha256(text.encode()).hexdigest()` to a step: bytes are no JSON."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(
                    func=maker,
                    args=[
                        ast.Call(
                            func=ast.Attribute(value=text, attr="encode"),
                            args=[] | [ast.Constant(value="utf-8" | "utf8" | "UTF-8")],
                            keywords=[],
                        )
                    ],
                    keywords=[],
                ),
                attr="hexdigest",
            ),
            args=[],
            keywords=[],
        ) if expressions.is_outside(maker):
            found = expressions.unit.outside(maker)
            name = _DIGESTS.get(found) if isinstance(found, Hashable) else None
            if name is not None:
                return _of_type(expressions, node, DIGEST + name, text, is_text)
    return None


def _method(expressions: Expressions, node: ast.Call, function: ast.Attribute) -> TypedQuery:
    """Lower a method: of the author's own model, or one of the table."""
    with expressions.unit.trial():
        owner = expressions.lower(function.value)
    helper = method_of(expressions.unit, owner.type, node)
    if isinstance(owner.type, TupleOf) and function.attr == "_replace":
        return replace_parts(expressions, node, expressions.lower(function.value))
    if helper is None:
        refused = None
        if function.attr == "get" and node.args:
            refused = refuse_uncalled_tools(expressions, node, function.value, node.args[0])
        return refused or call_method(expressions, node, function)
    if not helper.is_expression:
        return _misplaced_helper(expressions, node)
    return lower_method(expressions, node, helper)


def _unknown_function(expressions: Expressions, node: ast.Call) -> TypedQuery:
    name = expressions.unit.text(node.func)
    if isinstance(node.func, ast.Name):
        help_ = "import it, and decorate it with @task or @pure"
        return expressions.unit.refused(node, "HF004", f"`{name}` is not defined", help_)
    return expressions.unsupported(node)


def _misplaced(expressions: Expressions, node: ast.Call) -> TypedQuery:
    name, text = expressions.unit.text(node.func), expressions.unit.text(node)
    place = expressions.place or "this expression"
    item = _item_in(expressions, node)
    help_ = f"call it on its own line first: `x = {text}`, or use each() for one call per item"
    if item is not None:
        help_ = f"`found = each(…, lambda {item}: {text})` on its own line first, then use `found`"
    return expressions.unit.refused(
        node, "HF012", f"`{name}` is a durable step and cannot run inside {place}", help_
    )


def _item_in(expressions: Expressions, node: ast.Call) -> str | None:
    """Return the name in a call that a comprehension binds: the call has no line of its own."""
    if expressions.place != COMPREHENSION:
        return None
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return next((name for name in names if name in expressions.scope.local_names), None)


def _misplaced_helper(expressions: Expressions, node: ast.Call) -> TypedQuery:
    name, text = expressions.unit.text(node.func), expressions.unit.text(node)
    place = expressions.place or "this expression"
    return expressions.unit.refused(
        node,
        "HF012",
        f"`{name}` has more in it than names, `if` and `return`, and cannot run inside {place}",
        f"call it on its own line first: `x = {text}`, or decorate it with @pure and use each()",
    )


#: The classes of Python's library whose objects are lists or dicts, each with the code that a
#: workflow uses instead.
_INSTEAD: Final[Mapping[object, str]] = MappingProxyType(
    {
        collections.defaultdict: "groups = {}, then groups.setdefault(key, []).append(one), "
        "or counts[key] = counts.get(key, 0) + 1",
        collections.Counter: "counts = {}, then counts[key] = counts.get(key, 0) + 1",
        itertools.groupby: "groups = {}, then groups.setdefault(key, []).append(one)",
        collections.OrderedDict: "a dict keeps its order: {}",
        collections.deque: "a list: waiting = [], waiting.append(one), waiting.pop(0)",
    }
)


def _ordinary(expressions: Expressions, node: ast.Call, found: object) -> TypedQuery:
    name = expressions.unit.text(node.func)
    instead = without_asyncio(expressions.unit, node, found)
    if instead is not None:
        return refuse_call(expressions, node, "is not for workflows", instead)
    if isinstance(found, type) and issubclass(found, Enum):
        help_ = f"declare it: status: {name}, as a parameter, a field or the result of a task"
        return refuse_call(expressions, node, "may fail to find a member", help_)
    if isinstance(found, type) or getattr(builtins, name, None) is found:
        help_ = _INSTEAD.get(found, "call it inside a @pure function")
        if found in (collections.defaultdict, collections.Counter):
            why = "is for a variable that is used like a plain dict: no helper and no text gets it"
            return refuse_call(expressions, node, why, help_)
        if found is type and len(node.args) == 1:
            help_ = _test_of_class(expressions, node.args[0])
        return refuse_call(expressions, node, "has no JSONata form", help_)
    module = getattr(found, "__module__", None)
    is_ours = isinstance(module, str) and module.startswith("holdfast.")
    if isinstance(module, str) and not is_ours and not is_own_name(module):
        message = f"`{name}` is a function of a library: a workflow cannot call it"
        help_ = "call it in a @task (I/O, time, chance), or inside a @pure function"
        return expressions.unit.refused(node, "HF005", message, help_)
    return expressions.unit.refused(
        node,
        "HF005",
        f"`{name}` is an ordinary Python function: a workflow cannot call it",
        "decorate it with @task (durable, retried, may do I/O) or @pure (quick, no I/O), "
        "or write it out here",
    )


def _test_of_class(expressions: Expressions, value: ast.expr) -> str:
    if isinstance(expressions.lower(value).type, ErrorOf):
        return f"type({expressions.unit.text(value)}).__name__"
    return f"isinstance({expressions.unit.text(value)}, Card)"


def _local(expressions: Expressions, node: ast.Call, name: str) -> TypedQuery:
    if isinstance(expressions.environment.entries.get(name), UndoHandle):
        message = f"`{name}(…)` registers an undo step: a line of its own, and not in a branch"
        help_ = UNDO_AFTER_BRANCHES
        return expressions.unit.refused(node, "HF021", message, help_)
    entry = expressions.environment.entries.get(name)
    if isinstance(entry, Held) and is_refused(entry.type):
        # The value of the name was refused already, such as an import inside of the workflow.
        return REFUSED_EXPRESSION
    if isinstance(entry, Held) and isinstance(entry.type, RequestOf):
        message = f"`{name}` is the received request here, and no function"
        help_ = "with receive(…) as asked:"
        return expressions.unit.refused(node, "HF005", message, help_)
    message = f"`{name}` holds a value: a workflow calls functions by the name of their `def`"
    help_ = f"def {name}(…): … in this workflow, or at the top of a module"
    return expressions.unit.refused(node, "HF005", message, help_)
