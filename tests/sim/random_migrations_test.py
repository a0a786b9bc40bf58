"""Migrations between generated versions, with crashes, that race with the events of the execution.

Each execution moves whole or not at all. From where it has moved, it ends as the new program does
with the values of the old one; else as the old program does. `migration_pairs` reads both programs
without the compiler and the engine.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from random import Random

import pytest

from holdfast.errors import RequestError, WorkflowError
from holdfast.runtime.effects import Effect
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE
from tests.sim.migration_pairs import Maker, sent
from tests.sim.migration_test import work
from tests.unit.migration_kit import WHY, TwoVersions, compiled
from tests.unit.pausing_test import settle

#: A crashed worker is followed within this time, by the sweeper if not before.
_RECOVERED_SECONDS = 8 * 3_600
_EVENTS_MAX = 40


class Crashing:
    """Crashes around one effect in forty, while `is_armed`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.is_armed = False

    def __call__(self, _world: SimulatorWorld, _effect: Effect, _when: When) -> None:
        if self.is_armed and self._random.random() < 1 / 40:
            raise Killed


def play(folder: Path, seed: int) -> str:
    """Run one execution, and return what became of the migration."""
    random = Random(seed)
    maker = Maker(random)
    old = maker.program()
    new = maker.edited(old)
    try:
        first, second = (compiled(folder, one.source(), header="") for one in (old, new))
    except WorkflowError as refused:
        assert refused.code == "HF140", refused  # the edits have removed what a hint names
        return "no hint"
    if first.definition_hash == second.definition_hash:
        return "same"
    start = random.randrange(20)
    expected, _, waits = old.run({"v0": start}, None)
    if not waits:
        return "no wait"
    place = random.randrange(len(waits))
    crashing = Crashing(Random(seed))
    shop = TwoVersions(first, second, work, crashing)
    run = shop.begun({"v0": start})
    crashing.is_armed = True
    for number in waits[:place]:
        _send(shop, number)
        settle(shop, _RECOVERED_SECONDS)
    shop.deploy()
    # The event may come before, with, or after the request.
    acts = [partial(_migrate, shop, run), partial(_send, shop, waits[place])]
    random.shuffle(acts)
    told = [act() for act in acts]
    settle(shop, _RECOVERED_SECONDS)
    moved = _waits_before_move(shop, run)
    if moved is None:
        later = waits[place + 1 :]
    else:
        env = {"v0": start}
        assert old.until(waits[moved], env), seed
        carried = {dict(new.renamed).get(name, name): value for name, value in env.items()}
        expected, _, later = new.run(carried, waits[moved])
        assert moved == place, seed  # the request was made for this wait
    for number in later:
        _send(shop, number)
        settle(shop, _RECOVERED_SECONDS)
    crashing.is_armed = False
    settle(shop, _RECOVERED_SECONDS)
    shown = shop.describe(run)
    assert check(shop.world) == [] == lost(shop.world), seed
    assert shop.world.faults == [], seed
    if shown.get("error") == "Holdfast.WorkerLost":
        return "crashed"  # more often than an attempt is taken over
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", expected), seed
    return "moved" if moved is not None else next(one for one in told if one)


def _migrate(shop: TwoVersions, run: str) -> str:
    try:
        told = shop.insist(partial(shop.front.migrate, "default", run, WHY, CHANCE))
    except RequestError as error:
        assert error.code == "HF541", error
        return "refused"
    return "void" if told["moves"] else "there"


def _send(shop: TwoVersions, number: int) -> str:
    """Send the event with both keys, as the programs may wait for either."""
    for key in ("k1", "k2"):
        request = {"name": f"e{number}", "key": key, "data": sent(number), "id": f"e{number}"}
        try:
            shop.insist(partial(shop.front.event, "default", request, b"01234567"))
        except RequestError as error:
            assert error.code == "HF206", error  # no version that is deployed has such an event
    return ""


def _waits_before_move(shop: TwoVersions, run: str) -> int | None:
    """Return how many events the execution had taken when it moved; None when it has not moved."""
    taken = 0
    for event in shop.events(run):
        if event.type == "Migrated":
            return taken
        taken += event.type == "TaskSucceeded" and "event" in event.holdfast
    return None


def play_all(folder: Path, seeds: range) -> Counter[str]:
    done: Counter[str] = Counter()
    for seed in seeds:
        print(f"seed {seed}")
        done[play(folder, seed)] += 1
    print(done)
    return done


def test_executions_that_crash_move_whole_or_not_at_all(tmp_path: Path) -> None:
    done = play_all(tmp_path, range(20))
    assert done["moved"] >= 2 and done["void"] >= 1 and done["refused"] >= 2


@pytest.mark.slow
def test_many_executions_that_crash_move_whole_or_not_at_all(tmp_path: Path) -> None:
    done = play_all(tmp_path, range(1_000, 1_400))
    assert done["moved"] >= 60
