"""Constructors of models, such as `Outcome(status="shipped")`. The JSON must be what pydantic would
write.
"""

from __future__ import annotations

import ast
from typing import Any

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.durations import written
from holdfast.compiler.expressions.fields import known_fields
from holdfast.compiler.expressions.query import ArrayOf, ObjectOf, invoke, literal
from holdfast.compiler.types.models import ModelField, conversion, fields_of, fits, obstacle_of
from holdfast.compiler.types.types import REFUSED, ModelOf, describe_exactly, is_refused

_PURE_HELP = "build it in a @pure function"


def construct(lowering: Lowering, node: ast.Call, model: Any) -> TypedQuery:
    unit = lowering.unit
    title = model.__name__
    keywords = _keywords(node, model)
    values = {keyword.arg: _given(lowering.lower(keyword.value)) for keyword in keywords}
    if any(is_refused(value.type) for value in values.values()):
        return REFUSED_EXPRESSION
    if None in values or len(values) < len(node.args) + len(node.keywords):
        message = f"{title} is built with its fields as keywords, one by one"
        return unit.refused(node, "HF008", message, _with_fields(lowering, node, model))
    obstacle = obstacle_of(model)
    if obstacle:
        message = f"{title} cannot be built exactly in a workflow: {obstacle}"
        return unit.refused(node, "HF045", message, _PURE_HELP)
    fields = fields_of(model)
    problems = len(unit.diagnostics)
    for keyword in keywords:
        field = fields.get(str(keyword.arg))
        if field is not None:
            _check(lowering, keyword.value, f"{title}.{keyword.arg}", field, values[keyword.arg])
        else:
            unit.refuse(
                keyword.value,
                "HF044",
                f"{title} has no field `{keyword.arg}`",
                known_fields(model, str(keyword.arg), after="=…"),
            )
    _check_left_out(lowering, node, model, frozenset(values))
    if len(unit.diagnostics) > problems:
        return TypedQuery(REFUSED_EXPRESSION.query, ModelOf(model))
    items = (
        (name, values[name].query if name in values else literal(known.default))
        for name, known in fields.items()
    )
    return TypedQuery(ObjectOf(tuple(items)), ModelOf(model), fails_of(*values.values()))


def _with_fields(lowering: Lowering, node: ast.Call, model: Any) -> str:
    """Return the help for fields that are not written out one by one."""
    text = lowering.unit.text
    if node.args or not any(word.arg is None for word in node.keywords):
        example = ", ".join(f"{name}=…" for name in fields_of(model))
        return f"{model.__name__}({example})"
    rows = [
        f"**{text(word.value)}" if word.arg is None else f'"{word.arg}": {text(word.value)}'
        for word in node.keywords
    ]
    data = f"{{{', '.join(rows)}}}" if len(rows) > 1 else rows[0].removeprefix("**")
    if hasattr(model, "model_fields"):
        return f"{text(node.func)}.model_validate({data})"
    return f"TypeAdapter({text(node.func)}).validate_python({data}), of pydantic"


def _keywords(node: ast.Call, model: Any) -> list[ast.keyword]:
    """Return the arguments by name. A dataclass also takes arguments by position."""
    if not node.args:
        return node.keywords
    names = [name for name, field in fields_of(model).items() if field.is_positional]
    named = [
        ast.copy_location(ast.keyword(name, value), value)
        for name, value in zip(names, node.args, strict=False)
    ]
    return [*named, *node.keywords]


def copy_with(lowering: Lowering, node: ast.Call, value: TypedQuery, type_: ModelOf) -> TypedQuery:
    """Lower a copy with changes: `order.model_copy(update={"status": "paid"})`."""
    unit, model = lowering.unit, type_.model
    match node:
        case ast.Call(args=[], keywords=[]):
            return value
        case ast.Call(args=[], keywords=[ast.keyword(arg="deep", value=ast.Constant())]):
            return value
        case ast.Call(args=[], keywords=[ast.keyword(arg="update", value=ast.Dict() as update)]):
            pass
        case _:
            help_ = 'order.model_copy(update={"status": status})'
            message = "model_copy() takes `update={…}`, written out, in a workflow"
            return unit.refused(node, "HF008", message, help_)
    obstacle = obstacle_of(model)
    if obstacle:
        message = f"{model.__name__} cannot be copied exactly in a workflow: {obstacle}"
        return unit.refused(node, "HF045", message, "copy it in a @pure function")
    problems = len(unit.diagnostics)
    given: dict[str, TypedQuery] = {}
    for key, part in zip(update.keys, update.values, strict=True):
        match key:
            case ast.Constant(value=str(name)) if name in fields_of(model):
                given[name] = _checked(lowering, part, f"{model.__name__}.{name}", model, name)
            case _:
                unknown = str(key.value) if isinstance(key, ast.Constant) else ""
                help_ = known_fields(model, unknown, 'update={"', '": …}')
                message = f"{model.__name__} has no such field"
                unit.refuse(part if key is None else key, "HF044", message, help_)
    if len(unit.diagnostics) > problems or any(is_refused(one.type) for one in given.values()):
        return TypedQuery(REFUSED_EXPRESSION.query, REFUSED)
    changes = ObjectOf(tuple((name, one.query) for name, one in given.items()))
    query = invoke("merge", ArrayOf((value.query, changes)))
    return TypedQuery(query, type_, fails_of(value, *given.values()))


def _checked(lowering: Lowering, node: ast.expr, place: str, model: Any, name: str) -> TypedQuery:
    value = _given(lowering.lower(node))
    if not is_refused(value.type):
        _check(lowering, node, place, fields_of(model)[name], value)
    return value


def checked_field(
    lowering: Lowering, node: ast.expr, name: str, model: Any, value: TypedQuery
) -> TypedQuery:
    """Return the value in the form that the field stores, refused when it does not fit."""
    value, problems = _given(value), len(lowering.unit.diagnostics)
    _check(lowering, node, f"{model.__name__}.{name}", fields_of(model)[name], value)
    return REFUSED_EXPRESSION if len(lowering.unit.diagnostics) > problems else value


def _given(value: TypedQuery) -> TypedQuery:
    """Return the value in the form that a model stores: a duration gets pydantic's text form."""
    return written(value)


def _check(
    lowering: Lowering,
    node: ast.expr,
    place: str,
    field: ModelField,
    value: TypedQuery,
) -> None:
    if field.obstacle:
        message = f"{place} cannot be set exactly in a workflow: {field.obstacle}"
        lowering.unit.refuse(node, "HF045", message, _PURE_HELP)
    elif not fits(value.type, field.type):
        message = (
            f"{place} is {describe_exactly(field.type)} and this is "
            f"{describe_exactly(value.type)}: pydantic might convert or refuse it"
        )
        help_ = "give it a value of that type; annotate the type where it is unknown"
        if not isinstance(node, ast.Constant):
            help_ = conversion(lowering.unit.text(node), value.type, field.type) or help_
        lowering.unit.refuse(node, "HF045", message, help_)


def _check_left_out(
    lowering: Lowering, node: ast.Call, model: Any, given: frozenset[str | None]
) -> None:
    left_out = {name: field for name, field in fields_of(model).items() if name not in given}
    missing = [name for name, field in left_out.items() if field.is_required]
    if missing:
        help_ = f"{model.__name__}(…, {missing[0]}=…)"
        lowering.unit.refuse(
            node, "HF008", f"{model.__name__} needs a value for `{missing[0]}`", help_
        )
    for name, field in left_out.items():
        if field.default_obstacle and not field.is_required:
            message = f"{model.__name__}.{name} needs its value here: {field.default_obstacle}"
            lowering.unit.refuse(node, "HF045", message, f"{model.__name__}(…, {name}=…)")
