"""Statements: `ast` -> IR, in one walk along the flow that also finds code that cannot run.

The problem
-----------
The type of a name depends on the statements before it. So statements are
lowered in the order in which Python runs them, and each one begins with the environment that the
one before it has left.

The walk
--------
`Statements` lowers the body of one function: the workflow, or a branch. It has
three parts:

    flow.environment   the names and types at the current point (`environment.py`)
    hoisted            results of durable calls that were moved before the current statement
    _pending           the IR statements of the current block, in order

For each Python statement:

1. If `flow.environment` is None, no way leads here: the statement is refused (HF010).

2. `flow.note()` gives the environment to the handlers around this point, because any statement may
fail, and a handler starts with the knowledge before the failure.

3. `as_if` turns a conditional expression with durable calls into an `if`.

4. The method for the kind of statement hoists durable calls, lowers the expressions, adds IR to
`_pending` and changes `flow.environment`.

`block` lowers inner statements into a block of their own. After an `if`, both ends are joined:

    if cents > 0:                          environment E
        receipt = charge(order, cents)     body:   E + receipt: str
    else:
        receipt = None                     orelse: E + receipt: None
                                           after:  E + receipt: str | None

`return`, `raise`, `break` and `continue` set the environment to None. `flow.py` first records the
environment at the place to which the jump leads: the loop, the handler or the `finally`.

Three rules that are easy to break
----------------------------------
* Order. A durable call inside an expression becomes a step before the statement. `hoisting.py`
  refuses the cases in which this would change Python's order.
* Failures. Choice, Succeed, Fail and Wait have no Catch. `protected` computes a value that may fail
  in a state before them, if a handler or an undo surrounds the point. Otherwise a division by zero
  would skip the handlers and the undo steps.
* Aliases. A state machine has values, Python has references. `share` records that a list or dict
  has a second name. A later change in place is then refused (`aliases.py`, `changes.py`).

Loops are lowered several times (`loops.py`), so lowering a node twice must give the same names and
the same replacements. `Unit` stores them by node.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.api.surface import first
from holdfast.compiler.context import (
    REFUSED_EXPRESSION,
    Chain,
    Dispatch,
    Helper,
    LibraryStep,
    NamedFailure,
    NamedValue,
    Repeated,
    Taking,
    TypedQuery,
    Unit,
)
from holdfast.compiler.environment import (
    Environment,
    Held,
    LocalFunction,
    NameEntry,
    join_environments,
)
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import Constant, QueryTree, Variable
from holdfast.compiler.expressions.text import lower_joined
from holdfast.compiler.ir import (
    Action,
    Again,
    Assign,
    BranchErrors,
    Break,
    Continue,
    If,
    Note,
    Publish,
    Raise,
    RunEach,
    Sleep,
    SleepUntil,
    SourcePlace,
    Statement,
    StatementBlock,
    Target,
    Way,
)
from holdfast.compiler.statements.aliases import is_fresh, kept_names
from holdfast.compiler.statements.assignments import (
    lower_annotated_assignment,
    lower_assignment,
    lower_augmented_assignment,
    lower_named_value,
)
from holdfast.compiler.statements.conditionals import as_if, choose
from holdfast.compiler.statements.deletes import lower_delete
from holdfast.compiler.statements.exceptions import lower_assert, lower_raise, lower_try
from holdfast.compiler.statements.expression_statements import lower_expression_statement
from holdfast.compiler.statements.flow import Flow
from holdfast.compiler.statements.functions import Outer, environment_of, lower_branch
from holdfast.compiler.statements.inlining import inline
from holdfast.compiler.statements.late_errors import emit_step
from holdfast.compiler.statements.level_rules import is_deep_copy
from holdfast.compiler.statements.levels import is_part, owned_levels
from holdfast.compiler.statements.loops import lower_for, lower_while
from holdfast.compiler.statements.matching import lower_match
from holdfast.compiler.statements.methods import find_methods
from holdfast.compiler.statements.named_failures import checked, lower_named_failure
from holdfast.compiler.statements.new_values import gives_new_value
from holdfast.compiler.statements.ownership import (
    captured_levels,
    chains_in,
    gives_parts,
    has_parts_that_may_change,
    may_change,
    shared_levels,
)
from holdfast.compiler.statements.repeated import lower_repeated
from holdfast.compiler.statements.results import Result
from holdfast.compiler.statements.returns import lower_return
from holdfast.compiler.statements.scoped import lower_with
from holdfast.compiler.statements.takings import lower_taking
from holdfast.compiler.statements.tools import look_up, lower_tools
from holdfast.compiler.statements.unsupported import refuse_statement
from holdfast.compiler.steps.branching import Branch
from holdfast.compiler.steps.durable import find_durable
from holdfast.compiler.steps.helpers import (
    changed_by,
    find_helper,
    is_step,
    keeps_parameters,
)
from holdfast.compiler.steps.hoisting import (
    hoist,
    hoist_inside,
    is_choice,
)
from holdfast.compiler.steps.steps import Steps
from holdfast.compiler.types.types import NEVER, STR, Type, is_refused, join
from holdfast.compiler.variable_names import VariableScopeNames

_EMPTY: Final = Environment({})


class Statements:
    """Lowers the body of one function: the workflow or a branch."""

    def __init__(
        self, unit: Unit, scope: VariableScopeNames, flow: Flow, outer: Outer | None = None
    ) -> None:
        self.unit = unit
        self.scope = scope
        self.flow = flow
        self.outer = outer
        #: The place in which the `return` statements of a helper store their value. None outside
        #: the body of a helper.
        self.result: Result | None = None
        self.hoisted: dict[ast.AST, TypedQuery] = {}
        #: The helpers whose bodies are lowered here as statements of this function; see `pasting`.
        self.pasted: tuple[ast.FunctionDef, ...] = ()
        #: The expression that is all of the present statement, or all of its right side.
        self.whole: ast.expr | None = None
        #: True when the present statement uses no value, as `add(lines, line)` does.
        self.drops_value = False
        self._expressions = Expressions(
            unit, scope, flow.environment or _EMPTY, self.hoisted, around=self.around
        )
        self._pending: list[Statement] = []

    def read_in(self, unit: Unit) -> None:
        """Lower the next statements with the source and the outer names of this unit."""
        self.unit = unit
        self._expressions = replace(self._expressions, unit=unit)

    # Expressions of the statement that is being lowered.

    @property
    def expressions(self) -> Expressions:
        environment, known = self.flow.environment or _EMPTY, self._expressions
        if known.environment is not environment or known.hoisted is not self.hoisted:
            self._expressions = replace(known, environment=environment, hoisted=self.hoisted)
        return self._expressions

    def around(self, function: LocalFunction) -> Environment:
        """Return what is known at this point in the function that defines a local function."""
        return environment_of(self, function, self.flow.environment or _EMPTY)

    @property
    def steps(self) -> Steps:
        return Steps(self.expressions, self)

    def prepare(self, node: ast.expr) -> None:
        """Hoist the durable calls of an expression that is lowered next: move each before the
        statement.
        """
        hoist(self, node)

    def value(self, node: ast.expr, *, is_kept: bool = True) -> TypedQuery:
        self.prepare(node)
        found = self.expressions.lower(node)
        self.share(node, is_kept=is_kept, type_=found.type if is_kept else NEVER)
        return found

    def test(self, node: ast.expr) -> TypedQuery:
        if is_choice(node, self):
            choose(self, node, is_truth=True)
        else:
            self.prepare(node)
        found = self.expressions.truth(node)
        self.share(node, is_kept=False, type_=found.type)
        return found

    def share(
        self,
        node: ast.expr,
        *,
        is_kept: bool,
        type_: Type | None = None,
        is_inner: bool = False,
    ) -> None:
        """Record that the lists, dicts and models which an expression keeps have a second name from
        here on. `type_` is the type of its value; `is_inner` says that only the items of the value
        are kept.
        """
        environment = self.flow.environment
        if is_part(node):
            return
        if self.unit.captured is not None and environment is not None:
            names = kept_names(node, self._copies, is_kept=is_kept)
            self.flow.environment = environment.shared((name, 0) for name in names)
            if type_ is None or may_change(type_):
                self.share_parts(chains_in(node, self._is_new, is_inner=is_inner))
            self._note_holder(node, environment)

    def _note_holder(self, node: ast.expr, before: Environment) -> None:
        """Record the expression that keeps values of names, for the refusal of a later change."""
        after = self.flow.environment
        assert after is not None
        if after is before:
            return
        for name in self.scope.local_names:
            was, entry = before.entries.get(name), after.entries.get(name)
            is_kept = isinstance(was, Held) and isinstance(entry, Held) and entry.owned < was.owned
            if is_kept:
                self.unit.holders[self.scope.name(name)] = node

    def share_parts(self, chains: Iterable[Chain]) -> None:
        """Record that parts of values have a second name from here on."""
        environment = self.flow.environment
        if environment is not None:
            levels = [(chain.name, shared_levels(environment, chain)) for chain in chains]
            self.flow.environment = environment.shared(levels)

    def is_durable(self, node: ast.AST, /) -> bool:
        return is_step(self.unit, self.scope, node)

    def _copies(self, node: ast.AST, /) -> bool:
        """Return True for a call that keeps no reference to its arguments."""
        helper = self.helper(node)
        if helper is None:
            return is_deep_copy(node) or self.is_durable(node)
        # The statements of a pasted helper have said what they keep.
        return bool(changed_by(helper)) or not keeps_parameters(helper)

    def helper(self, node: ast.AST) -> Helper | None:
        """Return the helper or the method of a model that `node` calls; None for other nodes."""
        found = find_helper(self.unit, self.scope, node)
        if found is None and isinstance(node, ast.Call):
            found = self.unit.methods.get(node)
        return found

    def _is_new(self, node: ast.AST, /) -> bool:
        """Return True for a call whose result shares nothing with its arguments."""
        helper = self.helper(node)
        if helper is None:
            is_taken = node in self.unit.taken_levels
            return is_taken or is_deep_copy(node) or self.is_durable(node)
        return node in self.unit.new_calls or (helper.is_expression and gives_new_value(helper))

    def _fresh_call(self, node: ast.Call, /) -> bool | None:
        if self.helper(node) is not None:
            return node in self.unit.fresh_calls or self._is_new(node)
        return True if self.is_durable(node) else None

    def is_fresh(self, node: ast.AST) -> bool:
        """Return True when no other name refers to the list or dict that an expression returns.

        The result of `first(…)` does not count: a branch may return a list of the function around
        it.
        """
        if self.unit.captured is None or find_durable(self.unit, self.scope, node) is first:
            return False
        return is_fresh(node, self._fresh_call)

    def owned(self, node: ast.expr, type_: Type) -> int:
        """Return how many levels of the value of an expression no other name refers to."""
        return 0 if self.unit.captured is None else owned_levels(self, node, type_)

    def protected(self, value: TypedQuery, node: ast.AST, what: str) -> TypedQuery:
        """Return `value`; if a handler or an undo is around it, it is computed before, in a state
        with a Catch.

        Choice, Succeed, Fail and Wait have no Catch. Without this, a division by zero would skip
        the handlers and the undo steps.
        """
        return self.kept(value, node, what) if value.fails and self.flow.protections else value

    def kept(self, value: TypedQuery, node: ast.AST, what: str, /) -> TypedQuery:
        """Return the value from a variable, which a statement before this point assigns."""
        variable = self.scope.name(what, (node, what))
        self.assign(node, (variable, value))
        return TypedQuery(Variable(variable), value.type)

    def require(self, test: TypedQuery, name: str, expected: str, node: ast.AST, /) -> None:
        """Emit a check that raises a ValueError when the test is false."""
        test = self.protected(test, node, "test")
        message = TypedQuery(Constant(f"{name} is not {expected}"), STR)
        error = Raise(self.origin(node, "ValueError"), ValueError, message)
        self.emit(If(self.origin(node, f"is {name} {expected}?"), test, (), (error,)))

    def checked(
        self,
        value: TypedQuery,
        node: ast.expr,
        test: Callable[[QueryTree], QueryTree],
        text: str,
        /,
    ) -> TypedQuery | None:
        return checked(self, value, node, test, text)

    def hoist(self, node: ast.expr, function: object, /) -> TypedQuery:
        """Move a durable call inside an expression before the statement, as a step with its own
        variable.

        For a helper, its body is placed there.
        """
        self.hoisted[node] = self._before(node, function)
        return self.hoisted[node]

    def _before(self, node: ast.expr, function: object) -> TypedQuery:
        match function:
            case Repeated():
                return lower_repeated(self, node)
            case NamedValue():
                assert isinstance(node, ast.NamedExpr)
                return lower_named_value(self, node)
        assert isinstance(node, ast.Call)
        match function:
            case Helper():
                return inline(self, node, function)
            case Dispatch():
                return lower_tools(self, node, function)
            case Taking():
                return lower_taking(self, node)
        name = getattr(function, "name", None) or getattr(function, "__name__", "step")
        variable = self.scope.name(f"{name}_result", (node, "result"))
        type_ = self._step(node, function, (Target(variable),), node)
        return REFUSED_EXPRESSION if type_ is None else TypedQuery(Variable(variable), type_)

    def replace(self, node: ast.expr, step: LibraryStep | NamedFailure, /) -> None:
        if isinstance(step, LibraryStep):
            self.hoisted[node] = self.hoist(step.call, step.task)
        else:
            lower_named_failure(self, node)

    def look_up(self, node: ast.Call, tools: Dispatch, /) -> None:
        look_up(self, node, tools)

    def choose(self, node: ast.BoolOp | ast.IfExp, /) -> None:
        choose(self, node, is_truth=False)

    def may_fail(self, node: ast.expr, /) -> bool:
        with self.unit.trial():
            match node:
                case ast.FormattedValue():
                    whole = ast.copy_location(ast.JoinedStr([node]), node)
                    found = lower_joined(self.expressions, whole)
                case ast.Starred(value=items):
                    found = self.expressions.iterable(items)
                case _:
                    found = self.expressions.gone_through(node)
            return bool(found.fails)

    def evaluate_first(self, node: ast.expr, /) -> None:
        """Evaluate an operand before the step behind it. A lazy value stays where it is."""
        with self.unit.trial():
            found = self.expressions.lower(node)
        if not is_refused(found.type):
            self.hoisted[node] = self.kept(found, node, "operand")

    def durable(self, node: ast.expr) -> Any:
        return find_durable(self.unit, self.scope, node)

    def step(
        self, node: ast.Call, function: Any, targets: tuple[Target, ...] | None, whole: ast.AST
    ) -> Type | None:
        """Lower a call of the durable `function` that is a statement, or the whole right side of
        one.
        """
        hoist_inside(self, node)
        return self._step(node, function, targets, whole)

    def _is_returned(self, node: ast.Call) -> bool:
        function = self.unit.functions.get(self.scope)
        parts = () if function is None else ast.walk(function)
        return any(isinstance(part, ast.Return) and part.value is node for part in parts)

    def _step(
        self, node: ast.Call, function: Any, targets: tuple[Target, ...] | None, whole: ast.AST
    ) -> Type | None:
        found = self._lower_step(node, function)
        if found is None:
            return None
        action, type_ = found
        if isinstance(action, RunEach):
            self._share_items(node, type_)
        if isinstance(action, Again) and not (targets is None and self.may_go_on_as_new):
            message = "a workflow goes on as new with `return again(…)`, outside of `try`,"
            message += " `compensating`, branches and helpers"
            help_ = f"return {self.unit.text(node)}"
            if self._is_returned(node):
                # The line itself is right; its place is not.
                help_ = "goes_on = True  # here, False before it; and behind the whole block:\n"
                help_ += f"if goes_on:\n    return {self.unit.text(node)}"
            self.unit.refuse(node, "HF087", message, help_)
            return None
        emit_step(self, self.origin(whole), node, found, targets)
        return type_

    def _share_items(self, node: ast.Call, type_: Type) -> None:
        """Record that `each(lines, lambda line: line)` gives the items of its list a second
        name.
        """
        items, given = node.args[:2]
        function: ast.AST = self.unit.made.get(given, given)
        entry = self.entry(given.id) if isinstance(given, ast.Name) else None
        if isinstance(entry, LocalFunction):
            function = entry.node
        if not isinstance(function, ast.Lambda | ast.FunctionDef):
            return
        if has_parts_that_may_change(type_) and gives_parts(function, self.is_durable):
            self.share(items, is_kept=False, is_inner=True)

    @property
    def may_go_on_as_new(self) -> bool:
        """Return True when the workflow may continue as new here: this is the main line, and no
        undo, handler or `finally` around this point would be skipped.
        """
        is_whole = self.scope.parent is None and self.result is None
        has_handlers = self.flow.protections > self.flow.receives
        return is_whole and not has_handlers and not self.flow.finals

    def lower_step(self, node: ast.Call) -> tuple[Action, Type] | None:
        return self._lower_step(node, self.durable(node))

    def _lower_step(self, node: ast.Call, function: Any) -> tuple[Action, Type] | None:
        found = self.steps.lower(node, function)
        if found is None:
            self.lose(node)
            return None
        action, type_ = found
        match action:
            case Sleep(seconds):
                action = Sleep(self.protected(seconds, node, "seconds"))
            case SleepUntil(moment):
                action = SleepUntil(self.protected(moment, node, "moment"))
            case Publish(name, value):
                action = Publish(name, self.protected(value, node, "published"))
            case Note(attributes):
                action = Note(
                    tuple(
                        (name, kind, self.protected(value, node, f"noted_{name}"))
                        for name, kind, value in attributes
                    )
                )
            case _:
                pass
        return action, type_

    def lose(self, node: ast.Call) -> None:
        """Record that a step is missing here, because it was refused."""
        self.unit.lost_lines.add((self.unit.source.file, node.lineno))

    # Names.

    def origin(self, node: ast.AST, text: str = "") -> SourcePlace:
        source = self.unit.source
        return SourcePlace(source.span(node), text or self.unit.text(node), source)

    def hold(self, name: str, type_: Type, *, owned: int = 0, distinct: int = 1) -> str:
        """Give `name` a value of this type from here on, and return its ASL variable."""
        distinct = max(distinct, owned)
        variable = self.scope.name(name)
        before = self.unit.assigned.get(variable)
        self.unit.assigned[variable] = type_ if before is None else join(before, type_)
        if self.flow.environment is not None:
            if owned and self.unit.captured is not None:
                owned = min(owned, captured_levels(self.unit.captured, name, type_))
            self.give(name, Held(Variable(variable), type_, owned=owned, distinct=distinct))
        return variable

    def give(self, name: str, entry: NameEntry) -> None:
        if self.flow.environment is not None:
            self.flow.environment = self.flow.environment.with_entry(name, entry)

    def entry(self, name: str) -> NameEntry | None:
        environment = self.flow.environment
        return None if environment is None else environment.entries.get(name)

    def emit(self, statement: Statement) -> None:
        self._pending.append(statement)

    def assign(self, node: ast.AST, *values: tuple[str, TypedQuery]) -> None:
        """Emit the assignment of these variables. `node` is its place in the source."""
        self.emit(Assign(self.origin(node), values))

    def emit_all(self, block: StatementBlock) -> None:
        self._pending.extend(block)

    # Blocks.

    def collected(self, lower: Callable[[], None]) -> StatementBlock:
        """Return the statements that `lower` emits, as a block of their own."""
        outer, self._pending = self._pending, []
        lower()
        block, self._pending = tuple(self._pending), outer
        return block

    def block(self, nodes: Sequence[ast.stmt]) -> StatementBlock:
        return self.collected(lambda: self._lower_all(nodes))

    def _lower_all(self, nodes: Sequence[ast.stmt]) -> None:
        refusals = 0
        for node in nodes:
            if self.flow.environment is None:
                # A refused statement may lack the way to this one, for example its `break`. Code
                # that does run must not be called unreachable.
                if self._count_refusals() == refusals:
                    help_ = "remove it, or check the return/raise/break above"
                    self.unit.refuse(node, "HF010", "this code can never run", help_)
                break
            refusals = self._count_refusals()
            self.flow.note()
            if self.hoisted:
                self.hoisted = {}
            find_methods(self, node)
            self._statement(as_if(self, node) or node)

    def _count_refusals(self) -> int:
        """Return the number of refusals so far, without those of code that can never run."""
        return sum(found.code != "HF010" for found in self.unit.diagnostics)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.Return():
                self.whole = node.value
            case _:
                self.whole = None
        self.drops_value = isinstance(node, ast.Expr)
        match node:
            case ast.Assign():
                lower_assignment(self, node)
            case ast.AnnAssign():
                lower_annotated_assignment(self, node)
            case ast.AugAssign():
                lower_augmented_assignment(self, node)
            case ast.If():
                self.lower_if(node)
            case ast.For():
                lower_for(self, node)
            case ast.While():
                lower_while(self, node)
            case ast.Break() | ast.Continue():
                self._jump(node)
            case ast.Return(value=value):
                lower_return(self, node, value)
            case ast.Raise():
                lower_raise(self, node)
            case ast.Try():
                lower_try(self, node)
            case ast.With():
                lower_with(self, node, node.items)
            case ast.Match():
                lower_match(self, node)
            case ast.Assert():
                lower_assert(self, node)
            case ast.FunctionDef():
                self._local_function(node)
            case ast.Expr(value=value):
                lower_expression_statement(self, node, value)
            case ast.Pass():
                pass
            case ast.Global(names=names) if self.scope.local_names.keys().isdisjoint(names):
                # The names are only read, and a name of the module is read without `global`, too.
                pass
            case ast.Delete():
                lower_delete(self, node)
            case _:
                refuse_statement(self, node)

    def lower_if(self, node: ast.If) -> None:
        test = self.protected(self.test(node.test), node.test, "test")
        expressions = self.expressions
        self.flow.environment = expressions.narrowed(node.test, is_true=True).environment
        body = self.block(node.body)
        after_body = self.flow.environment
        self.flow.environment = expressions.narrowed(node.test, is_true=False).environment
        orelse = self.block(node.orelse)
        self.flow.environment = join_environments(after_body, self.flow.environment)
        origin = self.origin(node, f"if {self.unit.text(node.test)}")
        self.emit(If(origin, test, body, orelse))

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        # Python itself refuses a jump outside of a loop, so a loop exists here.
        if isinstance(node, ast.Break):
            self.emit(Break(self.origin(node)))
            self.flow.jump(Way.BREAK)
        else:
            self.emit(Continue(self.origin(node)))
            self.flow.jump(Way.CONTINUE)

    def _local_function(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.unit.refuse(
                node.decorator_list[0],
                "HF007",
                "a branch has no decorators",
                f"def {node.name}(): … without a decorator",
            )
        self.give(node.name, LocalFunction(node, self.scope))

    # Branches.

    def inner(
        self,
        scope: VariableScopeNames,
        environment: Environment,
        outer: Outer,
        unit: Unit | None = None,
    ) -> Statements:
        """Return the statements of the function of a branch, or of a helper with its `unit`."""
        return Statements(unit or self.unit, scope, Flow(environment), outer)

    def lower_branch(
        self,
        expressions: Expressions,
        function: ast.Lambda | LocalFunction,
        types: tuple[Type, ...],
        errors: BranchErrors,
        items: ast.expr | None,
        /,
    ) -> Branch:
        return lower_branch(self, expressions, function, types, errors=errors, items=items)
