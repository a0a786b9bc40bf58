"""Search attributes: found by them while an execution runs and after it, and what that costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.core.state_json import from_json, to_json
from holdfast.errors import RequestError, WorkflowError
from holdfast.runtime.effects import Effect
from holdfast.runtime.search_rows import encoded
from holdfast.testing import World, real
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import chain, machine, wait_for
from tests.search_kit import INPUT, ORDER, SearchShop, note, started
from tests.thorough import stride
from tests.unit.dsl_kit import loaded

HOUR = 3_600
DAY = 24 * HOUR
HEADER = """
from datetime import datetime
from enum import Enum
from pydantic import BaseModel, SecretStr
from holdfast import note, pure, seconds, sleep, workflow

class Stage(Enum):
    NEW = "new"
    SENT = "sent"

class Customer(BaseModel):
    id: str

class Order(BaseModel):
    customer: Customer
    total: int
    coupon: str | None = None
    card: SecretStr | None = None
    agent: Customer | None = None
    price: float = 1.5
"""


# -- declared in the workflow ----------------------------------------------------------------------


def test_attributes_come_from_the_input_and_change_by_notes(tmp_path: Path) -> None:
    body = """
@workflow(
    search={"customer": "order.customer.id", "total": "order.total", "coupon": "order.coupon",
            "stage": Stage, "due": datetime}
)
def flow(order: Order, due: datetime) -> str:
    note(stage=Stage.NEW)
    sleep(seconds(5))
    note(stage=Stage.SENT, due=due, total=order.total + 1, coupon=None)
    return "done"
"""
    with loaded(tmp_path, HEADER + body) as module:
        compiled = compile_workflow(module.flow)
        given: Any = {"customer": {"id": "C-17"}, "total": 120, "coupon": "SPRING"}
        found: Any = World(others=real).run_json(
            module.flow, {"order": given, "due": "2027-01-15T08:00:00Z"}
        )
    assert compiled.search == {
        "customer": "str", "total": "int", "coupon": "str", "stage": "str", "due": "datetime"
    }  # fmt: skip
    assert found.attributes == {
        "customer": "C-17", "total": 121, "stage": "sent", "due": "2027-01-15T08:00:00Z"
    }  # fmt: skip


def test_a_graph_is_found_by_fields_of_its_input(tmp_path: Path) -> None:
    body = """
from holdfast import dag, step, task

@task
def load(customer: str, total: int) -> int:
    return total

flow = dag("flow", step("load", load), search={"customer": "customer", "total": "total"})
wrong = dag("wrong", step("load", load), search={"customer": "custmer"})
"""
    with loaded(tmp_path, HEADER + body) as module:
        compiled = compile_workflow(module.flow)
        found: Any = World(others=real).run_json(module.flow, {"customer": "C-1", "total": 5})
        with pytest.raises(WorkflowError) as refused:
            compile_workflow(module.wrong)
    assert compiled.search == {"customer": "str", "total": "int"}
    assert (found.output, found.attributes) == (5, {"customer": "C-1", "total": 5})
    assert refused.value.code == "HF150"


@pytest.mark.parametrize(
    ("search", "line", "code"),
    [
        ('{"customer": "order.customre"}', "return None", "HF150"),
        ('{"customer": "ordr.total"}', "return None", "HF150"),
        ('{"customer": "order.total.x"}', "return None", "HF150"),
        ('{"agent": "order.agent.id"}', "return None", "HF150"),
        ('{"customer": "order.customer"}', "return None", "HF151"),
        ('{"card": "order.card"}', "return None", "HF151"),
        ('{"price": "order.price"}', "return None", "HF151"),
        ('{"stage": float}', "return None", "HF151"),
        ('{"stage": str}', 'note(stgae="x")', "HF152"),
        ('{"stage": str}', "note(stage=5)", "HF152"),
        ('{"stage": str}', 'note("x")', "HF152"),
        ('{"stage": str}', "note()", "HF152"),
    ],
)
def test_a_wrong_declaration_or_note_is_refused(
    tmp_path: Path, search: str, line: str, code: str
) -> None:
    body = f"@workflow(search={search})\ndef flow(order: Order) -> None:\n    {line}\n"
    with loaded(tmp_path, HEADER + body) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


@pytest.mark.parametrize("search", ['{"a b": str}', '{"a": "order..x"}', '{"a": 5}', "NINE"])
def test_a_declaration_of_another_form_is_refused_at_once(tmp_path: Path, search: str) -> None:
    nine = "{" + ", ".join(f'"a{number}": str' for number in range(9)) + "}"
    body = f"@workflow(search={search.replace('NINE', nine)})\ndef flow(n: int) -> None: ...\n"
    with pytest.raises(WorkflowError) as refused, loaded(tmp_path, HEADER + body):
        pass
    assert refused.value.code == "HF153"


# -- found -----------------------------------------------------------------------------------------


def test_an_execution_is_found_while_it_waits_after_a_change_and_after_its_end() -> None:
    shop = started()
    run = shop.page("customer=C-17")["executions"][0]["execution"]
    assert shop.found("customer=C-17", "stage=new", "total>100") == ["order-1"]
    assert shop.found("customer=C-1") == shop.found("stage=packed") == []

    shop.send_event()
    shop.rest()
    assert shop.found("stage=new") == []
    (row,) = shop.page("customer=C-17", "stage=packed")["executions"]
    assert row["attributes"] == {"customer": "C-17", "total": 120, "stage": "packed"}
    assert shop.describe(run)["attributes"] == row["attributes"]
    assert row["waits"][0]["target"] == "role:clerk"

    shop.answer(run, output={})
    shop.world.run()
    (row,) = shop.page("stage=sent", "total=120")["executions"]
    assert (row["name"], row["status"]) == ("order-1", "SUCCEEDED")
    assert shop.found("customer=C-17", "stage=packed") == []
    assert (check(shop.world), lost(shop.world)) == ([], [])


def test_conditions_and_the_other_filters_all_hold() -> None:
    shop = started()
    shop.send_event()
    shop.rest()
    assert shop.found("customer=C-17", waiting_for="ask:role:clerk") == ["order-1"]
    assert shop.found("customer=C-17", waiting_for="event") == []
    assert shop.found("customer=C-17", status="RUNNING", workflow="flow", name="order*") != []
    assert shop.found("customer=C-17", status="FAILED") == []
    assert shop.found("customer=C-17", name="loan*") == []
    assert shop.found("customer=C-17", since="2099-01-01T00:00:00Z") == []


ORDERS = machine(
    {
        "begin": note(
            "paid?",
            customer="{% $states.input.customer %}",
            total="{% $states.input.total %}",
            rush="{% $states.input.total > 5 %}",
            due="{% $states.input.due %}",
        ),
        "paid?": wait_for("paid"),
    }
)


@pytest.fixture(scope="module")
def orders() -> SearchShop:
    """Thirty orders of three customers, one started each second."""
    shop = SearchShop(ORDERS)
    for number in range(30):
        data = {
            "customer": f"C-{number % 3}",
            "total": number - 10,
            "due": f"2027-01-{number + 1:02d}T12:00:00+02:00",
        }
        shop.start(data, f"o{number}")
        shop.rest()
        shop.world.now_ms += 1_000
    return shop


def names(*numbers: int) -> list[str]:
    return [f"o{number}" for number in numbers]


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_equal_values_are_listed_newest_first_in_pages_of_every_size(
    orders: SearchShop, limit: int
) -> None:
    assert orders.found("customer=C-1", limit=limit) == names(*range(28, 0, -3))


@pytest.mark.parametrize("limit", [1, 4, 100])
@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("total>17", (29, 28)),
        ("total>=17", (29, 28, 27)),
        ("total<-8", (1, 0)),
        ("total<=-8", (2, 1, 0)),
        ("total=-10", (0,)),
        ("due>2027-01-29T11:00:00Z", (29,)),
        ("due<=2027-01-02T10:00:00Z", (1, 0)),
        ("due = 2027-01-02T10:00:00Z", (1,)),
        ("rush=true", tuple(range(29, 15, -1))),
    ],
)
def test_numbers_and_times_are_found_between_bounds_in_the_order_of_the_value(
    orders: SearchShop, where: str, wanted: tuple[int, ...], limit: int
) -> None:
    assert orders.found(where, limit=limit) == names(*wanted)


def test_a_second_condition_narrows_the_first() -> None:
    shop = SearchShop(ORDERS)
    for total in (1, 7, 9):
        shop.start({"customer": "C", "total": total, "due": "2027-01-01T00:00:00Z"}, f"o{total}")
        shop.rest()
        shop.world.now_ms += 1_000
    assert shop.found("total>5", "customer=C", "total<9") == ["o7"]
    assert shop.found("rush=false", "customer=C") == ["o1"]
    assert set(shop.found("total>0", "total<8")) == {"o7", "o1"}


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("customer", "HF480"),
        ("", "HF480"),
        ("customer>C", "HF480"),
        ("rush=yes", "HF480"),
        ("total=many", "HF480"),
        ("due=soon", "HF480"),
        ("custmer=C-17", "HF481"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused(
    orders: SearchShop, where: str, code: str
) -> None:
    with pytest.raises(RequestError) as refused:
        orders.page(where)
    assert refused.value.code == code


def test_a_cursor_of_another_list_is_refused(orders: SearchShop) -> None:
    for where, after in (("total>1", "001767225600000#x"), ("customer=C-1", "i1#2")):
        with pytest.raises(RequestError) as refused:
            orders.page(where, after=after)
        assert refused.value.code == "HF209"


def test_a_value_of_another_type_fails_its_state() -> None:
    shop = started(machine({"bad": note(total="{% 'ten' %}")}))
    (row,) = shop.world.call(shop.front.executions(shop.tenant, {}))["executions"]
    assert (row["status"], row["error"]) == ("FAILED", "States.QueryEvaluationError")


def test_a_snapshot_keeps_the_attributes_and_one_without_them_is_as_before() -> None:
    shop = started()
    shop.send_event()
    shop.rest()
    (run,) = (row["execution"] for row in shop.page("customer=C-17")["executions"])
    state = shop.history(run).state
    assert (state.notes, from_json(to_json(state))) == (1, state)
    plain = to_json(state._replace(attributes={}, notes=0))
    assert not {"attributes", "notes"} & plain.keys()


def test_the_order_of_encoded_numbers_is_that_of_the_numbers() -> None:
    numbers = [-(10**30), -(10**18), -5, 0, 3, 20, 10**18, 10**30]
    encodings = [encoded("int", number) for number in numbers]
    assert encodings == sorted(encodings)
    assert encoded("datetime", "2027-01-01T00:00") == encoded("datetime", "2027-01-01T01:00+01:00")


def test_the_rows_of_an_execution_that_waits_for_months_are_renewed() -> None:
    def ttls(shop: SearchShop) -> set[int]:
        items = shop.world.services.items("mail")
        return {int(one["ttl"]) for one in items if "#at#" in str(one["pk"])}

    shop = started()
    (first,) = ttls(shop)
    shop.rest(100 * DAY)
    assert min(ttls(shop)) > first + 40 * DAY
    assert shop.found("customer=C-17", "stage=new") == ["order-1"]


# -- what it costs ---------------------------------------------------------------------------------


def units(definition: Any, *, event: bool = False) -> float:
    """Return the write units of one execution, without its definition."""
    shop = SearchShop(definition)
    shop.world.call(shop.programs.store(shop.tenant, shop.definition))
    before = replace(shop.world.services.usage)
    shop.start(INPUT)
    shop.rest()
    if event:
        shop.send_event()
    shop.world.run()
    return shop.world.services.usage.write_units - before.write_units


def without_notes(definition: Any) -> Any:
    states = {
        name: {key: value for key, value in state.items() if key != "Holdfast"}
        for name, state in definition["States"].items()
    }
    return {**definition, "States": states}


def test_each_attribute_costs_one_write_unit_with_a_rest_or_without() -> None:
    resting = machine({"a": note("w", customer="C", total=5), "w": wait_for("paid")})
    quick = machine({"a": note("b", customer="C", total=5), "b": {"Type": "Succeed"}})
    for definition, event in ((resting, True), (quick, False)):
        plain = units(without_notes(definition), event=event)
        assert units(definition, event=event) - plain == 2


def test_a_change_costs_its_new_value_its_old_one_and_the_present_values() -> None:
    changing = machine(
        {"a": note("w", stage="new"), "w": wait_for("paid", "b"), "b": note(stage="sent")}
    )
    assert units(changing, event=True) - units(without_notes(changing), event=True) == 1 + 3


def test_a_page_takes_four_queries_and_three_for_each_execution_that_it_finds(
    orders: SearchShop,
) -> None:
    services = orders.world.services
    before = replace(services.usage)
    assert len(orders.page("customer=C-1")["executions"]) == 10
    # Half a unit each: four queries, ten rows of changes, thirty queries, ten rows of waits. As for
    # every page, one unit for the list of the quarantine.
    assert services.usage.read_units - before.read_units == (4 + 10 + 30 + 10) / 2 + 1


def test_an_execution_without_attributes_asks_for_no_row() -> None:
    shop = SearchShop(chain(2))
    shop.run({"n": 1})
    keys = [str(item["pk"]) for item in shop.world.services.items("mail")]
    assert not [key for key in keys if "#at#" in key or "#atn#" in key]


# -- crashes ---------------------------------------------------------------------------------------


class KillAt:
    """Kills the process before or after the effect of this number."""

    def __init__(self, number: int, moment: When) -> None:
        self.left, self.moment = number, moment

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == self.moment:
            self.left -= 1
            if self.left == 0:
                raise Killed


@pytest.mark.parametrize(("first", "moment"), [(1, "before"), (2, "after")])
def test_whatever_effect_kills_its_worker_the_execution_is_found_by_its_attributes(
    first: int, moment: When
) -> None:
    """Every second effect in each of the two ways; in the quick run, every ninth."""
    step = stride(2, 9)
    number, is_over = first - step, False
    while not is_over:
        number += step
        hook = KillAt(number, moment)
        shop = started(ORDER, hook=hook)
        shop.rest(HOUR)
        assert shop.found("customer=C-17", "stage=new") == ["order-1"], f"effect {number}"
        shop.send_event()
        shop.rest(HOUR)
        assert shop.found("stage=packed", "total>100") == ["order-1"], f"effect {number}"
        assert shop.found("stage=new") == [], f"effect {number}"
        (row,) = shop.page("customer=C-17")["executions"]
        shop.answer(row["execution"], output={})
        shop.world.run()
        assert shop.found("stage=sent", status="SUCCEEDED") == ["order-1"], f"effect {number}"
        assert shop.found("stage=packed") == [], f"effect {number}"
        is_over = hook.left > 0
    assert number > 20
