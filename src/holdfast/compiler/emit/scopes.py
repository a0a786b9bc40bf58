"""The states of blocks with rules of their own: `finally`, `compensating`, `receive`,
`timeout`, `shielded`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.surface import BlockTimeout, RequestCancelled
from holdfast.asl import error_names
from holdfast.asl.program import CUTS_STEPS
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.emit.assembler import Assembler, Label
from holdfast.compiler.emit.regions import (
    ERROR_OUTPUT,
    FinalRegion,
    UndoRegion,
    final_when_stopped,
    static_route,
    undo_region,
    undo_when_stopped,
)
from holdfast.compiler.emit.states import arguments_of, compensation_failed, undo_step_of
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Constant,
    FieldOf,
    ItemOf,
    ObjectOf,
    QueryTree,
    Variable,
    expression,
    invoke,
    template,
)
from holdfast.compiler.ir import (
    Compensate,
    Final,
    Finally,
    Receive,
    RegisterUndo,
    Shielded,
    SourcePlace,
    TimeoutBlock,
    Way,
)

if TYPE_CHECKING:
    from holdfast.compiler.emit.emit import Emitter


# finally


def emit_finally(emitter: Emitter, statement: Finally) -> None:
    assembler = emitter.assembler
    region = FinalRegion(statement.failure, {way: Label() for way in Way})
    since = assembler.size
    emitter.exits.append(region)
    emitter.guarded(region, statement.body)
    emitter.exits.pop()
    inside = assembler.names_since(since)
    end = Label()
    assembler.jump(region.labels[Way.END])
    shielded: list[str] = []
    for final in statement.finals:
        label = region.labels[final.way]
        if final.way is Way.ERROR and inside:
            _emit_final_error(emitter, final, region, inside, shielded)
        elif label.is_used:
            assembler.place(label)
            _emit_final(emitter, final, shielded)
            if final.then is not None and assembler.is_reachable:
                emitter.statement(final.then)
        assembler.jump(end)
    if shielded:
        emitter.machine.shielded.append(shielded)
    assembler.place(end)


def _emit_final(emitter: Emitter, final: Final, shielded: list[str]) -> None:
    names, since = emitter.machine.names, emitter.assembler.size
    outer, names.mark = names.mark, final.way.value
    emitter.block(final.body)
    names.mark = outer
    shielded += emitter.assembler.names_since(since)


def _emit_final_error(
    emitter: Emitter, final: Final, region: FinalRegion, inside: list[str], shielded: list[str]
) -> None:
    assembler = emitter.assembler
    label = region.labels[Way.ERROR]
    label.is_used = True
    assembler.place(label)
    _emit_final(emitter, final, shielded)
    end: Label | str = shielded[-1] if shielded else label
    if assembler.is_reachable and final.then is not None:
        end = Label()
        assembler.place(end)
        emitter.statement(final.then)
    emitter.machine.undos.append(final_when_stopped(region, inside, end))


# compensating


def emit_compensate(emitter: Emitter, statement: Compensate) -> None:
    origin, assembler = statement.origin, emitter.assembler
    empty = {statement.steps: template(ArrayOf(()))}
    assembler.add(origin, origin.text, {"Type": "Pass", "Assign": empty})
    region = UndoRegion(statement)
    since = assembler.size
    emitter.guarded(region, statement.body)
    inside = assembler.names_since(since)
    end = Label()
    assembler.jump(end)
    if region.is_used:
        assembler.place(region.label)
        emit_undo(assembler, origin, region)
        undone = Label()
        assembler.place(undone)
        emitter.dispatch(origin, "raise what was undone", statement.failure)
        if region.undos:
            emitter.machine.undos.append(undo_when_stopped(region, inside, undone))
    assembler.place(end)


def emit_register(emitter: Emitter, statement: RegisterUndo) -> None:
    region = undo_region(emitter.regions, statement.steps)
    name, step = undo_step_of(emitter.machine, statement.name, statement.action)
    region.undos[name] = step
    # Mark the undo as used even if no state in the block can fail. A stop of the execution needs
    # it, too.
    region.is_used = region.label.is_used = True
    given = statement.action.arguments
    longer = registered(Variable(statement.steps), name, arguments_of(statement.action))
    value = TypedQuery(longer, given.type, given.fails)
    emitter.assign(statement.origin, statement.origin.text, ((statement.steps, value),))


def registered(steps: QueryTree, name: str, arguments: QueryTree) -> QueryTree:
    """Return the list of registered steps with one more. `name`: a key of `UndoRegion.undos`."""
    step = ObjectOf((("task", Constant(name)), ("arguments", arguments)))
    return invoke("append", steps, ArrayOf((step,)))


def emit_undo(assembler: Assembler, origin: SourcePlace, region: UndoRegion) -> None:
    """Run the registered steps from the last to the first."""
    if not region.undos:
        return
    steps = Variable(region.compensate.steps)
    left = Variable(region.compensate.left)
    last = ItemOf(steps, Binary("-", left, Constant(1)))
    head, done = Label(), Label()
    labels = {name: Label() for name in region.undos}
    choices = [
        {
            "Condition": expression(
                Binary(
                    "and",
                    Binary(">", left, Constant(0)),
                    Binary("=", FieldOf(last, "task"), Constant(name)),
                )
            ),
            "Assign": {left.name: expression(Binary("-", left, Constant(1)))},
            "Next": labels[name],
        }
        for name in region.undos
    ]
    assembler.place(head)
    state = {"Type": "Choice", "Choices": choices, "Default": done}
    assembler.end(origin, "undo in reverse order", state)
    after_failure = done if region.compensate.stops else head
    for name, step in region.undos.items():
        assembler.place(labels[name])
        arguments = expression(FieldOf(ItemOf(steps, left), "arguments"))
        undone = step.state_of(arguments)
        failure = {region.compensate.failure: compensation_failed(step.name)}
        undone["Catch"] = [
            {"ErrorEquals": [error_names.ALL], "Assign": failure, "Next": after_failure}
        ]
        assembler.end(origin, f"undo: {name}", {**undone, "Next": head})
    assembler.place(done)


# receive


def emit_receive(emitter: Emitter, statement: Receive) -> None:
    """A cancellation between the request and its reply rejects the request, as an undo step. After
    a reply that is stored, the rejection changes nothing: only the first reply counts.
    """
    assembler = emitter.assembler
    since = assembler.size
    emitter.block(statement.body)
    inside = assembler.names_since(since)
    behind, begin, end = Label(), Label(), Label()
    assembler.jump(behind)
    begin.is_used = True
    assembler.place(begin)
    emitter.statement(statement.cancelled)
    assembler.place(end)
    # No line of control reaches this state: the undo ends before it.
    failed = {"Type": "Fail", "Error": RequestCancelled.__name__}
    assembler.end(statement.origin, "the request is rejected", failed)
    emitter.machine.undos.append({"States": inside, "Begin": begin, "End": end, "Assign": {}})
    assembler.place(behind)


# timeout, shielded


def emit_deadline(emitter: Emitter, statement: TimeoutBlock) -> None:
    assembler = emitter.assembler
    begin = assembler.add(statement.origin, statement.origin.text, {"Type": "Pass"})
    since = assembler.size
    emitter.block(statement.body)
    inside = assembler.names_since(since)
    deadline: dict[str, Any] = {
        "Begin": begin,
        "Seconds": template(statement.seconds.query),
        "States": inside,
        "Cuts": CUTS_STEPS,
    }
    route = static_route(emitter.regions, BlockTimeout, ERROR_OUTPUT)
    if route is not None:
        route.label.is_used = True
        deadline["Next"] = route.label
        if route.assign:
            deadline["Assign"] = route.assign
    emitter.machine.deadlines.append(deadline)


def emit_shielded(emitter: Emitter, statement: Shielded) -> None:
    since = emitter.assembler.size
    emitter.block(statement.body)
    inside = emitter.assembler.names_since(since)
    if inside:
        emitter.machine.shielded.append(inside)
