"""The list of invariants: complete, and none of them hides another's violation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.runtime.effects import Effect, Query
from holdfast.runtime.storage import keys
from holdfast_simulator import invariants, levels
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.invariants.heard import unheard
from holdfast_simulator.runner import play
from holdfast_simulator.schedule import WrittenTape
from holdfast_simulator.swarm import QUIET
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When
from tests.builders import Shop, machine, wait_for


def test_the_invariants_are_numbered_from_1_to_26() -> None:
    assert [one.number for one in invariants.ALL] == [f"I{n}" for n in range(1, 27)]


def test_a_crash_of_one_invariant_is_a_finding_and_the_others_continue(
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


def test_an_event_is_unheard_for_as_long_as_there_is_a_wait_for_it() -> None:
    """The event may be much older than its wait, and may have been used for another one."""

    def kill(_: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Query) and effect.begins_with == keys.EVENT_PREFIX:
            raise Killed

    nap = {"Type": "Wait", "Seconds": 600, "Next": "paid"}
    shop = Shop(machine({"nap": nap, "paid": wait_for("paid")}), hook=kill)
    run = shop.start()
    shop.send_event()
    shop.world.run(until_ms=START_MS + 610_000)
    evidence = Evidence(levels.programs(None)[0].scenario, QUIET, shop.world.services)
    stored = keys.event("default", "paid", "k1"), f"{keys.EVENT_PREFIX}e1"
    evidence.stored[stored] = START_MS
    found = [
        list(unheard(evidence, shop.history(run), START_MS + seconds * 1_000))
        for seconds in (590, 605)
    ]

    assert found == [[], [f"{run}: the event e1 was not read"]]
