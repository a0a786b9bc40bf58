"""`TOOLS[name](**arguments)`: a Choice over the tasks and workflows of `choice(…)`, with one Task
state for each.

The arguments of tasks may be computed, and each task checks them when it runs. A child workflow
gets a whole input with its defaults, so the arguments of a choice with workflows are written out.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from holdfast.api.tasks import Task
from holdfast.compiler.context import REFUSED_EXPRESSION, Dispatch, TypedQuery, fails_of
from holdfast.compiler.environment import path_of
from holdfast.compiler.expressions.arguments import is_name
from holdfast.compiler.expressions.dict_keys import is_like_text, key_help, sought
from holdfast.compiler.expressions.durations import at_border
from holdfast.compiler.expressions.narrowing import member_path
from holdfast.compiler.expressions.outside import type_of_names
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FieldOf,
    ObjectOf,
    QueryTree,
    Variable,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.expressions.subscripts import has_plain_error
from holdfast.compiler.ir import (
    Action,
    Assign,
    If,
    Raise,
    StatementBlock,
    StepStatement,
    Target,
    TaskAction,
)
from holdfast.compiler.library_calls import is_caught
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.statements.named_failures import written_key
from holdfast.compiler.steps.callables import obstacles_of
from holdfast.compiler.steps.step_arguments import StepRefused
from holdfast.compiler.types.types import (
    BOOL,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    DictOf,
    EnumOf,
    TextOf,
    Type,
    describe,
    has_text_keys,
    is_refused,
    join_all,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def _help(statements: Statements, node: ast.Call) -> str:
    """Return the call with its own table and the arguments as one `**`."""
    return f"{statements.unit.text(node.func)}(**arguments)"


def lower_tools(statements: Statements, node: ast.Call, tools: Dispatch) -> TypedQuery:
    """Emit the choice, and return the result of the task that was chosen."""
    assert isinstance(node.func, ast.Subscript)
    name = _name(statements, node.func.slice, node.func.value, type_of_names(tools.tasks) or STR)
    tasks = {key: task for key, task in tools.tasks.items() if isinstance(task, Task)}
    if len(tasks) < len(tools.tasks):
        return _lower_children(statements, node, name, tools)
    arguments = _positional(statements, node, tasks) if node.args else _arguments(statements, node)
    for task in tasks.values():
        for obstacle in obstacles_of(task):
            statements.unit.refuse(node, obstacle.code, obstacle.message, obstacle.help)
            return REFUSED_EXPRESSION
    if name is None or arguments is None:
        statements.lose(node)
        return REFUSED_EXPRESSION
    scope, origin = statements.scope, statements.origin(node)
    key, given = scope.name("tool", (node, "tool")), scope.name("tool_arguments", (node, "given"))
    statements.emit(Assign(origin, ((key, name), (given, arguments))))
    actions = {
        task_name: TaskAction(task, _for_task(task, node, Variable(given)))
        for task_name, task in tasks.items()
    }
    types = (signature_of(task.function).result for task in tasks.values())
    held = TypedQuery(Variable(key), name.type)
    return _choose(statements, node, held, actions, join_all(types))


def look_up(statements: Statements, node: ast.Call, tools: Dispatch) -> None:
    """Emit a test that the table has the key, before the arguments are evaluated."""
    assert isinstance(node.func, ast.Subscript)
    sliced = node.func.slice
    with statements.unit.trial():
        key = statements.expressions.lower(sliced)
    if is_refused(key.type) or _has_entry(statements, node, key.type, tools.tasks):
        return
    if not is_name(key.query):
        key = statements.hoisted[sliced] = statements.kept(key, sliced, "tool")
    names = (one.value if isinstance(one, Enum) else one for one in tools.tasks)
    test = Binary("in", key.query, ArrayOf(tuple(Constant(name) for name in names)))
    failed = _without_entry(statements, node, key, _result_of(statements, node))
    origin = statements.origin(node, f"is there a {statements.unit.text(node.func)}?")
    statements.emit(If(origin, TypedQuery(test, BOOL), (), failed))
    # The table has an entry from here on.
    statements.hoisted[node.func] = key


def _result_of(statements: Statements, node: ast.Call) -> str:
    return statements.scope.name("tool_result", (node, "result"))


def _lower_children(
    statements: Statements, node: ast.Call, name: TypedQuery | None, tools: Dispatch
) -> TypedQuery:
    try:
        calls = {key: statements.steps.call_of(node, called) for key, called in tools.tasks.items()}
    except StepRefused:
        name = None
    if name is None:
        statements.lose(node)
        return REFUSED_EXPRESSION
    key = statements.scope.name("tool", (node, "tool"))
    statements.assign(node, (key, name))
    actions = {called: action for called, (action, _) in calls.items()}
    held = TypedQuery(Variable(key), name.type)
    return _choose(statements, node, held, actions, join_all(type_ for _, type_ in calls.values()))


def _choose(
    statements: Statements,
    node: ast.Call,
    key: TypedQuery,
    actions: Mapping[Any, Action],
    type_: Type,
) -> TypedQuery:
    """Emit a Choice over the actions by the variable `key`, and return the result."""
    origin, result = statements.origin(node), _result_of(statements, node)
    chain: StatementBlock = ()
    if not _has_entry(statements, node, key.type, actions):
        chain = _without_entry(statements, node, key, result)
    for name, action in reversed([*actions.items()]):
        plain = name.value if isinstance(name, Enum) else name
        test: QueryTree = Binary("=", key.query, Constant(plain))
        step = StepStatement(statements.origin(node, str(plain)), action, (Target(result),))
        chain = (If(origin, TypedQuery(test, BOOL), (step,), chain),) if chain else (step,)
    statements.emit_all(chain)
    return TypedQuery(Variable(result), type_)


def _has_entry(
    statements: Statements, node: ast.Call, key: Type, actions: Mapping[Any, object]
) -> bool:
    """Return True when the table certainly has an entry for the key: a test stands before the
    call, or every value of the key's type has an entry.
    """
    assert isinstance(node.func, ast.Subscript)
    path = path_of(node.func.slice)
    known = path and member_path(path, node.func.value)
    facts = statements.expressions.environment.facts
    if known in facts or node.func in statements.hoisted:
        return True
    match key:
        case TextOf(values):
            return actions.keys() >= {*values}
        case EnumOf(cls):
            return actions.keys() >= {*cls}
        case _:
            return False


def _without_entry(
    statements: Statements, node: ast.Call, key: TypedQuery, result: str
) -> StatementBlock:
    """Return the statements for a key that the table lacks. A handler that reads the error gets
    Python's own.
    """
    assert isinstance(node.func, ast.Subscript)
    origin = statements.origin(node)
    if is_caught(statements.expressions, "KeyError") and has_plain_error(key.type):
        made, cause = written_key(statements, node.func.slice, key)
        return (*made, Raise(origin, KeyError, cause))
    unknown = TypedQuery(failure("KeyError: no such task"), NEVER, frozenset({"KeyError"}))
    return (Assign(origin, ((result, unknown),)),)


def _name(
    statements: Statements, node: ast.expr, table: ast.expr, wanted: Type
) -> TypedQuery | None:
    value = statements.expressions.lower(node)
    if is_refused(value.type):
        return None
    is_unknown_text = value.type == UNKNOWN and is_like_text(wanted)
    if is_unknown_text or sought(DictOf(NEVER, key=wanted), value) or value.type == wanted:
        return value
    text = statements.unit.text(node)
    kind = "its name" if wanted == STR else describe(wanted)
    message = f"a task is chosen by {kind}, and this is {describe(value.type)}"
    name = "name" if wanted == STR else key_help(DictOf(NEVER, key=wanted), value.type, text)
    help_ = f"{statements.unit.text(table)}[{name}](…)"
    statements.unit.refuse(node, "HF062", message, help_)
    return None


def _positional(
    statements: Statements, node: ast.Call, tasks: Mapping[str, Task[..., Any]]
) -> TypedQuery | None:
    """Return the arguments of `HANDLERS[kind](order)`. Each task gives them its own names."""
    counts = (len(signature_of(task.function).parameters) for task in tasks.values())
    is_starred = any(isinstance(one, ast.Starred) for one in node.args)
    if node.keywords or is_starred or len(node.args) > min(counts):
        message = "each of the chosen tasks takes the same arguments, by place or by name"
        statements.unit.refuse(node, "HF062", message, _help(statements, node))
        return None
    values = [_value(statements, one) for one in node.args]
    if any(is_refused(value.type) for value in values):
        return None
    items = tuple((f"a{place}", value.query) for place, value in enumerate(values))
    return TypedQuery(ObjectOf(items), NONE, fails_of(*values))


def _for_task(task: Task[..., Any], node: ast.Call, given: Variable) -> TypedQuery:
    if not node.args:
        return TypedQuery(given, NONE)
    names = list(signature_of(task.function).parameters)[: len(node.args)]
    items = tuple((name, FieldOf(given, f"a{place}")) for place, name in enumerate(names))
    return TypedQuery(ObjectOf(items), NONE)


def _arguments(statements: Statements, node: ast.Call) -> TypedQuery | None:
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=None, value=value)]):
            whole = at_border(statements.unit, value, statements.expressions.lower(value))
            if is_refused(whole.type):
                return None
            if _is_named(whole.type):
                return whole
        case ast.Call(args=[], keywords=words) if all(word.arg is not None for word in words):
            values = {str(word.arg): _value(statements, word.value) for word in words}
            if any(is_refused(value.type) for value in values.values()):
                return None
            items = tuple((name, value.query) for name, value in values.items())
            return TypedQuery(ObjectOf(items), NONE, fails_of(*values.values()))
        case ast.Call(args=[], keywords=[*words]) if any(word.arg is not None for word in words):
            return _merged(statements, node, words)
    _refuse_arguments(statements, node)
    return None


def _refuse_arguments(statements: Statements, node: ast.Call) -> None:
    message = "a chosen task takes its arguments by name, and one `**` of a dict"
    statements.unit.refuse(node, "HF062", message, _help(statements, node))


def _is_named(type_: Type) -> bool:
    """Return True for arguments by name."""
    return type_ == UNKNOWN or (isinstance(type_, DictOf) and has_text_keys(type_))


def _merged(statements: Statements, node: ast.Call, words: list[ast.keyword]) -> TypedQuery | None:
    """Return the arguments of `TOOLS[name](dataset=data, **arguments)`: no name twice, as in
    Python.
    """
    values = [_value(statements, word.value) for word in words]
    starred = [place for place, word in enumerate(words) if word.arg is None]
    if any(is_refused(value.type) for value in values):
        return None
    whole = values[starred[0]]
    if len(starred) > 1 or not _is_named(whole.type):
        _refuse_arguments(statements, node)
        return None
    named = [(str(word.arg), value) for word, value in zip(words, values, strict=True) if word.arg]
    items = ObjectOf(tuple((name, value.query) for name, value in named))

    def merged(held: QueryTree) -> QueryTree:
        query: QueryTree = invoke("merge", ArrayOf((held, items)))
        for name, _ in named:
            text = f"TypeError: got multiple values for keyword argument '{name}'"
            is_double = invoke("exists", invoke("lookup", held, Constant(name)))
            query = Conditional(is_double, failure(text), query)
        return query

    fails = fails_of(*values) | {"TypeError"}
    return TypedQuery(hold(whole.query, merged), NONE, fails)


def _value(statements: Statements, node: ast.expr) -> TypedQuery:
    return at_border(statements.unit, node, statements.expressions.lower(node))
