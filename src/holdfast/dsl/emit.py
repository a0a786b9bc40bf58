"""IR -> states. Every construct becomes a few states; nothing is decided here about Python."""

from __future__ import annotations

from typing import Any, Final

from holdfast.dsl.assembler import Assembler, Label
from holdfast.dsl.context import Expression
from holdfast.dsl.failures import ALL
from holdfast.dsl.ir import (
    Ask,
    Assign,
    Block,
    Break,
    Compensate,
    Continue,
    Handler,
    If,
    Loop,
    Origin,
    Raise,
    Register,
    Reraise,
    Return,
    RunEach,
    RunParallel,
    RunTask,
    Sleep,
    Statement,
    Step,
    Try,
    WaitForEvent,
)
from holdfast.dsl.query import (
    NULL,
    ArrayOf,
    Binary,
    Call,
    Constant,
    Field,
    Index,
    ObjectOf,
    Variable,
    cause_of,
    expression,
    template,
)
from holdfast.dsl.regions import (
    Region,
    TryRegion,
    UndoRegion,
    catchers,
    routes,
    static_route,
    undo_region,
    undo_when_stopped,
)
from holdfast.dsl.states import (
    STATES,
    Machine,
    compensation_failed,
    event_state,
    is_one_of,
    output_of,
    part_of,
    question_state,
    short_name,
    task_state,
)

_RESULT: Final = Field(STATES, "result")


def emit_block(machine: Machine, block: Block) -> dict[str, Any]:
    """`StartAt` and `States` of a whole body."""
    emitter = _Emitter(machine)
    emitter.block(block)
    return emitter.assembler.machine()


class _Emitter:
    """Of the workflow or of one branch."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.assembler = Assembler(machine.names)
        self._regions: list[Region] = []
        self._loops: list[tuple[Label, Label]] = []

    def block(self, block: Block) -> None:
        for statement in block:
            if self.assembler.is_reachable:
                self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Assign(origin, values):
                self._assign(origin, origin.text, values)
            case If():
                self._if(statement)
            case Loop():
                self._loop(statement)
            case Break():
                self.assembler.jump(self._loops[-1][1])
            case Continue():
                self.assembler.jump(self._loops[-1][0])
            case Return(origin, value):
                state = {"Type": "Succeed", "Output": output_of(value.query)}
                self.assembler.end(origin, origin.text, state)
            case Raise():
                self._raise(statement)
            case Reraise(origin, error):
                self._dispatch(origin, origin.text, error)
            case Try():
                self._try(statement)
            case Compensate():
                self._compensate(statement)
            case Register():
                self._register(statement)
            case Step():
                self._step(statement)

    # Plain states.

    def _assign(
        self, origin: Origin, name: str, values: tuple[tuple[str, Expression], ...]
    ) -> None:
        assign = {variable: template(value.query) for variable, value in values}
        if self._regions and any(value.fails for _, value in values):
            self.assembler.add(origin, name, self._catching(origin, name, assign))
        else:
            self.assembler.add(origin, name, {"Type": "Pass", "Assign": assign})

    def _catching(self, origin: Origin, name: str, assign: dict[str, Any]) -> dict[str, Any]:
        """An assignment whose failure can be caught.

        A Pass has no Catch. A Parallel has, and its Assign is evaluated under it; its one branch
        does nothing.
        """
        nothing = self.machine.names.give(f"compute: {name}", origin)
        branch = {"StartAt": nothing, "States": {nothing: {"Type": "Succeed"}}}
        return {
            "Type": "Parallel",
            "Branches": [branch],
            "Assign": assign,
            "Catch": catchers(self._regions),
        }

    def _if(self, statement: If) -> None:
        end = Label()
        arms: list[tuple[Label, Block]] = []
        choices = []
        orelse: Block = (statement,)
        # `elif` is an `if` alone in the `else`: one Choice has room for all of them.
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
        head, body, end = Label(), Label(), Label()
        if statement.setup:
            self._assign(origin, f"start: {origin.text}", statement.setup)
        self.assembler.place(head)
        if statement.test is not None:
            rule: dict[str, Any] = {"Condition": expression(statement.test.query)}
            if statement.advance:
                rule["Assign"] = {name: template(value.query) for name, value in statement.advance}
            rule["Next"] = body
            state = {"Type": "Choice", "Choices": [rule], "Default": end}
            self.assembler.end(origin, origin.text, state)
        self.assembler.place(body)
        self._loops.append((head, end))
        self.block(statement.body)
        self._loops.pop()
        self.assembler.jump(head)
        self.assembler.place(end)

    # Errors.

    def _try(self, statement: Try) -> None:
        end = Label()
        region = TryRegion(tuple((handler, Label()) for handler in statement.handlers))
        self._regions.append(region)
        self.block(statement.body)
        self._regions.pop()
        self.assembler.jump(end)
        for handler, label in region.handlers:
            self._handler(handler, label, end)
        self.assembler.place(end)

    def _handler(self, handler: Handler, label: Label, end: Label) -> None:
        self.assembler.place(label)
        self.block(handler.body)
        self.assembler.jump(end)

    def _raise(self, statement: Raise) -> None:
        origin, name = statement.origin, statement.error.__name__
        error = ObjectOf((("Error", Constant(name)), ("Cause", statement.cause.query)))
        route = static_route(self._regions, statement.error, template(error))
        if route is not None:
            state: dict[str, Any] = {"Type": "Pass", "Next": route.label}
            if route.assign:
                state["Assign"] = route.assign
        else:
            state = {"Type": "Fail", "Error": name, "Cause": template(statement.cause.query)}
            if statement.cause.query == Constant(""):
                del state["Cause"]
        self.assembler.end(origin, origin.text, state)

    def _dispatch(self, origin: Origin, name: str, error: str) -> None:
        """Sends an error that was caught on to whoever catches it here, or fails with it."""
        held = Variable(error)
        ways = routes(self._regions, expression(held))
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
            last = {"Type": "Fail", "Error": expression(Field(held, "Error")), "Cause": cause}
        self.assembler.end(origin, name, last)

    # Compensation.

    def _compensate(self, statement: Compensate) -> None:
        origin = statement.origin
        empty = {statement.steps: template(ArrayOf(()))}
        self.assembler.add(origin, origin.text, {"Type": "Pass", "Assign": empty})
        region = UndoRegion(statement)
        before = self.assembler.state_names
        self._regions.append(region)
        self.block(statement.body)
        self._regions.pop()
        inside = [name for name in self.assembler.state_names if name not in before]
        end = Label()
        self.assembler.jump(end)
        if region.is_used:
            self.assembler.place(region.label)
            self._undo(origin, region)
            undone = Label()
            self.assembler.place(undone)
            self._dispatch(origin, "raise what was undone", statement.failure)
            if region.tasks:
                self.machine.undos.append(undo_when_stopped(region, inside, undone))
        self.assembler.place(end)

    def _register(self, statement: Register) -> None:
        task = statement.task
        self.machine.tasks.add(task.name)
        region = undo_region(self._regions, statement.steps)
        region.tasks[task.name] = task
        # A stop may come where nothing can fail.
        region.is_used = region.label.is_used = True
        step = ObjectOf((("task", Constant(task.name)), ("arguments", statement.arguments.query)))
        longer = Call("append", (Variable(statement.steps), ArrayOf((step,))))
        value = Expression(longer, statement.arguments.type, statement.arguments.fails)
        self._assign(statement.origin, statement.origin.text, ((statement.steps, value),))

    def _undo(self, origin: Origin, region: UndoRegion) -> None:
        """Runs the registered steps from the last to the first; one that fails stops no other."""
        if not region.tasks:
            return
        steps = Variable(region.compensate.steps)
        left = Variable(region.compensate.left)
        last = Index(steps, Binary("-", left, Constant(1)))
        head, done = Label(), Label()
        labels = {name: Label() for name in region.tasks}
        choices = [
            {
                "Condition": expression(
                    Binary(
                        "and",
                        Binary(">", left, Constant(0)),
                        Binary("=", Field(last, "task"), Constant(name)),
                    )
                ),
                "Assign": {left.name: expression(Binary("-", left, Constant(1)))},
                "Next": labels[name],
            }
            for name in region.tasks
        ]
        self.assembler.place(head)
        state = {"Type": "Choice", "Choices": choices, "Default": done}
        self.assembler.end(origin, "undo in reverse order", state)
        for name, task in region.tasks.items():
            self.assembler.place(labels[name])
            arguments = expression(Field(Index(steps, left), "arguments"))
            undone = task_state(self.machine, task, arguments)
            failure = {region.compensate.failure: compensation_failed(name)}
            undone["Catch"] = [{"ErrorEquals": [ALL], "Assign": failure, "Next": head}]
            self.assembler.end(origin, f"undo: {name}", {**undone, "Next": head})
        self.assembler.place(done)

    # Steps.

    def _step(self, statement: Step) -> None:
        name, state = self._action(statement)
        can_fail = state["Type"] != "Wait"
        caught = catchers(self._regions) if can_fail else []
        if caught:
            state["Catch"] = caught
        if statement.targets:
            result = _RESULT if can_fail else NULL
            state["Assign"] = {
                target.variable: part_of(result, target) for target in statement.targets
            }
        if statement.targets is None and can_fail:
            given = self.assembler.end(statement.origin, name, {**state, "End": True})
        else:
            given = self.assembler.add(statement.origin, name, state)
        if isinstance(statement.action, Ask):
            self.machine.answers[given] = statement.action.answer
        if statement.targets is None and not can_fail:
            nothing = {"Type": "Succeed", "Output": output_of(NULL)}
            self.assembler.end(statement.origin, f"after {name}", nothing)

    def _action(self, statement: Step) -> tuple[str, dict[str, Any]]:
        origin = statement.origin
        match statement.action:
            case RunTask(task, arguments):
                state = task_state(self.machine, task, template(arguments.query))
                return task.label or task.name, state
            case WaitForEvent() as wait:
                return event_state(self.machine, wait)
            case Ask() as question:
                return question_state(question)
            case Sleep(seconds):
                return origin.text, {"Type": "Wait", "Seconds": template(seconds.query)}
            case RunParallel(branches):
                bodies = [emit_block(self.machine, branch) for branch in branches]
                return short_name(origin.text), {"Type": "Parallel", "Branches": bodies}
            case RunEach() as each:
                return short_name(origin.text), self._each(each, origin)

    def _each(self, each: RunEach, origin: Origin) -> dict[str, Any]:
        emitter = _Emitter(self.machine)
        if each.parameter is not None:
            assign = {each.parameter: expression(Field(STATES, "input"))}
            item = {"Type": "Pass", "Assign": assign}
            emitter.assembler.add(origin, f"item: {each.parameter}", item)
        emitter.block(each.body)
        processor = {"ProcessorConfig": {"Mode": "INLINE"}, **emitter.assembler.machine()}
        state = {"Type": "Map", "Items": template(each.items.query), "ItemProcessor": processor}
        if each.concurrency:
            state["MaxConcurrency"] = each.concurrency
        return state
