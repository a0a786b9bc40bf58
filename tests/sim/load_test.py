"""A stack that takes 10,000 starts a second, by slices (`holdfast_simulator/load.py`)."""

from __future__ import annotations

import pytest

from benchmarks import load
from holdfast.core.run_ids import spread_of
from holdfast_simulator.flow import START_MS
from holdfast_simulator.load import LoadWorld, Slice

#: Promise 4: a timer that is longer than 15 minutes is late by at most this.
LATE_MS_MAX = 120_000


def require_ended_in_time(world: LoadWorld) -> None:
    assert (world.open_runs(), world.errors) == ([], [])
    late = load.late_ms(world)
    assert len(late) == len(world.works)
    assert min(late) >= 0
    assert max(late) <= LATE_MS_MAX


def test_a_partition_of_a_stack_with_ten_thousand_starts_a_second_throttles_no_request() -> None:
    part = Slice(load.RATE, load.SPREAD, slices=128)
    world = load.played(part, seconds=4)

    assert len(world.works) == 312
    assert {spread_of(run) for run in world.works} == {load.SPREAD}
    require_ended_in_time(world)
    assert world.services.refused == {}
    assert all(row.peak <= 500 for row in load.rows_of(world).values())


def test_the_partitions_of_a_new_stack_do_not_take_so_many() -> None:
    """The simulated limits are felt: the same rate over the partitions of spread 0."""
    world = LoadWorld(load.THREE_DAYS, Slice(load.RATE, spread=0, slices=16), seed=1)
    world.start_for(1)
    world.run(START_MS + 3_000)

    assert world.services.refused["~due#0"] > 0
    assert world.services.busiest("~due#0") == 1_000


@pytest.mark.slow
def test_no_partition_takes_more_than_500_units_in_any_second_of_a_steady_state() -> None:
    world = load.played(Slice(load.RATE, load.SPREAD, slices=32), load.SECONDS)

    assert len(world.works) == 18_750
    require_ended_in_time(world)
    assert world.services.refused == {}
    for row in load.rows_of(world).values():
        assert row.mean <= 320
        assert row.peak <= 500
