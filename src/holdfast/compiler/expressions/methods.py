"""The methods that an expression may call, by the type of the value."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions import set_values, strings
from holdfast.compiler.expressions.comparisons import are_comparable
from holdfast.compiler.expressions.construct import copy_with
from holdfast.compiler.expressions.dict_keys import key_help, keys_of, sought, texts_of_keys
from holdfast.compiler.expressions.durations import in_seconds, is_duration
from holdfast.compiler.expressions.formats import lower_format
from holdfast.compiler.expressions.gathering import gathered
from holdfast.compiler.expressions.library_texts import class_of
from holdfast.compiler.expressions.model_calls import dumped, dumped_text
from holdfast.compiler.expressions.moments import date_of, iso_text, time_of, weekday_of
from holdfast.compiler.expressions.python_values import has_attribute
from holdfast.compiler.expressions.query import (
    NULL,
    Binary,
    Constant,
    FieldOf,
    FunctionLiteral,
    ItemOf,
    QueryTree,
    RangeOf,
    Variable,
    guard,
    hold,
    invoke,
    items_of,
    mapped,
    or_else,
)
from holdfast.compiler.expressions.rules import CANNOT_FAIL, MethodResult, MethodRule
from holdfast.compiler.expressions.subscripts import value_at
from holdfast.compiler.expressions.text import OPEN_IN_TASK
from holdfast.compiler.expressions.unknowns import as_kind, number_of, texts_of
from holdfast.compiler.library_calls import as_library_step, note_failure
from holdfast.compiler.statements.aliases import CHANGES, TAKES
from holdfast.compiler.types.types import (
    DATE,
    DATETIME,
    ELAPSED,
    FLOAT,
    INT,
    NEVER,
    NONE,
    SECRET,
    STR,
    TIME,
    UNKNOWN,
    DictOf,
    ListOf,
    ModelOf,
    SetOf,
    TupleOf,
    Type,
    as_text,
    describe,
    is_list,
    is_refused,
    is_text,
    join,
    may_be_list,
    may_be_none,
)

#: Methods with which other systems wait for the result of a workflow that was started.
_HANDLE_METHODS: Final = frozenset({"get_result", "result", "wait"})
_PURE_HELP: Final = "call it inside a @pure function"


def method_rule(family: str, method: str) -> MethodRule:
    return _RULES[family][method]


def call_method(lowering: Lowering, node: ast.Call, function: ast.Attribute) -> TypedQuery:
    if function.attr == "format" and (text := lower_format(lowering, node)) is not None:
        return text
    called = lowering.unit.outside(function.value)
    if function.attr == "options" and isinstance(called, Task | Workflow):
        return _options_alone(lowering, node, called)
    value = _texts(lowering.lower(function.value))
    if value.type == UNKNOWN and (kind := _kind_with(function.attr)):
        value = as_kind(value, kind, "AttributeError")
    if isinstance(value.type, ModelOf) and function.attr == "model_copy":
        return copy_with(lowering, node, value, value.type)
    if isinstance(value.type, ModelOf) and function.attr == "model_dump":
        return dumped(lowering, node, value, value.type)
    if isinstance(value.type, ModelOf) and function.attr == "model_dump_json":
        return dumped_text(lowering, node, value.type)
    if _family(value.type) == "str" and function.attr == "join" and len(node.args) == 1:
        items = lowering.iterable(node.args[0])
        arguments: tuple[TypedQuery, ...] = (
            texts_of(items) if items.type == ListOf(UNKNOWN) else _texts(items),
        )
    else:
        arguments = tuple(lowering.lower(argument) for argument in node.args)
        if is_text(value.type):
            arguments = tuple(map(_texts, arguments))
    if is_refused(value.type, *(part.type for part in arguments)):
        return REFUSED_EXPRESSION
    rule = _RULES.get(_family(value.type), {}).get(function.attr)
    has_rule = rule is not None and not node.keywords
    found = rule(value.query, value.type, arguments) if rule is not None and has_rule else None
    if has_rule and found is None and (key := _other_key(function.attr, value.type, arguments)):
        return _refused_key(lowering, node, *key)
    if rule is None or found is None:
        step = _as_step(lowering, node, function, value.type)
        return step or _refused(lowering, node, function, value.type)
    fails = fails_of(value, *arguments) | found[2]
    if function.attr == "index" and "ValueError" in found[2]:
        note_failure(lowering, node, "ValueError")
    if function.attr not in _TWICE or _is_path(value.query):
        return TypedQuery(found[0], found[1], fails)

    def build(held: QueryTree) -> QueryTree:
        again = rule(held, value.type, arguments)
        assert again is not None
        return again[0]

    return TypedQuery(hold(value.query, build, "_self"), found[1], fails)


def _options_alone(
    lowering: Lowering, node: ast.Call, called: Task[..., Any] | Workflow[..., Any]
) -> TypedQuery:
    text = lowering.unit.text(node)
    given = ", ".join(inspect.signature(called.function).parameters)
    message = "a task or workflow with other options is called at once, or has a name in the module"
    return lowering.unit.refused(node, "HF003", message, f"{text}({given})")


def _texts(value: TypedQuery) -> TypedQuery:
    """Return a member of a `StrEnum`, or a list of them, as text."""
    match value.type:
        case ListOf(element, is_tuple):
            return value._replace(type=ListOf(as_text(element), is_tuple))
        case type_:
            return value._replace(type=as_text(type_))


def _other_key(
    method: str, type_: Type, arguments: tuple[TypedQuery, ...]
) -> tuple[DictOf, Type] | None:
    """Return the types of the dict and of the key for `counts.get(key)` with a key that the dict
    cannot have.
    """
    match type_, arguments:
        case DictOf(), (key, *_) if method == "get" and sought(type_, key) is None:
            return type_, key.type
        case _:
            return None


def _refused_key(lowering: Lowering, node: ast.Call, own: DictOf, key: Type) -> TypedQuery:
    text, *others = map(lowering.unit.text, node.args)
    given = ", ".join((key_help(own, key, text), *others))
    message = f"the keys of {describe(own)} are not {describe(key)}"
    help_ = f"{lowering.unit.text(node.func)}({given})"
    return lowering.unit.refused(node, "HF040", message, help_)


def _kind_with(method: str) -> str | None:
    """Return the only kind of JSON whose value in Python has the method."""
    kinds = {"object": dict, "array": list, "string": str}
    having = [kind for kind, cls in kinds.items() if hasattr(cls, method)]
    return having[0] if len(having) == 1 and having[0] != "array" else None


def _as_step(
    lowering: Lowering, node: ast.Call, function: ast.Attribute, type_: Type
) -> TypedQuery | None:
    """Let Python's library compute the method, such as `name.title()`."""
    owner = class_of(type_)
    if owner is None:
        return None
    given = (function.value, *node.args)
    return as_library_step(lowering, node, f"{owner}.{function.attr}", given, node.keywords)


def _is_path(query: QueryTree) -> bool:
    """Return True for a path such as `$order.id`: reading it twice costs as little as storing it in
    a variable.
    """
    return isinstance(query, Variable) or (isinstance(query, FieldOf) and _is_path(query.base))


def _refused(
    lowering: Lowering, node: ast.Call, function: ast.Attribute, type_: Type
) -> TypedQuery:
    text = lowering.unit.text(function.value)
    if may_be_none(type_):
        message = f"`{text}` may be None here"
        return lowering.unit.refused(node, "HF043", message, f"if {text} is not None: …")
    message = f"`.{function.attr}()` on {describe(type_)} has no exact JSONata form"
    help_ = _HELPS.get((_family(type_), function.attr), _PURE_HELP)
    if help_ == _PURE_HELP and not has_attribute(type_, function.attr):
        help_ = _without(function)
    if function.attr in CHANGES | TAKES and help_ == _PURE_HELP:
        help_ = _on_its_own(lowering, node, function, type_) or help_
    if isinstance(type_, ListOf) and type_.is_tuple and hasattr(list, function.attr):
        help_ = f"list({{value}}).{function.attr}(…)"
    return lowering.unit.refused(node, "HF002", message, help_.replace("{value}", text))


def _without(function: ast.Attribute) -> str:
    """Return the help for a method that the type does not have in Python either."""
    if function.attr in _HANDLE_METHODS:
        return "`dispatch(order)` for `start(dispatch, order)`: the call waits for the result"
    return "{value}, without this call"


def _on_its_own(
    lowering: Lowering, node: ast.Call, function: ast.Attribute, type_: Type
) -> str | None:
    """Return the help for a change that is part of an expression, or of a list without a name: how
    to write it as a statement.
    """
    maker = _MAKERS.get(_family(type_))
    if maker is None:
        return None
    text = lowering.unit.text(function.value)
    if isinstance(function.value, ast.Name):
        return f"`{lowering.unit.text(node)}`, on a line of its own"
    call = lowering.unit.text(node).replace(text, "own", 1)
    back = f", `{text} = own`" if isinstance(function.value, ast.Subscript) else ""
    return f"`own = {maker}({text})`, then `{call}`{back}"


_MAKERS: Final = MappingProxyType({"list": "list", "dict": "dict", "set": "set"})


def _family(type_: Type) -> str:
    if is_text(type_):
        return "str"
    if is_duration(type_) or type_ == ELAPSED:
        return "timedelta"
    match type_:
        case DictOf():
            return "dict"
        case ListOf() | TupleOf():
            return "list"
        case SetOf():
            return "set"
        case ModelOf():
            return "model"
        case _ if type_ == DATE:
            return "date"
        case _ if type_ == DATETIME:
            return "datetime"
        case _ if type_ == SECRET:
            return "secret"
        case _:
            return ""


# Dicts.


def _get(value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    assert isinstance(type_, DictOf)
    match arguments:
        case (TypedQuery(key, key_type, _),):
            default: TypedQuery = TypedQuery(NULL, NONE)
        case (TypedQuery(key, key_type, _), default):
            pass
        case _:
            return None
    # Python evaluates the default even when it is not used, and may raise there. The compiled code
    # would not, so such a default is refused.
    text = sought(type_, TypedQuery(key, key_type))
    if text is None or default.fails:
        return None
    found = hold(
        invoke("lookup", value, text),
        lambda held: or_else(held, default.query),
    )
    # The type is NEVER when no result of the service has this field; then only the default can be
    # the value.
    return found, join(value_at(type_, key) or NEVER, default.type), CANNOT_FAIL


def _keys(value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    if arguments:
        return None
    found = keys_of(TypedQuery(value, type_))
    return found.query, found.type, CANNOT_FAIL


def _values(
    value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    assert isinstance(type_, DictOf)
    if arguments:
        return None
    keys = texts_of_keys(value)
    found = invoke("lookup", value, Variable("_key"))
    if not may_be_list(type_.value):
        query: QueryTree = mapped(keys, ("_key",), found)
    else:
        one = items_of(found, is_list=is_list(type_.value))
        query = gathered(keys, (Variable("_key"),), one)
    return query, ListOf(type_.value), CANNOT_FAIL


# Lists.


def _index(value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (wanted,) if isinstance(type_, ListOf) and are_comparable(wanted.type, type_.element):
            pass
        case _:
            return None

    def search(held: QueryTree) -> QueryTree:
        last = Binary("-", invoke("count", value), Constant(1))
        is_equal = Binary("=", ItemOf(value, Variable("_n")), held)
        places = invoke("filter", RangeOf(Constant(0), last), FunctionLiteral(("_n",), is_equal))
        return guard(ItemOf(places, Constant(0)), "ValueError: the value is not in the list")

    return hold(wanted.query, search, "_wanted"), INT, frozenset({"ValueError"})


def _count(value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    match arguments:
        case (wanted,) if isinstance(type_, ListOf) and are_comparable(wanted.type, type_.element):
            pass
        case _:
            return None

    def number(held: QueryTree) -> QueryTree:
        one = number_of(Binary("=", Variable("_item"), held))
        return invoke("sum", mapped(value, ("_item",), one))

    return hold(wanted.query, number, "_wanted"), INT, CANNOT_FAIL


def _copy(value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    """Return the value itself. Values of a state machine never change, so a copy equals the
    value.
    """
    is_tuple = isinstance(type_, TupleOf) or (isinstance(type_, ListOf) and type_.is_tuple)
    if arguments or is_tuple:
        return None
    return value, type_, CANNOT_FAIL


# Moments and durations.


def _total_seconds(
    value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    if arguments:
        return None
    seconds = in_seconds(TypedQuery(value, type_))
    return seconds.query, FLOAT, seconds.fails


def _isoformat_of_moment(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    return None if arguments else (iso_text(value, "T"), STR, CANNOT_FAIL)


def _isoformat(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    return None if arguments else (value, STR, CANNOT_FAIL)


def _weekday(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    return None if arguments else (weekday_of(value), INT, CANNOT_FAIL)


def _isoweekday(
    value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    return None if arguments else (Binary("+", weekday_of(value), Constant(1)), INT, CANNOT_FAIL)


def _date(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    return None if arguments else (date_of(value), DATE, CANNOT_FAIL)


def _time(value: QueryTree, _: Type, arguments: tuple[TypedQuery, ...]) -> MethodResult | None:
    return None if arguments else (time_of(value), TIME, CANNOT_FAIL)


#: The queries of these methods repeat the value, so the value is stored in a variable first and
#: evaluated once.
_TWICE: Final = frozenset(
    {"endswith", "startswith", "removeprefix", "removesuffix", "splitlines", "find", "index"}
    | {"zfill", "values"}
)
_RULES: Final[Mapping[str, Mapping[str, MethodRule]]] = MappingProxyType(
    {
        "str": strings.RULES,
        "dict": {"get": _get, "keys": _keys, "values": _values, "copy": _copy},
        "list": {"index": _index, "count": _count, "copy": _copy},
        "set": set_values.RULES,
        "timedelta": {"total_seconds": _total_seconds},
        "date": {"isoformat": _isoformat, "weekday": _weekday, "isoweekday": _isoweekday},
        "datetime": {
            "date": _date,
            "time": _time,
            "isoformat": _isoformat_of_moment,
            "weekday": _weekday,
            "isoweekday": _isoweekday,
        },
    }
)
_HELPS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("list", "append"): "a line of its own; in a branch, return the value instead",
        ("list", "add"): "{value}.append(one)",
        ("list", "discard"): "{value} = [one for one in {value} if one != other]",
        ("set", "pop"): "`one = sorted({value})[0]`, then `{value}.remove(one)`",
        ("dict", "items"): "for key, value in {value}.items(): …",
        ("secret", "get_secret_value"): OPEN_IN_TASK,
        ("str", "join"): "{value}.join(str(one) for one in ones)",
        ("model", "copy"): "{value}.model_copy()",
    }
)
