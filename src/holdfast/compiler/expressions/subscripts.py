"""`xs[i]`, `d[key]` and slices, with checks where JSONata would give undefined instead of an
error.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.dict_keys import key_help, sought
from holdfast.compiler.expressions.enum_values import member_by_name
from holdfast.compiler.expressions.gathering import where
from holdfast.compiler.expressions.iteration import require_int
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    Variable,
    failure,
    guard,
    hold,
    invoke,
    is_kind,
)
from holdfast.compiler.expressions.unknowns import as_kind
from holdfast.compiler.library_calls import note_failure
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    INT,
    NEVER,
    STR,
    UNKNOWN,
    DictOf,
    ListOf,
    ModelOf,
    ResultOf,
    TupleOf,
    Type,
    TypedDictOf,
    as_text,
    describe,
    element_of,
    is_key,
    is_refused,
    is_text,
)
from holdfast.errors import nearest


def lower_subscript(lowering: Lowering, node: ast.Subscript) -> TypedQuery:
    member = member_by_name(lowering, node)
    if member is not None:
        return member
    base = lowering.lower(node.value)
    base = base._replace(type=as_text(base.type))
    if is_refused(base.type):
        return REFUSED_EXPRESSION
    if isinstance(node.slice, ast.Slice):
        return _slice(lowering, node, base, node.slice)
    key = lowering.lower(node.slice)
    if is_refused(key.type):
        return REFUSED_EXPRESSION
    if base.type == UNKNOWN and (is_key(key.type) or key.type == INT):
        base = as_kind(base, "array" if key.type == INT else "object", "TypeError")
    fails = fails_of(base, key)
    text = lowering.unit.text(node)
    match base.type:
        case ListOf(element) if key.type == INT:
            note_failure(lowering, node, "IndexError")
            query = guard(ItemOf(base.query, key.query), f"IndexError: {text}")
            return TypedQuery(query, element, fails | {"IndexError"})
        case type_ if is_text(type_) and key.type == INT:
            note_failure(lowering, node, "IndexError")
            query = _character(base.query, key.query, f"IndexError: {text}")
            return TypedQuery(query, STR, fails | {"IndexError"})
        case TupleOf(elements) if isinstance(key.query, Constant):
            return _tuple_item(lowering, node, base, elements, key.query.value)
        case DictOf() as dict_ if (sought_ := sought(dict_, key)) is not None:
            found = value_at(dict_, key.query)
            if found is None:
                return _refuse_field(lowering, node, dict_, str(getattr(key.query, "value", "")))
            if has_plain_error(key.type):
                note_failure(lowering, node, "KeyError")
            query = guard(invoke("lookup", base.query, sought_), f"KeyError: {text}")
            return TypedQuery(query, found, fails | {"KeyError"})
    help_ = _index_help(lowering.unit.text(node.value), base.type)
    if isinstance(base.type, DictOf):
        inside = key_help(base.type, key.type, lowering.unit.text(node.slice))
        help_ = f"{lowering.unit.text(node.value)}[{inside}]"
    return lowering.unit.refused(
        node,
        "HF002",
        f"`[…]` on {describe(base.type)} with {describe(key.type)} has no exact JSONata form",
        help_,
    )


def has_plain_error(key: Type) -> bool:
    """Return True when the compiled code can write the text of Python's KeyError."""
    return is_text(key) or key == INT


def value_at(dict_: DictOf, key: QueryTree) -> Type | None:
    """Return the type of the value under the key; None for a field that no result of the service
    has.
    """
    match dict_, key:
        case ResultOf() | TypedDictOf(), Constant(str(name)):
            return dict_.fields().get(name)
        case _:
            return dict_.value


def _refuse_field(lowering: Lowering, node: ast.Subscript, dict_: DictOf, name: str) -> TypedQuery:
    assert isinstance(dict_, ResultOf | TypedDictOf)
    known = dict_.fields()
    meant = nearest(name, known) or next(iter(known), None)
    help_ = f'{lowering.unit.text(node.value)}["{meant}"]' if meant else "it has no fields"
    code, owner = "HF044", describe(dict_)
    if isinstance(dict_, ResultOf):
        code, owner = "HF190", dict_.name
    return lowering.unit.refused(node, code, f"{owner} has no field `{name}`", help_)


def _index_help(text: str, type_: Type) -> str:
    if isinstance(type_, ModelOf):
        return f"{text}.{next(iter(fields_of(type_.model)), '…')}"
    return "index a list by an int or a dict by a text; annotate the type where it is unknown"


def _character(text: QueryTree, place: QueryTree, message: str) -> QueryTree:
    """Return one character of a text, with a check: for an index before the beginning JSONata would
    return the first character.
    """

    def at(held: QueryTree, position: QueryTree) -> QueryTree:
        found = invoke("substring", held, position, Constant(1))
        return Conditional(_is_inside(held, position), found, failure(message))

    return hold(text, lambda held: hold(place, partial(at, held), "_place"), "_text")


def _is_inside(text: QueryTree, place: QueryTree) -> QueryTree:
    size = invoke("length", text)
    is_after_start = Binary(">=", place, Binary("-", Constant(0), size))
    return Binary("and", is_after_start, Binary("<", place, size))


def has_item(base: TypedQuery, key: TypedQuery) -> QueryTree | None:
    """Return the test that `base[key]` exists; None where the index cannot fail. Both operands are
    read more than once.
    """
    match base.type:
        case ListOf() if key.type == INT:
            return hold(ItemOf(base.query, key.query), lambda item: invoke("exists", item))
        case type_ if is_text(type_) and key.type == INT:
            return _is_inside(base.query, key.query)
        case DictOf() if has_plain_error(key.type):
            text = sought(base.type, key)
            found = None if text is None else invoke("lookup", base.query, text)
            return None if found is None else invoke("exists", found)
        case _:
            return None


def _tuple_item(
    lowering: Lowering,
    node: ast.Subscript,
    base: TypedQuery,
    elements: tuple[Type, ...],
    position: object,
) -> TypedQuery:
    if isinstance(position, int) and -len(elements) <= position < len(elements):
        query = ItemOf(base.query, Constant(position))
        return TypedQuery(query, elements[position], base.fails)
    help_ = f"{lowering.unit.text(node.value)}[{len(elements) - 1}]"
    return lowering.unit.refused(node, "HF040", f"this tuple has {len(elements)} parts", help_)


def _slice(
    lowering: Lowering, node: ast.Subscript, base: TypedQuery, part: ast.Slice
) -> TypedQuery:
    if part.step is not None:
        return _by_step(lowering, node, base, part)
    if base.type == UNKNOWN:
        return _slice_of_any(lowering, node, base, part)
    if not (is_text(base.type) or isinstance(base.type, ListOf)):
        return _refused_slice(lowering, node, base.type)
    size = invoke("length" if is_text(base.type) else "count", base.query)
    first = _bound(lowering, part.lower, size)
    last = _bound(lowering, part.upper, size)
    fails = fails_of(base, *(bound for bound in (first, last) if bound is not None))
    low = None if first is None else first.query
    high = None if last is None else last.query
    if is_text(base.type):
        return TypedQuery(_text_slice(base.query, low, high), base.type, fails)
    query = _list_slice(base.query, element_of(base.type) or NEVER, low, high)
    return TypedQuery(query, base.type, fails)


def _slice_of_any(
    lowering: Lowering, node: ast.Subscript, base: TypedQuery, part: ast.Slice
) -> TypedQuery:
    """Lower a slice of a value that is a text or a list in the run."""

    def variants(held: QueryTree) -> tuple[TypedQuery, TypedQuery]:
        some = as_kind(TypedQuery(held, UNKNOWN), "array", "TypeError")
        text = _slice(lowering, node, TypedQuery(held, STR), part)
        return text, _slice(lowering, node, some, part)

    def build(held: QueryTree) -> QueryTree:
        text, items = variants(held)
        is_string = is_kind(held, "string")
        return Conditional(is_string, text.query, items.query)

    return TypedQuery(
        hold(base.query, build, "_sliced"), UNKNOWN, fails_of(base, *variants(base.query))
    )


def _refused_slice(lowering: Lowering, node: ast.Subscript, type_: Type) -> TypedQuery:
    message = f"this slice of {describe(type_)} has no exact JSONata form"
    return lowering.unit.refused(node, "HF002", message, "slice inside a @pure function")


def _by_step(
    lowering: Lowering, node: ast.Subscript, base: TypedQuery, part: ast.Slice
) -> TypedQuery:
    """Lower `xs[::2]` and `xs[1:9:2]`, and of the slices that go back `xs[::-1]` and `xs[::-2]`."""
    step = 0 if part.step is None else _constant_int(lowering.lower(part.step).query)
    is_whole = part.lower is None and part.upper is None
    is_known = is_text(base.type) or isinstance(base.type, ListOf)
    if not step or not is_known or (step < 0 and not is_whole):
        return _refused_slice(lowering, node, base.type)
    bounds = ast.copy_location(ast.Slice(part.lower, part.upper), part)
    found = base if is_whole else _slice(lowering, node, base, bounds)
    items = found.query
    if is_text(base.type):
        items = invoke("split", items, Constant(""))
    if step < 0:
        items = invoke("reverse", items)
    if abs(step) > 1:
        element = STR if is_text(base.type) else element_of(base.type) or NEVER
        turns = invoke("floor", Binary("/", _PLACE, Constant(abs(step))))
        is_kept = Binary("=", _PLACE, Binary("*", turns, Constant(abs(step))))
        items = _where(items, element, is_kept)
    query = invoke("join", items) if is_text(base.type) else items
    type_ = STR if is_text(base.type) else base.type
    return TypedQuery(query, type_, found.fails)


def _constant_int(query: QueryTree) -> int:
    """Return the value of a constant int, and 0 for anything else."""
    value = query.value if isinstance(query, Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _bound(lowering: Lowering, node: ast.expr | None, size: QueryTree) -> TypedQuery | None:
    """Return the bound of a slice, counted from the left and at least 0, by Python's rules."""
    if node is None:
        return None
    value = require_int(lowering, node)
    if isinstance(value.query, Constant) and isinstance(value.query.value, int):
        if value.query.value >= 0:
            return value
        from_end = Binary("-", size, Constant(-value.query.value))
        return TypedQuery(_not_negative(from_end), INT)
    is_negative = Binary("<", value.query, Constant(0))
    from_end = Binary("+", size, value.query)
    query = Conditional(is_negative, _not_negative(from_end), value.query)
    return TypedQuery(query, INT, value.fails)


def _not_negative(number: QueryTree) -> QueryTree:
    return invoke("max", ArrayOf((Constant(0), number)))


def _text_slice(text: QueryTree, low: QueryTree | None, high: QueryTree | None) -> QueryTree:
    start = Constant(0) if low is None else low
    if high is None:
        return invoke("substring", text, start)
    if start == Constant(0):
        return invoke("substring", text, start, high)
    return invoke("substring", text, start, _not_negative(Binary("-", high, start)))


def _list_slice(
    items: QueryTree, element: Type, low: QueryTree | None, high: QueryTree | None
) -> QueryTree:
    """Lower a slice of a list. The bounds are evaluated first, because JSONata would not evaluate
    them for an empty list.
    """
    if low is None and high is None:
        return items
    if low is None:
        assert high is not None
        return hold(high, lambda upper: _where(items, element, _is_before(upper)), "_high")
    if high is None:
        return hold(low, lambda lower: _where(items, element, _is_from(lower)), "_low")

    def between(lower: QueryTree, upper: QueryTree) -> QueryTree:
        return _where(items, element, Binary("and", _is_from(lower), _is_before(upper)))

    return hold(low, lambda lower: hold(high, partial(between, lower), "_high"), "_low")


def rest_of(items: QueryTree, element: Type, before: int, after: int) -> QueryTree:
    """Return the items without so many at the beginning and at the end."""
    end = Binary("-", invoke("count", items), Constant(after))
    is_inside = Binary("and", _is_from(Constant(before)), _is_before(Variable("_end")))
    return hold(end, lambda _: _where(items, element, is_inside), "_end")


_PLACE: Final = Variable("_place")


def _is_from(low: QueryTree) -> QueryTree:
    return Binary(">=", _PLACE, low)


def _is_before(high: QueryTree) -> QueryTree:
    return Binary("<", _PLACE, high)


def _where(items: QueryTree, element: Type, test: QueryTree) -> QueryTree:
    """Return the items whose position passes the test."""
    return where(items, (Variable("_value"), _PLACE), test, element)
