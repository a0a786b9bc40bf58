"""Task groups, deployed: each runs in its function, and reaches what was granted to it alone.

The loopback cloud enforces IAM, so a right that is missing is a refusal with AWS's words.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.local import new_project
from tests.infra.deploy_own_test import ended
from tests.infra.deployed import HOST_SETTINGS, cdk, deployed
from tests.infra.ministack import ACCOUNT, REGION, grant_batches, grant_taking_on, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

APP = """
from aws_cdk import App, Stack
from aws_cdk import aws_s3 as s3

from holdfast.infra import AlarmBounds, Group, Holdfast


class Shop(Stack):
    def __init__(self, scope, name):
        super().__init__(scope, name)
        flows = Holdfast(
            self,
            "Flows",
            modules=["shop.order"],
            reserved_concurrency=False,
            alarm_bounds=AlarmBounds(failed=None),
            groups={"payments": Group(environment={"BANK": "live"}), "mail": Group()},
            SETTINGS
        )
        s3.Bucket(self, "Ledger", bucket_name="ledger").grant_read_write(flows.group("payments"))
        s3.Bucket(self, "Letters", bucket_name="letters").grant_read_write(flows.group("mail"))


app = App()
Shop(app, "Shop")
app.synth()
"""
WORKFLOWS = """
from __future__ import annotations

import os
import time

from pydantic import SecretStr

from holdfast import TaskError, seconds, task, task_context, workflow


class Declined(TaskError): ...


def at_aws(service: str):
    import boto3

    return boto3.client(service)


@task
def here() -> str:
    return os.environ["AWS_LAMBDA_FUNCTION_NAME"]


@task(group="payments")
def charge(order: str) -> str:
    at_aws("s3").put_object(Bucket="ledger", Key=order, Body=task_context().idempotency_key)
    return f"{os.environ['BANK']} {os.environ['AWS_LAMBDA_FUNCTION_NAME']}"


@task(group="payments")
def decline(order: str) -> None:
    raise Declined(f"no money for {order}")


@task(group="payments")
def read_bucket(bucket: str) -> int:
    return len(at_aws("s3").list_objects_v2(Bucket=bucket).get("Contents", []))


@task(group="mail")
def letters(bucket: str) -> int:
    return len(at_aws("s3").list_objects_v2(Bucket=bucket).get("Contents", []))


@task(group="payments")
def scan(table: str) -> int:
    return at_aws("dynamodb").scan(TableName=table)["Count"]


@task(group="payments")
def send(queue: str) -> None:
    at_aws("sqs").send_message(QueueUrl=queue, MessageBody="{}")


@task(group="payments")
def renew(token: SecretStr) -> SecretStr:
    return SecretStr("new " + token.get_secret_value())


@task(group="payments")
def measure(token: SecretStr) -> int:
    return len(token.get_secret_value())


@task(group="payments")
def encrypt(key: str) -> None:
    at_aws("kms").encrypt(KeyId=key, Plaintext=b"x")


@task(group="mail", timeout=seconds(2))
def hang() -> None:
    time.sleep(600)


@task(group="payments")
def variables() -> list[str]:
    return sorted(name for name in os.environ if name.startswith("HOLDFAST_"))


@workflow
def sell(order: str) -> list[str]:
    worker = here()
    paid = charge(order)
    try:
        decline(order)
    except Declined as declined:
        return [worker, paid, str(declined)]
    return []


@workflow
def own_bucket(bucket: str) -> int:
    return read_bucket(bucket)


@workflow
def other_bucket(bucket: str) -> int:
    return letters(bucket)


@workflow
def engine_table(table: str) -> int:
    return scan(table)


@workflow
def engine_queue(queue: str) -> None:
    send(queue)


@workflow
def secretly(token: SecretStr) -> int:
    renewed = renew(token)
    return measure(renewed)


@workflow
def engine_key(key: str) -> None:
    encrypt(key)


@workflow
def hanging() -> None:
    hang()


@workflow
def environment() -> list[str]:
    return variables()
"""


def grouped_project(directory: Path) -> Path:
    shop = directory / "shop"
    new_project.create(shop, "order")
    pairs = (setting.split("=") for setting in HOST_SETTINGS)
    settings = "".join(f"{name}={value!r}, " for name, value in pairs)
    (shop / "app.py").write_text(APP.replace("SETTINGS", settings))
    (shop / "shop" / "order.py").write_text(WORKFLOWS)
    cdk_json = json.loads((shop / "cdk.json").read_text())
    (shop / "cdk.json").write_text(json.dumps({**cdk_json, "app": f"{sys.executable} app.py"}))
    lock = [sys.executable, "-m", "uv", "lock", "--quiet", "--project", str(shop)]
    subprocess.run(lock, check=True, timeout=120)
    return shop


def test_a_group_runs_its_tasks_and_reaches_nothing_of_the_engine_and_of_other_groups(
    tmp_path: Path,
) -> None:
    project = grouped_project(tmp_path)
    with running(tmp_path) as cloud:
        cdk(cloud, tmp_path, "bootstrap", f"aws://{ACCOUNT}/{REGION}", project=project)
        outputs = tmp_path / "outputs.json"
        deploy = ("deploy", "--require-approval=never", f"--outputs-file={outputs}")
        cdk(cloud, tmp_path, *deploy, project=project)
        grant_batches(cloud, "Shop")
        grant_taking_on(cloud, "Shop")
        found = json.loads(outputs.read_text())["Shop"]
        shop = deployed(cloud, {name.removeprefix("Flows"): value for name, value in found.items()})

        sold = ended(shop, "sell", {"order": "o1"})
        assert sold["status"] == "SUCCEEDED", json.dumps(sold)
        worker, paid, declined = sold["output"]
        assert "WorkerFunction" in worker
        assert paid.startswith("live ")
        assert "GroupPaymentsFunction" in paid
        assert declined == "no money for o1"
        kept = cloud.client("s3").get_object(Bucket="ledger", Key="o1")["Body"].read().decode()
        assert kept.endswith(".1")

        assert ended(shop, "own_bucket", {"bucket": "ledger"})["output"] == 1
        _refused(ended(shop, "other_bucket", {"bucket": "ledger"}), "s3:ListBucket")
        table = shop.outputs["ExecutionsTable"]
        _refused(ended(shop, "engine_table", {"table": table}), "dynamodb:Scan")
        queues = cloud.client("sqs").list_queues()["QueueUrls"]
        work = next(url for url in queues if "MessagingWork" in url and "Dead" not in url)
        _refused(ended(shop, "engine_queue", {"queue": work}), "sqs:SendMessage")
        assert ended(shop, "secretly", {"token": "hunter22"})["output"] == len("new hunter22")
        _refused(ended(shop, "engine_key", {"key": shop.outputs["SecretsKeyArn"]}), "kms:Encrypt")
        late = ended(shop, "hanging", {})
        assert (late["status"], late["error"]) == ("FAILED", "States.Timeout")
        names = ended(shop, "environment", {})["output"]
        assert names == ["HOLDFAST_MODULES", "HOLDFAST_STACK"]


def _refused(execution: dict[str, Any], action: str) -> None:
    assert execution["status"] == "FAILED", json.dumps(execution)
    assert f"not authorized to perform: {action}" in execution["cause"]
