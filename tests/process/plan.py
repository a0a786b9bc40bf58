"""What callers do and when, and what each execution has to come to: drawn from the seed alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["start", "event", "answer", "stop"]

#: Seconds that an undisturbed execution of `p_long` takes, about: it is not begun at the very end.
LONG_SECONDS: Final = 34


@dataclass(frozen=True, slots=True)
class Action:
    """A call of the API, `at_seconds` after the beginning; repeated until it is answered."""

    at_seconds: float
    kind: Kind
    name: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """One execution: its calls, and how it must end. `output` counts if it succeeds."""

    name: str
    workflow: str
    actions: tuple[Action, ...]
    status: str
    output: Any


@dataclass(frozen=True, slots=True)
class Draft:
    """Where one execution is made: its name and time, and the choices of the seed."""

    name: str
    at_seconds: float
    draw: random.Random

    def made(
        self, workflow: str, data: dict[str, Any], output: Any, *more: Action, status: str = ""
    ) -> Planned:
        request = {"workflow": workflow, "name": self.name, "input": data}
        start = Action(self.at_seconds, "start", self.name, request)
        return Planned(self.name, workflow, (start, *more), status or "SUCCEEDED", output)

    def later(self, least: float, most: float, kind: Kind, request: dict[str, Any]) -> Action:
        at_seconds = max(0.0, self.at_seconds + self.draw.uniform(least, most))
        return Action(at_seconds, kind, self.name, request)

    def payment(self, key: str, amount: int, least: float, most: float) -> Action:
        """Sometimes before anybody waits for it, sometimes before the execution has begun."""
        request = {"name": "process.paid", "key": key, "data": {"amount": amount}, "id": key}
        return self.later(least, most, "event", request)


def _chain(draft: Draft, n: int) -> Planned:
    return draft.made("p_chain", {"n": n}, n + 5)


def _pauses(draft: Draft, n: int) -> Planned:
    return draft.made("p_pauses", {"n": n}, n + 3)


def _long(draft: Draft, n: int) -> Planned:
    return draft.made("p_long", {"n": n}, n + 1)


def _paid(draft: Draft, n: int) -> Planned:
    ref = draft.name
    first = draft.payment(ref, 100, -1, 3)
    second = draft.payment(f"{ref}-second", 1_000, -1, 5)
    return draft.made("p_paid", {"ref": ref, "n": n}, n + 1_103, first, second)


def _asked(draft: Draft, n: int) -> Planned:
    answer = draft.later(0.5, 4, "answer", {"output": {"approved": True}})
    return draft.made("p_asked", {"ref": draft.name, "n": n}, n + 2, answer)


def _unsteady(draft: Draft, n: int) -> Planned:
    return draft.made("p_unsteady", {"n": n}, n + 20)


def _fan(draft: Draft, n: int) -> Planned:
    output = [101, n + 1, n + 10, n + 1, n + 2, n + 3, n + 4]
    payment = draft.payment(draft.name, 100, -1, 4)
    return draft.made("p_fan", {"ref": draft.name, "n": n}, output, payment)


def _saga(draft: Draft, _n: int) -> Planned:
    return draft.made("p_saga", {"ref": draft.name}, "sold out")


def _parent(draft: Draft, n: int) -> Planned:
    return draft.made("p_parent", {"n": n}, n + 9)


def _stopped(draft: Draft, _n: int) -> Planned:
    stop = draft.later(1, 4, "stop", {"error": "Withdrawn", "cause": "by its caller"})
    return draft.made("p_stopped", {"ref": draft.name}, None, stop, status="ABORTED")


_KINDS: Final[tuple[Callable[[Draft, int], Planned], ...]] = (
    _chain, _pauses, _long, _paid, _asked, _unsteady, _fan, _saga, _parent, _stopped
)  # fmt: skip


def make_plan(executions: int, seconds: float, seed: int) -> list[Planned]:
    """-> executions that begin evenly over `seconds`, all kinds in turn."""
    draw = random.Random(f"plan {seed}")
    planned = []
    for number in range(executions):
        make = _KINDS[number % len(_KINDS)]
        latest = max(0.0, seconds - LONG_SECONDS) if make is _long else seconds
        draft = Draft(f"x{seed}-{number}", latest * number / executions, draw)
        planned.append(make(draft, draw.randrange(1_000)))
    return planned
