"""The stack's own KMS keys: one encrypts secrets, one encrypts stored data."""

from __future__ import annotations

from typing import Final

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from .compute import allow

# The rights that a role needs to use the key through DynamoDB, which acts on behalf of the function
# (DynamoDB developer guide, "Encryption at rest usage notes"). SQS, S3 and Secrets Manager need
# fewer. kms:CreateGrant is left out: only the role that sets the key of a table needs it, and CDK
# grants it to that role only. This was not tried on AWS.
_IN_SOMEBODYS_NAME: Final = (
    *("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo"),
    *("kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:DescribeKey"),
)


class SecretsKey(Construct):
    """Encrypts the values that workflows mark as secret. Without this key they can never be read
    again.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.arn = _key(self, "Seals the secrets of Holdfast's workflows").key_arn

    def rights(self, *, may_open: bool) -> iam.PolicyStatement:
        """Return the rights on the key. Functions that receive a secret encrypt it; only those that
        run tasks decrypt one.
        """
        actions = ("kms:Encrypt", "kms:Decrypt") if may_open else ("kms:Encrypt",)
        return allow(*actions, on=[self.arn])


class StorageKey(Construct):
    """Encrypts tables, bucket, queues, logs and the signing secret, instead of AWS's own keys."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.key = _key(self, "Encrypts what Holdfast stores")
        self.arn = self.key.key_arn
        self._let_rules_send()
        self._let_logs_write()

    def rights(self) -> iam.PolicyStatement:
        return allow(*_IN_SOMEBODYS_NAME, on=[self.arn])

    def _let_rules_send(self) -> None:
        """Allow EventBridge's rules to use the key: a rule puts an event that it could not deliver
        into a dead-letter queue.
        """
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )

    def _let_logs_write(self) -> None:
        stack = Stack.of(self)
        groups = stack.format_arn(service="logs", resource="*")
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
                actions=[*_IN_SOMEBODYS_NAME],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )


def _key(scope: Construct, description: str) -> kms.Key:
    return kms.Key(
        scope,
        "Key",
        description=description,
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN,
    )
