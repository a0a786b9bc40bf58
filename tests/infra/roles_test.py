"""The exact rights of each function and each task, so that one more right fails a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import Session

import holdfast.aws
from holdfast import resources
from tests.infra.template import TASK_POLICY_ARNS, Template, as_list, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

EXECUTIONS = "StorageExecutions"
MAIL = "StorageMail"
BUCKET = "StorageBlobs"
OBJECTS = f"{BUCKET}/*"
ARCHIVE = "StorageArchive"
TASKS_ROLE = "TasksRole"
RUN_TASKS = ("Worker", "WorkerSingle", "Api")
WORK = "MessagingWork"
SINGLE = "MessagingSingle"
STARTS = "MessagingStarts"

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
    "dynamodb:BatchGetItem": {MAIL},
    "dynamodb:PutItem": {EXECUTIONS, MAIL},
    "dynamodb:UpdateItem": {EXECUTIONS, MAIL},
    "dynamodb:DeleteItem": {MAIL},
    "s3:GetObject": {OBJECTS},
    "s3:ListBucket": {BUCKET},
    "s3:PutObject": {OBJECTS},
    "sqs:SendMessage": {WORK, SINGLE, STARTS},
    "secretsmanager:GetSecretValue": {"StorageSecret"},
}


def consumes(*queues: str) -> dict[str, set[str]]:
    actions = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes")
    return {f"sqs:{action}": set(queues) for action in actions}


ALLOWED: dict[str, dict[str, set[str]]] = {
    "Worker": {**WORKER, **consumes(WORK, STARTS)},
    "WorkerSingle": {**WORKER, **consumes(SINGLE)},
    "Events": {
        "dynamodb:GetItem": {MAIL},
        "dynamodb:PutItem": {MAIL},
        "dynamodb:UpdateItem": {MAIL},
        "dynamodb:Query": {EXECUTIONS, MAIL},
        "s3:GetObject": {OBJECTS},
        "s3:ListBucket": {BUCKET},
        "s3:PutObject": {OBJECTS},
        "sqs:SendMessage": {WORK, "MessagingEventsDead"},
        "secretsmanager:GetSecretValue": {"StorageSecret"},
    },
    "Sweeper": {
        "dynamodb:GetItem": {EXECUTIONS, MAIL},
        "dynamodb:Query": {EXECUTIONS, f"{EXECUTIONS}/index/list", MAIL},
        "dynamodb:UpdateItem": {EXECUTIONS, MAIL},
        "dynamodb:PutItem": {MAIL},
        "dynamodb:DeleteItem": {MAIL},
        "s3:GetObject": {OBJECTS},
        "s3:PutObject": {OBJECTS},
        "s3:ListBucket": {BUCKET},
        "sqs:SendMessage": {WORK, SINGLE, STARTS, "MessagingSweeperDead"},
        "sqs:ReceiveMessage": {f"{queue}Dead" for queue in (WORK, SINGLE, STARTS)},
        "sqs:DeleteMessage": {f"{queue}Dead" for queue in (WORK, SINGLE, STARTS)},
    },
    "Api": {
        "dynamodb:Query": {EXECUTIONS, f"{EXECUTIONS}/index/list", MAIL},
        "dynamodb:GetItem": {MAIL},
        "dynamodb:BatchGetItem": {MAIL},
        "dynamodb:PutItem": {MAIL},
        "dynamodb:UpdateItem": {MAIL},
        "dynamodb:DeleteItem": {MAIL},
        "s3:GetObject": {OBJECTS},
        "s3:ListBucket": {BUCKET},
        "s3:PutObject": {OBJECTS},
        "sqs:SendMessage": {WORK, SINGLE, STARTS},
        "secretsmanager:GetSecretValue": {"StorageSecret"},
    },
}


@pytest.mark.parametrize("function", ALLOWED)
def test_a_function_has_exactly_the_listed_rights(template: Template, function: str) -> None:
    role = template.properties("AWS::IAM::Role")[f"{function}FunctionRole"]
    own_log = f"{function}FunctionLog"
    assert rights_of(role) == {
        **ALLOWED[function],
        "logs:CreateLogStream": {own_log},
        "logs:PutLogEvents": {own_log},
    }


#: Not even a policy for everything lets a task touch these.
BARRED = {
    "dynamodb:*": {EXECUTIONS, f"{EXECUTIONS}/index/list", MAIL},
    "s3:*": {BUCKET, OBJECTS},
    "sqs:*": {
        *(WORK, SINGLE, STARTS, f"{WORK}Dead", f"{SINGLE}Dead", f"{STARTS}Dead"),
        *("MessagingEventsDead", "MessagingSweeperDead"),
    },
    "secretsmanager:*": {"StorageSecret"},
    "lambda:*": {f"{name}FunctionLambda{part}" for name in ALLOWED for part in ("", ":*")},
}


def test_every_function_has_a_role_of_its_own_and_tasks_have_one_and_there_is_no_other(
    template: Template,
) -> None:
    functions = template.properties("AWS::Lambda::Function")
    roles = {name: target_of(function["Role"]) for name, function in functions.items()}
    assert roles == {f"{name}FunctionLambda": f"{name}FunctionRole" for name in ALLOWED}
    assert template.of_type("AWS::IAM::Role").keys() == {*roles.values(), TASKS_ROLE}


def test_no_right_comes_from_anywhere_but_the_roles_themselves(template: Template) -> None:
    for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        assert not template.of_type(kind)
    for policy in template.properties("AWS::IAM::Policy").values():
        effects = {one["Effect"] for one in policy["PolicyDocument"]["Statement"]}
        assert effects == {"Deny"}
    for role in template.properties("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


def test_a_state_machines_task_may_do_nothing_by_itself(template: Template) -> None:
    assert "Policies" not in template.properties("AWS::IAM::Role")[TASKS_ROLE]


def test_no_policy_lets_a_task_touch_the_stack_itself(template: Template, chosen: Template) -> None:
    assert barred(template) == BARRED
    buckets = {BUCKET, OBJECTS, ARCHIVE, f"{ARCHIVE}/*"}
    keys = {"SecretsKey", "AtRestKey"}
    assert barred(chosen) == {**BARRED, "s3:*": buckets, "kms:*": keys}


def test_only_functions_that_run_tasks_have_and_may_assume_the_tasks_role(
    template: Template,
) -> None:
    [statement] = template.properties("AWS::IAM::Role")[TASKS_ROLE]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert (statement["Action"], statement["Effect"]) == ("sts:AssumeRole", "Allow")
    trusted = {target_of(arn) for arn in statement["Principal"]["AWS"]}
    assert trusted == {f"{name}FunctionRole" for name in RUN_TASKS}
    told = {
        name: target_of(function["Environment"]["Variables"][resources.ENV_TASKS_ROLE])
        for name, function in template.properties("AWS::Lambda::Function").items()
        if resources.ENV_TASKS_ROLE in function["Environment"]["Variables"]
    }
    assert told == {f"{name}FunctionLambda": TASKS_ROLE for name in RUN_TASKS}


def test_a_function_that_publishes_executions_may_only_use_the_default_bus(
    template: Template, chosen: Template
) -> None:
    assert {
        name: statement["Resource"]
        for name, role in roles_of_functions(chosen).items()
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "events:PutEvents"
    } == dict.fromkeys(("WorkerFunctionRole", "WorkerSingleFunctionRole"), DEFAULT_BUS)
    for variable in (resources.ENV_STATUS_EVENTS, resources.ENV_QUESTION_EVENTS):
        assert {
            name: function["Environment"]["Variables"][variable]
            for name, function in chosen.properties("AWS::Lambda::Function").items()
            if variable in function["Environment"]["Variables"]
        } == dict.fromkeys(("WorkerFunctionLambda", "WorkerSingleFunctionLambda"), "on")
        for function in template.properties("AWS::Lambda::Function").values():
            assert variable not in function["Environment"]["Variables"]


def test_the_policies_for_tasks_go_to_their_role_and_to_the_functions_that_run_their_code(
    chosen: Template,
) -> None:
    roles = chosen.properties("AWS::IAM::Role")
    assert {
        name: tuple(role["ManagedPolicyArns"])
        for name, role in roles.items()
        if "ManagedPolicyArns" in role
    } == dict.fromkeys(
        [TASKS_ROLE, *(f"{name}FunctionRole" for name in RUN_TASKS)], TASK_POLICY_ARNS
    )


def test_only_lambda_may_take_on_a_functions_role(template: Template) -> None:
    for role in roles_of_functions(template).values():
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_no_action_is_a_pattern_and_no_resource_is_everything(template: Template) -> None:
    # The one resource pattern is the objects of the stack's own bucket. Their keys are content
    # hashes under a tenant and an execution, so they cannot be listed in advance.
    for role in roles_of_functions(template).values():
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


def roles_of_functions(template: Template) -> dict[str, dict[str, Any]]:
    roles = template.properties("AWS::IAM::Role")
    return {name: role for name, role in roles.items() if name != TASKS_ROLE}


def barred(template: Template) -> dict[str, set[str]]:
    """Actions to targets that a task is denied, whatever it is allowed elsewhere."""
    [policy] = template.properties("AWS::IAM::Policy").values()
    assert [target_of(role) for role in policy["Roles"]] == [TASKS_ROLE]
    found: dict[str, set[str]] = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        assert statement.keys() == {"Action", "Effect", "Resource"}
        assert statement["Effect"] == "Deny"
        targets = {target_of(resource) for resource in as_list(statement["Resource"])}
        found[str(statement["Action"])] = targets
    return found


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


#: The action that a call needs, where it has another name.
ACTIONS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "s3:ListObjectsV2": "s3:ListBucket",
    "lambda:Invoke": "lambda:InvokeFunction",
}
#: The module of the adapters that calls a service.
CALLERS = {
    "store": "dynamodb",
    "messaging": "sqs",
    "blobs": "s3",
    "bus": "events",
    "vault": "kms",
    "entry": "secretsmanager",
    "group_tasks": "lambda",
}


#: The rights that another service uses with a function's role, and the source that says so.
OF_SERVICES = {
    # Lambda writes the log ("Sending Lambda function logs to CloudWatch Logs").
    *("logs:CreateLogStream", "logs:PutLogEvents"),
    # Lambda's poller of a queue ("Creating and configuring an Amazon SQS event source mapping").
    "sqs:GetQueueAttributes",
    # Lambda attaches a function to a VPC ("Giving Lambda functions access to resources in a VPC").
    *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
    *("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses"),
    "ec2:UnassignPrivateIpAddresses",
    # DynamoDB uses the key of a table with the caller's role ("Encryption at rest usage notes").
    *("kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"),
    *("kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext"),
}


def calls_of(module: str) -> set[str]:
    """Return the actions of the calls in the source of an adapter."""
    service = CALLERS[module]
    model = Session().get_service_model(service)
    operations = {xform_name(name): name for name in model.operation_names}
    source = (Path(holdfast.aws.__path__[0]) / f"{module}.py").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", source))
    called = {f"{service}:{operations[word]}" for word in words & operations.keys()}
    return {ACTIONS.get(call, call) for call in called}


def granted_inline(*templates: Template) -> set[str]:
    return {
        action
        for template in templates
        for role in template.properties("AWS::IAM::Role").values()
        for policy in role.get("Policies", ())
        for statement in policy["PolicyDocument"]["Statement"]
        for action in as_list(statement["Action"])
    }


@pytest.mark.parametrize("module", CALLERS)
def test_every_call_of_an_adapter_is_granted_to_a_function(
    chosen: Template, shop: Template, module: str
) -> None:
    called = calls_of(module)
    assert called
    assert called <= granted_inline(chosen, shop)


def test_every_right_is_that_of_a_call_or_of_a_service_that_acts_for_the_function(
    chosen: Template, shop: Template
) -> None:
    called = {call for module in CALLERS for call in calls_of(module)}
    assert granted_inline(chosen, shop) == called | OF_SERVICES


def test_every_module_that_calls_a_service_is_one_of_these() -> None:
    folder = Path(holdfast.aws.__path__[0])
    callers = {
        path.stem
        for path in folder.glob("*.py")
        if re.search(r"clients(\(\))?\.get\(", path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert callers == {*CALLERS, "clients"}  # and the module that creates the clients
