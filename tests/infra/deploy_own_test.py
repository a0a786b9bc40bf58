"""The project of docs/how-to/own-project.md, deployed: its own stack, bucket and secret.

The loopback cloud enforces IAM, so the tasks reach what the stack grants them, and nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.local import new_project
from tests.infra.deployed import HOST_SETTINGS, ROOT, Deployment, cdk, deployed, give_rights
from tests.infra.ministack import (
    ACCOUNT,
    REGION,
    running,
    wait_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

PAGE = (ROOT / "docs" / "how-to" / "own-project.md").read_text(encoding="utf-8")
KEY = "key of the bank"
WORKFLOWS = """

@task(idempotent=True)
def charge(customer: str, month: int) -> str:
    secret = boto3.client("secretsmanager").get_secret_value(SecretId=os.environ["BANK_KEY"])
    answer = requests.post(
        os.environ["BANK_URL"],
        json={"customer": customer, "month": month},
        headers={"Authorization": secret["SecretString"]},
        timeout=5,
    )
    answer.raise_for_status()
    return answer.json()["payment"]


@workflow
def subscribe(customer: str, months: int) -> list[str]:
    payments: list[str] = []
    month = 0
    while month < months:
        month += 1
        payment = charge(customer, month)
        store_receipt(payment, f"{customer}, month {month}")
        payments.append(payment)
        sleep(seconds(1))
    return payments


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


class Bank(BaseHTTPRequestHandler):
    """Answers a charge whose caller has the key."""

    def do_POST(self) -> None:
        charge = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_known = self.headers["Authorization"] == KEY
        answer = {"payment": f"{charge['customer']}-{charge['month']}"} if is_known else {}
        self.send_response(200 if is_known else 403)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: Any) -> None:
        """The terminal belongs to the test."""


@pytest.fixture
def bank() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Bank) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def own_project(directory: Path, bank: str) -> Path:
    """Make the project with `holdfast init`, and change it as the page does."""
    app, task = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    shop = directory / "shop"
    new_project.create(shop, "order")
    settings = dict(setting.split("=") for setting in HOST_SETTINGS)
    host = "".join(f"            {key}={value!r},\n" for key, value in settings.items())
    # ministack has no alarms on queries of metrics.
    host += "            alarm_bounds=AlarmBounds(failed=None),\n"
    app = app.replace("infra import Holdfast", "infra import AlarmBounds, Holdfast")
    app = app.replace('environment={"', f'environment={{"BANK_URL": "{bank}", "')
    (shop / "app.py").write_text(
        app.replace('            "Flows",\n', f'            "Flows",\n{host}')
    )
    names = "import seconds, sleep, task, workflow"
    workflows = task.replace("import task", names) + WORKFLOWS
    workflows = workflows.replace("import boto3\n", "import boto3\nimport requests\n")
    (shop / "shop" / "order.py").write_text(workflows)
    cdk_json = json.loads((shop / "cdk.json").read_text())
    # The environment of these tests has the CDK already; `uv run` would make another one.
    (shop / "cdk.json").write_text(json.dumps({**cdk_json, "app": f"{sys.executable} app.py"}))
    project = (shop / "pyproject.toml").read_text()
    (shop / "pyproject.toml").write_text(
        project.replace("dependencies = [", 'dependencies = ["requests", ', 1)
    )
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


def test_tasks_reach_what_the_stack_grants_them_and_nothing_else(tmp_path: Path, bank: str) -> None:
    project = own_project(tmp_path, bank)
    with running(tmp_path) as cloud:
        cdk(cloud, tmp_path, "bootstrap", f"aws://{ACCOUNT}/{REGION}", project=project)
        outputs = tmp_path / "outputs.json"
        deploy = ("deploy", "--require-approval=never", f"--outputs-file={outputs}")
        cdk(cloud, tmp_path, *deploy, project=project)
        give_rights(cloud, "Shop")
        found = json.loads(outputs.read_text())["Shop"]
        shop = deployed(cloud, {name.removeprefix("Flows"): value for name, value in found.items()})

        secrets = cloud.client("secretsmanager")
        [key] = [
            one["ARN"] for one in secrets.list_secrets()["SecretList"] if "BankKey" in one["Name"]
        ]
        secrets.put_secret_value(SecretId=key, SecretString=KEY)

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

        billed = ended(shop, "subscribe", {"customer": "ada", "months": 3})
        assert billed["output"] == ["ada-1", "ada-2", "ada-3"], json.dumps(billed)
        receipt = buckets.get_object(Bucket=receipts, Key="ada-3")["Body"].read().decode()
        assert receipt.startswith("ada, month 3")

        buckets.create_bucket(Bucket="not-granted")
        refused = ended(shop, "pry", {"bucket": "not-granted"})
        assert refused["status"] == "FAILED", json.dumps(refused)
        assert "not authorized to perform: s3:ListBucket" in refused["cause"]
