"""The functions of task groups: each has its own role, size, network and environment.

Their roles have no right to the tables, queues, bucket and keys of Holdfast. A worker invokes such
a function with one attempt, and the result of the function is the attempt's result.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from holdfast import resources
from holdfast.api.registry import Registry
from holdfast.errors import HoldfastError

from .acknowledged import acknowledge_function, acknowledge_network
from .compute import HoldfastFunction, Network, TaskRuntime
from .settings import Settings, require_variables
from .tasks import Tasks
from .unfit import Unfit

_MODULE: Final = "group"
#: The bounds that Lambda sets to each value (Lambda quotas).
_BOUNDS: Final = {
    "memory_mb": (128, 10_240),
    "timeout_seconds": (1, 900),
    "concurrency": (1, 10_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The settings of one group's function. docs/reference/construct.md describes each field."""

    memory_mb: int = 512
    timeout_seconds: int = 900
    concurrency: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, secretsmanager.ISecret] = field(default_factory=dict)
    task_policies: Sequence[iam.IManagedPolicy] = ()
    layers: Sequence[lambda_.ILayerVersion] = ()
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] = ()


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group of tasks in the project's code: the modules of its tasks, the longest time-out among
    the tasks, and the task that has it.
    """

    modules: tuple[str, ...]
    longest: tuple[timedelta, str] | None = None


def find_groups(modules: Sequence[str]) -> dict[str, FoundGroup]:
    """Return the groups of the tasks in the modules, which can be imported."""
    registry = Registry.from_modules(modules)
    found = {
        name: FoundGroup(own_modules) for name, own_modules in registry.modules_of_groups().items()
    }
    for task in (*registry.tasks.values(), *registry.namesakes.values()):
        if task.group is not None and task.timeout is not None:
            group = found[task.group]
            longest = max(group.longest or (timedelta(), ""), (task.timeout, task.name))
            found[task.group] = replace(group, longest=longest)
    return found


def require_groups(
    wanted: Mapping[str, Group], found: Mapping[str, FoundGroup], path: str
) -> dict[str, Group]:
    """Return the settings of every group that has tasks; a group that is not in `wanted` gets the
    defaults.

    Raises HoldfastError: HF424 for a group without tasks, HF425 for a task that may run longer than
    its group's function. Raises Unfit for an invalid setting.
    """
    for name, group in wanted.items():
        if name not in found:
            raise unknown_group(name, found, path)
        _require_fit(name, group)
    all_groups = {name: wanted.get(name, Group()) for name in found}
    for name, group in all_groups.items():
        _require_time(name, group, found[name], path)
    return all_groups


def unknown_group(name: str, known: Iterable[str], path: str) -> HoldfastError:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1)
    there = f"the groups with tasks are: {', '.join(names)}" if names else "no task has a group"
    return HoldfastError(
        "HF424",
        f"Holdfast {path}: the group {name!r} has no task; {there}",
        help=f"write {near[0]!r}" if near else f'@task(group="{name}") in one of the modules',
    )


def group_shapes(groups: Mapping[str, Group]) -> dict[str, resources.LambdaFunction]:
    """Return the function of each group, by the function's name."""
    shapes = (
        resources.LambdaFunction(
            f"group-{name}",
            _MODULE,
            timeout_seconds=group.timeout_seconds,
            memory_mb=group.memory_mb,
            reserved_concurrency=group.concurrency or 0,
        )
        for name, group in groups.items()
    )
    return {shape.name: shape for shape in shapes}


@dataclass(frozen=True, slots=True)
class Parts:
    """The resources that the functions of all groups share. `name` is the name of the Holdfast
    stack; `key` encrypts the logs.
    """

    code: lambda_.Code
    settings: Settings
    key: kms.IKey | None
    name: str


class GroupFunction:
    """The function of one group. `tasks` receives the grants of users."""

    def __init__(
        self, scope: Construct, name: str, group: Group, modules: Sequence[str], parts: Parts
    ) -> None:
        shape = parts.settings.functions[f"group-{name}"]
        construct_id = "".join(word.capitalize() for word in shape.name.split("-"))
        network = network_of(scope, group, f"{construct_id}Tasks", f"groups.{name}.vpc")
        secrets = {variable: secret.secret_arn for variable, secret in group.secrets.items()}
        policies = tuple(policy.managed_policy_arn for policy in group.task_policies)
        self.made = HoldfastFunction(
            scope,
            f"{construct_id}Function",
            shape=shape,
            code=parts.code,
            settings=parts.settings,
            key=parts.key,
            environment={
                **group.environment,
                **secrets,
                resources.ENV_MODULES: ",".join(modules),
                resources.ENV_STACK: parts.name,
            },
            rights=[],
            runtime=TaskRuntime(policy_arns=policies, layers=tuple(group.layers), network=network),
        )
        acknowledge_function(self.made, ())
        if network is not None:
            acknowledge_network(self.made)
        self.tasks = Tasks([self.made.role], () if network is None else network.security_groups)
        for secret in group.secrets.values():
            secret.grant_read(self.tasks)

    @property
    def arn(self) -> str:
        return self.made.function.function_arn


def network_of(scope: Construct, given: Group, prefix: str, key: str) -> Network | None:
    """Return the network of a group, with its own security group if none is given. Raises Unfit for
    subnets or security groups without a VPC.
    """
    if given.vpc is None:
        if given.vpc_subnets is not None or given.security_groups:
            other = "vpc_subnets" if given.vpc_subnets is not None else "security_groups"
            raise Unfit(key, None, f"the VPC, since `{other}` is given")
        return None
    made = given.security_groups or [
        ec2.SecurityGroup(scope, f"{prefix}Group", vpc=given.vpc, description="Holdfast: tasks")
    ]
    return Network(vpc=given.vpc, subnets=given.vpc_subnets, security_groups=tuple(made))


def _require_fit(name: str, group: Group) -> None:
    for setting, (least, most) in _BOUNDS.items():
        found = getattr(group, setting)
        if found is None:
            continue
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            expected = f"a whole number from {least} to {most}"
            raise Unfit(f"groups.{name}.{setting}", found, expected)
    require_variables(f"groups.{name}.environment", {**group.environment, **group.secrets})


def _require_time(name: str, group: Group, found: FoundGroup, path: str) -> None:
    if found.longest is None:
        return
    longest, task = found.longest
    if longest > timedelta(seconds=group.timeout_seconds):
        raise HoldfastError(
            "HF425",
            f"Holdfast {path}: the task {task} may run for {longest.total_seconds():.0f} seconds, "
            f"and the function of its group {name!r} ends after {group.timeout_seconds}",
            help=f"raise `timeout_seconds` of the group, or lower `timeout` of {task}",
        )
