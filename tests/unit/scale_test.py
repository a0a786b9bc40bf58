"""What a rate of starts does to each partition: docs/explanation/scale.md says what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale
from holdfast.core.run_ids import SPREAD_MAX
from holdfast.runtime.storage.spread import DUE, LIST_OPEN, STARTS_PER_SECOND

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "scale.md").read_text()


@pytest.mark.parametrize("name", scale.WORKLOADS)
def test_the_page_has_what_is_counted(name: str) -> None:
    load = scale.measure(scale.WORKLOADS[name])
    for row in scale.report(name, load):
        assert row in PAGE
    for kind in load.hottest(1):
        assert len(load.partitions[kind]) == scale.SHARDS[kind].count(0)
        for spread in range(SPREAD_MAX + 1):
            assert load.hottest(STARTS_PER_SECOND << spread)[kind] <= 500


def test_a_shard_of_the_list_has_its_watchdog_rows_in_partitions_of_its_own() -> None:
    """The doctor reads both together. With any other numbers it would miss executions."""
    for spread in range(SPREAD_MAX + 1):
        assert DUE.count(spread) % LIST_OPEN.count(spread) == 0
