"""The calls of callers, their times, and the required end of each execution: drawn from the seed
alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from tests.process.expected import FIRST_PAYMENT, SECOND_PAYMENT, expected

Kind = Literal["start", "event", "answer", "stop"]

#: Before the last fault `p_long` begins so long, for its timer to be due about then.
LONG_SECONDS: Final = (27.0, 34.0)
#: Of all executions one in so many begins shortly before the last fault, and at most so many.
LATE_SHARE: Final = 4
LATE_MAX: Final = 40
#: When they do, before the last fault: late enough to be open at it, and before the cloud stands
#: still for the last time.
LATE_SECONDS: Final = (12.0, 6.5)
#: One execution in this many is started by two independent callers.
TWICE: Final = 3


@dataclass(frozen=True, slots=True)
class Action:
    """A call of the API, `at_seconds` after the beginning; repeated until it is answered."""

    at_seconds: float
    kind: Kind
    name: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """One execution: its calls, and its required end. `output` counts if it succeeds."""

    name: str
    workflow: str
    actions: tuple[Action, ...]
    status: str
    output: Any


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft of one execution: its name and time, and the choices of the seed."""

    name: str
    at_seconds: float
    draw: random.Random

    def made(self, workflow: str, data: dict[str, Any], *more: Action) -> Planned:
        request = {"workflow": workflow, "name": self.name, "input": data}
        start = Action(self.at_seconds, "start", self.name, request)
        end = expected(workflow, data)
        return Planned(self.name, workflow, (start, *more), end.status, end.output)

    def later(self, least: float, most: float, kind: Kind, request: dict[str, Any]) -> Action:
        at_seconds = max(0.0, self.at_seconds + self.draw.uniform(least, most))
        return Action(at_seconds, kind, self.name, request)

    def payment(self, key: str, amount: int, least: float, most: float) -> Action:
        """Add a payment, sometimes before the execution waits for it or has even begun."""
        request = {"name": "process.paid", "key": key, "data": {"amount": amount}, "id": key}
        return self.later(least, most, "event", request)


def _chain(draft: Draft, n: int) -> Planned:
    return draft.made("p_chain", {"n": n})


def _pauses(draft: Draft, n: int) -> Planned:
    return draft.made("p_pauses", {"n": n})


def _long(draft: Draft, n: int) -> Planned:
    return draft.made("p_long", {"n": n})


def _paid(draft: Draft, n: int) -> Planned:
    ref = draft.name
    first = draft.payment(ref, FIRST_PAYMENT, -1, 3)
    second = draft.payment(f"{ref}-second", SECOND_PAYMENT, -1, 5)
    return draft.made("p_paid", {"ref": ref, "n": n}, first, second)


def _asked(draft: Draft, n: int) -> Planned:
    answer = draft.later(0.5, 4, "answer", {"output": {"approved": True}})
    return draft.made("p_asked", {"ref": draft.name, "n": n}, answer)


def _unsteady(draft: Draft, n: int) -> Planned:
    return draft.made("p_unsteady", {"n": n})


def _fan(draft: Draft, n: int) -> Planned:
    payment = draft.payment(draft.name, FIRST_PAYMENT, -1, 4)
    return draft.made("p_fan", {"ref": draft.name, "n": n}, payment)


def _saga(draft: Draft, _n: int) -> Planned:
    return draft.made("p_saga", {"ref": draft.name})


def _parent(draft: Draft, n: int) -> Planned:
    return draft.made("p_parent", {"n": n})


def _stopped(draft: Draft, _n: int) -> Planned:
    stop = draft.later(1, 4, "stop", {"error": "Withdrawn", "cause": "by its caller"})
    return draft.made("p_stopped", {"ref": draft.name}, stop)


_KINDS: Final[tuple[Callable[[Draft, int], Planned], ...]] = (
    _chain, _pauses, _long, _paid, _asked, _unsteady, _fan, _saga, _parent, _stopped
)  # fmt: skip


def make_plan(executions: int, seconds: float, seed: int) -> list[Planned]:
    """Return executions of all kinds in turn: most begin evenly, the rest shortly before the end of
    `seconds`, at which faults end.
    """
    draw = random.Random(f"plan {seed}")
    late = min(executions // LATE_SHARE, LATE_MAX)
    even = executions - late
    first, last = LATE_SECONDS
    moments = [
        *((seconds - last) * number / max(1, even) for number in range(even)),
        *(seconds - first + (first - last) * number / max(1, late) for number in range(late)),
    ]
    planned = []
    for number, moment in enumerate(moments):
        make = _KINDS[number % len(_KINDS)]
        latest = seconds - draw.uniform(*LONG_SECONDS) if make is _long else seconds
        draft = Draft(f"x{seed}-{number}", max(0.0, min(moment, latest)), draw)
        made = make(draft, draw.randrange(1_000))
        if number % TWICE == 0:
            again = draft.later(0, 6, "start", made.actions[0].request)
            made = replace(made, actions=(*made.actions, again))
        planned.append(made)
    return planned


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """`key` names it among all calls: the execution, and which of its actions it is."""

    at_seconds: float
    key: str
    action: Action = field(compare=False)


def calls_of(plan: list[Planned]) -> list[Call]:
    """Return in the order of their times."""
    return sorted(
        Call(action.at_seconds, f"{one.name}.{place}", action)
        for one in plan
        for place, action in enumerate(one.actions)
    )


def is_first(key: str) -> bool:
    """Return True when the call is the one that begins its execution."""
    return key.endswith(".0")
