"""`@migrates`: variables that a function computes when an execution moves to a new version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.registry import Registry
from holdfast.core.apply.apply import fold
from holdfast.deployment import Deployment
from holdfast.errors import RequestError, WorkflowError
from holdfast_simulator.invariants import check
from tests.builders import CHANCE, AnyTypes
from tests.unit.dsl_kit import loaded
from tests.unit.migration_kit import HEADER, WHY, TwoVersions, compiled
from tests.unit.migration_test import work
from tests.unit.pausing_test import settle

OLD = """
@workflow
def flow(amount: int) -> int:
    receipt = wait_for_event("paid", str, key="k1")
    ship(receipt)
    return amount
"""
NEW = """
@workflow
def flow(amount: int) -> int:
    parts = [amount, 1]
    receipt = wait_for_event("paid", str, key="k1")
    ship(receipt)
    return parts[0] + parts[1]
"""
PARTS = """
@migrates(flow)
def parts(amount: int) -> list[int]:
    return [amount * 100, 5]
"""


@dataclass
class Converting(AnyTypes):
    """The types of a deployment with these migration functions; `calls` counts them."""

    functions: Mapping[str, Any]
    calls: list[str] = field(default_factory=list)

    def convert(self, tenant: str, function: str, values: Mapping[str, Any]) -> Any:
        name = function.partition(":")[2]
        self.calls.append(name)
        try:
            return self.functions[name](**values)
        except ArithmeticError:
            raise RequestError("HF373", f"{function} failed", status=409) from None


def deployed(folder: Path, old: str, new: str, **functions: Any) -> tuple[TwoVersions, Converting]:
    shop = TwoVersions(compiled(folder, old), compiled(folder, new), work)
    return shop, Converting(functions)


def test_a_new_variable_that_no_function_computes_keeps_the_execution(tmp_path: Path) -> None:
    shop, types = deployed(tmp_path, OLD, NEW)
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)

    (why,) = shop.reasons(run)
    assert "reads `parts`, which this execution has not computed" in why


def test_a_function_computes_it_once_and_the_event_has_the_value(tmp_path: Path) -> None:
    shop, types = deployed(tmp_path, OLD, NEW + PARTS, parts=lambda amount: [amount * 100, 5])
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)
    assert shop.reasons(run) == []
    assert types.calls == []

    shop.migrate(run)
    settle(shop)
    shop.send_event(data="r-7")
    shop.world.run()

    (move,) = shop.moves(run)
    assert move["plan"]["assigned"] == {"": {"parts": [700, 5]}}
    assert types.calls == ["parts"]
    assert shop.describe(run)["output"] == 705
    assert fold(shop.events(run)) == shop.state(run)
    assert check(shop.world) == []


def test_a_bulk_moves_each_with_its_own_values_and_reports_what_the_function_refuses(
    tmp_path: Path,
) -> None:
    shop, types = deployed(tmp_path, OLD, NEW + PARTS, parts=lambda amount: [100 // amount, 5])
    runs = {amount: shop.begun({"amount": amount}, f"o{amount}") for amount in (2, 0, 5)}
    shop.deploy(types=types)
    request = {"operation": "migrate", "filters": {"workflow": "flow"}, **WHY}
    bulk = shop.insist(lambda: shop.front.bulk("default", request, CHANCE))
    settle(shop, 30)

    assert shop.describe(bulk["execution"])["output"] == {"done": 2, "refused": 1}
    assigned = {
        amount: [move["plan"]["assigned"][""]["parts"] for move in shop.moves(run)]
        for amount, run in runs.items()
    }
    assert assigned == {2: [[50, 5]], 0: [], 5: [[20, 5]]}
    assert len(types.calls) == len(runs)
    for number in range(len(runs)):
        shop.send_event(data="r-7", event_id=f"e{number}")
    shop.world.run()
    assert [shop.describe(run)["output"] for run in runs.values()] == [55, 0, 25]
    assert check(shop.world) == []


def test_a_function_that_fails_leaves_the_execution_whole(tmp_path: Path) -> None:
    shop, types = deployed(tmp_path, OLD, NEW + PARTS, parts=lambda amount: amount / 0)
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)

    with pytest.raises(RequestError) as refused:
        shop.migrate(run)
    settle(shop)
    assert refused.value.code == "HF373"
    assert shop.state(run).definition == shop.old.hash
    shop.send_event(data="r-7")
    shop.world.run()
    assert shop.describe(run)["output"] == 7


def test_a_variable_gets_another_form_from_its_old_value(tmp_path: Path) -> None:
    old = OLD.replace("    receipt =", "    total = amount * 2\n    receipt =").replace(
        "return amount", "return total"
    )
    new = NEW.replace("parts = [amount, 1]", "total = [amount, amount]").replace(
        "parts[0] + parts[1]", "total[0] + total[1]"
    )
    rule = """
@migrates(flow)
def total(total: int) -> list[int]:
    return [total, 0]
"""
    shop, types = deployed(tmp_path, old, new + rule, total=lambda total: [total, 0])
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)
    shop.migrate(run)
    settle(shop)
    shop.send_event(data="r-7")
    shop.world.run()
    assert shop.describe(run)["output"] == 14


def test_a_value_for_a_branch_and_for_the_lines_after_it_is_computed_once(tmp_path: Path) -> None:
    old = """
@workflow
def flow(amount: int) -> int:
    parallel(lambda: wait_for_event("paid", str, key="k1"), lambda: sleep(hours(9)))
    return amount
"""
    new = """
@workflow
def flow(amount: int) -> int:
    parts = [amount, 1]
    parallel(lambda: wait_for_event("paid", str, key="k1"), lambda: sleep(hours(9)))
    return parts[0]
"""
    shop, types = deployed(tmp_path, old, new + PARTS, parts=lambda amount: [amount * 3, 0])
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)
    shop.migrate(run)
    settle(shop)
    shop.send_event(data="r-7")
    shop.world.run()
    assert types.calls == ["parts"]
    assert shop.describe(run)["output"] == 21


def test_a_fork_on_the_newest_version_computes_from_the_values_it_is_given(tmp_path: Path) -> None:
    shop, types = deployed(tmp_path, OLD, NEW + PARTS, parts=lambda amount: [amount * 100, 5])
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)
    request = {**WHY, "step": "wait for paid", "on": "latest", "set": {"amount": 9}}
    fork = shop.insist(lambda: shop.front.fork("default", run, request, CHANCE))["execution"]
    settle(shop)
    # The execution and its fork wait for an event each.
    shop.send_event(data="r-7", event_id="e1")
    shop.send_event(data="r-7", event_id="e2")
    shop.world.run()
    assert shop.describe(fork)["output"] == 905
    assert shop.describe(run)["output"] == 7


def test_a_function_that_reads_another_form_than_the_old_one_is_no_way(tmp_path: Path) -> None:
    rule = PARTS.replace("amount: int", "amount: str").replace("amount * 100", "len(amount)")
    shop, types = deployed(tmp_path, OLD, NEW + rule)
    run = shop.begun({"amount": 7})
    shop.deploy(types=types)
    (why,) = shop.reasons(run)
    assert "the migration function `parts` reads another form" in why


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (PARTS.replace("def parts", "def pieces"), "is no variable of flow"),
        (PARTS.replace("-> list[int]", "-> str"), "gives str, and the variable is list"),
        (PARTS.replace("amount: int", "amount"), "without a name or a type"),
        (PARTS.replace("def parts", "@task\ndef parts"), "is a step"),
    ],
)
def test_a_function_that_cannot_give_the_variable_is_refused(
    tmp_path: Path, rule: str, what: str
) -> None:
    with pytest.raises(WorkflowError, match=what) as refused:
        compiled(tmp_path, NEW + rule)
    assert refused.value.code == "HF372"
    assert re.search(r"\w\.py:[0-9]+\)$", refused.value.message)


def test_a_deployment_calls_the_function_with_its_types(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + NEW + PARTS) as module:
        deployment = Deployment(Registry({}, {}), {})
        named = f"{module.__name__}:parts"
        assert deployment.convert("default", named, {"amount": 7}) == [700, 5]
        for values in ({"amount": "x"}, {}):
            with pytest.raises(RequestError, match="failed") as refused:
                deployment.convert("default", named, values)
            assert (refused.value.code, refused.value.status) == ("HF373", 409)
            assert "'x'" not in refused.value.message
    with pytest.raises(RequestError, match="failed"):
        deployment.convert("default", "no.such:function", {})
