"""The role that calls services for state machines, and `Tasks`, to which users give rights for
tasks.

The author of a state machine chooses the calls and their arguments. So the functions must not make
the calls with their own roles: these can read every tenant's history, and the key that signs
tokens. The role has the user's policies, without access to the stack itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast.errors import HoldfastError


class TasksRole(Construct):
    """The role that `callers` may assume. `policy_arns` are managed policies that the user wrote.

    `barred` are services, with the ARNs of the stack's own resources: whatever the policies allow,
    no task can access these with this role. A policy that allows to create or assume other roles,
    or to pass them on, can circumvent that: for example `iam:PassRole` with
    `lambda:CreateFunction`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        callers: Sequence[iam.IRole],
        policy_arns: Sequence[str],
        barred: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(scope, construct_id)
        role = iam.Role(
            self,
            "Role",
            description="The role of the service calls of Holdfast's state machines",
            # The trust policy names each role that may assume this one, so those roles need no
            # policy for that.
            assumed_by=iam.CompositePrincipal(
                *(iam.ArnPrincipal(caller.role_arn) for caller in callers)
            ),
            managed_policies=[
                iam.ManagedPolicy.from_managed_policy_arn(self, f"TaskPolicy{number}", arn)
                for number, arn in enumerate(policy_arns, 1)
            ],
        )
        # Use a separate policy. It names the functions, whose environment names the role, so an
        # inline policy would be a cycle for CloudFormation.
        iam.Policy(
            self,
            "Barred",
            roles=[role],
            statements=[
                iam.PolicyStatement(
                    effect=iam.Effect.DENY, actions=[f"{service}:*"], resources=list(arns)
                )
                for service, arns in barred.items()
            ],
        )
        self.role = role
        self.arn = role.role_arn


@jsii.implements(iam.IPrincipal, ec2.IConnectable)
class Tasks:
    """Receives the rights of tasks: `bucket.grant_read(flows.tasks)`,
    `secret.grant_read(flows.tasks)`.

    A task in Python runs with the role of its function, a service call of a state machine with the
    role for tasks. So a grant goes to each of these roles.
    """

    def __init__(self, roles: Sequence[iam.Role], groups: Sequence[ec2.ISecurityGroup]) -> None:
        self._roles = tuple(roles)
        self._groups = tuple(groups)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        return self

    @property
    def assume_role_action(self) -> str:
        return self._roles[0].assume_role_action

    @property
    def principal_account(self) -> str | None:
        return self._roles[0].principal_account

    @property
    def policy_fragment(self) -> iam.PrincipalPolicyFragment:
        return iam.PrincipalPolicyFragment({"AWS": [role.role_arn for role in self._roles]})

    def add_to_principal_policy(
        self, statement: iam.PolicyStatement
    ) -> iam.AddToPrincipalPolicyResult:
        for role in self._roles:
            role.add_to_principal_policy(statement)
        return iam.AddToPrincipalPolicyResult(
            statement_added=True, policy_dependable=self._roles[0]
        )

    @property
    def connections(self) -> ec2.Connections:
        """The connections of tasks: `database.connections.allow_default_port_from(flows.tasks)`."""
        if not self._groups:
            raise HoldfastError(
                "HF408",
                "the functions that run tasks are in no VPC, so nothing there can let them in",
                help="give `vpc=` to Holdfast(...), or to Group(...)",
            )
        return ec2.Connections(security_groups=list(self._groups))
