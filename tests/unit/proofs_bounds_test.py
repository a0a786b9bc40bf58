"""A proved bound of a history holds: no run of a random machine is longer."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.core.events import DURABLE_EVENTS
from holdfast.proofs.bounds import Worst, retry_seconds_of, worst_of
from holdfast.proofs.graph import levels_of
from tests.thorough import some
from tests.unit.core_kit import Case
from tests.unit.proofs_machines import Machines, random_run

ROOT = Path(__file__).parents[2]
SEEDS = some(range(300))


def counted(case: Case) -> tuple[int, int, int]:
    """Return events, transitions and durable steps of a run."""
    types = case.types
    entered = sum(name.endswith("StateEntered") for name in types)
    tasks = sum(name == "TaskStateEntered" for name in types)
    retries = sum(name == "TaskScheduled" for name in types) - tasks
    return (
        sum(event.id > 0 for event in case.events),
        entered + max(0, retries),
        sum(name in DURABLE_EVENTS for name in types),
    )


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [
        ({"IntervalSeconds": 30, "BackoffRate": 1.0, "MaxAttempts": 100_000}, 3_000_000),
        ({"IntervalSeconds": 1, "MaxDelaySeconds": 100, "MaxAttempts": 20_000}, 1_999_427),
        ({"IntervalSeconds": 1, "BackoffRate": 2.0, "MaxAttempts": 4}, 15),
    ],
)
def test_the_delays_of_many_retries_are_summed(retry: dict[str, Any], seconds: float) -> None:
    state = {"Retry": [{"ErrorEquals": ["States.ALL"], **retry}]}
    assert retry_seconds_of(state) == seconds


def proved(worst: Worst, symbols: dict[str, float]) -> tuple[float, float, float]:
    assert worst.events is not None
    assert worst.transitions is not None
    assert worst.steps is not None
    return tuple(  # type: ignore[return-value]
        bound.value(symbols) for bound in (worst.events, worst.transitions, worst.steps)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_run_of_a_random_machine_is_longer_than_its_bound(seed: int) -> None:
    random = Random(seed)
    definition = Machines(random).machine()
    worst = worst_of(levels_of(definition))
    for _ in range(2):
        xs = list(range(random.randint(0, 3)))
        case = random_run(definition, {"xs": xs}, random)
        # Every list of these machines is the one of the input.
        symbols = [] if worst.events is None else worst.events.symbols
        bound = proved(worst, dict.fromkeys(symbols, len(xs)))
        found = counted(case)
        assert all(map(operator.le, found, bound)), (seed, found, bound)


@pytest.mark.parametrize("name", ["order_fulfilment", "document_signing"])
def test_the_workflows_of_this_repository_stay_within_their_bounds(name: str) -> None:
    definition: Any = json.loads((ROOT / "statemachines" / f"{name}.asl.json").read_text())
    worst = worst_of(levels_of(definition))
    line = {"sku": "a", "qty": 1, "unit_pence": 5, "description": None}
    for seed in some(range(100)):
        random = Random(seed)
        goods = random.randint(0, 3)
        order = {"id": "1", "lines": [line] * goods, "customer_id": None, "country": "x"}
        document = {"doc_id": "d", "signers": ["ada", "bob", "cyd"][:goods], "needed": None}
        case = random_run(definition, {"order": order, **document}, random)
        bound = proved(worst, {"len(goods)": goods, "len(signers)": goods})
        assert all(map(operator.le, counted(case), bound)), seed


def test_a_bound_is_met_by_the_longest_run() -> None:
    task = {"Type": "Task", "Resource": "holdfast:task:t", "End": True}
    definition = {"QueryLanguage": "JSONata", "StartAt": "a", "States": {"a": task}}
    worst = worst_of(levels_of(definition))
    assert counted(Case(definition).start({}).succeed(1)) == proved(worst, {})


RETRIED = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 600, "MaxAttempts": 5}]


def seconds_of(states: dict[str, Any], **block: Any) -> str:
    document = {"StartAt": "a", "States": states, "QueryLanguage": "JSONata"}
    document["Holdfast"] = {"Deadlines": [{"Begin": "a", "Seconds": 300, **block}]}
    return str(worst_of(levels_of(document)).seconds)


def test_the_states_of_a_block_with_a_deadline_wait_no_longer_together() -> None:
    task = {"Type": "Task", "Resource": "holdfast:task:t", "Retry": RETRIED}
    short = {"Type": "Wait", "Seconds": 60}
    states = {"a": {**task, "Next": "b"}, "b": {**task, "Next": "c"}, "c": {**short, "End": True}}
    assert seconds_of(states, States=["a", "b"]) == "360"
    assert seconds_of(states, States=["a", "b", "c"]) == "300"
    waits = {"a": {**short, "Next": "b"}, "b": {**short, "Next": "c"}, "c": states["c"]}
    assert seconds_of(waits, States=["a", "b"]) == "180"


def test_a_block_with_a_deadline_counts_in_each_round_of_a_loop() -> None:
    again = {"Type": "Choice", "Choices": [{"Condition": "{% $n < 3 %}", "Next": "a"}]}
    count = {"Type": "Pass", "Assign": {"n": "{% $n + 1 %}"}, "Next": "d"}
    task = {"Type": "Task", "Resource": "holdfast:task:t", "Retry": RETRIED, "Next": "c"}
    states = {
        "s": {"Type": "Pass", "Assign": {"n": 0}, "Next": "a"},
        "a": {"Type": "Pass", "Next": "b"},
        "b": task,
        "c": count,
        "d": {**again, "Default": "e"},
        "e": {"Type": "Succeed"},
    }
    document = {"StartAt": "s", "States": states, "QueryLanguage": "JSONata"}
    document["Holdfast"] = {"Deadlines": [{"Begin": "a", "Seconds": 300, "States": ["a", "b"]}]}
    # The bound of the loop is the first round and three more.
    assert str(worst_of(levels_of(document)).seconds) == "1,200"
