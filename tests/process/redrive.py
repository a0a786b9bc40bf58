"""Messages of long ago, dead and brought back: nothing may come of them.

Copies of messages that the run once sent are received until SQS gives up on them. Half of the dead
letters is moved back by hand, as an operator does; the sweeper revives the others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from holdfast.runtime.effects import Item
from tests.process import evidence
from tests.process.journal import digest
from tests.process.site import Site

BATCH = 10
SETTLE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Queues:
    sqs: Any
    live: tuple[str, ...]
    dead: tuple[str, ...]

    @classmethod
    def of(cls, site: Site) -> Queues:
        names = site.names
        return cls(
            site.clients.get("queues"),
            (names.work_queue_url, names.single_queue_url),
            (names.work_dlq_url, names.single_dlq_url),
        )

    def depth(self, *urls: str) -> int:
        """Return how many messages they hold: visible, in flight and delayed."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        total = 0
        for url in urls:
            answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)
            total += sum(int(answer["Attributes"][name]) for name in names)
        return total

    def settle(self) -> bool:
        """Waits until they are all empty; returns False when they do not get there in time."""
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            if not self.depth(*self.live, *self.dead):
                return True
            time.sleep(0.5)
        return False


def let_die(queues: Queues, bodies: list[str]) -> int:
    """Put messages into the work queue, which no worker serves; return how many are dead letters
    now.
    """
    work, dead = queues.live[0], queues.dead[0]
    for start in range(0, len(bodies), BATCH):
        entries = [
            {"Id": str(number), "MessageBody": body, "MessageGroupId": "default"}
            for number, body in enumerate(bodies[start : start + BATCH])
        ]
        queues.sqs.send_message_batch(QueueUrl=work, Entries=entries)
    end = time.monotonic() + SETTLE_SECONDS
    # Once more than they may be received: SQS moves a message when it is asked for too often.
    while queues.depth(work) and time.monotonic() < end:
        queues.sqs.receive_message(
            QueueUrl=work, MaxNumberOfMessages=BATCH, VisibilityTimeout=0, WaitTimeSeconds=0
        )
    return queues.depth(dead)


def move_back(queues: Queues, count: int) -> int:
    """Do the work of StartMessageMoveTask: send each message to its source queue, then
    delete it.
    """
    work, dead = queues.live[0], queues.dead[0]
    moved = 0
    while moved < count:
        answer = queues.sqs.receive_message(
            QueueUrl=dead, MaxNumberOfMessages=min(BATCH, count - moved), WaitTimeSeconds=0
        )
        messages = answer.get("Messages", [])
        if not messages:
            break
        for message in messages:
            queues.sqs.send_message(
                QueueUrl=work, MessageBody=message["Body"], MessageGroupId="default"
            )
            queues.sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])
        moved += len(messages)
    return moved


def digests(executions: list[Item]) -> dict[str, str]:
    return {evidence.place(item): digest(item) for item in executions}
