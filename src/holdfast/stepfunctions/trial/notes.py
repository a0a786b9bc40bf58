"""The intermediate results that are recorded for each type and language, as recordings of AWS show
them.

JSONata   Task: afterArguments, result. The other types: none of their own. JSONPath
afterInputPath; Task and Pass: afterParameters; Task: result; Task, Pass, Map and Parallel:
afterResultSelector, afterResultPath. A Pass with a Result shows only that; a Parallel shows nothing
before its result. Map       items and bounds, see `map.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.dataflow import EffectiveInput, PathArguments, PathOutput
from holdfast.asl.program import Json, MapState, ParallelState, PassState, TaskState
from holdfast.asl.template import StateError, Template
from holdfast.stepfunctions.trial.definition import Tested
from holdfast.stepfunctions.trial.map import MapFields
from holdfast.stepfunctions.trial.request import Trial
from holdfast.stepfunctions.trial.stage import Bindings, Notes, Observe, Scene, fresh


def observers_of(tested: Tested, trial: Trial, scene: Scene, notes: Notes) -> Mapping[str, Observe]:
    """Return for each field of the state, by its name, the function that evaluates and records
    it.
    """
    observers: dict[str, Observe] = {"credentials": _credentials(notes)}
    match tested.state:
        case MapState():
            observers["arguments"] = MapFields(tested, trial, notes).observe
        case TaskState() if tested.is_jsonata:
            observers["arguments"] = _noted("afterArguments", notes)
        case TaskState():
            observers["arguments"] = _noted("afterParameters", notes)
    if not tested.is_jsonata and isinstance(
        tested.state, TaskState | MapState | ParallelState | PassState
    ):
        observers["output"] = _output(tested, scene, notes)
    return observers


def note_input(tested: Tested, scene: Scene, now_ms: int, notes: Notes) -> None:
    """Record the state's data. If a part cannot be computed, it is left out: the state itself then
    reports the error.
    """
    if tested.is_jsonata or isinstance(tested.state, ParallelState) or _has_result(tested):
        return
    states: Json = {"input": scene.input, "context": scene.context}
    bindings = {**scene.variables, "states": states}
    try:
        data = EffectiveInput.of(tested.written).evaluate(bindings, fresh(scene, now_ms))
    except StateError:
        return
    notes.stages["afterInputPath"] = data


def _has_result(tested: Tested) -> bool:
    return isinstance(tested.state, PassState) and "Result" in tested.written


def _output(tested: Tested, scene: Scene, notes: Notes) -> Observe:
    """Return the output's stages in JSONPath. A Pass computes them from its input, other states
    from their result.
    """
    stages: dict[str, Callable[[Bindings, EvaluationMoment], Json]] = {}
    if _has_result(tested):
        notes.stages["result"] = tested.written["Result"]
    elif isinstance(tested.state, PassState):
        stages["afterParameters"] = PathArguments.of(tested.written).evaluate
    make = PathOutput.of_pass if isinstance(tested.state, PassState) else PathOutput.of_task
    path = make(tested.written)
    stages["afterResultSelector"] = path.selected
    stages["afterResultPath"] = path.combined

    def observe(template: Template, bindings: Bindings, moment: EvaluationMoment) -> Json:
        for name, stage in stages.items():
            notes.stages[name] = stage(bindings, fresh(scene, moment.now_ms))
        return template.evaluate(bindings, fresh(scene, moment.now_ms))

    return observe


def _noted(name: str, notes: Notes) -> Observe:
    def observe(template: Template, bindings: Bindings, moment: EvaluationMoment) -> Json:
        value = notes.stages[name] = template.evaluate(bindings, moment)
        return value

    return observe


def _credentials(notes: Notes) -> Observe:
    def observe(template: Template, bindings: Bindings, moment: EvaluationMoment) -> Json:
        value = template.evaluate(bindings, moment)
        role = value.get("RoleArn") if isinstance(value, dict) else None
        notes.role_arn = role if isinstance(role, str) else None
        return value

    return observe
