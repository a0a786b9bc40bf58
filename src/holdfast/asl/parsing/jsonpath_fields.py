"""The fields of a JSONPath state as templates: implements `fields.py` for the older language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.asl.documents import StateJson, config_of
from holdfast.asl.jsonata.jsonata import EvaluationMoment, StrictJson
from holdfast.asl.jsonpath.comparisons import compile_rule
from holdfast.asl.jsonpath.dataflow import (
    ERROR_DATA,
    EffectiveInput,
    PathArguments,
    PathOutput,
    items_path,
    percentage_path,
    task_seconds_path,
    text_path,
    wait_seconds_path,
    wait_timestamp_path,
    whole_number_path,
)
from holdfast.asl.jsonpath.payload import compile_payload
from holdfast.asl.jsonpath.scope import ConstantTemplate
from holdfast.asl.parsing.fields import ResultTemplates
from holdfast.asl.template import Template

#: A function that gets the name of the path's field, the path, and the value that `$` stands for.
_ByPath: TypeAlias = Callable[[str, str, Template], Template]

_BY_PATH: Final[Mapping[str, _ByPath]] = {
    "Error": text_path,
    "Cause": text_path,
    "Seconds": lambda _, text, source: wait_seconds_path(text, source),
    "Timestamp": lambda _, text, source: wait_timestamp_path(text, source),
    "TimeoutSeconds": task_seconds_path,
    "HeartbeatSeconds": task_seconds_path,
    "MaxConcurrency": whole_number_path,
    "MaxItems": whole_number_path,
    "MaxItemsPerBatch": whole_number_path,
    "MaxInputBytesPerBatch": whole_number_path,
    "ToleratedFailureCount": whole_number_path,
    "ToleratedFailurePercentage": percentage_path,
}
# The fields with which each type of state changes its output.
_OUTPUT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pass": ("InputPath", "Parameters", "Result", "ResultPath", "OutputPath"),
    "Choice": ("InputPath", "OutputPath"),
    "Wait": ("InputPath", "OutputPath"),
    "Succeed": ("InputPath", "OutputPath"),
    "Task": ("ResultSelector", "ResultPath", "OutputPath"),
    "Parallel": ("ResultSelector", "ResultPath", "OutputPath"),
    "Map": ("ResultSelector", "ResultPath", "OutputPath"),
}


@dataclass(frozen=True, slots=True)
class PathFields:
    state: StateJson

    @property
    def _source(self) -> EffectiveInput:
        """Return the value of `$` in most fields: the input after InputPath."""
        return EffectiveInput.of(self.state)

    def arguments(self) -> Template | None:
        has_any = "InputPath" in self.state or "Parameters" in self.state
        return PathArguments.of(self.state) if has_any else None

    def output(self) -> Template | None:
        changing = _OUTPUT_FIELDS[self.state["Type"]]
        return self._output() if any(name in self.state for name in changing) else None

    def _output(self) -> PathOutput:
        match self.state["Type"]:
            case "Pass":
                return PathOutput.of_pass(self.state)
            case "Task" | "Parallel" | "Map":
                return PathOutput.of_task(self.state)
            case _:
                return PathOutput.of_input(self.state)

    def assign(self) -> Template | None:
        return _payload(self.state, "Assign", self._output().selection)

    def pass_result(self) -> Template | None:
        """Return the result as one value, which Assign and the output share, as on AWS. If each
        evaluated it separately, a random function would give them different values.
        """
        return self._output().selection if "Assign" in self.state else None

    def value(self, name: str) -> Template | None:
        return _constant_or_path(self.state, name, self._source)

    def items(self) -> Template | None:
        if "ItemReader" in self.state:
            return None
        is_distributed = config_of(self.state).get("Mode") == "DISTRIBUTED"
        path = self.state.get("ItemsPath", "$")
        return items_path(path, self._source, takes_objects=is_distributed)

    def item_selector(self) -> Template | None:
        name = "ItemSelector" if "ItemSelector" in self.state else "Parameters"
        return _payload(self.state, name, self._source)

    def condition(self, rule: StateJson, where: str) -> Template:  # noqa: ARG002
        return compile_rule(rule, self._source)

    def rule_results(self, rule: StateJson, where: str) -> ResultTemplates:  # noqa: ARG002
        """Return the templates of a rule. It has its own Assign, but InputPath and OutputPath are
        those of the state.
        """
        return _payload(rule, "Assign", self._source), self.output()

    def catcher_results(self, catcher: StateJson, where: str) -> ResultTemplates:  # noqa: ARG002
        output = PathOutput.of_catcher(catcher) if "ResultPath" in catcher else None
        return _payload(catcher, "Assign", ERROR_DATA), output

    def inner_arguments(self, holder: StateJson, where: str) -> Template | None:  # noqa: ARG002
        return _payload(holder, "Parameters", self._source)

    def inner_value(self, holder: StateJson, name: str, where: str) -> Template | None:  # noqa: ARG002
        return _constant_or_path(holder, name, self._source)

    def batch_input(self, holder: StateJson, where: str) -> Template | None:  # noqa: ARG002
        return _payload(holder, "BatchInput", self._source)

    def reader_config(self, config: StateJson, where: str) -> Template | None:  # noqa: ARG002
        fixed = {name: item for name, item in config.items() if name != "MaxItemsPath"}
        items_max = _constant_or_path(config, "MaxItems", self._source)
        if "MaxItemsPath" not in config or items_max is None:
            return ConstantTemplate(fixed)
        return _ReaderConfig(fixed, items_max)

    def credentials(self) -> Template | None:
        return _payload(self.state, "Credentials", self._source)


@dataclass(frozen=True, slots=True)
class _ReaderConfig:
    fixed: Mapping[str, StrictJson]
    items_max: Template

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        return {**self.fixed, "MaxItems": self.items_max.evaluate(bindings, moment)}


def _payload(holder: StateJson, name: str, source: Template) -> Template | None:
    return compile_payload(holder[name], source) if name in holder else None


def _constant_or_path(holder: StateJson, name: str, source: Template) -> Template | None:
    if name in holder:
        return ConstantTemplate(holder[name])
    field = f"{name}Path"
    return _BY_PATH[name](field, holder[field], source) if field in holder else None
