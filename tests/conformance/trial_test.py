"""TestState against what AWS answered: every recorded call, through the operation, in memory."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from holdfast.runtime.driver import run
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.api import StatesApi
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.services import Services

NOW_MS = 1_790_000_000_000
SUITE = Path(__file__).parents[2].parent / "shared" / "conformance"
pytestmark = pytest.mark.skipif(
    not (SUITE / "cases.jsonl").exists(), reason="the recordings of AWS are not here"
)
REGION, ACCOUNT = "eu-central-1", "123456789012"
#: Recordings that today's service models contradict, with the reason.
KNOWN = {
    "integer_more_than_maximum_allowed": "Lambda has raised the largest MemorySize since",
}


def test_every_recorded_call_is_answered_as_aws_did(tmp_path: Path) -> None:
    runner = _runner()
    client = _Client(tmp_path)
    options = Namespace(
        region=REGION,
        account=ACCOUNT,
        timeout=30.0,
        functions_dir=str(tmp_path),
        create_roles=False,
        keep=False,
        sdk_metadata=False,
    )
    wrong = {}
    for case in _cases():
        result = runner.Run(case, client, options, "salt").go()
        if not (result["A"] and result["B"]):
            wrong[case["id"]] = result
    unexplained = {
        name: result for name, result in wrong.items() if not any(known in name for known in KNOWN)
    }
    assert unexplained == {}


def _cases() -> Iterator[dict[str, Any]]:
    with (SUITE / "cases.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            if case["category"] == "test-state":
                yield case


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_runner", SUITE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    limit = sys.getrecursionlimit()
    spec.loader.exec_module(module)
    sys.setrecursionlimit(limit)  # the runner raises it for all
    return module


class _Client:
    """boto3's client, whose requests the operation answers without a network."""

    def __init__(self, functions: Path) -> None:
        self._functions = functions
        self._services = Services(lambda: NOW_MS, tasks=self._invoke)
        nothing: Any = None
        place = ArnRegion(REGION, ACCOUNT)
        self._api = StatesApi(Service(nothing, nothing, "tenant", place, None))
        self._client = boto3.client(
            "stepfunctions",
            region_name=REGION,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            config=Config(retries={"total_max_attempts": 1}),
        )
        events = self._client.meta.events
        events.register("before-send.stepfunctions.TestState", self._answer)

    def get(self, service: str) -> Any:
        assert service == "stepfunctions"
        return self._client

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        try:
            handler = self._api.call("TestState", json.loads(request.body), bytes(range(16)))
            status, body = 200, run(handler, self._services.perform)
        except StatesFault as fault:
            status, body = 400, {"__type": fault.code, "message": fault.message}
        return _response(request.url, status, json.dumps(body).encode())

    def _invoke(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        """A function of the recordings, as the service `lambda:invoke` answers for it."""
        assert effect.name == "lambda:invoke"
        source = self._functions / f"{effect.arguments['FunctionName']}.py"
        module: dict[str, Any] = {}
        exec(source.read_text(), module)
        payload = module["handler"](effect.arguments["Payload"] or {}, None)
        return TaskSucceeded({"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200})


def _response(url: str, status: int, body: bytes) -> AWSResponse:
    response = AWSResponse(url, status, {}, io.BytesIO(body))
    response._content = body
    return response
