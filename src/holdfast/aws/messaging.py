"""The work queues and their dead letters: sending in batches of ten, visibility, receiving."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from holdfast import limits
from holdfast.aws.clients import Clients
from holdfast.aws.faults import fault
from holdfast.aws.names import ResourceNames
from holdfast.errors import ServiceFault
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime.effects import Message, QueueName, Send

BatchEntry: TypeAlias = dict[str, Any]


def parsed_body(text: Any) -> Any:
    """Return the JSON value; None for other text. Holdfast did not send such text, so the caller
    refuses it.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    message_id: str
    receipt_handle: str
    body: Any


class Queues:
    def __init__(self, clients: Clients, names: ResourceNames) -> None:
        self._clients = clients
        self._names = names

    def send(self, effect: Send) -> None:
        url = self._names.queue_url(effect.queue)
        for batch in _batches(map(_entry, effect.messages)):
            # SQS may accept only some entries of a batch. Send the refused entries once more before
            # the send counts as failed.
            failed = self._send_batch(url, batch)
            if failed and self._send_batch(url, failed):
                raise ServiceFault(
                    "HF322", f"{len(failed)} of {len(batch)} messages were not sent", retry="now"
                )

    def extend_visibility(
        self, queue: QueueName, receipt_handles: Iterable[str], seconds: int
    ) -> None:
        """Hide every message for another `seconds`. Raises a fault when a message does not exist
        any longer.
        """
        failed: list[str] = []
        handles = list(receipt_handles)
        size = limits.SQS_BATCH_ENTRIES_MAX
        for start in range(0, len(handles), size):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
                for number, handle in enumerate(handles[start : start + size])
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

    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]:
        answer = self._call(
            "receive_message",
            QueueUrl=self._names.dead_letter_url(queue),
            MaxNumberOfMessages=limits.SQS_BATCH_ENTRIES_MAX,
            WaitTimeSeconds=0,
        )
        return [
            DeadLetter(
                message_id=message["MessageId"],
                receipt_handle=message["ReceiptHandle"],
                body=parsed_body(message["Body"]),
            )
            for message in answer.get("Messages", [])
        ]

    def delete_dead_letter(self, queue: QueueName, receipt_handle: str) -> None:
        self._call(
            "delete_message",
            QueueUrl=self._names.dead_letter_url(queue),
            ReceiptHandle=receipt_handle,
        )

    def _send_batch(self, url: str, entries: list[BatchEntry]) -> list[BatchEntry]:
        """Send one batch. Return the entries that SQS has refused."""
        answer = self._call("send_message_batch", QueueUrl=url, Entries=entries)
        failed = {entry["Id"] for entry in answer.get("Failed", [])}
        return [entry for entry in entries if entry["Id"] in failed]

    def _call(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._clients.get("queues"), operation)(**request)
        except Exception as error:
            raise fault(operation, error) from error


def _entry(message: Message) -> BatchEntry:
    text = json.dumps(message.body, separators=(",", ":"), ensure_ascii=False)
    entry: BatchEntry = {
        # Write these two characters as escapes. SQS refuses them, although JSON, DynamoDB and S3
        # accept them.
        "MessageBody": text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff"),
        # SQS shares the throughput of a standard queue fairly between message groups. So many
        # messages of one tenant do not delay those of other tenants.
        "MessageGroupId": message.body["t"],
    }
    if message.delay_seconds:
        entry["DelaySeconds"] = message.delay_seconds
    return entry


def _batches(entries: Iterable[BatchEntry]) -> Iterator[list[BatchEntry]]:
    """Yield batches of at most ten entries that do not exceed SQS's size limit."""
    batch: list[BatchEntry] = []
    room_bytes = limits.SQS_MESSAGE_BYTES_MAX
    for entry in entries:
        size_bytes = len(entry["MessageBody"].encode())
        if batch and (len(batch) == limits.SQS_BATCH_ENTRIES_MAX or size_bytes > room_bytes):
            yield batch
            batch, room_bytes = [], limits.SQS_MESSAGE_BYTES_MAX
        batch.append({"Id": str(len(batch)), **entry})
        room_bytes -= size_bytes
    if batch:
        yield batch
