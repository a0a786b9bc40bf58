"""From the IR to states: each statement becomes a few states. This code does not depend on the
rules of Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.emit.assembler import Assembler, Label
from holdfast.compiler.emit.regions import (
    FinalRegion,
    Region,
    TryRegion,
    catchers,
    routes,
    static_route,
)
from holdfast.compiler.emit.scopes import (
    emit_compensate,
    emit_deadline,
    emit_finally,
    emit_receive,
    emit_register,
    emit_shielded,
)
from holdfast.compiler.emit.states import MachineParts, is_one_of, output_of
from holdfast.compiler.emit.steps import StepEmitter
from holdfast.compiler.expressions.query import (
    Constant,
    FieldOf,
    ObjectOf,
    Variable,
    cause_of,
    expression,
    template,
)
from holdfast.compiler.ir import (
    Assign,
    Break,
    Compensate,
    Continue,
    ErrorHandler,
    Finally,
    If,
    Inlined,
    Leave,
    Loop,
    Raise,
    Receive,
    RegisterUndo,
    Reraise,
    Return,
    Shielded,
    SourcePlace,
    Statement,
    StatementBlock,
    StepStatement,
    TimeoutBlock,
    Try,
    Way,
)


def emit_block(machine: MachineParts, block: StatementBlock) -> dict[str, Any]:
    """Return `StartAt` and `States` for a whole body."""
    emitter = Emitter(machine)
    emitter.block(block)
    return emitter.assembler.machine()


@dataclass(frozen=True, slots=True)
class _LoopExits:
    head: Label
    end: Label


@dataclass(frozen=True, slots=True)
class _InlinedExit:
    end: Label


class Emitter:
    """Emits the states of one workflow or one branch. `regions` are the `try` and undo blocks
    around the present point, which may catch an error there.
    """

    def __init__(self, machine: MachineParts) -> None:
        self.machine = machine
        self.assembler = Assembler(machine.names)
        self._steps = StepEmitter(machine, self.assembler, emit_block)
        self.regions: tuple[Region, ...] = ()
        self._catchers: list[dict[str, Any]] | None = None
        #: The loops, `finally` parts and bodies of helpers around this point, innermost last. A
        #: jump such as `break` or `return` leaves one or more of them.
        self.exits: list[_LoopExits | FinalRegion | _InlinedExit] = []

    @property
    def catchers(self) -> list[dict[str, Any]]:
        """Return the `Catch` of a state at this point; states in the same regions share it."""
        if self._catchers is None:
            self._catchers = catchers(self.regions)
        return self._catchers

    def guarded(self, region: Region, block: StatementBlock) -> None:
        """Emit `block` inside `region`."""
        outer = self.regions, self._catchers
        self.regions, self._catchers = (*self.regions, region), None
        self.block(block)
        self.regions, self._catchers = outer

    def block(self, block: StatementBlock) -> None:
        for statement in block:
            if self.assembler.is_reachable:
                self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Assign(origin, values):
                self.assign(origin, origin.text, values)
            case If():
                self._if(statement)
            case Loop():
                self._loop(statement)
            case Break():
                self._jump(Way.BREAK)
            case Continue():
                self._jump(Way.CONTINUE)
            case Return():
                self._return(statement)
            case Raise():
                self._raise(statement)
            case Reraise(origin, error):
                self.dispatch(origin, origin.text, error)
            case Try():
                self._try(statement)
            case Finally():
                emit_finally(self, statement)
            case Compensate():
                emit_compensate(self, statement)
            case RegisterUndo():
                emit_register(self, statement)
            case Shielded():
                emit_shielded(self, statement)
            case TimeoutBlock():
                emit_deadline(self, statement)
            case Receive():
                emit_receive(self, statement)
            case StepStatement():
                self._steps.emit(statement, self.catchers)
            case Inlined(_, body):
                self._inlined(body)
            case Leave():
                self._leave()

    # Plain states.

    def assign(
        self, origin: SourcePlace, name: str, values: tuple[tuple[str, TypedQuery], ...]
    ) -> None:
        assign = {variable: template(value.query) for variable, value in values}
        if self.regions and any(value.fails for _, value in values):
            self.assembler.add(origin, name, self._catching(origin, name, assign))
        else:
            self.assembler.add(origin, name, {"Type": "Pass", "Assign": assign})

    def _catching(self, origin: SourcePlace, name: str, assign: dict[str, Any]) -> dict[str, Any]:
        """Emit an assignment whose failure can be caught.

        A Pass has no Catch. So this is a Parallel with one branch that does nothing: the Catch of a
        Parallel covers its Assign.
        """
        nothing = self.machine.names.give(f"compute: {name}", origin)
        branch = {"StartAt": nothing, "States": {nothing: {"Type": "Succeed"}}}
        return {
            "Type": "Parallel",
            "Branches": [branch],
            "Assign": assign,
            "Catch": self.catchers,
        }

    def _if(self, statement: If) -> None:
        end = Label()
        arms: list[tuple[Label, StatementBlock]] = []
        choices = []
        orelse: StatementBlock = (statement,)
        # An `elif` is a single `if` in the `else` block. Collect them, so that one Choice state
        # handles the whole chain.
        while len(orelse) == 1 and isinstance(arm := orelse[0], If):
            label = Label()
            choices.append({"Condition": expression(arm.test.query), "Next": label})
            arms.append((label, arm.body))
            orelse = arm.orelse
        default = Label()
        state = {"Type": "Choice", "Choices": choices, "Default": default}
        self.assembler.end(statement.origin, statement.origin.text, state)
        for label, body in (*arms, (default, orelse)):
            self.assembler.place(label)
            self.block(body)
            self.assembler.jump(end)
        self.assembler.place(end)

    def _loop(self, statement: Loop) -> None:
        origin = statement.origin
        head, body, otherwise, end = Label(), Label(), Label(), Label()
        if statement.setup:
            self.assign(origin, f"start: {origin.text}", statement.setup)
        self.assembler.place(head)
        self.block(statement.head)
        if statement.test is not None:
            rule: dict[str, Any] = {"Condition": expression(statement.test.query)}
            if statement.advance:
                rule["Assign"] = {name: template(value.query) for name, value in statement.advance}
            rule["Next"] = body
            state = {"Type": "Choice", "Choices": [rule], "Default": otherwise}
            self.assembler.end(origin, origin.text, state)
        self.assembler.place(body)
        self.exits.append(_LoopExits(head, end))
        self.block(statement.body)
        self.exits.pop()
        self.assembler.jump(head)
        self.assembler.place(otherwise)
        self.block(statement.orelse)
        self.assembler.jump(end)
        self.assembler.place(end)

    # Jumps.

    def _jump(self, way: Way) -> None:
        match self.exits[-1]:
            case FinalRegion(labels=labels):
                self.assembler.jump(labels[way])
            case _LoopExits(head, end):
                self.assembler.jump(head if way is Way.CONTINUE else end)
            case _InlinedExit():
                raise AssertionError("Python has no jump out of a function")

    def _return(self, statement: Return) -> None:
        for part in reversed(self.exits):
            if isinstance(part, FinalRegion):
                # A variable holds the value until the `finally` part has run; see
                # `statements.lower_return`.
                self.assembler.jump(part.labels[Way.RETURN])
                return
        state = {"Type": "Succeed", "Output": output_of(statement.value.query)}
        self.assembler.end(statement.origin, statement.origin.text, state)

    def _inlined(self, body: StatementBlock) -> None:
        end = Label()
        self.exits.append(_InlinedExit(end))
        self.block(body)
        self.exits.pop()
        self.assembler.jump(end)
        self.assembler.place(end)

    def _leave(self) -> None:
        for part in reversed(self.exits):
            match part:
                case FinalRegion(labels=labels):
                    return self.assembler.jump(labels[Way.RETURN])
                case _InlinedExit(end):
                    return self.assembler.jump(end)
                case _LoopExits():
                    pass
        raise AssertionError("a helper's `return` stands outside of helpers")

    # Errors.

    def _try(self, statement: Try) -> None:
        end = Label()
        region = TryRegion(tuple((handler, Label()) for handler in statement.handlers))
        self.guarded(region, statement.body)
        self.block(statement.orelse)
        self.assembler.jump(end)
        for handler, label in region.handlers:
            self._handler(handler, label, end)
        self.assembler.place(end)

    def _handler(self, handler: ErrorHandler, label: Label, end: Label) -> None:
        self.assembler.place(label)
        self.block(handler.body)
        self.assembler.jump(end)

    def _raise(self, statement: Raise) -> None:
        origin, name = statement.origin, statement.error.__name__
        error = ObjectOf((("Error", Constant(name)), ("Cause", statement.cause.query)))
        route = static_route(self.regions, statement.error, template(error))
        if route is not None:
            state: dict[str, Any] = {"Type": "Pass", "Next": route.label}
            if route.assign:
                state["Assign"] = route.assign
        else:
            state = {"Type": "Fail", "Error": name, "Cause": template(statement.cause.query)}
            if statement.cause.query == Constant(""):
                del state["Cause"]
        self.assembler.end(origin, origin.text, state)

    def dispatch(self, origin: SourcePlace, name: str, error: str) -> None:
        """Send a caught error to the handler around this point that catches it, or fail with it."""
        held = Variable(error)
        ways = routes(self.regions, expression(held))
        choices = [
            {
                "Condition": expression(is_one_of(held, route.names)),
                **({"Assign": route.assign} if route.assign else {}),
                "Next": route.label,
            }
            for route in ways
            if not route.is_total
        ]
        if choices:
            rest = Label()
            state = {"Type": "Choice", "Choices": choices, "Default": rest}
            self.assembler.end(origin, "which handler?", state)
            self.assembler.place(rest)
        if ways and ways[-1].is_total:
            last: dict[str, Any] = {"Type": "Pass", "Next": ways[-1].label}
            if ways[-1].assign:
                last["Assign"] = ways[-1].assign
        else:
            cause = expression(cause_of(held))
            last = {"Type": "Fail", "Error": expression(FieldOf(held, "Error")), "Cause": cause}
        self.assembler.end(origin, name, last)
