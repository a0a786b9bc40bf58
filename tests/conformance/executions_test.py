"""Recorded executions that need no other service, replayed through boto3 in virtual time."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.stepfunctions.api import OPERATIONS, function_name
from holdfast.stepfunctions.faults import HTTP_STATUS, StatesFault
from tests.conformance import api_test
from tests.unit.states_kit import PLACE
from tests.unit.states_world import Office

#: The operations of the API on executions; states have tests of their own.
CATEGORIES = (
    "api",
    "api-activities",
    "api-aliasing",
    "api-express",
    "api-map-run",
    "api-variable-references",
    "api-versioning",
    "base",
    "comments",
    "context-object",
    "evaluate-jsonata",
    "express",
    "outputdecl",
    "query-language",
)


def _cases() -> list[dict[str, Any]]:
    if not api_test.SHARED.exists():
        return []
    lines = (api_test.SHARED / "cases.jsonl").read_text().splitlines()
    return [case for case in map(json.loads, lines) if _is_ours(case)]


def _is_ours(case: dict[str, Any]) -> bool:
    actions = set(_actions(case["steps"]))
    return (
        case["category"] in CATEGORIES
        and not set(case["services"]) - {"activities"}
        and actions <= {function_name(name) for name in OPERATIONS}
        and bool(actions - api_test.ACTIONS)
        and not any(step["op"] in {"worker", "background"} for step in case["steps"])
    )


def _actions(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        if step["op"] == "call":
            yield step["action"]
        yield from _actions(step.get("steps", []))


class Clients:
    """boto3's client; its wire ends in a world where time passes while the runner sleeps."""

    def __init__(self) -> None:
        import boto3
        from botocore.config import Config

        self.office = Office()
        self.states = boto3.client(
            "stepfunctions",
            region_name=PLACE.region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}, inject_host_prefix=False),
        )
        self.states.meta.events.register("before-send.stepfunctions", self._answer)

    def get(self, service: str) -> Any:
        return {"stepfunctions": self.states}[service]

    def _answer(self, request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse

        operation = request.headers["X-Amz-Target"].decode().partition(".")[2]
        self.office.world.now_ms += 1
        try:
            status, answer = 200, self.office.call(operation, **json.loads(request.body))
        except StatesFault as fault:
            told = {"__type": fault.code, "message": fault.message, **fault.extra}
            status, answer = HTTP_STATUS, told
        self.office.wait()
        return AWSResponse(request.url, status, {}, api_test.Raw(json.dumps(answer).encode()))


def replay(case: dict[str, Any]) -> dict[str, Any]:
    """Return the runner's report on the case: `problem`, `diff`, and the result of each tier."""
    runner = api_test._runner()
    options = argparse.Namespace(
        region=PLACE.region,
        account=PLACE.account,
        timeout=90.0,
        keep=True,
        sdk_metadata=False,
        create_roles=False,
        functions_dir=None,
    )
    for check in case["checks"]:
        if check.get("expected_in") == "expected.events":
            check["expected"] = {"events": case["expected"]["events"]}
    clients = Clients()
    runner.Run.sleep = lambda _, seconds: clients.office.wait(max(1, round(seconds)))
    result: dict[str, Any] = runner.Run(_fair(case), clients, options, "salt").go()
    return result


def _fair(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case, without what AWS's answers have got since it was recorded."""
    fair = api_test._fair(case)
    if "redriveCount" in json.dumps(case["checks"]):
        return fair
    norm = {**fair["norm"], "drop_keys": [*fair["norm"]["drop_keys"], "redriveCount"]}
    return {**fair, "norm": norm}


@pytest.mark.parametrize(
    "case",
    _cases(),
    ids=lambda case: re.sub(r".*::", "", case["id"].encode("ascii", "replace").decode()),
)
def test_a_recorded_execution_is_described_as_by_aws(case: dict[str, Any]) -> None:
    result = replay(case)

    assert result["problem"] is None
    assert result["diff"] == []
