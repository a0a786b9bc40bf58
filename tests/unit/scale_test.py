"""What a rate of starts does to each partition: docs/explanation/scale.md says what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale
from holdfast import limits
from holdfast.runtime import listing

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "scale.md").read_text()


@pytest.mark.parametrize("name", scale.WORKLOADS)
def test_the_page_has_what_is_counted(name: str) -> None:
    load = scale.measure(scale.WORKLOADS[name])
    for row in scale.report(name, load):
        assert row in PAGE
    shards = {
        "mail: due rows": limits.DUE_SHARDS,
        "mail: rows of starts": limits.STARTS_DUE_SHARDS,
        **{f"list: {group}": count for group, count in listing.SHARDS.items()},
    }
    for kind in load.hottest(1):
        assert len(load.partitions[kind]) == shards[kind]
        assert load.hottest(1_000)[kind] <= 500
