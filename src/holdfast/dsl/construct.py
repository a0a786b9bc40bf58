"""`Outcome(status="shipped")`: a model built without pydantic must be what pydantic would build."""

from __future__ import annotations

import ast
from typing import Any

from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, Lowering, fails_of
from holdfast.dsl.models import ModelField, fields_of, fits, obstacle_of
from holdfast.dsl.query import ObjectOf, literal
from holdfast.dsl.types import ModelOf, describe_exactly, is_refused

_PURE_HELP = "build it in a @pure function"


def construct(lowering: Lowering, node: ast.Call, model: Any) -> Expression:
    unit = lowering.unit
    title = model.__name__
    values = {keyword.arg: lowering.lower(keyword.value) for keyword in node.keywords}
    if any(is_refused(value.type) for value in values.values()):
        return REFUSED_EXPRESSION
    if node.args or None in values:
        return unit.refused(
            node, "HF008", f"{title} is built with keywords only", f"{title}(field=value)"
        )
    obstacle = obstacle_of(model)
    if obstacle:
        message = f"{title} cannot be built exactly in a workflow: {obstacle}"
        return unit.refused(node, "HF045", message, _PURE_HELP)
    fields = fields_of(model)
    problems = len(unit.diagnostics)
    for keyword in node.keywords:
        field = fields.get(str(keyword.arg))
        if field is not None:
            _check(lowering, keyword, model, field, values[keyword.arg])
        else:
            unit.refuse(
                keyword.value,
                "HF044",
                f"{title} has no field `{keyword.arg}`",
                f"fields: {', '.join(fields)}",
            )
    _check_left_out(lowering, node, model, frozenset(keyword.arg for keyword in node.keywords))
    if len(unit.diagnostics) > problems:
        return Expression(REFUSED_EXPRESSION.query, ModelOf(model))
    items = (
        (name, values[name].query if name in values else literal(known.default))
        for name, known in fields.items()
    )
    return Expression(ObjectOf(tuple(items)), ModelOf(model), fails_of(*values.values()))


def _check(
    lowering: Lowering,
    keyword: ast.keyword,
    model: Any,
    field: ModelField,
    value: Expression,
) -> None:
    place = f"{model.__name__}.{keyword.arg}"
    if field.obstacle:
        message = f"{place} cannot be set exactly in a workflow: {field.obstacle}"
        lowering.unit.refuse(keyword.value, "HF045", message, _PURE_HELP)
    elif not fits(value.type, field.type):
        message = (
            f"{place} is {describe_exactly(field.type)} and this is "
            f"{describe_exactly(value.type)}: pydantic might convert or refuse it"
        )
        help_ = "give it a value of that type; annotate the type where it is unknown"
        lowering.unit.refuse(keyword.value, "HF045", message, help_)


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
        if field.obstacle and not field.is_required:
            message = f"{model.__name__}.{name} needs its value here: {field.obstacle}"
            lowering.unit.refuse(node, "HF045", message, f"{model.__name__}(…, {name}=…)")
