"""The ten conversations through a whole stack, with faults at drawn effects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from holdfast import Client, RequestRejected
from holdfast.runtime.effects import Effect, Put
from holdfast.runtime.worker import own_commands
from holdfast_simulator.world import Hook, Killed, no_faults
from tests.builders import CHANCE
from tests.sim.talk_faults import Faults, faulty_stack, insist
from tests.thorough import some
from tests.unit import conversation_flows as flows
from tests.unit.conversations_test import TALKS, Ask, Talk, Tell, first_parameter


class Talker:
    """One conversation among faults."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk = talk
        self.faults = Faults(seed)
        self.stack = faulty_stack(flows.__name__, self.faults)
        self.client = Client.of(self.stack.api)

    def say(self, number: int, one: Ask | Tell) -> None:
        if isinstance(one, Tell):
            insist(lambda: self.client.event(one.name, "k", one.data, id=f"m{number}"))
            return
        insist(lambda: self.client.request(one.name, "k", one.data, id=f"m{number}", timeout=0))

    def talk_through(self) -> None:
        world, begin_ms = self.stack.world, self.stack.world.now_ms
        keyed, given = self.talk.workflow.keyed, {first_parameter(self.talk): "k"}
        if keyed is None or keyed.starts_on is None:
            name, given = self.talk.workflow.name, {**given, **self.talk.given}
            insist(lambda: self.client.start(name, given, name="talk"))
        for number, one in enumerate(self.talk.said):
            world.run(until_ms=begin_ms + one.at * 1_000)
            world.now_ms = max(world.now_ms + 1, begin_ms + one.at * 1_000)
            self.say(number, one)
        world.run(until_ms=begin_ms + self.talk.lasts * 1_000)
        self.faults.is_over = True
        world.run(until_ms=world.now_ms + 3_600_000)

    def check(self) -> None:
        [row] = self.client.list(workflow=self.talk.workflow.name)
        assert self.client.describe(row["execution"])["output"] == self.talk.output
        for number, one in enumerate(self.talk.said):
            if isinstance(one, Ask) and one.error is None:
                assert self.client.reply(f"m{number}", 0) == one.reply
            elif isinstance(one, Ask):
                with pytest.raises(RequestRejected) as rejected:
                    self.client.reply(f"m{number}", 0)
                assert rejected.value.error == one.error
        sent = [row["name"] for row in self.client.events()]
        assert len(sent) == (3 if self.talk.workflow is flows.pool else 0), sent


@pytest.mark.parametrize("talk", TALKS, ids=str)
@pytest.mark.parametrize(
    "seeds",
    [some(range(3)), pytest.param(range(3, 100), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_a_conversation_with_faults_ends_as_without(talk: Talk, seeds: Sequence[int]) -> None:
    for seed in seeds:
        talker = Talker(talk, seed)
        talker.talk_through()
        print(f"seed {seed}: {dict(talker.faults.had)}")
        talker.check()


# -- a bug that they find --------------------------------------------------------------------------


def _killed_after_the_first_grant(talker: Talker) -> Hook:
    def hook(_world: Any, effect: Effect, when: str) -> None:
        is_listed = isinstance(effect, Put) and effect.item.get("name") == "granted"
        if is_listed and when == "after":
            talker.stack.world.hook = no_faults
            raise Killed

    return hook


def test_a_send_with_a_new_id_for_each_try_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    anew = lambda run, _entry: (f"{run[-9:]}-{next(numbers)}", CHANCE)  # noqa: E731
    monkeypatch.setattr(own_commands, "_once", anew)
    talker = Talker(next(talk for talk in TALKS if talk.workflow is flows.pool), seed=0)
    talker.stack.world.hook = _killed_after_the_first_grant(talker)
    talker.talk_through()
    with pytest.raises(AssertionError, match="granted"):
        talker.check()
