"""The ten conversations through a whole stack, with faults at drawn effects."""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest

from holdfast import Client, ReplyTimeout, RequestRejected
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Doubt, Effect, PutIfAbsent, Send
from holdfast.runtime.worker import own_commands
from holdfast_simulator.world import Killed, SimulatorWorld
from tests.builders import CHANCE
from tests.unit import conversation_flows as flows
from tests.unit.client_kit import MemoryStack
from tests.unit.conversations_test import TALKS, Ask, Talk, Tell, first_parameter

_FAULTS_MAX = 30


class Faults:
    """Draws what goes wrong at each effect, of the API and of workers.

    `crash`: the process is killed. `doubt`: the answer to a write is lost. `twice`: each message of
    a send comes once more, some seconds later. `late`: the messages come half a minute late.
    `between`: another worker does all it can before the effect.
    """

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)  # repeatable, not secret
        self.chance = self.draw.choice([0.02, 0.05, 0.1])
        self.had: Counter[str] = Counter()
        self.is_over = False

    def __call__(self, world: SimulatorWorld, effect: Effect, when: str) -> None:
        if self.is_over or self.had.total() >= _FAULTS_MAX or self.draw.random() >= self.chance:
            return
        kinds = ["crash", "between"]
        if when == "after" and isinstance(effect, PutIfAbsent):
            kinds.append("doubt")
        if when == "after" and isinstance(effect, Send):
            kinds += ["twice", "late"]
        kind = self.draw.choice(kinds)
        self.had[kind] += 1
        match kind:
            case "crash":
                raise Killed
            case "doubt":
                raise Doubt("lost")
            case "between":
                while world._deliver_visible():
                    pass
            case _:
                assert isinstance(effect, Send)
                self._disturb(world, effect, is_twice=kind == "twice")

    def _disturb(self, world: SimulatorWorld, effect: Send, *, is_twice: bool) -> None:
        queue = world.services.queue(effect.queue)
        for message in list(queue.messages.values())[-len(effect.messages) :]:
            if is_twice:
                queue.duplicate(f"{message.key}/0", world.now_ms + self.draw.randint(0, 9_000))
            else:
                queue.show_again(f"{message.key}/0", message.visible_at + 30_000)


class Talker:
    """A caller who insists with the same id or name until a request is accepted."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk = talk
        self.stack = MemoryStack(flows.__name__, works=False)
        self.client = Client.of(self.stack.api)
        self.faults = Faults(seed)
        self.stack.world.hook, self.stack.site.ports.performs = (
            self.faults,
            self.stack.world.perform,
        )

    def insist(self, call: Any) -> None:
        for _ in range(_FAULTS_MAX + 1):
            try:
                call()
            except (Killed, ServiceFault):
                continue
            except (ReplyTimeout, RequestRejected):
                return
            return
        raise AssertionError("not accepted")

    def say(self, number: int, one: Ask | Tell) -> None:
        if isinstance(one, Tell):
            self.insist(lambda: self.client.event(one.name, "k", one.data, id=f"m{number}"))
            return
        self.insist(
            lambda: self.client.request(one.name, "k", one.data, id=f"m{number}", timeout=0)
        )

    def talk_through(self) -> None:
        world, begin_ms = self.stack.world, self.stack.world.now_ms
        keyed, given = self.talk.workflow.keyed, {first_parameter(self.talk): "k"}
        if keyed is None or keyed.starts_on is None:
            name, given = self.talk.workflow.name, {**given, **self.talk.given}
            self.insist(lambda: self.client.start(name, given, name="talk"))
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
    "seeds", [range(3), pytest.param(range(3, 100), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_a_conversation_with_faults_ends_as_without(talk: Talk, seeds: range) -> None:
    for seed in seeds:
        talker = Talker(talk, seed)
        talker.talk_through()
        print(f"seed {seed}: {dict(talker.faults.had)}")
        talker.check()


# -- a bug that they find --------------------------------------------------------------------------


def test_a_send_with_a_new_id_for_each_try_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    anew = lambda run, _entry: (f"{run[-9:]}-{next(numbers)}", CHANCE)  # noqa: E731
    monkeypatch.setattr(own_commands, "_once", anew)
    talk = next(talk for talk in TALKS if talk.workflow is flows.pool)
    assert any(_is_caught(talk, seed) for seed in range(200))


def _is_caught(talk: Talk, seed: int) -> bool:
    talker = Talker(talk, seed)
    talker.talk_through()
    try:
        talker.check()
    except AssertionError:
        return True
    return False
