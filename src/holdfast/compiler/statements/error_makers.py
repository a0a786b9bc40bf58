"""`raise OrderRejected(order_id=order.id, reason="empty")`: errors whose class has an `__init__`.

    class OrderRejected(TaskError):
        order_id: str
        reason: str

        def __init__(self, order_id: str, reason: str) -> None:
            super().__init__(f"order {order_id}: {reason}")
            self.order_id = order_id
            self.reason = reason

The compiler reads the `__init__` as a helper: the text is the argument of `super().__init__`, and
the fields are what is assigned to `self`. The cause is the JSON that a worker would write for the
same error (`api/error_fields.py`).
"""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING

from holdfast.api.error_fields import error_fields
from holdfast.compiler.context import Helper, TypedQuery, fails_of
from holdfast.compiler.environment import Environment
from holdfast.compiler.expressions.inlining import Blocks, held_in, with_parameters
from holdfast.compiler.expressions.query import Constant, ObjectOf, QueryTree, invoke
from holdfast.compiler.steps.helpers import definition_in_class, helper_of
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.error_fields import defaults_of
from holdfast.compiler.types.models import fits
from holdfast.compiler.types.types import (
    BOOL,
    INT,
    NONE,
    STR,
    ListOf,
    Type,
    describe,
    is_refused,
    is_text,
    members_of,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions
    from holdfast.compiler.statements.statements import Statements


def has_maker(cls: type[BaseException]) -> bool:
    """Return True when the author's class has an `__init__` of its own, and no `__str__`."""
    others = (cls.__new__, cls.__str__)
    is_plain = not any(isinstance(maker, FunctionType) for maker in others)
    return is_plain and isinstance(cls.__init__, FunctionType)


def made_cause(
    statements: Statements, call: ast.Call, cls: type[BaseException]
) -> TypedQuery | None:
    """Return the cause of an error that the workflow makes; None when it was refused."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        statements.prepare(argument)
        statements.share(argument, is_kept=True)
    # A handler reads the fields, so it begins with what the error keeps from here on.
    statements.flow.note()
    maker = _maker(statements, call, cls)
    parts = None if maker is None else _parts(maker)
    if maker is None or parts is None:
        message = f"the `__init__` of `{cls.__name__}` does more than a workflow can follow"
        help_ = "super().__init__(text), and `self.reason = reason` for each field"
        statements.unit.refuse(call.func, "HF031", message, help_)
        return None
    opened = with_parameters(statements.expressions, call, maker, Environment({}))
    if opened is None:
        return None
    inner, blocks = opened
    text, fields = parts
    lowered = {name: inner.lower(one) for name, one in fields.items()}
    shown = _text(statements, call, inner, text)
    values = _fields(statements, call, cls, lowered)
    if shown is None or values is None:
        return None
    return _cause(shown, values, blocks, has_fields=bool(error_fields(cls)))


def _cause(
    message: TypedQuery, values: dict[str, TypedQuery], blocks: Blocks, *, has_fields: bool
) -> TypedQuery:
    if not has_fields:
        return held_in(blocks, message)
    rows = ObjectOf(tuple((name, value.query) for name, value in values.items()))
    whole: QueryTree = ObjectOf((("message", message.query), ("fields", rows)))
    fails = fails_of(message, *values.values())
    return held_in(blocks, TypedQuery(invoke("string", whole), STR, fails))


def _maker(statements: Statements, call: ast.Call, cls: type[BaseException]) -> Helper | None:
    """Return the `__init__` as a helper without `self`."""
    function = cls.__init__
    assert isinstance(function, FunctionType)
    definition = definition_in_class(function, ())
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    above = cls.__mro__[cls.__mro__.index(owner) + 1 :]
    if definition is None or any(isinstance(vars(b).get("__init__"), FunctionType) for b in above):
        return None
    helper = helper_of(statements.unit, function, definition)
    known = statements.unit.copies
    if call not in known:
        known[call] = _without_self(helper.node)
    return replace(helper, node=known[call])


def _without_self(node: ast.FunctionDef) -> ast.FunctionDef:
    made = copy.deepcopy(node)
    del made.args.args[:1]
    return made


def _parts(maker: Helper) -> tuple[ast.expr | None, dict[str, ast.expr]] | None:
    """Return the text and the fields of the error; None when the body has other statements."""
    text: ast.expr | None = None
    calls, fields = 0, dict[str, ast.expr]()
    for statement in maker.node.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Call(func=ast.Name("super"), args=[]), attr="__init__"
                    ),
                    args=arguments,
                    keywords=[],
                )
            ) if len(arguments) <= 1:
                calls += 1
                text = _known(arguments[0], fields) if arguments else ast.Constant("")
                ast.copy_location(text, statement)
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=name)], value=value)
                | ast.AnnAssign(
                    target=ast.Attribute(value=ast.Name("self"), attr=name),
                    value=ast.expr() as value,
                )
            ):
                fields[f"self.{name}"] = _known(value, fields)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                fields[name] = _known(value, fields)
            case _:
                return None
    given = {name[5:]: value for name, value in fields.items() if name.startswith("self.")}
    return (text, given) if calls == 1 else None


class _Known(ast.NodeTransformer):
    """Replaces `self.reason`, and a name of the body, by what was assigned to it."""

    def __init__(self, fields: dict[str, ast.expr]) -> None:
        self.fields = fields

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.fields.get(f"self.{node.attr}", node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.fields.get(node.id, node)


def _known(node: ast.expr, fields: dict[str, ast.expr]) -> ast.expr:
    found: ast.expr = _Known(fields).visit(copy.deepcopy(node))
    return found


def _text(
    statements: Statements, call: ast.Call, inner: Expressions, node: ast.expr | None
) -> TypedQuery | None:
    found = TypedQuery(Constant(""), STR) if node is None else inner.lower(node)
    if is_text(found.type):
        return found
    if not is_refused(found.type):
        message = f"the text of this error is {describe(found.type)}"
        statements.unit.refuse(call, "HF031", message, 'super().__init__(f"…") in its class')
    return None


def _fields(
    statements: Statements,
    call: ast.Call,
    cls: type[BaseException],
    given: dict[str, TypedQuery],
) -> dict[str, TypedQuery] | None:
    """Return the values of the declared fields; None when one has no exact JSON."""
    defaults = defaults_of(cls) or {}
    found: dict[str, TypedQuery] = {}
    for name, annotation in error_fields(cls).items():
        if name not in given:
            if name in defaults:
                found[name] = TypedQuery(Constant(defaults[name]), NONE)
            continue
        value, declared = given[name], from_annotation(annotation)
        if is_refused(value.type):
            return None
        if not (fits(value.type, declared) and _has_exact_json(value.type)):
            message = f"`{name}` of `{cls.__name__}` is {describe(declared)}"
            message += f" and this is {describe(value.type)}"
            if fits(value.type, declared):
                message = (
                    f"`{name}` of `{cls.__name__}`: a workflow writes no {describe(value.type)}"
                )
            help_ = f"{name}=str(…), with `{name}: str` in the class; or raise it in a @task"
            statements.unit.refuse(call, "HF031", message, help_)
            return None
        found[name] = value
    return found


def _has_exact_json(type_: Type) -> bool:
    """Return True when the text of the JSON is the same in JSONata. The text of a float is not."""
    match type_:
        case ListOf(element):
            return _has_exact_json(element)
        case _:
            known = (INT, BOOL, NONE)
            return all(one in known or is_text(one) for one in members_of(type_))
