"""docs/how-to/emulator.md: a new project with the page's app, deployed, and used with `stack=`.

The emulator enforces IAM and serves TLS, as the end of the page says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Client
from holdfast.local import new_project
from tests.infra.deployed import cdk, give_rights, python_of_emulator_page
from tests.infra.ministack import ACCOUNT, REGION, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]


def project(directory: Path) -> Path:
    shop = directory / "shop"
    new_project.create(shop, "order")
    (shop / "app.py").write_text(python_of_emulator_page()[0])
    settings = json.loads((shop / "cdk.json").read_text())
    # The environment of these tests has the CDK already; `uv run` would make another one.
    (shop / "cdk.json").write_text(json.dumps({**settings, "app": f"{sys.executable} app.py"}))
    lock = [sys.executable, "-m", "uv", "lock", "--quiet", "--project", str(shop)]
    subprocess.run(lock, check=True, timeout=120)
    return shop


def test_a_stack_on_the_emulator_is_used_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = project(tmp_path)
    with running(tmp_path) as cloud:
        cdk(cloud, tmp_path, "bootstrap", f"aws://{ACCOUNT}/{REGION}", project=shop)
        cdk(cloud, tmp_path, "deploy", "--require-approval=never", project=shop)
        give_rights(cloud, "Shop")
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        client = Client(stack="Shop")
        client.event("bank.settled", "o1", {"ok": True})
        execution = client.start("buy", {"order_id": "o1", "pence": 1_250}, name="order-1")
        assert execution.result(timeout=60) == "parcel-o1"
