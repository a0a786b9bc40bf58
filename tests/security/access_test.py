"""The API takes the caller from the verified identity alone, and shows each tenant only its own
data.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.resources import ROUTES
from tests.security.access import (
    CALLED,
    NOBODIES,
    SMUGGLED,
    VERBS,
    Town,
    a_town,
    calls,
    one_town,
    targets,
)
from tests.security.cases import Case, each, run_generated
from tests.security.doors import IAM, Authorizer, Doors, opened, tenant
from tests.thorough import examples

#: The answers about another tenant's execution, token or machine; the rest are the caller's own.
REFUSED = {
    "/questions/{id}/answer": (409, "HF232"),
    "/questions/{id}": (404, "HF254"),
    "/requests/{id}": (404, "HF563"),
    "{id}": (404, "HF207"),
    "/answers": (403, "HF230"),
    "/": (404, "HF208"),
}
OWN = {"CreateStateMachineAlias", "DeleteActivity", "DeleteStateMachine", "ListTagsForResource"}
NOT_THERE = {
    "StateMachineDoesNotExist", "ExecutionDoesNotExist", "ActivityDoesNotExist", "ResourceNotFound",
    "InvalidToken",
}  # fmt: skip


# -- every route by other tenants ------------------------------------------------------------------


@pytest.mark.parametrize("caller", ["eve", "default"])
@pytest.mark.parametrize("route", ROUTES)
def test_a_route_reaches_nothing_of_another_tenant(route: str, caller: str) -> None:
    town = one_town()
    who = IAM if caller == "default" else tenant(caller)
    method, path, body = dict(zip(ROUTES, targets(town.acme), strict=True))[route]
    status, answer = town.doors.http(method, path, body, who)

    assert town.doors.foreign(caller) == []
    expected = next((REFUSED[mark] for mark in REFUSED if mark in route and mark != "/"), None)
    if route == "POST /":
        expected = REFUSED["/"]
    if expected is not None:
        assert (status, answer["error"]["code"]) == expected
        assert town.doors.wrote() == []
    assert town.acme.run not in str(answer.get("executions", ""))


@pytest.mark.parametrize("operation", sorted(calls(one_town().acme)))
def test_an_operation_of_aws_reaches_nothing_of_another_tenant(operation: str) -> None:
    town = one_town()
    status, answer = town.doors.states(operation, calls(town.acme)[operation], tenant("eve"))

    assert town.doors.foreign("eve") == []
    if status != 200:
        assert answer["__type"] in NOT_THERE | {"ValidationException", "InvalidArn"}
        assert town.doors.wrote() == []
    else:
        assert operation in {
            "DeleteActivity",
            "DeleteStateMachine",
            "DeleteStateMachineVersion",
        } | {
            "DeleteStateMachineAlias",
            "ListStateMachineVersions",
            "ListStateMachineAliases",
        }


def test_things_of_one_name_belong_to_two_tenants() -> None:
    town = a_town()
    mallory = town.mallory.who
    assert town.acme.execution_arn == town.mallory.execution_arn
    for operation in ("StopExecution", "DescribeExecution"):
        town.doors.states(operation, {"executionArn": town.acme.execution_arn}, mallory)
        assert town.doors.foreign("mallory") == []
    request = {"stateMachineArn": town.acme.machine_arn}
    assert town.doors.states("DeleteStateMachine", request, mallory)[0] == 200

    assert town.doors.states("DescribeStateMachine", request, town.acme.who)[0] == 200
    assert town.doors.states("DescribeStateMachine", request, mallory)[0] == 400


def test_a_page_of_one_tenant_cannot_be_continued_by_another() -> None:
    town = a_town()
    for name in ("acme", "eve"):
        for number in range(3):
            town.doors.states("CreateActivity", {"name": f"a{number}"}, tenant(name))
    shown = town.doors.states("ListActivities", {"maxResults": 1}, tenant("acme"))[1]
    request = {"maxResults": 1, "nextToken": shown["nextToken"]}

    assert town.doors.states("ListActivities", request, tenant("acme"))[0] == 200
    status, answer = town.doors.states("ListActivities", request, tenant("eve"))
    assert (status, answer["__type"]) == (400, "InvalidToken")


def test_a_page_token_is_not_unpacked_before_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    import base64
    import zlib

    from holdfast.stepfunctions import pages

    def unpacked(_: bytes) -> bytes:
        raise AssertionError

    doors = Doors()
    monkeypatch.setattr(pages.zlib, "decompress", unpacked)  # type: ignore[attr-defined]
    bomb = base64.urlsafe_b64encode(b"\0" * 16 + zlib.compress(b"x" * 400_000)).decode()
    status, answer = doors.states("ListActivities", {"nextToken": bomb})

    assert (status, answer["__type"]) == (400, "InvalidToken")


# -- identities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", NOBODIES, ids=repr)
def test_an_identity_that_names_no_tenant_is_served_nowhere(who: Authorizer) -> None:
    town = one_town()
    for method, path, body in targets(town.acme):
        status, answer = town.doors.http(method, path, body, who)
        assert (status, answer["error"]["code"]) == (403, "HF240")
        assert town.doors.seen == []
    for operation in ("ListStateMachines", "DeleteStateMachine"):
        status, answer = town.doors.states(operation, {}, who)
        assert (status, answer["__type"]) == (400, "AccessDeniedException")
        assert town.doors.seen == []


@pytest.mark.parametrize("headers", SMUGGLED, ids=repr)
@pytest.mark.parametrize("target", ["/executions", "/events"])
def test_a_header_does_not_change_the_tenant(headers: dict[str, str], target: str) -> None:
    town = one_town()
    bodies = {
        "/executions": {"workflow": "flow", "input": 1, "name": "paid"},
        "/events": {"name": "paid", "key": "k", "data": 1},
    }
    for method, body in (("GET", b""), ("POST", bodies[target])):
        status, _ = town.doors.http(method, target, body, tenant("eve"), headers)
        assert status in {200, 201}
        assert town.doors.foreign("eve") == []


@pytest.mark.parametrize("target", ["/executions", "/events"])
def test_a_tenant_in_a_body_or_a_query_is_refused(target: str) -> None:
    town = one_town()
    for method, query in (("GET", "?tenant=acme"), ("POST", "?tenant=acme"), ("POST", "")):
        body = {"tenant": "acme"} if method == "POST" else b""
        status, answer = town.doors.http(method, target + query, body, tenant("eve"))
        assert (status, answer["error"]["code"]) == (400, "HF219")
        assert town.doors.foreign("eve") == []


# -- verbs, paths and headers ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("path", sorted({route.split(" ")[1] for route in ROUTES}))
def test_a_verb_that_a_path_does_not_have_is_refused(path: str, verb: str) -> None:
    if f"{verb} {path}" in ROUTES:
        return
    shop = one_town().acme
    target = path.replace("{id}", shop.run)
    for headers in ({}, {"x-http-method-override": "POST"}):
        status, answer = shop.doors.http(verb, target, {}, shop.who, headers)
        assert (status, answer["error"]["code"]) == (404, "HF208")
        assert shop.doors.seen == []


@each(
    Case("a slash too many", "//executions/order-1", "HF208"),
    Case("a slash at the end", "/executions/order-1/", "HF208"),
    Case("upper case", "/EXECUTIONS/order-1", "HF208"),
    Case("two segments", "/executions/order-1/order-1", "HF208"),
    Case("a line feed at the end", "/executions/order-1%0A", "HF208"),
    Case("a line feed after the route", "/executions%0A", "HF208"),
    Case("the folder above", "/executions/../executions/order-1", "HF208"),
    Case("an encoded folder above", "/executions/%2e%2e", "HF207"),
    Case("twice encoded", "/executions/%252e%252e", "HF201"),
    Case("a matrix parameter", "/executions/order-1;x=1", "HF201"),
    Case("a way into a bucket", "/executions/..%2f..%2facme", "HF208"),
    Case("NUL", "/executions/order-1%00", "HF208"),
    Case("CR LF", "/executions/order-1%0d%0aSet-Cookie:a=b", "HF208"),
    Case("overlong UTF-8", "/executions/%c0%ae%c0%ae", "HF208"),
    Case("a key", "/executions/acme%23in", "HF208"),
    Case("another host", "http://evil.example/executions/order-9", "HF207"),
    Case("nothing", "", "HF208"),
    Case("a proxy's path", "/$default/executions", "HF208"),
    Case("what is not ours", "/.env", "HF208"),
    Case("an admin's path", "/admin", "HF208"),
)
def test_a_path_that_leads_around_the_doors_leads_nowhere(case: Case) -> None:
    shop = one_town().acme
    status, answer = shop.doors.http("GET", case.given, who=shop.who)

    assert (status, answer["error"]["code"]) in {(404, case.code), (400, case.code)}
    assert "\n" not in answer["error"]["message"]
    assert shop.doors.wrote() == []


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "POST /"])
def test_a_target_in_a_header_opens_no_door_but_its_own(route: str) -> None:
    """A caller that may only POST /answers must not delete a state machine there."""
    shop = opened(Doors())
    method, path = route.replace("{id}", shop.run).split(" ")
    body = {"stateMachineArn": shop.machine_arn}
    headers = {"x-amz-target": "AWSStepFunctions.DeleteStateMachine"}
    _, answer = shop.doors.http(method, path, body, IAM, headers)

    assert "__type" not in answer
    described = shop.doors.states("DescribeStateMachine", body)[1]
    assert described["status"] == "ACTIVE"


@each(
    Case("another service", "DynamoDB_20120810.Scan", "UnknownOperationException"),
    Case("no operation", "AWSStepFunctions.", "UnknownOperationException"),
    Case("no prefix", "ListActivities", "UnknownOperationException"),
    Case("lower case", "awsstepfunctions.ListActivities", "UnknownOperationException"),
    Case("a private function", "AWSStepFunctions._require", "UnknownOperationException"),
    Case("a dunder", "AWSStepFunctions.__class__", "UnknownOperationException"),
    Case("a path", "AWSStepFunctions.../ListActivities", "UnknownOperationException"),
    Case("two of them", "AWSStepFunctions.ListActivities,x", "UnknownOperationException"),
    Case("a blank", "AWSStepFunctions.ListActivities ", "UnknownOperationException"),
    Case("100,000 characters", "AWSStepFunctions." + "A" * 100_000, "UnknownOperationException"),
)
def test_a_target_that_is_no_operation_is_refused(case: Case) -> None:
    doors = Doors()
    status, answer = doors.http("POST", "/", {}, IAM, {"x-amz-target": case.given})

    assert (status, answer["__type"]) == (400, case.code)
    assert doors.wrote() == []


def test_every_operation_is_asked_for() -> None:
    town: Town = one_town()
    rest = {"CreateStateMachine", "CreateActivity", "ListActivities", "ListStateMachines"}

    assert set(CALLED) - set(calls(town.acme)) == rest | {"ValidateStateMachineDefinition"}


def test_generated_requests_reach_nothing_of_another_tenant() -> None:
    tally = run_generated("api", examples(2_000), seed=1)

    assert tally.refused > examples(600)
    assert tally.accepted > examples(200)


def test_a_door_that_forgot_the_tenant_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.runtime.storage import keys

    def forgetful(_tenant: str, run: str) -> str:
        return f"acme#{run}"

    monkeypatch.setattr(keys, "execution", forgetful)
    shop: Any = one_town().acme
    shop.doors.http("GET", f"/executions/{shop.run}", who=tenant("eve"))

    assert shop.doors.foreign("eve")
