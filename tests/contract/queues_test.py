"""The guarantees of message queues on which the worker depends."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import resources
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import (
    Clock,
    Message,
    QueueName,
    RunTask,
    Send,
    SetVisibility,
    TaskSucceeded,
)
from tests.contract.conftest import START_MS, MotoStack, Stack


def message(number: int, delay_seconds: int = 0) -> Message:
    return Message({"t": "default", "run": f"r{number}", "n": number}, delay_seconds)


def send(stack: Stack, *messages: Message, queue: QueueName = "work") -> None:
    stack.perform(Send(messages, queue))


def numbers(stack: Stack, queue: QueueName = "work") -> list[int]:
    return sorted(delivery.body["n"] for delivery in stack.receive(queue))


def test_a_message_arrives_as_it_was_sent(stack: Stack) -> None:
    body = {"t": "default", "k": "start", "input": {"naïve": ["£", None, 1.5, True, "\u2028"]}}
    send(stack, Message(body))

    (delivery,) = stack.receive("work")
    assert delivery.body == body
    assert delivery.receive_count == 1
    assert delivery.sent_at == START_MS


def test_the_two_queues_are_apart(stack: Stack) -> None:
    send(stack, message(1), queue="single")

    assert numbers(stack, "work") == []
    assert numbers(stack, "single") == [1]


def test_twenty_three_messages_all_arrive_in_batches_of_ten(stack: Stack) -> None:
    send(stack, *(message(n) for n in range(23)))

    batches = [stack.receive("work") for _ in range(4)]
    assert [len(batch) for batch in batches] == [10, 10, 3, 0]
    assert sorted(d.body["n"] for batch in batches for d in batch) == list(range(23))


def test_ten_messages_of_200_kilobytes_all_arrive(stack: Stack) -> None:
    send(stack, *(Message({"t": "default", "n": n, "input": "x" * 200_000}) for n in range(10)))

    assert numbers(stack) == list(range(10))


def test_sending_nothing_is_no_request(stack: Stack) -> None:
    send(stack)

    assert stack.receive("work") == []


def test_a_delayed_message_comes_when_its_delay_is_over(stack: Stack) -> None:
    send(stack, message(1, delay_seconds=900), message(2))
    assert numbers(stack) == [2]

    stack.clock.advance(899_999)
    assert numbers(stack) == []
    stack.clock.advance(1)
    assert numbers(stack) == [1]


def test_a_delay_of_more_than_fifteen_minutes_is_refused(stack: Stack) -> None:
    with pytest.raises(ServiceFault):
        send(stack, message(1, delay_seconds=901))

    stack.clock.advance(1_000_000)
    assert numbers(stack) == []


def test_a_received_message_is_out_of_sight_until_its_visibility_ends(stack: Stack) -> None:
    send(stack, message(1))
    (first,) = stack.receive("work")
    stack.clock.advance(resources.WORK.visibility_seconds * 1_000 - 1)
    assert stack.receive("work") == []

    stack.clock.advance(2)
    (second,) = stack.receive("work")
    assert second.message_id == first.message_id
    assert second.receipt != first.receipt
    assert second.receive_count == 2


def test_a_deleted_message_does_not_come_back(stack: Stack) -> None:
    send(stack, message(1))
    (delivery,) = stack.receive("work")
    stack.delete("work", delivery)

    stack.clock.advance(100_000_000)
    assert stack.receive("work") == []


def test_a_handler_brings_its_message_back_sooner(stack: Stack) -> None:
    send(stack, message(1), message(2))
    first, second = stack.receive("work")
    stack.for_message("work", first)(SetVisibility(30))

    stack.clock.advance(30_001)
    (back,) = stack.receive("work")
    assert back.message_id == first.message_id
    assert back.message_id != second.message_id


def test_visibility_is_extended_from_now(stack: Stack) -> None:
    send(stack, *(message(n) for n in range(12)))
    batch = stack.receive("work") + stack.receive("work")
    stack.clock.advance(60_000)
    stack.extend("work", batch, 120)

    stack.clock.advance(119_999)
    assert stack.receive("work") == []
    stack.clock.advance(2)
    assert len(stack.receive("work") + stack.receive("work")) == 12


def test_the_visibility_of_a_message_that_is_gone_is_a_fault(stack: Stack) -> None:
    send(stack, message(1))
    (delivery,) = stack.receive("work")
    stack.delete("work", delivery)

    with pytest.raises(ServiceFault) as fault:
        stack.for_message("work", delivery)(SetVisibility(30))
    assert fault.value.retry == "never"


def test_the_visibility_of_a_message_that_is_in_sight_again_is_a_fault(stack: Stack) -> None:
    """As SQS documents it; moto allows it."""
    if isinstance(stack, MotoStack):
        return
    send(stack, message(1))
    (delivery,) = stack.receive("work")
    stack.clock.advance(resources.WORK.visibility_seconds * 1_000)

    with pytest.raises(ServiceFault, match="not in flight"):
        stack.for_message("work", delivery)(SetVisibility(30))


def test_a_message_that_was_received_too_often_becomes_a_dead_letter(stack: Stack) -> None:
    send(stack, message(1))
    for expected in range(1, resources.WORK.receives_max + 1):
        (delivery,) = stack.receive("work")
        assert delivery.receive_count == expected
        assert stack.dead_letters("work") == []
        stack.for_message("work", delivery)(SetVisibility(0))
        stack.clock.advance(1)

    assert stack.receive("work") == []
    assert [body["n"] for body in stack.dead_letters("work")] == [1]
    assert stack.dead_letters("work") == []
    assert stack.dead_letters("single") == []


def test_a_message_of_more_than_a_megabyte_is_refused(stack: Stack) -> None:
    body: dict[str, Any] = {"t": "default", "input": "x" * 1_048_577}

    with pytest.raises(ServiceFault) as fault:
        send(stack, Message(body))
    assert fault.value.retry == "never"


def test_the_clock_and_the_tasks_are_those_of_the_host(stack: Stack) -> None:
    stack.clock.advance(5)
    assert stack.perform(Clock()) == START_MS + 5

    task = RunTask("pack", "task", {"n": 1}, "default", "r", None, "order", 0, 1, 0)
    assert stack.perform(task) == TaskSucceeded({"n": 1})
