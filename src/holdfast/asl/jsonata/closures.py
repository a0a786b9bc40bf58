"""The compiler from syntax trees to closures: a node becomes a function of scope and context.

The problem
-----------
An interpreter looks at the type of each node in each evaluation. A closure
has made these decisions once, when the expression was compiled. It then does only the work of its
node.

    $order.total > 100

    binary ">"                          BINARY[">"](left, right)
    ├── path                            binding_path("order", ("total",))
    │   ├── variable order       ──►
    │   └── name total
    └── number 100                      literal: lambda scope, context: 100

Rules
-----
1. A node is compiled only when the compiler knows every attribute that the node has.
`checked` tests this. Any other attribute raises `UnsupportedNode`, and the whole expression runs on
jsonata-python. Without this rule a forgotten attribute, such as a predicate, would be ignored and
would silently change the result.

2. When in doubt, refuse. A slow result is correct; a fast one may be wrong.

3. The compiler decides by the text alone. Decisions by values are made in the evaluation: a closure
raises `Declined` for a value that it cannot handle.

Names
-----
`names_bound_in` finds the names that an expression binds before anything is compiled.
Each variable then has one of these meanings:

* A name that the expression binds to values: `local_variable` looks it up in the scopes.
* A name that the expression binds to functions alone (`_lambdas`): it can only be called or passed.
* A name of a built-in function: as a value it is refused, unless a binding has the same name.
* Any other name: a binding of the evaluation, read directly.

An expression that binds the name of a built-in function is refused. If a binding hides a function
that the expression calls, `evaluate` raises `Declined`.

Sequences
---------
A path or a function may return a sequence (`Many`). An expression reads an
empty sequence as undefined, and a sequence of one item as that item. `paths.shown` converts it as
late as possible: a predicate or a further step needs the sequence itself.

Costs
-----
A step of a loop is charged for 20 nodes (`_NODES_PER_STEP`). A larger part that is
evaluated with each of many items is charged by its size (`_repeated`). More than 50 nested scopes
are refused: a variable is searched in all of them, and no budget counts that search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from holdfast.asl.jsonata import costs, groups, nodes, paths, values
from holdfast.asl.jsonata.natives import NATIVES
from holdfast.asl.jsonata.operators import BINARY
from holdfast.asl.jsonata.runtime import (
    CompiledExpression,
    CompiledNode,
    Declined,
    Lambda,
    Native,
    VariableScope,
    negate,
    truth,
)
from holdfast.asl.jsonata.tree import (
    UnsupportedNode,
    checked,
    children,
    ignores_context,
    is_array,
    is_plain_name,
    names_bound_in,
)
from holdfast.asl.jsonata.values import UNDEFINED

# An expression that calls one of these functions can build a value that takes little memory, but
# whose JSON text is too long. Its result is therefore measured.
_GROWING: Final = frozenset({"reduce"})
# The kinds of nodes whose value may be a `Many` (an intermediate sequence). `node` converts it,
# because an expression must never see one.
_UNSEEN: Final = frozenset({"function", "apply"})
_NODES_PER_STEP: Final = 20
# A variable is searched in every scope around it, and no budget counts that search. So the depth is
# limited.
_SCOPES_MAX: Final = 50
# The attributes of an operator's node that `unary` need not compile: `node` compiles `predicate`
# and `group`, and the caller of `node` compiles `stages` and `consarray`. Without them here,
# `checked` would refuse every such node as unsupported.
_OUTSIDE: Final = ("predicate", "stages", "group", "consarray")


def compile_closures(tree: Any, functions: frozenset[str]) -> CompiledExpression:
    """Return the expression as closures. Raises UnsupportedNode."""
    compiler = _Compiler(tree, functions)
    node = compiler.node(tree)
    return CompiledExpression(node, frozenset(compiler.called), grows=compiler.grows)


class _Compiler:
    """Compiles one expression. Raises UnsupportedNode."""

    def __init__(self, tree: Any, functions: frozenset[str]) -> None:
        self.called: set[str] = set()
        self.grows = False
        self._functions = functions
        self._bound, self._lambdas = names_bound_in(tree)
        if self._bound & functions:
            raise UnsupportedNode("a variable named as a function")
        # For each block around the node, whether it binds a variable. The outermost scope is always
        # there.
        self._binds = [True]
        self._sizes: dict[Any, int] = {}

    def node(self, expr: Any, *known: str) -> CompiledNode:
        """Compile a node with its predicates, then its groups. `known` are the attributes that the
        caller handles.
        """
        compiled = self._without_predicates(expr, "group", *known)
        if expr.predicate:
            filters = tuple(self._filter(predicate) for predicate in expr.predicate)
            compiled = paths.filtered(compiled, filters)
        if expr.group:
            pairs = self._pairs(checked(expr.group, "lhs_object").lhs_object)
            return groups.grouped(compiled, pairs)
        return paths.shown(compiled) if expr.predicate or expr.type in _UNSEEN else compiled

    def _repeated(self, expr: Any, *known: str) -> CompiledNode:
        """Compile a node that is evaluated for each of many items. The cost of a step includes a
        small node; a larger one is charged for each item.
        """
        compiled = self.node(expr, *known)
        size = self._size(expr)
        if size <= _NODES_PER_STEP:
            return compiled

        def node(frame: VariableScope, context: Any) -> Any:
            frame.run.charge(size)
            return compiled(frame, context)

        return node

    def _size(self, expr: Any) -> int:
        if expr not in self._sizes:
            self._sizes[expr] = 1 + sum(map(self._size, children(expr)))
        return self._sizes[expr]

    def _without_predicates(self, expr: Any, *known: str) -> CompiledNode:
        method = _METHODS.get(expr.type)
        if method is None:
            raise UnsupportedNode(expr.type)
        attributes, compile_node = method
        checked(expr, *attributes, "predicate", *known)
        return compile_node(self, expr)

    def _filter(self, predicate: Any) -> paths.PathFilter:
        checked(predicate, "expr")
        if predicate.type != "filter":
            raise UnsupportedNode(predicate.type)
        expr = predicate.expr
        if expr.type == "number" and not expr.predicate and type(expr.value) is int:
            checked(expr)
            return paths.index_filter(expr.value)
        condition = self._repeated(expr)
        if ignores_context(expr):
            return paths.position_filter(condition)
        return paths.condition_filter(condition)

    def literal(self, expr: Any) -> CompiledNode:
        value = values.without_long_integers(expr.value)
        return lambda _frame, _context: value

    def variable(self, expr: Any) -> CompiledNode:
        name = str(expr.value)
        if name == "":
            return nodes.the_context
        if name in self._lambdas:
            # The expression uses a built-in function as a value, which only jsonata-python
            # supports.
            raise UnsupportedNode(name)
        if name in self._bound:
            return nodes.local_variable(name)
        if name in self._functions:
            return nodes.binding_or_function(name)
        return lambda frame, _context: frame.run.bindings.get(name, UNDEFINED)

    def path(self, expr: Any) -> CompiledNode:
        first, *rest = expr.steps
        starts_at_name = first.type == "name"
        is_general = first.consarray or (starts_at_name and first.stages)
        if not expr.group and not is_general and all(map(is_plain_name, rest)):
            names = tuple(str(step.value) for step in rest)
            if starts_at_name:
                checked(first)
                return paths.name_path(nodes.the_context, (str(first.value), *names))
            if self._is_binding(first):
                return paths.binding_path(str(first.value), names)
            return paths.name_path(self._first_step(first), names)
        if starts_at_name:
            path = paths.general_path(None, tuple(map(self._step, expr.steps)))
        else:
            path = paths.general_path(self._first_step(first), tuple(map(self._step, rest)))
        return path if expr.group else paths.shown(path)

    def _is_binding(self, expr: Any) -> bool:
        if expr.type != "variable" or expr.predicate or expr.group or expr.value == "":
            return False
        checked(expr)
        return expr.value not in self._bound | self._lambdas | self._functions

    def _first_step(self, expr: Any) -> CompiledNode:
        if expr.consarray:
            return self._first_array(expr)
        node = self.node(expr)
        if expr.type == "variable":
            return node

        def first(frame: VariableScope, context: Any) -> Any:
            if type(context) is list:
                # jsonata-python evaluates this step with each item of the list.
                raise Declined
            return node(frame, context)

        return first

    def _first_array(self, expr: Any) -> CompiledNode:
        """Compile a path that begins with an array, such as `[1..3].($ * 2)`. The array is created
        once, and not for each item of the context.
        """
        if expr.predicate or expr.group or not all(map(ignores_context, expr.expressions)):
            raise UnsupportedNode("consarray")
        node = self.node(expr, "consarray")

        def first(frame: VariableScope, context: Any) -> Any:
            items = node(frame, context)
            if not items:
                # Leave this case to jsonata-python. Its result is this empty array, and the
                # closures would return an empty sequence.
                raise Declined
            return items

        return first

    def _step(self, expr: Any) -> paths.CompiledStep | paths.Sort:
        if expr.type == "sort":
            checked(expr, "terms")
            return paths.Sort(tuple(map(self._sort_term, expr.terms)))
        filters = tuple(self._filter(stage) for stage in expr.stages or ())
        if expr.type == "name":
            checked(expr, "stages")
            return paths.CompiledStep(
                paths.name_path(nodes.the_context, (str(expr.value),)), filters
            )
        return paths.CompiledStep(self._repeated(expr, "stages"), filters)

    def _sort_term(self, term: Any) -> tuple[CompiledNode, bool]:
        checked(term, "expression", "descending")
        return self._repeated(term.expression), term.descending

    def binary(self, expr: Any) -> CompiledNode:
        make = BINARY.get(str(expr.value))
        if make is None:
            raise UnsupportedNode(expr.value)
        return make(self.node(expr.lhs), self.node(expr.rhs))

    def unary(self, expr: Any) -> CompiledNode:
        match expr.value:
            case "-":
                checked(expr, "expression", *_OUTSIDE)
                operand = self.node(expr.expression)
                return lambda frame, context: negate(operand(frame, context))
            case "[":
                checked(expr, "expressions", *_OUTSIDE)
                return self._array(expr.expressions)
            case "{":
                checked(expr, "lhs_object", *_OUTSIDE)
                return self._object(expr.lhs_object)
            case _:
                raise UnsupportedNode(expr.value)

    def _array(self, expressions: list[Any]) -> CompiledNode:
        # JSONata flattens an item of `[…]` whose value is an array, unless the item is itself
        # written as `[…]`.
        items = tuple((self.node(item), is_array(item)) for item in expressions)

        def node(frame: VariableScope, context: Any) -> Any:
            result: list[Any] = []
            for item, is_written in items:
                value = item(frame, context)
                if type(value) is list and not is_written:
                    if len(value) > costs.BULK_MIN:
                        frame.run.charge(len(value))
                    result.extend(value)
                elif value is not UNDEFINED:
                    result.append(value)
            return result

        return node

    def _object(self, pairs: list[Any]) -> CompiledNode:
        if any(key.type != "string" or key.predicate or key.group for key, _ in pairs):
            return groups.computed_object(self._pairs(pairs))
        fields = tuple((str(checked(key).value), self.node(value)) for key, value in pairs)
        if len(dict(fields)) < len(fields):
            raise UnsupportedNode("duplicate key")
        return groups.literal_object(fields)

    def _pairs(self, pairs: list[Any]) -> groups.Pairs:
        return tuple((self._repeated(key), self._repeated(value)) for key, value in pairs)

    def condition(self, expr: Any) -> CompiledNode:
        test, then = self.node(expr.condition), self.node(expr.then)
        otherwise = nodes.nothing if expr._else is None else self.node(expr._else)  # noqa: SLF001

        def node(frame: VariableScope, context: Any) -> Any:
            chosen = then if truth(test(frame, context), frame.run) else otherwise
            return chosen(frame, context)

        return node

    def block(self, expr: Any) -> CompiledNode:
        if not expr.expressions:
            raise UnsupportedNode("empty block")
        if len(self._binds) > _SCOPES_MAX:
            raise UnsupportedNode("too many scopes")
        self._binds.append(False)
        effects = tuple(map(self._effect, expr.expressions[:-1]))
        last = self.node(expr.expressions[-1])
        has_frame = self._binds.pop()
        if not effects and not has_frame:
            return last

        def node(frame: VariableScope, context: Any) -> Any:
            inner = VariableScope({}, frame, frame.run) if has_frame else frame
            for effect in effects:
                effect(inner, context)
            return last(inner, context)

        return node

    def _effect(self, expr: Any) -> CompiledNode:
        """Compile a part of a block that is not the block's value. Only such a part may bind a
        variable to a function.
        """
        if expr.type == "bind" and expr.lhs.value in self._lambdas:
            checked(expr, "lhs", "rhs")
            return self._bound_to(expr, self._lambda(expr.rhs))
        return self.node(expr)

    def bind(self, expr: Any) -> CompiledNode:
        if expr.lhs.value in self._lambdas:
            raise UnsupportedNode("a function as a value")
        return self._bound_to(expr, self.node(expr.rhs))

    def _bound_to(self, expr: Any, value: CompiledNode) -> CompiledNode:
        self._binds[-1] = True
        return nodes.bound_variable(str(checked(expr.lhs).value), value)

    def function(self, expr: Any) -> CompiledNode:
        return self._call(expr.procedure, expr.arguments)

    def apply(self, expr: Any) -> CompiledNode:
        """Compile `value ~> $f(more)` and `value ~> $f`: a call with the value as its first
        argument.
        """
        right = expr.rhs
        if right.type != "function":
            return self._call(right, [expr.lhs])
        checked(right, "procedure", "arguments")
        return self._call(right.procedure, [expr.lhs, *right.arguments])

    def _call(self, procedure: Any, given: list[Any]) -> CompiledNode:
        name = checked(procedure).value
        if procedure.type != "variable":
            raise UnsupportedNode(procedure.type)
        if name in self._lambdas:
            self.grows = True
            return nodes.lambda_call(nodes.local_variable(name), tuple(map(self.node, given)))
        native = NATIVES.get(name)
        if name in self._bound or native is None or len(given) not in native.arities:
            raise UnsupportedNode(name)
        self.called.add(name)
        self.grows = self.grows or name in _GROWING
        arguments = tuple(self._argument(native, at, expr) for at, expr in enumerate(given))
        return nodes.native_call(native.call, costs.of(name).times, arguments)

    def _argument(self, native: Native, at: int, expr: Any) -> CompiledNode:
        if at == native.function_at:
            return self._function_value(expr)
        if at == native.pattern_at and expr.type == "regex":
            pattern = checked(expr).value
            return lambda _frame, _context: pattern
        return self.node(expr)

    def _function_value(self, expr: Any) -> CompiledNode:
        if expr.type == "lambda":
            return self._lambda(expr)
        if expr.type == "variable" and checked(expr).value in self._lambdas:
            return nodes.local_variable(expr.value)
        raise UnsupportedNode("a function that is not written here")

    def _lambda(self, expr: Any) -> CompiledNode:
        checked(expr, "arguments", "body")
        parameters = tuple(str(checked(parameter).value) for parameter in expr.arguments)
        if len(set(parameters)) < len(parameters):
            raise UnsupportedNode("duplicate parameter")
        self._binds.append(True)
        body = self._repeated(expr.body)
        self._binds.pop()
        return lambda frame, context: Lambda(parameters, body, frame, context)

    def thunk(self, expr: Any) -> CompiledNode:
        """Compile a call that is the last action of a function. The caller gets its sequence
        unchanged.
        """
        if not expr.thunk or expr.predicate:
            raise UnsupportedNode("a function as a value")
        return self._without_predicates(expr.body)


_Method = Callable[[_Compiler, Any], CompiledNode]
# For each kind of node, the method that compiles it, and the attributes that the method handles.
# Type, value and predicate are handled for every kind.
_METHODS: Final[dict[str, tuple[tuple[str, ...], _Method]]] = {
    "string": ((), _Compiler.literal),
    "number": ((), _Compiler.literal),
    "value": ((), _Compiler.literal),
    "variable": ((), _Compiler.variable),
    "path": (("steps",), _Compiler.path),
    "binary": (("lhs", "rhs"), _Compiler.binary),
    "unary": (("expression", "expressions", "lhs_object"), _Compiler.unary),
    "condition": (("condition", "then", "_else"), _Compiler.condition),
    "block": (("expressions",), _Compiler.block),
    "bind": (("lhs", "rhs"), _Compiler.bind),
    "function": (("procedure", "arguments"), _Compiler.function),
    "apply": (("lhs", "rhs"), _Compiler.apply),
    "lambda": (("thunk", "arguments", "body"), _Compiler.thunk),
}
