"""The work queues and their dead letters: sending in tens, visibility, receiving."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast import limits
from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.aws.names import Names
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Message, QueueName, Send


@dataclass(frozen=True, slots=True)
class DeadLetter:
    message_id: str
    receipt_handle: str
    body: dict[str, Any]
    sent_at: int


class Queues:
    def __init__(self, clients: Clients, names: Names) -> None:
        self._clients = clients
        self._names = names

    def send(self, effect: Send) -> None:
        url = self._names.queue_url(effect.queue)
        for batch in _tens(effect.messages):
            entries = [_entry(number, message) for number, message in enumerate(batch)]
            # SQS may take some entries of a batch and not others; those are asked for once more.
            failed = self._send_batch(url, entries)
            if failed and self._send_batch(url, [entries[number] for number in failed]):
                raise ServiceFault(
                    "HF322", f"{len(failed)} of {len(entries)} messages were not sent", retry="now"
                )

    def extend_visibility(
        self, queue: QueueName, receipt_handles: Iterable[str], seconds: int
    ) -> None:
        """Every message comes back after `seconds` from now; one that is gone is a fault."""
        failed: list[str] = []
        for batch in _tens(list(receipt_handles)):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for number, handle in enumerate(batch)
            ]
            answer = self._call(
                "change_message_visibility_batch",
                QueueUrl=self._names.queue_url(queue),
                Entries=entries,
            )
            failed += [entry["Code"] for entry in answer.get("Failed", [])]
        if failed:
            raise ServiceFault(
                "HF323",
                f"the visibility of {len(failed)} messages was not changed: {failed[0]}",
                retry="never",
            )

    def receive_dead_letters(self, queue: QueueName, messages_max: int = 10) -> list[DeadLetter]:
        answer = self._call(
            "receive_message",
            QueueUrl=self._names.dead_letter_url(queue),
            MaxNumberOfMessages=min(messages_max, limits.SQS_BATCH_ENTRIES_MAX),
            MessageSystemAttributeNames=["SentTimestamp"],
            WaitTimeSeconds=0,
        )
        return [
            DeadLetter(
                message_id=message["MessageId"],
                receipt_handle=message["ReceiptHandle"],
                body=json.loads(message["Body"]),
                sent_at=int(message["Attributes"]["SentTimestamp"]),
            )
            for message in answer.get("Messages", [])
        ]

    def delete_dead_letter(self, queue: QueueName, receipt_handle: str) -> None:
        self._call(
            "delete_message",
            QueueUrl=self._names.dead_letter_url(queue),
            ReceiptHandle=receipt_handle,
        )

    def _send_batch(self, url: str, entries: list[dict[str, Any]]) -> list[int]:
        """-> the numbers of the entries that SQS did not take."""
        answer = self._call("send_message_batch", QueueUrl=url, Entries=entries)
        return [position_of(entries, entry["Id"]) for entry in answer.get("Failed", [])]

    def _call(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._clients.get("queues"), operation)(**request)
        except Exception as error:
            raise fault(operation, error) from error


def position_of(entries: list[dict[str, Any]], identifier: str) -> int:
    return next(n for n, entry in enumerate(entries) if entry["Id"] == identifier)


def message_text(message: Message) -> str:
    return json.dumps(message.body, separators=(",", ":"), ensure_ascii=False)


def _entry(number: int, message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": str(number),
        "MessageBody": message_text(message),
        # On a standard queue the group is a fairness key: a busy tenant cannot starve the others.
        "MessageGroupId": message.body["t"],
    }
    if message.delay_seconds:
        entry["DelaySeconds"] = message.delay_seconds
    return entry


def _tens(things: Sequence[Any]) -> Iterable[Sequence[Any]]:
    size = limits.SQS_BATCH_ENTRIES_MAX
    return (things[start : start + size] for start in range(0, len(things), size))
