"""docs/how-to/call-workflows.md and docs/reference/client.md: every recipe runs, every method is
there.

The recipes import `shop`, which is tests/unit/client_flows.py here. Of FastAPI and Django they use
three names, which stand-ins have.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast.remote import async_client, client
from holdfast.remote.operations import executions, requests
from tests.unit import client_flows
from tests.unit.client_kit import MemoryStack

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "call-workflows.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "client.md").read_text(encoding="utf-8")
ORDER = {"id": "17", "cents": 1_250, "due": "2027-01-15"}


@dataclass
class App:
    """FastAPI's decorators: they keep the function and leave it as it is."""

    routes: dict[str, Any] = field(default_factory=dict)

    def _route(self, path: str, **_: Any) -> Any:
        return lambda function: self.routes.setdefault(path, function)

    get = post = _route


class HTTPException(Exception):  # noqa: N818
    def __init__(self, status_code: int, detail: object = None) -> None:
        super().__init__(status_code, detail)
        self.status_code = status_code
        self.detail = detail


@dataclass
class JsonResponse:
    content: Any
    status: int = 200


STAND_INS: dict[str, dict[str, Any]] = {
    "fastapi": {"FastAPI": App, "HTTPException": HTTPException},
    "django": {},
    "django.http": {"HttpRequest": object, "JsonResponse": JsonResponse},
}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> MemoryStack:
    found = MemoryStack("tests.unit.client_flows")
    for module in (client, async_client):
        monkeypatch.setattr(module, "connect", lambda *_, **__: found.api)
    monkeypatch.setitem(sys.modules, "shop", client_flows)
    monkeypatch.setenv("HOLDFAST_URL", "https://api")
    for name, names in STAND_INS.items():
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
    return found


def recipe(title: str) -> dict[str, Any]:
    """Run the Python below a heading of the guide."""
    (section,) = re.findall(rf"^#+ {title}\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE)
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(compile(block, f"call-workflows.md: {title}", "exec", dont_inherit=True), names)
    return names


def test_the_first_example_starts_a_workflow_and_has_its_result(stack: MemoryStack) -> None:
    names = recipe("Call workflows from your application")
    assert names["receipt"] == client_flows.Receipt(order="17", paid=1_250)
    assert stack.requests[0] == "POST /executions"


def test_the_recipe_for_fastapi(stack: MemoryStack) -> None:
    app: App = recipe("FastAPI")["app"]
    place, receipt = app.routes["/orders"], app.routes["/orders/{order_id}/receipt"]
    order = client_flows.Order(**ORDER)  # type: ignore[arg-type]

    async def visit() -> None:
        assert "execution" in await place(order)
        assert (await receipt("17")).paid == 1_250
        with pytest.raises(HTTPException) as missing:
            await receipt("18")
        assert missing.value.status_code == 404
        await place(order.model_copy(update={"id": "19", "cents": 99_000}))
        with pytest.raises(HTTPException) as failed:
            await receipt("19")
        assert (failed.value.status_code, failed.value.detail) == (409, "CardDeclined")

    asyncio.run(visit())


def test_the_recipe_for_django(stack: MemoryStack) -> None:
    names = recipe("Django")
    place = names["place"]
    assert place(SimpleNamespace(body=json.dumps(ORDER))).status == 202
    assert place(SimpleNamespace(body=json.dumps({**ORDER, "cents": 1}))).status == 409
    assert names["status"](None, "17").content == {"status": "SUCCEEDED", "waits": 0}


def test_the_recipe_for_lambda(stack: MemoryStack) -> None:
    handler = recipe("A Lambda function")["handler"]
    assert handler({"detail": ORDER}, None) == handler({"detail": ORDER}, None)


def test_the_recipe_for_a_script(stack: MemoryStack, capsys: pytest.CaptureFixture[str]) -> None:
    shop = holdfast.Client()
    dear = client_flows.Order(**{**ORDER, "cents": 99_000})  # type: ignore[arg-type]
    shop.start(client_flows.fulfil, dear, name="order-18")
    recipe("A script")
    assert capsys.readouterr().out.splitlines() == [
        "order-18 CardDeclined",
        "{'order': '19', 'paid': 100}",
    ]
    assert any(request.endswith("/retry") for request in stack.requests)


def test_the_reference_names_every_method_and_parameter() -> None:
    spans = " ".join(re.findall(r"`([^`]+)`", REFERENCE))
    for kind in (holdfast.Client, holdfast.Handle):
        for name, method in vars(kind).items():
            if name.startswith("_") or not inspect.isfunction(method) or name in {"of", "perform"}:
                continue
            assert re.search(rf"\b{name}\b", spans), name
            for parameter in inspect.signature(method).parameters:
                assert parameter == "self" or re.search(rf"\b{parameter}\b", spans), parameter


def test_the_pages_state_the_numbers_of_the_code() -> None:
    words = {5: "five"}
    assert f"outlast {words[executions.FAULTS_MAX]} faults in a row" in GUIDE
    assert f"after {requests.POLL_SECONDS:g} s" in REFERENCE
    assert f"at most every {requests.POLL_SECONDS_MAX:g} s" in REFERENCE
