"""Queues with their dead letters, and the event bus for events to executions."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources

_EVENT_RETENTION: Final = Duration.days(14)
# How long a received dead letter is hidden. The next sweep must not receive it while this one
# processes it.
_HANDLING: Final = Duration.seconds(resources.SWEEPER.timeout_seconds + 5)
# How long the message of a failed sweep is kept. It has no data, and the next sweep does the work,
# so the message is kept only for the alarm: CloudWatch may measure the depth of an idle queue a
# quarter of an hour late.
_SWEEP_RETENTION: Final = Duration.minutes(30)


class Messaging(Construct):
    """The queues and the event bus. `queues` and `dead_letters` list all of them, so that each gets
    an alarm.

    `name` is that of the event bus. With `key` None, SQS's own keys encrypt the messages.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, construct_id)
        self._key = key
        self.work_dead = self._queue("WorkDead", _retention(resources.WORK))
        self.single_dead = self._queue("SingleDead", _retention(resources.SINGLE))
        self.starts_dead = self._queue("StartsDead", _retention(resources.STARTS))
        self.events_dead = self._queue("EventsDead", _EVENT_RETENTION)
        self.sweeper_dead = self._queue("SweeperDead", _SWEEP_RETENTION)
        self.work = self._work_queue("Work", resources.WORK, self.work_dead)
        self.single = self._work_queue("Single", resources.SINGLE, self.single_dead)
        self.starts = self._work_queue("Starts", resources.STARTS, self.starts_dead)
        self.bus = events.EventBus(self, "Bus", event_bus_name=name)

    @property
    def queues(self) -> dict[str, sqs.Queue]:
        return {"Work": self.work, "Single": self.single, "Starts": self.starts}

    @property
    def dead_letters(self) -> dict[str, sqs.Queue]:
        return {
            "Work": self.work_dead,
            "Single": self.single_dead,
            "Starts": self.starts_dead,
            "Events": self.events_dead,
            "Sweeper": self.sweeper_dead,
        }

    def _work_queue(
        self, construct_id: str, shape: resources.Queue, dead_letters: sqs.Queue
    ) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            visibility_timeout=Duration.seconds(shape.visibility_seconds),
            retention_period=_retention(shape),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=dead_letters, max_receive_count=shape.receives_max
            ),
            encryption=self._encryption,
            encryption_master_key=self._key,
            enforce_ssl=True,
        )

    @property
    def _encryption(self) -> sqs.QueueEncryption:
        return sqs.QueueEncryption.KMS if self._key else sqs.QueueEncryption.SQS_MANAGED

    def _queue(self, construct_id: str, retention: Duration) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            visibility_timeout=_HANDLING,
            retention_period=retention,
            encryption=self._encryption,
            encryption_master_key=self._key,
            enforce_ssl=True,
        )


def _retention(shape: resources.Queue) -> Duration:
    return Duration.seconds(shape.retention_seconds)
