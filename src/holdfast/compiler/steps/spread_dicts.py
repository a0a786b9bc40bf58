"""`**arguments` in the call of a task or a child workflow: `charge(order.id, **options)`.

A `TypedDict` whose keys are all required, and `order.model_dump()`, have known keys. Each key
becomes an argument of its own, with its own type. The keys of another dict are known at run time
only, so a task gets the dict itself, behind a test that raises TypeError where Python does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions.dict_keys import texts_of_keys
from holdfast.compiler.expressions.durations import at_border
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    FunctionLiteral,
    ObjectOf,
    QueryTree,
    Variable,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.rewriting import located
from holdfast.compiler.signatures import required_parameters, signature_of
from holdfast.compiler.steps.step_arguments import StepRefused, refuse, require_value
from holdfast.compiler.steps.task_arguments import can_fit
from holdfast.compiler.types.models import fields_of, secret_in
from holdfast.compiler.types.types import (
    NONE,
    UNKNOWN,
    DictOf,
    ModelOf,
    Type,
    TypedDictOf,
    describe_exactly,
    has_text_keys,
    is_refused,
)


def spread_dicts(expressions: Expressions, node: ast.Call) -> ast.Call:
    """Return the call with an argument for each key in place of `**options`, where the keys are
    known. Raises StepRefused.
    """
    if all(word.arg is not None for word in node.keywords):
        return node
    words: list[ast.keyword] = []
    for word in node.keywords:
        words += [word] if word.arg is not None else _words(expressions, word)
    names = [word.arg for word in words if word.arg is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"this call gives `{twice}` twice"
        text = expressions.unit.text(node.func)
        raise refuse(expressions, node, "HF008", message, f"{text}(…) with `{twice}` once")
    return ast.copy_location(ast.Call(node.func, node.args, words), node)


def _words(expressions: Expressions, word: ast.keyword) -> list[ast.keyword]:
    value = require_value(expressions, word.value)
    keys = _known_keys(expressions, word.value, value.type)
    if not keys:
        return [word]
    # The same nodes each time the call is lowered, as what the compiler knows of a node is by node.
    return expressions.unit.spread_words.setdefault(
        (word, (*keys,)), [_argument(word.value, name) for name in keys]
    )


def _known_keys(expressions: Expressions, node: ast.expr, type_: Type) -> Collection[str]:
    """Return the keys that every value of the expression has, and no others; () when some are
    unknown.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="model_dump"), keywords=[]):
            model = expressions.lower(owner).type
            return fields_of(model.model) if isinstance(model, ModelOf) else ()
    if not isinstance(type_, TypedDictOf) or hasattr(type_.cls, "__pydantic_config__"):
        return ()
    names = type_.fields()
    return names if len(type_.required) == len(names) else ()


def _argument(node: ast.expr, name: str) -> ast.keyword:
    """Return `name=options["name"]`, and `name=order.name` for `order.model_dump()`."""
    value: ast.expr = ast.Subscript(node, ast.Constant(name), ast.Load())
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="model_dump")):
            value = ast.Attribute(owner, name, ast.Load())
    return located(ast.keyword(name, value), node)


def with_dict(
    expressions: Expressions,
    node: ast.expr,
    named: Mapping[str, TypedQuery],
    function: Callable[..., Any],
) -> TypedQuery:
    """Return the arguments `named` and those of the dict `node`, whose keys are known at run time.
    Raises StepRefused.
    """
    value = at_border(expressions.unit, node, require_value(expressions, node))
    if is_refused(value.type):
        raise StepRefused
    parameters = signature_of(function).parameters
    rest = {name: type_ for name, type_ in parameters.items() if name not in named}
    _require_fit(expressions, node, value.type, rest)
    missing = [name for name in required_parameters(function) if name in rest]

    def tested(held: QueryTree) -> QueryTree:
        whole: QueryTree = held
        if named:
            items = ObjectOf(tuple((name, one.query) for name, one in named.items()))
            whole = invoke("merge", ArrayOf((held, items)))
        for name in missing:
            whole = Conditional(_has(held, name), whole, _misfit(f"a `{name}` is missing"))
        only = Conditional(_has_other(held, rest), _misfit("an unexpected name"), whole)
        if value.type != UNKNOWN:
            return only
        is_dict = Binary("=", invoke("type", held), Constant("object"))
        return Conditional(is_dict, only, _misfit("`**` takes a dict"))

    fails = fails_of(value, *named.values()) | {"TypeError"}
    return TypedQuery(hold(value.query, tested, "_given"), NONE, fails)


def _misfit(text: str) -> QueryTree:
    return failure(f"TypeError: the arguments do not fit: {text}")


def _has(held: QueryTree, name: str) -> QueryTree:
    return invoke("exists", invoke("lookup", held, Constant(name)))


def _has_other(held: QueryTree, names: Collection[str]) -> QueryTree:
    key = Variable("_key")
    known = Binary("in", key, ArrayOf(tuple(Constant(name) for name in names)))
    test = FunctionLiteral((key.name,), invoke("not", known))
    others = invoke("filter", texts_of_keys(held), test)
    return invoke("exists", others)


def _require_fit(
    expressions: Expressions, node: ast.expr, type_: Type, rest: Mapping[str, Type]
) -> None:
    """Refuse a value that is not a dict of texts, and one whose values fit no parameter."""
    text = expressions.unit.text(node)
    if type_ != UNKNOWN and not (isinstance(type_, DictOf) and has_text_keys(type_)):
        message = f"`**` takes a dict whose keys are texts, and this is {describe_exactly(type_)}"
        is_model = isinstance(type_, ModelOf) and hasattr(type_.model, "model_fields")
        help_ = f"**{text}.model_dump()" if is_model else "options: TypedDict, and `**options`"
        raise refuse(expressions, node, "HF040", message, help_)
    inner = type_.value if isinstance(type_, DictOf) else UNKNOWN
    secrets = [name for name, wanted in rest.items() if secret_in(wanted)]
    if secrets and not secret_in(inner):
        message = f"`{secrets[0]}` is a secret, and the values of this dict are not"
        help_ = f"{secrets[0]}=…, before `**{text}`"
        raise refuse(expressions, node, "HF040", message, help_)
    if rest and not any(can_fit(inner, wanted) for wanted in rest.values()):
        message = f"no parameter takes a value of this dict, which is {describe_exactly(inner)}"
        name, wanted = next(iter(rest.items()))
        help_ = f"{name}=…  # {describe_exactly(wanted)}"
        raise refuse(expressions, node, "HF040", message, help_)


def dicts_of(node: ast.Call) -> Sequence[ast.expr]:
    """Return the dicts of a call that are given with `**`."""
    return [word.value for word in node.keywords if word.arg is None]
