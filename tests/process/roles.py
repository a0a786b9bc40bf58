"""What the processes do: workers and their queues, the sweeper, the callers.

Each is written as if it could not die; that it can is everybody else's business.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, Final

from holdfast.aws.host import Host
from holdfast.aws.telemetry import log_fault
from holdfast.errors import RequestError
from holdfast.limits import SWEEP_SECONDS
from holdfast.runtime.effects import QueueName
from holdfast.runtime.keys import TENANT_DEFAULT
from tests.process.pace import INVOCATION_SECONDS
from tests.process.plan import Action, Planned
from tests.process.site import Site, append

IDLE_SECONDS: Final = 0.4
WAITING_MAX: Final = 60  # messages that no worker has taken yet
AGAIN_SECONDS: Final = 0.7  # a caller who got no answer, or not the one that it needs


@dataclass
class Post:
    """Where a process stands. `hands` shows, in the byte `slot`, how much it has in hand."""

    site: Site
    hands: mmap.mmap
    slot: int
    parent: int

    def is_needed(self) -> bool:
        """False when the parent is gone: then nobody would ever end this process."""
        return os.getppid() == self.parent


class Invocation:
    """The part of Lambda's context that the host reads."""

    def __init__(self) -> None:
        self.aws_request_id = os.urandom(8).hex()
        self._end = time.monotonic() + INVOCATION_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1_000))


# -- workers ---------------------------------------------------------------------------------------


def work(post: Post, queue: QueueName, batch_size: int) -> None:
    """The event source mapping and the function behind it, in one process."""
    host, url = post.site.host(), post.site.names.queue_url(queue)
    sqs = post.site.clients.get("queues")
    while post.is_needed():
        try:
            if not _work_off(post, host, sqs, (url, batch_size)):
                time.sleep(IDLE_SECONDS)
        except Exception as error:  # noqa: BLE001  # the cloud stands still; its messages come again
            log_fault("a batch was given up", error)
            time.sleep(IDLE_SECONDS)
        finally:
            post.hands[post.slot] = 0


def _work_off(post: Post, host: Host, sqs: Any, source: tuple[str, int]) -> bool:
    url, batch_size = source
    answer = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=batch_size,
        WaitTimeSeconds=0,
        MessageSystemAttributeNames=["ApproximateReceiveCount"],
    )
    messages = answer.get("Messages", [])
    if not messages:
        return False
    post.hands[post.slot] = len(messages)
    event = {"Records": [_record(message, url) for message in messages]}
    failures = host.worker(event, Invocation())["batchItemFailures"]
    failed = {failure["itemIdentifier"] for failure in failures}
    done = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate(messages)
        if message["MessageId"] not in failed
    ]
    if done:
        sqs.delete_message_batch(QueueUrl=url, Entries=done)
    return True


def _record(message: dict[str, Any], url: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{url.rpartition('/')[2]}",
    }


# -- the sweeper -----------------------------------------------------------------------------------


def sweep(post: Post) -> None:
    host = post.site.host()
    while post.is_needed():
        post.hands[post.slot] = 1
        begun = time.monotonic()
        try:
            host.sweeper(Invocation())
        except Exception as error:  # noqa: BLE001  # as on AWS: the next one makes up for it
            log_fault("a sweep failed", error)
        post.hands[post.slot] = 0
        time.sleep(max(0.0, begun + SWEEP_SECONDS - time.monotonic()))


# -- callers ---------------------------------------------------------------------------------------


def call(post: Post, planned: list[Planned], number: int, begun_at: float) -> None:
    """Does what callers do, each call until it is answered. Who dies goes on where it was."""
    sqs, url = post.site.clients.get("queues"), post.site.names.work_queue_url
    caller = Caller(post.site.host(), sqs, url, _answered(post.site, number))
    calls = [
        (begun_at + action.at_seconds, f"{one.name}.{place}", action)
        for one in planned
        for place, action in enumerate(one.actions)
    ]
    due = [entry for entry in calls if entry[1] not in caller.answered]
    heapify(due)
    while due and post.is_needed():
        at, key, action = heappop(due)
        time.sleep(max(0.0, at - time.time()))
        post.hands[post.slot] = 1
        if caller.is_answered(action):
            append(answered_path(post.site, number), key)
        else:
            heappush(due, (time.time() + AGAIN_SECONDS, key, action))
        post.hands[post.slot] = 0


def answered_path(site: Site, number: int) -> Path:
    return site.folder / f"answered-{number}"


def _answered(site: Site, number: int) -> set[str]:
    path = answered_path(site, number)
    return set(path.read_text().split()) if path.exists() else set()


@dataclass
class Caller:
    host: Host
    sqs: Any
    url: str
    answered: set[str]

    def is_answered(self, action: Action) -> bool:
        try:
            return self._does(action.kind)(action)
        except RequestError as error:
            if error.code in {"HF207", "HF231", "HF232"}:  # not begun yet; over already
                return error.code != "HF207"
            raise
        except Exception as error:  # noqa: BLE001  # whatever it was, it is asked for again
            log_fault(f"{action.kind} of {action.name} had no answer", error)
            return False

    def _does(self, kind: str) -> Callable[[Action], bool]:
        return {
            "start": self._start,
            "event": self._event,
            "answer": self._answer,
            "stop": self._stop,
        }[kind]

    def _ask(self, handler: Any) -> Any:
        return self.host.perform(handler)

    def _start(self, action: Action) -> bool:
        """False while so much waits to be begun that a machine this busy would drown in it."""
        if self._waiting() > WAITING_MAX:
            return False
        front = self.host.front
        self._ask(front.start(TENANT_DEFAULT, action.request, os.urandom(8)))
        return True

    def _waiting(self) -> int:
        attribute = "ApproximateNumberOfMessages"
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[attribute])
        return int(answer["Attributes"][attribute])

    def _event(self, action: Action) -> bool:
        self._ask(self.host.front.event(TENANT_DEFAULT, action.request, os.urandom(8)))
        return True

    def _stop(self, action: Action) -> bool:
        front = self.host.front
        self._ask(front.stop(TENANT_DEFAULT, action.name, action.request, os.urandom(8)))
        return True

    def _answer(self, action: Action) -> bool:
        """Whoever answers looks first for what is asked; False as long as nothing is."""
        shown = self._ask(self.host.front.describe(TENANT_DEFAULT, action.name))
        tokens = [wait["token"] for wait in shown["waits"] if "token" in wait]
        if not tokens:
            return bool(shown["status"] != "RUNNING")
        self._ask(self.host.front.answer(TENANT_DEFAULT, {"token": tokens[0], **action.request}))
        return True
