"""The whole of Holdfast in one stack, and the only place where one part is granted another."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, Duration, Stack, Tags
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import limits, resources

from .acknowledged import acknowledge_function
from .alarms import Alarms
from .api import Api
from .compute import HoldfastFunction, allow
from .dashboard import Dashboard
from .keys import SecretsKey, StorageKey
from .messaging import Messaging
from .settings import Settings
from .storage import Storage
from .tasks import TasksRole

# The API runs what its caller waits for: StartSyncExecution and TestState.
_RUN_TASKS = (resources.WORKER, resources.WORKER_SINGLE, resources.API)
_WORKERS = (resources.WORKER, resources.WORKER_SINGLE)
# Functions that receive secret values: from callers, from the bus, from tasks.
_SEAL = (*_WORKERS, resources.API, resources.EVENTS)


class HoldfastStack(Stack):
    """`asset` is the directory that `bundle.build_asset` filled for the same settings."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        asset: Path,
    ) -> None:
        super().__init__(scope, construct_id, description="Holdfast: durable workflows")
        self._settings = settings
        self._code = lambda_.Code.from_asset(str(asset))
        self._secrets = SecretsKey(self, "Secrets") if settings.seals_secrets else None
        self._at_rest = StorageKey(self, "AtRest") if settings.owns_key else None
        self._key = None if self._at_rest is None else self._at_rest.key
        self._storage = Storage(self, "Storage", key=self._key)
        self._messaging = Messaging(self, "Messaging", key=self._key)
        workers = [self._worker(), self._worker_single()]
        others = [self._events(), self._sweeper()]
        handler = self._api_function()
        run_tasks = [*workers, handler]
        tasks = self._tasks(run_tasks, others)
        api = Api(self, "Api", function=handler.function, settings=settings, key=self._key)
        self._watch()
        self._outputs(api, tasks, run_tasks)
        Tags.of(self).add("application", "holdfast")

    def _worker(self) -> HoldfastFunction:
        """Create the worker. Starts get a third of its concurrency, and running executions the
        rest.
        """
        messaging = self._messaging
        rights = self._worker_rights(messaging.work, messaging.starts)
        worker = self._function(resources.WORKER, rights)
        worker.consume("Source", messaging.work, resources.WORK, self._settings.work_batch)
        worker.consume("Starts", messaging.starts, resources.STARTS, self._settings.work_batch)
        return worker

    def _worker_single(self) -> HoldfastFunction:
        worker = self._function(
            resources.WORKER_SINGLE, self._worker_rights(self._messaging.single)
        )
        single = resources.SINGLE
        worker.consume("Source", self._messaging.single, single, single.batch_size)
        return worker

    def _worker_rights(self, *queues: sqs.IQueue) -> list[iam.PolicyStatement]:
        """Return the rights for the worker's own work, and for Step Functions' API, which a task
        may call.
        """
        storage, messaging = self._storage, self._messaging
        return [
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # Only to REMOVE the listing attributes of an older record, never to change one.
                "dynamodb:UpdateItem",
                on=[storage.executions.table_arn],
            ),
            allow("dynamodb:Query", on=[_list_arn(storage)]),
            allow(
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:PutItem",
                # To extend the time that a name is kept while its execution is open, and the gates
                # of limits.
                "dynamodb:UpdateItem",
                # For state machines, aliases, versions, activities and their tasks, and for rows
                # that a stop removes from quarantine.
                "dynamodb:DeleteItem",
                on=[storage.mail.table_arn],
            ),
            *self._blob_rights("s3:GetObject", "s3:PutObject"),
            # Work that killed its workers goes to a queue where no other work can die with the next
            # one.
            allow("sqs:SendMessage", on=[queue.queue_arn for queue in messaging.queues.values()]),
            allow(
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:GetQueueAttributes",
                on=[queue.queue_arn for queue in queues],
            ),
            allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
            *self._status_rights(),
        ]

    def _blob_rights(self, *actions: str) -> list[iam.PolicyStatement]:
        """Return the rights of a reader. Without the right to list, S3 answers "denied" for a
        missing object.
        """
        blobs = self._storage.blobs
        return [
            allow(*actions, on=[blobs.arn_for_objects("*")]),
            allow("s3:ListBucket", on=[blobs.bucket_arn]),
        ]

    def _status_rights(self) -> list[iam.PolicyStatement]:
        if not self._settings.tells_status:
            return []
        default_bus = self.format_arn(
            service="events", resource="event-bus", resource_name="default"
        )
        return [allow("events:PutEvents", on=[default_bus])]

    def _events(self) -> HoldfastFunction:
        storage, messaging = self._storage, self._messaging
        handler = self._function(
            resources.EVENTS,
            [
                # If no deployed workflow declares an event, the log of the waiting execution says,
                # and its definition, of which type that is.
                allow("dynamodb:Query", on=[storage.executions.table_arn]),
                allow(
                    "dynamodb:GetItem",
                    "dynamodb:PutItem",
                    "dynamodb:Query",
                    on=[storage.mail.table_arn],
                ),
                *self._blob_rights("s3:GetObject", "s3:PutObject"),
                allow("sqs:SendMessage", on=[messaging.work.queue_arn]),
                allow("sqs:SendMessage", on=[messaging.events_dead.queue_arn]),
            ],
            # The rule's own dead letters cover an event that never reached the function; these
            # cover one that the function refused to its last retry. Both hold the event itself.
            failed_events=messaging.events_dead,
        )
        events.Rule(
            self,
            "EventsRule",
            description="Events for executions that wait by business key",
            event_bus=messaging.bus,
            event_pattern=events.EventPattern(detail_type=[resources.EVENT_DETAIL_TYPE]),
            targets=[
                targets.LambdaFunction(
                    handler.function,
                    dead_letter_queue=messaging.events_dead,
                    retry_attempts=resources.EVENT_RETRY_ATTEMPTS_MAX,
                    max_event_age=Duration.seconds(resources.EVENT_RETRY_AGE_SECONDS_MAX),
                )
            ],
        )
        return handler

    def _sweeper(self) -> HoldfastFunction:
        storage, messaging = self._storage, self._messaging
        sweeper = self._function(
            resources.SWEEPER,
            [
                allow(
                    "dynamodb:GetItem",
                    "dynamodb:Query",
                    "dynamodb:UpdateItem",
                    on=[storage.executions.table_arn],
                ),
                allow(
                    # For the notice of an ended child, before it is stopped (follow-ups of an end),
                    # and for rows in quarantine.
                    "dynamodb:GetItem",
                    "dynamodb:Query",
                    "dynamodb:PutItem",
                    # For the rows of the index of waits that a crashed worker left out.
                    "dynamodb:UpdateItem",
                    "dynamodb:DeleteItem",
                    on=[storage.mail.table_arn],
                ),
                *self._blob_rights("s3:GetObject", "s3:PutObject"),
                allow(
                    "sqs:SendMessage",
                    on=[
                        messaging.work.queue_arn,
                        messaging.single.queue_arn,
                        messaging.starts.queue_arn,
                    ],
                ),
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
            ],
            failed_events=messaging.sweeper_dead,
        )
        # A late sweep only queues up behind the next one, so a failed one is not tried again.
        sweeper.function.configure_async_invoke(
            retry_attempts=0, max_event_age=Duration.seconds(limits.SWEEP_SECONDS)
        )
        events.Rule(
            self,
            "SweepRule",
            description="Wakes the sweeper",
            schedule=events.Schedule.rate(Duration.seconds(limits.SWEEP_SECONDS)),
            targets=[
                targets.LambdaFunction(
                    sweeper.function,
                    dead_letter_queue=messaging.sweeper_dead,
                    retry_attempts=0,
                    max_event_age=Duration.seconds(limits.SWEEP_SECONDS),
                )
            ],
        )
        return sweeper

    def _api_function(self) -> HoldfastFunction:
        storage, messaging = self._storage, self._messaging
        return self._function(
            resources.API,
            [
                allow("dynamodb:Query", on=[storage.executions.table_arn, _list_arn(storage)]),
                allow(
                    "dynamodb:GetItem",
                    "dynamodb:Query",
                    "dynamodb:PutItem",
                    # For the rows of the index of waits, when executions are listed.
                    "dynamodb:BatchGetItem",
                    # Only of the gates of limits, when an operator changes a limit.
                    "dynamodb:UpdateItem",
                    "dynamodb:DeleteItem",
                    on=[storage.mail.table_arn],
                ),
                *self._blob_rights("s3:GetObject", "s3:PutObject"),
                # An execution that is taken out of quarantine runs alone in its batch.
                allow(
                    "sqs:SendMessage",
                    on=[queue.queue_arn for queue in messaging.queues.values()],
                ),
                allow("secretsmanager:GetSecretValue", on=[storage.secret_arn]),
            ],
        )

    def _tasks(
        self, run_tasks: list[HoldfastFunction], others: list[HoldfastFunction]
    ) -> TasksRole:
        storage, messaging = self._storage, self._messaging
        tables = [storage.executions.table_arn, storage.mail.table_arn]
        queues = [*messaging.queues.values(), *messaging.dead_letters.values()]
        functions = [made.function.function_arn for made in (*run_tasks, *others)]
        keys = [key.arn for key in (self._secrets, self._at_rest) if key is not None]
        tasks = TasksRole(
            self,
            "Tasks",
            callers=[made.role for made in run_tasks],
            policy_arns=self._settings.task_policies,
            barred={
                "dynamodb": [*tables, _list_arn(storage)],
                "s3": [storage.blobs.bucket_arn, storage.blobs.arn_for_objects("*")],
                "sqs": [queue.queue_arn for queue in queues],
                "secretsmanager": [storage.secret_arn],
                # The API's function trusts the caller's identity in its event, so only the gateway
                # may invoke it.
                "lambda": [*functions, *(f"{arn}:*" for arn in functions)],
                **({"kms": keys} if keys else {}),
            },
        )
        for made in run_tasks:
            made.function.add_environment(resources.ENV_TASKS_ROLE, tasks.arn)
        return tasks

    def _function(
        self,
        shape: resources.LambdaFunction,
        rights: list[iam.PolicyStatement],
        failed_events: sqs.IQueue | None = None,
    ) -> HoldfastFunction:
        made = HoldfastFunction(
            self,
            "".join(word.capitalize() for word in shape.name.split("-")) + "Function",
            shape=shape,
            code=self._code,
            settings=self._settings,
            key=self._key,
            environment=self._environment(shape),
            rights=[*rights, *self._key_rights(shape)],
            policy_arns=self._settings.task_policies if shape in _RUN_TASKS else (),
            failed_events=failed_events,
        )
        acknowledge_function(made, self._storage.blobs)
        return made

    def _key_rights(self, shape: resources.LambdaFunction) -> list[iam.PolicyStatement]:
        rights = [] if self._at_rest is None else [self._at_rest.rights()]
        if self._secrets is not None and shape in _SEAL:
            rights.append(self._secrets.rights(may_open=shape in _WORKERS))
        return rights

    def _environment(self, shape: resources.LambdaFunction) -> dict[str, str]:
        storage, messaging = self._storage, self._messaging
        names = {
            resources.ENV_EXECUTIONS_TABLE: storage.executions.table_name,
            resources.ENV_MAIL_TABLE: storage.mail.table_name,
            resources.ENV_BLOBS_BUCKET: storage.blobs.bucket_name,
            resources.ENV_WORK_QUEUE_URL: messaging.work.queue_url,
            resources.ENV_SINGLE_QUEUE_URL: messaging.single.queue_url,
            resources.ENV_STARTS_QUEUE_URL: messaging.starts.queue_url,
            resources.ENV_MODULES: ",".join(self._settings.modules),
            resources.ENV_STACK: self.stack_name,
        }
        if shape is resources.SWEEPER:
            names[resources.ENV_WORK_DLQ_URL] = messaging.work_dead.queue_url
            names[resources.ENV_SINGLE_DLQ_URL] = messaging.single_dead.queue_url
            names[resources.ENV_STARTS_DLQ_URL] = messaging.starts_dead.queue_url
        if self._secrets is not None and shape in _SEAL:
            names[resources.ENV_SECRETS_KEY] = self._secrets.arn
        if shape in _RUN_TASKS:
            names[resources.ENV_SECRET_ID] = storage.secret_arn
            names[resources.ENV_ACCOUNT] = self.account
        if shape in _RUN_TASKS and not self._settings.limits_payloads:
            names[resources.ENV_PAYLOAD_LIMIT] = "off"
        if shape in _WORKERS and self._settings.tells_status:
            names[resources.ENV_STATUS_EVENTS] = "on"
        return names

    def _watch(self) -> None:
        queues, dead_letters = self._messaging.queues, self._messaging.dead_letters
        Alarms(
            self,
            "Alarms",
            queues=queues,
            dead_letters=dead_letters,
            topic_arn=self._settings.alarm_topic_arn,
        )
        Dashboard(self, "Dashboard", queues=queues, dead_letters=dead_letters)

    def _outputs(self, api: Api, tasks: TasksRole, run_tasks: list[HoldfastFunction]) -> None:
        CfnOutput(self, "ApiUrl", value=api.url)
        CfnOutput(self, "BusName", value=self._messaging.bus.event_bus_name)
        CfnOutput(self, "ExecutionsTable", value=self._storage.executions.table_name)
        CfnOutput(self, "MailTable", value=self._storage.mail.table_name)
        CfnOutput(self, "BlobsBucket", value=self._storage.blobs.bucket_name)
        CfnOutput(self, "SigningSecret", value=self._storage.secret_arn)
        CfnOutput(self, "EventsDeadLetters", value=self._messaging.events_dead.queue_url)
        if self._secrets is not None:
            CfnOutput(self, "SecretsKeyArn", value=self._secrets.arn)
        if self._at_rest is not None:
            CfnOutput(self, "StorageKeyArn", value=self._at_rest.arn)
        # A role for tasks must name this role in its trust policy: it calls on behalf of state
        # machines, or runs the code of Python tasks.
        CfnOutput(self, "TasksRole", value=tasks.arn)
        roles = ",".join(made.role.role_arn for made in run_tasks)
        CfnOutput(self, "PythonTaskRoles", value=roles)


def _list_arn(storage: Storage) -> str:
    assert resources.EXECUTIONS.index is not None
    return f"{storage.executions.table_arn}/index/{resources.EXECUTIONS.index.name}"
