"""The reference interpreter against the engine: what both make of the same programs, unfaulted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from holdfast.asl.program import Catcher
from holdfast.core import retry
from holdfast_simulator import generator
from holdfast_simulator.reference.interpreter import Contradiction, Undecided, expected
from holdfast_simulator.rulings import RuledEnd, Ruling
from holdfast_simulator.scenarios import AttemptOutcome, Scenario, corpus
from tests.builders import Machine, call, machine, wait_for
from tests.sim.played import Played

#: The states of a random machine take a few seconds each: some stops come before its end.
_STOP_SECONDS_MAX = 300


def compare(seed: int) -> Counter[str]:
    """Plays one random scenario. -> how its executions have ended, all as the reference says."""
    random = Random(seed)
    scenario = generator.scenario(random, f"seed {seed}")
    stop = random.randint(1, _STOP_SECONDS_MAX) if random.random() < 0.15 else None
    played = Played(scenario, stop)
    assert played.world.faults == []
    found: Counter[str] = Counter()
    for ruling, came in played.ends():
        assert expected(scenario, ruling) == came, f"seed {seed}, {ruling.workflow}"
        found[came.status] += 1
    return found


def test_random_programs_end_as_the_reference_says() -> None:
    found: Counter[str] = Counter()
    for seed in range(20):
        print(f"seed {seed}")
        found += compare(seed)
    assert min(found["SUCCEEDED"], found["FAILED"]) > 5, found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 3_000, 500))
def test_three_thousand_random_programs_end_as_the_reference_says(first: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(first, first + 500):
        print(f"seed {seed}")
        found += compare(seed)
    print(dict(found))


# -- by the scenario alone -------------------------------------------------------------------------


def scenario_of(
    definition: Machine, data: object = None, **tasks: tuple[AttemptOutcome, ...]
) -> Scenario:
    return Scenario("one", "", {"main": definition}, data, tasks)  # type: ignore[arg-type]


LATE = AttemptOutcome(seconds=9)
BROKEN = AttemptOutcome(error="Broken", cause="why")
RETRY = [{"ErrorEquals": ["Broken"], "MaxAttempts": 2}]
CATCH = [{"ErrorEquals": ["States.Timeout"], "Next": "caught"}]
BRANCHES = [machine({"a": call("a")}), machine({"b": call("b")})]
LANES: Machine = {"Type": "Parallel", "Branches": BRANCHES, "End": True}
FAILED = RuledEnd("FAILED", None, "Broken", "why")


@pytest.mark.parametrize(
    ("scenario", "end"),
    [
        (scenario_of(machine({"a": call("a")}), {"n": 1}), RuledEnd("SUCCEEDED", {"n": 1})),
        (scenario_of(machine({"a": call("a")}), a=(BROKEN,)), FAILED),
        (
            scenario_of(
                machine({"a": call("a", Retry=RETRY)}), a=(BROKEN, BROKEN, AttemptOutcome(7))
            ),
            RuledEnd("SUCCEEDED", 7),
        ),
        (scenario_of(machine({"a": call("a", Retry=RETRY)}), a=(BROKEN,)), FAILED),
        (
            scenario_of(
                machine(
                    {
                        "a": call("a", "caught", TimeoutSeconds=5, Catch=CATCH),
                        "caught": {"Type": "Succeed"},
                    }
                ),
                a=(LATE,),
            ),
            RuledEnd("SUCCEEDED", {"Error": "States.Timeout", "Cause": ""}),
        ),
        (
            scenario_of(machine({"both": LANES}), a=(AttemptOutcome(1),), b=(AttemptOutcome(2),)),
            RuledEnd("SUCCEEDED", [1, 2]),
        ),
        (scenario_of(machine({"both": LANES}), a=(AttemptOutcome(1),), b=(BROKEN,)), FAILED),
    ],
    ids=["echo", "fails", "retried", "used up", "late", "lanes", "a lane fails"],
)
def test_facts_that_no_schedule_can_change_follow_from_the_scenario(
    scenario: Scenario, end: RuledEnd
) -> None:
    assert expected(scenario) == end


@pytest.mark.parametrize(
    "definition",
    [
        machine({"first": {**LANES, "Holdfast": {"Needed": 1}}}),
        machine({"paid": wait_for("paid", TimeoutSeconds=60)}),
        machine({"a": call("a")}, TimeoutSeconds=60),
    ],
    ids=["a race", "an event and a time-out", "a deadline"],
)
def test_facts_that_a_schedule_decides_are_not_guessed(definition: Machine) -> None:
    with pytest.raises(Undecided):
        expected(scenario_of(definition))


# -- distributed Maps ------------------------------------------------------------------------------


def a_map(execution_type: str = "STANDARD", **fields: Any) -> Machine:
    """A distributed Map over its input, of which the item 2 fails."""
    fails = {"Condition": "{% 2 in $states.input %}", "Next": "bad"}
    states = {
        "which": {"Type": "Choice", "Choices": [fails], "Default": "good"},
        "bad": {"Type": "Fail", "Error": "Broken", "Cause": "why"},
        "good": {"Type": "Pass", "Output": "{% [$states.input, $states.input] %}", "End": True},
    }
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": execution_type},
        "StartAt": "which",
        "States": states,
    }
    return {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}


ANY: Machine = {"ToleratedFailurePercentage": 100}
HALF: Machine = {"ToleratedFailurePercentage": 50}
NAMED = {"item": "{% $states.context.Map.Item %}", "of": "{% $states.input %}"}
SMALL = {"MaxInputBytesPerBatch": 50, "BatchInput": {"all": "{% $count($states.input) %}"}}


def written(transformation: str, output_type: str = "JSON") -> Machine:
    config = {"OutputType": output_type, "Transformation": transformation}
    return {"ResultWriter": {"WriterConfig": config}}


@pytest.mark.parametrize(
    ("state", "data"),
    [
        (a_map(**ANY), [1, 2, 3]),
        (a_map("EXPRESS", **ANY), [1, 2, 3]),
        (a_map(**ANY, **written("NONE")), [1, 2]),
        (a_map(**ANY, **written("FLATTEN")), [1, 2, 3]),
        (a_map(**ANY, **written("FLATTEN", "JSONL")), [1, 3]),
        (a_map(**ANY), {"one": 1, "two": 2}),
        (a_map(**ANY, ItemSelector=NAMED), ["a", "b"]),
        (a_map(**HALF, ItemBatcher={"MaxItemsPerBatch": 2}), [{"n": 1}, 0, 0, 0, 0]),
        (a_map(ItemBatcher=SMALL), list(range(3, 40))),
        (a_map(**HALF), [1, 2]),
        (a_map(**HALF), [2, 2, 3]),
        (a_map(ToleratedFailureCount=1, **ANY), [2, 2, 3, 4]),
        (a_map(ToleratedFailureCount=-1), []),
        (a_map(ToleratedFailurePercentage="{% 101 %}"), []),
        (a_map(), []),
        (a_map(), "no list"),
        (a_map(MaxConcurrency=1), [1, 2, 3]),
        (a_map(Retry=[{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}]), [2]),
    ],
)
def test_a_distributed_map_ends_as_the_reference_says(state: Machine, data: object) -> None:
    played = Played(scenario_of(machine({"all": state}), data))
    ends = list(played.ends())
    assert {came.status for _, came in ends} <= {"SUCCEEDED", "FAILED", "ABORTED"}
    for ruling, came in ends:
        assert expected(played.scenario, ruling) == came


# -- planted errors are found ----------------------------------------------------------------------


def test_a_wrong_output_of_a_task_is_seen() -> None:
    """The history is of other arguments than the scenario gives."""
    definition = machine({"a": call("a", Arguments="{% $states.input.n %}")})
    played = Played(scenario_of(definition, {"n": 1}))
    ((ruling, came),) = played.ends()
    ruling.input = {"n": 2}
    assert expected(played.scenario, ruling) == RuledEnd("SUCCEEDED", 2) != came


def test_an_attempt_that_was_never_made_is_a_contradiction() -> None:
    """The history has one attempt; with another outcome it would have made a second one."""
    definition = machine({"a": call("a", Retry=RETRY)})
    ((ruling, _),) = Played(scenario_of(definition, a=(AttemptOutcome(1),))).ends()
    with pytest.raises(Contradiction, match="attempt 2"):
        expected(scenario_of(definition, a=(BROKEN, AttemptOutcome(1))), ruling)


def _nothing(*_arguments: object) -> None:
    """There is no undo, no retrier: none is ever found."""


def _last_catcher(catchers: Sequence[Catcher], error: str) -> Catcher | None:
    return next((one for one in reversed(catchers) if retry.matches(one.errors, error)), None)


def _never(*_arguments: object) -> bool:
    return False


def _none_at_all(*_arguments: object) -> int:
    return 0


def _without_the_last(
    _evaluate: object, _batcher: object, items: Sequence[object]
) -> tuple[list[object], list[int]]:
    """The last item gets into no batch."""
    return [{"Items": items[:-1]}], [len(items) - 1]


#: The bug in the engine, and the scenario of the corpus in which the reference finds it.
PLANTED = [
    ("holdfast.core.cancelling._next_undo", _nothing, "block undone"),
    ("holdfast.core.cancelling._is_shielded", _never, "late behind a shield"),
    ("holdfast.core.cancelling.is_late", _never, "late on the way out"),
    ("holdfast.core.flow.find_catcher", _last_catcher, "caught by name"),
    ("holdfast.core.flow.find_retrier", _nothing, "retried to success"),
    ("holdfast.core.lanes.is_tolerated", _never, "two of three"),
    ("holdfast.core.attempt_facts._is_heartbeat_missed", _never, "heartbeat missed"),
    ("holdfast.core.map_run._is_over_threshold", _never, "distributed fails"),
    ("holdfast.core.bounds.Bounds.failures_max", _none_at_all, "distributed"),
    ("holdfast.core.map_run.batched", _without_the_last, "distributed"),
]


@pytest.mark.parametrize(
    ("place", "bug", "name"), PLANTED, ids=[place.rpartition(".")[2] for place, _, _ in PLANTED]
)
def test_a_planted_bug_of_the_engine_is_seen(
    monkeypatch: pytest.MonkeyPatch, place: str, bug: object, name: str
) -> None:
    scenario = next(one for one in corpus() if one.name == name)
    monkeypatch.setattr(place, bug)
    played = Played(scenario)
    assert any(_differs(scenario, ruling, came) for ruling, came in played.ends())


def _differs(scenario: Scenario, ruling: Ruling, came: RuledEnd) -> bool:
    try:
        return expected(scenario, ruling) != came
    except Contradiction:
        return True
