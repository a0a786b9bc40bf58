"""Hosts that freeze, functions whose time is over, and messages after the last fault."""

from __future__ import annotations

from typing import Final

import pytest

from holdfast.resources import API, EVENTS, LambdaFunction
from holdfast_simulator import invocations, levels
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.invocations import Workers
from holdfast_simulator.marks import Seen
from holdfast_simulator.people import Minute, People
from holdfast_simulator.runner import KEYS
from holdfast_simulator.schedule import DrawnChoice, DrawnTape, WrittenTape
from holdfast_simulator.simulation import START_MS, Simulation
from holdfast_simulator.swarm import FREEZES_MS, PAUSES_MS, Swarm
from holdfast_simulator.tally import Tally

NAMES: Final = [one.scenario.name for one in levels.programs(None)]
CHAIN: Final = NAMES.index("chain of tasks")
EVENT: Final = NAMES.index("event")
THAWED: Final = {Seen.THAWED_WROTE, Seen.THAWED_REFUSED}
DAY_MS: Final = 86_400_000
MINUTE: Final = PAUSES_MS.index(60_000)
EFFECTS_MAX: Final = 40


def _frozen(kind: str, milliseconds: int, program: int = CHAIN) -> Tally:
    """Freeze each process before each effect, each in a schedule of its own."""
    freeze = ("freeze", 0, FREEZES_MS.index(milliseconds))
    faults = levels.faults_in(levels.programs(None)[program], [kind])
    tapes = [(choice, freeze) for choice, *_ in faults]
    return levels.tapes(program, tapes, None)


def _after_a_day(program: int, choices: list[DrawnChoice]) -> Evidence:
    deployed = levels.programs(None)[program]
    simulation = Simulation(deployed.scenario, Swarm(safety_ms=DAY_MS), WrittenTape(choices))
    setting = deployed.setting(lambda: KEYS)
    Workers(simulation, lambda _: setting)
    Minute(simulation)
    People(simulation, deployed.front()).begin()
    simulation.run_until_faults_end()
    return simulation.evidence


# -- in time ---------------------------------------------------------------------------------------


def test_a_crash_whose_recovery_takes_half_a_day_is_seen_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashes = levels.faults_in(levels.programs(None)[CHAIN], levels.CRASHES)
    assert not levels.tapes(CHAIN, crashes, None).violated
    monkeypatch.setattr(invocations, "VISIBILITY_SECONDS", 43_200)
    seen = levels.tapes(CHAIN, crashes, None)
    # The others are those of callers, or the sweeper's check of the start came in time.
    assert seen.violated["I17"] >= 8
    said = [one.text for _, result in seen.failures for one in result.violations]
    assert any("its log begins" in text for text in said)


def test_faults_end_with_the_last_entry_of_the_tape() -> None:
    kill = ("effect", 1, "killed before")
    tape = WrittenTape([kill])
    assert not tape.is_spent
    assert WrittenTape([]).is_spent
    assert not DrawnTape(1).is_spent
    deployed = levels.programs(None)[CHAIN]
    swarm = Swarm(safety_ms=DAY_MS, ends_with_tape=True)
    simulation = Simulation(deployed.scenario, swarm, tape)
    People(simulation, deployed.front()).begin()
    simulation.run_until_faults_end()
    assert tape.is_spent
    assert simulation.now_ms == simulation.evidence.faults_end_ms < START_MS + 1_000


# -- thawed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("milliseconds", [130_000, 1_000_000, 7_200_000])
@pytest.mark.parametrize("kind", ["frozen before", "frozen after"])
def test_a_worker_that_continues_after_its_time_loses_nothing(kind: str, milliseconds: int) -> None:
    tally = _frozen(kind, milliseconds)
    assert [(name, one.violations) for name, one in tally.failures] == []
    if kind == "frozen before":
        assert tally.marks[Seen.THAWED_REFUSED]


def test_a_nap_is_no_thaw_that_counts() -> None:
    for milliseconds in (2_000, 20_000):
        assert not THAWED & _frozen("frozen before", milliseconds).marks.keys()


# -- the time of a function ------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "door"), [(CHAIN, API), (EVENT, EVENTS)], ids=["API", "bus"])
def test_a_door_that_is_too_slow_is_given_up_and_asked_again(
    program: int, door: LambdaFunction
) -> None:
    quiet_ms = _answered_ms(_after_a_day(program, []), door)
    for number in range(EFFECTS_MAX):
        choices: list[DrawnChoice] = [("effect", number, "slow"), ("slow", 0, MINUTE)]
        late_ms = _answered_ms(_after_a_day(program, choices), door) - quiet_ms
        if late_ms > 10_000:
            assert door.timeout_seconds * 1_000 < late_ms < PAUSES_MS[MINUTE]
            return
    raise AssertionError("no effect of the door was slow")


def _answered_ms(evidence: Evidence, door: LambdaFunction) -> int:
    if door is API:
        return evidence.started[0].at_ms
    return next(one.at_ms for one in evidence.told if one.what == "event")


def test_a_caller_of_a_frozen_api_gets_the_same_execution() -> None:
    freeze = ("freeze", 0, FREEZES_MS.index(7_200_000))
    for number in range(3):
        evidence = _after_a_day(CHAIN, [("effect", number, "frozen before"), freeze])
        (started,) = evidence.started
        assert started.at_ms < START_MS + 60_000
        assert {one.run for one in evidence.wrote} == {started.run}
