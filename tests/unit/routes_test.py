"""Each route of the API: the command that it gives, and the parameters and fields that it takes.

`python -m tests.unit.routes_test` writes `tests/golden/routes.txt` anew. A change of it changes the
API for every client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import pytest

from holdfast.aws.http import _problem, api_handler
from holdfast.aws.routes import ROUTES as TABLE
from holdfast.aws.routes import require_here
from holdfast.errors import RequestError, ServiceFault
from holdfast.resources import ROUTES
from holdfast.stepfunctions import pools

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "routes.txt"
CALLER: Final = "arn:aws:iam::111122223333:user/ada"


class Commands:
    """Commands whose result is how they were called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def command(*given: Any, **named: Any) -> Any:
            told = [*map(_shown, given), *(f"{key}={value}" for key, value in named.items())]
            return _result(f"{name}({', '.join(told)})")

        return command


def _result(call: str) -> Generator[Any, Any, Any]:
    return {"call": call, "token": "T", "registered": True}
    yield


def _shown(value: Any) -> str:
    match value:
        case bytes():
            return f"{len(value)} bytes"
        case Commands():
            return "pools of default"
        case dict():
            return json.dumps(value, sort_keys=True)
        case _:
            return str(getattr(value, "__name__", value))


def _drained(handler: Iterator[Any]) -> Any:
    try:
        next(handler)
    except StopIteration as end:
        return end.value
    raise AssertionError("it has performed an effect")


def answered(
    route: str, *, forms: str | None = None, claims: Any = None, **fields: Any
) -> tuple[int, Any]:
    """Return status and body of the route with no parameters, an empty body and a caller of IAM."""
    host: Any = SimpleNamespace(
        front=Commands(),
        perform=_drained,
        forms_scheme=forms,
        log_fault=print,
        ports=SimpleNamespace(perform=lambda _clock: 0),
        look_now=lambda: None,
    )
    method, _, path = route.partition(" ")
    authorizer = {"jwt": {"claims": claims}} if claims else {"iam": {"userArn": CALLER}}
    request = {
        "requestContext": {
            "http": {"method": method},
            "authorizer": authorizer,
            "domainName": "api.example",
            "accountId": "111122223333",
        },
        "rawPath": path.replace("{", "the-").replace("}", ""),
        "headers": {},
        "body": "{}",
        **fields,
    }
    actions = {name: getattr(Commands(), f"pools.{name}") for name in pools.ACTIONS}
    with (
        patch("holdfast.aws.routes.format_control", Commands()),
        patch("holdfast.stepfunctions.pools.ACTIONS", actions),
        patch("holdfast.aws.protocol.service_of", lambda _host, place: f"service of {place}"),
    ):
        answer = api_handler(host, "eu-west-1")(request, None)
    return answer["statusCode"], json.loads(answer["body"])


def lines() -> Iterator[str]:
    for route in ROUTES:
        if route == "POST /":
            continue
        status, answer = answered(route)
        known = [",".join(names) or "-" for names in (TABLE[route].query, TABLE[route].fields)]
        yield f"{route} | {known[0]} | {known[1]} | {status} {answer['call']}"


def test_the_table_has_every_route_of_the_stack() -> None:
    assert ["POST /", *TABLE] == list(ROUTES)


def test_each_route_gives_the_command_and_takes_the_fields_that_were_reviewed() -> None:
    reviewed = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert list(lines()) == reviewed, "python -m tests.unit.routes_test writes the text anew"


@pytest.mark.parametrize("route", TABLE)
def test_a_route_takes_each_field_that_it_knows_and_no_other(route: str) -> None:
    parameters, fields = TABLE[route].query, TABLE[route].fields
    for name in parameters:
        status, _ = answered(route, queryStringParameters={name: "x"}, rawQueryString=f"{name}=x")
        assert status in {200, 201}
    status, answer = answered(route, queryStringParameters={"other": "x"})
    assert (status, answer["error"]["code"]) == (400, "HF219")
    assert answer["error"]["help"] == f"known: {', '.join(parameters) or 'none'}"
    assert answer["error"]["message"] == f"{route} has no query parameter 'other'"
    if not fields:
        return
    status, answer = answered(route, body='{"other": 1}')
    assert (status, answer["error"]["code"]) == (400, "HF219")
    assert answer["error"]["help"] == f"known: {', '.join(fields)}"
    assert answer["error"]["message"] == f"{route} has no field 'other'"


def test_a_start_that_changes_nothing_and_a_known_version_are_200() -> None:
    assert TABLE["POST /executions"].status({"started": True}) == 201
    assert TABLE["POST /executions"].status({}) == 201
    assert TABLE["POST /executions"].status({"started": False}) == 200
    assert TABLE["POST /workflows"].status({"registered": True}) == 201
    assert TABLE["POST /workflows"].status({"registered": False}) == 200
    assert TABLE["GET /executions"].status({}) == 200


@pytest.mark.parametrize("route", ["POST /pauses", "POST /limits/{name}", "POST /format"])
def test_what_concerns_the_whole_stack_is_no_command_of_a_tenant(route: str) -> None:
    status, answer = answered(route, claims={"tenant": "acme"})
    assert status == 403
    assert answer["error"] == {
        "code": "HF252",
        "message": "this concerns the whole stack, and a token speaks for one tenant",
        "help": "see docs/how-to/operate.md, Upgrade and rollback, for stacks that take tokens",
    }


def test_every_other_route_works_for_the_tenant_of_a_token() -> None:
    shared = {"GET /pauses", "GET /limits", "GET /limits/{name}", "GET /format", "POST /"}
    whole = {"POST /pauses", "POST /limits/{name}", "POST /format"}
    for route in set(ROUTES) - shared - whole:
        _, answer = answered(route, claims={"tenant": "acme", "sub": "eve"})
        assert "acme" in answer["call"], route
        assert "default" not in answer["call"], route


def test_a_question_has_a_link_where_the_stack_has_forms() -> None:
    _, answer = answered("GET /questions/{id}", forms="https")
    assert answer["link"] == "https://api.example/forms/T"
    assert "link" not in answered("GET /questions/{id}")[1]


@pytest.mark.parametrize("region", ["eu-west-1", None])
def test_an_arn_names_an_execution_of_this_region_and_account_alone(
    monkeypatch: pytest.MonkeyPatch, region: str | None
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1" if region else "eu-west-1")
    request = {"requestContext": {"accountId": "111122223333"}}
    own = "arn:aws:states:eu-west-1:111122223333:execution:order:o1"
    assert require_here(own, request, region) == own
    assert require_here("o1", request, region) == "o1"
    strange = (own.replace("eu-west-1", "eu-west-2"), own.replace("1111", "9999"), "arn:aws")
    for arn in strange:
        with pytest.raises(RequestError) as refused:
            require_here(arn, request, region)
        assert refused.value.code == "HF207"


@pytest.mark.parametrize("code", ["HF284", "HF285", "HF562", "HF321"])
def test_only_a_fault_in_words_of_holdfast_is_shown(code: str) -> None:
    told = _problem(ServiceFault(code, "the words"))["error"]["message"]
    assert (told == "the words") == (code != "HF321")


def test_a_client_that_names_its_operator_is_believed() -> None:
    _, answer = answered("POST /executions/{id}/pause", body='{"by": "bob"}')
    assert '"by": "bob"' in answer["call"]


def test_conditions_are_read_from_the_raw_query() -> None:
    _, answer = answered(
        "GET /executions",
        queryStringParameters={"where": "a=1,2,b=", "limit": "5"},
        rawQueryString="where=a%3D1,2&where=&limit=5",
    )
    assert json.loads(answer["call"].partition(", ")[2][:-1]) == {
        "where": ["a=1,2", ""],
        "limit": "5",
    }


@pytest.mark.parametrize("place", ["limit", "after"])
def test_a_bulk_operation_takes_filters_and_no_page(place: str) -> None:
    status, answer = answered("POST /bulk", body=json.dumps({"filters": {place: "1"}}))
    assert (status, answer["error"]["code"]) == (400, "HF219")
    status, answer = answered("POST /bulk", body='{"filters": {"stauts": "x"}}')
    assert "GET /executions has no filter 'stauts'" in answer["error"]["message"]
    assert answered("POST /bulk", body='{"filters": {"status": "failed"}}')[0] == 200


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
