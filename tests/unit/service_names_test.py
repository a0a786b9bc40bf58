"""Services, errors and fields are called as the Java SDK calls them."""

from __future__ import annotations

import pytest
from botocore.session import Session

from holdfast import aws
from holdfast.service_names import (
    botocore_name,
    class_name,
    exception_name,
    plain_field,
    sdk_field,
)

AVAILABLE = tuple(Session().get_available_services())


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("sfn", "stepfunctions"),
        ("dynamodb", "dynamodb"),
        ("s3control", "s3control"),
        ("eventbridge", "events"),
        ("cloudwatchlogs", "logs"),
        ("sesv2", "sesv2"),
        ("cognitoidentityprovider", "cognito-idp"),
        ("bedrockruntime", "bedrock-runtime"),
        ("acmpca", "acm-pca"),
        ("elasticloadbalancingv2", "elbv2"),
        ("nobody", None),
    ],
)
def test_a_service_is_found_by_its_name_in_a_resource(service: str, name: str | None) -> None:
    assert botocore_name(service, AVAILABLE) == name
    assert name is None or name in AVAILABLE


@pytest.mark.parametrize(
    ("service_id", "name"),
    [
        ("DynamoDB", "DynamoDb"),
        ("S3", "S3"),
        ("SFN", "Sfn"),
        ("EC2", "Ec2"),
        ("SESv2", "SesV2"),
        ("ACM PCA", "AcmPca"),
        ("CloudWatch Logs", "CloudWatchLogs"),
        ("Secrets Manager", "SecretsManager"),
        ("IoT Data Plane", "IotDataPlane"),
        ("Elastic Load Balancing v2", "ElasticLoadBalancingV2"),
        ("Config Service", "Config"),
        ("FSx", "FSx"),
    ],
)
def test_a_client_class_is_named_after_the_service_id(service_id: str, name: str) -> None:
    assert class_name(service_id) == name


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("NoSuchKey", "NoSuchKeyException"),
        ("ResourceNotFoundException", "ResourceNotFoundException"),
        ("DBInstanceNotFoundFault", "DbInstanceNotFoundException"),
        ("KMSInternalException", "KmsInternalException"),
        ("StateMachineDoesNotExist", "StateMachineDoesNotExistException"),
    ],
)
def test_every_exception_ends_in_exception(shape: str, name: str) -> None:
    assert exception_name(shape) == name


@pytest.mark.parametrize(
    ("member", "field"),
    [
        ("stateMachineArn", "StateMachineArn"),
        ("DBInstanceIdentifier", "DbInstanceIdentifier"),
        ("ETag", "ETag"),
        ("ChecksumCRC32", "ChecksumCRC32"),
        ("SSEKMSKeyId", "SsekmsKeyId"),
        ("MD5OfMessageBody", "Md5OfMessageBody"),
        ("VPCId", "VpcId"),
    ],
)
def test_a_field_of_the_sdk_is_the_getter_with_a_capital(member: str, field: str) -> None:
    assert sdk_field(member) == field


def test_an_optimised_field_keeps_the_services_spelling() -> None:
    assert plain_field("jobName") == "JobName"
    assert plain_field("MD5OfMessageBody") == "MD5OfMessageBody"


@pytest.mark.parametrize("name", ["_s3", "__wrapped__", "host", "store"])
def test_a_private_name_and_a_module_of_the_package_are_no_services(name: str) -> None:
    """Python itself looks for private names, and `import` for modules."""
    with pytest.raises(AttributeError, match=f"module 'holdfast.aws' has no attribute '{name}'"):
        aws.__getattr__(name)
