"""Corrections of moto's services where a state machine could notice a difference to AWS.

Call `install` once in each process. What a correction does not change, moto does. Recordings of AWS
show these differences: S3 encrypts every object and names the type of its checksum; DynamoDB
reports consumed capacity only on request; EventBridge refuses a detail that is no object; SNS and
Lambda have other texts for refusals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
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
    from moto.sns.models import SNSBackend, Subscription  # noqa: PLC0415

    _installed.append(True)
    FakeKey.response_dict = property(_encrypted(FakeKey.response_dict.fget))
    _replace(FakeKey, "__init__", _checked_as_a_whole)
    _replace(S3Response, "_get_checksum", _with_checksum_type)
    for name in _CAPACITY_UNASKED:
        _replace(DynamoHandler, name, _without_capacity)
    _replace(EventsBackend, "put_events", _refusing_details)
    _replace(SNSBackend, "publish", _worded_as_sns)
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


def _refusing_details(original: Any) -> Any:
    def put_events(self: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answers = iter(original(self, [event for event in events if not _is_malformed(event)]))
        return [dict(_MALFORMED) if _is_malformed(event) else next(answers) for event in events]

    return put_events


def _is_malformed(event: dict[str, Any]) -> bool:
    if not all(event.get(field) for field in _ENTRY_FIELDS):
        # moto itself reports which of the fields is missing.
        return False
    try:
        return not isinstance(json.loads(event["Detail"]), dict)
    except ValueError:
        return True


def _worded_as_sns(original: Any) -> Any:
    from moto.sns import exceptions  # noqa: PLC0415

    def publish(self: Any, message: str, **asked: Any) -> Any:
        target = asked.get("arn")
        topic = self.topics.get(target)
        if not message:
            raise exceptions.SNSInvalidParameter("Invalid parameter: Empty message")
        if target is not None and not target.startswith("arn:"):
            raise exceptions.SNSInvalidParameter("Invalid parameter: TopicArn")
        if topic is not None and topic.fifo_topic and not asked.get("group_id"):
            raise exceptions.SNSInvalidParameter(
                "Invalid parameter: The MessageGroupId parameter is required for FIFO topics"
            )
        try:
            return original(self, message, **asked)
        except exceptions.SNSNotFoundError as error:
            if ":endpoint/" in (target or ""):
                raise
            raise exceptions.TopicNotFound from error

    return publish


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
