"""Drawn events and requests to keyed workflows, with faults: each is used once, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from holdfast import Client, RequestRejected
from tests.sim.talk_faults import Faults, faulty_stack, insist
from tests.thorough import some
from tests.unit import failure_flows, keyed_flows, request_flows

KEYS = ("a", "b")
_HOUR_MS = 3_600_000


@dataclass
class RandomTalk:
    """Messages to the executions of a few keys, in bursts and after pauses; some are sent twice."""

    seed: int
    module: str
    said: list[tuple[str, str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = Random(f"talk {self.seed}")  # repeatable, not secret
        self.faults = Faults(self.seed)
        self.stack = faulty_stack(self.module, self.faults)
        self.client = Client.of(self.stack.api)

    def run(self) -> None:
        for message in self._messages():
            insist(partial(self.say, *message))

    def _messages(self) -> Iterator[tuple[str, str, Any]]:
        """Draw `(id, key, data)`, and let time pass between them."""
        world = self.stack.world
        for number in range(self.draw.randint(4, 14)):
            message = f"m{number:02d}", self.draw.choice(KEYS), self.data()
            self.said.append(message)
            yield message
            if self.draw.random() < 0.2:
                yield self.draw.choice(self.said)
            pause_ms = self.draw.choice([1, 1, 1, 50, 1_000, 300_000])
            world.run(until_ms=world.now_ms + pause_ms)
            world.now_ms += pause_ms
        world.run(until_ms=world.now_ms + _HOUR_MS)
        self.faults.is_over = True
        world.run(until_ms=world.now_ms + 2 * _HOUR_MS)

    def data(self) -> Any:
        raise NotImplementedError

    def say(self, name: str, key: str, data: Any) -> None:
        raise NotImplementedError

    def of(self, key: str) -> list[tuple[str, Any]]:
        return [(name, data) for name, owner, data in self.said if owner == key]


class Events(RandomTalk):
    """Numbers for `account`: an execution adds them up, and ends at a 0."""

    def data(self) -> int:
        return self.draw.choice([0, 1, 2, 3, 4])

    def say(self, name: str, key: str, data: Any) -> None:
        self.client.event("move", key, data, id=name)

    def check(self) -> None:
        wanted: list[tuple[str, int]] = []
        for key in KEYS:
            total, is_open = 1, False
            for _, amount in self.of(key):
                total, is_open = total + amount, amount != 0
                if not is_open:
                    wanted.append(("SUCCEEDED", total))
                    total = 1
            wanted += [("RUNNING", 0)] * is_open
        rows = [self.client.describe(row["execution"]) for row in self.client.list()]
        found = [(row["status"], row.get("output", 0)) for row in rows]
        assert sorted(found) == sorted(wanted)


class Requests(RandomTalk):
    """Deposits and withdrawals for `account`, which ends with a balance of 1,000."""

    def data(self) -> dict[str, Any]:
        cents = self.draw.choice([100, 400, 700])
        if self.draw.random() < 0.6:
            return {"kind": "deposit", "cents": cents, "note": ""}
        return {"kind": "withdraw", "cents": cents}

    def say(self, name: str, key: str, data: Any) -> None:
        self.client.request("account", key, data, id=name, timeout=0)

    def check(self) -> None:
        for key in KEYS:
            balance = 0
            for name, data in self.of(key):
                if data["kind"] == "withdraw" and data["cents"] > balance:
                    assert self.reply(name) == "Overdrawn"
                    continue
                balance += data["cents"] * (1 if data["kind"] == "deposit" else -1)
                reply = balance if data["kind"] == "deposit" else {"left": balance, "id": name}
                assert self.reply(name) == reply
                balance = 0 if balance >= 1_000 else balance

    def reply(self, name: str) -> Any:
        try:
            return self.client.reply(name, 0)
        except RequestRejected as rejected:
            return rejected.error


class Asks(RandomTalk):
    """Workflows that each ask `counter` to add another power of two, and return its total."""

    def data(self) -> int:
        return 1 << len(self.said)

    def say(self, name: str, key: str, data: Any) -> None:
        self.client.start("adds", {"name": key, "amount": data}, name=name)

    def check(self) -> None:
        for key in KEYS:
            totals = {self.client.describe(name)["output"]: amount for name, amount in self.of(key)}
            assert len(totals) == len(self.of(key))
            before = 0
            for total, amount in sorted(totals.items()):
                assert total == before + amount
                before = total
            self.stack.works = True
            assert self.client.request("add", key, 0) == before


class Failures(RandomTalk):
    """Executions that succeed, fail, are stopped or are too late: a workflow is told of each end
    without success.
    """

    def data(self) -> str:
        return self.draw.choice(["works", "fails", "stopped", "late"])

    def say(self, name: str, key: str, data: Any) -> None:
        self.client.start("job", {"how": data}, name=name)
        if data == "stopped":
            self.client.stop(name, cause=key)

    def check(self) -> None:
        found = [self.client.describe(row["execution"]) for row in self.client.list()]
        jobs = {one["execution"]: one for one in found if one["workflow"] == "job"}
        ends = {"works": "SUCCEEDED", "fails": "FAILED", "stopped": "ABORTED", "late": "TIMED_OUT"}
        statuses = {one["name"]: one["status"] for one in jobs.values()}
        assert statuses == {name: ends[how] for name, _, how in self.said}
        told = [one["output"] for one in found if one["workflow"] == "on_failure"]
        failed = [one for one in jobs.values() if one["status"] != "SUCCEEDED"]
        assert sorted(one["execution"] for one in told) == sorted(
            one["execution"] for one in failed
        )
        for one in told:
            job = jobs[one["execution"]]
            assert one == {field: job.get(field) for field in one}


FLOWS = {Events: keyed_flows, Failures: failure_flows}


@pytest.mark.parametrize("kind", [Events, Requests, Asks, Failures])
@pytest.mark.parametrize(
    "seeds",
    [some(range(3)), pytest.param(range(3, 300), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_each_message_is_used_once_and_in_its_order(kind: type[Any], seeds: Sequence[int]) -> None:
    flows = FLOWS.get(kind, request_flows)
    for seed in seeds:
        talk = kind(seed, flows.__name__)
        talk.run()
        print(f"seed {seed}: {talk.said} {dict(talk.faults.had)}")
        talk.check()
