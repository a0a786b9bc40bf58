"""The records of a log, found by their message."""

from __future__ import annotations

import random

import pytest

from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.records import Records

MESSAGES = ("m0", "m1", "m2", "m3")


@pytest.mark.parametrize("seed", range(20))
def test_records_are_found_as_a_search_through_all_of_them_finds_them(seed: int) -> None:
    draws = random.Random(seed)
    found = Records()
    expected: list[Record] = []
    for sequence in range(200):
        record = Record(sequence, "w.1", draws.choice(MESSAGES), 0, ())
        found.extend([record])
        expected.append(record)
        if draws.random() < 0.1:
            oldest = draws.randrange(sequence + 2)
            found.forget_before(oldest)
            expected = [one for one in expected if one.sequence >= oldest]
        wanted = draws.sample(MESSAGES, draws.randrange(4))
        assert found.of_messages(wanted) == [one for one in expected if one.message in wanted], (
            f"seed {seed}"
        )
        assert list(found) == expected
        assert len(found) == len(expected)
    if expected:
        assert (found[0], found[-1]) == (expected[0], expected[-1])
