"""Random calls after botocore's shapes: arguments as a definition has them, and the values of a
response. Everything comes from one generator, so a seed names the sample.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.integrations_model.rules import SDK, Kind

DEPTH_MAX = 4
MEMBERS_MAX = 6
#: Members that the transport of a protocol uses by itself; a made-up value would break the call.
_RESERVED = frozenset(
    {"ChecksumMode", "ChecksumAlgorithm", "ContentMD5", "ContentLength", "SourceRegion"}
)

#: Members that botocore changes by itself, with a text of the form that their service documents.
#: They are always sampled.
_DOCUMENTED = {
    "CopySource": "bucket/a%20b",
    "Document": "%7B%22a%22%3A1%7D",
    "Output": "aGVsbG8=",
    "PolicyDocument": "%7B%22a%22%3A1%7D",
    "SSECustomerKey": "bm90aGluZw==",
    "QueueARN": "arn:aws:kinesis:eu-west-1:123456789012:queue/name",
    "TemplateBody": '{"a":1}',
    "UserData": "IyEvYmluL3No",
}


class Sampler:
    def __init__(self, seed: str, service: str, kind: Kind = SDK) -> None:
        self._kind = kind
        self._random = random.Random(seed)
        # botocore reads the service's endpoint from some ARNs.
        self._arn = f"arn:aws:{service}:eu-west-1:123456789012:stream/name"

    # -- requests ----------------------------------------------------------------------------------

    def arguments(self, shape: Any) -> dict[str, Any]:
        """Return the Parameters of a Task, with the names of Step Functions."""
        made: dict[str, Any] = self._value_in(shape, 0, is_plain=False)
        return made

    def _value_in(self, shape: Any, depth: int, *, is_plain: bool) -> Any:
        if getattr(shape, "is_document_type", False):
            return {"any": [1, "x", None]}
        match shape.type_name:
            case "structure":
                return {
                    self._kind.field(name): self._member_in(name, member, depth + 1)
                    for name, member in self._members(shape, depth)
                }
            case "list":
                count = self._random.randint(1, 2)
                plain = is_plain or _is_plain(shape, "")
                return [
                    self._value_in(shape.member, depth + 1, is_plain=plain) for _ in range(count)
                ]
            case "map":
                key = self._random.choice(["key", "Key_Name", "aB"])
                return {key: self._value_in(shape.value, depth + 1, is_plain=is_plain)}
            case "blob":
                return self._random.choice(["text", "caf\u00e9", {"a": [1]}, ["x"], 0, ""])
            case "timestamp":
                return f"{self._moment():%Y-%m-%dT%H:%M:%SZ}"
            case "string" | "character":
                return self._text_in(shape, is_plain=is_plain)
            case _:
                return self._scalar(shape)

    def _member_in(self, name: str, member: Any, depth: int) -> Any:
        if name in _DOCUMENTED and member.type_name == "string":
            return _DOCUMENTED[name]
        return self._value_in(member, depth, is_plain=_is_plain(member, name))

    def _text_in(self, shape: Any, *, is_plain: bool) -> Any:
        if shape.serialization.get("jsonvalue"):
            return self._random.choice(['{"a":1}', {"a": [1, "b"]}, "[]"])
        if shape.enum:
            return self._random.choice(shape.enum)
        if shape.name.lower().endswith("arn"):
            return self._arn
        if is_plain:
            return "x" * self._random.randint(1, 4)
        texts: list[Any] = ["text", "caf\u00e9 \u2713", "a<b&c"]
        if self._kind.has_json_text:
            texts += [{"n": 1}, [1, "x"], 7]
        return self._random.choice(texts)

    # -- responses ---------------------------------------------------------------------------------

    def response(self, shape: Any) -> dict[str, Any]:
        """Return the members of a response, as Python has them and under botocore's names."""
        made: dict[str, Any] = self._value_out(shape, 0, is_plain=False)
        for name, member in shape.members.items():
            if member.serialization.get("location") == "statusCode":
                made[name] = 200
        return made

    def _value_out(self, shape: Any, depth: int, *, is_plain: bool) -> Any:
        if getattr(shape, "is_document_type", False):
            return {"any": [1, "x"]}
        match shape.type_name:
            case "structure":
                return {
                    name: self._member_out(name, member, depth + 1)
                    for name, member in self._members(shape, depth)
                }
            case "list":
                count = self._random.randint(1, 2)
                plain = is_plain or _is_plain(shape, "")
                return [
                    self._value_out(shape.member, depth + 1, is_plain=plain) for _ in range(count)
                ]
            case "map":
                key = self._random.choice(["key", "key_name", "ab"])
                return {key: self._value_out(shape.value, depth + 1, is_plain=is_plain)}
            case "blob":
                return self._random.choice([b"text", "caf\u00e9".encode(), b"\xff\x00"])
            case "timestamp":
                return self._moment()
            case "string" | "character":
                if shape.serialization.get("jsonvalue"):
                    return {"a": [1, "b"]}
                if shape.enum:
                    return self._random.choice(shape.enum)
                return "plain" if is_plain else self._random.choice(["text", "caf\u00e9", "a<b&c"])
            case _:
                return self._scalar(shape)

    def _member_out(self, name: str, member: Any, depth: int) -> Any:
        if name in _DOCUMENTED and member.type_name == "string":
            return _DOCUMENTED[name]
        return self._value_out(member, depth, is_plain=_is_plain(member, name))

    # -- parts -------------------------------------------------------------------------------------

    def _members(self, shape: Any, depth: int) -> list[tuple[str, Any]]:
        """Return some members: all that the request cannot do without, and a few others."""
        if getattr(shape, "is_tagged_union", False):
            return [self._random.choice(_usable(shape))]
        needed = set(shape.required_members)
        needed |= {
            name
            for name, member in shape.members.items()
            if member.serialization.get("location") == "uri"
            or _is_payload(shape, name)
            or name in _DOCUMENTED
        }
        others = [pair for pair in _usable(shape) if pair[0] not in needed]
        count = min(len(others), MEMBERS_MAX if depth < DEPTH_MAX else 0)
        chosen = dict(self._random.sample(others, self._random.randint(0, count)))
        return [
            (name, member)
            for name, member in shape.members.items()
            if (name in needed or name in chosen) and (depth < DEPTH_MAX * 2)
        ]

    def _scalar(self, shape: Any) -> Any:
        if shape.type_name == "boolean":
            return self._random.choice([True, False])
        if shape.type_name in ("integer", "long"):
            return self._random.randint(1, 9)
        return self._random.choice([0.5, 2.25, 100.125])

    def _moment(self) -> datetime:
        return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=self._random.randint(0, 99_999))


def _usable(shape: Any) -> list[tuple[str, Any]]:
    return [
        (name, member)
        for name, member in shape.members.items()
        if name not in _RESERVED and not getattr(member, "is_document_type", False)
    ]


def _is_payload(shape: Any, name: str) -> bool:
    return bool(shape.serialization.get("payload") == name)


def _is_plain(member: Any, name: str) -> bool:
    """Return True for text of few characters: it is outside the body, or has a pattern."""
    traits = member.serialization
    is_outside = traits.get("location") is not None or bool(traits.get("hostLabel"))
    return is_outside or name == "TableName" or "pattern" in member.metadata
