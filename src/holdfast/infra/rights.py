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
                # UpdateItem is used only to remove the list attributes of an older record. The
                # events of a record never change.
                "dynamodb:UpdateItem",
                on=[storage.executions.table_arn],
            ),
            allow("dynamodb:Query", on=[storage.list_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # BatchGetItem reads rows of the index of waits for the pages of a bulk operation.
                "dynamodb:BatchGetItem",
                # UpdateItem extends the lifetime of a name while its execution is open, changes the
                # gates of limits, and claims events.
                "dynamodb:UpdateItem",
                # DeleteItem deletes items of state machines, aliases, versions, activities and
                # their tasks, and rows of the quarantine after a stop.
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            *self._archive("s3:PutObject"),
            # The worker may send to every queue. It sends work that has crashed workers to the
            # queue in which each message has its own invocation, so that a further crash affects no
            # other work.
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
            # For an event that no deployed workflow declares, the function finds the type in the
            # log of the waiting execution and in its definition.
            allow("dynamodb:Query", on=[storage.executions.table_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                # For a keyed workflow, UpdateItem stores that the key belongs to the execution
                # which the event starts.
                "dynamodb:UpdateItem",
                "dynamodb:Query",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            allow("sqs:SendMessage", on=[messaging.work.queue_arn]),
            # The secret signs the id of an execution that the event starts.
            allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
            allow("sqs:SendMessage", on=[messaging.events_dead.queue_arn]),
        ]

    def of_sweeper(self) -> list[iam.PolicyStatement]:
        storage, messaging = self.storage, self.messaging
        return [
            # The sweeper counts the open executions in the list for the dashboard.
            allow("dynamodb:Query", on=[storage.list_arn]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
                on=[storage.executions.table_arn],
            ),
            allow(
                # GetItem reads rows of the quarantine, and the notice of a child's end before a
                # stop is sent to the child.
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # UpdateItem writes rows of the index of waits that a crashed worker did not write,
                # and marks registrations of ended executions.
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
                # BatchGetItem reads the rows of the index of waits for a list of executions.
                "dynamodb:BatchGetItem",
                # UpdateItem changes the gates of a limit when an operator changes the limit.
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blobs("s3:GetObject", "s3:PutObject"),
            # The API shows executions from the archive whose records TTL has deleted.
            *self._archive("s3:GetObject", lists=True),
            # The API may send to every queue, because the message of an execution that leaves
            # quarantine goes to the queue `single`.
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
