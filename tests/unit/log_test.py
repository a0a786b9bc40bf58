"""Loading a log with whatever hint, and appending to it with doubt and rivals about."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest

from holdfast.asl.parsing.parse import parse_definition
from holdfast.core.advance import Transition, advance
from holdfast.core.facts import DecisionInputs, Started, StopRequested, Succeeded
from holdfast.core.state import Attempt
from holdfast.cost import item_bytes
from holdfast.errors import HoldfastBug, NewerFormatError, ServiceFault
from holdfast.limits import RECORD_AGING_SECONDS, RECORD_RETENTION_SECONDS, SNAPSHOT_BYTES_MIN
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Delete, Doubt, Effect, Item, Put, PutIfAbsent, Query
from holdfast.runtime.messages import Hint
from holdfast.runtime.storage import log as log_module
from holdfast.runtime.storage.formats import FORMATS
from holdfast.runtime.storage.histories import records_of
from holdfast.runtime.storage.log import DOUBTS_MAX, Log, draw
from holdfast_simulator.services import Services
from tests.builders import call, machine
from tests.unit.core_kit import START_MS, claim

PROGRAM = parse_definition(
    machine(
        {
            "work": call("work", "again?", Assign={"n": "{% $states.result %}"}),
            "again?": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $n >= 0 %}", "Next": "work"}],
                "Default": "done",
            },
            "done": {"Type": "Succeed"},
        }
    )
)
MOMENT = DecisionInputs(START_MS, lambda: 0.5, claim, clock_error_ms=0)


def services() -> Services:
    return Services(lambda: START_MS)


def new_log(owner: str = "w1") -> Log:
    return Log("default", "r1", owner, "m1")


def started(text: Any = "x" * 900) -> Transition:
    fact = Started("r1", None, "flow", {"text": text}, START_MS)
    return advance(PROGRAM, None, [fact], MOMENT)


def next_step(log: Log, output: Any = 1) -> Transition:
    assert log.state is not None
    waiting = log.state.frames[""].waiting
    assert isinstance(waiting, Attempt)
    fact = Succeeded(waiting.entry, waiting.attempt, output)
    return advance(PROGRAM, log.state, [fact], MOMENT)


def commit(world: Services, log: Log, step: Transition, *, is_aging: bool = False) -> bool:
    """`is_aging`: the oldest record that is needed is old, so this one gets a snapshot."""
    if is_aging:
        log.base_ms = START_MS - 2 * RECORD_AGING_SECONDS * 1_000
    return bool(run(log.commit(step, START_MS, {}), world.perform))


def written(records: int, snapshots: tuple[int, ...] = ()) -> tuple[Services, Log]:
    world, log = services(), new_log()
    commit(world, log, started())
    for number in range(1, records):
        step = next_step(log, number)
        commit(world, log, step, is_aging=number in snapshots)
    return world, log


def load(world: Services, hint: Hint | None = None) -> Log:
    log = new_log("w2")
    run(log.load(hint), world.perform)
    return log


# -- loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshots", [(), (3,), (19,), (2, 11)])
@pytest.mark.parametrize(
    "hint", [None, *[Hint(at, snap) for at in (-1, 0, 5, 19, 90) for snap in (-1, 0, 4, 19)]]
)
def test_a_hint_may_be_wrong_in_any_way(snapshots: tuple[int, ...], hint: Hint | None) -> None:
    world, log = written(20, snapshots)
    found = load(world, hint)

    assert found.state == log.state
    assert found.hint == log.hint == Hint(19, max(snapshots, default=-1))


def test_older_records_are_read_as_far_back_as_was_asked_for() -> None:
    world, _ = written(20, snapshots=(19,))
    log = load(world)
    first = log.records[0].sequence
    assert first > 0

    run(log.read_back(START_MS + 10_000), world.perform)
    assert log.records[0].sequence == first
    run(log.read_back(0), world.perform)
    assert [record.sequence for record in log.records] == list(range(20))


def test_older_records_are_read_back_no_further_than_is_bearable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "READ_BACK_QUERIES_MAX", 0)
    world, _ = written(20, snapshots=(19,))
    log = load(world)
    run(log.read_back(0), world.perform)
    assert log.may_reach_beyond(0)


def test_older_records_that_ttl_has_taken_are_not_read_back() -> None:
    world, _ = written(20, snapshots=(19,))
    log = load(world)
    first = log.records[0].sequence
    for sequence in range(first):
        world.perform(Delete("executions", log.partition, sequence))
    run(log.read_back(0), world.perform)
    assert log.records[0].sequence == first


def test_a_loaded_log_continues_as_the_written_one() -> None:
    world, log = written(12, snapshots=(7,))
    found = load(world)
    assert commit(world, found, next_step(found, "more"))

    assert load(world).state == found.state
    assert not commit(world, log, next_step(log, "other"))


def test_a_load_with_a_true_hint_is_one_query() -> None:
    world, log = written(20, snapshots=(3,))
    before = world.effects["Query"]
    load(world, log.hint)

    assert world.effects["Query"] - before == 1


def test_a_log_that_is_not_there_has_no_state() -> None:
    assert load(services()).state is None


def test_a_load_replaces_the_earlier_state() -> None:
    log = written(3)[1]
    run(log.load(), services().perform)

    assert (log.state, log.sequence, log.snapshot, tuple(log.records)) == (None, -1, -1, ())


def test_a_record_of_a_newer_format_stops_the_load() -> None:
    world, _ = written(3)
    newest = world.items("executions")[-1]
    world.perform(Put("executions", {**newest, "f": FORMATS.newest + 1}))

    with pytest.raises(NewerFormatError):
        load(world)


@pytest.mark.parametrize("attribute", ["sn", "at", "ev", "w"])
def test_a_record_that_lacks_something_stops_the_load(attribute: str) -> None:
    world, _ = written(3)
    newest = world.items("executions")[-1]
    torn = {key: value for key, value in newest.items() if key != attribute}
    world.perform(Put("executions", torn))

    with pytest.raises(HoldfastBug):
        load(world)


# -- snapshots -------------------------------------------------------------------------------------


def test_a_snapshot_is_written_when_the_log_has_outgrown_it_fourfold() -> None:
    world, log = written(400)
    records = world.items("executions")
    first, second, *others = [int(item["sk"]) for item in records if "so" in item]

    assert sum(map(item_bytes, records[first + 1 : second])) >= SNAPSHOT_BYTES_MIN / 2
    assert log.snapshot == others[-1]
    assert load(world).state == log.state


def test_records_that_others_have_written_count_towards_the_next_snapshot() -> None:
    """Most wakes load a log and write one record."""
    world, _ = written(1)
    while sum(map(item_bytes, world.items("executions"))) < 2 * SNAPSHOT_BYTES_MIN:
        log = load(world)
        commit(world, log, next_step(log))

    assert load(world).snapshot > 0


@pytest.mark.parametrize(("texts", "records"), [(1, 20), (6, 60)])
def test_a_snapshot_that_would_not_pay_is_not_written(texts: int, records: int) -> None:
    """Sixteen kilobytes of log are reached long before four times the state, which may be so large
    that it would go to a blob."""
    chance = random.Random(1)
    text = ["".join(chance.choices(string.ascii_letters, k=14_000)) for _ in range(texts)]
    world, log = services(), new_log()
    commit(world, log, started(text))
    for number in range(records):
        commit(world, log, next_step(log, number))
    grown = sum(map(item_bytes, world.items("executions")))

    assert grown > SNAPSHOT_BYTES_MIN
    assert log.snapshot == -1
    assert load(world).state == log.state


def test_values_in_blobs_are_fetched_with_the_log_that_names_them() -> None:
    text = "".join(random.Random(1).choices(string.ascii_letters, k=60_000))
    world, log = services(), new_log()
    commit(world, log, started(text))
    commit(world, log, next_step(log))

    assert len(world.blobs()) == 1
    assert load(world).state == log.state


def test_records_outlive_their_retention_only() -> None:
    world, _ = written(1)

    assert world.items("executions")[0]["ttl"] == START_MS // 1_000 + RECORD_RETENTION_SECONDS


@pytest.mark.parametrize(
    ("seconds", "has_snapshot"), [(0, False), (86_400, False), (86_401, True), (3_900_000, True)]
)
def test_an_end_further_from_what_it_needs_than_a_day_stands_alone(
    seconds: int, has_snapshot: bool
) -> None:
    """The records before it are deleted first, and the log must be read, and its events shown,
    without them.
    """
    world, log = written(1)
    stop = advance(PROGRAM, log.state, [StopRequested("1", "Gone", "x" * 900)], MOMENT)
    assert run(log.commit(stop, START_MS + seconds * 1_000, {}), world.perform)
    end = world.items("executions")[-1]
    assert ("so" in end) == has_snapshot
    if has_snapshot:
        world.perform(Delete("executions", str(end["pk"]), 0))

    assert load(world).state == log.state
    items = [item for item in world.items("executions") if item["sk"] == 1]
    records = run(records_of("default", "r1", items), world.perform) if has_snapshot else []
    assert [record.events for record in records] == [stop.events] * has_snapshot


# -- doubt and rivals ------------------------------------------------------------------------------


class Doubtful:
    """Services that lose the answer to the first puts, having done them or not."""

    def __init__(self, world: Services, times: int, *, is_stored: bool) -> None:
        self.world, self.times, self.is_stored = world, times, is_stored
        self.sent: list[Item] = []

    def __call__(self, effect: Effect) -> Any:
        if not isinstance(effect, PutIfAbsent):
            return self.world.perform(effect)
        self.sent.append(effect.item)
        if len(self.sent) > self.times:
            return self.world.perform(effect)
        if self.is_stored:
            self.world.perform(effect)
        raise Doubt("no answer")


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_write_in_doubt_ends_as_one_record(is_stored: bool) -> None:
    world, log = written(1)
    doubtful = Doubtful(world, 1, is_stored=is_stored)

    assert run(log.commit(next_step(log), START_MS, {}), doubtful)
    assert all(item == doubtful.sent[0] for item in doubtful.sent)
    assert len(world.items("executions")) == 2
    assert load(world).state == log.state


def test_a_write_that_stays_in_doubt_is_given_up_and_changes_nothing_in_hand() -> None:
    world, log = written(1)
    before = log.state

    with pytest.raises(ServiceFault):
        run(log.commit(next_step(log), START_MS, {}), Doubtful(world, 99, is_stored=False))
    assert log.state is before
    assert len(world.items("executions")) == 1


def test_the_bytes_are_sent_again_only_a_few_times() -> None:
    world, log = written(1)
    doubtful = Doubtful(world, 99, is_stored=False)
    with pytest.raises(Doubt):
        run(log.commit(next_step(log), START_MS, {}), doubtful)

    assert len(doubtful.sent) == DOUBTS_MAX


def test_a_write_in_doubt_that_a_rival_has_overtaken_is_lost() -> None:
    world, log = written(1)
    rival = load(world)
    assert commit(world, rival, next_step(rival, 2))

    assert not run(log.commit(next_step(log), START_MS, {}), Doubtful(world, 1, is_stored=False))


def test_the_loser_of_a_race_reloads_and_continues_behind_it() -> None:
    world, log = written(2)
    rival = load(world)
    assert commit(world, rival, next_step(rival, 2))
    assert not commit(world, log, next_step(log, 3))
    run(log.load(), world.perform)

    assert log.state == rival.state
    assert commit(world, log, next_step(log, 3))
    assert [record.nonce.partition(".")[0] for record in load(world).records] == [
        *["w1"] * 2,
        "w2",
        "w1",
    ]


def test_new_bytes_get_a_new_nonce() -> None:
    world, log = written(1)
    sent: list[Item] = []

    def fails(effect: Effect) -> Any:
        if isinstance(effect, PutIfAbsent):
            sent.append(effect.item)
            raise ServiceFault("HF310", "slow down")
        return world.perform(effect)

    for output in (1, 2):
        with pytest.raises(ServiceFault):
            run(log.commit(next_step(log, output), START_MS, {}), fails)

    assert sent[0]["w"] != sent[1]["w"]


def test_random_numbers_are_the_same_for_every_writer_of_the_record() -> None:
    drawn = [draw("r1", 3, number) for number in range(200)]

    assert drawn == [draw("r1", 3, number) for number in range(200)]
    assert len(set(drawn)) == 200
    assert all(0 <= value < 1 for value in drawn)
    assert draw("r1", 4, 0) != draw("r1", 3, 0) != draw("r2", 3, 0)


def test_a_load_asks_for_no_more_than_it_needs() -> None:
    world, log = written(30, snapshots=(27,))
    asked: list[Query] = []

    def perform(effect: Effect) -> Any:
        if isinstance(effect, Query):
            asked.append(effect)
        return world.perform(effect)

    run(new_log("w2").load(log.hint), perform)

    assert [query.limit for query in asked] == [29 - 27 + 3]
