"""The list of invariants: whole, and none of them hides what another one has found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.sim import invariants, levels
from holdfast.sim.runner import play
from holdfast.sim.swarm import QUIET
from holdfast.sim.tape import WrittenTape


def test_the_invariants_are_numbered_from_1_to_20() -> None:
    assert [one.number for one in invariants.ALL] == [f"I{n}" for n in range(1, 21)]


def test_a_check_that_is_at_a_loss_has_found_something_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_at_a_loss(case: Any) -> Any:
        yield "what it had found by then"
        raise KeyError("entry")

    first, second, *others = invariants.ALL
    planted = replace(second, check=lambda _: iter(["what comes after it"]))
    listed = (replace(first, check=is_at_a_loss), planted, *others)
    monkeypatch.setattr(invariants, "ALL", listed)

    result = play(levels.programs(None)[0], QUIET, WrittenTape(()))

    assert [(one.invariant, one.text) for one in result.violations] == [
        ("I1", "what it had found by then"),
        ("I1", "it cannot be told, for KeyError('entry')"),
        ("I2", "what comes after it"),
    ]
