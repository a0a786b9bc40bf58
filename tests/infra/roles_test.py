"""What each function may do: exactly this list, so that one more right is a failing test."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import resources
from tests.infra.template import TASK_POLICY_ARNS, Template, as_list, target_of

EXECUTIONS = "StorageExecutions"
MAIL = "StorageMail"
OBJECTS = "StorageBlobs/*"
WORK = "MessagingWork"
SINGLE = "MessagingSingle"

DEFAULT_BUS = {
    "Fn::Join": [
        "",
        [
            "arn:",
            {"Ref": "AWS::Partition"},
            ":events:",
            {"Ref": "AWS::Region"},
            ":",
            {"Ref": "AWS::AccountId"},
            ":event-bus/default",
        ],
    ]
}

WORKER = {
    "dynamodb:GetItem": {EXECUTIONS, MAIL},
    "dynamodb:Query": {EXECUTIONS, f"{EXECUTIONS}/index/list", MAIL},
    "dynamodb:PutItem": {EXECUTIONS, MAIL},
    "dynamodb:UpdateItem": {EXECUTIONS, MAIL},
    "dynamodb:DeleteItem": {MAIL},
    "s3:GetObject": {OBJECTS},
    "s3:PutObject": {OBJECTS},
    "sqs:SendMessage": {WORK, SINGLE},
    "secretsmanager:GetSecretValue": {"StorageSecret"},
}


def consumes(queue: str) -> dict[str, set[str]]:
    actions = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
    return {f"sqs:{action}": {queue} for action in actions}


ALLOWED: dict[str, dict[str, set[str]]] = {
    "Worker": {**WORKER, **consumes(WORK)},
    "WorkerSingle": {**WORKER, **consumes(SINGLE)},
    "Events": {
        "dynamodb:PutItem": {MAIL},
        "dynamodb:Query": {MAIL},
        "s3:PutObject": {OBJECTS},
        "sqs:SendMessage": {WORK, "MessagingEventsDead"},
    },
    "Sweeper": {
        "dynamodb:GetItem": {EXECUTIONS},
        "dynamodb:Query": {EXECUTIONS, MAIL},
        "dynamodb:UpdateItem": {EXECUTIONS},
        "dynamodb:PutItem": {MAIL},
        "dynamodb:DeleteItem": {MAIL},
        "s3:GetObject": {OBJECTS},
        "sqs:SendMessage": {WORK, SINGLE, "MessagingSweeperDead"},
        "sqs:ReceiveMessage": {"MessagingWorkDead", "MessagingSingleDead"},
        "sqs:DeleteMessage": {"MessagingWorkDead", "MessagingSingleDead"},
    },
    "Api": {
        "dynamodb:Query": {EXECUTIONS, f"{EXECUTIONS}/index/list", MAIL},
        "dynamodb:GetItem": {MAIL},
        "dynamodb:PutItem": {MAIL},
        "dynamodb:DeleteItem": {MAIL},
        "s3:GetObject": {OBJECTS},
        "s3:PutObject": {OBJECTS},
        "sqs:SendMessage": {WORK, SINGLE},
        "secretsmanager:GetSecretValue": {"StorageSecret"},
    },
}


@pytest.mark.parametrize("function", ALLOWED)
def test_a_function_may_do_exactly_what_is_listed(template: Template, function: str) -> None:
    role = template.properties("AWS::IAM::Role")[f"{function}FunctionRole"]
    own_log = f"{function}FunctionLog"
    assert rights_of(role) == {
        **ALLOWED[function],
        "logs:CreateLogStream": {own_log},
        "logs:PutLogEvents": {own_log},
    }


def test_every_function_has_a_role_of_its_own_and_there_is_no_other_role(
    template: Template,
) -> None:
    functions = template.properties("AWS::Lambda::Function")
    roles = {name: target_of(function["Role"]) for name, function in functions.items()}
    assert roles == {f"{name}FunctionLambda": f"{name}FunctionRole" for name in ALLOWED}
    assert template.of_type("AWS::IAM::Role").keys() == set(roles.values())


def test_no_right_comes_from_anywhere_but_the_roles_themselves(template: Template) -> None:
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        assert not template.of_type(kind)
    for role in template.properties("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_who_tells_the_bus_of_executions_may_put_into_the_default_one_and_no_other(
    template: Template, chosen: Template
) -> None:
    assert {
        name: statement["Resource"]
        for name, role in chosen.properties("AWS::IAM::Role").items()
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "events:PutEvents"
    } == dict.fromkeys(("WorkerFunctionRole", "WorkerSingleFunctionRole"), DEFAULT_BUS)
    assert {
        name: function["Environment"]["Variables"][resources.ENV_STATUS_EVENTS]
        for name, function in chosen.properties("AWS::Lambda::Function").items()
        if resources.ENV_STATUS_EVENTS in function["Environment"]["Variables"]
    } == dict.fromkeys(("WorkerFunctionLambda", "WorkerSingleFunctionLambda"), "on")
    for function in template.properties("AWS::Lambda::Function").values():
        assert resources.ENV_STATUS_EVENTS not in function["Environment"]["Variables"]


def test_the_policies_for_tasks_go_to_the_functions_that_run_tasks(chosen: Template) -> None:
    roles = chosen.properties("AWS::IAM::Role")
    assert {
        name: tuple(role["ManagedPolicyArns"])
        for name, role in roles.items()
        if "ManagedPolicyArns" in role
    } == {f"{name}FunctionRole": TASK_POLICY_ARNS for name in ("Worker", "WorkerSingle", "Api")}


def test_only_lambda_may_take_on_a_role(template: Template) -> None:
    for role in template.properties("AWS::IAM::Role").values():
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_no_action_is_a_pattern_and_no_resource_is_everything(template: Template) -> None:
    # The one resource pattern is the objects of the stack's own bucket, whose keys are content
    # hashes under a tenant and an execution: they cannot be listed in advance.
    for role in template.properties("AWS::IAM::Role").values():
        for action, targets in rights_of(role).items():
            assert "*" not in action
            assert {target for target in targets if "*" in target} <= {OBJECTS}


def test_only_the_two_rules_may_put_into_a_queue_from_outside(template: Template) -> None:
    granted = {
        target_of(statement["Resource"]): (
            statement["Action"],
            statement["Principal"],
            target_of(statement["Condition"]["ArnEquals"]["aws:SourceArn"]),
        )
        for policy in template.properties("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    }
    events = {"Service": "events.amazonaws.com"}
    assert granted == {
        "MessagingEventsDead": ("sqs:SendMessage", events, "EventsRule"),
        "MessagingSweeperDead": ("sqs:SendMessage", events, "SweepRule"),
    }


def rights_of(role: dict[str, Any]) -> dict[str, set[str]]:
    """Actions to targets. Anything but a plain Allow is an error: the list would not show it."""
    rights: dict[str, set[str]] = {}
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement.keys() == {"Action", "Effect", "Resource"}
            assert statement["Effect"] == "Allow"
            targets = {target_of(resource) for resource in as_list(statement["Resource"])}
            for action in as_list(statement["Action"]):
                rights.setdefault(action, set()).update(targets)
    return rights
