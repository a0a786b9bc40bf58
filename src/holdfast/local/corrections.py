"""Corrections of moto's services where a state machine could notice a difference to AWS.

Call `install` once in each process. Where no correction applies, moto answers. Recordings of AWS
show these differences: S3 encrypts every object and names the type of its checksum; DynamoDB
reports consumed capacity only on request; EventBridge refuses a detail that is not an object; SNS
and Lambda have other texts for refusals. AWS's documentation shows more of them: Secrets Manager
answers every refusal with status 400; SNS and SQS number the messages of FIFO topics and queues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import count
from typing import Any, Final

_MALFORMED: Final = {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
_ENTRY_FIELDS: Final = ("Source", "DetailType", "Detail")
#: The operations for which moto reports consumed capacity although the request does not ask for it.
#: AWS would not, so the report is removed.
_CAPACITY_UNASKED: Final = (
    "batch_get_item",
    "batch_write_item",
    "transact_write_items",
    "update_item",
)
_METERS: Final = {
    "ConsumedCapacity": "ReturnConsumedCapacity",
    "ItemCollectionMetrics": "ReturnItemCollectionMetrics",
}
#: The most characters of the subject of a notification (AWS docs, Publish).
_SUBJECT_MAX: Final = 100
_sequence: Final = count(10**19)
_installed: Final[list[bool]] = []


def install() -> None:
    if _installed:
        return
    # Imported here because the clock must be replaced before these modules copy it.
    from moto.awslambda.models import LambdaBackend  # noqa: PLC0415
    from moto.dynamodb.responses import DynamoHandler  # noqa: PLC0415
    from moto.events.models import EventsBackend  # noqa: PLC0415
    from moto.s3.models import FakeKey  # noqa: PLC0415
    from moto.s3.responses import S3Response  # noqa: PLC0415
    from moto.secretsmanager.exceptions import SecretsManagerClientError  # noqa: PLC0415
    from moto.sns.models import SNSBackend, Subscription  # noqa: PLC0415
    from moto.sns.responses import SNSResponse  # noqa: PLC0415
    from moto.sqs.models import SQSBackend  # noqa: PLC0415
    from moto.sqs.responses import SQSResponse  # noqa: PLC0415

    _installed.append(True)
    FakeKey.response_dict = property(_encrypted(FakeKey.response_dict.fget))
    _replace(FakeKey, "__init__", _checked_as_a_whole)
    _replace(S3Response, "_get_checksum", _with_checksum_type)
    for name in _CAPACITY_UNASKED:
        _replace(DynamoHandler, name, _without_capacity)
    _replace(DynamoHandler, "get_item", _comparing_key_types)
    _replace(EventsBackend, "put_events", _answering_each_event)
    _replace(SecretsManagerClientError, "__init__", _with_status_400)
    _replace(SNSBackend, "publish", _worded_as_sns)
    _replace(SNSResponse, "_parse_message_attributes", _refusing_attributes)
    _replace(SNSResponse, "publish", _numbered_by_topic)
    _replace(SQSBackend, "send_message", _numbered_by_queue)
    _replace(SQSResponse, "send_message", _refusing_empty_attributes)
    _replace(Subscription, "get_post_data", _signed_by_default)
    _replace(LambdaBackend, "invoke", _with_version)


def _replace(owner: Any, name: str, correct: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, wraps(original)(correct(original)))


def _encrypted(original: Any) -> Any:
    def response_dict(self: Any) -> dict[str, Any]:
        return {"x-amz-server-side-encryption": "AES256", **original(self)}

    return response_dict


def _checked_as_a_whole(original: Any) -> Any:
    def initialise(self: Any, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        self.checksum_type = self.checksum_type or "FULL_OBJECT"

    return initialise


def _with_checksum_type(original: Any) -> Any:
    def get_checksum(self: Any, response_headers: dict[str, Any]) -> Any:
        algorithm, value = original(self, response_headers)
        if value is not None:
            response_headers["x-amz-checksum-type"] = "FULL_OBJECT"
        return algorithm, value

    return get_checksum


def _without_capacity(original: Any) -> Any:
    def operate(self: Any) -> Any:
        answer = original(self)
        for told, asked in _METERS.items():
            if self.body.get(asked, "NONE") == "NONE":
                answer.result.pop(told, None)
        return answer

    return operate


def _comparing_key_types(original: Any) -> Any:
    """Refuse a key of another type. moto compares the names of its attributes only."""
    from moto.dynamodb.exceptions import ProvidedKeyDoesNotExist  # noqa: PLC0415

    def get_item(self: Any) -> Any:
        table = self.dynamodb_backend.get_table(self.body["TableName"])
        types = {one["AttributeName"]: one["AttributeType"] for one in table.attr}
        for name, value in self.body["Key"].items():
            if types.get(name) not in value:
                raise ProvidedKeyDoesNotExist
        return original(self)

    return get_item


def _answering_each_event(original: Any) -> Any:
    """Answer the events that moto treats otherwise: AWS refuses a detail that is not an object, and
    accepts an event for a bus that does not exist (measured on AWS, github.com/floci-io/floci,
    docs/services/step-functions.md).
    """
    from moto.moto_api._internal import mock_random  # noqa: PLC0415

    def put_events(self: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        def answer(event: dict[str, Any]) -> dict[str, Any] | None:
            if _is_malformed(event):
                return dict(_MALFORMED)
            bus = self._normalize_event_bus_arn(event.get("EventBusName"))
            is_lost = _is_whole(event) and bus not in self.event_buses
            return {"EventId": str(mock_random.uuid4())} if is_lost else None

        own = [answer(event) for event in events]
        rest = [event for event, found in zip(events, own, strict=True) if found is None]
        answers = iter(original(self, rest))
        return [found or next(answers) for found in own]

    return put_events


def _is_whole(event: dict[str, Any]) -> bool:
    """Return True when each required field is there. moto reports the one that is missing."""
    return all(event.get(field) for field in _ENTRY_FIELDS)


def _is_malformed(event: dict[str, Any]) -> bool:
    if not _is_whole(event):
        return False
    try:
        return not isinstance(json.loads(event["Detail"]), dict)
    except ValueError:
        return True


def _with_status_400(original: Any) -> Any:
    def initialise(self: Any, *given: Any, **named: Any) -> None:
        self.code = 400
        original(self, *given, **named)

    return initialise


def _worded_as_sns(original: Any) -> Any:
    from moto.sns import exceptions  # noqa: PLC0415

    def publish(self: Any, message: str, **asked: Any) -> Any:
        target = asked.get("arn")
        problem = _publish_problem(message, self.topics.get(target), asked)
        if problem is not None:
            raise exceptions.SNSInvalidParameter(f"Invalid parameter: {problem}")
        try:
            return original(self, message, **asked)
        except exceptions.SNSNotFoundError as error:
            if ":endpoint/" in (target or ""):
                raise
            raise exceptions.TopicNotFound from error

    return publish


def _publish_problem(message: str, topic: Any, asked: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a message, in the words of SNS."""
    target = asked.get("arn")
    is_fifo = topic is not None and topic.fifo_topic
    if target is None and asked.get("phone_number") is None:
        return "TopicArn or TargetArn Reason: no value for required parameter"
    if target is not None and not target.startswith("arn:"):
        return "TopicArn"
    if not message:
        return "Empty message"
    if len(asked.get("subject") or "") > _SUBJECT_MAX:
        return "Subject"
    structure = _structure_problem(message) if asked.get("message_structure") == "json" else None
    if structure is not None:
        return structure
    if is_fifo and not asked.get("group_id"):
        return "The MessageGroupId parameter is required for FIFO topics"
    if is_fifo and not (asked.get("deduplication_id") or topic.content_based_deduplication):
        return (
            "The topic should either have ContentBasedDeduplication enabled or "
            "MessageDeduplicationId provided explicitly"
        )
    return None


def _structure_problem(message: str) -> str | None:
    """Return what is wrong with a message that has a text for each protocol."""
    try:
        texts = json.loads(message)
    except ValueError:
        return "Message Structure - JSON message body failed to parse"
    if not isinstance(texts, dict) or "default" not in texts:
        return "Message Structure - No default entry in JSON message body"
    return None


def _refusing_attributes(original: Any) -> Any:
    from moto.sns.exceptions import InvalidParameterValue, SNSException  # noqa: PLC0415

    class ParameterValueInvalid(SNSException):  # type: ignore[misc]  # moto ships no types
        """The refusal of an attribute, with the code of AWS's model."""

        code = "ParameterValueInvalid"

    def parse(self: Any) -> Any:
        for name, attribute in (self._get_param("MessageAttributes", {}) or {}).items():
            problem = _attribute_problem(name, attribute)
            if problem is not None:
                raise ParameterValueInvalid(problem)
        try:
            return original(self)
        except InvalidParameterValue as error:
            raise ParameterValueInvalid(error.message) from None

    return parse


def _attribute_problem(name: str, attribute: Mapping[str, Any]) -> str | None:
    """Return what is wrong with an attribute of a notification, where moto has other words."""
    kind, text = attribute.get("DataType"), attribute.get("StringValue")
    if kind and text == "":
        return (
            f"The message attribute '{name}' must contain non-empty message attribute value "
            f"for message attribute type '{kind}'."
        )
    if kind == "Number" and text is not None and not _is_number(text):
        return f"Could not cast message attribute '{name}' value to number."
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbered_by_topic(original: Any) -> Any:
    """Add the SequenceNumber of a message for a FIFO topic (AWS docs, Publish)."""

    def publish(self: Any) -> Any:
        answer = original(self)
        target = self._get_param("TargetArn") or self._get_param("TopicArn")
        topic = self.backend.topics.get(target)
        if topic is not None and topic.fifo_topic:
            answer.result["SequenceNumber"] = _sequence_number()
        return answer

    return publish


def _numbered_by_queue(original: Any) -> Any:
    """Number the messages of a FIFO queue. moto numbers those with an explicit deduplication id."""

    def send_message(self: Any, queue_name: str, *rest: Any, **named: Any) -> Any:
        message = original(self, queue_name, *rest, **named)
        if self.get_queue(queue_name).fifo_queue:
            message.sequence_number = message.sequence_number or _sequence_number()
        return message

    return send_message


def _sequence_number() -> str:
    """Return a greater number of 20 digits each time."""
    return f"{next(_sequence):020}"


def _refusing_empty_attributes(original: Any) -> Any:
    from moto.sqs.exceptions import InvalidParameterValue  # noqa: PLC0415

    def send_message(self: Any) -> Any:
        for name, attribute in (self._get_param("MessageAttributes", {}) or {}).items():
            kind = attribute.get("DataType")
            if kind and not (attribute.get("StringValue") or attribute.get("BinaryValue")):
                raise InvalidParameterValue(
                    f"Message (user) attribute '{name}' must contain a non-empty value of type "
                    f"'{kind}'."
                )
        return original(self)

    return send_message


def _signed_by_default(original: Any) -> Any:
    def get_post_data(*given: Any, **named: Any) -> dict[str, Any]:
        return {**original(*given, **named), "SignatureVersion": "1"}

    return get_post_data


def _with_version(original: Any) -> Any:
    from moto.awslambda.exceptions import UnknownFunctionException  # noqa: PLC0415

    def invoke(
        self: Any, function_name: str, qualifier: str | None, *rest: Any, **more: Any
    ) -> Any:
        try:
            return original(self, function_name, qualifier, *rest, **more)
        except UnknownFunctionException:
            functions = self._lambdas  # a private attribute of moto
            version = qualifier or "$LATEST"
            raise functions.construct_unknown_function_exception(function_name, version) from None

    return invoke
