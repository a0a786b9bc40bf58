"""The names of services, errors and fields in AWS's Java SDK, which Step Functions uses.

A definition has `aws-sdk:cognitoidentityprovider`, botocore has `cognito-idp`. An error is called
`DynamoDb.ProvisionedThroughputExceededException` after the Java classes, a field `DbInstanceArn`
after the Java getters. All of it can be computed from the service's own model by a few rules.
Sources: AWS docs, "Using AWS SDK service integrations"; the published class names of the Java SDK.

The optimised integrations have a few names of their own. Source: AWS docs, "Integrating optimized
services with Step Functions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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

#: The services for which the first word of an optimised Resource differs from botocore's name, with
#: both names.
_OPTIMISED_SERVICES: Final = {
    "elasticmapreduce": "emr",
    "bedrock": "bedrock-runtime",
    "states": "stepfunctions",
    # botocore has this action of Bedrock in another service than the other actions, which are calls
    # of models.
    "bedrock:createModelCustomizationJob": "bedrock",
}
#: For actions to which Step Functions gives a name of its own, the operation of the service.
_OPTIMISED_OPERATIONS: Final = {
    "elasticmapreduce:addStep": "AddJobFlowSteps",
    "elasticmapreduce:cancelStep": "CancelSteps",
    "elasticmapreduce:createCluster": "RunJobFlow",
    "elasticmapreduce:modifyInstanceFleetByName": "ModifyInstanceFleet",
    "elasticmapreduce:modifyInstanceGroupByName": "ModifyInstanceGroups",
    "elasticmapreduce:setClusterTerminationProtection": "SetTerminationProtection",
    "elasticmapreduce:terminateCluster": "TerminateJobFlows",
}


@dataclass(frozen=True, slots=True)
class RenamedField:
    """A field that Step Functions calls `name`, and the service `member`. `is_list`: the service
    has a list, and Step Functions its only item.
    """

    name: str
    member: str
    is_list: bool = False


#: The fields of requests whose name or form differs from that in the model of the service. Source:
#: AWS docs, "Create and manage Amazon EMR clusters with Step Functions".
RENAMED_FIELDS: Final[Mapping[str, tuple[RenamedField, ...]]] = {
    "elasticmapreduce:addStep": (
        RenamedField("ClusterId", "JobFlowId"),
        RenamedField("Step", "Steps", is_list=True),
    ),
    "elasticmapreduce:cancelStep": (RenamedField("StepId", "StepIds", is_list=True),),
    "elasticmapreduce:modifyInstanceGroupByName": (
        RenamedField("InstanceGroup", "InstanceGroups", is_list=True),
    ),
    "elasticmapreduce:setClusterTerminationProtection": (
        RenamedField("ClusterId", "JobFlowIds", is_list=True),
    ),
    "elasticmapreduce:terminateCluster": (RenamedField("ClusterId", "JobFlowIds", is_list=True),),
}


def optimised_operation(target: str, operation: str) -> str:
    return _OPTIMISED_OPERATIONS.get(target, operation)


def optimised_service(target: str) -> str:
    """Return botocore's name of the service, without hyphens."""
    family = target.partition(":")[0]
    named = _OPTIMISED_SERVICES.get(target) or _OPTIMISED_SERVICES.get(family, family)
    return named.replace("-", "")


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


def member_of(members: Iterable[str], field: str, name_of: Callable[[str], str]) -> str | None:
    """Return the member of a model that a definition calls `field`. `name_of` is `sdk_field` or
    `plain_field`.

    Two other spellings are accepted: the service's own, and EqualsValue for Equals, because Java
    cannot have a getter of that name. The fields of an `aws-sdk` call begin with a capital letter
    (AWS docs, "Passing parameters to a service API in Step Functions"; AWS refuses "static" of
    `verifiedpermissions:createPolicy`: github.com/aws/aws-cdk/issues/29968).
    """
    named = {name_of(member): member for member in members}
    if field in named:
        return named[field]
    if name_of is sdk_field and field[:1].islower():
        return None
    own = set(named.values())
    variants = (field, field[:1].lower() + field[1:], field.removesuffix("Value"))
    return next((name for name in variants if name in own), None)


def unsupported_field(name: str) -> str:
    """Return AWS's sentence about an argument that the action does not have."""
    return f'The field "{name}" is not supported by Step Functions'


def operation_name(action: str) -> str:
    """Return the operation's name: "putItem" gives "PutItem"."""
    return action[:1].upper() + action[1:]
