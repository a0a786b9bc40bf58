"""The rights of each function: only what its code calls."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs

from .compute import allow
from .messaging import Messaging
from .storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of the functions. `default_bus_arn` is the event bus on which workers put events;
    None without one.
    """

    storage: Storage
    messaging: Messaging
    default_bus_arn: str | None

    def of_worker(self, *queues: sqs.IQueue) -> list[iam.PolicyStatement]:
        """Return the rights for the worker's own work, and for the Step Functions API, which a task
        may call.
        """
        storage, messaging = self.storage, self.messaging
        return [
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # UpdateItem only removes the list attributes of an older record; it changes no
                # event.
                "dynamodb:UpdateItem",
                on=[storage.executions.table_arn],
            ),
            allow("dynamodb:Query", on=[storage.list_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # To read rows of the index of waits, for the pages of a bulk operation.
                "dynamodb:BatchGetItem",
                # To extend the lifetime of a name while its execution is open, and to change the
                # gates of limits.
                "dynamodb:UpdateItem",
                # For state machines, aliases, versions, activities and their tasks, and to delete
                # rows of the quarantine after a stop.
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            *self._archive("s3:PutObject"),
            # Work that has crashed its workers is sent to a queue where each message has a worker
            # of its own, so that a further crash affects no other work.
            allow("sqs:SendMessage", on=[queue.queue_arn for queue in messaging.queues.values()]),
            allow(
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:GetQueueAttributes",
                on=[queue.queue_arn for queue in queues],
            ),
            allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
            *self._publish(),
        ]

    def of_events(self) -> list[iam.PolicyStatement]:
        storage, messaging = self.storage, self.messaging
        return [
            # If no deployed workflow declares an event, its type is found in the log of the waiting
            # execution and in its definition.
            allow("dynamodb:Query", on=[storage.executions.table_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                # For a keyed workflow: to store that the key belongs to the execution which the
                # event starts.
                "dynamodb:UpdateItem",
                "dynamodb:Query",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            allow("sqs:SendMessage", on=[messaging.work.queue_arn]),
            # To sign the id of an execution that the event starts.
            allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
            allow("sqs:SendMessage", on=[messaging.events_dead.queue_arn]),
        ]

    def of_sweeper(self) -> list[iam.PolicyStatement]:
        storage, messaging = self.storage, self.messaging
        return [
            # To count the open executions for the dashboard.
            allow("dynamodb:Query", on=[storage.list_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
                on=[storage.executions.table_arn],
            ),
            allow(
                # To read the notice of a child's end before a stop is sent to the child (follow-ups
                # of an end), and rows of the quarantine.
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # To write rows of the index of waits that a crashed worker did not write.
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            allow("sqs:SendMessage", on=[queue.queue_arn for queue in messaging.queues.values()]),
            allow(
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                on=[
                    messaging.work_dead.queue_arn,
                    messaging.single_dead.queue_arn,
                    messaging.starts_dead.queue_arn,
                ],
            ),
            allow("sqs:SendMessage", on=[messaging.sweeper_dead.queue_arn]),
        ]

    def of_api(self) -> list[iam.PolicyStatement]:
        storage, messaging = self.storage, self.messaging
        return [
            allow("dynamodb:Query", on=[storage.executions.table_arn, storage.list_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # To read the rows of the index of waits for a list of executions.
                "dynamodb:BatchGetItem",
                # To update the gates of a limit when an operator changes the limit.
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            # To show executions whose records TTL has deleted after their retention time.
            *self._archive("s3:GetObject", lists=True),
            # To send a message to an execution that leaves quarantine; it runs alone in its batch.
            allow("sqs:SendMessage", on=[queue.queue_arn for queue in messaging.queues.values()]),
            allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
        ]

    def _blobs(self, *actions: str) -> list[iam.PolicyStatement]:
        """Return the rights to read blobs. Without the right to list, S3 answers "denied" for a
        missing object.
        """
        blobs = self.storage.blobs
        return [
            allow(*actions, on=[blobs.arn_for_objects("*")]),
            allow("s3:ListBucket", on=[blobs.bucket_arn]),
        ]

    def _archive(self, action: str, *, lists: bool = False) -> list[iam.PolicyStatement]:
        bucket = self.storage.archive
        if bucket is None:
            return []
        listing = [allow("s3:ListBucket", on=[bucket.bucket_arn])] if lists else []
        return [allow(action, on=[bucket.arn_for_objects("*")]), *listing]

    def _publish(self) -> list[iam.PolicyStatement]:
        if self.default_bus_arn is None:
            return []
        return [allow("events:PutEvents", on=[self.default_bus_arn])]
