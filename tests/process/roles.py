"""The work of the processes: workers and their queues, the sweeper, the callers.

Each is written without regard to crashes; other processes handle those.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from holdfast.aws.faults import fault
from holdfast.aws.host import Host
from holdfast.aws.telemetry import log_fault
from holdfast.errors import RequestError
from holdfast.limits import SWEEP_SECONDS
from holdfast.runtime.effects import QueueName, RunTask, TaskResult
from holdfast.runtime.storage.keys import TENANT_DEFAULT
from tests.process.clock import Clock
from tests.process.complaints import BATCH_GIVEN_UP
from tests.process.hands import Hands
from tests.process.pace import INVOCATION_SECONDS
from tests.process.plan import Action, Call
from tests.process.site import Site, append

IDLE_SECONDS: Final = 0.4
WAITING_MAX: Final = 60  # messages that no worker has taken yet
LOOK_SECONDS: Final = 0.02
NOTHING: Final = "-"
AGAIN_SECONDS: Final = 0.7  # The delay of a caller that got no answer, or not the required one


@dataclass(frozen=True, slots=True)
class Post:
    """Where a process stands."""

    site: Site
    hands: Hands
    role: str
    parent: int

    def take_up(self) -> Host:
        """Take the place of a crashed process; its hands are empty."""
        self.hands.are_empty(self.role)
        return self.site.host(self._run_task)

    def _run_task(self, effect: RunTask) -> TaskResult:
        with self.hands.in_task(self.role):
            return self.site.run_task(effect)

    def is_needed(self) -> bool:
        """Return False when the parent is gone: then no process would ever end this one."""
        return os.getppid() == self.parent


class Invocation:
    """The part of Lambda's context that the host reads."""

    def __init__(self) -> None:
        # An owner begins with this: leases and records show their process.
        self.aws_request_id = f"{os.getpid():08x}{os.urandom(4).hex()}"
        self._end = time.monotonic() + INVOCATION_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1_000))


# -- workers ---------------------------------------------------------------------------------------


def work(post: Post, queue: QueueName, batch_size: int) -> None:
    """The event source mapping and the function behind it, in one process."""
    host, url = post.take_up(), post.site.names.queue_url(queue)
    sqs = post.site.clients.get("queues")
    while post.is_needed():
        try:
            if not _work_off(post, host, sqs, (url, batch_size)):
                time.sleep(IDLE_SECONDS)
        except Exception as error:  # noqa: BLE001  # the cloud stands still; its messages come again
            log_fault(BATCH_GIVEN_UP, error)
            time.sleep(IDLE_SECONDS)
        finally:
            post.hands.hold(post.role, 0)


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
    post.hands.hold(post.role, len(messages))
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
    host = post.take_up()
    while post.is_needed():
        post.hands.hold(post.role, 1)
        begun = time.monotonic()
        try:
            host.sweeper(Invocation())
        except Exception as error:  # noqa: BLE001  # as on AWS: the next one makes up for it
            log_fault("a sweep failed", error)
        post.hands.hold(post.role, 0)
        time.sleep(max(0.0, begun + SWEEP_SECONDS - time.monotonic()))


# -- callers ---------------------------------------------------------------------------------------


def call(post: Post, calls: list[Call], number: int, clock: Clock) -> None:
    """Run the caller: each call until it is answered. After a crash it continues at the
    same call.
    """
    sqs, url = post.site.clients.get("queues"), post.site.names.work_queue_url
    caller = Caller(post.take_up(), sqs, url)
    answered = {answer.key for answer in answers(post.site, number)}
    planned = deque(one for one in calls if one.key not in answered)
    again: list[tuple[float, Call]] = []
    while (planned or again) and post.is_needed():
        if again and again[0][0] <= time.time():
            _, one = heappop(again)
        elif planned and clock.is_due(planned[0].at_seconds):
            one = planned.popleft()
        else:
            time.sleep(LOOK_SECONDS)
            continue
        post.hands.hold(post.role, 1)
        told = caller.answer_to(one.action)
        if told is None:
            heappush(again, (time.time() + AGAIN_SECONDS, one))
        else:
            append(_answered_path(post.site, number), f"{one.key} {time.time()} {told}")
        post.hands.hold(post.role, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one call. `told`: the execution for a start; nothing for other calls."""

    key: str
    at: float
    told: str

    @property
    def is_start(self) -> bool:
        return self.told != NOTHING


def answers(site: Site, number: int) -> list[Answer]:
    """Return the answers to the caller of that number, over all its processes."""
    path = _answered_path(site, number)
    lines = path.read_text().splitlines() if path.exists() else []
    parts = (line.split(" ") for line in lines)
    return [Answer(key, float(at), told) for key, at, told in parts]


def _answered_path(site: Site, number: int) -> Path:
    return site.folder / f"answered-{number}"


@dataclass
class Caller:
    host: Host
    sqs: Any
    url: str

    def answer_to(self, action: Action) -> str | None:
        """Return the answer; None: the caller has to ask again."""
        try:
            return self._does(action.kind)(action)
        except RequestError as error:
            if error.code in {"HF207", "HF231", "HF232"}:  # not begun yet; over already
                return None if error.code == "HF207" else NOTHING
            raise
        except Exception as error:  # noqa: BLE001  # whatever it was, it is asked for again
            log_fault(f"{action.kind} of {action.name} had no answer", error)
            return None

    def _does(self, kind: str) -> Callable[[Action], str | None]:
        return {
            "start": self._start,
            "event": self._event,
            "answer": self._answer,
            "stop": self._stop,
        }[kind]

    def _ask(self, handler: Any) -> Any:
        return self.host.perform(handler)

    def _start(self, action: Action) -> str | None:
        """Start the execution. Return None while so many starts wait that a busy machine could not
        keep up.
        """
        if self._waiting() > WAITING_MAX:
            return None
        front = self.host.front
        begun = self._ask(front.start(TENANT_DEFAULT, action.request, os.urandom(8)))
        return str(begun["execution"])

    def _waiting(self) -> int:
        attribute = "ApproximateNumberOfMessages"
        try:
            answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[attribute])
        except BotoCoreError as error:  # A stopped server does not answer
            raise fault("GetQueueAttributes", error) from error
        return int(answer["Attributes"][attribute])

    def _event(self, action: Action) -> str:
        self._ask(self.host.front.event(TENANT_DEFAULT, action.request, os.urandom(8)))
        return NOTHING

    def _stop(self, action: Action) -> str:
        front = self.host.front
        self._ask(front.stop(TENANT_DEFAULT, action.name, action.request, os.urandom(8)))
        return NOTHING

    def _answer(self, action: Action) -> str | None:
        """Answer a question after finding it; None as long as there is none."""
        shown = self._ask(self.host.front.describe(TENANT_DEFAULT, action.name))
        tokens = [wait["token"] for wait in shown["waits"] if "token" in wait]
        if not tokens:
            return None if shown["status"] == "RUNNING" else NOTHING
        self._ask(self.host.front.answer(TENANT_DEFAULT, {"token": tokens[0], **action.request}))
        return NOTHING
