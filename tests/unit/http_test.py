"""The HTTP API: every route, and everything that can be wrong with a request."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast.aws import protocol
from holdfast.aws.identity import caller_of
from holdfast.errors import RequestError, ServiceFault
from holdfast.limits import BODY_BYTES_MAX, JSON_DEPTH_MAX
from holdfast.runtime.effects import Clock, Effect, RunTask, TaskFailed
from tests.builders import ask, chain, machine, wait_for
from tests.unit.host_kit import Context, Site, site

BOTH = {
    "it": {
        "Type": "Parallel",
        "Branches": [
            {"StartAt": "paid", "States": {"paid": wait_for("paid")}},
            {"StartAt": "ask", "States": {"ask": ask()}},
        ],
        "End": True,
    }
}
START = {"workflow": "flow", "input": {"n": 0}, "name": "order-1"}


def started(claims: Any = None) -> tuple[Site, str]:
    found = site(machine(BOTH))
    status, answer = found.request("POST", "/executions", START, claims=claims)
    assert status == 201
    found.work()
    return found, str(answer["execution"])


def problem(answer: tuple[int, Any]) -> tuple[int, str]:
    status, body = answer
    assert set(body) == {"error"}
    assert "Traceback" not in body["error"]["message"]
    return status, str(body["error"]["code"])


# -- routes ----------------------------------------------------------------------------------------


def test_an_order_from_start_to_end_over_the_api() -> None:
    found, run = started()
    status, shown = found.request("GET", "/executions/order-1")
    token = next(wait["token"] for wait in shown["waits"] if "token" in wait)
    event = {"name": "paid", "key": "k1", "data": {"pence": 5}, "id": "e1"}

    assert (status, shown["execution"]) == (200, run)
    assert found.request("POST", "/events", event) == (200, {"event": "e1", "waiting": 1})
    answer = {"token": token, "output": "yes"}
    assert found.request("POST", "/answers", answer) == (200, {"execution": run})
    found.work()
    assert found.request("GET", f"/executions/{run}")[1]["output"] == [{"pence": 5}, "yes"]
    assert found.request("GET", f"/executions/{run}/history")[1]["events"][0]["id"] == 1
    (row,) = found.request("GET", "/executions", query={"status": "SUCCEEDED"})[1]["executions"]
    assert row["execution"] == run
    assert found.request("GET", "/executions", query={"workflow": "flow"})[0] == 200


@pytest.mark.parametrize("identifier", ["order-1", "flow:order-1"])
def test_an_execution_is_shown_by_its_name_or_by_workflow_and_name(identifier: str) -> None:
    found, run = started()

    assert found.request("GET", f"/executions/{identifier}")[1]["execution"] == run


def test_the_traceback_of_a_failed_attempt_is_in_the_description_and_in_the_history() -> None:
    trace = '  File "shop/bank.py", line 3, in pay\n    raise Declined(account)'
    found = site(chain(1), tasks=lambda _: TaskFailed("Declined", "no money", trace))
    run = found.request("POST", "/executions", {**START, "input": {"n": 0}})[1]["execution"]
    found.work()

    shown = found.request("GET", f"/executions/{run}")[1]["last_failure"]
    events = found.request("GET", f"/executions/{run}/history")[1]["events"]
    assert (shown["task"], shown["error"], shown["cause"]) == ("add", "Declined", "no money")
    assert shown["traceback"] == trace
    assert next(event for event in events if event["type"] == "TaskFailed")["holdfast"] == {
        "traceback": trace
    }


def test_a_stop_over_the_api() -> None:
    found, run = started()
    words = {"error": "Cancelled", "cause": "by hand"}

    assert found.request("POST", f"/executions/{run}/stop", words) == (200, {"execution": run})
    found.work()
    assert found.request("GET", f"/executions/{run}")[1]["error"] == "Cancelled"


def test_a_pause_and_a_resume_over_the_api() -> None:
    found, run = started()
    why = {"reason": "the bank is down", "by": "ann"}

    answer = {"execution": run, "timers": "freeze"}
    assert found.request("POST", "/executions/order-1/pause", why) == (200, answer)
    found.work()
    shown = found.request("GET", f"/executions/{run}")[1]["paused"]
    assert (shown["reason"], shown["by"]) == ("the bank is down", "ann")
    other = {"reason": "another"}
    assert problem(found.request("POST", f"/executions/{run}/pause", other)) == (409, "HF235")
    assert found.request("POST", f"/executions/{run}/resume", why) == (200, {"execution": run})
    found.work()
    assert problem(found.request("POST", f"/executions/{run}/resume", why)) == (409, "HF236")


def test_without_a_name_the_caller_of_the_token_has_paused_it() -> None:
    claims = {"tenant": "acme", "sub": "ann@example.org"}
    found, run = started(claims)
    found.request("POST", f"/executions/{run}/pause", {"reason": "why"}, claims=claims)
    found.work()
    shown = found.request("GET", f"/executions/{run}", claims=claims)[1]
    assert shown["paused"]["by"] == "ann@example.org"


def test_a_stop_needs_no_body() -> None:
    found, run = started()

    assert found.request("POST", f"/executions/{run}/stop")[0] == 200


def test_workflows_are_shown_with_the_events_that_they_wait_for() -> None:
    found = site(chain(1))
    status, body = found.request("GET", "/workflows")

    assert status == 200
    assert body["workflows"] == [
        {
            "workflow": "flow",
            "definition": found.shop.definition.hash,
            "events": ["paid", "signed"],
        }
    ]


def test_events_without_a_waiting_execution_are_listed() -> None:
    found = site(chain(1))
    found.request("POST", "/events", {"name": "paid", "key": "k1", "data": 1, "id": "e1"})
    status, body = found.request("GET", "/events")

    assert (status, body["events"][0]["event"]) == (200, "e1")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("POST", "/"),
        ("GET", "/nothing"),
        ("DELETE", "/executions"),
        ("POST", "/executions/x/y"),
    ],
)
def test_a_route_that_is_not_there_is_404(method: str, path: str) -> None:
    found = site(chain(1)).request(method, path)
    assert problem(found) == (404, "HF208")
    assert found[1]["error"]["message"] == f"there is no route {method} {path}"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({}, {}),
        ({"help": "write b"}, {"help": "write b"}),
        ({"diagnostics": [{"line": 1}]}, {"diagnostics": [{"line": 1}]}),
    ],
)
def test_a_refusal_has_only_what_there_is_to_tell(told: Any, shown: Any) -> None:
    found = site(chain(1))

    def refuse(effect: Effect) -> Any:
        raise RequestError("HF211", "a is unknown", status=422, **told)

    found.ports.perform = refuse  # type: ignore[method-assign]
    status, body = found.request("GET", "/executions")
    assert (status, body) == (422, {"error": {"code": "HF211", "message": "a is unknown", **shown}})


def test_only_a_stack_with_forms_serves_them() -> None:
    found = site(chain(1))
    event = {"rawPath": "/forms/T", "requestContext": {"http": {"method": "GET"}}}
    assert found.api(event, Context())["statusCode"] == 403  # the token is no token
    found.host.forms_scheme = None
    assert problem(found.request("GET", "/forms/T")) == (404, "HF208")


@pytest.mark.parametrize(("subject", "caller"), [("ann", "ann"), ("\ud800", None), (7, None)])
def test_a_caller_is_a_text_that_a_record_can_hold(subject: Any, caller: str | None) -> None:
    claims = {"jwt": {"claims": {"sub": subject}}}
    assert caller_of({"requestContext": {"authorizer": claims}}) == caller


def test_a_long_path_is_cut_in_the_message() -> None:
    _, body = site(chain(1)).request("GET", f"/{'x' * 300}")
    assert body["error"]["message"] == f"there is no route GET /{'x' * 300}"[:200]


# -- unknown routes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "known"),
    [
        ("GET", "/executions", {"stauts": "FAILED"}, None, "workflow, status"),
        ("GET", "/executions/order-1", {"full": "1"}, None, "none"),
        ("GET", "/doctor", {"exection": "order-1"}, None, "execution, after"),
        ("POST", "/executions", None, {**START, "nmae": "order-2"}, "workflow, input, name"),
        ("POST", "/executions/order-1/stop", None, {"nwo": True}, "error, cause, now"),
        ("POST", "/executions/order-1/retry", None, {"because": "x"}, "reason"),
        ("POST", "/events", None, {"name": "paid", "kye": "k1"}, "name, key, data, id"),
        ("POST", "/format", None, {"fromat": 1}, "format"),
    ],
)
def test_a_parameter_or_field_that_a_route_does_not_know_is_refused_with_those_it_knows(
    method: str, path: str, query: Any, body: Any, known: str
) -> None:
    found, _ = started()
    before = [dict(item) for item in found.shop.world.services.items("mail")]
    status, answer = found.request(method, path, body, query=query)

    assert (status, answer["error"]["code"]) == (400, "HF219")
    assert answer["error"]["help"].split(": ")[1].split(", ")[:2] == known.split(", ")[:2]
    assert [dict(item) for item in found.shop.world.services.items("mail")] == before


def test_the_arn_of_another_account_or_region_names_no_execution_here() -> None:
    found, _ = started()
    context = {"http": {"method": "GET", "path": "/"}, "stage": "$default", "requestId": "r1"}
    for account in ("222222222222", "111111111111"):
        arn = "arn:aws:states:eu-west-1:111111111111:execution:flow:order-1"
        path = f"/executions/{arn}"
        http = {**context["http"], "path": path}  # type: ignore[dict-item]
        request = {**context, "http": http, "accountId": account}
        status, _shown = found.request("GET", path, requestContext=request)
        assert status == (200 if account == "111111111111" else 404)


# -- refusals keep their status --------------------------------------------------------------------


def test_a_refusal_of_the_front_door_has_its_status() -> None:
    found, _ = started()
    other = {**START, "input": {"n": 1}}

    assert problem(found.request("POST", "/executions", other)) == (409, "HF212")
    assert problem(found.request("POST", "/executions", {"workflow": "no"})) == (404, "HF205")
    assert problem(found.request("GET", "/executions/nobody")) == (404, "HF207")
    assert problem(found.request("GET", "/executions", query={"status": "no"})) == (400, "HF204")
    assert problem(found.request("POST", "/events", {"name": "no", "key": "k"})) == (404, "HF206")
    assert problem(found.request("POST", "/answers", {"token": "forged"})) == (403, "HF230")


def test_a_service_that_is_down_is_503_and_logged() -> None:
    found = site(chain(1))

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Clock):
            return 0
        raise ServiceFault("HF321", "slow down")

    found.ports.perform = perform  # type: ignore[method-assign]

    status, answer = found.request("POST", "/executions", START)
    assert problem((status, answer)) == (503, "HF321")
    assert "the log of the API's function" in answer["error"]["message"]
    assert "slow down" not in answer["error"]["message"]
    told = [what for what, _ in found.faults]
    assert told == ["~ctl was not read", "a request was not served"]


# -- bodies ----------------------------------------------------------------------------------------

DEEP = "[" * (JSON_DEPTH_MAX + 1) + "]" * (JSON_DEPTH_MAX + 1)
BAD_BODIES = {
    "not JSON": ("{", "HF242"),
    "only text": ("hello", "HF242"),
    "a list": ("[]", "HF242"),
    "null": ("null", "HF242"),
    "NaN": ('{"input": NaN}', "HF242"),
    "Infinity": ('{"input": -Infinity}', "HF242"),
    "a number without end": ('{"input": ' + "9" * 5_000 + "}", "HF242"),
    "deep": ('{"input": ' + DEEP + "}", "HF243"),
    "bottomless": ('{"input": ' + "[" * 100_000 + "]" * 100_000 + "}", "HF242"),
    "a lone surrogate": ('{"input": "\\ud800"}', "HF243"),
    "a lone surrogate in a key": ('{"input": {"\\udfff": 1}}', "HF243"),
}


@pytest.mark.parametrize("kind", BAD_BODIES)
def test_a_body_that_is_no_plain_json_object_is_refused(kind: str) -> None:
    text, code = BAD_BODIES[kind]
    found = site(chain(1))

    assert problem(found.request("POST", "/executions", text)) == (400, code)
    assert found.shop.world.services.items("mail") == []


def test_the_deepest_body_that_is_allowed_is_accepted() -> None:
    value: Any = 1
    for _ in range(JSON_DEPTH_MAX - 3):
        value = [value]

    assert site(chain(1)).request("POST", "/executions", {**START, "input": value})[0] == 201


def test_a_body_over_the_limit_is_413_whatever_it_holds() -> None:
    found = site(chain(1))
    long = "x" * (BODY_BYTES_MAX + 1)
    wide = json.dumps({"input": "ä" * (BODY_BYTES_MAX // 2)}, ensure_ascii=False)
    encoded = base64.b64encode(b"x" * (BODY_BYTES_MAX + 1)).decode()

    assert problem(found.request("POST", "/executions", long)) == (413, "HF241")
    assert problem(found.request("POST", "/executions", wide)) == (413, "HF241")
    assert problem(found.request("POST", "/executions", encoded, isBase64Encoded=True)) == (
        413,
        "HF241",
    )


def test_a_body_in_base64_is_read() -> None:
    found = site(chain(1))
    text = base64.b64encode(json.dumps(START).encode()).decode()

    assert found.request("POST", "/executions", text, isBase64Encoded=True)[0] == 201
    for bad in ("%%%", base64.b64encode(b"\xff\xfe").decode()):
        answer = found.request("POST", "/executions", bad, isBase64Encoded=True)
        assert problem(answer) == (400, "HF242")


def test_strange_paths_are_answered_with_a_code() -> None:
    found = site(chain(1))
    for path in ("/executions/%2e%2e", "/executions/a b", "/executions/" + "x" * 500):
        status, _ = problem(found.request("GET", path))
        assert status in (400, 404)


# -- tenants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [{}, {"tenant": ""}, {"tenant": "a#b"}, {"tenant": 5}, {"tenant": "x" * 65}, {"tenant": "~x"}],
)
def test_an_identity_without_a_usable_tenant_is_403_on_every_route(claims: Any) -> None:
    found, run = started()
    routes = [
        ("POST", "/executions"),
        ("GET", "/executions"),
        ("GET", f"/executions/{run}"),
        ("GET", f"/executions/{run}/history"),
        ("POST", f"/executions/{run}/stop"),
        ("POST", "/events"),
        ("GET", "/events"),
        ("POST", "/answers"),
    ]
    for method, path in routes:
        refused = found.request(method, path, {}, claims=claims)
        assert problem(refused) == (403, "HF240")
        message = refused[1]["error"]["message"]
        assert message == "the identity has no usable `tenant` claim"


def test_the_tenant_is_that_of_the_identity() -> None:
    found, run = started(claims={"tenant": "acme"})
    status, answer = found.request("POST", "/executions", START, claims={"tenant": "other"})
    partitions = {str(item["pk"]) for item in found.shop.world.services.items("executions")}

    assert status == 201
    assert answer["execution"] != run
    assert partitions == {f"acme#{run}"}
    assert problem(found.request("GET", f"/executions/{run}")) == (404, "HF207")
    assert found.request("GET", f"/executions/{run}", claims={"tenant": "acme"})[0] == 200


def test_another_tenant_reaches_nothing_on_any_route() -> None:
    found, run = started(claims={"tenant": "acme"})
    other = {"tenant": "other"}
    mine = found.request("GET", f"/executions/{run}", claims={"tenant": "acme"})[1]
    token = next(wait["token"] for wait in mine["waits"] if "token" in wait)
    for identifier in (run, "order-1"):
        for method, path in [("GET", ""), ("GET", "/history"), ("POST", "/stop")]:
            answer = found.request(method, f"/executions/{identifier}{path}", {}, claims=other)
            assert problem(answer) == (404, "HF207")
    answer = found.request("POST", "/answers", {"token": token, "output": 1}, claims=other)

    assert problem(answer) == (403, "HF230")
    assert found.request("GET", "/executions", claims=other)[1] == {"executions": []}


# -- AWS's protocol --------------------------------------------------------------------------------

TARGET = "AWSStepFunctions.ListActivities"


def states_call(
    found: Site, body: Any, target: str = TARGET, claims: Any = None
) -> tuple[int, Any]:
    """A call as API Gateway hands it on; the region is the function's."""
    http = {"method": "POST", "path": "/", "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    context: dict[str, Any] = {"http": http, "accountId": "210987654321", "requestId": "r1"}
    if claims is not None:
        context["authorizer"] = {"jwt": {"claims": claims}}
    headers = {"x-amz-target": target}
    return found.request("POST", "/", body, headers=headers, requestContext=context)


@pytest.fixture
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.usefixtures("_region")
def test_a_target_makes_a_request_a_call_of_step_functions() -> None:
    found = site(chain(1))

    made = states_call(found, {"name": "press"}, "AWSStepFunctions.CreateActivity")
    assert made[1]["activityArn"] == "arn:aws:states:eu-west-1:210987654321:activity:press"
    assert made[0] == 200
    (activity,) = states_call(found, {})[1]["activities"]
    assert activity["name"] == "press"


@pytest.mark.usefixtures("_region")
def test_a_fault_has_the_status_that_awss_reference_names() -> None:
    found = site(chain(1))
    states = {"A": {"Type": "Pass", "End": True}}
    wanted: dict[str, Any] = {"name": "m"}
    wanted["definition"] = json.dumps({"StartAt": "A", "States": states})
    wanted |= {"roleArn": "arn:aws:iam::210987654321:role/clerk", "publish": True}
    made = states_call(found, wanted, "AWSStepFunctions.CreateStateMachine")[1]
    version = made["stateMachineVersionArn"]
    route = [{"stateMachineVersionArn": version, "weight": 100}]
    alias = {"name": "live", "routingConfiguration": route}
    assert states_call(found, alias, "AWSStepFunctions.CreateStateMachineAlias")[0] == 200
    again = {"stateMachineVersionArn": version}
    status, refused = states_call(found, again, "AWSStepFunctions.DeleteStateMachineVersion")
    assert (status, refused["__type"]) == (400, "ConflictException")
    gone = {"activityArn": "arn:aws:states:eu-west-1:210987654321:activity:none"}
    status, refused = states_call(found, gone, "AWSStepFunctions.DescribeActivity")
    assert (status, refused["__type"]) == (400, "ActivityDoesNotExist")


@pytest.mark.usefixtures("_region")
def test_tenants_have_state_machines_of_their_own() -> None:
    found = site(chain(1))
    create = "AWSStepFunctions.CreateActivity"

    assert states_call(found, {"name": "press"}, create, {"tenant": "acme"})[0] == 200
    assert states_call(found, {}, claims={"tenant": "other"})[1] == {"activities": []}
    refused = states_call(found, {}, claims={"tenant": "a/b"})
    assert (refused[0], refused[1]["__type"]) == (400, "AccessDeniedException")


@pytest.mark.usefixtures("_region")
@pytest.mark.parametrize(
    ("target", "body", "kind"),
    [
        ("AWSStepFunctions.Dance", {}, "UnknownOperationException"),
        ("DynamoDB_20120810.ListTables", {}, "UnknownOperationException"),
        ("", {}, "UnknownOperationException"),
        (TARGET, "{", "SerializationException"),
        (TARGET, '{"maxResults": NaN}', "SerializationException"),
    ],
)
def test_a_request_that_is_no_call_is_refused_as_aws_does(
    target: str, body: Any, kind: str
) -> None:
    status, answer = states_call(site(chain(1)), body, target)
    assert (status, answer["__type"]) == (400, kind)


@pytest.mark.usefixtures("_region")
def test_a_fault_of_the_world_is_no_fault_of_the_caller() -> None:
    found = site(chain(1))

    def broken(effect: Effect) -> Any:
        if isinstance(effect, Clock):
            return 0
        raise ServiceFault("HF300", "the store is away")

    found.ports.perform = broken  # type: ignore[method-assign]
    status, answer = states_call(found, {})
    assert (status, answer["__type"]) == (500, "InternalFailure")
    assert "a request was not served" in [what for what, _ in found.faults]


@pytest.mark.parametrize(("resource", "as_json"), [("x:2", True), ("x", False)])
def test_a_task_that_waits_for_an_execution_is_its_parent(resource: str, as_json: bool) -> None:
    task = RunTask("start", "sync", {}, "default", "r7", None, "order", 3, 2, 0, resource=resource)
    parent = {"run": "r7", "entry": 3, "attempt": 2, "as_json": as_json}
    assert protocol._parent(task) == parent
    assert protocol._parent(replace(task, kind="service")) is None
