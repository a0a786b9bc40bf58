"""Expressions: `ast` -> typed JSONata. One rule per node; what has no rule is refused."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, Final

from holdfast.dsl import operators
from holdfast.dsl.comprehensions import lower_dict_comprehension, lower_list_comprehension
from holdfast.dsl.construct import construct
from holdfast.dsl.context import (
    NOTHING,
    REFUSED_EXPRESSION,
    Environment,
    Expression,
    Held,
    Unit,
    fails_of,
    path_of,
)
from holdfast.dsl.durable import find_durable
from holdfast.dsl.functions import call_function, refuse_call
from holdfast.dsl.iteration import Leaf, walk
from holdfast.dsl.methods import call_method
from holdfast.dsl.models import fields_of
from holdfast.dsl.narrowing import narrow
from holdfast.dsl.query import (
    FALSE,
    TRUE,
    ArrayOf,
    Binary,
    Call,
    Conditional,
    Constant,
    Entry,
    Field,
    ObjectOf,
    Query,
    Variable,
    hold,
    item_of,
    literal,
)
from holdfast.dsl.scope import Scope
from holdfast.dsl.subscripts import lower_subscript
from holdfast.dsl.text import lower_joined
from holdfast.dsl.types import (
    BOOL,
    DURATION,
    REFUSED,
    UNKNOWN,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    TupleOf,
    Type,
    describe,
    is_refused,
    is_text,
    join,
    join_all,
    may_be_list,
    may_be_none,
    of_constant,
)

#: Doubles hold every integer up to here.
INTEGER_MAX: Final = 2**53


@dataclass(frozen=True, slots=True)
class Expressions:
    """Lowers the expressions of one point of the flow.

    `place` says why a durable step cannot stand here; `hoisted` holds the results of those that
    were moved before the statement.
    """

    unit: Unit
    scope: Scope
    environment: Environment
    hoisted: Mapping[ast.AST, Expression] = field(default_factory=lambda: MappingProxyType({}))
    place: str = ""

    # What the rules of other modules use (`context.Lowering`).

    def lower(self, node: ast.expr, /) -> Expression:
        if node in self.hoisted:
            return self.hoisted[node]
        match node:
            case ast.Constant(value=constant):
                return self._constant(node, constant)
            case ast.Name(id=name) if self.scope.is_local(name):
                return self._local(node, name)
            case ast.Name() | ast.Attribute() if self._is_outside(node):
                return self._outside(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return lower_subscript(self, node)
            case ast.BinOp(left=left, op=operator, right=right):
                pair = self.lower(left), self.lower(right)
                return operators.arithmetic(self.unit, node, operator, *pair)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.truth(operand)
                return Expression(Call("not", (value.query,)), value.type, value.fails)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return operators.negate(self.unit, node, self.lower(operand))
            case ast.BoolOp():
                return self._bool_operands(node)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.JoinedStr():
                return lower_joined(self, node)
            case ast.List(elts=items):
                return self._list(items)
            case ast.Tuple(elts=items):
                return self._tuple(items)
            case ast.Dict():
                return self._dict(node)
            case ast.ListComp() | ast.GeneratorExp():
                return lower_list_comprehension(self, node)
            case ast.DictComp():
                return lower_dict_comprehension(self, node)
            case ast.Call():
                return self._call(node)
            case _:
                return self._unsupported(node)

    def truth(self, node: ast.expr, /) -> Expression:
        """Whether Python takes the value of `node` for true."""
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return self._all_true(values)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._any_true(values)
            case _:
                return operators.truth(self.unit, node, self.lower(node))

    def iterable(self, node: ast.expr, /) -> Expression:
        """A list of what iterating over `node` gives."""
        if isinstance(node, ast.GeneratorExp):
            return self.lower(node)
        item = Variable("_item")
        through = walk(self, node, item, Variable("_position"))
        if through.element != Leaf(item, getattr(through.element, "type", REFUSED)):
            return self.unit.refused(
                node,
                "HF002",
                f"`{self.unit.text(node)}` is only for loops and comprehensions",
                "take the parts in a comprehension: [f(index, x) for index, x in enumerate(xs)]",
            )
        return through.items

    def is_builtin(self, name: str, /) -> bool:
        if self.scope.is_local(name):
            return False
        found = self.unit.outside(ast.Name(id=name))
        return found is not NOTHING and found is getattr(builtins, name, None)

    # Moving to another point of the flow.

    def narrowed(self, test: ast.expr, *, is_true: bool) -> Expressions:
        """Where `test` is known to have been true, or false."""
        environment = narrow(self, self.environment, test, is_true=is_true)
        return replace(self, environment=environment)

    def inside(self, place: str) -> Expressions:
        """Where evaluation may not happen, or more than once."""
        return replace(self, place=place)

    # Leaves.

    def _constant(self, node: ast.Constant, value: object) -> Expression:
        match value:
            case int() if abs(value) > INTEGER_MAX:
                return self.unit.refused(
                    node,
                    "HF042",
                    "JSON numbers hold integers exactly only up to 2**53",
                    f'use a text: "{value}"',
                )
            case None | bool() | int() | float() | str():
                return Expression(Constant(value), of_constant(value))
            case _:
                return self._unsupported(node)

    def _local(self, node: ast.Name, name: str) -> Expression:
        entry = self.environment.entries.get(name)
        match entry:
            case Held(value, type_, True):
                return Expression(value, self.environment.facts.get(name, type_))
            case Held(_, type_, _) if is_refused(type_):
                return REFUSED_EXPRESSION
            case Held() | None:
                return self.unit.refused(
                    node,
                    "HF022",
                    f"`{name}` may have no value here",
                    f"assign it on every path that leads here, e.g. `{name} = None` first",
                )
            case _:
                return self.unit.refused(
                    node, "HF007", f"`{name}` is no value", f"call it: `{name}(…)`"
                )

    def _is_outside(self, node: ast.expr) -> bool:
        """Whether a name or a chain of attributes starts outside the workflow."""
        while isinstance(node, ast.Attribute):
            if self.unit.outside(node.value) is NOTHING and not isinstance(
                node.value, ast.Attribute | ast.Name
            ):
                return False
            node = node.value
        return isinstance(node, ast.Name) and not self.scope.is_local(node.id)

    def _outside(self, node: ast.expr) -> Expression:
        found = self.unit.outside(node)
        if found is NOTHING and isinstance(node, ast.Attribute):
            return self._attribute(node)
        if found is NOTHING:
            name = self.unit.text(node)
            return self.unit.refused(
                node, "HF004", f"`{name}` is not defined", "import it, or pass it as an argument"
            )
        return self.from_outside(node, found)

    def from_outside(self, node: ast.expr, found: Any) -> Expression:
        """A constant of the author's module, written into the state machine."""
        if isinstance(found, timedelta) and found.microseconds == 0:
            return Expression(Constant(int(found.total_seconds())), DURATION)
        plain = _json_constant(found)
        if plain is NOTHING:
            kind = "module" if isinstance(found, ModuleType) else type(found).__name__
            return self.unit.refused(
                node,
                "HF003",
                f"`{self.unit.text(node)}` is {kind}: "
                "only JSON constants can be used from outside the workflow",
                "pass it as an argument, or use it inside a @task",
            )
        return Expression(literal(plain), of_constant(found))

    def _attribute(self, node: ast.Attribute) -> Expression:
        base = self.lower(node.value)
        if is_refused(base.type):
            return REFUSED_EXPRESSION
        path = path_of(node)
        narrowed = None if path is None else self.environment.facts.get(path)
        match base.type:
            case ModelOf(model) if node.attr in fields_of(model):
                type_ = narrowed or fields_of(model)[node.attr].type
                return Expression(Field(base.query, node.attr), type_, base.fails)
            case ModelOf(model):
                return self.unit.refused(
                    node,
                    "HF044",
                    f"{model.__name__} has no field `{node.attr}`",
                    f"fields: {', '.join(fields_of(model))}",
                )
            case EnumOf(cls) if node.attr == "value":
                type_ = join_all(of_constant(member.value) for member in cls)
                return Expression(base.query, type_, base.fails)
            case type_ if may_be_none(type_):
                text = self.unit.text(node.value)
                return self.unit.refused(
                    node, "HF043", f"`{text}` may be None here", f"if {text} is not None: …"
                )
            case type_ if type_ == UNKNOWN:
                message = f"`.{node.attr}` of a value of unknown type"
                help_ = "annotate it with a model: payment: Payment = …"
                return self.unit.refused(node, "HF046", message, help_)
            case type_:
                return self.unit.refused(
                    node,
                    "HF044",
                    f"{describe(type_)} has no field `{node.attr}` in a workflow",
                    "read it inside a @pure function",
                )

    # Choices.

    def _bool_operands(self, node: ast.BoolOp) -> Expression:
        """`and` and `or` give one of their operands; JSONata's give a boolean."""
        is_and = isinstance(node.op, ast.And)
        first, rest = node.values[0], node.values[1:]
        value = self.lower(first)
        if not rest:
            return value
        place = self.inside("a condition").narrowed(first, is_true=is_and)
        tail = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])
        if len(rest) > 1:
            tail.end_lineno, tail.end_col_offset = rest[-1].end_lineno, rest[-1].end_col_offset
        other = place.lower(tail)
        test = operators.truth(self.unit, first, value)
        if any(map(is_refused, (value.type, other.type, test.type))):
            return REFUSED_EXPRESSION
        fails = fails_of(value, other)
        if value.type == other.type == BOOL:
            return Expression(_connect(value, other, is_and=is_and), BOOL, fails)

        def choose(held: Query) -> Query:
            is_true = operators.truth(self.unit, first, Expression(held, value.type)).query
            if is_and:
                return Conditional(is_true, other.query, held)
            return Conditional(is_true, held, other.query)

        return Expression(hold(value.query, choose), join(value.type, other.type), fails)

    def _all_true(self, values: list[ast.expr]) -> Expression:
        return self._connected(values, is_and=True)

    def _any_true(self, values: list[ast.expr]) -> Expression:
        return self._connected(values, is_and=False)

    def _connected(self, values: list[ast.expr], *, is_and: bool) -> Expression:
        first = self.truth(values[0])
        place = self.inside("a condition")
        found = [first]
        for before, value in itertools.pairwise(values):
            place = place.narrowed(before, is_true=is_and)
            found.append(place.truth(value))
        result = found[-1]
        for one in reversed(found[:-1]):
            query = _connect(one, result, is_and=is_and)
            result = Expression(query, BOOL, fails_of(one, result))
        return REFUSED_EXPRESSION if any(is_refused(one.type) for one in found) else result

    def _conditional(self, node: ast.IfExp) -> Expression:
        test = self.truth(node.test)
        place = self.inside("a condition")
        then = place.narrowed(node.test, is_true=True).lower(node.body)
        otherwise = place.narrowed(node.test, is_true=False).lower(node.orelse)
        if any(map(is_refused, (test.type, then.type, otherwise.type))):
            return REFUSED_EXPRESSION
        query = Conditional(test.query, then.query, otherwise.query)
        return Expression(query, join(then.type, otherwise.type), fails_of(test, then, otherwise))

    def _compare(self, node: ast.Compare) -> Expression:
        left = self.lower(node.left)
        right = self._comparand(node.ops[0], node.comparators[0])
        first = operators.compare(self.unit, node, node.ops[0], left, right)
        if len(node.ops) == 1:
            return first
        if len(node.ops) > 2 or right.fails or is_refused(first.type):
            help_ = "join two comparisons with `and`"
            return self.unit.refused(node, "HF002", "this chain of comparisons is too long", help_)
        # The middle is written twice: it cannot fail and has no effect.
        last = self.inside("a condition").lower(node.comparators[1])
        second = operators.compare(self.unit, node, node.ops[1], right, last)
        if is_refused(second.type):
            return REFUSED_EXPRESSION
        return Expression(_connect(first, second, is_and=True), BOOL, fails_of(first, second))

    def _comparand(self, operator: ast.cmpop, node: ast.expr) -> Expression:
        if isinstance(operator, ast.In | ast.NotIn) and isinstance(node, ast.Set):
            return self._list(node.elts)
        return self.lower(node)

    # Displays.

    def _list(self, nodes: list[ast.expr]) -> Expression:
        items = [self._item(node) for node in nodes]
        if any(is_refused(item.type) for item in items):
            return REFUSED_EXPRESSION
        type_ = ListOf(join_all(item.type for item in items))
        return Expression(ArrayOf(tuple(item.query for item in items)), type_, fails_of(*items))

    def _tuple(self, nodes: list[ast.expr]) -> Expression:
        items = [self._item(node) for node in nodes]
        type_ = TupleOf(tuple(item.type for item in items))
        return Expression(ArrayOf(tuple(item.query for item in items)), type_, fails_of(*items))

    def _item(self, node: ast.expr) -> Expression:
        value = self.lower(node)
        if isinstance(value.type, ListOf | TupleOf):
            return Expression(item_of(value.query), value.type, value.fails)
        if may_be_list(value.type) and not is_refused(value.type):
            return self.unit.refused(
                node,
                "HF046",
                f"a value of type {describe(value.type)} in a list: is it a list itself?",
                "annotate the type of the value",
            )
        return value

    def _dict(self, node: ast.Dict) -> Expression:
        keys = [None if key is None else self.lower(key) for key in node.keys]
        values = [self.lower(value) for value in node.values]
        parts = [*(key for key in keys if key is not None), *values]
        if any(is_refused(part.type) for part in parts):
            return REFUSED_EXPRESSION
        types: list[Type] = []
        for key, key_node, value in zip(keys, node.keys, values, strict=True):
            if key is None and isinstance(value.type, DictOf):
                types.append(value.type.value)
            elif key is None or not is_text(key.type):
                where = node if key_node is None else key_node
                message = "a dict of a workflow has text keys"
                return self.unit.refused(where, "HF040", message, 'use text: {"1": …}')
            else:
                types.append(value.type)
        return Expression(_merged(keys, values), DictOf(join_all(types)), fails_of(*parts))

    # Calls.

    def _call(self, node: ast.Call) -> Expression:
        function = node.func
        if find_durable(self.unit, self.scope, node) is not None:
            return self._misplaced(node)
        if isinstance(function, ast.Attribute) and not self._is_outside(function):
            return call_method(self, node, function)
        if isinstance(function, ast.Name) and self.scope.is_local(function.id):
            name = function.id
            help_ = f"parallel({name}, …), each(items, {name})"
            message = f"`{name}` is local: only a branch of parallel() or each()"
            return self.unit.refused(node, "HF005", message, help_)
        if isinstance(function, ast.Attribute) and isinstance(
            self.unit.outside(function.value), type
        ):
            # A method of a class from outside: the class is what cannot be used here.
            return self.lower(function.value)
        found = self.unit.outside(function) if self._is_outside(function) else NOTHING
        if found is NOTHING:
            if isinstance(function, ast.Attribute):
                return call_method(self, node, function)
            return self._unknown_function(node)
        if isinstance(found, type) and hasattr(found, "model_fields"):
            return construct(self, node, found)
        known = call_function(self, node, found)
        return self._ordinary(node, found) if known is None else known

    def _unknown_function(self, node: ast.Call) -> Expression:
        name = self.unit.text(node.func)
        if isinstance(node.func, ast.Name):
            help_ = "import it, and decorate it with @task or @pure"
            return self.unit.refused(node, "HF004", f"`{name}` is not defined", help_)
        return self._unsupported(node)

    def _misplaced(self, node: ast.Call) -> Expression:
        name, text = self.unit.text(node.func), self.unit.text(node)
        return self.unit.refused(
            node,
            "HF012",
            f"`{name}` is a durable step and cannot run inside {self.place or 'this expression'}",
            f"call it on its own line first: `x = {text}`, or use each() for one call per item",
        )

    def _ordinary(self, node: ast.Call, found: object) -> Expression:
        name = self.unit.text(node.func)
        if isinstance(found, type) or getattr(builtins, name, None) is found:
            return refuse_call(self, node, "has no JSONata form", "call it inside a @pure function")
        return self.unit.refused(
            node,
            "HF005",
            f"`{name}` is an ordinary Python function: a workflow cannot call it",
            "decorate it with @task (durable, retried, may do I/O) or @pure (quick, no I/O), "
            "or write it out here",
        )

    def _unsupported(self, node: ast.expr) -> Expression:
        kind = _NAMES_OF_NODES.get(type(node), type(node).__name__)
        return self.unit.refused(
            node, "HF002", f"{kind} has no JSONata form", "do it inside a @pure function"
        )


_NAMES_OF_NODES: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Await: "`await`",
        ast.Yield: "`yield`",
        ast.YieldFrom: "`yield from`",
        ast.NamedExpr: "`:=`",
        ast.Lambda: "a lambda that is no branch",
        ast.Starred: "`*` unpacking",
        ast.Set: "a set",
        ast.SetComp: "a set comprehension",
        ast.UnaryOp: "this operator",
        ast.Constant: "this constant",
    }
)


def _json_constant(value: object) -> Any:
    """The JSON of a constant; NOTHING when it has none."""
    match value:
        case Enum():
            return _json_constant(value.value)
        case int() if abs(value) > INTEGER_MAX:
            return NOTHING
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            items = [_json_constant(item) for item in value]
            return NOTHING if any(item is NOTHING for item in items) else items
        case dict() if all(isinstance(key, str) for key in value):
            rows = {key: _json_constant(item) for key, item in value.items()}
            return NOTHING if any(item is NOTHING for item in rows.values()) else rows
        case _:
            return NOTHING


def _connect(left: Expression, right: Expression, *, is_and: bool) -> Query:
    """JSONata may evaluate both sides of `and`; only a conditional protects one that may fail."""
    if not right.fails:
        return Binary("and" if is_and else "or", left.query, right.query)
    if is_and:
        return Conditional(left.query, right.query, FALSE)
    return Conditional(left.query, TRUE, right.query)


def _merged(keys: list[Expression | None], values: list[Expression]) -> Query:
    """One object; keys that are computed or spread may repeat, and then the last one counts."""
    pairs = list(zip(keys, values, strict=True))
    if all(key is not None and isinstance(key.query, Constant) for key, _ in pairs):
        rows = {
            str(key.query.value): value.query
            for key, value in pairs
            if key is not None and isinstance(key.query, Constant)
        }
        return ObjectOf(tuple(rows.items()))
    parts = (value.query if key is None else Entry(key.query, value.query) for key, value in pairs)
    return Call("merge", (ArrayOf(tuple(parts)),))
