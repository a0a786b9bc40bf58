"""Drawn requests near the deadlines of the blocks that receive them, with faults: a request that an
execution has received is replied to, and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from holdfast import ReplyTimeout
from holdfast.core.state import CancelReason, Frame
from tests.sim import deadline_flows
from tests.sim.random_talks_test import KEYS, RandomTalk

_HOUR_MS = 3_600_000
#: Around the 30 seconds of a block. A deadline takes effect a second after its time.
_PAUSES_MS = [1, 10, 900, 15_000, 29_000, 29_950, 30_000, 30_050, 30_990, 31_000, 31_010, 31_500]


class Orders(RandomTalk):
    """Numbers for `desk`, which returns their sum and the number of its late rounds."""

    def data(self) -> dict[str, int]:
        return {"number": self.draw.randint(1, 9)}

    def say(self, name: str, key: str, data: Any) -> None:
        self.client.request("desk", key, data, id=name, timeout=0)

    def _messages(self) -> Iterator[tuple[str, str, Any]]:
        world = self.stack.world
        for number in range(self.draw.randint(6, 16)):
            message = f"m{number:02d}", self.draw.choice(KEYS), self.data()
            self.said.append(message)
            yield message
            pause_ms = self.draw.choice(_PAUSES_MS)
            world.run(until_ms=world.now_ms + pause_ms)
        world.run(until_ms=world.now_ms + _HOUR_MS)
        self.faults.is_over = True
        world.run(until_ms=world.now_ms + 2 * _HOUR_MS)

    def check(self) -> None:
        """The numbers of the requests add up to the results of the executions. Each round has
        either a reply or a time-out.
        """
        rows = [self.client.describe(row["execution"]) for row in self.client.list()]
        assert {row["status"] for row in rows} == {"SUCCEEDED"}
        said = sum(data["number"] for _, _, data in self.said)
        assert sum(row["output"] % 1_000 for row in rows) == said
        late = sum(row["output"] // 1_000 for row in rows)
        assert late + len(self.said) == deadline_flows.ROUNDS * len(rows)
        for key in KEYS:
            total = 0
            for name, data in self.of(key):
                total = self._check_reply(name, data["number"], total)

    def _check_reply(self, name: str, number: int, total: int) -> int:
        try:
            reply: Any = self.client.reply(name, 0)
        except ReplyTimeout:
            raise AssertionError(f"{name} was received, and has no reply") from None
        assert reply % 1_000 in {number, total + number}
        return int(reply % 1_000)


def talk(seed: int) -> None:
    orders = Orders(seed, deadline_flows.__name__)
    orders.run()
    print(f"seed {seed}: {orders.said} {dict(orders.faults.had)}")
    orders.check()


@pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(4, 300), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_a_request_near_a_deadline_is_replied_to_and_counts(seeds: range) -> None:
    for seed in seeds:
        talk(seed)


def _never(*_arguments: object) -> bool:
    return False


def _all(_decision: object, frame: Frame, _name: object) -> CancelReason | None:
    """No block is left in time."""
    return frame.cancelled


@pytest.mark.parametrize(("place", "bug"), [("_is_plain", _never), ("_after_blocks", _all)])
def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch, place: str, bug: Any) -> None:
    monkeypatch.setattr(f"holdfast.core.cancelling.{place}", bug)
    assert any(_fails(partial(talk, seed)) for seed in range(40))


def _fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False
