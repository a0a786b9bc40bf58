"""The eight types of states, and the machines around them: fields, values, languages.

There is one table for each type. The fields of each type were found by tests against AWS; the
checks of `values.py`, `paths.py`, `choice.py` and `map.py` say which values a field may have.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.documents import language_of
from holdfast.asl.validation import extensions, paths, values
from holdfast.asl.validation import map as maps
from holdfast.asl.validation import task as tasks
from holdfast.asl.validation.choice import check_rule
from holdfast.asl.validation.report import (
    LANGUAGES,
    FieldRule,
    ObjectShape,
    RuleScope,
    expected,
    listed,
)

_PATH: Final = FieldRule(paths.path, "JSONPath")
_REFERENCE: Final = FieldRule(paths.reference(context=True), "JSONPath")
_COUNT_PATH: Final = FieldRule(paths.reference(), "JSONPath")
_PAYLOAD: Final = FieldRule(paths.payload, "JSONPath")
_TEMPLATE: Final = FieldRule(values.template, "JSONata")
_TEXT: Final = FieldRule(values.text)


def _with_result(scope: RuleScope, value: Any, location: str) -> None:
    values.template(scope.with_states("result"), value, location)


def _assign_with_result(scope: RuleScope, value: Any, location: str) -> None:
    paths.assign(scope.with_states("result"), value, location)


# -- retriers and catchers -------------------------------------------------------------------------

_RETRIER: Final = ObjectShape(
    {
        "ErrorEquals": FieldRule(values.names_of_errors),
        "IntervalSeconds": FieldRule(values.integer(0)),
        "MaxAttempts": FieldRule(values.integer(0)),
        "BackoffRate": FieldRule(values.number(1.0, sys.float_info.max)),
        "MaxDelaySeconds": FieldRule(values.integer(1, 31_622_400)),
        "JitterStrategy": FieldRule(values.one_of("NONE", "FULL")),
        "Holdfast": FieldRule(extensions.RETRIER.check),
        "Comment": _TEXT,
    },
    required=("ErrorEquals",),
)


def _catcher_output(scope: RuleScope, value: Any, location: str) -> None:
    values.template(scope.with_states("errorOutput"), value, location)


def _catcher_assign(scope: RuleScope, value: Any, location: str) -> None:
    paths.assign(scope.with_states("errorOutput"), value, location)


_CATCHER: Final = ObjectShape(
    {
        "ErrorEquals": FieldRule(values.names_of_errors),
        "Next": _TEXT,
        "ResultPath": FieldRule(paths.result_path, "JSONPath"),
        "Assign": FieldRule(_catcher_assign),
        "Output": FieldRule(_catcher_output, "JSONata"),
        "Comment": _TEXT,
    },
    required=("ErrorEquals", "Next"),
)


def _handlers(shape: ObjectShape) -> FieldRule:
    check_list = values.list_of(shape.check, may_be_empty=True)

    def check(scope: RuleScope, value: Any, location: str) -> None:
        check_list(scope, value, location)
        if isinstance(value, list):
            values.check_catch_alls(scope, value, location)

    return FieldRule(check)


# -- fields that several types have ----------------------------------------------------------------

_COMMON: Final[Mapping[str, FieldRule]] = {
    "Type": FieldRule(values.anything),
    "Comment": _TEXT,
    "QueryLanguage": FieldRule(values.one_of(*LANGUAGES)),
}
_PATHS: Final[Mapping[str, FieldRule]] = {"InputPath": _PATH, "OutputPath": _PATH}
_RESULT_PATH: Final[Mapping[str, FieldRule]] = {
    "ResultPath": FieldRule(paths.result_path, "JSONPath")
}
_FLOW: Final[Mapping[str, FieldRule]] = {"Next": _TEXT, "End": FieldRule(values.boolean)}
_HANDLERS: Final[Mapping[str, FieldRule]] = {
    "Retry": _handlers(_RETRIER),
    "Catch": _handlers(_CATCHER),
}
_RESULTS: Final[Mapping[str, FieldRule]] = {
    **_PATHS,
    **_RESULT_PATH,
    **_FLOW,
    **_HANDLERS,
    "ResultSelector": _PAYLOAD,
    "Assign": FieldRule(_assign_with_result),
    "Output": FieldRule(_with_result, "JSONata"),
}
_PLAIN: Final[Mapping[str, FieldRule]] = {
    **_PATHS,
    "Assign": FieldRule(paths.assign),
    "Output": _TEMPLATE,
}
_ENDS: Final = (("Next", "End"),)


def _pair(name: str) -> tuple[str, str]:
    return (name, f"{name}Path")


# -- Task ------------------------------------------------------------------------------------------


_TASK: Final = ObjectShape(
    {
        **_COMMON,
        **_RESULTS,
        "Resource": FieldRule(tasks.check_resource),
        "Parameters": _PAYLOAD,
        "Arguments": _TEMPLATE,
        "Credentials": FieldRule(tasks.check_credentials),
        "TimeoutSeconds": FieldRule(values.integer(1, jsonata=True)),
        "TimeoutSecondsPath": _REFERENCE,
        "HeartbeatSeconds": FieldRule(values.integer(1, jsonata=True)),
        "HeartbeatSecondsPath": _REFERENCE,
        "Holdfast": FieldRule(extensions.TASK.check),
    },
    required=("Resource",),
    one_of=_ENDS,
    at_most_one=(_pair("TimeoutSeconds"), _pair("HeartbeatSeconds")),
)


# -- inner machines --------------------------------------------------------------------------------


def _branch(scope: RuleScope, value: Any, location: str) -> None:
    _BRANCH.check(scope.inside(scope.machine_language), value, location)


def _processor(scope: RuleScope, value: Any, location: str) -> None:
    """Check an ItemProcessor. The child executions of a distributed Map may be EXPRESS, whatever
    the type of the machine is.
    """
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    within = scope.inside(scope.machine_language)
    config = value.get("ProcessorConfig")
    if isinstance(config, dict) and config.get("ExecutionType") == "EXPRESS":
        within = replace(within, machine_type="EXPRESS")
    if "ProcessorConfig" in value:
        maps.check_processor_config(scope, config, f"{location}/ProcessorConfig")
    return _PROCESSOR.check(within, value, location)


_PARALLEL: Final = ObjectShape(
    {
        **_COMMON,
        **_RESULTS,
        "Branches": FieldRule(values.list_of(_branch)),
        "Parameters": _PAYLOAD,
        "Arguments": _TEMPLATE,
        "Holdfast": FieldRule(extensions.PARALLEL.check),
    },
    required=("Branches",),
    one_of=_ENDS,
)
_MAP: Final = ObjectShape(
    {
        **_COMMON,
        **_RESULTS,
        "ItemProcessor": FieldRule(_processor),
        "Iterator": FieldRule(_processor),
        "ItemsPath": FieldRule(paths.reference(context=True), "JSONPath"),
        "Items": _TEMPLATE,
        "ItemSelector": FieldRule(paths.payload_or_template),
        "Parameters": _PAYLOAD,
        "ItemReader": FieldRule(maps.ITEM_READER.check),
        "ItemBatcher": FieldRule(maps.ITEM_BATCHER.check),
        "ResultWriter": FieldRule(maps.RESULT_WRITER.check),
        "MaxConcurrency": FieldRule(values.integer(0, None, jsonata=True)),
        "MaxConcurrencyPath": _COUNT_PATH,
        "ToleratedFailurePercentage": FieldRule(values.number(0.0, 100.0, jsonata=True)),
        "ToleratedFailurePercentagePath": _COUNT_PATH,
        "ToleratedFailureCount": FieldRule(values.integer(0, None, jsonata=True)),
        "ToleratedFailureCountPath": _COUNT_PATH,
        "Label": FieldRule(maps.check_label),
        "Holdfast": FieldRule(extensions.MAP.check),
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
_SHAPES: Final[Mapping[str, ObjectShape]] = {
    "Task": _TASK,
    "Wait": ObjectShape(
        {
            **_COMMON,
            **_PLAIN,
            **_FLOW,
            "Seconds": FieldRule(values.integer(0, jsonata=True)),
            "SecondsPath": _REFERENCE,
            "Timestamp": FieldRule(values.timestamp),
            "TimestampPath": _REFERENCE,
        },
        one_of=(*_ENDS, _WAIT_TIMES),
    ),
    "Pass": ObjectShape(
        {
            **_COMMON,
            **_PLAIN,
            **_FLOW,
            **_RESULT_PATH,
            "Result": FieldRule(paths.static_result, "JSONPath"),
            "Parameters": _PAYLOAD,
            "Holdfast": FieldRule(extensions.PASS.check),
        },
        one_of=_ENDS,
    ),
    "Succeed": ObjectShape({**_COMMON, **_PATHS, "Output": _TEMPLATE}),
    "Fail": ObjectShape(
        {
            **_COMMON,
            "Error": FieldRule(paths.text_beside_path("Error")),
            "Cause": FieldRule(paths.text_beside_path("Cause")),
            "ErrorPath": FieldRule(paths.path_or_intrinsic, "JSONPath"),
            "CausePath": FieldRule(paths.path_or_intrinsic, "JSONPath"),
        },
        at_most_one=(_pair("Error"), _pair("Cause")),
    ),
    "Choice": ObjectShape(
        {
            **_COMMON,
            **_PLAIN,
            "Choices": FieldRule(values.list_of(check_rule)),
            "Default": _TEXT,
        },
        required=("Choices",),
    ),
    "Parallel": _PARALLEL,
    "Map": _MAP,
}


def check_state(scope: RuleScope, state: Any, location: str) -> None:
    """Check one state. `scope.language` is the language that applies around it."""
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
        extensions.check_poll(inside, state, location)
    if shape is _PARALLEL or shape is _MAP:
        extensions.check_lanes(inside, state, location)
    return None


def _shape_of(scope: RuleScope, state: Mapping[str, Any], location: str) -> ObjectShape | None:
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


def _of_any_language(fields: Mapping[str, FieldRule]) -> dict[str, FieldRule]:
    """Return the fields without a language. If a state has a language that is not allowed, its
    fields get no reports about their language.
    """
    return {name: replace(field, language=None) for name, field in fields.items()}


# -- machines --------------------------------------------------------------------------------------


def _states(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    if not value:
        scope.refuse(location, "Value cannot be empty")
    for name, state in value.items():
        check_state(scope, state, f"{location}/{name}")
    return None


# The required fields have the order in which AWS's messages name them.
_LEVEL_FIELDS: Final[Mapping[str, FieldRule]] = {
    "States": FieldRule(_states),
    "StartAt": _TEXT,
    "Comment": _TEXT,
}
_REQUIRED: Final = ("States", "StartAt")
_BRANCH: Final = ObjectShape(_LEVEL_FIELDS, required=_REQUIRED)
_PROCESSOR: Final = ObjectShape(
    {**_LEVEL_FIELDS, "ProcessorConfig": FieldRule(values.anything)}, required=_REQUIRED
)
_MACHINE: Final = ObjectShape(
    {
        **_LEVEL_FIELDS,
        "QueryLanguage": FieldRule(values.one_of(*LANGUAGES)),
        "TimeoutSeconds": FieldRule(values.integer(0)),
        "Version": FieldRule(values.one_of("1.0")),
        "Holdfast": FieldRule(extensions.MACHINE.check),
    },
    required=_REQUIRED,
)


def check_machine(scope: RuleScope, machine: Mapping[str, Any]) -> None:
    """Check the whole definition: the fields of the machine before its states."""
    head = {name: item for name, item in machine.items() if name != "States"}
    tail = {name: item for name, item in machine.items() if name == "States"}
    _MACHINE.check_names(scope, machine, "")
    _MACHINE.check_values(scope, head, "")
    _MACHINE.check_values(scope, tail, "")
