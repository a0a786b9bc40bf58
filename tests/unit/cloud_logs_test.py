"""`holdfast logs --stack`: what is asked of CloudWatch Logs, and what is made of its answer."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from holdfast.errors import RequestError
from holdfast.local.cloud_logs import read_lines

EXECUTION = {
    "execution": "01m8796j51x0ddq7zx87hexsag",
    "started": "2026-03-02T09:00:00Z",
    "stopped": "2026-03-02T09:01:00Z",
}
GROUPS = ("HoldfastWorkerLog1", "HoldfastWorkerSingleLog2", "HoldfastApiLog3")


class Cloud:
    """CloudFormation and CloudWatch Logs of one stack."""

    def __init__(self, groups: tuple[str, ...] = GROUPS, fault: str | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self._groups, self._fault = groups, fault

    def create_client(self, _: str) -> Cloud:
        return self

    def get_paginator(self, operation: str) -> Cloud:
        self._operation = operation
        return self

    def paginate(self, **request: Any) -> list[Any]:
        if self._operation == "list_stack_resources":
            self.stack = request["StackName"]
            return [{"StackResourceSummaries": [self._resource(name) for name in self._groups]}]
        if self._fault:
            raise ClientError({"Error": {"Code": self._fault, "Message": "no"}}, "FilterLogEvents")
        self.asked.append(request)
        second = len(self.asked)
        line = {"timestamp": f"2026-03-02T09:00:0{9 - second}Z", "message": f"line {second}"}
        line["execution_id"] = EXECUTION["execution"]
        # An emulator ignores the pattern.
        texts = ["START RequestId: 1", json.dumps(line), '{"execution_id": "other"}', "[1]"]
        return [{"events": [{"message": text} for text in texts]}]

    def _resource(self, name: str) -> dict[str, str]:
        return {
            "ResourceType": "AWS::Logs::LogGroup",
            "LogicalResourceId": name,
            "PhysicalResourceId": f"/aws/{name}",
        }


def use(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(botocore.session, "Session", lambda: cloud)


def test_the_lines_of_all_workers_are_found_by_execution_and_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = Cloud()
    use(cloud, monkeypatch)
    lines = read_lines("Holdfast", EXECUTION)

    assert [line["message"] for line in lines] == ["line 2", "line 1"]  # by time
    assert [one["logGroupName"] for one in cloud.asked] == [f"/aws/{name}" for name in GROUPS[:2]]
    (pattern,) = {one["filterPattern"] for one in cloud.asked}
    assert pattern == '{ $.execution_id = "01m8796j51x0ddq7zx87hexsag*" }'
    assert cloud.asked[0]["startTime"] == 1_772_442_000_000
    assert cloud.asked[0]["endTime"] == 1_772_442_000_000 + 16 * 60_000


def test_of_two_constructs_in_a_stack_only_the_named_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = Cloud(("FlowsWorkerFunctionLog1", "FlowsWorkerSingleFunctionLog2", "OtherWorkerLog3"))
    use(cloud, monkeypatch)
    read_lines("Shop/Flows", EXECUTION)

    assert [one["logGroupName"][5:16] for one in cloud.asked] == ["FlowsWorker", "FlowsWorker"]
    assert cloud.stack == "Shop"


def test_an_execution_that_runs_is_read_up_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud()
    use(cloud, monkeypatch)
    read_lines("Holdfast", {"execution": "r", "started": EXECUTION["started"]})

    assert "endTime" not in cloud.asked[0]


@pytest.mark.parametrize(
    ("cloud", "code"),
    [(Cloud(fault="AccessDeniedException"), "HF293"), (Cloud(GROUPS[2:]), "HF276")],
)
def test_a_refusal_names_the_stack_and_the_fix(
    cloud: Cloud, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(cloud, monkeypatch)
    with pytest.raises(RequestError) as caught:
        read_lines("Holdfast", EXECUTION)

    assert caught.value.code == code
    assert "Holdfast" in caught.value.message
    assert caught.value.help
