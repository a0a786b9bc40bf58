"""The role that calls services for state machines: the user's policies, without the stack itself.

The author of a state machine chooses the calls and their arguments. So it is not the functions
that call: their roles read every tenant's history, and the key that signs tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct


class TasksRole(Construct):
    """`callers` may take it on; `policy_arns` are managed policies that the user wrote.

    `barred`: services, with the ARNs of the stack's own resources. Whatever the policies allow, no
    task touches them with this role. One that may make or take on other roles, or give them to
    something else, gets round that: `iam:PassRole` with `lambda:CreateFunction` does.
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
            # Named one by one, they need no right of their own to take it on.
            assumed_by=iam.CompositePrincipal(
                *(iam.ArnPrincipal(caller.role_arn) for caller in callers)
            ),
            managed_policies=[
                iam.ManagedPolicy.from_managed_policy_arn(self, f"TaskPolicy{number}", arn)
                for number, arn in enumerate(policy_arns, 1)
            ],
        )
        # Not inline: it names the functions, whose environment names the role.
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
        self.arn = role.role_arn
