"""Results of lanes: they equal a dict, and the end of a lane costs the same at every number."""

from __future__ import annotations

import random

import pytest

from holdfast.core.results import Results
from tests.thorough import some


@pytest.mark.parametrize("seed", some(range(20)))
def test_results_equal_a_dict_and_earlier_results_do_not_change(seed: int) -> None:
    draws = random.Random(seed)
    results: Results[str] = Results()
    expected: dict[int, str] = {}
    earlier: list[tuple[Results[str], dict[int, str]]] = []
    for number in range(300):
        lane, result = draws.randrange(400), f"result {number}"
        results = results.with_result(lane, result)
        expected = {**expected, lane: result}
        earlier.append((results, expected))
    for found, wanted in earlier:
        assert found == wanted, f"seed {seed}"
        assert len(found) == len(wanted)
        assert sorted(found) == sorted(wanted)
        assert [lane in found for lane in range(400)] == [lane in wanted for lane in range(400)]
        assert Results(found.pairs) == found


def test_the_end_of_a_lane_keeps_the_pairs_of_the_others() -> None:
    results: Results[int] = Results([lane, lane] for lane in range(1_000))
    after = results.with_result(1_000, 1_000)
    same = [old is new for old, new in zip(results.pairs, after.pairs, strict=False)]
    assert len(same) == 1_000
    assert all(same)
