"""Recorded calls about state machines, replayed through boto3 against the API in memory.

boto3's own client does what clients do (checks, serialises, parses); only its wire ends here.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.api import OPERATIONS, function_name
from holdfast.stepfunctions.faults import HTTP_STATUS, StatesFault
from tests.unit.states_kit import PLACE, Desk

SHARED = Path(__file__).parents[2].parent / "shared" / "conformance"
MODULES = ("machines", "versions", "aliases", "tags")
ACTIONS = {function_name(name) for name, module in OPERATIONS.items() if module in MODULES}


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_run", SHARED / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    limit = sys.getrecursionlimit()
    spec.loader.exec_module(module)
    sys.setrecursionlimit(limit)
    return module


def _actions(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        if step["op"] == "call" and step["service"] == "stepfunctions":
            yield step["action"]
        yield from _actions(step.get("steps", []))


def _cases() -> list[dict[str, Any]]:
    if not SHARED.exists():
        return []
    lines = (SHARED / "cases.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    return [
        case
        for case in cases
        if case["kind"] == "api"
        and case["category"] != "test-state"
        and set(_actions(case["steps"])) <= ACTIONS
    ]


class Logs:
    """CloudWatch Logs, as far as a log group that exists or does not."""

    def __init__(self) -> None:
        self.groups: set[str] = set()

    def create_log_group(self, logGroupName: str) -> dict[str, Any]:  # noqa: N803
        self.groups.add(logGroupName)
        return {}

    def delete_log_group(self, logGroupName: str) -> dict[str, Any]:  # noqa: N803
        self.groups.discard(logGroupName)
        return {}

    def describe_log_groups(self, logGroupNamePrefix: str) -> dict[str, Any]:  # noqa: N803
        names = [name for name in self.groups if name.startswith(logGroupNamePrefix)]
        arn = f"arn:aws:logs:{PLACE.region}:{PLACE.account}:log-group:"
        groups = [{"logGroupName": name, "arn": f"{arn}{name}:*"} for name in names]
        return {"logGroups": groups}

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        assert effect.name == "aws-sdk:cloudwatchlogs:describeLogGroups"
        found = self.describe_log_groups(effect.arguments["LogGroupNamePrefix"])["logGroups"]
        return TaskSucceeded({"LogGroups": [{"LogGroupName": g["logGroupName"]} for g in found]})


class Clients:
    """The clients that the runner calls: boto3's client on the API in memory, and `Logs`."""

    def __init__(self) -> None:
        import boto3
        from botocore.config import Config

        self.logs = Logs()
        self.desk = Desk(self.logs)
        self.states = boto3.client(
            "stepfunctions",
            region_name=PLACE.region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.states.meta.events.register("before-send.stepfunctions", self._answer)

    def get(self, service: str) -> Any:
        return {"stepfunctions": self.states, "logs": self.logs}[service]

    def _answer(self, request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse

        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        try:
            status, answer = 200, self.desk.call(operation, **json.loads(request.body))
        except StatesFault as fault:
            told = {"__type": fault.code, "message": fault.message, **fault.extra}
            status, answer = HTTP_STATUS, told
        return AWSResponse(request.url, status, {}, Raw(json.dumps(answer).encode()))


class Raw:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.data


def _replay(case: dict[str, Any]) -> dict[str, Any]:
    runner = _runner()
    options = argparse.Namespace(
        region=PLACE.region,
        account=PLACE.account,
        timeout=90.0,
        keep=True,
        sdk_metadata=False,
        create_roles=False,
        functions_dir=None,
    )
    runner.Run.sleep = lambda self, seconds: None
    result: dict[str, Any] = runner.Run(_fair(case), Clients(), options, "salt").go()
    return result


def _fair(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case, without what no answer of today can be equal to."""
    norm = dict(case["norm"])
    if "encryptionConfiguration" not in json.dumps(case["checks"]):
        # Recorded before AWS added this field, in 2024.
        norm["drop_keys"] = [*norm["drop_keys"], "encryptionConfiguration"]
    if "logs" in case["services"]:
        # A placeholder that the recording's own list of words has not.
        norm["words"] = [*norm["words"], "log_group_name"]
    return {**case, "norm": norm}


@pytest.mark.skipif(not SHARED.exists(), reason="the recordings are not here")
def test_there_are_recordings_to_replay() -> None:
    assert len(_cases()) > 40


@pytest.mark.parametrize(
    "case",
    _cases(),
    ids=lambda case: re.sub(r".*::", "", case["id"].encode("ascii", "replace").decode()),
)
def test_a_recorded_call_is_answered_as_aws_did(case: dict[str, Any]) -> None:
    result = _replay(case)

    assert result["problem"] is None
    assert result["diff"] == []
