"""Responses and errors as services send them, and an HTTP layer that answers with one.

Source: the Smithy 2.0 specification of the protocols awsJson, restJson1, restXml, awsQuery and
ec2Query. Only what the samples need.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from botocore.awsrequest import AWSResponse

_UNIX = frozenset({"json", "rest-json"})
_BODY_LOCATIONS = frozenset({"header", "headers", "statusCode"})


@dataclass(frozen=True)
class Reply:
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def as_response(self, url: str) -> AWSResponse:
        headers = {"x-amzn-requestid": "REQUEST", "x-amz-request-id": "REQUEST"}
        headers |= {"x-amz-id-2": "HOST", **self.headers}
        return AWSResponse(url, self.status, headers, _Raw(self.body))


class _Raw(io.BytesIO):
    def stream(self, **_options: Any) -> Any:
        yield self.read()


def reply(protocol: str, operation: Any, said: Mapping[str, Any]) -> Reply:
    shape = operation.output_shape
    if protocol in ("query", "ec2"):
        return Reply(_query(operation, said))
    if shape is None:
        return Reply(b"{}" if protocol in _UNIX else b"")
    if protocol == "json":
        return Reply(json.dumps(_json_of(shape, said)).encode())
    headers = dict(_headers(shape, said))
    return Reply(_rest_body(protocol, shape, said), headers)


def error_reply(protocol: str, code: str, message: str) -> Reply:
    if protocol == "json":
        return Reply(json.dumps({"__type": f"a#{code}", "message": message}).encode(), {}, 400)
    if protocol == "rest-json":
        headers = {"x-amzn-errortype": code}
        return Reply(json.dumps({"message": message}).encode(), headers, 400)
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    if protocol == "ec2":
        request = "<RequestID>REQUEST</RequestID>"
        body = f"<Response><Errors>{error}</Errors>{request}</Response>"
    else:
        request = "<RequestId>REQUEST</RequestId>"
        body = f"<ErrorResponse>{error}{request}</ErrorResponse>"
    return Reply(body.encode(), {}, 400)


# -- parts -----------------------------------------------------------------------------------------


def _rest_body(protocol: str, shape: Any, said: Mapping[str, Any]) -> bytes:
    payload = shape.serialization.get("payload")
    if payload is not None:
        member = shape.members[payload]
        if payload not in said:
            return b""
        if member.type_name == "blob":
            return bytes(said[payload])
        if member.type_name == "string":
            return str(said[payload]).encode()
        shape, said = member, said[payload]
        name = member.serialization.get("name", member.name)
    else:
        said = {
            key: value
            for key, value in said.items()
            if shape.members[key].serialization.get("location") not in _BODY_LOCATIONS
        }
        name = shape.name
    if protocol == "rest-json":
        return json.dumps(_json_of(shape, said)).encode()
    return _element(name, shape, said).encode()


def _headers(shape: Any, said: Mapping[str, Any]) -> Any:
    for key, value in said.items():
        member = shape.members[key]
        location = member.serialization.get("location")
        name = member.serialization.get("name", key)
        if location == "headers":
            yield from ((f"{name}{part}", str(one)) for part, one in value.items())
        elif location == "header":
            yield name, _header_text(member, value)


def _header_text(member: Any, value: Any) -> str:
    if member.serialization.get("jsonvalue"):
        return base64.b64encode(json.dumps(value).encode()).decode()
    if member.type_name == "list":
        return ",".join(_header_text(member.member, one) for one in value)
    return _scalar(member, value, "rfc822")


def _json_of(shape: Any, value: Any) -> Any:
    if getattr(shape, "is_document_type", False):
        return value
    match shape.type_name:
        case "structure":
            return {
                _name_of(shape.members[key], key): _json_of(shape.members[key], one)
                for key, one in value.items()
            }
        case "list":
            return [_json_of(shape.member, one) for one in value]
        case "map":
            return {key: _json_of(shape.value, one) for key, one in value.items()}
        case "blob":
            return base64.b64encode(value).decode()
        case "timestamp":
            wanted = shape.serialization.get("timestampFormat", "unixTimestamp")
            return value.timestamp() if wanted == "unixTimestamp" else _time(value, wanted)
        case "string" if shape.serialization.get("jsonvalue"):
            return json.dumps(value, separators=(",", ":"))
        case _:
            return value


def _query(operation: Any, said: Mapping[str, Any]) -> bytes:
    shape = operation.output_shape
    inner = "" if shape is None else _children(shape, said)
    wrapper = None if shape is None else shape.serialization.get("resultWrapper")
    if wrapper is not None:
        inner = f"<{wrapper}>{inner}</{wrapper}>"
    metadata = "<ResponseMetadata><RequestId>REQUEST</RequestId></ResponseMetadata>"
    if operation.service_model.metadata["protocol"] == "ec2":
        metadata = "<requestId>REQUEST</requestId>"
    return f"<{operation.name}Response>{inner}{metadata}</{operation.name}Response>".encode()


def _element(name: str, shape: Any, value: Any) -> str:
    match shape.type_name:
        case "structure":
            return f"<{name}{_attributes(shape, value)}>{_children(shape, value)}</{name}>"
        case "list":
            inner = "".join(_element(_item_name(shape), shape.member, one) for one in value)
            return f"<{name}>{inner}</{name}>"
        case "map":
            inner = "".join(_entry("entry", shape, *pair) for pair in value.items())
            return f"<{name}>{inner}</{name}>"
        case _:
            return f"<{name}>{escape(_scalar(shape, value, 'iso8601'))}</{name}>"


def _children(shape: Any, said: Mapping[str, Any]) -> str:
    parts = []
    for key, value in said.items():
        member = shape.members[key]
        if member.serialization.get("xmlAttribute"):
            continue
        name = _name_of(member, key)
        if not member.serialization.get("flattened"):
            parts.append(_element(name, member, value))
        elif member.type_name == "list":
            item = member.member.serialization.get("name", name)
            parts += [_element(item, member.member, one) for one in value]
        else:
            parts += [_entry(name, member, *pair) for pair in value.items()]
    return "".join(parts)


def _attributes(shape: Any, said: Mapping[str, Any]) -> str:
    found = [
        f" {_name_of(shape.members[key], key)}={quoteattr(str(value))}"
        for key, value in said.items()
        if shape.members[key].serialization.get("xmlAttribute")
    ]
    schema = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"' if found else ""
    return schema + "".join(found)


def _entry(name: str, shape: Any, key: str, value: Any) -> str:
    inner = _element(_name_of(shape.key, "key"), shape.key, key)
    inner += _element(_name_of(shape.value, "value"), shape.value, value)
    return f"<{name}>{inner}</{name}>"


def _item_name(shape: Any) -> str:
    return _name_of(shape.member, "member")


def _name_of(member: Any, key: str) -> str:
    return str(member.serialization.get("name", key))


def _scalar(shape: Any, value: Any, time_format: str) -> str:
    match shape.type_name:
        case "boolean":
            return "true" if value else "false"
        case "timestamp":
            return _time(value, shape.serialization.get("timestampFormat", time_format))
        case "blob":
            return base64.b64encode(value).decode()
        case _:
            return str(value)


def _time(moment: datetime, wanted: str) -> str:
    match wanted:
        case "iso8601":
            return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
        case "rfc822":
            return f"{moment:%a, %d %b %Y %H:%M:%S GMT}"
        case _:
            return str(int(moment.timestamp()))
