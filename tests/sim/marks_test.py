"""Reach marks: the table is whole, nothing is counted beside it, and each mark can be reached."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import holdfast_simulator
from holdfast_simulator import levels
from holdfast_simulator.marks import ALL_MARKS, FAULTS, Read, Seen
from holdfast_simulator.runner import play
from holdfast_simulator.schedule import DrawnTape, WrittenTape
from holdfast_simulator.swarm import Swarm, drawn
from holdfast_simulator.tally import Tally

SOURCES: Final = Path(holdfast_simulator.__file__).parent
STATEMACHINES: Final = Path(__file__).parents[2] / "statemachines"
SEEDS_MAX: Final = 30_000
FAST: Final = 40
#: Rare situations, each with the program that causes it.
AIMED: Final = {
    Read.ANSWER_IN_WINDOW: "child out of time",
    Read.ANSWER_BEFORE_WAIT: "an answer before the call is over",
    Read.ANSWER_BEFORE_LOG: "an answer before there is a log",
    Read.HEARTBEAT: "alive until the answer",
    Read.FAILED_BESIDE_RETRY: "a failure beside a retry",
    Read.STOP_IN_UNDO: "stopped while losers undo",
    Read.STOP_TWICE: "stopped while losers undo",
    Read.STOP_NOW: "stopped while losers undo",
    Read.WORKER_LOST: "a task that kills",
    Seen.FIRST_HOLD_DIED: "a first task that kills",
    Seen.GOES_ALONE: "a lane that kills",
    Seen.RACES_LOST: "eight events at once",
    Seen.DIED_AFTER_TIMER: "hours",
    Seen.DIED_AFTER_BLOB: "four hundred kilobytes",
}


def test_there_are_sixty_situations_and_more_each_a_sentence_of_its_own() -> None:
    situations = [*Seen, *Read]
    assert len(situations) >= 60
    assert len(set(ALL_MARKS)) == len(ALL_MARKS) == len(situations) + len(FAULTS)
    assert all(re.fullmatch(r"[a-z][^.]{8,}", mark) for mark in situations)


def test_each_mark_is_counted_somewhere() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES.rglob("*.py"))
    used = set(re.findall(r"\b(?:Seen|Read)\.\w+", text))
    assert {f"{type(mark).__name__}.{mark.name}" for mark in (*Seen, *Read)} - used == set()


def test_nothing_is_counted_that_is_not_in_the_table() -> None:
    for seed in range(FAST):
        result = levels.scheduled(seed, STATEMACHINES)
        assert set(result.marks) <= set(map(str, ALL_MARKS)), f"seed {seed}"


def test_a_mark_that_is_too_rare_is_named() -> None:
    tally = Tally(marks=Counter(dict.fromkeys(map(str, ALL_MARKS), 100) | {str(Seen.START): 99}))
    assert tally.rare(100) == [(Seen.START, 99)]
    assert tally.rare(99) == []


@pytest.mark.slow
@pytest.mark.parametrize(("mark", "name"), AIMED.items(), ids=lambda one: one)
def test_a_rare_mark_is_reached_by_the_program_that_aims_at_it(mark: str, name: str) -> None:
    known = {one.scenario.name: one for one in levels.programs(None)}
    for seed in range(SEEDS_MAX):
        result = play(known[name], drawn(seed), DrawnTape(seed))
        if mark in result.marks:
            print(f"{mark}: seed {seed}")
            return
    raise AssertionError(f"not in {SEEDS_MAX} seeds")


@pytest.mark.slow
def test_every_mark_is_reached() -> None:
    missing = dict.fromkeys(map(str, ALL_MARKS))
    for seed in range(SEEDS_MAX):
        for mark in levels.scheduled(seed, STATEMACHINES).marks:
            if mark in missing:
                print(f"{mark}: seed {seed}")
                del missing[mark]
        if not missing:
            return
    raise AssertionError(f"not in {SEEDS_MAX} seeds: {list(missing)}")


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("an answer before the call is over", Read.ANSWER_BEFORE_WAIT),
        ("an answer before there is a log", Read.ANSWER_BEFORE_LOG),
    ],
)
def test_an_answer_that_comes_while_the_call_still_runs_is_kept_for_it(
    name: str, mark: Read
) -> None:
    known = {one.scenario.name: one for one in levels.programs(None)}
    tape = WrittenTape([("hand over", 0, "answered early")])
    result = play(known[name], Swarm(safety_ms=60_000), tape)
    assert result.violations == ()
    assert result.statuses == ("SUCCEEDED",)
    assert mark in result.marks
    assert Read.ANSWER_LATE not in result.marks
