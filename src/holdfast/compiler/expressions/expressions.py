"""Expressions: from `ast` to typed JSONata. Each kind of node has one rule; other nodes are
refused.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import NOTHING, REFUSED_EXPRESSION, Helper, TypedQuery, Unit
from holdfast.compiler.default_dicts import CountOf
from holdfast.compiler.environment import Environment, Held, LocalFunction, path_of
from holdfast.compiler.expressions import operators, sets
from holdfast.compiler.expressions.asyncio_calls import without_asyncio
from holdfast.compiler.expressions.calls import lower_call
from holdfast.compiler.expressions.caught import error_of_name, name_of_error
from holdfast.compiler.expressions.choices import (
    lower_comparison,
    lower_conditional,
    lower_operands,
    lower_truth_of_operands,
)
from holdfast.compiler.expressions.comprehensions import (
    lower_dict_comprehension,
    lower_list_comprehension,
    lower_rows,
)
from holdfast.compiler.expressions.counters import lower_count_of
from holdfast.compiler.expressions.decimals import decimal_step
from holdfast.compiler.expressions.displays import lower_dict, lower_list, lower_tuple
from holdfast.compiler.expressions.fields import help_for_field, known_fields, member_of
from holdfast.compiler.expressions.formats import lower_percent
from holdfast.compiler.expressions.inlining import lower_method
from holdfast.compiler.expressions.iteration import LoopVariable, walk
from holdfast.compiler.expressions.lazy import is_lazy, refuse_lazy
from holdfast.compiler.expressions.match_groups import lower_groups_of, lower_groups_step
from holdfast.compiler.expressions.methods import call_method
from holdfast.compiler.expressions.moments import are_moments, moves_moment, part_of
from holdfast.compiler.expressions.narrowing import narrow
from holdfast.compiler.expressions.outside import INTEGER_MAX, from_outside
from holdfast.compiler.expressions.query import (
    Constant,
    FieldOf,
    ItemOf,
    Variable,
    field_of_error,
    invoke,
)
from holdfast.compiler.expressions.regexes import compared_match, truth_of_match
from holdfast.compiler.expressions.rewrites import plain_form
from holdfast.compiler.expressions.subscripts import lower_subscript
from holdfast.compiler.expressions.text import lower_joined
from holdfast.compiler.expressions.uncalled_tools import refuse_uncalled_tools
from holdfast.compiler.library_calls import note_failure
from holdfast.compiler.match_groups import GroupsOf, GroupsStep
from holdfast.compiler.steps.class_helpers import property_of
from holdfast.compiler.types.annotations import of_constant
from holdfast.compiler.types.models import fields_of
from holdfast.compiler.types.types import (
    NEVER,
    REFUSED,
    STR,
    UNKNOWN,
    UUID,
    WRITTEN_DURATION,
    EnumOf,
    ErrorOf,
    ModelOf,
    RequestOf,
    TupleOf,
    Union,
    describe,
    is_refused,
    may_be_none,
)
from holdfast.compiler.variable_names import VariableScopeNames


@dataclass(frozen=True, slots=True)
class Expressions:
    """Lowers the expressions of one point of the flow.

    `place` says why a durable call is not possible here. `hoisted` holds the results of durable
    calls that were moved before the statement.
    """

    unit: Unit
    scope: VariableScopeNames
    environment: Environment
    hoisted: Mapping[ast.AST, TypedQuery] = field(default_factory=lambda: MappingProxyType({}))
    place: str = ""
    #: Returns what is known now in the function that defines a local function.
    around: Callable[[LocalFunction], Environment] | None = None

    # The methods that the rules of other modules use (`context.Lowering`).

    def lower(self, node: ast.expr, /) -> TypedQuery:
        if isinstance(node, ast.Call | ast.GeneratorExp) and self._stays_lazy(node):
            return refuse_lazy(self, node)
        return self.gone_through(node)

    def _stays_lazy(self, node: ast.expr) -> bool:
        return is_lazy(self, node) and node not in self.hoisted

    def gone_through(self, node: ast.expr, /) -> TypedQuery:
        """Lower like `lower`, but also accept a generator or a similar value, as the list of its
        items.
        """
        node = plain_form(self, node)
        if node in self.hoisted:
            return self.hoisted[node]
        match node:
            case CountOf():
                return lower_count_of(self, node)
            case GroupsOf():
                return lower_groups_of(self, node)
            case GroupsStep():
                return lower_groups_step(self, node)
            case ast.Constant(value=constant):
                return self._constant(node, constant)
            case ast.Name(id=name) if self.scope.is_local(name):
                return self._value(node, name)
            case ast.Name() | ast.Attribute() if self.is_outside(node):
                return self._outside(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._item(node)
            case ast.BinOp(op=ast.Mod()) if (percent := lower_percent(self, node)) is not None:
                return percent
            case ast.BinOp(left=left, op=operator, right=right):
                pair = self.lower(left), self.lower(right)
                step = decimal_step(self, node, operator, *pair)
                if operators.may_divide_by_zero(operator, *pair):
                    note_failure(self, node, "ZeroDivisionError")
                if moves_moment(operator, *pair):
                    note_failure(self, node, "OverflowError")
                if isinstance(operator, ast.Sub) and are_moments(*pair):
                    note_failure(self, node, "TypeError")
                if any(one.type == WRITTEN_DURATION for one in pair):
                    note_failure(self, node, "ValueError")
                return step or operators.arithmetic(self.unit, node, operator, *pair)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.truth(operand)
                return TypedQuery(invoke("not", value.query), value.type, value.fails)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return operators.negate(self.unit, node, self.lower(operand))
            case ast.BoolOp():
                return lower_operands(self, node)
            case ast.Compare() if (match := compared_match(self, node)) is not None:
                return match
            case ast.Compare():
                return lower_comparison(self, node)
            case ast.IfExp():
                return lower_conditional(self, node)
            case ast.JoinedStr():
                return lower_joined(self, node)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return operators.positive(self.unit, node, self.lower(operand))
            case ast.List(elts=items):
                return lower_list(self, items)
            case ast.Tuple(elts=items):
                return lower_tuple(self, items)
            case ast.Set() | ast.SetComp():
                return sets.lower_set(self, node)
            case ast.Dict():
                return lower_dict(self, node)
            case ast.ListComp() | ast.GeneratorExp():
                return lower_list_comprehension(self, node)
            case ast.DictComp():
                return lower_dict_comprehension(self, node)
            case ast.Call():
                return lower_call(self, node)
            case _:
                return self.unsupported(node)

    def truth(self, node: ast.expr, /) -> TypedQuery:
        """Return the truth of `node` by the rules of Python."""
        match node:
            case ast.BoolOp() if node not in self.hoisted:
                return lower_truth_of_operands(self, node)
            case ast.Call() if (found := truth_of_match(self, node)) is not None:
                return found
            case _:
                return operators.truth(self.unit, node, self.lower(node))

    def iterable(self, node: ast.expr, /) -> TypedQuery:
        """Return the list of the items that an iteration over `node` gives."""
        if isinstance(node, ast.GeneratorExp):
            return self.gone_through(node)
        item = Variable("_item")
        through = walk(self, node, item, Variable("_position"))
        if through.element != LoopVariable(item, getattr(through.element, "type", REFUSED)):
            return lower_rows(self, node)
        return through.items

    def is_builtin(self, name: str, /) -> bool:
        if self.scope.is_local(name):
            return False
        found = self.unit.outside(ast.Name(id=name))
        return found is not NOTHING and found is getattr(builtins, name, None)

    def method(self, node: ast.Call, /) -> TypedQuery:
        """Lower a call of a method, of which the value decides whether it has it."""
        assert isinstance(node.func, ast.Attribute)
        return call_method(self, node, node.func)

    # Moving to another point of the flow.

    def narrowed(self, test: ast.expr, *, is_true: bool) -> Expressions:
        """Return the expressions for code that runs only if `test` was true, or only if it was
        false.
        """
        return self.with_environment(narrow(self, self.environment, test, is_true=is_true))

    def with_environment(self, environment: Environment) -> Expressions:
        if environment is self.environment:
            return self
        return replace(self, environment=environment)

    def of_helper(
        self, unit: Unit, scope: VariableScopeNames, environment: Environment
    ) -> Expressions:
        """Return the expressions for the body of a helper that is called here."""
        return Expressions(unit, scope, environment, place=self.place, around=self.around)

    def inside(self, place: str) -> Expressions:
        """Return the expressions for code that may be evaluated never, or more than once."""
        return replace(self, place=place)

    # Leaves.

    def _constant(self, node: ast.Constant, value: object) -> TypedQuery:
        match value:
            case int() if abs(value) > INTEGER_MAX:
                return self.unit.refused(
                    node,
                    "HF042",
                    "JSON numbers hold integers exactly only up to 2**53",
                    f'use a text: "{value}"',
                )
            case float() if not isfinite(value):
                message, help_ = "JSON has no infinite number", "1.7976931348623157e308"
                return self.unit.refused(node, "HF042", message, help_)
            case None | bool() | int() | float() | str():
                return TypedQuery(Constant(value), of_constant(value))
            case _:
                return self.unsupported(node)

    def _value(self, node: ast.Name, name: str) -> TypedQuery:
        found = self._local(node, name)
        if not isinstance(found.type, RequestOf):
            return found
        message = "a request is no value: only its parts can be kept and passed on"
        return self.unit.refused(node, "HF191", message, f"{name}.data")

    def _local(self, node: ast.Name, name: str) -> TypedQuery:
        entry = self.environment.entries.get(name)
        if entry is not None and not isinstance(entry, Held):
            message, help_ = f"`{name}` is no value", f"call it: `{name}(…)`"
            return self.unit.refused(node, "HF007", message, help_)
        if entry is not None and entry.is_definite:
            return TypedQuery(entry.value, self.environment.facts.get(name, entry.type))
        if entry is not None and is_refused(entry.type):
            return REFUSED_EXPRESSION
        return self.unit.refused(
            node,
            "HF022",
            f"`{name}` may have no value here",
            f"assign it on every path that leads here, e.g. `{name} = None` first",
        )

    def is_outside(self, node: ast.expr, /) -> bool:
        """Return True when a name, or the first name of a chain of attributes, is defined outside
        of the workflow.
        """
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and not self.scope.is_local(node.id)

    def _outside(self, node: ast.expr) -> TypedQuery:
        found = self.unit.outside(node)
        if found is NOTHING and isinstance(node, ast.Attribute):
            return self._attribute(node)
        if found is NOTHING:
            name = self.unit.text(node)
            return self.unit.refused(
                node, "HF004", f"`{name}` is not defined", "import it, or pass it as an argument"
            )
        return from_outside(self.unit, node, found)

    def _owner(self, node: ast.expr) -> TypedQuery:
        """Lower the value whose field is read."""
        if isinstance(node, ast.Name) and self.scope.is_local(node.id):
            return self._local(node, node.id)
        return self.lower(node)

    def _attribute(self, node: ast.Attribute) -> TypedQuery:
        error = error_of_name(self, node)
        if error is not None:
            return name_of_error(self, node, error)
        base = self._owner(node.value)
        if is_refused(base.type):
            return REFUSED_EXPRESSION
        facts = self.environment.facts
        path = path_of(node) if facts else None
        narrowed = None if path is None else facts.get(path)
        match base.type:
            case ModelOf(model) if node.attr in fields_of(model):
                type_ = narrowed or fields_of(model)[node.attr].type
                return TypedQuery(FieldOf(base.query, node.attr), type_, base.fails)
            case ModelOf() if helper := property_of(self.unit, base.type, node):
                return self._property(node, helper)
            case ModelOf(model):
                return self.unit.refused(
                    node,
                    "HF044",
                    f"{model.__name__} has no field `{node.attr}`",
                    known_fields(model, node.attr, f"{self.unit.text(node.value)}."),
                )
            case TupleOf(elements, names) if node.attr in names:
                place = names.index(node.attr)
                query = ItemOf(base.query, Constant(place))
                return TypedQuery(query, narrowed or elements[place], base.fails)
            case ErrorOf(fields=fields) if node.attr in dict(fields):
                type_ = narrowed or dict(fields)[node.attr]
                read = field_of_error(base.query, node.attr)
                return TypedQuery(read, type_, base.fails | {"AttributeError"})
            case EnumOf() | Union() if (found := member_of(base, node.attr)) is not None:
                return found if narrowed is None else found._replace(type=narrowed)
            case type_ if type_ == NEVER:
                return TypedQuery(FieldOf(base.query, node.attr), NEVER, base.fails)
            case type_ if type_ == UUID and node.attr == "hex":
                digits = invoke("replace", base.query, Constant("-"), Constant(""))
                return TypedQuery(digits, STR, base.fails)
            case _ if (part := part_of(base, node.attr)) is not None:
                return part
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
                    help_for_field(self.unit.text(node.value), type_, node.attr),
                )

    def _awaited(self, node: ast.expr) -> TypedQuery:
        text = self.unit.text(node)
        help_ = f"{text}: the workflow waits at each call by itself"
        if isinstance(node, ast.Call) and self.is_outside(node.func):
            help_ = without_asyncio(self.unit, node, self.unit.outside(node.func)) or help_
        message = "a call in a workflow is not awaited"
        return self.unit.refused(node, "HF002", message, help_)

    def _item(self, node: ast.Subscript) -> TypedQuery:
        uncalled = refuse_uncalled_tools(self, node, node.value, node.slice)
        if uncalled is not None:
            return uncalled
        found = lower_subscript(self, node)
        path = path_of(node) if self.environment.facts else None
        known = None if path is None else self.environment.facts.get(path)
        return found if known is None or is_refused(found.type) else found._replace(type=known)

    def _property(self, node: ast.Attribute, helper: Helper) -> TypedQuery:
        call = ast.copy_location(ast.Call(node, [], []), node)
        call = self.unit.property_calls.setdefault(node, call)
        if helper.is_expression:
            return lower_method(self, call, helper)
        message = f"`{helper.name}` has more in it than names, `if` and `return`"
        help_ = f"make it a method, and call it: `{self.unit.text(node)}()`"
        return self.unit.refused(node, "HF012", message, help_)

    def _is_local_name(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.scope.is_local(node.id)

    def unsupported(self, node: ast.expr) -> TypedQuery:
        if isinstance(node, ast.Starred):
            message = "`*` is for lists and for arguments that are written out"
            return self.unit.refused(node, "HF002", message, "[*names, name]")
        if isinstance(node, ast.Await):
            return self._awaited(node.value)
        if isinstance(node, ast.Call):
            message = f"`{self.unit.text(node.func)}` is no function that a workflow can call"
            help_ = 'HANDLERS = {"sum": total_of, "vat": vat}, of tasks, at the top of the module'
            if isinstance(node.func, ast.Subscript) and self._is_local_name(node.func.value):
                # The help above asks for a table that may be there already.
                key = self.unit.text(node.func.slice)
                help_ = "a table of tasks is no value: let one table at the top of the module hold "
                help_ += f"all of them, TOOLS = choice(…), and call TOOLS[{key}](…)"
            return self.unit.refused(node, "HF002", message, help_)
        if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Call):
            called = [node.body.func, *node.body.args]
            parts = [self.unit.text(part) for part in called]
            parts += [f"{word.arg}={self.unit.text(word.value)}" for word in node.body.keywords]
            message = "a lambda is no value that a workflow can keep: its JSON could not say it"
            help_ = (
                f"with compensating() as undo: …; undo({', '.join(parts)})  # to take back later"
            )
            return self.unit.refused(node, "HF002", message, help_)
        kind = _NAMES_OF_NODES.get(type(node), type(node).__name__)
        return self.unit.refused(
            node, "HF002", f"{kind} has no JSONata form", "do it inside a @pure function"
        )


_NAMES_OF_NODES: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Yield: "`yield`",
        ast.YieldFrom: "`yield from`",
        ast.NamedExpr: "`:=`",
        ast.Lambda: "a lambda that is no branch",
        ast.UnaryOp: "this operator",
        ast.Constant: "this constant",
    }
)
