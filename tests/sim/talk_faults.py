"""Faults at drawn effects of a whole stack, and callers who insist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from holdfast import ReplyTimeout, RequestRejected
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Doubt, Effect, PutIfAbsent, Send
from holdfast_simulator.world import Killed, SimulatorWorld
from tests.unit.client_kit import MemoryStack

_FAULTS_MAX = 30
#: With one more crash or lost answer, four workers in a row may lose an attempt. It fails then, as
#: it should.
_LOST_MAX = 3


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
        kinds = ["between"]
        if self.had["crash"] + self.had["doubt"] < _LOST_MAX:
            kinds.append("crash")
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


def faulty_stack(module: str, faults: Faults) -> MemoryStack:
    """A stack whose API and workers have the faults."""
    stack = MemoryStack(module, works=False)
    stack.world.hook, stack.site.ports.performs = faults, stack.world.perform
    return stack


def insist(call: Callable[[], object]) -> None:
    """Repeat the call, with the same id or name, until it is accepted."""
    for _ in range(_FAULTS_MAX + 1):
        try:
            call()
        except (Killed, ServiceFault):
            continue
        except (ReplyTimeout, RequestRejected):
            return
        return
    raise AssertionError("not accepted")
