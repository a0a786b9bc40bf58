"""Converts parameters to requests and responses to results, by botocore's model of the action.

Values are those of JSON; the rest depends on the integration (`Style`).

* A text parameter may be given as JSON and is then written as text (as recordings show for `Input`
  of `sfn:startExecution`), but not in every integration.
* The body of a streaming request is the JSON text of its value, as recordings show for `Body` of
  `s3:putObject`: a text is written with its quotation marks. Other bytes are the text itself.
* A member with botocore's trait "jsonvalue" is a text in the Java SDK, and a value in botocore.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from holdfast.integrations.problems import Unusable
from holdfast.service_names import member_of, unsupported_field

if TYPE_CHECKING:
    from botocore.model import Shape


@dataclass(frozen=True, slots=True)
class Style:
    """How an integration writes the members of a model.

    `field` maps the name of a member to that in the definition. `date` writes a time in a result.
    `json_fields` are the text fields that accept any JSON value; None: all of them do.
    """

    field: Callable[[str], str]
    date: Callable[[datetime], Any]
    json_fields: frozenset[str] | None = None


_NUMBERS: Final = frozenset({"integer", "long", "float", "double", "bigdecimal"})
_WHOLE: Final = frozenset({"integer", "long"})
#: At most this much of a stream is read. That is enough to find out that it is too large for a
#: state.
STREAM_BYTES_MAX: Final = 1_048_576
TEXT_CONTENT_TYPE: Final = "text/plain; charset=UTF-8"


def to_text(value: Any) -> str:
    """Return a text unchanged, and any other value as compact JSON."""
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# -- requests --------------------------------------------------------------------------------------


def request_of(
    shape: Shape | None, arguments: Mapping[str, Any] | None, style: Style
) -> dict[str, Any]:
    """Return botocore's request. Raises Unusable. A field that is null counts as absent."""
    if arguments is None or shape is None:
        return {}
    return _structure_in(shape, arguments, style)


def with_content_type(operation: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with a content type for a stream that is sent as text, unless the
    definition has one (as recordings show).
    """
    members = operation.input_shape.members if operation.input_shape is not None else {}
    streams = (name for name in request if members[name].serialization.get("streaming"))
    if "ContentType" not in members or next(streams, None) is None:
        return request
    return {"ContentType": TEXT_CONTENT_TYPE, **request}


def _structure_in(shape: Any, value: Mapping[str, Any], style: Style) -> dict[str, Any]:
    request = {}
    for field, content in value.items():
        name = member_of(shape.members, field, style.field)
        if name is None:
            # In these quotation marks: github.com/aws/amazon-sagemaker-examples/issues/4492.
            raise Unusable(unsupported_field(field))
        if content is not None:
            request[name] = _value_in(shape.members[name], content, style, field)
    return request


def _value_in(shape: Any, value: Any, style: Style, field: str) -> Any:
    kind = shape.type_name
    if getattr(shape, "is_document_type", False):
        return value
    match kind:
        case "structure":
            return _structure_in(shape, _require(value, Mapping, "an OBJECT", field), style)
        case "map":
            items = _require(value, Mapping, "an OBJECT", field).items()
            return {key: _value_in(shape.value, part, style, key) for key, part in items}
        case "list":
            parts = _require(value, list, "an ARRAY", field)
            return [_value_in(shape.member, part, style, field) for part in parts]
        case "blob":
            is_stream = shape.serialization.get("streaming")
            return (_json_text(value) if is_stream else to_text(value)).encode()
        case "boolean":
            return _truth(value, field)
        case _ if kind in _NUMBERS:
            return _number(value, field, is_whole=kind in _WHOLE)
        case "timestamp":
            return _time(value, field)
        case _ if shape.serialization.get("jsonvalue"):
            return _json_value(value, field)
        case _:
            return _text_in(value, style, field)


def _json_value(value: Any, field: str) -> Any:
    """Return the value of a member that botocore writes as JSON itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise Unusable(f"The value for the field '{field}' must be a valid JSON text") from None


def _time(value: Any, field: str) -> datetime:
    """Return the time of a text in ISO 8601 or of a number of seconds since 1970."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return datetime.fromtimestamp(value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise Unusable(f"The value for the field '{field}' must be an ISO 8601 time") from None


def _text_in(value: Any, style: Style, field: str) -> str:
    if style.json_fields is None or field in style.json_fields:
        return to_text(value)
    return require_text(value, field)


def require_text(value: Any, field: str) -> str:
    """Return the text. Raises Unusable for any other value."""
    if not isinstance(value, str):
        raise Unusable(f"The value for the field '{field}' must be a STRING")
    return value


def _require(value: Any, kind: type[Any], what: str, field: str) -> Any:
    if not isinstance(value, kind):
        raise Unusable(f"The value for the field '{field}' must be {what}")
    return value


def _truth(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise Unusable(f"The value for the field '{field}' must be a BOOLEAN")


def _number(value: Any, field: str, *, is_whole: bool) -> float:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unusable(f"The value for the field '{field}' must be a NUMBER")
    return int(value) if is_whole else value


# -- responses -------------------------------------------------------------------------------------


def result_of(shape: Shape | None, response: Mapping[str, Any], style: Style) -> Any:
    """Return the result without metadata, with fields in alphabetical order as AWS writes them."""
    if shape is None:
        return {}
    return _structure_out(shape, response, style)


def _structure_out(shape: Any, value: Mapping[str, Any], style: Style) -> dict[str, Any]:
    named = {
        style.field(name): _value_out(member, value[name], style)
        for name, member in shape.members.items()
        if value.get(name) is not None
    }
    return dict(sorted(named.items()))


def _value_out(shape: Any, value: Any, style: Style) -> Any:
    if getattr(shape, "is_document_type", False):
        return value
    match shape.type_name:
        case "structure":
            return _structure_out(shape, value, style)
        case "map":
            return {key: _value_out(shape.value, part, style) for key, part in value.items()}
        case "list":
            return [_value_out(shape.member, part, style) for part in value]
        case "blob":
            return blob_text(value)
        case "timestamp":
            return style.date(_moment(value))
        case _ if shape.serialization.get("jsonvalue"):
            return to_text(value)
        case _:
            return value


def blob_text(value: Any) -> str:
    """Return bytes or a stream as text; content that is no text as base 64."""
    data = value.read(STREAM_BYTES_MAX) if hasattr(value, "read") else value
    if isinstance(data, str):
        return data
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return base64.b64encode(bytes(data)).decode()


def _moment(value: Any) -> datetime:
    """Return the time. Holdfast's own API returns seconds since 1970, as they are sent."""
    return value if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)


def iso(moment: datetime) -> str:
    """Return the time as Java writes an Instant: the fraction in groups of three digits, or without
    one.
    """
    moment = moment.astimezone(UTC)
    spec = "auto" if moment.microsecond == 0 else "milliseconds"
    if moment.microsecond % 1_000:
        spec = "microseconds"
    return moment.isoformat(timespec=spec).replace("+00:00", "Z")


def epoch_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
