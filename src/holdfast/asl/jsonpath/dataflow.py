"""The order in which the fields of a JSONPath state are applied to its data.

    input ─InputPath─► effective input ─Parameters─► arguments ─(task)─► result
    result ─ResultSelector─► selected ─ResultPath─► input with the result in it ─OutputPath─► output

ResultPath puts the result into the input that the state got, and not into the result of InputPath
(as recordings show). A path that is null gives `{}`; with a ResultPath that is null the result is
dropped. `$` in Assign is the selected result, or the error output in a catcher; without a result it
is the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson
from holdfast.asl.jsonpath.jsonpath import (
    Path,
    PathMissing,
    ReferenceConflict,
    ReferencePath,
    compile_path,
    compile_reference,
)
from holdfast.asl.jsonpath.payload import compile_payload
from holdfast.asl.jsonpath.scope import (
    ERROR_DATA,
    INPUT_DATA,
    RESULT_DATA,
    ConstantTemplate,
    PathScope,
    refuse,
    require_bounded,
)
from holdfast.asl.parsing.path_values import (
    PathValue,
    items_path,
    percentage_path,
    task_seconds_path,
    text_path,
    wait_seconds_path,
    wait_timestamp_path,
    whole_number_path,
)
from holdfast.asl.template import StateError, Template

__all__ = [
    "ERROR_DATA",
    "INPUT_DATA",
    "RESULT_DATA",
    "ConstantTemplate",
    "DataPath",
    "EffectiveInput",
    "PathArguments",
    "PathOutput",
    "PathSelection",
    "PathValue",
    "items_path",
    "percentage_path",
    "task_seconds_path",
    "text_path",
    "wait_seconds_path",
    "wait_timestamp_path",
    "whole_number_path",
]

_Bindings = Mapping[str, StrictJson]
_State = Mapping[str, Any]
_ROOT: Final = "$"


@dataclass(frozen=True, slots=True)
class DataPath:
    """An InputPath or OutputPath. `path` is None for null, which gives an empty object."""

    path: Path | None

    @classmethod
    def of(cls, state: _State, field: str) -> DataPath | None:
        """Return the path in a field; None when the field would change nothing. Raises
        PathSyntaxError.
        """
        text = state.get(field, _ROOT)
        if text == _ROOT:
            return None
        return cls(None if text is None else compile_path(text))

    def read(self, scope: PathScope) -> StrictJson:
        """Return the value of the path. Raises StateError: Invalid path '$.a' : No results for
        path: $['a']
        """
        if self.path is None:
            return {}
        try:
            return scope.find(self.path)
        except PathMissing as missing:
            refuse(f"Invalid path '{self.path.text}' : {missing.reason}")


@dataclass(frozen=True, slots=True)
class EffectiveInput:
    """The state's input after its InputPath. It is `$` in Parameters, in Choice rules and in
    paths.
    """

    path: DataPath | None

    @classmethod
    def of(cls, state: _State) -> EffectiveInput:
        return cls(DataPath.of(state, "InputPath"))

    def evaluate(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        data = INPUT_DATA.evaluate(bindings, moment)
        return data if self.path is None else self.path.read(PathScope(data, bindings, moment))


@dataclass(frozen=True, slots=True)
class PathArguments:
    """The data that a state works with: its input after InputPath and Parameters."""

    effective_input: EffectiveInput
    parameters: Template | None

    @classmethod
    def of(cls, state: _State) -> PathArguments:
        """Return the Parameters of a Task, Parallel or Pass. The Parameters of a Map are its
        ItemSelector, which is read elsewhere.
        """
        source = EffectiveInput.of(state)
        has_parameters = "Parameters" in state
        return cls(source, compile_payload(state["Parameters"], source) if has_parameters else None)

    def evaluate(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        return (self.parameters or self.effective_input).evaluate(bindings, moment)


@dataclass(frozen=True, slots=True)
class _PassResult:
    """The result of a Pass, which has no task: it was already computed for this state, or it is
    computed here.
    """

    result: Template

    def evaluate(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        states: Any = bindings["states"]
        if "result" in states:
            return RESULT_DATA.evaluate(bindings, moment)
        return self.result.evaluate(bindings, moment)


@dataclass(frozen=True, slots=True)
class PathSelection:
    """A state's result after its ResultSelector. It is `$` in Assign."""

    result: Template
    selector: Template | None

    def evaluate(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        return (self.selector or self.result).evaluate(bindings, moment)


@dataclass(frozen=True, slots=True)
class PathOutput:
    """The output of a state. With `result_path` None the result is dropped.

    There is a method for each stage, because TestState shows them.
    """

    selection: PathSelection
    result_path: ReferencePath | None
    output_path: DataPath | None

    @classmethod
    def of_task(cls, state: _State) -> PathOutput:
        """Return the output of a Task, Parallel or Map. Their result is in `states` of the
        bindings.
        """
        selector = None
        if "ResultSelector" in state:
            selector = compile_payload(state["ResultSelector"], RESULT_DATA)
        return cls._of(state, PathSelection(RESULT_DATA, selector))

    @classmethod
    def of_pass(cls, state: _State) -> PathOutput:
        """Return the output of a Pass. If it has a Result, that replaces the input, even with
        Parameters.
        """
        result: Template = PathArguments.of(state)
        if "Result" in state:
            result = ConstantTemplate(state["Result"])
        return cls._of(state, PathSelection(_PassResult(result), None))

    @classmethod
    def of_input(cls, state: _State) -> PathOutput:
        """Return the output of a Choice, Wait or Succeed: InputPath and OutputPath."""
        selection = PathSelection(EffectiveInput.of(state), None)
        return cls(selection, compile_reference(_ROOT), DataPath.of(state, "OutputPath"))

    @classmethod
    def of_catcher(cls, catcher: _State) -> PathOutput:
        """Return the output of a catcher. The state's OutputPath is not applied to it (as
        recordings show).
        """
        selection = PathSelection(ERROR_DATA, None)
        return cls(selection, _reference(catcher), None)

    @classmethod
    def _of(cls, state: _State, selection: PathSelection) -> PathOutput:
        return cls(selection, _reference(state), DataPath.of(state, "OutputPath"))

    def selected(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        """Return the result after ResultSelector."""
        return self.selection.evaluate(bindings, moment)

    def combined(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        """Return the input with the result in it, after ResultPath. Raises StateError."""
        data = INPUT_DATA.evaluate(bindings, moment)
        if self.result_path is None:
            return data
        selected = self.selected(bindings, moment)
        try:
            return self.result_path.put(data, selected)
        except ReferenceConflict as conflict:
            error = error_names.REFERENCE_PATH_CONFLICT
            raise StateError(error, conflict.reason, is_whole=True) from None

    def evaluate(self, bindings: _Bindings, moment: EvaluationMoment) -> StrictJson:
        combined = self.combined(bindings, moment)
        require_bounded(combined)
        if self.output_path is None:
            return combined
        output = self.output_path.read(PathScope(combined, bindings, moment))
        require_bounded(output)
        return output


def _reference(state: _State) -> ReferencePath | None:
    text = state.get("ResultPath", _ROOT)
    return None if text is None else compile_reference(text)
