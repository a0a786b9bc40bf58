"""The construct in a user's own stack: its parameters, its grants, two of them side by side."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import resources
from tests.infra.template import LAYER_ARN, Template, as_list, construct_name, target_of

# One of xdist's workers takes them all: a second one would only wait for the synthesis.
pytestmark = pytest.mark.xdist_group("templates")

RUN_TASKS = ("Worker", "WorkerSingle", "Api")
#: A Python task runs with the role of its function, a state machine's call with that for tasks.
TASK_ROLES = {*(f"Flows{name}FunctionRole" for name in RUN_TASKS), "FlowsTasksRole"}


def allowed(template: Template, role: str) -> dict[str, set[str]]:
    """Return what the policies of grants allow the role: targets to actions."""
    found: dict[str, set[str]] = {}
    for policy in template.properties("AWS::IAM::Policy").values():
        if role not in {target_of(one) for one in policy["Roles"]}:
            continue
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                for resource in as_list(statement["Resource"]):
                    name = resource if isinstance(resource, str) else target_of(resource)
                    found.setdefault(name, set()).update(as_list(statement["Action"]))
    return found


@pytest.mark.parametrize("role", sorted(TASK_ROLES))
def test_the_grants_of_the_tasks_are_in_the_template(shop: Template, role: str) -> None:
    found = allowed(shop, role)
    assert {"s3:GetObject*", "s3:PutObject"} <= found["Receipts/*"]
    assert found["Bank"] == {"secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"}
    assert found["CardService"] == found["Bank"]
    assert {"kms:Decrypt", "kms:GenerateDataKey*"} <= found["ReceiptsKey"]


def test_functions_that_run_no_tasks_get_none_of_their_rights(shop: Template) -> None:
    for name in ("Events", "Sweeper"):
        assert not allowed(shop, f"Flows{name}FunctionRole")


def test_the_key_of_a_secret_lets_the_tasks_use_it_through_secrets_manager(
    shop: Template,
) -> None:
    key = shop.properties("AWS::KMS::Key")["ReceiptsKey"]
    [principals] = [
        one["Principal"]["AWS"]
        for one in key["KeyPolicy"]["Statement"]
        if "kms:ViaService" in json.dumps(one) and isinstance(one["Principal"]["AWS"], list)
    ]
    assert {target_of(arn) for arn in principals} == TASK_ROLES


def test_a_policy_of_the_same_app_is_attached_to_the_roles_of_tasks(shop: Template) -> None:
    attached = {
        name: [target_of(arn) for arn in role["ManagedPolicyArns"]]
        for name, role in shop.properties("AWS::IAM::Role").items()
        if "ManagedPolicyArns" in role
    }
    assert attached == {role: ["Call"] for role in (*TASK_ROLES, "FlowsGroupYearEndFunctionRole")}


def functions(shop: Template, holdfast: str) -> dict[str, dict[str, Any]]:
    found = shop.properties("AWS::Lambda::Function")
    return {
        name.removeprefix(holdfast).removesuffix("FunctionLambda"): function
        for name, function in found.items()
        if name.startswith(holdfast)
    }


def test_each_function_of_the_engine_has_the_environment_because_it_imports_the_modules(
    shop: Template,
) -> None:
    made = functions(shop, "Flows")
    engine = [function for name, function in made.items() if not name.startswith("Group")]
    assert len(engine) == len(resources.FUNCTIONS)
    for function in engine:
        variables = function["Environment"]["Variables"]
        assert variables["STAGE"] == "test"
        assert target_of(variables["CARD_SERVICE"]) == "CardService"
        assert variables[resources.ENV_MODULES] == "shop.order"


def test_only_functions_that_run_tasks_are_in_the_vpc_and_have_the_layers(
    shop: Template,
) -> None:
    for name, function in functions(shop, "Flows").items():
        if name == "GroupYearEnd":
            continue  # with the same ones, of its own
        if name not in RUN_TASKS:
            assert not {"VpcConfig", "Layers"} & function.keys()
            continue
        assert function["Layers"] == [LAYER_ARN]
        assert function["VpcConfig"]["SubnetIds"] == ["subnet-0a1b2c3d"]
        role = shop.properties("AWS::IAM::Role")[f"Flows{name}FunctionRole"]
        assert "ec2:CreateNetworkInterface" in json.dumps(role["Policies"])


def test_a_network_has_the_subnets_and_security_groups_that_are_given(shop: Template) -> None:
    for name in RUN_TASKS:
        network = functions(shop, "Other")[name]["VpcConfig"]
        assert network["SubnetIds"] == ["subnet-1a1b2c3d"]
        assert network["SecurityGroupIds"] == ["sg-0a1b2c3d"]


def test_a_database_lets_the_tasks_in(shop: Template) -> None:
    found = set()
    for ingress in shop.properties("AWS::EC2::SecurityGroupIngress").values():
        assert ingress["GroupId"] == "sg-0a1b2c3d"
        source, attribute = ingress["SourceSecurityGroupId"]["Fn::GetAtt"]
        assert attribute == "GroupId"
        found.add((construct_name(source), ingress["FromPort"]))
    assert found == {("FlowsTasksGroup", 5432), ("FlowsGroupYearEndTasksGroup", 5433)}


def test_sizes_and_log_retention_are_those_that_were_given(shop: Template) -> None:
    worker = functions(shop, "Flows")["Worker"]
    assert (worker["MemorySize"], worker["ReservedConcurrentExecutions"]) == (1_024, 20)
    groups = shop.properties("AWS::Logs::LogGroup")
    days = {name: group["RetentionInDays"] for name, group in groups.items()}
    assert {days[name] for name in days if name.startswith("Flows")} == {90}
    assert {days[name] for name in days if name.startswith("Other")} == {30}


def test_a_machine_may_work_for_its_pool_and_no_more(shop: Template) -> None:
    [policy] = [
        one
        for one in shop.properties("AWS::IAM::Policy").values()
        if [target_of(role) for role in one["Roles"]] == ["Machine"]
    ]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "execute-api:Invoke"
    assert statement["Resource"]["Fn::Join"][1][-1] == "/$default/POST/pools/gpu/*"


def test_a_website_may_start_see_answer_and_send_events_and_no_more(shop: Template) -> None:
    [policy] = [
        one
        for one in shop.properties("AWS::IAM::Policy").values()
        if [target_of(role) for role in one["Roles"]] == ["Website"]
    ]
    statements = policy["PolicyDocument"]["Statement"]
    routes = {
        "".join(part for part in arn["Fn::Join"][1] if isinstance(part, str)).partition("/")[2]
        for statement in statements
        if statement["Action"] == "execute-api:Invoke"
        for arn in as_list(statement["Resource"])
    }
    assert routes == {
        *("$default/POST/executions", "$default/GET/executions", "$default/GET/executions/*"),
        "$default/GET/counts",
        *("$default/POST/answers", "$default/POST/events"),
        *("$default/GET/questions", "$default/GET/questions/*", "$default/POST/questions/*"),
    }
    [on_bus] = [one for one in statements if one["Action"] == "events:PutEvents"]
    assert target_of(on_bus["Resource"]) == "FlowsMessagingBus"
    assert len(statements) == 1 + sum("execute-api" in json.dumps(one) for one in statements)


def test_with_snap_start_each_function_that_runs_tasks_is_invoked_as_its_newest_version(
    shop: Template,
) -> None:
    functions = shop.properties("AWS::Lambda::Function")
    snapped = {name for name, one in functions.items() if "SnapStart" in one}
    assert snapped == {f"Other{name}FunctionLambda" for name in RUN_TASKS}
    assert all(functions[name]["SnapStart"] == {"ApplyOn": "PublishedVersions"} for name in snapped)
    aliases = shop.properties("AWS::Lambda::Alias")
    assert {target_of(one["FunctionName"]) for one in aliases.values()} == snapped
    sources = shop.properties("AWS::Lambda::EventSourceMapping")
    for name, source in sources.items():
        [invoked] = re.findall(r"(Flows|Other)\w+?Function(Live|Lambda)", json.dumps(source))[:1]
        assert invoked == (name[:5], "Live" if name.startswith("Other") else "Lambda")
    [integration] = [
        one
        for name, one in shop.properties("AWS::ApiGatewayV2::Integration").items()
        if name.startswith("Other")
    ]
    assert "OtherApiFunctionLive" in json.dumps(integration["IntegrationUri"])


def test_two_in_one_stack_share_no_name(shop: Template) -> None:
    assert {bus["Name"] for bus in shop.properties("AWS::Events::EventBus").values()} == {
        "Shop-Flows",
        "Shop-Other",
    }
    boards = shop.properties("AWS::CloudWatch::Dashboard").values()
    assert {board["DashboardName"] for board in boards} == {"Shop-Flows", "Shop-Other"}
    for name in ("Flows", "Other"):
        for function in functions(shop, name).values():
            variables = function["Environment"]["Variables"]
            assert variables[resources.ENV_STACK] == f"Shop-{name}"


def test_metrics_are_those_of_the_one_that_was_asked(shop: Template) -> None:
    failed = shop.properties("AWS::CloudWatch::Alarm")["Failed"]
    assert failed["MetricName"] == resources.METRIC_EXECUTIONS_FAILED
    assert failed["Dimensions"] == [{"Name": "Stack", "Value": "Shop-Flows"}]
    assert failed["Period"] == 300
    by_workflow = shop.properties("AWS::CloudWatch::Alarm")["FailedOrders"]
    assert by_workflow["Dimensions"] == [
        {"Name": "Stack", "Value": "Shop-Flows"},
        {"Name": "Workflow", "Value": "order"},
    ]


def test_an_alarm_without_a_bound_is_not_made(shop: Template) -> None:
    alarms = shop.properties("AWS::CloudWatch::Alarm")
    made = {name for name in alarms if name.endswith(("FailedExecutions", "RetryStorm"))}
    assert made == {"OtherAlarmsFailedExecutions", "OtherAlarmsRetryStorm"}


def test_the_outputs_begin_with_the_name_of_the_construct(shop: Template) -> None:
    outputs = shop.document["Outputs"].keys()
    for name in ("Flows", "Other"):
        assert {f"{name}ApiUrl", f"{name}BusName", f"{name}SigningSecret"} <= outputs


def test_alarms_notify_a_topic_of_the_same_stack(shop: Template) -> None:
    alarms = shop.properties("AWS::CloudWatch::Alarm")
    assert target_of(alarms["FlowsAlarmsSweepLag"]["AlarmActions"][0]) == "OnCall"
    assert "AlarmActions" not in alarms["OtherAlarmsSweepLag"]


def test_the_stack_of_the_reference_page_is_built_from_its_project_and_grants_its_rights(
    assembly: Path,
) -> None:
    page = Template.load(assembly / "page" / "Shop.template.json")
    found = allowed(page, "FlowsWorkerFunctionRole")
    assert "s3:PutObject" in found["Receipts/*"]
    assert "secretsmanager:GetSecretValue" in found["Bank"]
    # The code was staged when the construct was made: its temporary folder is gone.
    [worker] = [one for name, one in functions(page, "Flows").items() if name == "Worker"]
    staged = worker["Code"]["S3Key"].removesuffix(".zip")
    assert (assembly / "page" / f"asset.{staged}" / "handler.py").exists()


def test_a_topic_gets_a_readable_line_for_each_question_of_its_own_stack(shop: Template) -> None:
    rule = shop.properties("AWS::Events::Rule")["FlowsQuestionsRule"]
    assert "EventBusName" not in rule  # the default one
    assert rule["EventPattern"] == {
        "source": ["holdfast.questions"],
        "detail-type": ["Holdfast Question Opened"],
        "detail": {"stack": ["Shop-Flows"]},
    }
    [target] = rule["Targets"]
    assert target_of(target["Arn"]) == "Desk"
    assert target["InputTransformer"] == {
        "InputPathsMap": {
            "detail-assignee": "$.detail.assignee",
            "detail-title": "$.detail.title",
            "detail-question": "$.detail.question",
        },
        "InputTemplate": (
            '"Question for <detail-assignee>: <detail-title> - its id is <detail-question>"'
        ),
    }
    reminder = shop.properties("AWS::Events::Rule")["FlowsRemindersRule"]
    assert reminder["EventPattern"]["detail-type"] == ["Holdfast Question Reminder"]
    assert reminder["EventPattern"]["detail"] == {"stack": ["Shop-Flows"]}
    assert reminder["Targets"][0]["InputTransformer"]["InputTemplate"] == (
        '"Reminder, until <detail-until>, for <detail-assignee>: <detail-title> - '
        'its id is <detail-question>"'
    )
    worker = shop.properties("AWS::Lambda::Function")["FlowsWorkerFunctionLambda"]
    assert worker["Environment"]["Variables"][resources.ENV_QUESTION_EVENTS] == "on"
    assert worker["Environment"]["Variables"][resources.ENV_STACK] == "Shop-Flows"
    assert "OtherQuestionsRule" not in shop.properties("AWS::Events::Rule")
