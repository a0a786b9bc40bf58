"""Checks of a graph: its ids and edges, and the arguments of its tasks."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

from holdfast.api.boundary import Misfit, NoJson
from holdfast.api.graph_model import (
    FromInput,
    FromStep,
    GraphModel,
    InJson,
    Step,
    parameters_of,
    references_in,
    sources_of,
)
from holdfast.api.tasks import Task
from holdfast.compiler.diagnostics import CompileErrors, Diagnostic
from holdfast.compiler.expressions.outside import INTEGER_MAX
from holdfast.compiler.graphs.inputs import Use, inputs_of
from holdfast.compiler.graphs.places import DocumentPath, refuse, spot_of
from holdfast.compiler.graphs.plan import arrange, find_cycles, singles_of
from holdfast.compiler.graphs.services import secret_problems, service_problems
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.steps.callables import obstacles_of
from holdfast.compiler.steps.task_arguments import can_fit
from holdfast.compiler.types.types import (
    NONE,
    UNKNOWN,
    DictOf,
    ListOf,
    Type,
    describe,
    describe_exactly,
    join,
    join_all,
)
from holdfast.errors import nearest
from holdfast.limits import NAME_CHARACTERS_MAX

_ID: Final = re.compile(rf"[A-Za-z0-9_.\-]{{1,{NAME_CHARACTERS_MAX}}}")
#: Names that no graph may have. A request cannot name a workflow "." or "..", and names that begin
#: with "holdfast." belong to Holdfast.
_RESERVED: Final = re.compile(r"\.\.?\Z|holdfast\.")
_ID_EXPECTED: Final = f"1 to {NAME_CHARACTERS_MAX} of A-Z a-z 0-9 _ . -"


def check_dag(graph: GraphModel) -> None:
    """Check a graph. Raises CompileErrors with all refusals."""
    refused = [*_shape(graph)]
    if not refused:
        refused = [*_cycles(graph)]
        for step in (*graph.steps, *graph.compensations):
            if step.task.is_service:
                refused += [*service_problems(step), *_references(graph, step)]
                refused += secret_problems(graph, step)
            else:
                refused += _arguments(graph, step, sources_of(step))
        refused += _inputs(graph)
    if not refused and graph.compensations:
        refused = [*_compensations(graph)]
    if refused:
        raise CompileErrors(refused)


# Ids and edges.


def _shape(graph: GraphModel) -> Iterator[Diagnostic]:
    odd = [found for found in graph.steps if not isinstance(found, Step)]
    if odd:
        message = f"a graph is made of steps, and {odd[0]!r} is none"
        help_ = 'dag("nightly", step("extract", extract))'
        yield spot_of(graph.written).refusal("HF007", message, help_)
        return
    if not _is_id(graph.name) or _RESERVED.match(graph.name):
        reserved = "., .. and names that begin with holdfast. are reserved"
        expected = reserved if _is_id(graph.name) else _ID_EXPECTED
        message = f"{_shown(graph.name)} is no name of a workflow: {expected}"
        yield spot_of(graph.written, ("workflow_id",)).refusal("HF057", message, '"nightly"')
    if not graph.steps:
        message = "this graph has no steps"
        help_ = 'dag("nightly", step("extract", extract))'
        if isinstance(graph.written, InJson):
            help_ = '"steps": [{"id": "extract", "type": "extract"}]'
        yield spot_of(graph.written).refusal("HF057", message, help_)
    if not _is_whole(graph.timeout):
        message = "the timeout of a graph is whole seconds, at least one"
        spot = spot_of(graph.written, ("timeout",))
        yield spot.refusal("HF052", message, "timeout=hours(2)")
    first: dict[str, Step] = {}
    for step in (*graph.steps, *graph.compensations):
        yield from _step_shape(graph, step)
        if not isinstance(step.id, str):
            continue
        if step.id in first:
            message = f"two steps are called `{step.id}`"
            yield refuse(step, ("id",), "HF056", message, f'"{_free(step.id, graph.ids)}"')
        first.setdefault(step.id, step)


def _step_shape(graph: GraphModel, step: Step) -> Iterator[Diagnostic]:
    if not _is_id(step.id):
        message = f"{_shown(step.id)} is no id of a step: {_ID_EXPECTED}"
        yield refuse(step, ("id",), "HF057", message, '"clean_up"')
    if isinstance(step.task, Task):
        for obstacle in () if step.task.is_service else obstacles_of(step.task):
            yield refuse(step, ("type",), obstacle.code, obstacle.message, obstacle.help)
    else:
        name = getattr(step.task, "__name__", type(step.task).__name__)
        message = f"a step runs a task, and `{name}` is none"
        help_ = f"@task  # before `def {name}`"
        yield refuse(step, ("type",), "HF007", message, help_)
    if step.is_compensation and len(step.depends_on) != 1:
        named = len(step.depends_on)
        message = f"`{step.id}` takes back the one step that it depends on, and names {named}"
        meant = next(iter(graph.ids), "reserve")
        yield refuse(step, ("depends_on",), "HF057", message, f'"depends_on": ["{meant}"]')
        return
    undos = [one.id for one in graph.compensations]
    for number, awaited in enumerate(step.depends_on):
        path: DocumentPath = ("depends_on", number)
        if awaited in undos and awaited != step.id:
            message = f"`{step.id}` depends on `{awaited}`, which runs only after a failure"
            yield refuse(step, path, "HF057", message, _without(step, awaited))
            continue
        if awaited == step.id:
            message = f"`{step.id}` depends on itself and would never begin"
            yield refuse(step, path, "HF055", message, _without(step, step.id))
        elif not isinstance(awaited, str) or awaited not in graph.ids:
            meant = nearest(str(awaited), graph.ids) or next(iter(graph.ids), "extract")
            message = f"`{step.id}` depends on {_shown(awaited)}, which is no step of this graph"
            yield refuse(step, path, "HF056", message, f'"{meant}"')


def _is_whole(timeout: object) -> bool:
    if not isinstance(timeout, timedelta):
        return timeout is None
    return timeout >= timedelta(seconds=1) and not timeout.microseconds


def _is_id(found: object) -> bool:
    return isinstance(found, str) and _ID.fullmatch(found) is not None


def _shown(found: object) -> str:
    return json.dumps(found, ensure_ascii=False) if isinstance(found, str) else repr(found)


def _free(id_: str, taken: Mapping[str, int]) -> str:
    return next(name for n in range(2, len(taken) + 3) if (name := f"{id_}_{n}") not in taken)


def _cycles(graph: GraphModel) -> Iterator[Diagnostic]:
    ids = graph.ids
    edges = [frozenset(ids[awaited] for awaited in step.depends_on) for step in graph.steps]
    for cycle in find_cycles(edges):
        step, names = graph.steps[cycle[0]], [graph.steps[number].id for number in cycle]
        waits = " waits for ".join(f"`{name}`" for name in (*names, names[0]))
        path: DocumentPath = ("depends_on", step.depends_on.index(names[1]))
        message = f"these steps would never begin: {waits}"
        yield refuse(step, path, "HF055", message, _without(step, names[1]))


def _compensations(graph: GraphModel) -> Iterator[Diagnostic]:
    """Refuse a compensation of a step beside which others may run: when one of those fails, the
    result of a branch that has ended is lost, and the compensation needs it.
    """
    edges = [frozenset(graph.ids[id_] for id_ in step.depends_on) for step in graph.steps]
    alone = singles_of(arrange(edges))
    for step in graph.compensations:
        undone = step.depends_on[0]
        if graph.ids[undone] not in alone:
            message = (
                f"`{step.id}` takes back `{undone}`, and other steps may run beside `{undone}`"
            )
            help_ = "let the others depend on it, or write a workflow with `compensating()`"
            yield refuse(step, ("depends_on", 0), "HF057", message, help_)


# Arguments.


def _arguments(graph: GraphModel, step: Step, sources: Mapping[str, Any]) -> Iterator[Diagnostic]:
    parameters = parameters_of(step.task)
    for name in step.arguments:
        if name not in parameters:
            message = f"`{step.task.name}` has no parameter `{name}`"
            meant = nearest(str(name), parameters)
            help_ = json.dumps(meant) if meant else f"def {step.task.function.__name__}({name}: …)"
            yield refuse(step, ("parameter", name), "HF008", message, help_)
    for name, tree in sources.items():
        if name not in step.arguments and name in graph.ids and tree == FromInput(name):
            yield _unfilled(graph, step, name)
        else:
            yield from _argument(graph, step, name, tree)


def _references(graph: GraphModel, step: Step) -> Iterator[Diagnostic]:
    for name, tree in step.arguments.items():
        found = (_reference(graph, step, ("arguments", name), one) for one in references_in(tree))
        yield from (refusal for refusal in found if refusal is not None)


def _unfilled(graph: GraphModel, step: Step, name: str) -> Diagnostic:
    """Refuse a required parameter that gets no value. Probably an edge is missing; otherwise the
    author can mark the parameter as an input.
    """
    message = (
        f"nothing fills `{name}` of {step.task.name}(): `{name}` is a step, and "
        f"`{step.id}` does not depend on it"
    )
    wanted = signature_of(step.task.function).parameters[name]
    if name == step.id or not can_fit(_type_of(graph, FromStep(name)), wanted):
        return refuse(step, (), "HF008", message, _meaning_input(step, name, name))
    help_ = f"{_awaiting(step, (*step.depends_on, name))}, or {_meaning_input(step, name, name)}"
    return refuse(step, ("depends_on",) if step.depends_on else (), "HF008", message, help_)


def _without(step: Step, id_: str) -> str:
    return _awaiting(step, (other for other in step.depends_on if other != id_))


# The code to type, in Python or in JSON.


def _awaiting(step: Step, ids: Iterable[str]) -> str:
    listed = ", ".join(map(_shown, ids))
    return f'"depends_on": [{listed}]' if _is_json(step) else f"depends_on=[{listed}]"


def _meaning_input(step: Step, parameter: str, name: str) -> str:
    given = _from(step, "input", name)
    if _is_json(step):
        return f'"arguments": {{"{parameter}": {given}}}'
    return f'arguments={{"{parameter}": {given}}}'


def _from(step: Step, what: Literal["step", "input"], name: str) -> str:
    return f'{{"${what}": "{name}"}}' if _is_json(step) else f'from_{what}("{name}")'


def _is_json(step: Step) -> bool:
    return isinstance(step.written, InJson)


def _argument(graph: GraphModel, step: Step, name: str, tree: Any) -> Iterator[Diagnostic]:
    path: DocumentPath = ("arguments", name)
    found = references_in(tree)
    unknown = [_reference(graph, step, path, source) for source in found]
    if any(unknown):
        yield from (refusal for refusal in unknown if refusal is not None)
    elif not found:
        yield from _constant(step, name, tree)
    else:
        wanted = signature_of(step.task.function).parameters[name]
        given = _type_of(graph, tree)
        if not can_fit(given, wanted):
            message = (
                f"`{name}` of {step.task.name}() is {describe_exactly(wanted)} and this is "
                f"{describe_exactly(given)}"
            )
            place = path if name in step.arguments else ("depends_on", _place(step, name))
            needed = describe(join(wanted, NONE) if given == NONE else given)
            help_ = f"def {step.task.function.__name__}({name}: {needed})"
            yield refuse(step, place, "HF040", message, help_)


def _place(step: Step, id_: str) -> int:
    return step.depends_on.index(id_)


def _reference(
    graph: GraphModel, step: Step, path: DocumentPath, source: FromStep | FromInput
) -> Diagnostic | None:
    match source:
        case FromStep(id_) if id_ not in graph.ids:
            message = f"`{step.id}` takes the result of {_shown(id_)}, which is no step"
            meant = nearest(id_, graph.ids) or next(iter(graph.ids))
            return refuse(step, path, "HF056", message, _from(step, "step", meant))
        case FromStep(id_) if id_ not in step.depends_on:
            message = f"`{step.id}` takes the result of `{id_}` and does not depend on it"
            help_ = _awaiting(step, (*step.depends_on, id_))
            return refuse(step, path, "HF056", message, help_)
        case FromInput(field) if not field.isidentifier() or keyword.iskeyword(field):
            message = f"{_shown(field)} is no name of a field of the input"
            name = re.sub(r"\W", "_", field) or "day"
            meant = f"{name}_" if keyword.iskeyword(name) else name
            meant = meant if meant.isidentifier() else f"_{meant}"
            return refuse(step, path, "HF057", message, _from(step, "input", meant))
        case _:
            return None


def _type_of(graph: GraphModel, tree: Any) -> Type:
    match tree:
        case FromStep(id_):
            return signature_of(graph.steps[graph.ids[id_]].task.function).result
        case list() | tuple():
            return ListOf(join_all(_type_of(graph, item) for item in tree))
        case dict() if not references_in(list(tree.values())):
            return DictOf(join_all(_type_of(graph, item) for item in tree.values()))
        case _:
            # An object that contains results of steps may be meant as a model. Its type is unknown
            # here, and the model checks its fields at run time.
            return UNKNOWN


def _constant(step: Step, name: str, value: Any) -> Iterator[Diagnostic]:
    path: DocumentPath = ("arguments", name)
    annotation = describe_exactly(signature_of(step.task.function).parameters[name])
    try:
        plain = step.task.boundary.normalise_argument(name, value)
    except NoJson as error:
        message = f"this value of `{name}` cannot be written as JSON: {error}"
        yield refuse(step, path, "HF003", message, _from(step, "input", name))
        return
    except Misfit as misfit:
        message = f"this does not fit `{name}: {annotation}` of {step.task.name}(): {misfit}"
        yield refuse(step, path, "HF040", message, _from(step, "input", name))
        return
    except Exception as error:  # noqa: BLE001 - an author's own validator may raise anything
        message = f"this value of `{name}` cannot be written as JSON: {type(error).__name__}"
        yield refuse(step, path, "HF003", message, _from(step, "input", name))
        return
    if not _is_exact(plain):
        message = f"this value of `{name}` has numbers that JSON cannot hold exactly"
        yield refuse(step, path, "HF042", message, _from(step, "input", name))


def _is_exact(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case int():
            return abs(value) <= INTEGER_MAX
        case list():
            return all(map(_is_exact, value))
        case dict():
            return all(map(_is_exact, value.values()))
        case _:
            return True


# The input.


def _inputs(graph: GraphModel) -> Iterator[Diagnostic]:
    for field, given in inputs_of(graph).items():
        if given.conflict is not None:
            one, other = given.conflict
            message = (
                f"`{field}` of the input is {describe_exactly(one.type)} for `{one.step.id}` and "
                f"{describe_exactly(other.type)} here"
            )
            name = re.sub(r"\W", "_", f"{other.step.id}_{field}")
            help_ = _meaning_input(other.step, other.parameter, name)
            yield refuse(other.step, _path(other), "HF040", message, help_)


def _path(use: Use) -> DocumentPath:
    return ("arguments", use.parameter) if use.parameter in use.step.arguments else ()
