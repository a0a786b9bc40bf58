"""Calls that make a model of data, or data of a model: `Order.model_validate(data)`,
`Order(**data)`, `order.model_dump()`, `dataclasses.asdict(point)`.

Only pydantic can check data, so that is a step of the library. The JSON of a model is already the
dict that `model_dump()` returns, so that is the value itself, with another type.
"""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast.compiler.context import NOTHING, REFUSED_EXPRESSION, Lowering, TypedQuery
from holdfast.compiler.expressions.declared import named_type
from holdfast.compiler.library_calls import as_model_step
from holdfast.compiler.types.annotations import is_model
from holdfast.compiler.types.models import fields_of, obstacle_of, secret_in
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    TextForm,
    TupleOf,
    Type,
    TypedDictOf,
    Union,
    consists_of,
    describe,
    is_json,
    is_refused,
    join_all,
    members_of,
    parts_of,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_FROM_JSON: Final = frozenset({"model_validate_json", "validate_json"})


def lower_validation(expressions: Expressions, node: ast.Call) -> TypedQuery | None:
    """Lower `Order.model_validate(data)` and `TypeAdapter(list[Order]).validate_python(data)`; None
    for another call.
    """
    match node:
        case ast.Call(
            func=ast.Attribute(value=owner, attr="model_validate" | "model_validate_json" as name)
        ) if expressions.is_outside(owner):
            wanted = expressions.unit.outside(owner)
            if not is_model(wanted):
                return None
        case ast.Call(
            func=ast.Attribute(value=owner, attr="validate_python" | "validate_json" as name)
        ):
            wanted = _adapted(expressions, owner)
            if wanted is NOTHING:
                return None
        case _:
            return None
    is_list = typing.get_origin(wanted) is list
    model = typing.get_args(wanted)[0] if is_list else wanted
    is_json = name in _FROM_JSON
    if not is_model(model) or len(node.args) != 1 or node.keywords:
        message = f"`.{name}()` takes one value, for a model or a list of models, in a workflow"
        help_ = "check it in a @pure function"
        if is_model(model) and node.args:
            text = expressions.unit.text
            help_ = f"{text(node.func)}({text(node.args[0])})"
        return expressions.unit.refused(node, "HF008", message, help_)
    if is_list:
        call = "validate_json_list" if is_json else "validate_list"
    else:
        call = "model_validate_json" if is_json else "model_validate"
    return _validated(expressions, node, call, model, node.args[0])


def lower_unpacked(expressions: Expressions, node: ast.Call, model: Any) -> TypedQuery | None:
    """Lower `Order(**data)`, which is `Order.model_validate(data)`; None for another call."""
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=None, value=data)]) if (
            hasattr(model, "model_fields") and not model.__pydantic_custom_init__
        ):
            return _validated(expressions, node, "model_validate", model, data)
        case _:
            return None


def lower_checked(expressions: Expressions, node: ast.Call, model: Any) -> TypedQuery | None:
    """Let pydantic build a model with constraints or validators, or of values of unknown type; None
    where it need not, or where the JSON of a value is not the value itself.
    """
    if not hasattr(model, "model_fields") or model.__pydantic_custom_init__ or node.args:
        return None
    names = [str(word.arg) for word in node.keywords if word.arg is not None]
    if not names or len(names) < len(node.keywords):
        return None
    is_checked = obstacle_of(model) or any(one.obstacle for one in fields_of(model).values())
    keys: list[ast.expr | None] = [
        ast.copy_location(ast.Constant(name), word.value)
        for name, word in zip(names, node.keywords, strict=True)
    ]
    data = ast.copy_location(ast.Dict(keys, [word.value for word in node.keywords]), node)
    with expressions.unit.trial():
        types = [expressions.lower(word.value).type for word in node.keywords]
    if not is_checked and UNKNOWN not in types:
        return None
    if not all(_is_same_in_json(one) for type_ in types for one in members_of(type_)):
        return None
    return _validated(expressions, node, "model_validate", model, data)


def _adapted(expressions: Expressions, node: ast.expr) -> Any:
    """Return the type of `TypeAdapter(type)`, or of a `TypeAdapter` of the module; NOTHING for
    anything else.
    """
    match node:
        case ast.Call(func=function, args=[given], keywords=[]) if expressions.is_outside(function):
            is_adapter = getattr(expressions.unit.outside(function), "__name__", "") == _ADAPTER
            return named_type(expressions.unit, given) if is_adapter else NOTHING
        case ast.Name() | ast.Attribute() if expressions.is_outside(node):
            found = expressions.unit.outside(node)
            # pydantic shows the type of an adapter nowhere else.
            return found._type if type(found).__name__ == _ADAPTER else NOTHING  # noqa: SLF001
        case _:
            return NOTHING


#: The class is known by its name, because the compiler does not import pydantic.
_ADAPTER: Final = "TypeAdapter"


def _validated(
    expressions: Expressions, node: ast.Call, call: str, model: Any, data: ast.expr
) -> TypedQuery:
    value = expressions.lower(data)
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    is_plain = all(map(_is_same_in_json, members_of(value.type)))
    step = None
    if is_plain and not secret_in(ModelOf(model)):
        step = as_model_step(expressions, node, call, model, data)
    if step is not None:
        return step
    message = f"{model.__name__} is checked by a step, which cannot stand here"
    if not is_plain:
        message = f"the JSON of {describe(value.type)} is not what {model.__name__} checks"
    help_ = "check it in a @pure function"
    return expressions.unit.refused(node, "HF045", message, help_)


def _is_same_in_json(type_: Type) -> bool:
    """Return True when a value that is read from the JSON equals the value in Python."""
    return consists_of(type_, (STR, INT, FLOAT, BOOL, NONE, NEVER, UNKNOWN))


def dumped(lowering: Lowering, node: ast.Call, value: TypedQuery, type_: ModelOf) -> TypedQuery:
    """Lower `order.model_dump()`, with `mode="json"` or `exclude_none=True`."""
    match node:
        case ast.Call(args=[], keywords=[]):
            form: Callable[[Type], Type] | None = as_data
        case ast.Call(
            args=[], keywords=[ast.keyword(arg="mode", value=ast.Constant(value="json"))]
        ):
            form = _as_json
        case ast.Call(
            func=ast.Attribute(value=owner),
            args=[],
            keywords=[ast.keyword(arg="exclude_none", value=ast.Constant(value=True))],
        ) if is_json(as_data(type_)):
            step = as_model_step(lowering, node, "model_dump_present", type_.model, owner)
            return step or _not_dumped(lowering, node, type_)
        case _:
            form = None
    is_whole = not secret_in(type_) and form is not None and not _obstacle(type_.model)
    data = form(type_) if form is not None and is_whole else Opaque("data")
    if _has_opaque(data):
        return _not_dumped(lowering, node, type_)
    return TypedQuery(value.query, data, value.fails)


def dumped_text(lowering: Lowering, node: ast.Call, type_: ModelOf) -> TypedQuery:
    """Lower `order.model_dump_json()`, by a step of the library."""
    step = None
    match node:
        case ast.Call(func=ast.Attribute(value=owner), args=[], keywords=[]) if not secret_in(
            type_
        ):
            step = as_model_step(lowering, node, "model_dump_json", type_.model, owner)
    return step or _not_dumped(lowering, node, type_)


def lower_asdict(lowering: Lowering, node: ast.Call) -> TypedQuery:
    """Lower `dataclasses.asdict(point)`."""
    value = lowering.lower(node.args[0]) if len(node.args) == 1 and not node.keywords else None
    if value is not None and is_refused(value.type):
        return REFUSED_EXPRESSION
    if value is None or not isinstance(value.type, ModelOf) or not _is_dataclass(value.type.model):
        message = "`asdict()` takes one dataclass in a workflow"
        has_dump = value is not None and isinstance(value.type, ModelOf)
        text = lowering.unit.text(node.args[0]) if has_dump else ""
        help_ = f"{text}.model_dump()" if text else "call it inside a @pure function"
        return lowering.unit.refused(node, "HF002", message, help_)
    data = _as_data(value.type, _is_dataclass)
    if _has_opaque(data):
        return _not_dumped(lowering, node, value.type)
    return TypedQuery(value.query, data, value.fails)


def _not_dumped(lowering: Lowering, node: ast.Call, type_: ModelOf) -> TypedQuery:
    message = f"this dict of {describe(type_)} has no exact JSONata form"
    help_ = "pass the model itself: it crosses as its JSON"
    return lowering.unit.refused(node, "HF002", message, help_)


def _is_dataclass(model: Any) -> bool:
    return dataclasses.is_dataclass(model) and not hasattr(model, "model_fields")


def _obstacle(model: Any) -> bool:
    """Return True when the model's JSON is not a field for each of its fields."""
    decorators = getattr(model, "__pydantic_decorators__", None)
    if decorators is None or not hasattr(model, "model_fields"):
        return False
    is_open = model.model_config.get("extra") == "allow"
    is_by_alias = bool(model.model_config.get("serialize_by_alias"))
    return bool(decorators.computed_fields) or is_open or is_by_alias


def as_data(type_: Type) -> Type:
    """Return the type that `model_dump()` gives for a value."""
    return _as_data(type_, lambda _: True)


def _as_data(
    type_: Type, is_opened: Callable[[Any], bool], around: frozenset[Any] = frozenset()
) -> Type:
    def inner(one: Type) -> Type:
        return _as_data(one, is_opened, around)

    match type_:
        case ModelOf(model) if not is_opened(model):
            return type_
        case ModelOf(model) if model in around or _obstacle(model):
            return Opaque("data")
        case ModelOf(model):
            within = around | {model}
            parts = [_as_data(one.type, is_opened, within) for one in fields_of(model).values()]
            return DictOf(_value_of(parts))
        case TypedDictOf():
            return type_
        case ListOf(element, is_tuple):
            return ListOf(inner(element), is_tuple)
        case SetOf(element, is_frozen):
            return SetOf(inner(element), is_frozen)
        case DictOf(value, key=key):
            return DictOf(inner(value), key=key)
        case TupleOf(names=names) if names:
            return Opaque("data")
        case TupleOf(elements):
            return TupleOf(tuple(map(inner, elements)))
        case Union(members):
            return join_all(map(inner, members))
        case _:
            return type_


def _value_of(parts: list[Type]) -> Type:
    """Return the type of the values of a dict. Values of several types that JSON keeps are read
    like an `Any`, so that an author can compute with them.
    """
    joined = join_all(parts)
    is_any = isinstance(joined, Union) and is_json(joined)
    return UNKNOWN if is_any else joined


def _as_json(type_: Type) -> Type:
    """Return the type that `model_dump(mode="json")` gives for a value."""
    return _json_of(as_data(type_))


def _json_of(type_: Type) -> Type:
    match type_:
        case EnumOf(enum):
            kinds = {str: STR, int: INT, float: FLOAT}
            return join_all(kinds.get(type(one.value), Opaque("data")) for one in enum)
        case TextForm():
            return STR
        case TupleOf(elements):
            return ListOf(join_all(map(_json_of, elements)))
        case ListOf(element) | SetOf(element):
            return ListOf(_json_of(element))
        case TypedDictOf():
            return DictOf(UNKNOWN)
        case DictOf(value):
            return DictOf(_value_of([_json_of(one) for one in members_of(value)]))
        case Union(members):
            return join_all(map(_json_of, members))
        case _:
            return type_


def _has_opaque(type_: Type) -> bool:
    return any(isinstance(one, Opaque) for one in parts_of(type_))
