"""Upgrade and rollback between two formats, with executions under way.

Release 1 reads format 1 alone, release 2 reads 1 and 2, release 3 reads 2 and 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from holdfast.errors import NewerFormatError, OlderFormatError
from holdfast.runtime.commands.api import Front
from holdfast.runtime.driver import run
from holdfast.runtime.storage import keys
from holdfast_simulator import generator
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.scenarios import (
    AttemptOutcome,
    Brought,
    Scenario,
    corpus,
    statemachine_scenarios,
)
from holdfast_simulator.world import Killed
from tests.builders import ask, call, chain, machine, wait_for
from tests.sim.fleet import (
    RELEASE_1,
    RELEASE_2,
    RELEASE_3,
    TENANT,
    Company,
    stopped_after,
)
from tests.unit.child_kit import call_of

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
PAID: Final = (Brought(50, "paid", "k1", {"pence": 5}, "e1"),)
LATE: Final = (Brought(20 * 86_400, "paid", "k1", {"pence": 5}, "e1"),)
NEVER: Final = machine({"wait": wait_for("never")})
RETRY: Final = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 30, "MaxAttempts": 3}]
WORK: Final = machine({"work": call("work")})
#: Longer than 16 KB when it is compressed: a blob.
LONG: Final = "".join(Random(1).choices("0123456789abcdef", k=40_000))

COUNTED: Final = machine(
    {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "work"},
        "work": call("work", "again?", Assign={"n": "{% $n + 1 %}"}),
        "again?": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $n < 60 %}", "Next": "work"}],
            "Default": "done",
        },
        "done": {"Type": "Succeed"},
    }
)
UNDOING: Final = machine(
    {
        "book": call("work", "wait"),
        "wait": wait_for("never", "done", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "undo"}]),
        "done": {"Type": "Succeed"},
        "undo": call("work", "undone"),
        "undone": {"Type": "Fail", "Error": "Undone"},
    },
    Holdfast={
        "Undo": [{"States": ["wait"], "Begin": "undo", "End": "undone"}],
        "Deadlines": [
            {"Begin": "book", "Seconds": 3600, "States": ["wait"], "Next": "done"},
        ],
    },
)
LANES: Final = machine(
    {
        "both": {
            "Type": "Parallel",
            "Branches": [machine({"paid": wait_for("paid")}), machine({"work": call("work")})],
            "Next": "each",
        },
        "each": {
            "Type": "Map",
            "Items": [1, 2, 3],
            "MaxConcurrency": 2,
            "ItemProcessor": machine({"one": call("work")}),
            "End": True,
        },
    }
)


def scenario(name: str, *machines: Any, **fields: Any) -> Scenario:
    """The first machine is `outer`, the second `inner`."""
    named = dict(zip(("outer", "inner"), machines, strict=False))
    return Scenario(name, "", named, **{"input": {"n": 1}, **fields})


SCENARIOS: Final = {
    one.name: one
    for one in (
        scenario("chain", chain(4)),
        scenario("event", machine({"a": wait_for("paid", "b"), "b": call("work")}), events=PAID),
        scenario(
            "answer", machine({"a": ask("b"), "b": call("w")}), answers={"a": AttemptOutcome("yes")}
        ),
        scenario(
            "retries",
            machine({"a": call("work", Retry=RETRY)}),
            tasks={
                "work": (
                    AttemptOutcome(error="Busy"),
                    AttemptOutcome(error="Busy"),
                    AttemptOutcome("done"),
                )
            },
        ),
        scenario("long wait", machine({"a": {"Type": "Wait", "Seconds": 90_000, "End": True}})),
        scenario("lanes", LANES, events=PAID),
        scenario("deadline and undo", UNDOING),
        scenario("child", machine({"a": call_of("inner", "b"), "b": call("work")}), WORK),
        scenario("forgotten child", machine({"a": call_of("inner", TimeoutSeconds=60)}), NEVER),
        scenario("blobs", chain(2), input={"n": 1, "text": LONG}),
        scenario(
            "blobs in a wait", machine({"a": wait_for("paid")}), input={"text": LONG}, events=PAID
        ),
    )
}
FOLDER: Final = Path(__file__).parents[2] / "statemachines"
WORKFLOWS: Final = {f"ours: {one.name}": one for one in statemachine_scenarios(FOLDER)}
WRITTEN: Final = {one.name: one for one in corpus()}
GENERATED: Final = {
    f"seed {seed}": generator.scenario(Random(seed), f"seed {seed}") for seed in range(40)
}
FEW: Final = SCENARIOS | dict(list(GENERATED.items())[:3])
ALL: Final = SCENARIOS | WORKFLOWS | WRITTEN | GENERATED
each_scenario = pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in FEW)]
)
STOPS_MAX: Final = 8


def stops(scenario: Scenario) -> Iterator[int]:
    """Yield after how many commits the release changes: every one, or some of very many."""
    total = Company(scenario, [RELEASE_1]).finish().commits
    yield from range(1, total + 1, max(1, total // STOPS_MAX))


def never_falls(formats: list[list[int]]) -> bool:
    return all(sorted(numbers) == numbers for numbers in formats)


# -- upgrade ---------------------------------------------------------------------------------------


@each_scenario
def test_code_for_both_formats_continues_after_any_record_as_the_old_code_would(name: str) -> None:
    for number in stops(ALL[name]):
        plain = Company(ALL[name], [RELEASE_1], stopped_after(number, [RELEASE_1])).finish()
        upgraded = Company(ALL[name], [RELEASE_1], stopped_after(number, [RELEASE_2])).finish()

        assert upgraded.story() == plain.story()
        assert upgraded.is_sound()
        assert {found for formats in upgraded.formats for found in formats} == {1}


@each_scenario
def test_executions_continue_in_the_new_format_once_it_is_requested(name: str) -> None:
    written = set()
    for number in stops(ALL[name]):
        plain = Company(ALL[name], [RELEASE_1], stopped_after(number, [RELEASE_1])).finish()
        switch = stopped_after(number, [RELEASE_2], asks_for=2)
        flipped = Company(ALL[name], [RELEASE_1], switch).finish()

        assert flipped.agrees_with(plain)
        assert flipped.is_sound()
        assert never_falls(flipped.formats)
        written |= {found for formats in flipped.formats for found in formats}

    assert written == {1, 2} or max(stops(ALL[name])) == 1


def test_a_log_that_has_changed_its_format_needs_nothing_older() -> None:
    """The first record in the new format holds a snapshot: the release after it reads it alone."""
    one = scenario("event", machine({"a": wait_for("paid")}), events=LATE)
    company = Company(one, [RELEASE_1], stopped_after(1, [RELEASE_2], asks_for=2))
    company.go_on(DAY_MS)
    assert company.formats == [[1, 2]]
    company.fleet.install([RELEASE_3])
    company.finish()

    assert company.formats == [[1, 2, 2]]
    assert company.is_sound()
    assert company.histories[0].state.status == "SUCCEEDED"


@pytest.mark.parametrize(
    "rest", [wait_for("paid"), {"Type": "Wait", "Seconds": 20 * 86_400, "End": True}]
)
def test_an_idle_execution_is_converted_within_a_week(rest: dict[str, Any]) -> None:
    company = Company(scenario("rests", machine({"a": rest}), events=LATE), [RELEASE_2])
    company.go_on(DAY_MS)
    company.ask_for(2)
    company.go_on(8 * DAY_MS)

    assert company.formats == [[1, 2]]
    assert "so" in company.histories[0].items[-1]
    company.fleet.install([RELEASE_3])
    assert company.finish().is_sound()
    assert company.histories[0].state.status == "SUCCEEDED"


def test_code_that_no_longer_reads_the_old_format_refuses_it_and_loses_nothing() -> None:
    company = Company(scenario("rests", machine({"a": wait_for("paid")}), events=PAID), [RELEASE_2])
    company.fleet.run(until_ms=company.fleet.now_ms)
    company.fleet.install([RELEASE_3])
    company.go_on(HOUR_MS)

    assert company.formats == [[1]]
    with pytest.raises(OlderFormatError, match="HF302"):
        company.call(front_of(company, RELEASE_3).describe(TENANT, company.histories[0].run))
    company.fleet.install([RELEASE_2])
    company.finish()
    assert company.histories[0].state.status == "SUCCEEDED"


# -- old and new beside each other -----------------------------------------------------------------


@each_scenario
def test_during_the_deploy_hosts_of_both_releases_serve_as_one(name: str) -> None:
    plain = Company(ALL[name], [RELEASE_1]).finish()
    for seed in range(3):
        print(f"seed {seed}")
        mixed = Company(ALL[name], [RELEASE_1, RELEASE_2], seed=seed).finish()

        assert mixed.story() == plain.story()
        assert mixed.is_sound()
        assert {found for formats in mixed.formats for found in formats} == {1}
        assert mixed.fleet.given_back == 0


def test_asked_too_early_the_old_hosts_write_nothing_more_and_the_new_ones_do_the_work() -> None:
    """`Fleet` watches every delivery to a host that knows that it is too old."""
    given_back = 0
    for (_, one), seed in itertools.product(FEW.items(), range(3)):
        print(f"{one.name}, seed {seed}")

        def ask_early(company: Company, commits: int) -> None:
            if commits == 1:
                company.ask_for(2)

        mixed = Company(one, [RELEASE_1, RELEASE_2], ask_early, seed).finish()
        assert (check(mixed.fleet), lost(mixed.fleet)) == ([], [])
        assert never_falls(mixed.formats)
        given_back += mixed.fleet.given_back

    assert given_back >= 10


# -- rollback --------------------------------------------------------------------------------------


@each_scenario
def test_a_rollback_before_the_new_format_is_requested_works(name: str) -> None:
    for number in stops(ALL[name]):
        plain = Company(ALL[name], [RELEASE_1], stopped_after(number, [RELEASE_1])).finish()
        back = Company(ALL[name], [RELEASE_2], stopped_after(number, [RELEASE_1])).finish()

        assert back.story() == plain.story()
        assert back.is_sound()


def front_of(company: Company, release: Any) -> Front:
    front = company.front
    return Front(front.programs, front.workflows, front.types, front.keys, release)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("hours", [0.2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_rollback_after_it_was_asked_for_stops_with_a_code_and_loses_nothing(
    name: str, hours: float
) -> None:
    """Three hours are longer than it takes to be a dead letter for the third time."""

    def roll_back(company: Company, commits: int) -> None:
        if commits == 1:
            company.fleet.install([RELEASE_1])
            raise Killed

    company = Company(SCENARIOS[name], [RELEASE_2.asking(2)], roll_back)
    company.ask_for(2)
    company.go_on(int(hours * HOUR_MS))

    assert company.commits == 1
    before = company.formats
    assert before[0] == [2]
    old = front_of(company, RELEASE_1)
    for door in (old.describe, old.history):
        with pytest.raises(NewerFormatError, match="HF301"):
            company.call(door(TENANT, company.histories[0].run))
    quarantined = [i for i in company.fleet.services.items("mail") if i["pk"] == keys.QUARANTINE]
    assert [item for item in quarantined if "body" in item] == []

    company.fleet.install([RELEASE_2])
    company.finish()
    assert (check(company.fleet), lost(company.fleet)) == ([], [])
    assert len(company.formats[0]) > 1 or company.histories[0].state.is_ended


def test_a_start_that_only_old_hosts_meet_is_kept_until_the_new_ones_are_back() -> None:
    company = Company(SCENARIOS["chain"], [RELEASE_1])
    company.ask_for(2)
    company.go_on(3 * HOUR_MS)

    assert company.histories == []
    company.fleet.install([RELEASE_2])
    assert company.finish().histories[0].state.status == "SUCCEEDED"
    assert run(company.front.executions(TENANT, {}), company.fleet.services.perform)
