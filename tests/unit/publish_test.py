"""Published values: from the workflow to the readers, over waits, snapshots, branches and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.core.state_json import from_json, to_json
from holdfast.errors import NewerFormatError
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.log import Log
from holdfast.testing import World, real
from holdfast_simulator.invariants import check, lost
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.unit.dsl_kit import loaded

HEADER = """
from pydantic import BaseModel
from holdfast import each, first, minutes, parallel, publish, pure, seconds, sleep, workflow

class Line(BaseModel):
    sku: str
    qty: int = 1

@pure
def double(number: int) -> int:
    return number * 2
"""


def run(folder: Path, body: str, **given: Any) -> Any:
    """Run the workflow `flow` directly and compiled; they must agree on each published value."""
    with loaded(folder, HEADER + body) as module:
        return World(others=real).run(module.flow, **given)


def publish(name: str, value: Any, **fields: Any) -> Machine:
    return {"Type": "Pass", "Holdfast": {"Publish": {name: value}}, **fields}


STEPS = machine(
    {
        "picking": publish("status", "picking", Next="pick"),
        "pick": call("pick", "kept"),
        "kept": publish("parcel", {"rows": "{% [1, 2] %}"}, Next="packing"),
        "packing": publish("status", "{% 'pack' & 'ing' %}", Next="paid"),
        "paid": wait_for("paid", "sent"),
        "sent": publish("status", "sent", End=True),
    }
)


def settled(shop: Shop) -> None:
    shop.world.run(until_ms=shop.world.now_ms + 1_000)


# -- the language ----------------------------------------------------------------------------------


def test_values_are_published_as_json_in_the_order_of_the_program(tmp_path: Path) -> None:
    body = """
@workflow
def flow(lines: list[Line]) -> int:
    publish("lines", lines)
    for number in [1, 2]:
        publish("number", double(number))
    publish("wait", minutes(2))
    publish("nothing", None)
    return 7
"""
    found = run(tmp_path, body, lines=[{"sku": "tea"}])
    assert found.output == 7
    assert found.published == {
        "lines": [{"sku": "tea", "qty": 1}],
        "number": 4,
        "wait": "PT2M",
        "nothing": None,
    }
    assert [one.arguments for one in found.calls_of("number")] == [2, 4]


def test_a_workflow_may_end_with_a_published_value(tmp_path: Path) -> None:
    body = """
@workflow
def flow(n: int) -> None:
    if n > 0:
        return publish("n", n)
    publish("n", "none")
"""
    assert run(tmp_path, body, n=1).published == {"n": 1}
    assert run(tmp_path, body, n=0).published == {"n": "none"}


def test_branches_publish_and_are_compared_one_by_one(tmp_path: Path) -> None:
    body = """
def part(number: int) -> int:
    publish("begun", number)
    sleep(seconds(number))
    publish("done", number)
    return number

@workflow
def flow(numbers: list[int]) -> list[int]:
    found = each(numbers, lambda number: part(number))
    parallel(lambda: publish("left", 1), lambda: publish("right", 2))
    return found
"""
    found = run(tmp_path, body, numbers=[3, 1, 2])
    assert found.output == [3, 1, 2]
    assert found.published == {"begun": 2, "done": 3, "left": 1, "right": 2}
    assert [one.path for one in found.calls_of("done")] == ["1", "2", "0"]


def test_a_value_that_cannot_be_computed_is_an_error_that_a_handler_sees(tmp_path: Path) -> None:
    body = """
@workflow
def flow(n: int) -> str:
    try:
        publish("share", 100 // n)
    except Exception:
        return "no share"
    return "published"
"""
    assert run(tmp_path, body, n=0).output == "no share"
    assert run(tmp_path, body, n=4).published == {"share": 25}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('publish(f"n {n}", n)', "HF085"),
        ('publish("", n)', "HF085"),
        ('publish("n")', "HF008"),
        ('publish("waits", [minutes(n)])', "HF052"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path: Path, line: str, code: str) -> None:
    with (
        loaded(tmp_path, f"{HEADER}\n@workflow\ndef flow(n: int) -> None:\n    {line}\n") as module,
        pytest.raises(CompileErrors) as refused,
    ):
        compile_workflow(module.flow)
    assert code in str(refused.value)


# -- the engine ------------------------------------------------------------------------------------


def test_a_reader_sees_the_newest_values_while_the_execution_waits_and_after_its_end() -> None:
    shop = Shop(STEPS)
    run_id = shop.start({"n": 1})
    settled(shop)
    assert shop.describe(run_id)["published"] == {
        "status": "packing",
        "parcel": {"rows": [1, 2]},
    }
    shop.send_event()
    settled(shop)
    shown = shop.describe(run_id)
    assert (shown["status"], shown["published"]["status"]) == ("SUCCEEDED", "sent")
    assert (check(shop.world), lost(shop.world)) == ([], [])


def test_a_published_value_needs_no_record_of_its_own() -> None:
    def records(definition: Machine) -> int:
        shop = Shop(definition)
        run_id = shop.start({"n": 1})
        settled(shop)
        return len(shop.history(run_id).records)

    silent = {
        name: {key: value for key, value in state.items() if key != "Holdfast"}
        for name, state in STEPS["States"].items()
    }
    assert records(STEPS) == records({**STEPS, "States": silent})


def test_a_snapshot_keeps_the_values_and_one_without_values_is_as_before() -> None:
    shop = Shop(STEPS)
    run_id = shop.start({"n": 1})
    settled(shop)
    state = shop.history(run_id).state
    assert from_json(to_json(state)) == state
    assert "published" not in to_json(state._replace(published={}))


def test_a_stopped_execution_keeps_its_values() -> None:
    shop = Shop(STEPS)
    run_id = shop.start({"n": 1})
    settled(shop)
    shop.stop(run_id)
    settled(shop)
    shown = shop.describe(run_id)
    assert (shown["status"], shown["published"]["status"]) == ("ABORTED", "packing")


def test_the_history_has_each_value_and_a_release_that_cannot_fold_it_leaves_it_alone() -> None:
    shop = Shop(STEPS)
    run_id = shop.start({"n": 1})
    settled(shop)
    events = shop.insist(lambda: shop.front.history("default", run_id))["events"]
    values = [one["holdfast"]["value"] for one in events if one["type"] == "Published"]
    assert values == ["picking", {"rows": [1, 2]}, "packing"]
    with pytest.raises(NewerFormatError):
        shop.world.call(Log("default", run_id, "old", "", Formats(1, 1, 1)).load())


def test_a_value_that_cannot_be_computed_fails_the_state() -> None:
    shop = Shop(machine({"bad": publish("n", "{% 1 + 'a' %}", End=True)}))
    run_id = shop.start({"n": 1})
    settled(shop)
    shown = shop.describe(run_id)
    assert (shown["status"], shown["error"]) == ("FAILED", "States.QueryEvaluationError")
