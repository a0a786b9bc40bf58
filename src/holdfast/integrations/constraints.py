"""Finds requests that a service or its client in the Java SDK would refuse, with the same messages.

Checking here saves the call, and the emulators for local stacks do not check. Source: recordings;
the texts are common to these services.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.integrations.problems import Refusal

VALIDATION: Final = "ValidationException"
#: The codes of services whose model has an error for wrong parameters. Source: AWS docs, API
#: references of these services.
_CODES: Final = {"cognito-idp": "InvalidParameterException", "logs": "InvalidParameterException"}
#: Patterns that a service checks although its model does not have them, by botocore's name of the
#: service and the name of the member.
_PATTERNS: Final = {("dynamodb", "TableName"): "[a-zA-Z0-9_.-]+"}
#: The names of secrets. Source: AWS docs, API reference of Secrets Manager, CreateSecret.
_SECRET_NAME: Final = re.compile(r"[-/_+=.@!a-zA-Z0-9]{1,512}")
_SECRET_NAMES: Final = ("Name", "SecretId")


def find_refusal(service: str, operation: Any, request: Mapping[str, Any]) -> Refusal | None:
    """Return the refusal of a request; None when the request may be valid. `operation` is
    botocore's model of it.
    """
    if operation.service_model.metadata.get("protocol") != "json" or operation.input_shape is None:
        return None
    if service == "sqs":
        return _find_unnamed(operation.input_shape, request)
    if service == "secretsmanager" and (refusal := _find_secret(request)):
        return refusal
    problems = list(_problems(service, operation.input_shape, request))
    if not problems:
        return None
    count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected"
    code = _CODES.get(service, VALIDATION)
    return Refusal(code, f"{count}: {'; '.join(problems)}", 400, "null")


def find_unsent(operation: Any, request: Mapping[str, Any]) -> str | None:
    """Return the problem that keeps the Java SDK from sending the request: a part of the path has
    no value. None: it can be sent.
    """
    shape = operation.input_shape
    for name, member in shape.members.items() if shape is not None else ():
        if member.serialization.get("location") == "uri" and name not in request:
            parameter = member.serialization.get("name", name)
            return f"Unable to marshall request to JSON: Parameter '{parameter}' must not be null"
    return None


def _find_secret(request: Mapping[str, Any]) -> Refusal | None:
    """Return the refusal of a name that no secret can have."""
    for member in _SECRET_NAMES:
        name = request.get(member)
        if not name or name.startswith("arn:") or _SECRET_NAME.fullmatch(name):
            continue
        words = (
            "Invalid name. Must be a valid name containing alphanumeric characters, "
            "or any of the following: -/_+=.@!"
        )
        return Refusal(VALIDATION, words, 400, "null")
    return None


def _find_unnamed(shape: Any, request: Mapping[str, Any]) -> Refusal | None:
    """Return the refusal of a request with an empty text. SQS treats an empty text as an absent
    one.
    """
    for member in shape.required_members:
        if request.get(member) in (None, ""):
            words = f"The request must contain the parameter {member}."
            return Refusal("MissingParameter", words, 400, "null")
    return None


def _problems(service: str, shape: Any, request: Mapping[str, Any]) -> Iterator[str]:
    for member in shape.required_members:
        if member not in request:
            yield _problem("null", member, "Member must not be null")
    for member, value in request.items():
        least = shape.members[member].metadata.get("min", 0)
        if value in ("", []) and least:
            words = f"Member must have length greater than or equal to {least}"
            yield _problem("'[]'" if value == [] else "''", member, words)
        pattern = _PATTERNS.get((service, member))
        if pattern is None or value.startswith("arn:"):
            continue
        if re.fullmatch(pattern, value) is None:
            words = f"Member must satisfy regular expression pattern: {pattern}"
            yield _problem(f"'{value}'", member, words)


def _problem(value: str, member: str, constraint: str) -> str:
    place = member[:1].lower() + member[1:]
    return f"Value {value} at '{place}' failed to satisfy constraint: {constraint}"
