"""A synthesised template, read as data."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The topic that synth.py chooses for the alarms of its second stack.
TOPIC_ARN = "arn:aws:sns:eu-west-1:111122223333:on-call"
#: The sizes in the "Chosen" stack that replace the defaults.
SIZES = {"worker": {"memory_mb": 1_024}, "api": {"timeout_seconds": 10}}
# The rights that it gives the tasks of state machines.
TASK_POLICY_ARNS = (
    "arn:aws:iam::111122223333:policy/orders/call-warehouse",
    "arn:aws:iam::aws:policy/AmazonSQSFullAccess",
)
# A layer of the user's.
LAYER_ARN = "arn:aws:lambda:eu-west-1:111122223333:layer:tools:1"

_HASH = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True)
class Template:
    path: Path
    document: dict[str, Any]

    @staticmethod
    def load(path: Path) -> Template:
        return Template(path, json.loads(path.read_text()))

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources by construct name, that is, by logical id without CDK's hash."""
        return {
            construct_name(logical_id): resource
            for logical_id, resource in self.document["Resources"].items()
            if resource["Type"] == kind
        }

    def properties(self, kind: str) -> dict[str, dict[str, Any]]:
        return {name: resource["Properties"] for name, resource in self.of_type(kind).items()}


def construct_name(logical_id: str) -> str:
    return _HASH.sub("", logical_id)


def target_of(value: Any) -> str:
    """Return the construct that an intrinsic refers to, with the text joined to its ARN."""
    match value:
        case {"Ref": str() as logical_id}:
            return construct_name(logical_id)
        case {"Fn::GetAtt": [str() as logical_id, "Arn" | "Id"]}:
            return construct_name(logical_id)
        case {"Fn::Join": ["", [first, str() as rest]]}:
            return target_of(first) + rest
        case _:
            raise AssertionError(f"not a reference to a resource of this stack: {value!r}")


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
