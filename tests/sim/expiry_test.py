"""TTL in the simulator: the deleted items, the times, and that a renewed log outlives its first
records.
"""

from __future__ import annotations

from types import MappingProxyType

from holdfast.runtime.effects import Get, Item, Put, Query
from holdfast_simulator.marks import Read, Seen
from holdfast_simulator.runner import Deployed, play
from holdfast_simulator.scenarios import corpus
from holdfast_simulator.schedule import DrawnTape
from holdfast_simulator.services import Services
from holdfast_simulator.swarm import drawn

NOW_SECONDS = 1_800_000_000
OLD: Item = MappingProxyType({"pk": "p", "sk": "old", "ttl": NOW_SECONDS - 1})
YOUNG: Item = MappingProxyType({"pk": "p", "sk": "young", "ttl": NOW_SECONDS})
EVER: Item = MappingProxyType({"pk": "p", "sk": "ever"})
SEEDS = 8


def test_expired_items_are_visible_only_to_invariants() -> None:
    services = Services(lambda: NOW_SECONDS * 1_000)
    for item in (YOUNG, OLD, EVER):
        services.perform(Put("mail", item))
    assert services.expired("mail") == [OLD]
    services.expire("mail", OLD)
    assert services.perform(Get("mail", "p", "old")) is None
    assert services.perform(Query("mail", "p")) == [EVER, YOUNG]
    assert services.items("mail") == [EVER, OLD, YOUNG]


def test_a_log_that_is_renewed_among_faults_outlives_its_first_record() -> None:
    (scenario,) = [one for one in corpus() if one.name == "ninety-three days"]
    deployed = Deployed(scenario)
    results = [play(deployed, drawn(seed), DrawnTape(seed)) for seed in range(SEEDS)]
    assert [result.violations for result in results] == [()] * SEEDS
    assert {status for result in results for status in result.statuses} == {"SUCCEEDED"}
    for mark in (Read.RENEWED, Seen.EXPIRED):
        assert all(mark in result.marks for result in results)
    assert any(result.choices for result in results)
