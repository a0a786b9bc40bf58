"""The names of services, errors and fields in AWS's Java SDK, which Step Functions uses.

A definition has `aws-sdk:cognitoidentityprovider`, botocore has `cognito-idp`. An error is called
`DynamoDb.ProvisionedThroughputExceededException` after the Java classes, a field `DbInstanceArn`
after the Java getters. All of it can be computed from the service's own model by a few rules.
Sources: AWS docs, "Using AWS SDK service integrations"; the published class names of the Java SDK.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

#: The services whose name in a Resource differs from botocore's name without hyphens, with both
#: names.
_BOTOCORE_NAMES: Final = {
    "applicationdiscovery": "discovery",
    "cloudwatchlogs": "logs",
    "cognitoidentityprovider": "cognito-idp",
    "costandusagereport": "cur",
    "costexplorer": "ce",
    "databasemigration": "dms",
    "directory": "ds",
    "directoryservicedata": "ds-data",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "elasticmapreduce": "emr",
    "elasticsearch": "es",
    "eventbridge": "events",
    "iotdataplane": "iot-data",
    "iotjobsdataplane": "iot-jobs-data",
    "lexmodelbuilding": "lex-models",
    "lexmodelsv2": "lexv2-models",
    "lexruntime": "lex-runtime",
    "lexruntimev2": "lexv2-runtime",
    "marketplaceentitlement": "marketplace-entitlement",
    "marketplacemetering": "meteringmarketplace",
    "migrationhub": "mgh",
    "pinpointsmsvoice": "sms-voice",
    "serverlessapplicationrepository": "serverlessrepo",
    "sfn": "stepfunctions",
    "simpledb": "sdb",
    "states": "stepfunctions",
}


def botocore_name(service: str, available: tuple[str, ...]) -> str | None:
    """Return botocore's name: "sfn" gives "stepfunctions", "s3control" stays; None for an unknown
    service.
    """
    named = _BOTOCORE_NAMES.get(service)
    if named is not None:
        return named
    return _without_hyphens(available).get(service)


@cache
def resource_name(botocore: str) -> str:
    """Return the name in a Resource: "events" gives "eventbridge", "s3" stays."""
    named = {found: name for name, found in _BOTOCORE_NAMES.items() if name != "states"}
    return named.get(botocore, botocore.replace("-", ""))


@cache
def _without_hyphens(available: tuple[str, ...]) -> dict[str, str]:
    return {name.replace("-", ""): name for name in available}


@cache
def class_name(service_id: str) -> str:
    """Return the name of the Java client from a model's serviceId: "DynamoDB" gives "DynamoDb"."""
    bare = service_id.removeprefix("Amazon").removeprefix("AWS").strip()
    return "".join(map(str.capitalize, _words(bare.removesuffix(" Service"))))


@cache
def exception_name(shape: str) -> str:
    """Return the name of the Java exception: "NoSuchKey" gives "NoSuchKeyException"."""
    bare = re.sub("(Exception|Fault)$", "", shape)
    return "".join(map(str.capitalize, _words(bare))) + "Exception"


def _words(name: str) -> list[str]:
    spaced = re.sub("[^A-Za-z0-9]+", " ", name)
    # A version is a word: TESTv4, TestV4.
    spaced = re.sub(r"([^a-z]{2,})v(\d+)", r"\1 v\2 ", spaced)
    spaced = re.sub(r"([^A-Z]{2,})V(\d+)", r"\1 V\2 ", spaced)
    spaced = re.sub("(?<=[a-z])(?=[A-Z][a-zA-Z0-9])", " ", spaced)
    spaced = re.sub("([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    spaced = re.sub("([0-9])([a-zA-Z])", r"\1 \2", spaced)
    return spaced.split()


@cache
def sdk_field(member: str) -> str:
    """Return the Java property of a model's member, with a capital: "DBName" gives "DbName"."""
    end = 1
    while end < len(member) and member[end].isupper() and not member[end + 1 : end + 2].islower():
        end += 1
    return member[0].upper() + member[1:end].lower() + member[end:]


def plain_field(member: str) -> str:
    """Return the member's name in the optimised integrations: "jobName" gives "JobName",
    "MD5OfBody" stays.
    """
    return member[0].upper() + member[1:]


def operation_name(action: str) -> str:
    """Return the operation's name: "putItem" gives "PutItem"."""
    return action[:1].upper() + action[1:]
