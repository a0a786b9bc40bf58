"""The eight types of state and the machines around them: fields, values, languages.

One table per type. Which field a type has is AWS's, measured; what a field may hold is said by the
checks of `_validate_values`, `_validate_paths`, `_validate_choice` and `_validate_map`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl import _validate_extensions as extensions
from holdfast.asl import _validate_map as maps
from holdfast.asl import _validate_paths as paths
from holdfast.asl import _validate_task as tasks
from holdfast.asl import _validate_values as values
from holdfast.asl._validate_choice import check_rule
from holdfast.asl._validate_report import (
    LANGUAGES,
    Field,
    Scope,
    Shape,
    expected,
    listed,
)
from holdfast.asl.documents import language_of

_PATH: Final = Field(paths.path, "JSONPath")
_REFERENCE: Final = Field(paths.reference(context=True), "JSONPath")
_COUNT_PATH: Final = Field(paths.reference(), "JSONPath")
_PAYLOAD: Final = Field(paths.payload, "JSONPath")
_TEMPLATE: Final = Field(values.template, "JSONata")
_TEXT: Final = Field(values.text)


def _with_result(scope: Scope, value: Any, location: str) -> None:
    values.template(scope.with_states("result"), value, location)


def _assign_with_result(scope: Scope, value: Any, location: str) -> None:
    paths.assign(scope.with_states("result"), value, location)


# -- retriers and catchers -------------------------------------------------------------------------

_RETRIER: Final = Shape(
    {
        "ErrorEquals": Field(values.names_of_errors),
        "IntervalSeconds": Field(values.integer(0)),
        "MaxAttempts": Field(values.integer(0)),
        "BackoffRate": Field(values.number(1.0, sys.float_info.max)),
        "MaxDelaySeconds": Field(values.integer(1, 31_622_400)),
        "JitterStrategy": Field(values.one_of("NONE", "FULL")),
        "Comment": _TEXT,
    },
    required=("ErrorEquals",),
)


def _catcher_output(scope: Scope, value: Any, location: str) -> None:
    values.template(scope.with_states("errorOutput"), value, location)


def _catcher_assign(scope: Scope, value: Any, location: str) -> None:
    paths.assign(scope.with_states("errorOutput"), value, location)


_CATCHER: Final = Shape(
    {
        "ErrorEquals": Field(values.names_of_errors),
        "Next": _TEXT,
        "ResultPath": Field(paths.result_path, "JSONPath"),
        "Assign": Field(_catcher_assign),
        "Output": Field(_catcher_output, "JSONata"),
        "Comment": _TEXT,
    },
    required=("ErrorEquals", "Next"),
)


def _handlers(shape: Shape) -> Field:
    check_list = values.list_of(shape.check, may_be_empty=True)

    def check(scope: Scope, value: Any, location: str) -> None:
        check_list(scope, value, location)
        if isinstance(value, list):
            values.check_catch_alls(scope, value, location)

    return Field(check)


# -- fields that several types have ----------------------------------------------------------------

_COMMON: Final[Mapping[str, Field]] = {
    "Type": Field(values.anything),
    "Comment": _TEXT,
    "QueryLanguage": Field(values.one_of(*LANGUAGES)),
}
_PATHS: Final[Mapping[str, Field]] = {"InputPath": _PATH, "OutputPath": _PATH}
_RESULT_PATH: Final[Mapping[str, Field]] = {"ResultPath": Field(paths.result_path, "JSONPath")}
_FLOW: Final[Mapping[str, Field]] = {"Next": _TEXT, "End": Field(values.boolean)}
_HANDLERS: Final[Mapping[str, Field]] = {
    "Retry": _handlers(_RETRIER),
    "Catch": _handlers(_CATCHER),
}
_RESULTS: Final[Mapping[str, Field]] = {
    **_PATHS,
    **_RESULT_PATH,
    **_FLOW,
    **_HANDLERS,
    "ResultSelector": _PAYLOAD,
    "Assign": Field(_assign_with_result),
    "Output": Field(_with_result, "JSONata"),
}
_PLAIN: Final[Mapping[str, Field]] = {
    **_PATHS,
    "Assign": Field(paths.assign),
    "Output": _TEMPLATE,
}
_ENDS: Final = (("Next", "End"),)


def _pair(name: str) -> tuple[str, str]:
    return (name, f"{name}Path")


# -- Task ------------------------------------------------------------------------------------------


_TASK: Final = Shape(
    {
        **_COMMON,
        **_RESULTS,
        "Resource": Field(tasks.check_resource),
        "Parameters": _PAYLOAD,
        "Arguments": _TEMPLATE,
        "Credentials": Field(tasks.check_credentials),
        "TimeoutSeconds": Field(values.integer(1, jsonata=True)),
        "TimeoutSecondsPath": _REFERENCE,
        "HeartbeatSeconds": Field(values.integer(1, jsonata=True)),
        "HeartbeatSecondsPath": _REFERENCE,
    },
    required=("Resource",),
    one_of=_ENDS,
    at_most_one=(_pair("TimeoutSeconds"), _pair("HeartbeatSeconds")),
)


# -- the machines within ---------------------------------------------------------------------------


def _branch(scope: Scope, value: Any, location: str) -> None:
    _BRANCH.check(scope.inside(scope.machine_language), value, location)


def _processor(scope: Scope, value: Any, location: str) -> None:
    """The executions of a distributed Map may be EXPRESS, whatever the machine is."""
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    within = scope.inside(scope.machine_language)
    config = value.get("ProcessorConfig")
    if isinstance(config, dict) and config.get("ExecutionType") == "EXPRESS":
        within = replace(within, machine_type="EXPRESS")
    if "ProcessorConfig" in value:
        maps.check_processor_config(scope, config, f"{location}/ProcessorConfig")
    return _PROCESSOR.check(within, value, location)


_PARALLEL: Final = Shape(
    {
        **_COMMON,
        **_RESULTS,
        "Branches": Field(values.list_of(_branch)),
        "Parameters": _PAYLOAD,
        "Arguments": _TEMPLATE,
        "Holdfast": Field(extensions.PARALLEL.check),
    },
    required=("Branches",),
    one_of=_ENDS,
)
_MAP: Final = Shape(
    {
        **_COMMON,
        **_RESULTS,
        "ItemProcessor": Field(_processor),
        "Iterator": Field(_processor),
        "ItemsPath": Field(paths.reference(context=True), "JSONPath"),
        "Items": _TEMPLATE,
        "ItemSelector": Field(paths.payload_or_template),
        "Parameters": _PAYLOAD,
        "ItemReader": Field(maps.ITEM_READER.check),
        "ItemBatcher": Field(maps.ITEM_BATCHER.check),
        "ResultWriter": Field(maps.RESULT_WRITER.check),
        "MaxConcurrency": Field(values.integer(0, None, jsonata=True)),
        "MaxConcurrencyPath": _COUNT_PATH,
        "ToleratedFailurePercentage": Field(values.number(0.0, 100.0, jsonata=True)),
        "ToleratedFailurePercentagePath": _COUNT_PATH,
        "ToleratedFailureCount": Field(values.integer(0, None, jsonata=True)),
        "ToleratedFailureCountPath": _COUNT_PATH,
        "Label": Field(maps.check_label),
        "Holdfast": Field(extensions.MAP.check),
    },
    one_of=(("ItemProcessor", "Iterator"), *_ENDS),
    at_most_one=(
        ("ItemSelector", "Parameters"),
        _pair("MaxConcurrency"),
        _pair("ToleratedFailurePercentage"),
        _pair("ToleratedFailureCount"),
    ),
)
_WAIT_TIMES: Final = ("SecondsPath", "Seconds", "TimestampPath", "Timestamp")
_SHAPES: Final[Mapping[str, Shape]] = {
    "Task": _TASK,
    "Wait": Shape(
        {
            **_COMMON,
            **_PLAIN,
            **_FLOW,
            "Seconds": Field(values.integer(0, jsonata=True)),
            "SecondsPath": _REFERENCE,
            "Timestamp": Field(values.timestamp),
            "TimestampPath": _REFERENCE,
        },
        one_of=(*_ENDS, _WAIT_TIMES),
    ),
    "Pass": Shape(
        {
            **_COMMON,
            **_PLAIN,
            **_FLOW,
            **_RESULT_PATH,
            "Result": Field(values.anything, "JSONPath"),
            "Parameters": _PAYLOAD,
        },
        one_of=_ENDS,
    ),
    "Succeed": Shape({**_COMMON, **_PATHS, "Output": _TEMPLATE}),
    "Fail": Shape(
        {
            **_COMMON,
            "Error": Field(values.text_or_jsonata),
            "Cause": Field(values.text_or_jsonata),
            "ErrorPath": Field(paths.path_or_intrinsic, "JSONPath"),
            "CausePath": Field(paths.path_or_intrinsic, "JSONPath"),
        },
        at_most_one=(_pair("Error"), _pair("Cause")),
    ),
    "Choice": Shape(
        {
            **_COMMON,
            **_PLAIN,
            "Choices": Field(values.list_of(check_rule)),
            "Default": _TEXT,
        },
        required=("Choices",),
    ),
    "Parallel": _PARALLEL,
    "Map": _MAP,
}


def check_state(scope: Scope, state: Any, location: str) -> None:
    """One state. `scope.language` is the one that holds around it."""
    if not isinstance(state, dict):
        return expected(scope, location, "OBJECT")
    shape = _shape_of(scope, state, location)
    if shape is None:
        return None
    language = language_of(state, scope.language)
    inside = scope.inside(language)
    if scope.machine_language == "JSONata" and language == "JSONPath":
        scope.refuse(
            location,
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
        )
        shape = replace(shape, fields=_of_any_language(shape.fields))
    shape.check_names(inside, state, location)
    shape.check_values(inside, state, location)
    if shape is _TASK:
        tasks.check_task(inside, state, location)
    if shape is _PARALLEL or shape is _MAP:
        extensions.check_lanes(inside, state, location)
    return None


def _shape_of(scope: Scope, state: Mapping[str, Any], location: str) -> Shape | None:
    if "Type" not in state:
        scope.refuse(location, "The field 'Type' is required but was missing")
        return None
    kind = state["Type"]
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        scope.refuse(
            f"{location}/Type",
            f"The field 'Type' should have one of these values: {listed(_SHAPES)}",
        )
    return shape


def _of_any_language(fields: Mapping[str, Field]) -> dict[str, Field]:
    """A state in a language that it may not have is not told of its fields as well."""
    return {name: replace(field, language=None) for name, field in fields.items()}


# -- machines --------------------------------------------------------------------------------------


def _states(scope: Scope, value: Any, location: str) -> None:
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    if not value:
        scope.refuse(location, "Value cannot be empty")
    for name, state in value.items():
        check_state(scope, state, f"{location}/{name}")
    return None


# The order of the required ones is AWS's.
_LEVEL_FIELDS: Final[Mapping[str, Field]] = {
    "States": Field(_states),
    "StartAt": _TEXT,
    "Comment": _TEXT,
}
_REQUIRED: Final = ("States", "StartAt")
_BRANCH: Final = Shape(_LEVEL_FIELDS, required=_REQUIRED)
_PROCESSOR: Final = Shape(
    {**_LEVEL_FIELDS, "ProcessorConfig": Field(values.anything)}, required=_REQUIRED
)
_MACHINE: Final = Shape(
    {
        **_LEVEL_FIELDS,
        "QueryLanguage": Field(values.one_of(*LANGUAGES)),
        "TimeoutSeconds": Field(values.integer(0)),
        "Version": Field(values.one_of("1.0")),
        "Holdfast": Field(extensions.MACHINE.check),
    },
    required=_REQUIRED,
)


def check_machine(scope: Scope, machine: Mapping[str, Any]) -> None:
    """The whole definition; fields of the machine before its states."""
    head = {name: item for name, item in machine.items() if name != "States"}
    tail = {name: item for name, item in machine.items() if name == "States"}
    _MACHINE.check_names(scope, machine, "")
    _MACHINE.check_values(scope, head, "")
    _MACHINE.check_values(scope, tail, "")
