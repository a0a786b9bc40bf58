"""The project of docs/how-to/own-project.md, deployed: its own stack, bucket and secret.

The loopback cloud enforces IAM, so the tasks reach what the stack grants them, and nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.local import new_project
from tests.infra.deployed import HOST_SETTINGS, ROOT, Deployment, cdk, deployed
from tests.infra.ministack import (
    ACCOUNT,
    REGION,
    grant_batches,
    grant_taking_on,
    name_secrets,
    running,
    wait_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

PAGE = (ROOT / "docs" / "how-to" / "own-project.md").read_text(encoding="utf-8")
WORKFLOWS = """

@task(idempotent=True)
def peek(bucket: str) -> int:
    return len(boto3.client("s3").list_objects_v2(Bucket=bucket).get("Contents", []))


@workflow
def keep(order_id: str) -> str:
    return store_receipt(order_id, f"receipt of {order_id}")


@workflow
def pry(bucket: str) -> int:
    return peek(bucket)
"""


def own_project(directory: Path) -> Path:
    """Make the project with `holdfast init`, and change it as the page does."""
    app, task = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    shop = directory / "shop"
    new_project.create(shop, "order")
    settings = dict(setting.split("=") for setting in HOST_SETTINGS)
    host = "".join(f"            {key}={value!r},\n" for key, value in settings.items())
    # ministack has no alarms on queries of metrics.
    host += "            alarm_bounds=AlarmBounds(failed=None),\n"
    app = app.replace("infra import Holdfast", "infra import AlarmBounds, Holdfast")
    (shop / "app.py").write_text(
        app.replace('            "Flows",\n', f'            "Flows",\n{host}')
    )
    workflows = task.replace("import task", "import task, workflow") + WORKFLOWS
    (shop / "shop" / "order.py").write_text(workflows)
    cdk_json = json.loads((shop / "cdk.json").read_text())
    # The environment of these tests has the CDK already; `uv run` would make another one.
    (shop / "cdk.json").write_text(json.dumps({**cdk_json, "app": f"{sys.executable} app.py"}))
    subprocess.run(
        [sys.executable, "-m", "uv", "lock", "--quiet", "--project", shop], check=True, timeout=120
    )
    return shop


def ended(shop: Deployment, workflow: str, given: dict[str, Any]) -> dict[str, Any]:
    request = {"workflow": workflow, "name": workflow, "input": given}
    status, answer = shop.call("POST", "/executions", request)
    assert status == 201, answer

    def once_ended() -> dict[str, Any] | None:
        _, found = shop.call("GET", f"/executions/{workflow}")
        return None if found["status"] == "RUNNING" else dict(found)

    return dict(wait_for(once_ended))


def test_tasks_reach_what_the_stack_grants_them_and_nothing_else(tmp_path: Path) -> None:
    project = own_project(tmp_path)
    with running(tmp_path) as cloud:
        cdk(cloud, tmp_path, "bootstrap", f"aws://{ACCOUNT}/{REGION}", project=project)
        outputs = tmp_path / "outputs.json"
        deploy = ("deploy", "--require-approval=never", f"--outputs-file={outputs}")
        cdk(cloud, tmp_path, *deploy, project=project)
        grant_batches(cloud, "Shop")
        grant_taking_on(cloud, "Shop")
        name_secrets(cloud, "Shop")
        found = json.loads(outputs.read_text())["Shop"]
        shop = deployed(cloud, {name.removeprefix("Flows"): value for name, value in found.items()})

        secrets = cloud.client("secretsmanager")
        [key] = [
            one["ARN"] for one in secrets.list_secrets()["SecretList"] if "BankKey" in one["Name"]
        ]
        secrets.put_secret_value(SecretId=key, SecretString="key of the bank")

        kept = ended(shop, "keep", {"order_id": "o1"})
        assert kept["status"] == "SUCCEEDED", json.dumps(kept)
        assert kept["output"] == "o1"
        buckets = cloud.client("s3")
        [receipts] = [
            bucket["Name"]
            for bucket in buckets.list_buckets()["Buckets"]
            if "receipts" in bucket["Name"]
        ]
        stored = buckets.get_object(Bucket=receipts, Key="o1")["Body"].read().decode()
        assert stored == "receipt of o1\nsigned with 15 characters"

        buckets.create_bucket(Bucket="not-granted")
        refused = ended(shop, "pry", {"bucket": "not-granted"})
        assert refused["status"] == "FAILED", json.dumps(refused)
        assert "not authorized to perform: s3:ListBucket" in refused["cause"]
