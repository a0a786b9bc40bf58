"""Task groups in the template: a function, a role and grants for each; the engine out of reach."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import resources
from holdfast.errors import HoldfastError
from holdfast.infra.unfit import Unfit
from tests.infra.construct_test import allowed, functions
from tests.infra.template import LAYER_ARN, Template, as_list, construct_name, target_of

if TYPE_CHECKING:
    from holdfast.infra.groups import FoundGroup

# One of xdist's workers takes them all: a second one would only wait for the synthesis. The tests
# import the CDK themselves: if the module did, every worker would start the CDK.
pytestmark = pytest.mark.xdist_group("templates")

PAYMENTS, MAIL = "FlowsGroupPaymentsFunction", "FlowsGroupMailFunction"
RUN_TASKS = ("Worker", "WorkerSingle", "Api")


def rights(template: Template, role: str) -> set[str]:
    """Return every action that the role of a function may do: inline and granted."""
    policies: list[Any] = [
        one["PolicyDocument"]
        for one in template.properties("AWS::IAM::Role")[role].get("Policies", [])
    ] + [
        policy["PolicyDocument"]
        for policy in template.properties("AWS::IAM::Policy").values()
        if role in {target_of(one) for one in policy["Roles"]}
    ]
    statements = [one for document in policies for one in document["Statement"]]
    return {action for one in statements for action in as_list(one["Action"])}


def test_the_role_of_a_group_may_write_its_log_and_do_what_it_was_granted(shop: Template) -> None:
    log = {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert rights(shop, f"{MAIL}Role") == log
    secret = {"secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"}
    bucket = {"s3:GetObject*", "s3:GetBucket*", "s3:List*"}
    assert rights(shop, f"{PAYMENTS}Role") == log | secret | bucket


def test_a_grant_to_a_group_reaches_its_role_alone(shop: Template) -> None:
    assert "s3:GetObject*" in allowed(shop, f"{PAYMENTS}Role")["Ledger/*"]
    assert allowed(shop, f"{PAYMENTS}Role").keys() == {"Ledger", "Ledger/*", "BankKey"}
    for role in (
        f"{MAIL}Role",
        "FlowsTasksRole",
        *(f"Flows{one}FunctionRole" for one in RUN_TASKS),
    ):
        assert not {"Ledger", "Ledger/*", "BankKey"} & allowed(shop, role).keys()


def test_the_function_of_a_group_has_its_own_size_and_environment(shop: Template) -> None:
    payments = functions(shop, "Flows")["GroupPayments"]
    assert (payments["MemorySize"], payments["Timeout"]) == (256, 60)
    assert payments["ReservedConcurrentExecutions"] == 4
    assert payments["Handler"] == "functions.group.app.handler"
    variables = payments["Environment"]["Variables"]
    assert variables.keys() == {"BANK", "BANK_KEY", resources.ENV_MODULES, resources.ENV_STACK}
    mail = functions(shop, "Flows")["GroupMail"]
    assert "ReservedConcurrentExecutions" not in mail
    # The VPC and the layers of `tasks` are those of the functions that run the other tasks.
    assert not {"VpcConfig", "Layers"} & mail.keys()
    year_end = functions(shop, "Flows")["GroupYearEnd"]
    assert year_end["Layers"] == [LAYER_ARN]
    [group] = year_end["VpcConfig"]["SecurityGroupIds"]
    assert construct_name(group["Fn::GetAtt"][0]) == "FlowsGroupYearEndTasksGroup"
    assert "ec2:CreateNetworkInterface" in rights(shop, "FlowsGroupYearEndFunctionRole")


def test_the_dashboard_s_cost_has_the_functions_of_groups(shop: Template) -> None:
    boards = shop.properties("AWS::CloudWatch::Dashboard").items()
    (board,) = [json.dumps(one) for name, one in boards if name.startswith("Flows")]
    calls, ms = 0.20 / 1e6, 0.25 * 13.3334 / 1e6 / 1_000
    assert f"*{calls * 1e6:.6f}" in board
    assert f"*{ms * 1e6:.6f}" in board
    assert f'"Duration\\",\\"FunctionName\\",\\"", {{"Ref": "{PAYMENTS}' in board


def test_only_functions_that_run_tasks_may_call_those_of_groups(shop: Template) -> None:
    made = functions(shop, "Flows")
    for name, function in made.items():
        calls = "lambda:InvokeFunction" in rights(shop, f"Flows{name}FunctionRole")
        named = resources.ENV_GROUP_FUNCTIONS in function["Environment"]["Variables"]
        assert calls == named == (name in RUN_TASKS)


def test_the_role_for_service_calls_may_not_call_the_function_of_a_group(shop: Template) -> None:
    barred = [
        resource
        for policy in shop.properties("AWS::IAM::Policy").values()
        for one in policy["PolicyDocument"]["Statement"]
        if one["Effect"] == "Deny" and one["Action"] == "lambda:*"
        for resource in as_list(one["Resource"])
    ]
    assert "FlowsGroupPaymentsFunctionLambda" in json.dumps(barred)


def test_a_group_has_an_alarm_for_throttles_and_an_output_with_its_role(shop: Template) -> None:
    alarms = shop.properties("AWS::CloudWatch::Alarm")
    assert any("GroupPaymentsThrottled" in name for name in alarms)
    assert {"FlowsGroupPaymentsRole", "FlowsGroupMailRole"} <= shop.document["Outputs"].keys()


def test_the_stack_of_the_page_deploys_its_group(assembly: Path) -> None:
    page = Template.load(assembly / "groups" / "Shop.template.json")
    group = functions(page, "Flows")["GroupPayments"]
    assert group["Environment"]["Variables"][resources.ENV_MODULES] == "shop.checkout"
    assert "s3:PutObject" in allowed(page, f"{PAYMENTS}Role")["Ledger/*"]


# -- what is refused -------------------------------------------------------------------------------


def found_groups() -> dict[str, FoundGroup]:
    from holdfast.infra.groups import FoundGroup

    return {"payments": FoundGroup(("shop",), (timedelta(minutes=5), "charge"))}


def test_a_group_without_tasks_is_refused_and_the_nearest_one_is_proposed() -> None:
    from holdfast.infra.groups import Group, require_groups, unknown_group

    with pytest.raises(HoldfastError) as refused:
        require_groups({"paymets": Group()}, found_groups(), "Shop/Flows")
    assert refused.value.code == "HF424"
    assert refused.value.message == (
        "Holdfast Shop/Flows: the group 'paymets' has no task; the groups with tasks are: payments"
    )
    assert refused.value.help == "write 'payments'"
    alone = unknown_group("x", {}, "Shop/Flows")
    assert alone.message == "Holdfast Shop/Flows: the group 'x' has no task; no task has a group"
    assert alone.help == '@task(group="x") in one of the modules'
    assert "are: mail, payments" in unknown_group("x", ["payments", "mail"], "Shop").message
    assert unknown_group("paymen", ["payment", "payments"], "Shop").help == "write 'payment'"


def test_a_task_that_may_outlast_the_function_of_its_group_is_refused() -> None:
    from holdfast.infra.groups import Group, require_groups

    with pytest.raises(HoldfastError) as refused:
        require_groups({"payments": Group(timeout_seconds=60)}, found_groups(), "Shop/Flows")
    assert refused.value.code == "HF425"
    assert "charge may run for 300 seconds" in refused.value.message


def test_a_group_that_the_construct_does_not_name_has_the_defaults() -> None:
    from holdfast.infra.groups import Group, require_groups

    assert require_groups({}, found_groups(), "Shop/Flows") == {"payments": Group()}


def test_a_variable_that_lambda_sets_itself_is_refused() -> None:
    from holdfast.infra.groups import Group, require_groups

    for taken in (
        Group(environment={"AWS_REGION": "x"}),
        Group(secrets={"AWS_REGION": None}),  # type: ignore[dict-item]
    ):
        with pytest.raises(Unfit) as refused:
            require_groups({"payments": taken}, found_groups(), "Shop/Flows")
        assert refused.value.key == "groups.payments.environment"


def test_the_longest_time_out_may_be_that_of_a_second_task_with_the_name(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.infra.groups import find_groups

    for module, minutes in (("shop_a", 1), ("shop_b", 14)):
        (tmp_path / f"{module}.py").write_text(
            "from holdfast import minutes, task\n"
            f'@task(group="payments", timeout=minutes({minutes}))\ndef charge() -> None: ...\n'
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_groups(["shop_a", "shop_b"])
    assert found["payments"].longest == (timedelta(minutes=14), "charge")


def test_the_groups_are_found_in_the_code(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.infra.groups import FoundGroup, find_groups

    (tmp_path / "grouped_shop.py").write_text(
        "from holdfast import minutes, task\n"
        '@task(group="payments", timeout=minutes(2))\ndef charge() -> None: ...\n'
        '@task(group="payments", timeout=minutes(1))\ndef refund() -> None: ...\n'
        '@task(group="mail")\ndef post() -> None: ...\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_groups(["grouped_shop"]) == {
        "mail": FoundGroup(("grouped_shop",)),
        "payments": FoundGroup(("grouped_shop",), (timedelta(minutes=2), "charge")),
    }
