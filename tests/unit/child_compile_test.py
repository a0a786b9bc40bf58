"""Calls of workflows in workflows, from the source to a deployment that runs them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.deployment import Deployment
from holdfast.errors import WorkflowError
from holdfast.local.build import try_modules
from holdfast.runtime.driver import run
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import SimulatorWorld
from tests.builders import CHANCE, KEYS

SHIPPING = """
from __future__ import annotations

from typing import Any

from pydantic import BaseModel, field_validator

from holdfast import TaskError, task, workflow


class Order(BaseModel):
    id: str
    pieces: int = 1

    @field_validator("id")
    @classmethod
    def known(cls, value: str) -> str:
        return value if value != "bomb" else {}[value]


class Parcel(BaseModel):
    order: str
    box: str
    tags: list[str]


class OutOfStock(TaskError): ...


@task
def pack(order: Order, box: str, tags: list[str]) -> Parcel:
    if order.pieces > 9:
        raise OutOfStock("only nine")
    return Parcel(order=order.id, box=box, tags=tags)


@task
def lookup(order_id: str) -> Any:
    return {"id": order_id}


@workflow
def ship_order(order: Order, box: str = "small", *, tags: list[str] = ["new", "{% 1 %}"]) -> Parcel:
    return pack(order, box, tags)
"""
SHOP = """
from __future__ import annotations

from holdfast import Retry, WaitTimeout, days, each, minutes, seconds, sleep, workflow
from shipping_flows import Order, OutOfStock, Parcel, lookup, ship_order


@workflow
def sell(order: Order, box: str) -> str:
    try:
        shipped = ship_order(order, box + "!")
    except OutOfStock as err:
        return str(err)
    return shipped.box


@workflow
def sell_twice(order: Order) -> str:
    try:
        return ship_order.options(retry=Retry(max_attempts=2, interval=seconds(1)))(order).box
    except OutOfStock as err:
        return str(err)


@workflow
def nap() -> str:
    sleep(days(1))
    return "awake"


@workflow
def sell_in_time() -> str:
    try:
        return nap.options(timeout=minutes(1), label="a short nap")()
    except WaitTimeout:
        return "late"


@workflow
def sell_all(orders: list[Order]) -> list[Parcel]:
    return each(orders, ship_order)


@workflow
def sell_by_id(order_id: str) -> str:
    try:
        return sell(lookup(order_id), "box")
    except Exception as err:
        return str(err)


@workflow
def factorial(n: int) -> int:
    if n < 2:
        return 1
    return n * factorial(n - 1)


@workflow
def visited(n: int, seen: list[int]) -> list[int]:
    found = [*seen, n]
    if n > 0:
        for below in each([n - 1], lambda k: visited(k, found)):
            found += below
    return found
"""
#: The module is imported without the objects that it defines.
APART = """
from __future__ import annotations

import shipping_flows
from holdfast import workflow


@workflow
def sell(order: shipping_flows.Order) -> str:
    return shipping_flows.ship_order(order).box
"""
SOURCES = {"shipping_flows": SHIPPING, "shop_flows": SHOP, "apart_flows": APART}
MODULES = ["shop_flows", "shipping_flows"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("flows")
    for name, source in SOURCES.items():
        (folder / f"{name}.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        Deployment.from_modules(MODULES, compiled)
        yield sys.modules["shop_flows"]
        for name in SOURCES:
            sys.modules.pop(name, None)


def compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    found = compile_workflow(workflow)
    return found.asl, json.loads(found.map_text)


def outcome(workflow: str, data: Any) -> Any:
    """Return the result on workers of a deployment, and the number of children."""
    deployment = Deployment.from_modules(MODULES, compiled)
    programs = deployment.programs()
    world = SimulatorWorld(deployment.setting(programs, lambda: KEYS), deployment.run_task)
    front = deployment.front(programs, KEYS)
    request = {"workflow": workflow, "input": data}
    execution = run(front.start("default", request, CHANCE), world.perform)["execution"]
    world.run()
    assert (check(world), lost(world)) == ([], [])
    found = {history.run: history.state for history in histories(world)}
    return found[execution].output, len(found) - 1


# -- compiling -------------------------------------------------------------------------------------


def test_a_call_is_a_task_with_the_childs_whole_input(shop: ModuleType) -> None:
    state = compile_workflow(shop.sell).asl["States"]["ship_order"]
    assert state["Resource"] == "holdfast:workflow:ship_order"
    arguments = state["Arguments"]
    assert list(arguments) == ["order", "box", "tags"]
    assert (arguments["order"], arguments["box"]) == ("{% $order %}", '{% $box & "!" %}')
    assert [catcher["ErrorEquals"] for catcher in state["Catch"]] == [["OutOfStock"]]


def test_the_settings_of_a_call_are_fields_of_its_state(shop: ModuleType) -> None:
    state = compile_workflow(shop.sell_in_time).asl["States"]["a short nap"]
    assert (state["Resource"], state["TimeoutSeconds"]) == ("holdfast:workflow:nap", 60)
    assert compile_workflow(shop.sell_twice).asl["States"]["ship_order"]["Retry"][0] == {
        "ErrorEquals": ["States.ALL"],
        "IntervalSeconds": 1,
        "MaxAttempts": 1,
        "BackoffRate": 2.0,
        "JitterStrategy": "FULL",
    }


def test_the_map_says_which_workflows_are_called_and_where_they_are(shop: ModuleType) -> None:
    assert json.loads(compile_workflow(shop.sell).map_text)["workflows"] == {
        "ship_order": "shipping_flows:ship_order"
    }


def test_a_default_without_a_json_form_is_refused_at_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from typing import Any

from holdfast import workflow


@workflow
def inner(what: Any = object()) -> int:
    return 1


@workflow
def outer() -> int:
    return inner()
"""
    (tmp_path / "odd_flows.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    odd_flows = importlib.import_module("odd_flows")
    with pytest.raises(CompileErrors) as refused:
        compile_workflow(odd_flows.outer)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "HF008"
    assert "what `inner` takes has no JSON form" in diagnostic.message


# -- running ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "expected"), [({"id": "o1"}, "large!"), ({"id": "o2", "pieces": 10}, "only nine")]
)
def test_a_deployment_runs_the_child_and_its_error_is_caught_by_its_class(
    shop: ModuleType, order: Any, expected: str
) -> None:
    assert outcome("sell", {"order": order, "box": "large"}) == (expected, 1)
    given = shop.Order(**order)
    assert shop.sell(given, "large") == expected


def test_a_validator_of_the_authors_that_breaks_fails_the_call_and_not_the_worker(
    shop: ModuleType,
) -> None:
    told = "the input of sell cannot be validated: KeyError"
    assert outcome("sell_by_id", {"order_id": "bomb"}) == (told, 0)


def test_each_item_is_a_child_of_its_own(shop: ModuleType) -> None:
    parcels, children = outcome("sell_all", {"orders": [{"id": "a"}, {"id": "b"}]})
    tags = ["new", "{% 1 %}"]
    assert parcels == [{"order": order, "box": "small", "tags": tags} for order in "ab"]
    assert children == 2


def test_a_workflow_that_calls_itself_gives_the_result_of_the_function(shop: ModuleType) -> None:
    assert outcome("factorial", {"n": 6}) == (shop.factorial(6), 5) == (720, 5)


def test_a_branch_that_gives_a_list_to_its_own_workflow_gives_it_a_copy(shop: ModuleType) -> None:
    given = {"n": 1, "seen": []}
    assert outcome("visited", given) == (shop.visited(1, []), 1) == ([1, 1, 0], 1)


# -- deploying -------------------------------------------------------------------------------------


def test_a_deployment_without_a_called_workflow_is_refused_with_the_module_to_name(
    shop: ModuleType,
) -> None:
    with pytest.raises(WorkflowError) as caught:
        Deployment.from_modules(["apart_flows"], compiled)
    assert caught.value.code == "HF103"
    assert "sell calls ship_order" in caught.value.message
    assert "`shipping_flows`" in caught.value.help
    Deployment.from_modules(["apart_flows", "shipping_flows"], compiled)


def test_a_workflow_that_is_imported_without_its_tasks_is_refused(shop: ModuleType) -> None:
    with pytest.raises(WorkflowError) as caught:
        Deployment.from_modules(["shop_flows"], compiled)
    assert caught.value.code == "HF103"
    assert "ship_order calls the task pack" in caught.value.message


def test_a_check_of_the_modules_says_so_too(shop: ModuleType) -> None:
    _, (error,) = try_modules(["apart_flows"])
    assert "HF103" in error
    assert try_modules(["apart_flows", "shipping_flows"])[1] == []


def test_a_retried_child_is_another_execution_and_a_late_one_is_stopped(shop: ModuleType) -> None:
    nine = {"order": {"id": "o1", "pieces": 10}}
    assert outcome("sell_twice", nine) == ("only nine", 2)
    assert outcome("sell_in_time", {}) == ("late", 1)
