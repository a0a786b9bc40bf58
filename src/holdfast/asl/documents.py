"""The places of values in a definition: helpers for both the parser and the validator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

Language: TypeAlias = Literal["JSONPath", "JSONata"]
#: The JSON of one state of a definition.
StateJson: TypeAlias = Mapping[str, Any]

_S3_ACTION: Final = re.compile(r"arn:aws[\w-]*:states:[\w-]*:[\w-]*:(s3:\w+)\Z")


def language_of(holder: Mapping[str, Any], around: Language) -> Language:
    """Return the query language of a machine or state. As on AWS, an unknown language counts as
    JSONata.
    """
    match holder.get("QueryLanguage", around):
        case "JSONPath":
            return "JSONPath"
        case _:
            return "JSONata"


def processor_of(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ItemProcessor of a Map, or the Iterator of older definitions; {} when both are
    absent.
    """
    found = state.get("ItemProcessor", state.get("Iterator"))
    return found if isinstance(found, dict) else {}


def config_of(state: Mapping[str, Any]) -> Mapping[str, Any]:
    config = processor_of(state).get("ProcessorConfig")
    return config if isinstance(config, dict) else {}


def s3_action(resource: str) -> str | None:
    """Return the action: "arn:aws:states:::s3:getObject" gives "s3:getObject"."""
    found = _S3_ACTION.match(resource)
    return found[1] if found is not None else None
