"""Synthesises the stacks that the tests read: "Default" as cdk.json has it, "Chosen" with every
other choice made, and in an app of its own "Shop", a user's stack with two Holdfasts in it.

A program of its own, because the CDK starts a Node process and takes seconds: tests run it once
and read the templates. The asset is a stand-in; bundle_test.py looks at the real one.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aws_cdk import Acknowledgment, App, CfnOutput, Duration, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks

from holdfast.infra import AlarmBounds, Group, Holdfast, JwtIssuer, Size
from holdfast.infra.groups import FoundGroup
from holdfast.infra.settings import Settings
from holdfast.infra.sizes import read_sizes
from infra.stack import HoldfastStack
from tests.infra.template import LAYER_ARN, SIZES, TASK_POLICY_ARNS, TOPIC_ARN

ROOT = Path(__file__).parents[2]


def main(asset: str, directory: str) -> None:
    app = App(outdir=directory)
    add_checks(app)
    settings = Settings.from_context(app.node.try_get_context)
    chosen = dataclasses.replace(
        settings,
        architecture="x86_64",
        python="3.14",
        caps_concurrency=False,
        jwt=JwtIssuer("https://issuer.example", "holdfast"),
        alarm_topic_arn=TOPIC_ARN,
        task_policies=TASK_POLICY_ARNS,
        tells_status=True,
        has_forms=True,
        tells_questions=True,
        seals_secrets=True,
        owns_key=True,
        has_archive=True,
        limits_payloads=False,
        limits_histories=True,
        functions=read_sizes(SIZES),
        work_batch=4,
        start_concurrency=3,
        log_retention_days=400,
        alarm_bounds=AlarmBounds(failed=3, oldest_wait_days=7, dollars_per_day=2.5),
    )
    HoldfastStack(app, "Default", settings=settings, project=ROOT, asset=Path(asset))
    made = HoldfastStack(app, "Chosen", settings=chosen, project=ROOT, asset=Path(asset))
    for policy in TASK_POLICY_ARNS:
        # The user decides on the tasks' rights, also with a policy of AWS's own.
        Validations.of(made).acknowledge(
            Acknowledgment(id=f"AwsSolutions-IAM4[Policy::{policy}]", reason="chosen by the user")
        )
    app.synth()
    synthesise_shop(Path(asset), f"{directory}/own")
    synthesise_page("reference/construct.md", f"{directory}/page")
    synthesise_page("how-to/groups.md", f"{directory}/groups")


def add_checks(app: App) -> None:
    """Their findings go into the assembly's validation report, and fail the synthesis."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def synthesise_shop(asset: Path, directory: str) -> None:
    """Make a user's stack: no context key is set, and nothing of cdk.json is read."""
    app = App(outdir=directory)
    stack = Stack(app, "Shop")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0a1b2c3d",
        availability_zones=["eu-west-1a"],
        private_subnet_ids=["subnet-0a1b2c3d"],
        isolated_subnet_ids=["subnet-1a1b2c3d"],
    )
    layer = lambda_.LayerVersion.from_layer_version_arn(stack, "Layer", LAYER_ARN)
    policy = iam.ManagedPolicy(
        stack,
        "Call",
        statements=[iam.PolicyStatement(actions=["ses:SendEmail"], resources=["*"])],
    )
    flows = Holdfast(
        stack,
        "Flows",
        modules=["shop.order"],
        asset=asset,
        environment={"STAGE": "test"},
        secrets={"CARD_SERVICE": secretsmanager.Secret(stack, "CardService")},
        functions={"worker": Size(memory_mb=1_024, concurrency=20)},
        groups={
            "payments": Group(
                memory_mb=256,
                timeout_seconds=60,
                concurrency=4,
                environment={"BANK": "live"},
                secrets={"BANK_KEY": secretsmanager.Secret(stack, "BankKey")},
            ),
            "mail": Group(),
            "year-end": Group(vpc=vpc, layers=[layer], task_policies=[policy]),
        },
        layers=[layer],
        vpc=vpc,
        task_policies=[policy],
        alarms=sns.Topic(stack, "OnCall"),
        alarm_bounds=AlarmBounds(failed=None, retries=None),
        notify_questions_to=sns.Topic(stack, "Desk"),
        log_retention_days=90,
        starts_per_second=5_000,
        archive=True,
    )
    key = kms.Key(stack, "ReceiptsKey")
    s3.Bucket(stack, "Receipts", encryption_key=key).grant_read_write(flows.tasks)
    secretsmanager.Secret(stack, "Bank", encryption_key=key).grant_read(flows.tasks)
    s3.Bucket(stack, "Ledger").grant_read(flows.group("payments"))
    database = ec2.SecurityGroup.from_security_group_id(stack, "Database", "sg-0a1b2c3d")
    database.connections.allow_from(flows.tasks, ec2.Port.tcp(5432))
    database.connections.allow_from(flows.group("year-end"), ec2.Port.tcp(5433))
    website = iam.Role(stack, "Website", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    flows.grant_start(website)
    flows.grant_read(website)
    flows.grant_answer(website)
    machine = iam.Role(stack, "Machine", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    flows.grant_work(machine, "gpu")
    flows.grant_send_event(website)
    flows.metric_failed(period=Duration.minutes(5)).create_alarm(
        stack, "Failed", threshold=3, evaluation_periods=1
    )
    flows.metric_failed(workflow="order").create_alarm(
        stack, "FailedOrders", threshold=0, evaluation_periods=1
    )
    flows.metric_started().create_alarm(stack, "Started", threshold=9, evaluation_periods=1)
    flows.metric_ended(workflow="order").create_alarm(
        stack, "EndedOrders", threshold=9, evaluation_periods=1
    )
    CfnOutput(stack, "Url", value=flows.api_url)
    CfnOutput(stack, "Api", value=flows.http_api.api_id)
    CfnOutput(stack, "Bus", value=flows.bus.event_bus_arn)
    CfnOutput(stack, "Executions", value=flows.executions_table.table_arn)
    CfnOutput(stack, "Inbox", value=flows.inbox_table.table_arn)
    issuer = JwtIssuer("https://issuer.example", "shop")
    Holdfast(
        stack,
        "Other",
        modules=["shop.order"],
        asset=asset,
        api=issuer,
        snap_start=True,
        forms=True,
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
        security_groups=[database],
    )
    app.synth()


def synthesise_page(name: str, directory: str) -> None:
    """Make the stack that a page of docs/ shows."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    program = next(one for one in programs if "class ShopStack" in one)
    groups = {"payments": FoundGroup(("shop.checkout",))} if "groups=" in program else {}
    namespace: dict[str, Any] = {}
    app = App(outdir=directory)
    with (
        patch("holdfast.infra.construct.compile_workflows", return_value=[]),
        patch("holdfast.infra.construct.find_groups", return_value=groups),
        patch("holdfast.infra.construct.build_asset", side_effect=_stand_in),
    ):
        exec(program, namespace)
        namespace["ShopStack"](app, "Shop")
    app.synth()


def _stand_in(directory: Path, **_: Any) -> None:
    (directory / "handler.py").write_text("")


if __name__ == "__main__":
    main(*sys.argv[1:])
