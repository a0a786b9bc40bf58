"""`for` and `while`. A body is lowered repeatedly, until the types of its variables do not
change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.environment import (
    Environment,
    Held,
    is_alike,
    join_environments,
    without_refused,
)
from holdfast.compiler.expressions.iteration import (
    LazyTuple,
    LoopVariable,
    Walk,
    bind,
    checked_step,
    require_int,
    walk,
)
from holdfast.compiler.expressions.lazy import late_generator, refuse_generator, refuse_lazy
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    ItemOf,
    QueryTree,
    Variable,
    invoke,
)
from holdfast.compiler.expressions.rewrites import plain_form
from holdfast.compiler.expressions.unknowns import as_kind
from holdfast.compiler.expressions.zips import is_uneven, strict_zip, uneven_failure, without_check
from holdfast.compiler.ir import Assign, Loop, SourcePlace, StatementBlock
from holdfast.compiler.statements.aliases import walked_names
from holdfast.compiler.statements.flow import LoopPoint
from holdfast.compiler.statements.levels import distinct_items
from holdfast.compiler.steps.durable import find_outside
from holdfast.compiler.types.types import BOOL, INT, UNKNOWN, DictOf, is_refused
from holdfast.errors import HoldfastBug

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The most rounds in which the types of a loop are computed. In each round types only become wider,
#: up to `types.bounded`. So only an error in the compiler can reach this number.
_ROUNDS_MAX: Final = 100

_Values = tuple[tuple[str, TypedQuery], ...]


def lower_while(statements: Statements, node: ast.While) -> None:
    is_endless = isinstance(node.test, ast.Constant) and node.test.value is True
    tests: list[TypedQuery] = []
    tested: list[Environment | None] = []
    origin = statements.origin(node, f"while {statements.unit.text(node.test)}")

    def enter() -> None:
        # In a later round the test may fail after the body has assigned variables. `note` tells the
        # handlers around the loop about these values. Without it a handler would know only the
        # values before the loop.
        statements.flow.note()
        statements.hoisted = {}
        if not is_endless:
            tests.append(_test(statements, node, origin))
            # The test may assign names, as `while (line := read()):` does.
            tested.append(statements.flow.environment)
            narrowed = statements.expressions.narrowed(node.test, is_true=True)
            statements.flow.environment = narrowed.environment

    def leave() -> Environment | None:
        if is_endless:
            return None
        statements.flow.environment = tested[-1]
        return statements.expressions.narrowed(node.test, is_true=False).environment

    head, body, orelse = _stable(statements, node, enter, leave)
    test = None if is_endless else tests[-1]
    statements.emit(Loop(origin, (), head, test, (), body, orelse))


def _test(statements: Statements, node: ast.While, origin: SourcePlace) -> TypedQuery:
    """Return the test of a `while`. Its steps run again in each round."""
    test = statements.test(node.test)
    if not (test.fails and statements.flow.protections):
        return test
    # A Choice state has no Catch. So compute the test in a state before it, which has one.
    variable = statements.scope.name("test", (node, "test"))
    statements.emit(Assign(origin, ((variable, test),)))
    return TypedQuery(Variable(variable), BOOL)


def lower_for(statements: Statements, node: ast.For) -> None:
    strict = strict_zip(statements.expressions, node.iter)
    through = node.iter if strict is None else without_check(node.iter, strict)
    ranged = _as_range(statements, node.iter)
    plan = _range_plan(statements, node, ranged) or _list_plan(statements, node, through)
    setup, test, advance = plan
    kept, end = ((), ()) if strict is None else _end_of_strict(statements, node, strict)
    names = {name.id: held for name, held in advance}
    distinct = distinct_items(statements, node.target, node.iter)

    def enter() -> None:
        for name, held in names.items():
            statements.hold(name, held.type, distinct=distinct)

    def leave() -> Environment | None:
        if end:
            statements.flow.note()
        return statements.flow.environment

    _, body, orelse = _stable(statements, node, enter, leave)
    moves = tuple(
        (statements.scope.name(name), TypedQuery(held.value, held.type))
        for name, held in names.items()
        if not is_refused(held.type)
    )
    text = f"for {statements.unit.text(node.target)} in {statements.unit.text(node.iter)}"
    counter = _counter(statements, node, "index")
    further = _further(statements, node, ranged, counter)
    statements.emit(
        Loop(
            statements.origin(node, text),
            (*setup, *kept),
            (),
            TypedQuery(test, BOOL),
            (*moves, (counter.name, TypedQuery(further, INT))),
            body,
            (*end, *orelse),
        )
    )


def _as_range(statements: Statements, node: ast.expr) -> ast.expr:
    """Return the call of `range` for a name of the module that is a range, so that the loop needs
    no list; `node` for another expression.
    """
    found = find_outside(statements.unit, statements.scope, node)
    if not isinstance(found, range):
        return node
    made = ast.parse(f"range({found.start}, {found.stop}, {found.step})", mode="eval").body
    for part in ast.walk(made):
        ast.copy_location(part, node)
    return made


def _further(
    statements: Statements, node: ast.For, ranged: ast.expr, counter: Variable
) -> QueryTree:
    """Return the counter after a round."""
    step = _step_of(ranged)
    if step is None:
        return Binary("+", counter, _counter(statements, node, "step"))
    return Binary("+" if step >= 0 else "-", counter, Constant(abs(step)))


_Plan = tuple[_Values, QueryTree, "list[tuple[ast.Name, Held]]"]


def _counter(statements: Statements, node: ast.For, what: str) -> Variable:
    stem = node.target.id if isinstance(node.target, ast.Name) else "loop"
    return Variable(statements.scope.name(f"{stem}_{what}", (node, what)))


def _end_of_strict(
    statements: Statements, node: ast.For, strict: ast.Call
) -> tuple[_Values, StatementBlock]:
    """Return the lists to store before the loop, and the check that may fail after it."""
    uneven = _counter(statements, node, "uneven")
    found = is_uneven(statements.expressions, strict)
    if is_refused(found.type):
        return (), ()
    value = Conditional(uneven, uneven_failure(), uneven)
    checked = TypedQuery(value, BOOL, frozenset({"ValueError"}))
    origin = statements.origin(strict, f"end of {statements.unit.text(strict)}")
    return ((uneven.name, found),), (Assign(origin, ((uneven.name, checked),)),)


def _list_plan(statements: Statements, node: ast.For, walked: ast.expr) -> _Plan:
    items = _counter(statements, node, "items")
    index = _counter(statements, node, "index")
    statements.prepare(node.iter)
    through, more = _walk(statements, node, walked, ItemOf(items, index), index)
    statements.share(node.iter, is_kept=False, is_inner=True)
    setup = (
        *more,
        (items.name, through.items),
        (index.name, TypedQuery(Constant(0), INT)),
    )
    test = Binary("<", index, invoke("count", items))
    return setup, test, bind(statements.expressions, node.target, through.element)


def _walk(
    statements: Statements, node: ast.For, walked: ast.expr, item: QueryTree, index: Variable
) -> tuple[Walk, _Values]:
    late = late_generator(node.iter)
    if late is not None:
        refuse_generator(statements.expressions, late)
    elif isinstance(plain_form(statements.expressions, node.iter), ast.GeneratorExp):
        refuse_lazy(statements.expressions, node.iter)
    through = walk(statements.expressions, walked, item, index)
    match node.iter:
        case ast.Call(func=ast.Attribute(value=base, attr="items")):
            mapping = statements.expressions.lower(base)
            if mapping.type == UNKNOWN:
                mapping = as_kind(mapping, "object", "AttributeError")
            if isinstance(mapping.type, DictOf):
                # Store the dict in a variable, because the body may assign another value to its
                # name while the loop still reads it.
                kept = _counter(statements, node, "dict")
                value = LoopVariable(invoke("lookup", kept, item), mapping.type.value)
                key = through.element.parts[0] if isinstance(through.element, LazyTuple) else value
                return Walk(through.items, LazyTuple((key, value))), ((kept.name, mapping),)
    return through, ()


def _range_plan(statements: Statements, node: ast.For, ranged: ast.expr) -> _Plan | None:
    """Plan a loop over a range. It needs no list: a loop over `range(10**6)` stores two numbers."""
    match ranged:
        case ast.Call(func=ast.Name(id="range"), args=[*arguments], keywords=[]) if (
            statements.expressions.is_builtin("range") and 1 <= len(arguments) <= 3
        ):
            pass
        case _:
            return None
    statements.prepare(node.iter)
    bounds = [require_int(statements.expressions, argument) for argument in arguments[:2]]
    step = _step_of(ranged)
    if step == 0:
        message = "the step of a range is not zero"
        statements.unit.refuse(arguments[2], "HF002", message, "range(10, 0, -1)")
    index, stop = _counter(statements, node, "index"), _counter(statements, node, "stop")
    start = bounds[0] if len(bounds) == 2 else TypedQuery(Constant(0), INT)
    setup: _Values = ((stop.name, bounds[-1]), (index.name, start))
    if step is None:
        by = _counter(statements, node, "step")
        found = checked_step(require_int(statements.expressions, arguments[2]))
        forwards = Binary("and", Binary(">", by, Constant(0)), Binary("<", index, stop))
        backwards = Binary("and", Binary("<", by, Constant(0)), Binary(">", index, stop))
        test = Binary("or", forwards, backwards)
        setup = (*setup, (by.name, found))
    else:
        test = Binary("<" if step >= 0 else ">", index, stop)
    return setup, test, bind(statements.expressions, node.target, LoopVariable(index, INT))


def _step_of(node: ast.expr) -> int | None:
    """Return the constant step of a range: 1 when it has none, None when it is computed."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, ast.Constant(value=int(step))]):
            return step
        case ast.Call(
            func=ast.Name(id="range"),
            args=[_, _, ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(step)))],
        ):
            return -step
        case ast.Call(func=ast.Name(id="range"), args=[_, _, _]):
            return None
        case _:
            return 1


def _stable(
    statements: Statements,
    node: ast.For | ast.While,
    enter: Callable[[], None],
    leave: Callable[[], Environment | None],
) -> tuple[StatementBlock, StatementBlock, StatementBlock]:
    """Return head, body and else, lowered with the facts that are true in every round.

    After the call the flow is at the end of the loop.
    """
    flow = statements.flow
    start = flow.environment
    head = start
    for _ in range(_ROUNDS_MAX):
        refused_before = len(statements.unit.diagnostics)
        first, body, point = _round(statements, node, head, enter)
        assert head is not None
        known = without_refused(point.head.environment, head)
        grown = join_environments(head, join_environments(start, known))
        assert grown is not None
        if is_alike(head, grown):
            break
        head = grown
        # This round was lowered with types that turned out to be too narrow. Drop its refusals,
        # because only those of the last round count.
        del statements.unit.diagnostics[refused_before:]
    else:
        raise HoldfastBug(f"the types of a loop at line {node.lineno} do not settle")
    flow.environment = grown
    flow.environment = leave()
    orelse = statements.block(node.orelse)
    flow.environment = join_environments(flow.environment, point.end.environment)
    return first, body, orelse


def _round(
    statements: Statements,
    node: ast.For | ast.While,
    head: Environment | None,
    enter: Callable[[], None],
) -> tuple[StatementBlock, StatementBlock, LoopPoint]:
    flow = statements.flow
    flow.environment = head
    point = LoopPoint()
    first = statements.collected(enter)
    iterated = list(walked_names(node.iter)) if isinstance(node, ast.For) else []
    flow.iterated.extend(iterated)
    if isinstance(node, ast.For):
        target, items = map(statements.unit.text, (node.target, node.iter))
        flow.copying_loops.update(dict.fromkeys(iterated, f"for {target} in list({items}): …"))
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        flow.items_of[node.target.id] = statements.unit.text(node.iter)
    flow.loops.append(point)
    body = statements.block(node.body)
    flow.loops.pop()
    del flow.iterated[len(flow.iterated) - len(iterated) :]
    point.head.reach(flow.environment)
    return first, body, point
