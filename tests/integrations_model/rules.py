"""The rules by which Step Functions turns the parameters of a Task into a request of a service, and
the response into the result of the task.

`expected_request` and `expected_result` are functions of botocore's shapes. They use none of
Holdfast's code. Each rule names the page that documents it.

[sdk]   AWS Step Functions Developer Guide, "Learning to use AWS service SDK integrations"
[java]  AWS SDK for Java 2.x Developer Guide and API reference; Step Functions names the fields,
        services and errors after its classes ([sdk], "API naming conventions")
[types] AWS Step Functions Developer Guide, "Passing parameters to a service API": values are JSON,
        and a field that takes text accepts JSON, which is sent as text
[smithy] Smithy 2.0 specification, "Serialization and protocol traits"
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


def field_name(member: str) -> str:
    """[sdk]: parameters are in Pascal case; [java]: the name of a getter. Each run of capitals at
    the start of a name becomes one word: DBName is getDbName, KMSKeyId is getKmsKeyId.
    """
    run = re.match(r"[A-Z]+", member)
    if run is None:
        return member[0].upper() + member[1:]
    capitals, rest = run.group(), member[run.end() :]
    if rest[:1].islower() and len(capitals) > 1:
        # The last capital begins the next word.
        capitals, rest = capitals[:-1], capitals[-1] + rest
    return capitals.capitalize() + rest


def plain_name(member: str) -> str:
    """AWS Step Functions Developer Guide, "Integrating optimized services": the parameters have the
    names of the service's API, in Pascal case.
    """
    return member[0].upper() + member[1:]


def milliseconds(moment: datetime) -> int:
    """Recorded for `states:startExecution`: optimised integrations write times as numbers."""
    return int(moment.timestamp()) * 1_000


def instant(moment: datetime) -> str:
    """[java]: an Instant, written as DateTimeFormatter.ISO_INSTANT does."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


@dataclass(frozen=True)
class Kind:
    """What differs between the two kinds of integrations. `has_json_text`: any text may be given
    as JSON.
    """

    field: Callable[[str], str]
    time: Callable[[datetime], Any]
    has_json_text: bool


SDK = Kind(field_name, instant, has_json_text=True)
OPTIMISED = Kind(plain_name, milliseconds, has_json_text=False)


# -- requests --------------------------------------------------------------------------------------


def expected_request(shape: Any, arguments: Any, kind: Kind = SDK) -> Any:
    """Return what the service's own protocol serializes."""
    if getattr(shape, "is_document_type", False):
        return arguments  # [smithy]: a document is any JSON value
    match shape.type_name:
        case "structure":
            members = {kind.field(name): name for name in shape.members}
            return {
                members[field]: expected_request(shape.members[members[field]], value, kind)
                for field, value in arguments.items()
                if value is not None  # [java]: a member that is null is not sent
            }
        case "list":
            return [expected_request(shape.member, one, kind) for one in arguments]
        case "map":
            # [java]: keys of maps are data, so they keep their spelling.
            return {key: expected_request(shape.value, one, kind) for key, one in arguments.items()}
        case "timestamp":
            # [sdk]: times are ISO 8601 text.
            return datetime.strptime(arguments, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        case "blob":
            if shape.serialization.get("streaming"):
                # [java]: RequestBody.fromString of the JSON text. Recorded for S3 PutObject, whose
                # ETag is the MD5 of the JSON text.
                return _json(arguments).encode()
            return _text(arguments).encode()
        case "string" if shape.serialization.get("jsonvalue"):
            # [java]: the member is a String that holds JSON; [smithy]: it is sent as JSON once.
            return json.loads(arguments) if isinstance(arguments, str) else arguments
        case "string" | "character":
            return _text(arguments)  # [types]
        case _:
            return arguments


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# -- results ---------------------------------------------------------------------------------------


def expected_result(shape: Any, said: Any, kind: Kind = SDK) -> Any:
    """Return the result of a task. `said` holds the values that the service sent."""
    if getattr(shape, "is_document_type", False):
        return said
    match shape.type_name:
        case "structure":
            # [java]: a map of headers is made from the headers there are, so it is never absent.
            maps: dict[str, Any] = {
                name: {}
                for name, member in shape.members.items()
                if member.serialization.get("location") == "headers"
            }
            return {
                kind.field(name): expected_result(shape.members[name], value, kind)
                for name, value in (maps | said).items()
            }
        case "list":
            return [expected_result(shape.member, one, kind) for one in said]
        case "map":
            return {key: expected_result(shape.value, one, kind) for key, one in said.items()}
        case "timestamp":
            return kind.time(said)
        case "blob":
            try:
                return said.decode()
            except UnicodeDecodeError:
                return base64.b64encode(said).decode()
        case "string" if shape.serialization.get("jsonvalue"):
            return _json(said)
        case _:
            return said


# -- errors ----------------------------------------------------------------------------------------


def exception_name(shape: str) -> str:
    """[sdk]: names of errors always have the suffix Exception; [java]: a class name, in which a run
    of capitals is one word.
    """
    bare = re.sub(r"(Exception|Fault)$", "", shape)
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|[0-9]+", bare)
    return "".join(word.capitalize() for word in words) + "Exception"


def expected_cause(prefix: str, message: str, status: int) -> str:
    """[java]: AwsServiceException.getMessage since 2.30, with the count of attempts. Both ids are
    those that the stub of the HTTP layer sends.
    """
    ids = "Request ID: REQUEST, Extended Request ID: HOST"
    details = f"(Service: {prefix}, Status Code: {status}, {ids})"
    return f"{message} {details} (SDK Attempt Count: 1)"


def expected_call(operation: Any, arguments: Any, token: str, kind: Kind = SDK) -> dict[str, Any]:
    """Return the whole request of an action. `token` is the one that the SDK makes."""
    shape = operation.input_shape
    if shape is None:
        return {}
    request: dict[str, Any] = expected_request(shape, arguments, kind)
    for name in operation.idempotent_members:
        request.setdefault(name, token)  # [java]: the SDK fills an idempotency token
    is_stream = any(shape.members[name].serialization.get("streaming") for name in request)
    if is_stream and "ContentType" in shape.members:
        # [java]: RequestBody.fromString has this content type. Recorded for S3 PutObject.
        request.setdefault("ContentType", "text/plain; charset=UTF-8")
    return request
