"""The fields of a distributed Map, and their allowed combinations."""

from __future__ import annotations

import re
from typing import Any, Final

from holdfast.asl.documents import s3_action
from holdfast.asl.validation import paths, values
from holdfast.asl.validation.report import FieldRule, ObjectShape, RuleScope, expected

LABEL_CHARACTERS_MAX: Final = 40
ITEMS_MAX: Final = 100_000_000  # the greatest MaxItems that AWS accepts

_READERS: Final = ("s3:getObject", "s3:listObjectsV2")
_WRITERS: Final = ("s3:putObject",)
_CSV_FIELDS: Final = ("CSVHeaderLocation", "CSVHeaders", "CSVDelimiter")
_BAD_IN_LABEL: Final = re.compile(r'[\s?*<>{}\[\]:;,\\|^~$#%&`"\x00-\x1f\x7f-\x9f]')

_READER_CONFIG: Final = ObjectShape(
    {
        "InputType": FieldRule(values.one_of("CSV", "JSON", "JSONL", "MANIFEST", "PARQUET")),
        "Transformation": FieldRule(values.one_of("NONE", "LOAD_AND_FLATTEN")),
        "MaxItems": FieldRule(values.integer(0, ITEMS_MAX, jsonata=True)),
        "MaxItemsPath": FieldRule(paths.reference(), "JSONPath"),
        "CSVHeaderLocation": FieldRule(values.one_of("FIRST_ROW", "GIVEN")),
        "CSVHeaders": FieldRule(values.list_of(values.text)),
        "CSVDelimiter": FieldRule(
            values.one_of("COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"),
        ),
        "ItemsPointer": FieldRule(values.text_or_jsonata),
        "ManifestType": FieldRule(values.one_of("ATHENA_DATA", "S3_INVENTORY")),
    },
    at_most_one=(("MaxItems", "MaxItemsPath"),),
)


def _check_reader_config(scope: RuleScope, config: Any, location: str) -> None:
    if not isinstance(config, dict):
        return expected(scope, location, "OBJECT")
    _READER_CONFIG.check(scope, config, location)
    kind, headers = config.get("InputType"), config.get("CSVHeaderLocation")
    if kind == "CSV" and headers is None:
        scope.refuse(location, "The field 'CSVHeaderLocation' is required but was missing")
    if kind in ("JSON", "JSONL", "PARQUET"):
        for name in _CSV_FIELDS:
            if name in config:
                scope.refuse(location, f"Field '{name}' is not supported")
    if headers == "GIVEN" and "CSVHeaders" not in config:
        scope.refuse(location, "These fields are required: [CSVHeaders]")
    return None


def _resource(actions: tuple[str, ...]) -> FieldRule:
    def check(scope: RuleScope, value: Any, location: str) -> None:
        if not isinstance(value, str):
            return expected(scope, location, "STRING")
        if s3_action(value) not in actions:
            scope.refuse(location, "The field 'Resource' does not match any of the allowed values")
        return None

    return FieldRule(check)


ITEM_READER: Final = ObjectShape(
    {
        "Resource": _resource(_READERS),
        "ReaderConfig": FieldRule(_check_reader_config),
        "Parameters": FieldRule(paths.payload, "JSONPath"),
        "Arguments": FieldRule(values.template, "JSONata"),
    },
    required=("Resource",),
)
ITEM_BATCHER: Final = ObjectShape(
    {
        "MaxItemsPerBatch": FieldRule(values.integer(0, None, jsonata=True)),
        "MaxItemsPerBatchPath": FieldRule(paths.reference(), "JSONPath"),
        "MaxInputBytesPerBatch": FieldRule(values.integer(0, None, jsonata=True)),
        "MaxInputBytesPerBatchPath": FieldRule(paths.reference(), "JSONPath"),
        "BatchInput": FieldRule(paths.payload_or_template),
    },
    at_most_one=(
        ("MaxItemsPerBatch", "MaxItemsPerBatchPath"),
        ("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"),
    ),
)
_WRITER_CONFIG: Final = ObjectShape(
    {
        "Transformation": FieldRule(values.one_of("NONE", "COMPACT", "FLATTEN")),
        "OutputType": FieldRule(values.one_of("JSON", "JSONL")),
    }
)
RESULT_WRITER: Final = ObjectShape(
    {
        "Resource": _resource(_WRITERS),
        "WriterConfig": FieldRule(_WRITER_CONFIG.check),
        "Parameters": FieldRule(paths.payload, "JSONPath"),
        "Arguments": FieldRule(values.template, "JSONata"),
    }
)
_PROCESSOR_CONFIG: Final = ObjectShape(
    {
        "Mode": FieldRule(values.one_of("INLINE", "DISTRIBUTED")),
        "ExecutionType": FieldRule(values.one_of("STANDARD", "EXPRESS")),
    }
)


def check_processor_config(scope: RuleScope, config: Any, location: str) -> None:
    if not isinstance(config, dict):
        return expected(scope, location, "OBJECT")
    _PROCESSOR_CONFIG.check(scope, config, location)
    if config.get("Mode") != "DISTRIBUTED":
        if "ExecutionType" in config:
            scope.refuse(location, "Field 'ExecutionType' is not supported")
    elif "ExecutionType" not in config:
        scope.refuse(location, "These fields are required: [ExecutionType]")
    if config.get("Mode") == "DISTRIBUTED" and scope.machine_type == "EXPRESS":
        scope.refuse(
            f"{location}/Mode",
            "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state "
            "machines",
        )
    return None


def check_label(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, str):
        return expected(scope, location, "STRING")
    # The sentences are built as AWS's of a state's name.
    code, begin = "INVALID_LABEL_NAME", f"Invalid Label name: Label '{value}'"
    if len(value) > LABEL_CHARACTERS_MAX:
        limit = f"the {LABEL_CHARACTERS_MAX}-character limit allowed by the service"
        scope.refuse(location, f"{begin} exceeds {limit}", code)
    if not value or _BAD_IN_LABEL.search(value):
        scope.refuse(location, f"{begin} contains invalid characters", code)
    return None
