"""The template as `cdk deploy` deploys it to ministack, and the callers of its resources."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.infra.ministack import (
    ACCOUNT,
    REGION,
    Caller,
    Ministack,
    grant_batches,
    grant_taking_on,
    running,
)

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CDK_SECONDS_MAX = 240
HOST_SETTINGS = (
    f"architecture={ {'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }",
    f"python={sys.version_info.major}.{sys.version_info.minor}",
)
# ministack has no alarms on queries of metrics: `metrics_test.py` reads that alarm's template.
BOUNDS = 'alarm_bounds={"failed": null}'
STACK = "Holdfast"
# Beside the workflows of the settings, one whose task has a limit.
MODULES = tuple(
    f"statemachines.{name}"
    for name in ("order_fulfilment", "loan_approval", "document_signing", "submission_update")
)
# The queue that a managed policy lets state machines send to; it belongs to the user, not to us.
PARCELS = "parcels"


def python_of_emulator_page() -> list[str]:
    """Return the app and the script of docs/how-to/emulator.md."""
    page = (ROOT / "docs" / "how-to" / "emulator.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def give_rights(cloud: Ministack, stack: str) -> None:
    """Run the page's script, which gives the stack's roles the rights that ministack asks for."""
    script = python_of_emulator_page()[1]
    command = [sys.executable, "-", stack]
    subprocess.run(command, input=script, text=True, env=cloud.environment(), check=True)


@dataclass(frozen=True)
class Deployment:
    cloud: Ministack
    outputs: dict[str, str]
    call: Caller
    stranger: Caller
    anonymous: Caller

    def function(self, name: str) -> dict[str, Any]:
        functions = self.cloud.client("lambda").list_functions()["Functions"]
        [found] = [f for f in functions if f"-{name}Function" in f["FunctionName"]]
        return dict(found)

    def log_lines(self, function: str = "") -> list[str]:
        logs = self.cloud.client("logs")
        return [
            event["message"]
            for group in logs.describe_log_groups()["logGroups"]
            if f"{function}FunctionLog" in group["logGroupName"]
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        ]


@contextmanager
def deploy(directory: Path, *chosen: str) -> Iterator[Deployment]:
    """The stack with a policy for tasks, for as long as the context is open. `chosen`: further
    settings, such as `forms=on`.
    """
    with running(directory) as cloud:
        cdk(cloud, directory, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        outputs = directory / "outputs.json"
        policies = f"task_policies={make_parcels(cloud)}"
        others = [option for setting in chosen for option in ("--context", setting)]
        cdk(
            cloud,
            directory,
            *("deploy", "--require-approval=never", f"--outputs-file={outputs}"),
            *("--context", policies, "--context", f"modules={','.join(MODULES)}"),
            *others,
        )
        grant_batches(cloud, STACK)
        grant_taking_on(cloud, STACK)
        yield deployed(cloud, json.loads(outputs.read_text())[STACK])


def make_parcels(cloud: Ministack) -> str:
    """Return the ARN of a policy that allows to send to the queue, and is careless about tables."""
    queues = cloud.client("sqs")
    url = queues.create_queue(QueueName=PARCELS)["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return cloud.policy(
        "send-parcels",
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": arn["QueueArn"]},
        {"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*"},
    )


def cdk(cloud: Ministack, directory: Path, *arguments: str, project: Path = ROOT) -> None:
    """Run the CDK's command line in `project`, with the node_modules of this repository."""
    if not (ROOT / "node_modules" / "aws-cdk").exists():
        subprocess.run([BIN / "npm", "ci"], cwd=ROOT, check=True, timeout=CDK_SECONDS_MAX)
    program = [BIN / "node", ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"]
    settings = [option for setting in (*HOST_SETTINGS, BOUNDS) for option in ("--context", setting)]
    subprocess.run(
        [*program, *arguments, *settings, "--output", directory / "cdk.out"],
        cwd=project,
        env={**cloud.environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        check=True,
        timeout=CDK_SECONDS_MAX,
    )


def deployed(cloud: Ministack, outputs: dict[str, str]) -> Deployment:
    url = outputs["ApiUrl"]
    api_id = url.removeprefix("https://").partition(".")[0]
    api = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api_id}/*"
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{outputs['BusName']}"
    clerk = cloud.user(
        "clerk", {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": api}
    )
    stranger = cloud.user(
        "stranger", {"Effect": "Allow", "Action": "events:PutEvents", "Resource": bus}
    )
    return Deployment(
        cloud,
        outputs,
        call=Caller(cloud, url, clerk),
        stranger=Caller(cloud, url, stranger),
        anonymous=Caller(cloud, url, None),
    )
