"""The handlers' view of AWS when it answers wrongly or not at all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.parsers import ResponseParserError

from holdfast import resources
from holdfast.aws.clients import Clients
from holdfast.aws.names import ResourceNames
from holdfast.errors import HoldfastBug, ServiceFault
from holdfast.runtime.effects import (
    Begin,
    Doubt,
    Effect,
    Get,
    GetBlob,
    Item,
    Message,
    Put,
    PutIfAbsent,
    QueueName,
    RunTask,
    Send,
    SetVisibility,
)
from tests.contract.scripted import NAMES, Scripted, answered, ports

ITEM: Item = {"pk": "default#r", "sk": 0}
#: No pause is made.
pytestmark = pytest.mark.usefixtures("pauses")


def fault_of(effect: Effect, error: Exception) -> ServiceFault:
    with pytest.raises(ServiceFault) as caught:
        ports(Scripted(*[error] * 4)).perform(effect)
    return caught.value


UNANSWERED = [
    ReadTimeoutError(endpoint_url="https://x"),
    ConnectTimeoutError(endpoint_url="https://x"),
    ConnectionClosedError(endpoint_url="https://x"),
    EndpointConnectionError(endpoint_url="https://x"),
    ResponseStreamingError(error="cut off"),
    ResponseParserError("half an answer"),
    answered(500, "InternalServerError"),
    answered(503, "ServiceUnavailable"),
    answered(400, "RequestTimeout"),
]


@pytest.mark.parametrize("error", UNANSWERED, ids=str)
def test_a_conditional_put_without_an_answer_is_a_doubt(error: Exception) -> None:
    assert type(fault_of(PutIfAbsent("executions", ITEM), error)) is Doubt


@pytest.mark.parametrize("error", UNANSWERED, ids=str)
@pytest.mark.parametrize(
    "effect", [Put("mail", ITEM), Get("mail", "a", "b"), GetBlob("k")], ids=["put", "get", "blob"]
)
def test_anything_else_without_an_answer_may_be_asked_again_at_once(
    effect: Effect, error: Exception
) -> None:
    fault = fault_of(effect, error)
    assert (type(fault), fault.code, fault.retry) == (ServiceFault, "HF322", "now")


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        (answered(400, "ProvisionedThroughputExceededException"), "HF321", "later"),
        (answered(400, "ThrottlingException"), "HF321", "later"),
        (answered(429, "Unheard"), "HF321", "later"),
        (answered(503, "SlowDown"), "HF321", "later"),
        (answered(400, "KMS.ThrottlingException"), "HF321", "later"),
        (answered(400, "ExpiredTokenException"), "HF322", "later"),
        (answered(400, "ValidationException"), "HF323", "never"),
        (answered(400, "AccessDeniedException"), "HF323", "never"),
        (answered(400, "ResourceNotFoundException"), "HF323", "never"),
        (NoCredentialsError(), "HF323", "never"),
    ],
    ids=str,
)
def test_a_put_that_was_answered_leaves_no_doubt(error: Exception, code: str, retry: str) -> None:
    fault = fault_of(PutIfAbsent("executions", ITEM), error)
    assert (type(fault), fault.code, fault.retry) == (ServiceFault, code, retry)


def test_a_throttled_put_is_sent_again_after_pauses_that_grow(pauses: list[float]) -> None:
    throttled = answered(400, "ThrottlingException")
    clients = Scripted(throttled, throttled, {})

    assert ports(clients).perform(PutIfAbsent("executions", ITEM)) is None
    assert pauses == sorted(pauses)
    assert len(pauses) == 2


def test_a_refused_put_gives_the_item_and_only_it_is_sent_without_retries() -> None:
    refusal = answered(400, "ConditionalCheckFailedException", Item={"pk": {"S": "theirs"}})
    clients = Scripted(refusal)

    assert ports(clients).perform(PutIfAbsent("executions", ITEM)) == {"pk": "theirs"}
    assert [name for name, _, _ in clients.asked] == ["store-once"]


def test_the_client_for_conditional_puts_tries_once_and_the_others_more_often() -> None:
    clients = Clients(region="us-east-1")

    assert clients.get("store-once").meta.config.retries["total_max_attempts"] == 1
    assert clients.get("store").meta.config.retries["total_max_attempts"] == 3
    assert clients.get("store") is clients.get("store")
    assert clients.get("store").meta.config.read_timeout == 5


def test_the_message_of_aws_is_cut_short() -> None:
    fault = fault_of(Put("mail", ITEM), answered(400, "ValidationException"))
    assert len(fault.message) < 300


def entry_failed(identifier: str) -> dict[str, Any]:
    return {"Failed": [{"Id": identifier, "Code": "InternalError", "SenderFault": False}]}


def test_messages_that_a_batch_did_not_take_are_sent_once_more() -> None:
    clients = Scripted(entry_failed("1"), {})
    messages = tuple(Message({"t": "default", "n": n}) for n in range(3))
    ports(clients).perform(Send(messages))

    sent = [[e["MessageBody"] for e in request["Entries"]] for _, _, request in clients.asked]
    assert [len(bodies) for bodies in sent] == [3, 1]
    assert sent[1] == ['{"t":"default","n":1}']


def test_visibility_is_changed_in_tens() -> None:
    clients = Scripted({}, {})
    ports(clients).extend_visibility("single", (f"receipt-{n}" for n in range(12)), 120)

    assert [len(request["Entries"]) for _, _, request in clients.asked] == [10, 2]
    assert {request["QueueUrl"] for _, _, request in clients.asked} == {"https://sqs/single"}


def test_a_message_holds_no_character_that_sqs_refuses() -> None:
    """#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF."""
    text = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0xFFFD, 0xFFFE, 0xFFFF, 0x10FFFF]))
    clients = Scripted({})
    ports(clients).perform(Send((Message({"t": "default", "input": text}),)))
    (_, _, request) = clients.asked[0]
    body = request["Entries"][0]["MessageBody"]

    assert json.loads(body)["input"] == text
    assert re.fullmatch("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", body)


def test_messages_that_are_not_taken_twice_are_a_fault() -> None:
    clients = Scripted(entry_failed("0"), entry_failed("0"))
    with pytest.raises(ServiceFault, match="1 of 1 messages were not sent") as fault:
        ports(clients).perform(Send((Message({"t": "default"}),)))
    assert (fault.value.code, fault.value.retry) == ("HF322", "now")


def test_an_effect_of_the_driver_cannot_be_performed() -> None:
    task = RunTask("pack", "task", {}, "default", "r", None, "order", 0, 1, 0)
    for effect in (Begin((0, 1), task), SetVisibility(5)):
        said = f"{type(effect).__name__} cannot be performed here"
        with pytest.raises(HoldfastBug) as caught:
            ports(Scripted()).perform(effect)
        assert caught.value.message == said


def test_names_come_from_the_environment_and_a_missing_one_is_named() -> None:
    environment = NAMES.to_environment()
    assert ResourceNames.from_environment(environment) == NAMES

    every = ResourceNames(*(f"name {number}" for number in range(10)))
    assert ResourceNames.from_environment(every.to_environment()) == every
    queues: tuple[QueueName, ...] = ("work", "single", "starts")
    assert [every.queue_url(queue) for queue in queues] == ["name 3", "name 4", "name 5"]
    assert [every.dead_letter_url(queue) for queue in queues] == ["name 6", "name 7", "name 8"]

    # A worker has no queue of dead letters, and a stack without an archive no bucket for it.
    needed = {variable: name for variable, name in environment.items() if name}
    assert len(needed) == 6
    assert ResourceNames.from_environment(needed) == NAMES

    del environment[resources.ENV_MAIL_TABLE]
    with pytest.raises(ServiceFault) as fault:
        ResourceNames.from_environment(environment)
    assert fault.value.message == f"environment variable {resources.ENV_MAIL_TABLE} is not set"
    assert fault.value.code == "HF325"
