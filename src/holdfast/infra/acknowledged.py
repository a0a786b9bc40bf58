"""Findings of cdk-nag's AwsSolutions checks in the stack, each with the reason why it is accepted.

`tests/infra/synth.py` fails on any finding that is not listed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Acknowledgment, CfnElement, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

_NO_ACCESS_LOG: Final = (
    "The functions alone read and write the bucket, by roles that are listed; who needs a record "
    "of reads has CloudTrail's data events, which are the account's to switch on."
)
_NO_ROTATION: Final = (
    "A rotation keeps the key before the new one beside it in the secret, as long as tokens live; "
    "a schedule that writes a new random text would make every open token worthless."
)
_ALL_OBJECTS: Final = (
    "Keys name a tenant and an execution, so they cannot be listed; the bucket is the stack's own "
    "and holds nothing else."
)
_RUNTIME_CHOSEN: Final = (
    "The Python version is a setting, `python` in cdk.json: the asset's libraries are built for it."
)
_SIGNED_LINK: Final = (
    "The path holds a token that the stack has signed: it opens one question, and expires with it."
)
_NETWORK: Final = "Lambda's rights on network interfaces in a VPC can name no resource."


def acknowledge_storage(buckets: Sequence[s3.Bucket], secret: IConstruct) -> None:
    for bucket in buckets:
        _acknowledge(bucket, "AwsSolutions-S1", _NO_ACCESS_LOG)
    _acknowledge(secret, "AwsSolutions-SMG4", _NO_ROTATION)


def acknowledge_function(function: Construct, buckets: Sequence[s3.Bucket]) -> None:
    """Accept the findings about `function` and its role, which may read or write the objects of the
    buckets.
    """
    for bucket in buckets:
        resource = bucket.node.default_child
        assert isinstance(resource, CfnElement)
        bucket_id = Stack.of(bucket).get_logical_id(resource)
        _acknowledge(function, f"AwsSolutions-IAM5[Resource::<{bucket_id}.Arn>/*]", _ALL_OBJECTS)
    _acknowledge(function, "AwsSolutions-L1", _RUNTIME_CHOSEN)


def acknowledge_network(function: Construct) -> None:
    _acknowledge(function, "AwsSolutions-IAM5[Resource::*]", _NETWORK)


def acknowledge_form(route: Construct) -> None:
    _acknowledge(route, "AwsSolutions-APIG4", _SIGNED_LINK)


def _acknowledge(scope: IConstruct, finding: str, reason: str) -> None:
    Validations.of(scope).acknowledge(Acknowledgment(id=finding, reason=reason))
