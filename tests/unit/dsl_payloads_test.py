"""Types of events and answers, written into a map and found again by the engine."""

from __future__ import annotations

from pathlib import Path
from types import NoneType
from typing import Any

import pytest

from holdfast import seconds
from holdfast.api.boundary import normalise_payload
from holdfast.api.payloads import display, reference_of, resolve
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.errors import RequestError
from holdfast.testing import World
from tests.golden.shop import Colour, Order, Payment
from tests.unit.dsl_kit import assert_same, loaded

SHOP = "tests.golden.shop"


@pytest.mark.parametrize(
    ("payload", "reference", "shown"),
    [
        (Payment, f"{SHOP}:Payment", "Payment"),
        (Colour, f"{SHOP}:Colour", "Colour"),
        (bool, "builtins:bool", "bool"),
        (NoneType, "None", "None"),
        (Payment | None, f"{SHOP}:Payment | None", "Payment | None"),
        (list[Payment], f"list[{SHOP}:Payment]", "list[Payment]"),
        (dict[str, int], "dict[str, builtins:int]", "dict[str, int]"),
        (Payment | Order, f"{SHOP}:Payment | {SHOP}:Order", "Payment | Order"),
        (
            list[Payment | Order] | dict[str, int | str],
            f"list[{SHOP}:Payment | {SHOP}:Order] | dict[str, builtins:int | builtins:str]",
            "list[Payment | Order] | dict[str, int | str]",
        ),
        (
            dict[str, list[dict[str, Order]]],
            f"dict[str, list[dict[str, {SHOP}:Order]]]",
            "dict[str, list[dict[str, Order]]]",
        ),
    ],
)
def test_a_type_is_found_again_by_its_reference(payload: Any, reference: str, shown: str) -> None:
    assert reference_of(payload) == reference
    assert resolve(reference) == payload
    assert display(reference) == shown


def test_a_payload_is_checked_in_every_element() -> None:
    found = normalise_payload(resolve(f"list[{SHOP}:Payment]"), [{"id": "p", "status": "ok"}])
    assert found == [{"id": "p", "status": "ok"}]
    deployment = Deployment(Registry.from_modules([SHOP]), {})
    with pytest.raises(RequestError) as caught:
        deployment.normalise_payload("T", f"list[{SHOP}:Payment]", [{"id": "p"}], "event 'paid'")
    assert caught.value.code == "HF211"
    assert "event 'paid' does not fit list[Payment]: data[0].status: " in caught.value.message


PROGRAM = """
from __future__ import annotations
from enum import Enum
from pydantic import BaseModel
from holdfast import ask, days, first, sleep, wait_for_event, workflow

class Line(BaseModel):
    sku: str
    qty: int = 1
class Size(Enum):
    S = "s"
Sizes = list[Size]

@workflow
def flow(key: str) -> list[str]:
    lines = wait_for_event("lines", list[Line], key=key)
    counts = ask("How many?", dict[str, int], assignee="ann")
    sizes = ask("Which?", Sizes, assignee="ann")
    won = first(
        lambda: wait_for_event("late", dict[str, list[str]], key=key, timeout=days(1)),
        lambda: sleep(days(2)),
    )
    names = [f"{line.sku}: {counts[line.sku] * line.qty}" for line in lines]
    return names + ([] if won is None else won["more"]) + [size.value for size in sizes]
"""


def test_a_workflow_reads_lists_and_dicts_that_it_waited_for(tmp_path: Path) -> None:
    come = {
        "lines": [{"sku": "a", "qty": 2}, {"sku": "b", "qty": 1}],
        "How many?": {"a": 3, "b": 4},
        "Which?": ["s"],
        "late": {"more": ["c"]},
    }
    with loaded(tmp_path, PROGRAM) as module:
        compiled = compile_workflow(module.flow)
        assert compiled.answers["ask for list[Size]"] == f"list[{module.__name__}:Size]"
        found = assert_same(module.flow, {"key": "k"}, come)
    assert found.output == ["a: 6", "b: 4", "c", "s"]


CART = """
from typing import Literal
from pydantic import BaseModel
from holdfast import ask, seconds, wait_for_event, workflow

class AddItem(BaseModel):
    kind: Literal["add"] = "add"
    sku: str
    qty: int = 1
class Checkout(BaseModel):
    kind: Literal["checkout"] = "checkout"
    card: str
Message = AddItem | Checkout

@workflow
def flow(cart: str) -> str:
    total = 0
    while True:
        message: Message = wait_for_event("cart", Message, key=cart)
        match message:
            case AddItem(qty=qty):
                total += qty
            case Checkout():
                break
    found: AddItem | Checkout = ask("More?", AddItem | Checkout, assignee="ann")
    if isinstance(found, AddItem):
        total += found.qty
    return f"{total} on {message.card}"
"""


def test_one_wait_takes_events_of_several_types_and_tells_them_apart(tmp_path: Path) -> None:
    with loaded(tmp_path, CART) as module:
        name = module.__name__
        compiled = compile_workflow(module.flow)
        assert compiled.events == {"cart": f"{name}:AddItem | {name}:Checkout"}
        world = World({"More?": module.AddItem(sku="c", qty=5)})
        add = {"kind": "add", "sku": "a"}
        for at, message in enumerate([{**add, "qty": 3}, add, module.Checkout(card="visa")]):
            world.send("cart", message, key="c1", at=seconds(at))
        assert world.run(module.flow, "c1").output == "9 on visa"


def test_an_event_that_fits_no_type_of_the_union_is_refused(tmp_path: Path) -> None:
    with loaded(tmp_path, CART) as module:
        deployment = Deployment(Registry.from_modules([module.__name__]), {})
        cart = compile_workflow(module.flow).events["cart"]
        found = deployment.normalise_payload("T", cart, {"kind": "add", "sku": "a"}, "event")
        assert found == {"kind": "add", "sku": "a", "qty": 1}
        with pytest.raises(RequestError) as caught:
            deployment.normalise_payload("T", cart, {"kind": "drop"}, "event 'cart'")
        assert caught.value.code == "HF211"
        assert "event 'cart' does not fit AddItem | Checkout: " in caught.value.message
