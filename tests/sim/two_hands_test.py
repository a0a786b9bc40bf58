"""One message delivered to two workers: one deletes it while the other continues with it.

No message guards the records that the other worker then writes. If it cannot carry out their
commands, the sweeper has to find the execution within the stated time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.runtime import event_claims
from holdfast_simulator import levels, scenarios
from holdfast_simulator.orphans import Orphans
from holdfast_simulator.runner import Deployed, Violation, play
from holdfast_simulator.schedule import DrawnChoice, WrittenTape
from holdfast_simulator.swarm import Swarm
from tests.builders import Machine, call, machine, wait_for, without_claims_of_senders

#: The wake of the event comes again after 5 s, to a worker of the release before: that does not
#: know the task, and deletes the message.
OLD_TWIN: list[DrawnChoice] = [
    ("receive", 1, "delivered again"),
    ("again", 0, 1),
    ("invocation", 2, "old"),
]
WORKFLOWS = Path(__file__).parents[2] / "statemachines"
PAID = {"after_seconds": 10, "event": "paid", "key": "k1", "data": 1, "id": "e1"}
WORK = {"work": [{"output": 1, "seconds": 20}]}
NAP = {"Type": "Wait", "Seconds": 40, "End": True}
FEW_RECEIVES = 2


def deployed(flow: Machine, **more: Any) -> Deployed:
    given = {"name": "two hands", "about": "", "machines": {"main": flow}}
    return Deployed(scenarios.read({**given, **more}))


def violations(
    played: Deployed, tape: list[DrawnChoice], receives_max: int = 30
) -> tuple[Violation, ...]:
    days = 400 * 86_400_000
    swarm = Swarm(safety_ms=days, ends_with_tape=True, receives_max=receives_max)
    return play(played, swarm, WrittenTape(tape)).violations


def require_clean(played: Deployed, choices: Iterable[DrawnChoice], receives_max: int = 30) -> None:
    tape = list(choices)
    assert violations(played, tape, receives_max) == (), tape


def excuse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Orphans, "failed", lambda *_: None)


def one_lane(work: dict[str, Machine]) -> Machine:
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    states = {"nap": {"Type": "Wait", "Seconds": 1, "Next": next(iter(work))}, **work}
    processor = {"ProcessorConfig": config, "StartAt": "nap", "States": states}
    return machine({"all": {"Type": "Map", "Items": [1], "ItemProcessor": processor, "End": True}})


@pytest.mark.parametrize("fault", ["killed before", "throttled"])
def test_commands_written_beside_a_concurrent_delivery_are_carried_out_without_the_message(
    fault: str,
) -> None:
    states = {"a": wait_for("paid", "work"), "work": call("work", "nap"), "nap": NAP}
    played = deployed(machine(states), events=[PAID], tasks=WORK)
    for effect in range(12, 51):
        require_clean(played, [*OLD_TWIN, ("effect", effect, fault)])


@pytest.mark.parametrize("fault", ["killed before", "killed after", "throttled"])
def test_a_lease_without_a_message_lasts_until_its_time_out_and_no_longer(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start came again to a worker of the release before, which deleted the message."""
    flow = machine({"work": call("work", "long"), "long": call("long", TimeoutSeconds=840)})
    played = deployed(
        flow, tasks={name: [{"output": 1, "seconds": 1}] for name in ("work", "long")}
    )
    twins: list[DrawnChoice] = [
        ("receive", 0, "delivered again"),
        ("slow", 0, 3),
        ("invocation", 1, "old"),
    ]
    tapes: list[list[DrawnChoice]] = [
        [*twins, ("effect", slow, "slow"), ("effect", effect, fault)]
        for slow in (5, 7)
        for effect in range(15, 21)
    ]
    for tape in tapes:
        require_clean(played, tape)
    excuse_nothing(monkeypatch)
    assert any(violations(played, tape) for tape in tapes), "the case is not met any more"


def test_a_worker_that_can_no_longer_hide_its_message_has_a_successor_in_time() -> None:
    """No worker crashes: the function's time is over in the middle of the next task."""
    states = {"a": wait_for("paid", "work"), "work": call("work", "long"), "long": call("long")}
    tasks = {**WORK, "long": [{"output": 1, "seconds": 150}]}
    require_clean(deployed(machine(states), events=[PAID], tasks=tasks), OLD_TWIN)


def test_the_sweeper_finds_an_execution_whose_message_an_earlier_delivery_deleted() -> None:
    """The first worker froze before its last effect, and has not read the second one's record."""
    lanes = [
        {"StartAt": "a", "States": {"a": wait_for("paid", "nap"), "nap": {**NAP, "Seconds": 300}}},
        {
            "StartAt": "b",
            "States": {
                "b": {"Type": "Wait", "Seconds": 15, "Next": "late"},
                "late": {**NAP, "Seconds": 60},
            },
        },
    ]
    both = {"Type": "Parallel", "Branches": lanes, "End": True}
    go = {"after_seconds": 5, "event": "go", "key": "k1", "data": 1, "id": "e0"}
    flow = machine({"go": wait_for("go", "both"), "both": both})
    played = deployed(flow, events=[go, PAID])
    twins: list[DrawnChoice] = [
        ("receive", 2, "delivered again"),
        ("again", 0, 0),
        ("effect", 28, "frozen before"),
        ("freeze", 0, 1),
        ("message", 3, "late"),
        ("late", 0, 3),
    ]
    for effect in range(29, 61):
        require_clean(played, [*twins, ("effect", effect, "throttled")])


def test_the_sweeper_checks_a_record_after_the_time_of_its_writer() -> None:
    paid = {**PAID, "after_seconds": 400}
    tasks = {"work": [{"output": 1, "seconds": 100}]}
    flow = machine({"work": call("work", "a"), "a": wait_for("paid")})
    played = deployed(flow, events=[paid], tasks=tasks)
    twins: list[DrawnChoice] = [
        ("receive", 0, "delivered again"),
        ("again", 0, 2),
        ("invocation", 1, "old"),
    ]
    for effect in range(4, 31):
        require_clean(played, [*twins, ("effect", effect, "throttled")])


@pytest.mark.parametrize("fault", ["killed before", "throttled"])
def test_a_second_start_does_not_complete_an_unpublished_end(fault: str) -> None:
    twins: list[DrawnChoice] = [
        ("effect", 7, "sent twice"),
        ("message", 2, "late"),
        ("late", 0, 3),
        ("receive", 2, "delivered again"),
        ("again", 0, 1),
        ("invocation", 3, "old"),
    ]
    played = deployed(one_lane({"work": call("work")}), tasks=WORK)
    for effect in range(15, 36):
        require_clean(played, [*twins, ("effect", effect, fault)])


def test_a_message_deleted_before_its_other_hand_wrote_is_as_good_as_vanished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No wait is registered when the event comes, and the second start finds the event. The first
    one finds all of that done, and deletes the message; the second one is throttled.
    """
    # The schedule numbers its effects: events were not claimed then.
    without_claims_of_senders(monkeypatch)
    monkeypatch.setattr(event_claims, "claims_of", lambda *_: {})
    signing = "document_signing 3"
    (played,) = [one for one in levels.programs(WORKFLOWS) if one.scenario.name == signing]
    tape: list[DrawnChoice] = [
        ("effect", 3, "sent twice"),
        ("effect", 13, "throttled"),
        ("effect", 14, "throttled"),
        ("effect", 17, "slow"),
        ("effect", 19, "not done"),
        ("effect", 20, "frozen before"),
        ("freeze", 0, 3),
        ("receive", 3, "duplicated"),
        ("effect", 24, "slow"),
        ("slow", 1, 3),
        ("effect", 26, "slow"),
        ("effect", 33, "frozen before"),
        ("freeze", 1, 3),
    ]
    swarm = Swarm(
        safety_ms=2_865_762,
        batch_size=1,
        receives_max=30,
        latency_ms=20,
        callers=1,
        stop_percent=30,
        takes_stale_receipts=True,
    )
    assert play(played, swarm, WrittenTape(tape)).violations == ()
    excuse_nothing(monkeypatch)
    assert play(played, swarm, WrittenTape(tape)).violations, "the case is not met any more"


# -- in the hands of the dead, one after another ---------------------------------------------------


def talkative(count: int) -> tuple[dict[str, Machine], dict[str, Any]]:
    """Return a sequence of tasks with results large enough to cause snapshots."""
    draws = Random(1)
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH"
    said = ["".join(draws.choices(letters, k=9_000 if n < 4 else 100)) for n in range(count)]
    states = {f"t{n}": call(f"t{n}", f"t{n + 1}" if n + 1 < count else None) for n in range(count)}
    return states, {f"t{n}": [{"output": text, "seconds": 1}] for n, text in enumerate(said)}


def test_a_replaced_dead_letter_keeps_the_attempts_that_it_began() -> None:
    """By then records of others hide the beginning, of which the bus has no event."""
    states, tasks = talkative(14)
    played = deployed(one_lane(states), tasks=tasks)
    for second in range(46, 61):
        both: list[DrawnChoice] = [
            ("effect", 13, "killed before"),
            ("effect", second, "killed before"),
        ]
        require_clean(played, both, FEW_RECEIVES)


def test_the_replacement_of_a_dead_letter_wakes_the_retry_that_was_asked_for_under_it() -> None:
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 700}
    states, tasks = talkative(14)
    fails = [{"error": "E", "seconds": 1}, {"output": 1, "seconds": 1}]
    lanes = [
        {"StartAt": "a", "States": {"a": wait_for("paid", "f"), "f": call("f", Retry=[retry])}},
        {"StartAt": "b", "States": {"b": wait_for("signed", "t0"), **states}},
    ]
    both = {"Type": "Parallel", "Branches": lanes, "End": True}
    signed = {**PAID, "after_seconds": 20, "event": "signed", "id": "e2"}
    played = deployed(machine({"both": both}), events=[PAID, signed], tasks={**tasks, "f": fails})
    for second in range(73, 83):
        deaths: list[DrawnChoice] = [
            ("effect", 23, "killed before"),
            ("effect", second, "killed before"),
        ]
        require_clean(played, deaths, FEW_RECEIVES)


def test_the_replacement_of_a_dead_letter_knows_that_the_attempt_was_handed_on() -> None:
    """Otherwise it would wait for the end of a lease of a quarter of an hour, and then for a check
    an hour later.
    """
    states = {"a": wait_for("paid", "first"), "first": call("first", "long")}
    long = call("long", TimeoutSeconds=840)
    tasks = {"first": [{"output": 1, "seconds": 70}], "long": [{"output": 2}]}
    played = deployed(machine({**states, "long": long}), events=[PAID], tasks=tasks)
    for effect in range(21, 37):
        for later in range(effect + 1, effect + 8):
            deaths: list[DrawnChoice] = [
                ("effect", one, "killed before") for one in (effect, later)
            ]
            require_clean(played, deaths, FEW_RECEIVES)
