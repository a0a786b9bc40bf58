"""Compensations in graphs, as Python and compiled: `World` runs both and compares them."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import Dag, TaskError, minutes, task
from holdfast.compiler.compile import compile_dag
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, fails, real, takes
from tests.thorough import some

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "dag.md").read_text(encoding="utf-8")
GRAPHS = 60


class CardDeclinedError(TaskError):
    """The failure of a step."""


@task
def reserve(order: str) -> str:
    return f"r-{order}"


@task
def charge(reserve: str) -> str:
    return f"c-{reserve}"


@task
def ship(charge: str) -> str:
    return f"s-{charge}"


@task
def tell(charge: str) -> str:
    return f"t-{charge}"


@task
def release(reserve: str, order: str) -> None: ...


@task
def refund(charge: str) -> None: ...


TASKS: list[Any] = [reserve, charge, ship, tell, release, refund]
DOCUMENT = next(
    json.loads(block)
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    if "order_with_undo" in block
)
order_with_undo = Dag.from_json(DOCUMENT, TASKS)


def _row(id_: str, *after: str, type_: str = "service_call") -> dict[str, Any]:
    return {"id": id_, "type": type_, "depends_on": list(after)}


def refusals(*rows: dict[str, Any]) -> str:
    with pytest.raises(CompileErrors) as refused:
        compile_dag(Dag.from_json({"workflow_id": "x", "steps": [*rows]}, TASKS))
    return str(refused.value)


@pytest.mark.parametrize(
    ("failing", "undone"),
    [(reserve, []), (charge, ["release"]), (ship, ["refund", "release"])],
    ids=["first", "second", "last"],
)
def test_succeeded_steps_are_undone_the_last_step_first(failing: Any, undone: list[str]) -> None:
    run = World({failing: fails(CardDeclinedError("no"))}, others=real).run(
        order_with_undo, order="o"
    )

    assert (run.error, run.status) == ("CardDeclinedError", "FAILED")
    assert [name for name in run.steps if name in {"release", "refund"}] == undone


def test_a_graph_that_succeeds_takes_nothing_back() -> None:
    run = World(others=real).run(order_with_undo, order="o")

    assert run.output == "s-c-r-o"
    assert run.steps == ["reserve", "charge", "ship"]


def test_a_stopped_graph_takes_back_what_succeeded() -> None:
    world = World({ship: takes(minutes(9), "late")}, others=real)
    world.stop(at=minutes(1))
    run = world.run(order_with_undo, order="o")

    assert run.status == "ABORTED"
    assert run.steps[-2:] == ["refund", "release"]


def test_a_compensation_that_fails_does_not_keep_the_others_from_running() -> None:
    outcomes = {ship: fails(CardDeclinedError("no")), refund: fails(ValueError("closed"))}
    run = World(outcomes, others=real).run(order_with_undo, order="o")

    assert run.error == "CompensationFailed"
    assert run.steps[-1] == "release"


def test_a_failure_in_a_fork_takes_back_the_steps_before_it() -> None:
    rows = [
        *DOCUMENT["steps"],
        {"id": "tell", "type": "notification", "depends_on": ["charge"]},
    ]
    graph = Dag.from_json({"workflow_id": "forked", "steps": rows}, TASKS)
    run = World({tell: fails(CardDeclinedError("no"))}, others=real).run(graph, order="o")

    assert run.error == "CardDeclinedError"
    assert run.steps[-2:] == ["refund", "release"]


@pytest.mark.parametrize("seed", some(range(GRAPHS // 10)))
def test_random_chains_run_alike_as_python_and_compiled(seed: int) -> None:
    """The kit compares both runs; here the order is compared with the rule, too."""
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(10):
        length = chance.randint(1, 5)
        names = [f"s{number}" for number in range(length)]
        rows, made = list[dict[str, Any]](), dict[str, Any]()
        with_undo = [name for name in names if chance.random() < 0.6]
        for place, name in enumerate(names):
            made[name] = task(_named(name))
            rows.append(_row(name, *names[max(0, place - 1) : place]))
            if name in with_undo:
                made[f"u_{name}"] = task(_named(f"u_{name}"))
                rows.insert(
                    chance.randint(0, len(rows)), _row(f"u_{name}", name, type_="compensation")
                )
        failing = chance.randrange(length)
        graph = Dag.from_json({"workflow_id": "chain", "steps": rows}, [*made.values()])
        run = World({made[names[failing]]: fails(CardDeclinedError("no"))}, others=real).run(graph)
        expected = [f"u_{name}" for name in reversed(names[:failing]) if name in with_undo]
        assert run.steps[failing + 1 :] == expected


def _named(name: str) -> Any:
    def one() -> None: ...

    one.__name__ = one.__qualname__ = name
    return one


def test_a_step_beside_which_others_run_cannot_be_taken_back() -> None:
    told = refusals(
        _row("reserve"),
        _row("charge", "reserve"),
        _row("ship", "charge"),
        _row("tell", "charge"),
        {**_row("refund", "ship", type_="compensation"), "arguments": {"charge": "c"}},
    )

    assert "`refund` takes back `ship`, and other steps may run beside `ship`" in told


def test_a_step_cannot_depend_on_a_compensation() -> None:
    told = refusals(
        _row("reserve"),
        _row("release", "reserve", type_="compensation"),
        _row("charge", "reserve", "release"),
    )

    assert "`charge` depends on `release`, which runs only after a failure" in told


@pytest.mark.parametrize("after", [[], ["reserve", "charge"]], ids=["none", "two"])
def test_a_compensation_takes_back_one_step(after: list[str]) -> None:
    told = refusals(
        _row("reserve"), _row("charge", "reserve"), _row("release", *after, type_="compensation")
    )

    assert "`release` takes back the one step that it depends on" in told
