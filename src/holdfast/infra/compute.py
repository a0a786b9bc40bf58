"""One Lambda function, with its log group and its own role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from holdfast import resources

from .settings import Settings

#: The rights that a function in a VPC needs (Lambda developer guide, "Giving Lambda functions
#: access to resources in an Amazon VPC"). None of them can be limited to a resource.
_NETWORK_RIGHTS: Final = (
    *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
    *("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses"),
    "ec2:UnassignPrivateIpAddresses",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The VPC of the functions that run tasks, and their security groups."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection | None
    security_groups: tuple[ec2.ISecurityGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRuntime:
    """The user's settings for the functions that run tasks; no other function has them."""

    policy_arns: tuple[str, ...] = ()
    layers: tuple[lambda_.ILayerVersion, ...] = ()
    snap_start: bool = False
    network: Network | None = None


class HoldfastFunction(Construct):
    """A Lambda function with its log group and its role. `rights` is all that the role may do,
    apart from writing its own log.

    The code in the function also has the rights of the managed policies in `runtime`. `key`
    encrypts its log; None: CloudWatch's own key does.

    CDK's own grants are switched off for the function, because they allow more than the code calls.
    The grants of users go to `role`, through `Tasks`.
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
        runtime: TaskRuntime,
        failed_events: sqs.IQueue | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._shape = shape
        sized = settings.functions[shape.name]
        network = runtime.network
        self.name = shape.name
        self.log_group = log_group(self, "Log", key, settings)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            managed_policies=[
                iam.ManagedPolicy.from_managed_policy_arn(self, f"TaskPolicy{number}", arn)
                for number, arn in enumerate(runtime.policy_arns, 1)
            ],
            # Use inline policies. The role is then complete before CloudFormation creates an event
            # source mapping, which needs the rights.
            inline_policies={
                "Rights": iam.PolicyDocument(
                    statements=[
                        allow(
                            "logs:CreateLogStream",
                            "logs:PutLogEvents",
                            on=[self.log_group.log_group_arn],
                        ),
                        *([] if network is None else [allow(*_NETWORK_RIGHTS, on=["*"])]),
                        *rights,
                    ]
                )
            },
        )
        self.function = lambda_.Function(
            self,
            "Lambda",
            description=f"Holdfast {shape.name}",
            runtime=lambda_.Runtime(
                f"python{settings.python}",
                lambda_.RuntimeFamily.PYTHON,
                supports_snap_start=runtime.snap_start,
            ),
            snap_start=(
                lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if runtime.snap_start else None
            ),
            architecture=_architecture(settings),
            code=code,
            handler=f"functions.{shape.module}.app.handler",
            timeout=Duration.seconds(sized.timeout_seconds),
            memory_size=sized.memory_mb,
            reserved_concurrent_executions=(
                (sized.reserved_concurrency or None) if settings.caps_concurrency else None
            ),
            # Executions go through SQS in loops by design. Without this setting Lambda would stop
            # such a loop after 16 rounds.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            environment=dict(environment),
            log_group=self.log_group,
            role=self.role.without_policy_updates(),
            dead_letter_queue=failed_events,
            layers=list(runtime.layers),
            vpc=None if network is None else network.vpc,
            vpc_subnets=None if network is None else network.subnets,
            security_groups=None if network is None else list(network.security_groups),
        )
        #: The event sources and the API invoke this alias and not the function, because only
        #: published versions have a snapshot. The alias points to the newest version. CDK deletes
        #: the version before it, whose snapshot would cost as much again.
        self.invoked: lambda_.IFunction = (
            lambda_.Alias(self, "Live", alias_name="live", version=self.function.current_version)
            if runtime.snap_start
            else self.function
        )

    def consume(
        self, source_id: str, queue: sqs.IQueue, shape: resources.Queue, batch_size: int
    ) -> None:
        """Invoke the function with messages from `queue`. The role already has the rights for
        this.
        """
        lambda_.EventSourceMapping(
            self,
            source_id,
            target=self.invoked,
            event_source_arn=queue.queue_arn,
            batch_size=batch_size,
            # Without this limit Lambda would receive messages for which the function has no
            # capacity. Each receipt would count as a delivery, and after several the message would
            # become a dead letter.
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
    # Set the number of days on CloudFormation's own resource, because CDK's construct accepts only
    # some numbers.
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
