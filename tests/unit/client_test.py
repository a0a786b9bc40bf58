"""`holdfast.Client` and `AsyncClient`, as applications use them."""

from __future__ import annotations

import asyncio
import inspect
import os
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime
from itertools import islice
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest
from pydantic import SecretStr

import holdfast
from holdfast.errors import RequestError, ServiceFault
from holdfast.remote import (
    AlreadyEnded,
    AsyncClient,
    Client,
    Conflict,
    ExecutionFailed,
    Forbidden,
    NotFound,
    NotPublished,
    PublishedTimeout,
    ResultTimeout,
)
from holdfast.remote.connecting import Api
from holdfast.remote.operations import executions, requests
from holdfast.remote.operations.requests import Call, Now, Sleep
from tests.unit import client_flows
from tests.unit.client_flows import Order, Paid, Receipt, fulfil, guided, log_in, settle
from tests.unit.client_kit import MemoryStack, served

ORDER = Order(id="17", cents=1_250, due=date(2027, 1, 15))
DEAR = Order(id="18", cents=99_000, due=date(2027, 1, 15))


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack("tests.unit.client_flows")


@pytest.fixture
def shop(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def test_a_kept_connection_with_a_high_descriptor_is_used_again(stack: MemoryStack) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1_200:
        pytest.skip("this process may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_200), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_030)]
    try:
        with served(stack) as url:
            shop = Client(url.url)
            assert [shop.events(), shop.events()] == [[], []]
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- starting, and the result ----------------------------------------------------------------------


def test_a_workflow_is_started_with_its_own_arguments_and_returns_its_own_type(
    shop: Client,
) -> None:
    handle = shop.start(fulfil, ORDER, name="order-17")
    assert handle.result(timeout=5) == Receipt(order="17", paid=1_250)
    assert shop.start(fulfil, ORDER, True, name="gift-17").result(5) == Receipt(order="17", paid=0)


def test_a_workflow_is_started_by_its_name_with_json_or_with_models(shop: Client) -> None:
    plain = {"order": {"id": "17", "cents": 1_250, "due": "2027-01-15"}}
    assert shop.start("fulfil", plain).result(5) == {"order": "17", "paid": 1_250}
    assert shop.start("fulfil", {"order": ORDER}).result(5) == {"order": "17", "paid": 1_250}


def test_the_defaults_of_omitted_parameters_are_those_of_the_deployed_code(
    shop: Client,
) -> None:
    assert set(shop.start(fulfil, ORDER).describe()["input"]) == {"order", "gift"}
    started = executions.start("fulfil", {"order": ORDER})
    assert b"gift" not in next(started).body  # type: ignore[union-attr]


def test_a_secret_reaches_the_task_and_no_answer_of_the_api(shop: Client) -> None:
    client_flows.seen.clear()
    handle = shop.start(log_in, SecretStr("open sesame"))
    assert handle.result(5) == "in"
    assert client_flows.seen == ["open sesame"]
    assert "open sesame" not in str(handle.describe())


def test_the_same_name_and_input_start_once_and_another_input_is_a_conflict(
    shop: Client,
) -> None:
    first = shop.start(fulfil, ORDER, name="order-17")
    assert shop.start(fulfil, ORDER, name="order-17").execution == first.execution
    with pytest.raises(Conflict, match="HF212"):
        shop.start(fulfil, DEAR, name="order-17")


def test_a_handle_of_an_earlier_execution_has_its_result(shop: Client) -> None:
    shop.start(fulfil, ORDER, name="order-17")
    assert shop.handle("order-17", fulfil).result(5).paid == 1_250
    assert shop.handle("fulfil:order-17").result(5) == {"order": "17", "paid": 1_250}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((fulfil, {"id": "17"}), "HF210"),
        ((fulfil,), "HF210"),
        ((fulfil, ORDER, True, 3), "HF210"),
        (("fulfil", 1, 2), "HF287"),
        ((print, 1), "HF287"),
        (("fulfil", {"order": object()}), "HF243"),
        (("fulfil", {"order": float("nan")}), "HF243"),
    ],
)
def test_a_start_that_cannot_be_is_refused_before_anything_is_sent(
    shop: Client, stack: MemoryStack, arguments: tuple[Any, ...], code: str
) -> None:
    with pytest.raises(RequestError) as caught:
        shop.start(*arguments)
    assert caught.value.code == code
    assert stack.requests == []


# -- errors ----------------------------------------------------------------------------------------


def test_a_failed_execution_raises_its_error_and_cause(shop: Client) -> None:
    handle = shop.start(fulfil, DEAR, name="order-18")
    with pytest.raises(ExecutionFailed) as caught:
        handle.result(5)
    error = caught.value
    assert (error.status, error.error) == ("FAILED", "CardDeclined")
    assert error.cause == "over the limit of the card"
    assert error.execution == handle.execution
    again = shop.start(fulfil, DEAR, name="order-18")
    assert again.started is not None
    assert again.started["started"] is False


def test_an_execution_that_runs_on_raises_a_timeout(
    shop: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("holdfast.remote.client.time.monotonic", lambda: now[0])
    monkeypatch.setattr(
        "holdfast.remote.client.time.sleep", lambda s: now.__setitem__(0, now[0] + s)
    )
    handle = shop.start(settle, "17")
    with pytest.raises(ResultTimeout) as caught:
        handle.result(timeout=60)
    assert isinstance(caught.value, TimeoutError)
    assert now[0] == pytest.approx(60)
    assert handle.describe()["status"] == "RUNNING"


def test_refusals_have_a_type_of_their_own(shop: Client) -> None:
    with pytest.raises(NotFound, match="HF207"):
        shop.describe("nothing")
    with pytest.raises(NotFound, match="HF205"):
        shop.start("nothing", {})
    ended = shop.start(fulfil, ORDER, name="order-17")
    with pytest.raises(AlreadyEnded, match="HF237"):
        ended.pause("why")
    with pytest.raises(Conflict, match="HF218"):
        ended.retry()
    with pytest.raises(Forbidden, match="HF230"):
        shop.answer("forged", True)


def test_a_result_that_the_code_here_does_not_know_is_an_error(shop: Client) -> None:
    shop.start(fulfil, ORDER, name="order-17")
    other: Any = settle
    with pytest.raises(RequestError, match="HF291"):
        shop.handle("order-17", other).result(5)


def test_an_output_that_the_api_leaves_out_is_an_error() -> None:
    asked = executions.output("x")
    next(asked)
    with pytest.raises(RequestError, match="HF290"):
        asked.send({"execution": "x", "status": "SUCCEEDED", "omitted": ["output"]})


# -- waiting ---------------------------------------------------------------------------------------


def test_a_wait_asks_less_often_the_longer_it_takes() -> None:
    asked, now, looks = executions.wait("x", timeout=600), 0.0, list[float]()
    effect = next(asked)
    reply: Any = None
    with pytest.raises(StopIteration) as ended:
        while True:
            match effect:
                case Call():
                    looks.append(now)
                    reply = {"execution": "x", "status": "RUNNING"}
                case Sleep(seconds):
                    now, reply = now + seconds, None
                case Now():
                    reply = now
            effect = asked.send(reply)
    assert ended.value.value["status"] == "RUNNING"
    assert looks[0] == 0.0
    assert looks[-1] == pytest.approx(600)
    assert looks[1] == pytest.approx(requests.POLL_SECONDS)
    assert len(looks) < 140  # of 6,000 at the first rate


def test_a_wait_outlives_an_api_that_fails_for_a_while() -> None:
    def after(faults: int) -> Any:
        asked = executions.wait("x")
        effect = next(asked)
        for _ in range(faults):
            assert isinstance(effect, Call)
            slept = asked.throw(ServiceFault("HF275", "no route to host"))
            while not isinstance(slept, Sleep):
                slept = asked.send(0.0)
            effect = asked.send(None)
        try:
            asked.send({"execution": "x", "status": "SUCCEEDED"})
        except StopIteration as ended:
            return ended.value

    assert after(executions.FAULTS_MAX)["status"] == "SUCCEEDED"
    with pytest.raises(ServiceFault):
        after(executions.FAULTS_MAX + 1)


@pytest.fixture
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """The client's sleeps take no time. Each of them performs the next one of these actions."""
    now, actions = [0.0], list[Callable[[], object]]()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if actions:
            actions.pop(0)()

    monkeypatch.setattr("holdfast.remote.client.time.monotonic", lambda: now[0])
    monkeypatch.setattr("holdfast.remote.client.time.sleep", sleep)
    return actions


def test_a_caller_waits_for_a_published_value(
    shop: Client, virtual_time: list[Callable[[], object]]
) -> None:
    handle = shop.start(guided, "17")
    assert handle.wait_for_published("place") == "shop"
    virtual_time += [lambda: None, lambda: shop.event("client_paid", "17", Paid(cents=1))]
    found = handle.wait_for_published("place", until=lambda place: place != "shop", timeout=60)
    assert (found, virtual_time) == ("depot", [])
    assert shop.wait_for_published(handle.execution, "place", "depot".__eq__) == "depot"


def test_a_wait_for_a_published_value_ends_with_the_execution_or_its_own_time(
    shop: Client, virtual_time: list[Callable[[], object]]
) -> None:
    handle = shop.start(guided, "17")
    with pytest.raises(PublishedTimeout, match="HF567") as late:
        handle.wait_for_published("place", "home".__eq__, timeout=30)
    assert isinstance(late.value, TimeoutError)
    virtual_time += [handle.stop]
    with pytest.raises(NotPublished, match="HF566") as ended:
        handle.wait_for_published("place", "home".__eq__)
    assert ended.value.status == "ABORTED"
    assert handle.wait_for_published("place") == "shop"  # a value outlives its execution


def test_published_values_that_the_api_leaves_out_are_an_error() -> None:
    asked = executions.wait_for_published("x", "place")
    next(asked)
    with pytest.raises(RequestError, match="HF290"):
        asked.send({"execution": "x", "status": "RUNNING", "omitted": ["published"]})


# -- everything else -------------------------------------------------------------------------------


def test_events_answers_and_operators_commands(shop: Client) -> None:
    handle = shop.start(settle, "17", name="settle-17")
    assert shop.event("client_paid", "17", Paid(cents=5), id="e1")["waiting"] == 1
    (wait,) = handle.describe()["waits"]
    handle.pause("the bank is down", by="kim")
    assert handle.describe()["paused"]["reason"] == "the bank is down"
    handle.resume("the bank is back")
    shop.answer(wait["token"], True)
    assert handle.result(5) == 5
    assert handle.history()[-1]["type"] == "ExecutionSucceeded"
    assert shop.limits() == []
    assert shop.doctor() == []
    assert shop.format()["readable"]


def test_stop_ends_an_execution_and_its_result_says_so(shop: Client) -> None:
    handle = shop.start(settle, "17")
    handle.stop("Cancelled", "by the customer")
    with pytest.raises(ExecutionFailed) as caught:
        handle.result(5)
    assert (caught.value.status, caught.value.error) == ("ABORTED", "Cancelled")


def test_a_list_goes_on_from_page_to_page(shop: Client, stack: MemoryStack) -> None:
    for number in range(103):
        shop.start(log_in, SecretStr("x"), name=f"n{number}")
    stack.requests.clear()
    listed = shop.list(workflow="log_in", status="SUCCEEDED")
    assert next(listed)["workflow"] == "log_in"
    assert len(stack.requests) == 1
    assert len(list(islice(listed, 200))) == 102  # a list that never ends is not read on
    assert len(stack.requests) == 2
    assert shop.page(limit=5).after is not None
    assert list(shop.list(since=datetime(2040, 1, 1, tzinfo=UTC))) == []
    assert list(shop.list(paused=True)) == []


# -- over HTTP, and with an event loop -------------------------------------------------------------


@pytest.fixture
def url(stack: MemoryStack) -> Iterator[Any]:
    with served(stack) as found:
        yield found


@pytest.mark.parametrize(
    "api", ["https://a1b2.execute-api.us-east-1.amazonaws.com", "http://a1b2.execute-api.lo:4566"]
)
def test_on_an_emulator_the_requests_go_to_it_and_name_the_api(
    url: Any, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Formation:
        meta = SimpleNamespace(region_name="us-east-1")

        def describe_stacks(self, **_: Any) -> Any:
            return {"Stacks": [{"Outputs": [{"OutputKey": "ApiUrl", "OutputValue": api}]}]}

    monkeypatch.setattr(
        botocore.session.Session, "create_client", lambda *_, **__: Formation(), raising=True
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{url.url}/")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    assert list(Client(stack="Shop").list()) == []
    (sent,) = url.headers
    assert sent["Host"] == api.partition("://")[2]
    assert "/us-east-1/execute-api/" in sent["Authorization"]


def test_requests_share_a_connection(url: Any) -> None:
    shop = holdfast.Client(url.url)
    for number in range(5):
        shop.start(fulfil, ORDER, name=f"n{number}").result(5)
    assert url.connections == 1


def test_a_child_process_does_not_use_the_connection_of_its_parent(
    url: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = holdfast.Client(url.url)
    assert list(shop.list()) == []
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert list(shop.list()) == []
    assert url.connections == 2


def test_a_token_is_asked_for_each_request_and_speaks_for_its_tenant(url: Any) -> None:
    tokens = iter(["t1", "t2", "t3"])
    acme = holdfast.Client(url.url, token=lambda: next(tokens))
    acme.start(fulfil, ORDER, name="order-17")
    assert [row["name"] for row in acme.list()] == ["order-17"]
    assert [one["Authorization"] for one in url.headers] == ["Bearer t1", "Bearer t2"]
    assert list(holdfast.Client(url.url).list()) == []


def test_iam_signs_for_api_gateway(url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert list(holdfast.Client(url.url, iam=True).list()) == []
    signed = url.headers[0]["Authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-north-1/execute-api/aws4_request" in signed


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"endpoint": "http://a", "stack": "b"}, "HF287"),
        ({"endpoint": "http://a", "token": "t", "iam": True}, "HF287"),
        ({"endpoint": "ftp://a"}, "HF274"),
        ({"endpoint": "http://a:port"}, "HF274"),
    ],
)
def test_settings_that_exclude_each_other_are_refused_at_once(
    settings: dict[str, Any], code: str
) -> None:
    for make in (holdfast.Client, holdfast.AsyncClient):
        with pytest.raises(RequestError) as caught:
            make(**settings)
        assert caught.value.code == code


def test_an_address_that_nothing_listens_at_is_a_fault() -> None:
    with pytest.raises(ServiceFault, match="HF275"):
        holdfast.Client("http://127.0.0.1:1").describe("x")


def test_an_answer_of_the_gateway_for_a_function_that_fails_leads_to_its_log() -> None:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        return 502, b'{"message": "Internal Server Error"}'

    with pytest.raises(RequestError, match=r"HF272.*502: Internal Server Error") as caught:
        holdfast.Client.of(Api(carry, "stack Shop")).describe("x")
    assert "the log of the API's function" in caught.value.help


def test_an_event_loop_goes_on_while_the_client_waits(url: Any) -> None:
    async def order(shop: AsyncClient, number: int) -> Receipt:
        handle = await shop.start(fulfil, ORDER, name=f"n{number}")
        assert (await handle.describe())["name"] == f"n{number}"
        return await handle.result(timeout=5)

    async def main() -> list[Receipt]:
        shop = holdfast.AsyncClient(url.url)
        found = await asyncio.gather(*(order(shop, number) for number in range(4)))
        assert len([row async for row in shop.list(workflow="fulfil")]) == 4
        with pytest.raises(NotFound):
            await shop.describe("nothing")
        with pytest.raises(ExecutionFailed):
            await (await shop.start(fulfil, DEAR)).result(5)
        return found

    assert asyncio.run(main()) == [Receipt(order="17", paid=1_250)] * 4


# -- the two clients -------------------------------------------------------------------------------


def test_both_clients_and_both_handles_have_the_same_methods() -> None:
    for one, other in (
        (holdfast.Client, holdfast.AsyncClient),
        (holdfast.Handle, holdfast.AsyncHandle),
    ):
        assert _public(one).keys() == _public(other).keys()
        for name, method in _public(one).items():
            mine, its = (inspect.signature(found) for found in (method, _public(other)[name]))
            assert list(mine.parameters) == list(its.parameters), name
            assert method.__doc__, name


def _public(kind: type) -> dict[str, Callable[..., Any] | Callable[..., Awaitable[Any]]]:
    return {
        name: method
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


def test_help_shows_the_signature_of_the_operation() -> None:
    shown = str(inspect.signature(holdfast.Client.of(Api(_silent, "nowhere")).stop))
    assert shown.startswith("(execution: 'str', error: 'str | None' = None")
    assert shown.endswith("-> 'Json'")


def _silent(_method: str, _target: str, _body: bytes) -> tuple[int, bytes]:
    raise AssertionError


def test_a_client_of_a_url_imports_neither_boto3_nor_the_engine() -> None:
    program = (
        "import holdfast, sys; holdfast.Client('http://127.0.0.1:1')\n"
        "print([name for name in sys.modules if name.split('.')[0] in {'boto3', 'botocore'}"
        " or name.startswith(('holdfast.runtime', 'holdfast.core', 'holdfast.aws'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"
