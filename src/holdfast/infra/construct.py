"""`Holdfast`: all of Holdfast as a construct for the user's own stack. Only this module gives one
part rights on another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources
from holdfast.errors import HoldfastError
from holdfast.local import project as projects
from holdfast.runtime.storage.spread import STARTS_PER_SECOND

from .acknowledged import acknowledge_function, acknowledge_network
from .alarms import Alarms, engine_metric
from .api import Api
from .bounds import AlarmBounds
from .bundle import build_asset, compile_workflows
from .compute import HoldfastFunction, TaskRuntime, allow
from .dashboard import Dashboard, Watched
from .groups import (
    FoundGroup,
    Group,
    GroupFunction,
    Parts,
    find_groups,
    group_shapes,
    network_of,
    require_groups,
    unknown_group,
)
from .keys import SecretsKey, StorageKey
from .messaging import Messaging
from .names import default_bus_arn, name_of, output_name
from .plain_errors import plain_errors
from .rights import Rights
from .rules import notify_of_questions, wake_by_events, wake_each_minute
from .settings import Architecture, JwtIssuer, Settings, require_key
from .sizes import FunctionName, Size, read_sizes
from .spending import Billed
from .storage import Storage
from .tasks import Tasks, TasksRole
from .unfit import Unfit

# The functions that run tasks. The API is one of them, because it runs tasks while a caller waits:
# StartSyncExecution and TestState.
_RUN_TASKS: Final = (resources.WORKER, resources.WORKER_SINGLE, resources.API)
_WORKERS: Final = (resources.WORKER, resources.WORKER_SINGLE)
# The functions that receive values of secrets, from callers, from the event bus or from tasks.
_SEAL: Final = (*_WORKERS, resources.API, resources.EVENTS)
_MINUTE: Final = Duration.minutes(1)
#: The Python version for which Lambda has no SnapStart (Lambda developer guide, "Improving startup
#: performance with Lambda SnapStart").
_WITHOUT_SNAP_START: Final = "3.11"


class Holdfast(Construct):
    """Durable workflows in your stack. docs/reference/construct.md describes each parameter.

    With `modules` and `project` None they come from the nearest `pyproject.toml` upwards from the
    current folder. `asset` is a folder that already contains the code of the functions; None: it is
    built from the project and its lock file. Raises HoldfastError for settings that cannot be
    deployed.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        modules: Sequence[str] | None = None,
        project: str | Path | None = None,
        asset: str | Path | None = None,
        architecture: Architecture = "arm64",
        python: str = "3.13",
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, secretsmanager.ISecret] | None = None,
        functions: Mapping[FunctionName, Size] | None = None,
        groups: Mapping[str, Group] | None = None,
        reserved_concurrency: bool = True,
        work_batch: int = resources.WORK.batch_size,
        start_concurrency: int | None = None,
        starts_per_second: int = STARTS_PER_SECOND,
        layers: Sequence[lambda_.ILayerVersion] = (),
        snap_start: bool = False,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        task_policies: Sequence[iam.IManagedPolicy] = (),
        api: JwtIssuer | None = None,
        alarms: sns.ITopic | None = None,
        alarm_bounds: AlarmBounds | None = None,
        log_retention_days: int = 30,
        status_events: bool = False,
        forms: bool = False,
        question_events: bool = False,
        notify_questions_to: sns.ITopic | None = None,
        payload_limit: bool = True,
        history_limit: bool = False,
        secrets_key: bool | None = None,
        customer_managed_key: bool = False,
        archive: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self._name = name_of(self)
        variables = {name: secret.secret_arn for name, secret in (secrets or {}).items()}
        with plain_errors(self.node.path), TemporaryDirectory() as directory:
            root = projects.project_root() if project is None else Path(project).resolve()
            self._settings = Settings(
                modules=tuple(projects.modules_of(root) if modules is None else modules),
                architecture=architecture,
                python=python,
                caps_concurrency=reserved_concurrency,
                jwt=api,
                alarm_topic_arn=_topic_arn(alarms),
                task_policies=tuple(policy.managed_policy_arn for policy in task_policies),
                tells_status=status_events,
                has_forms=forms,
                tells_questions=question_events or notify_questions_to is not None,
                limits_payloads=payload_limit,
                limits_histories=history_limit,
                seals_secrets=secrets_key is True,
                owns_key=customer_managed_key,
                has_archive=archive,
                functions=read_sizes(
                    {name: size.changes() for name, size in (functions or {}).items()}
                ),
                work_batch=work_batch,
                start_concurrency=start_concurrency,
                starts_per_second=starts_per_second,
                log_retention_days=log_retention_days,
                alarm_bounds=AlarmBounds() if alarm_bounds is None else alarm_bounds,
                environment={**(environment or {}), **variables},
            )
            wanted = groups or {}
            # The tasks of the groups are not known, because the modules of a given asset cannot be
            # imported here.
            found = {name: FoundGroup(self._settings.modules) for name in wanted}
            if asset is None:
                asset = Path(directory)
                self._build(asset, root, may_add_key=secrets_key is None)
                found = find_groups(self._settings.modules)
            self._groups = require_groups(wanted, found, self.node.path)
            self._group_modules = {name: one.modules for name, one in found.items()}
            shapes = {**self._settings.functions, **group_shapes(self._groups)}
            self._settings = replace(self._settings, functions=shapes)
            self._runtime = TaskRuntime(
                policy_arns=self._settings.task_policies,
                layers=tuple(layers),
                snap_start=_require_snap_start(python) if snap_start else False,
                network=network_of(
                    self,
                    Group(vpc=vpc, vpc_subnets=vpc_subnets, security_groups=security_groups),
                    "Tasks",
                    "vpc",
                ),
            )
            self._make(lambda_.Code.from_asset(str(asset)))
        for secret in (secrets or {}).values():
            secret.grant_read(self.tasks)
        if notify_questions_to is not None:
            notify_of_questions(self, notify_questions_to, self._name, has_links=forms)

    # -- for the user's stack ----------------------------------------------------------------------

    @property
    def tasks(self) -> Tasks:
        """Give rights to tasks: `bucket.grant_read(flows.tasks)`. Let tasks in the VPC reach a
        resource: `database.connections.allow_default_port_from(flows.tasks)`.
        """
        return self._tasks

    def group(self, name: str) -> Tasks:
        """Give rights to the tasks of one group, and let them reach resources, as `tasks` does.
        `tasks` itself does not include groups. Raises HoldfastError HF424 for an unknown group.
        """
        with plain_errors(self.node.path):
            if name not in self._group_functions:
                raise unknown_group(name, self._group_functions, self.node.path)
            return self._group_functions[name].tasks

    @property
    def api_url(self) -> str:
        return self._api.url

    @property
    def http_api(self) -> apigateway.IHttpApi:
        return self._api.http_api

    @property
    def bus(self) -> events.IEventBus:
        """The event bus for events to waiting executions."""
        return self._messaging.bus

    @property
    def executions_table(self) -> dynamodb.ITable:
        return self._storage.executions

    @property
    def archive_bucket(self) -> s3.IBucket | None:
        """The bucket with executions that have ended, for Athena; None without `archive`."""
        return self._storage.archive

    @property
    def inbox_table(self) -> dynamodb.ITable:
        return self._storage.mail

    def grant_start(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow the grantee to start executions through the API."""
        return self._grant_routes(grantee, "POST /executions")

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow the grantee to read executions, with their state and history, and the open
        questions.
        """
        return self._grant_routes(
            grantee,
            *("GET /executions", "GET /executions/*", "GET /counts"),
            *("GET /questions", "GET /questions/*"),
        )

    def grant_answer(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow the grantee to list the questions of executions, and to answer, claim and delegate
        them.
        """
        return self._grant_routes(
            grantee,
            *("GET /questions", "GET /questions/*"),
            *("POST /answers", "POST /questions/*"),
        )

    def grant_work(self, grantee: iam.IGrantable, pool: str) -> iam.Grant:
        """Allow a machine to work for a pool: to poll for its tasks, and to report their ends. The
        machine needs no right to the tables, queues and keys of the stack.
        """
        return self._grant_routes(grantee, f"POST /pools/{pool}/*")

    def grant_send_event(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow the grantee to send events to waiting executions: on the event bus and, with IAM,
        through the API.
        """
        on_bus = self._messaging.bus.grant_put_events_to(grantee)
        on_bus.assert_success()
        if self._settings.jwt is not None:
            return on_bus
        return on_bus.combine(self._grant_routes(grantee, "POST /events"))

    def metric_started(
        self, *, period: Duration = _MINUTE, statistic: str = cloudwatch.Stats.SUM
    ) -> cloudwatch.Metric:
        return engine_metric(self._name, resources.METRIC_EXECUTIONS_STARTED, statistic, period)

    def metric_ended(
        self,
        *,
        workflow: str | None = None,
        period: Duration = _MINUTE,
        statistic: str = cloudwatch.Stats.SUM,
    ) -> cloudwatch.Metric:
        """Return the metric of executions that have ended with any status: of all workflows, or of
        one.
        """
        return engine_metric(
            self._name, resources.METRIC_EXECUTIONS_ENDED, statistic, period, workflow
        )

    def metric_failed(
        self,
        *,
        workflow: str | None = None,
        period: Duration = _MINUTE,
        statistic: str = cloudwatch.Stats.SUM,
    ) -> cloudwatch.Metric:
        """Return the metric of executions that failed or timed out: of all workflows, or of one."""
        return engine_metric(
            self._name, resources.METRIC_EXECUTIONS_FAILED, statistic, period, workflow
        )

    def _grant_routes(self, grantee: iam.IGrantable, *routes: str) -> iam.Grant:
        if self._settings.jwt is not None:
            with plain_errors(self.node.path):
                raise HoldfastError(
                    "HF409",
                    f"Holdfast {self.node.path}: a role cannot be allowed to call the API, "
                    "which takes tokens of a JWT issuer",
                    help="let the caller get a token, or leave `api=` out so that the API takes "
                    "IAM signatures",
                )
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["execute-api:Invoke"],
            resource_arns=[self._api.arn_of(route) for route in routes],
        )
        # Raise an error if CDK must not change the role. Otherwise the role would lack the right,
        # and nothing would say so.
        grant.assert_success()
        return grant

    # -- building the parts ------------------------------------------------------------------------

    def _build(self, directory: Path, project: Path, *, may_add_key: bool) -> None:
        compiled = compile_workflows(self._settings.modules, project=project)
        secrets = {workflow.name: workflow.secrets for workflow in compiled}
        if may_add_key and any(secrets.values()):
            self._settings = replace(self._settings, seals_secrets=True)
        require_key(self._settings, secrets)
        build_asset(directory, project=project, settings=self._settings, compiled=compiled)

    def _make(self, code: lambda_.Code) -> None:
        settings = self._settings
        self._code = code
        self._secrets = SecretsKey(self, "Secrets") if settings.seals_secrets else None
        self._at_rest = StorageKey(self, "AtRest") if settings.owns_key else None
        self._key = None if self._at_rest is None else self._at_rest.key
        self._storage = Storage(self, "Storage", key=self._key, has_archive=settings.has_archive)
        self._messaging = Messaging(self, "Messaging", name=self._name, key=self._key)
        self._rights = Rights(
            storage=self._storage,
            messaging=self._messaging,
            default_bus_arn=default_bus_arn(self) if settings.publishes else None,
        )
        parts = Parts(code, settings, self._key, self._name)
        self._group_functions = {
            name: GroupFunction(self, name, group, self._group_modules[name], parts)
            for name, group in self._groups.items()
        }
        workers = [self._worker(), self._worker_single()]
        others = [self._events(), self._sweeper()]
        handler = self._function(resources.API, self._rights.of_api())
        run_tasks = [*workers, handler]
        grouped = [one.made for one in self._group_functions.values()]
        self._made = [*run_tasks, *others, *grouped]
        role = self._tasks_role(run_tasks, [*others, *grouped])
        network = self._runtime.network
        groups = () if network is None else network.security_groups
        self._tasks = Tasks([*(made.role for made in run_tasks), role.role], groups)
        self._api = Api(self, "Api", function=handler.invoked, settings=settings, key=self._key)
        if settings.has_forms:
            for made in run_tasks:
                made.function.add_environment(resources.ENV_FORMS_URL, self._api.url)
        self._watch()
        self._outputs(role, run_tasks)

    def _worker(self) -> HoldfastFunction:
        """Create the worker. Starts may use a third of its concurrency, running executions the
        rest.
        """
        messaging = self._messaging
        rights = self._rights.of_worker(messaging.work, messaging.starts)
        worker = self._function(resources.WORKER, rights)
        worker.consume("Source", messaging.work, resources.WORK, self._settings.work_batch)
        worker.consume("Starts", messaging.starts, resources.STARTS, self._settings.work_batch)
        return worker

    def _worker_single(self) -> HoldfastFunction:
        queue, single = self._messaging.single, resources.SINGLE
        worker = self._function(resources.WORKER_SINGLE, self._rights.of_worker(queue))
        worker.consume("Source", queue, single, single.batch_size)
        return worker

    def _events(self) -> HoldfastFunction:
        handler = self._function(
            resources.EVENTS,
            self._rights.of_events(),
            # Both queues contain whole events. The queue of the rule has the events that never
            # reached the function, and this one has those for which every invocation has failed.
            failed_events=self._messaging.events_dead,
        )
        wake_by_events(self, handler, self._messaging)
        return handler

    def _sweeper(self) -> HoldfastFunction:
        sweeper = self._function(
            resources.SWEEPER,
            self._rights.of_sweeper(),
            failed_events=self._messaging.sweeper_dead,
        )
        wake_each_minute(self, sweeper, self._messaging)
        return sweeper

    def _tasks_role(
        self, run_tasks: list[HoldfastFunction], others: list[HoldfastFunction]
    ) -> TasksRole:
        storage, messaging = self._storage, self._messaging
        tables = [storage.executions.table_arn, storage.mail.table_arn]
        queues = [*messaging.queues.values(), *messaging.dead_letters.values()]
        functions = [made.function.function_arn for made in (*run_tasks, *others)]
        keys = [key.arn for key in (self._secrets, self._at_rest) if key is not None]
        role = TasksRole(
            self,
            "Tasks",
            callers=[made.role for made in run_tasks],
            policy_arns=self._settings.task_policies,
            barred={
                "dynamodb": [*tables, storage.list_arn],
                "s3": [
                    arn
                    for bucket in storage.buckets
                    for arn in (bucket.bucket_arn, bucket.arn_for_objects("*"))
                ],
                "sqs": [queue.queue_arn for queue in queues],
                "secretsmanager": [storage.secret_arn],
                # Only the API gateway may invoke these functions. The function of the API relies on
                # the identity of the caller in its event, which another caller could invent.
                "lambda": [*functions, *(f"{arn}:*" for arn in functions)],
                **({"kms": keys} if keys else {}),
            },
        )
        for made in run_tasks:
            made.function.add_environment(resources.ENV_TASKS_ROLE, role.arn)
        return role

    def _function(
        self,
        shape: resources.LambdaFunction,
        rights: list[iam.PolicyStatement],
        failed_events: sqs.IQueue | None = None,
    ) -> HoldfastFunction:
        runtime = self._runtime if shape in _RUN_TASKS else TaskRuntime()
        made = HoldfastFunction(
            self,
            "".join(word.capitalize() for word in shape.name.split("-")) + "Function",
            shape=shape,
            code=self._code,
            settings=self._settings,
            key=self._key,
            environment=self._environment(shape),
            rights=[*rights, *self._key_rights(shape), *self._group_rights(shape)],
            runtime=runtime,
            failed_events=failed_events,
        )
        acknowledge_function(made, self._storage.buckets)
        if runtime.network is not None:
            acknowledge_network(made)
        return made

    def _key_rights(self, shape: resources.LambdaFunction) -> list[iam.PolicyStatement]:
        rights = [] if self._at_rest is None else [self._at_rest.rights()]
        if self._secrets is not None and shape in _SEAL:
            rights.append(self._secrets.rights(may_open=shape in _WORKERS))
        return rights

    def _group_rights(self, shape: resources.LambdaFunction) -> list[iam.PolicyStatement]:
        arns = [one.arn for one in self._group_functions.values()]
        if not arns or shape not in _RUN_TASKS:
            return []
        return [allow("lambda:InvokeFunction", on=arns)]

    def _environment(self, shape: resources.LambdaFunction) -> dict[str, str]:
        storage, messaging = self._storage, self._messaging
        names = {
            **self._settings.environment,
            resources.ENV_EXECUTIONS_TABLE: storage.executions.table_name,
            resources.ENV_MAIL_TABLE: storage.mail.table_name,
            resources.ENV_BLOBS_BUCKET: storage.blobs.bucket_name,
            resources.ENV_WORK_QUEUE_URL: messaging.work.queue_url,
            resources.ENV_SINGLE_QUEUE_URL: messaging.single.queue_url,
            resources.ENV_STARTS_QUEUE_URL: messaging.starts.queue_url,
            resources.ENV_MODULES: ",".join(self._settings.modules),
            resources.ENV_STACK: self._name,
        }
        if storage.archive is not None and shape is not resources.EVENTS:
            names[resources.ENV_ARCHIVE_BUCKET] = storage.archive.bucket_name
        if shape is resources.SWEEPER:
            names[resources.ENV_WORK_DLQ_URL] = messaging.work_dead.queue_url
            names[resources.ENV_SINGLE_DLQ_URL] = messaging.single_dead.queue_url
            names[resources.ENV_STARTS_DLQ_URL] = messaging.starts_dead.queue_url
            names[resources.ENV_STARTS_PER_SECOND] = str(self._settings.starts_per_second)
        if self._secrets is not None and shape in _SEAL:
            names[resources.ENV_SECRETS_KEY] = self._secrets.arn
        if shape in _RUN_TASKS:
            names[resources.ENV_SECRET_ID] = storage.secret_arn
            names[resources.ENV_ACCOUNT] = Stack.of(self).account
        if shape in _RUN_TASKS and self._group_functions:
            names[resources.ENV_GROUP_FUNCTIONS] = ",".join(
                f"{name}={one.arn}" for name, one in self._group_functions.items()
            )
        if shape in _RUN_TASKS and not self._settings.limits_payloads:
            names[resources.ENV_PAYLOAD_LIMIT] = "off"
        if shape in _RUN_TASKS and self._settings.limits_histories:
            names[resources.ENV_HISTORY_LIMIT] = "on"
        if shape in _WORKERS and self._settings.tells_status:
            names[resources.ENV_STATUS_EVENTS] = "on"
        if shape in _WORKERS and self._settings.tells_questions:
            names[resources.ENV_QUESTION_EVENTS] = "on"
        return names

    def _watch(self) -> None:
        queues, dead_letters = self._messaging.queues, self._messaging.dead_letters
        functions = {made.name: made.function for made in self._made}
        billed = Billed(
            settings=self._settings,
            functions={shape.name: functions[shape.name] for shape in _RUN_TASKS},
            executions=self._storage.executions,
            inbox=self._storage.mail,
            queues={name: queues[name] for name in ("Work", "Starts")},
        )
        Alarms(
            self,
            "Alarms",
            name=self._name,
            queues=queues,
            dead_letters=dead_letters,
            topic_arn=self._settings.alarm_topic_arn,
            bounds=self._settings.alarm_bounds,
            billed=billed,
            groups={name: one.made.function for name, one in self._group_functions.items()},
        )
        log_groups = {made.name: made.log_group for made in self._made}
        groups = {f"group-{name}": one.made.function for name, one in self._group_functions.items()}
        whole = replace(billed, groups=groups)
        watched = Watched(queues, dead_letters, functions, log_groups, whole)
        Dashboard(self, "Dashboard", name=self._name, watched=watched)

    def _outputs(self, tasks: TasksRole, run_tasks: list[HoldfastFunction]) -> None:
        self._output("ApiUrl", self._api.url)
        self._output("BusName", self._messaging.bus.event_bus_name)
        self._output("ExecutionsTable", self._storage.executions.table_name)
        self._output("MailTable", self._storage.mail.table_name)
        self._output("BlobsBucket", self._storage.blobs.bucket_name)
        if self._storage.archive is not None:
            self._output("ArchiveBucket", self._storage.archive.bucket_name)
        self._output("SigningSecret", self._storage.secret_arn)
        self._output("EventsDeadLetters", self._messaging.events_dead.queue_url)
        if self._secrets is not None:
            self._output("SecretsKeyArn", self._secrets.arn)
        if self._at_rest is not None:
            self._output("StorageKeyArn", self._at_rest.arn)
        # The trust policies of roles for tasks must name these roles. The first calls services for
        # state machines, and the others run the code of Python tasks.
        self._output("TasksRole", tasks.arn)
        roles = ",".join(made.role.role_arn for made in run_tasks)
        self._output("PythonTaskRoles", roles)
        for one in self._group_functions.values():
            self._output(f"{one.made.node.id.removesuffix('Function')}Role", one.made.role.role_arn)

    def _output(self, name: str, value: str) -> None:
        output = CfnOutput(self, name, value=value)
        # Name the output without CDK's hash. Otherwise neither `holdfast --stack` nor the user
        # could find it.
        output.override_logical_id(output_name(self.node.id, name))


def _require_snap_start(python: str) -> bool:
    if python == _WITHOUT_SNAP_START:
        raise Unfit("snap_start", True, "a `python` of 3.12 or newer, which Lambda can snapshot")
    return True


def _topic_arn(alarms: sns.ITopic | None) -> str | None:
    """Return the ARN of the topic of the alarms. Raises Unfit for another value: an author may
    write `alarms=True`.
    """
    if alarms is not None and not hasattr(alarms, "topic_arn"):
        expected = "an SNS topic, or None: alarms then show on the console; see `alarm_bounds`"
        raise Unfit("alarms", alarms, expected)
    return None if alarms is None else alarms.topic_arn
