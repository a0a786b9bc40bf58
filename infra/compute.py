"""One Lambda function with its log group and a role of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources

from .settings import Settings


class HoldfastFunction(Construct):
    """A Lambda function with its log group and its role. `rights` is all that the role may do,
    besides writing its own log.

    `policy_arns` are managed policies that the user wrote for tasks: code in the function has their
    rights. `key` encrypts its log; None: CloudWatch's own.

    CDK's own grants are switched off for the role: they are wider than the calls of the code.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        shape: resources.LambdaFunction,
        code: lambda_.Code,
        settings: Settings,
        key: kms.IKey | None,
        environment: Mapping[str, str],
        rights: Sequence[iam.PolicyStatement],
        policy_arns: Sequence[str] = (),
        failed_events: sqs.IQueue | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._shape = shape
        sized = settings.functions[shape.name]
        self.log_group = log_group(self, "Log", key, settings)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            managed_policies=[
                iam.ManagedPolicy.from_managed_policy_arn(self, f"TaskPolicy{number}", arn)
                for number, arn in enumerate(policy_arns, 1)
            ],
            # Inline, so that the role is complete before an event source mapping is made with it.
            inline_policies={
                "Rights": iam.PolicyDocument(
                    statements=[
                        allow(
                            "logs:CreateLogStream",
                            "logs:PutLogEvents",
                            on=[self.log_group.log_group_arn],
                        ),
                        *rights,
                    ]
                )
            },
        )
        self.function = lambda_.Function(
            self,
            "Lambda",
            description=f"Holdfast {shape.name}",
            runtime=lambda_.Runtime(f"python{settings.python}", lambda_.RuntimeFamily.PYTHON),
            architecture=_architecture(settings),
            code=code,
            handler=f"functions.{shape.module}.app.handler",
            timeout=Duration.seconds(sized.timeout_seconds),
            memory_size=sized.memory_mb,
            reserved_concurrent_executions=(
                sized.reserved_concurrency if settings.caps_concurrency else None
            ),
            # Executions are loops through SQS by design; Lambda would stop them at 16 rounds.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            environment=dict(environment),
            log_group=self.log_group,
            role=self.role.without_policy_updates(),
            dead_letter_queue=failed_events,
        )

    def consume(
        self, source_id: str, queue: sqs.IQueue, shape: resources.Queue, batch_size: int
    ) -> None:
        """Feed the function from `queue`; the rights to do so stand among the role's."""
        lambda_.EventSourceMapping(
            self,
            source_id,
            target=self.function,
            event_source_arn=queue.queue_arn,
            batch_size=batch_size,
            # Without this cap the poller would take messages that the concurrency then throttles,
            # and each throttle counts as a delivery on the way to the dead letters.
            max_concurrency=self._settings.concurrency(self._shape, shape),
            report_batch_item_failures=True,
        )


def allow(*actions: str, on: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(on))


def log_group(
    scope: Construct, construct_id: str, key: kms.IKey | None, settings: Settings
) -> logs.LogGroup:
    made = logs.LogGroup(
        scope, construct_id, encryption_key=key, removal_policy=RemovalPolicy.DESTROY
    )
    # CDK's construct accepts only some numbers of days, each as a name; the setting may be any
    # number.
    found = made.node.default_child
    assert isinstance(found, logs.CfnLogGroup)
    found.retention_in_days = settings.log_retention_days
    return made


def _architecture(settings: Settings) -> lambda_.Architecture:
    match settings.architecture:
        case "arm64":
            return lambda_.Architecture.ARM_64
        case "x86_64":
            return lambda_.Architecture.X86_64
