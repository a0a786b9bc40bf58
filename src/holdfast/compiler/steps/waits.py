"""`sleep`, `wait_for_event`, `ask`, `send`, `publish` and others: from `ast` to the action and the
type of its result.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import Any, Literal

from holdfast.api.payloads import can_be_named, union_of
from holdfast.asl.program import AttributeKind
from holdfast.compiler.context import NOTHING, TypedQuery, Unit, fails_of
from holdfast.compiler.expressions.durations import at_border, is_duration
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Constant,
    ObjectOf,
    QueryTree,
    invoke,
)
from holdfast.compiler.ir import (
    Action,
    Ask,
    Note,
    Publish,
    Reply,
    SendEvent,
    SendRequest,
    Sleep,
    SleepUntil,
    StopExecution,
    WaitForEvent,
)
from holdfast.compiler.searching import declared_kinds, kind_of
from holdfast.compiler.signatures import annotation_fault, signature_of
from holdfast.compiler.steps.step_arguments import (
    Checks,
    refuse,
    refuse_none,
    require_duration,
    require_text,
    require_time_out,
    require_value,
    with_check,
)
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.types import (
    DATETIME,
    NONE,
    STR,
    RequestOf,
    Type,
    describe,
    may_be_none,
)
from holdfast.limits import QUESTION_REMINDERS_MAX, REQUEST_SUFFIX

Arguments = dict[str, Any]


def lower_sleep(expressions: Expressions, found: Arguments, checks: Checks) -> tuple[Action, Type]:
    node = found["duration"]
    if require_value(expressions, node).type == DATETIME:
        help_ = f"sleep_until({expressions.unit.text(node)})"
        raise refuse(expressions, node, "HF052", "this is a moment, not a duration", help_)
    return Sleep(_not_negative(require_duration(expressions, node, checks))), NONE


def _not_negative(duration: TypedQuery) -> TypedQuery:
    """Return the duration, at least 0. As in Python a negative time continues at once; a Wait state
    would fail, and no handler could catch that.
    """
    if isinstance(duration.query, Constant):
        return duration
    query = invoke("max", ArrayOf((Constant(0), duration.query)))
    return TypedQuery(query, duration.type, duration.fails)


def lower_sleep_until(
    expressions: Expressions, found: Arguments, checks: Checks
) -> tuple[Action, Type]:
    node = found["moment"]
    help_ = f"sleep({expressions.unit.text(node)})"
    moment = _moment(expressions, node, checks, ("sleep_until()", help_))
    return SleepUntil(moment), NONE


def _moment(
    expressions: Expressions, node: ast.expr, checks: Checks | None, named: tuple[str, str]
) -> TypedQuery:
    """Return the query of a datetime with a time zone. `named`: the argument, and the help for a
    duration.
    """
    where, with_duration = named
    value = require_value(expressions, node)
    if may_be_none(value.type):
        raise refuse_none(expressions, node)
    if value.type != DATETIME:
        message = f"{where} takes a datetime, not {describe(value.type)}"
        help_ = "annotate it with `datetime`, where it is a parameter or a field"
        if is_duration(value.type):
            help_ = with_duration
        raise refuse(expressions, node, "HF040", message, help_)
    # Without this check the Wait state itself would fail, and no handler could catch that.
    text = f"{where} takes a datetime with a time zone"
    return with_check(value, node, checks, _has_offset, text)


def lower_later(
    expressions: Expressions, found: Arguments, checks: Checks | None
) -> TypedQuery | None:
    """Return `{delay: seconds}` or `{at: timestamp}`, of the arguments `delay` and `at`; None
    without them.
    """
    if "delay" in found and "at" in found:
        message = "a later time is a duration or a moment, not both"
        raise refuse(expressions, found["at"], "HF086", message, "one of delay= and at=")
    if "at" in found:
        node = found["at"]
        help_ = f"delay={expressions.unit.text(node)}"
        moment = _moment(expressions, node, checks, ("at=", help_))
        return TypedQuery(ObjectOf((("at", moment.query),)), NONE, moment.fails)
    if "delay" not in found:
        return None
    delay = _not_negative(require_duration(expressions, found["delay"], checks))
    return TypedQuery(ObjectOf((("delay", delay.query),)), NONE, delay.fails)


def _has_offset(text: QueryTree) -> QueryTree:
    is_utc = Binary("=", invoke("substring", text, Constant(-1)), Constant("Z"))
    sign = invoke("substring", text, Constant(-6), Constant(1))
    return Binary("or", is_utc, Binary("in", sign, ArrayOf((Constant("+"), Constant("-")))))


def lower_wait_for_event(
    expressions: Expressions, node: ast.Call, found: Arguments, checks: Checks
) -> tuple[Action, Type]:
    payload = _payload(expressions, found["payload"])
    if "key" not in found:
        help_ = f"{expressions.unit.text(node)[:-1]}, key=order.id)"
        raise refuse(expressions, node, "HF053", "an event is addressed by a business key", help_)
    event = _event_name(expressions, found["name"])
    key = require_text(expressions, found["key"])
    timeout = _timeout(expressions, found, None if key.fails else checks)
    action = WaitForEvent(event, payload, key, timeout, _takes_kept(expressions, found))
    return action, from_annotation(payload)


def _takes_kept(expressions: Expressions, found: Arguments) -> bool:
    match found.get("kept"):
        case None:
            return True
        case ast.Constant(value=bool(kept)):
            return kept
        case node:
            message = "`kept` says which events the wait may use: it is no variable"
            raise refuse(expressions, node, "HF053", message, "kept=False, or without it")


def _event_name(expressions: Expressions, node: ast.expr) -> str:
    match require_value(expressions, node).query:
        case Constant(str(event)) if event:
            pass
        case _:
            message = "the name of an event must be a constant text"
            help_ = '"bank.confirmed", with what varies in key='
            raise refuse(expressions, node, "HF053", message, help_)
    if event.endswith(REQUEST_SUFFIX):
        message = f"names that end with `{REQUEST_SUFFIX}` are those of requests"
        help_ = f'"{event.rstrip(REQUEST_SUFFIX)}", and receive(…) for a request'
        raise refuse(expressions, node, "HF053", message, help_)
    return event


def lower_receive(
    expressions: Expressions, node: ast.Call, found: Arguments, checks: Checks
) -> tuple[Action, Type]:
    """Lower the wait of `receive`. A request is an event with two parts: the id of the request, and
    its content.
    """
    action, type_ = lower_wait_for_event(expressions, node, found, checks)
    assert isinstance(action, WaitForEvent)
    asked = replace(action, event=action.event + REQUEST_SUFFIX)
    return asked, RequestOf((STR, type_), ("id", "data"))


def lower_reply(expressions: Expressions, request: str, id_: QueryTree, node: ast.expr) -> Action:
    """Lower `request.reply(value)`."""
    value = at_border(expressions.unit, node, require_value(expressions, node))
    arguments = ObjectOf((("request", id_), ("value", value.query)))
    return Reply(request, TypedQuery(arguments, NONE, value.fails))


def lower_ask(expressions: Expressions, found: Arguments, checks: Checks) -> tuple[Action, Type]:
    answer = _payload(expressions, found["answer"])
    parts = {
        "title": require_text(expressions, found["title"]),
        "assignee": require_text(expressions, found["assignee"]),
    }
    if "details" in found:
        details = require_value(expressions, found["details"])
        parts["details"] = at_border(expressions.unit, found["details"], details)
    if "remind" in found:
        parts["remind"] = _reminders(expressions, found)
    items = tuple((name, part.query) for name, part in parts.items())
    arguments = TypedQuery(ObjectOf(items), NONE, fails_of(*parts.values()))
    timeout = _timeout(expressions, found, None if arguments.fails else checks)
    return Ask(answer, arguments, timeout), from_annotation(answer)


def _reminders(expressions: Expressions, found: Arguments) -> TypedQuery:
    """Return the times before the deadline, in seconds."""
    node = found["remind"]
    if _timeout(expressions, found, None) is None:
        help_ = "timeout=days(2), and remind=hours(4) for four hours before its end"
        message = "a reminder comes before the deadline, and this question has none"
        raise refuse(expressions, node, "HF411", message, help_)
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    if len(nodes) > QUESTION_REMINDERS_MAX:
        message = f"a question has at most {QUESTION_REMINDERS_MAX} reminders"
        raise refuse(expressions, node, "HF411", message, "remind=(days(1), hours(4))")
    ahead = [require_duration(expressions, one, None) for one in nodes]
    query = ArrayOf(tuple(one.query for one in ahead))
    return TypedQuery(query, NONE, fails_of(*ahead))


def lower_send(expressions: Expressions, found: Arguments, checks: Checks) -> tuple[Action, Type]:
    event = _event_name(expressions, found["name"])
    key = require_text(expressions, found["key"])
    value = require_value(expressions, found["data"])
    data = at_border(expressions.unit, found["data"], value)
    items = (("name", Constant(event)), ("key", key.query), ("data", data.query))
    later = lower_later(expressions, found, None if fails_of(key, data) else checks)
    if later is None:
        return SendEvent(event, TypedQuery(ObjectOf(items), NONE, fails_of(key, data))), NONE
    assert isinstance(later.query, ObjectOf)
    query = ObjectOf((*items, *later.query.items))
    arguments = TypedQuery(query, NONE, fails_of(key, data, later))
    return SendEvent(event, arguments, is_later=True), STR


def lower_request(
    expressions: Expressions, found: Arguments, checks: Checks
) -> tuple[Action, Type]:
    reply = _payload(expressions, found["returns"])
    sent, _ = lower_send(expressions, found, checks)
    assert isinstance(sent, SendEvent)
    timeout = _timeout(expressions, found, None if sent.arguments.fails else checks)
    return SendRequest(sent.event, reply, sent.arguments, timeout), from_annotation(reply)


def lower_stop(expressions: Expressions, found: Arguments) -> tuple[Action, Type]:
    execution = require_text(expressions, found["execution"])
    arguments = ObjectOf((("execution", execution.query),))
    return StopExecution(TypedQuery(arguments, NONE, execution.fails)), NONE


def lower_publish(expressions: Expressions, found: Arguments) -> tuple[Action, Type]:
    match require_value(expressions, found["name"]).query:
        case Constant(str(name)) if name:
            pass
        case _:
            message = "the name of a published value must be a constant text"
            help_ = 'publish("status", status)'
            raise refuse(expressions, found["name"], "HF085", message, help_)
    value = require_value(expressions, found["value"])
    return Publish(name, at_border(expressions.unit, found["value"], value)), NONE


def lower_note(expressions: Expressions, node: ast.Call) -> tuple[Action, Type]:
    workflow = expressions.unit.workflow
    kinds = declared_kinds(workflow.search, signature_of(workflow.function).parameters)
    if node.args or not node.keywords or any(word.arg is None for word in node.keywords):
        message = "note() takes search attributes by name"
        raise refuse(expressions, node, "HF152", message, 'note(stage="packed")')
    noted = [_noted(expressions, word, kinds) for word in node.keywords]
    return Note(tuple(noted)), NONE


def _noted(
    expressions: Expressions, word: ast.keyword, kinds: Mapping[str, AttributeKind]
) -> tuple[str, AttributeKind, TypedQuery]:
    name = str(word.arg)
    kind = kinds.get(name)
    if kind is None:
        message = f"the workflow declares no search attribute `{name}`"
        help_ = f'@workflow(search={{"{name}": str}}); declared: {", ".join(kinds) or "none"}'
        raise refuse(expressions, word.value, "HF152", message, help_)
    value = at_border(expressions.unit, word.value, require_value(expressions, word.value))
    if value.type != NONE and kind_of(value.type) != kind:
        message = f"the search attribute `{name}` is {kind} and this is {describe(value.type)}"
        raise refuse(expressions, word.value, "HF152", message, f"a value of type {kind}")
    return name, kind, value


def _timeout(
    expressions: Expressions, found: Arguments, checks: Checks | None
) -> TypedQuery | None:
    match found.get("timeout"):
        case None | ast.Constant(value=None):
            return None
        case node:
            return require_time_out(expressions, node, checks)


def _payload(expressions: Expressions, node: ast.expr) -> Any:
    found = _find_payload(expressions.unit, node)
    fault = annotation_fault(found)
    if fault is not None:
        raise refuse(expressions, node, "HF004", f"what is waited for {fault.message}", fault.help)
    if found is not None:
        return found
    message = (
        "what is waited for must be a class at the top of a module, str, int, float, bool or "
        "None, or a list[…], a dict[str, …] or a union of them"
    )
    help_ = "class BankConfirmation(BaseModel): … at the top of the module"
    bare = expressions.unit.outside(node)
    if bare is dict or bare is list:
        whole = "dict[str, Any]" if bare is dict else "list[Any]"
        help_ = f"{whole}, with `from typing import Any`; or a model with its fields"
    elif not isinstance(node, ast.Name):
        # The annotation is not the name of a type. Suggest a model, because a field of a model may
        # have any annotation.
        text = expressions.unit.text(node)
        help_ = f"class BankConfirmation(BaseModel): value: {text}"
        texts = typing.get_args(_literal(expressions.unit, node))
        if texts and all(isinstance(one, str) and one.isidentifier() for one in texts):
            members = "; ".join(f'{one.upper()} = "{one}"' for one in texts)
            help_ = f"class BankConfirmation(StrEnum): {members}  # at the top of the module"
    raise refuse(expressions, node, "HF053", message, help_)


def _literal(unit: Unit, node: ast.expr) -> Any:
    """Return the type `Literal["a", "b"]` that is written out; None for other nodes."""
    match node:
        case ast.Subscript(value=container, slice=ast.Tuple(elts=parts)):
            pass
        case ast.Subscript(value=container, slice=part):
            parts = [part]
        case _:
            return None
    values = tuple(part.value for part in parts if isinstance(part, ast.Constant))
    is_literal = unit.outside(container) is Literal and len(values) == len(parts)
    return Literal[values] if is_literal else None


def _find_payload(unit: Unit, node: ast.expr) -> Any:
    """Return the type that `node` names; None when it cannot be found by its name later."""
    match node:
        case ast.Constant(value=None):
            return NoneType
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = [_find_payload(unit, side) for side in (left, right)]
            return None if None in sides else union_of(sides)
        case ast.Subscript(value=container, slice=ast.Tuple(elts=[key, item])):
            value = _find_payload(unit, item)
            if value is None or unit.outside(container) is not dict or unit.outside(key) is not str:
                return None
            return dict[str, value]  # type: ignore[valid-type]
        case ast.Subscript(value=container, slice=item):
            element = _find_payload(unit, item)
            if element is None or unit.outside(container) is not list:
                return None
            return list[element]  # type: ignore[valid-type]
    found = unit.outside(node)
    return found if found is not NOTHING and can_be_named(found) else None
