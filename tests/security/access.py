"""The rights of callers: verbs, paths and headers, on another tenant's resources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final

from holdfast.resources import ROUTES
from holdfast.runtime.effects import PutBlob, PutIfAbsent
from holdfast.stepfunctions.api import OPERATIONS
from tests.security.cases import Outcome, generator
from tests.security.doors import IAM, Authorizer, Doors, Shop, opened, tenant
from tests.unit import bad_input
from tests.unit.states_kit import PASS, ROLE

VERBS: Final = (
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
)
#: A tenant's name in a caller's request has no effect.
SMUGGLED: Final[list[dict[str, str]]] = [
    {},
    {"x-tenant": "acme"},
    {"tenant": "acme"},
    {"x-forwarded-user": "acme"},
    {"x-amzn-oidc-identity": "acme"},
    {"x-amzn-oidc-data": '{"tenant": "acme"}'},
    {"authorization": "Bearer eyJhbGciOiJub25lIn0.eyJ0ZW5hbnQiOiJhY21lIn0."},
    {"cookie": "tenant=acme"},
    {"x-http-method-override": "DELETE"},
    {"x-original-url": "/executions"},
    {"x-rewrite-url": "/executions"},
    {"x-forwarded-host": "evil.example"},
    {"host": "evil.example"},
    {"content-type": "application/x-amz-json-1.0"},
    {"content-encoding": "gzip"},
    {"transfer-encoding": "chunked"},
    {"x-amz-target": "AWSStepFunctions.DeleteStateMachine"},
    {"x-amz-target": "AWSStepFunctions.CreateActivity,AWSStepFunctions.ListActivities"},
]
#: These wait for a clock that stands still here.
WAITING: Final = {"GetActivityTask", "StartSyncExecution", "TestState"}
CALLED: Final = sorted(set(OPERATIONS) - WAITING)


@dataclass(frozen=True)
class Town:
    """One stack: `acme` has things, `mallory` has others under the same names, `eve` has none."""

    doors: Doors
    acme: Shop
    mallory: Shop


def a_town() -> Town:
    doors = Doors()
    return Town(doors, opened(doors, "acme"), opened(doors, "mallory"))


@cache
def one_town() -> Town:
    return a_town()


def targets(shop: Shop) -> list[tuple[str, str, Any]]:
    """Return method, path and body of every route, at this tenant's execution."""
    found = []
    for route in ROUTES:
        method, path = route.split(" ")
        bodies: dict[str, Any] = {
            "/executions": {"workflow": "flow", "input": 1},
            "/events": {"name": "paid", "key": "other", "data": 1},
            "/answers": {"token": shop.token, "output": 1},
            "/executions/{id}/pause": {"reason": "the bank is down"},
            "/executions/{id}/resume": {"reason": "the bank is back"},
            "/questions/{id}/answer": {"output": 1},
            "/questions/{id}/claim": {"by": "eve"},
            "/questions/{id}/release": {"by": "eve"},
            "/questions/{id}/delegate": {"to": "eve", "by": "eve"},
            "/executions/{id}/fork": {"step": "ask", "reason": "again"},
            "/executions/{id}/skip": {"step": "ask", "result": 1, "reason": "by hand"},
            "/executions/{id}/priority": {"priority": 1, "reason": "a large customer"},
            "/executions/{id}/migration": {"reason": "the new check is law"},
        }
        body = bodies.get(path, {}) if method == "POST" else b""
        identifier = f"{shop.run}:0.1" if path.startswith("/questions") else shop.run
        found.append((method, path.replace("{id}", identifier), body))
    return found


def calls(shop: Shop) -> dict[str, dict[str, Any]]:
    """Return a request of each operation that names this tenant's things."""
    machine, execution = shop.machine_arn, shop.execution_arn
    routing = [{"stateMachineVersionArn": f"{machine}:1", "weight": 100}]
    map_run = machine.replace("stateMachine", "mapRun") + "/x:4f1f8a36-2b8a-4a54-a7f1-62f1a4b1f1a1"
    by_machine = {"stateMachineArn": machine}
    requests: dict[str, dict[str, Any]] = {
        "UpdateStateMachine": {**by_machine, "definition": PASS, "roleArn": ROLE},
        "CreateStateMachineAlias": {"name": "PROD", "routingConfiguration": routing},
        "TagResource": {"resourceArn": machine, "tags": [{"key": "a", "value": "b"}]},
        "UntagResource": {"resourceArn": machine, "tagKeys": ["a"]},
        "ListTagsForResource": {"resourceArn": machine},
        "DeleteStateMachineVersion": {"stateMachineVersionArn": f"{machine}:1"},
        "SendTaskSuccess": {"taskToken": shop.token, "output": "1"},
        "SendTaskFailure": {"taskToken": shop.token},
        "SendTaskHeartbeat": {"taskToken": shop.token},
    }
    by_alias = {"stateMachineAliasArn": f"{machine}:PROD", "description": "x"}
    for name in ("DescribeStateMachineAlias", "DeleteStateMachineAlias", "UpdateStateMachineAlias"):
        requests[name] = by_alias
    for name in ("DescribeActivity", "DeleteActivity"):
        requests[name] = {"activityArn": shop.activity_arn}
    for name in ("DescribeMapRun", "UpdateMapRun"):
        requests[name] = {"mapRunArn": map_run, "maxConcurrency": 1}
    for name in (
        "DescribeExecution", "StopExecution", "RedriveExecution", "GetExecutionHistory",
        "DescribeStateMachineForExecution", "ListMapRuns",
    ):  # fmt: skip
        requests[name] = {"executionArn": execution}
    for name in (
        "DescribeStateMachine", "DeleteStateMachine", "StartExecution", "ListExecutions",
        "ListStateMachineAliases", "PublishStateMachineVersion", "ListStateMachineVersions",
    ):  # fmt: skip
        requests[name] = dict(by_machine)
    return requests


# -- generated -------------------------------------------------------------------------------------

CALLERS: Final[dict[str, Authorizer]] = {
    "mallory": tenant("mallory"),
    "eve": tenant("eve"),
    "default": IAM,
}
CODES: Final = {400, 403, 404, 409, 413}
#: Claims without a tenant.
_UNUSABLE: Final[list[Any]] = [
    "",
    None,
    5,
    "acme#",
    "acme/",
    "~due",
    " acme",
    "acme\n",
    "x" * 65,
    [],
]
NOBODIES: Final[list[Authorizer]] = [
    *map(tenant, _UNUSABLE),
    {"lambda": {"tenant": "acme"}},
    {"jwt": {}},
    {"jwt": None},
    {"jwt": {"claims": {}}},
]


@generator("api", full=10_000)
def asked(draw: Random) -> Outcome:
    """Check that no request touches data of `acme`, and that a refusal stores nothing."""
    town = one_town()
    doors = town.doors
    name = draw.choice(sorted(CALLERS))
    who = CALLERS[name] if draw.random() < 0.85 else draw.choice(NOBODIES)
    before = doors.stored()
    status, answer = _request(draw, town, who)
    if who in NOBODIES:
        assert status in {400, 403, 404}
        assert doors.seen == []
        return "refused"
    assert doors.foreign(name) == []
    if status < 300:
        return "accepted"
    assert status in CODES
    assert "__type" in answer or answer["error"]["code"].startswith(("HF2", "HF43", "HF44", "HF5"))
    assert all(isinstance(effect, PutIfAbsent | PutBlob) for effect in doors.wrote())
    assert doors.stored() == before
    return "refused"


def _request(draw: Random, town: Town, who: Authorizer) -> tuple[int, Any]:
    acme, doors = town.acme, town.doors
    headers = draw.choice(SMUGGLED)
    match draw.randrange(4):
        case 0:
            operation, request = draw.choice(sorted(calls(acme).items()))
            return doors.states(operation, request, who)
        case 1:
            operation = draw.choice(CALLED)
            return doors.states(operation, bad_input.request(draw, operation), who)
        case _:
            method, path, body = draw.choice(targets(acme))
            if draw.random() < 0.3:
                method = draw.choice(VERBS)
            if draw.random() < 0.3:
                path = a_path(draw, path)
            if draw.random() < 0.2:
                body = bad_input.text_of(draw, bad_input.junk(draw)).encode(errors="replace")
            return doors.http(method, path, body, who, headers)


def a_path(draw: Random, path: str) -> str:
    tricks = [
        "//", "/./", "/../", "/%2e%2e/", "%2f", "%252f", "%00", ";x=1", "?tenant=acme", "%0d%0a",
        "#", "/acme", "\\", "%5c", "..;/", "/~due", "%c0%af", "?status=RUNNING&workflow=flow",
    ]  # fmt: skip
    place = draw.randrange(1, len(path) + 1)
    return path[:place] + draw.choice(tricks) + path[place:]
