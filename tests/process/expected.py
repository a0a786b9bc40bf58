"""The result of each execution, and its steps: predicted from its input alone.

A step is a task or a child with its arguments, once for each attempt that a healthy run makes of
it. Lost workers cost no attempt, so the steps are the same after any crashes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.process.workflows import FAILURES

Step = str
"""Resource and arguments in one text, so that steps can be counted."""

FIRST_PAYMENT: Final = 100
SECOND_PAYMENT: Final = 1_000
SEATS: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Expected:
    """`steps` in no order. One that is stopped may have taken any part of them."""

    output: Any
    steps: tuple[Step, ...]
    status: str = "SUCCEEDED"


def step(resource: str, arguments: Mapping[str, Any]) -> Step:
    return f"{resource} {json.dumps(arguments, sort_keys=True)}"


def expected(workflow: str, data: Mapping[str, Any]) -> Expected:
    """`data` is the input of an execution of `workflow`, a root or a child."""
    return _EXPECTED[workflow](**data)


def _add(*numbers: int) -> tuple[Step, ...]:
    return tuple(step("task:add", {"n": n}) for n in numbers)


def _unsteady(n: int) -> tuple[Step, ...]:
    return (step("task:unsteady", {"n": n}),) * (FAILURES + 1)


def _booking(ref: str, *seats: int) -> tuple[Step, ...]:
    booked = (step("task:book", {"ref": ref, "seat": seat}) for seat in seats)
    undone = (step("task:unbook", {"booking": f"{ref}/{seat}"}) for seat in seats)
    return (*booked, *undone)


def _chain(n: int) -> Expected:
    return Expected(n + 5, _add(n, n + 1, n + 2, n + 3, n + 4))


def _pauses(n: int) -> Expected:
    return Expected(n + 3, _add(n, n + 1, n + 2))


def _long(n: int) -> Expected:
    return Expected(n + 1, _add(n))


def _paid(ref: str, n: int) -> Expected:
    once = n + 1 + FIRST_PAYMENT
    twice = once + 1 + SECOND_PAYMENT
    return Expected(twice + 1, _add(n, once, twice))


def _asked(ref: str, n: int) -> Expected:
    return Expected(n + 2, _add(n, n + 1))


def _retried(n: int) -> Expected:
    return Expected(n + 20, (*_unsteady(n), *_unsteady(n + 10)))


def _fan(ref: str, n: int) -> Expected:
    each = (n, n + 1, n + 2, n + 3)
    lanes = [FIRST_PAYMENT + 1, n + 1, n + 10]
    steps = (*_add(FIRST_PAYMENT, n, *each), *_unsteady(n))
    return Expected([*lanes, *(number + 1 for number in each)], steps)


def _saga(ref: str) -> Expected:
    steps = (*_booking(ref, *SEATS), step("task:print_ticket", {"ref": ref}))
    return Expected("sold out", steps)


def _parent(n: int) -> Expected:
    children = (step("workflow:p_chain", {"n": n}), step("workflow:p_pauses", {"n": n + 5}))
    return Expected(n + 9, (*children, *_add(n + 8)))


def _stopped(ref: str) -> Expected:
    return Expected(None, _booking(ref, 1), "ABORTED")


_EXPECTED: Final[Mapping[str, Callable[..., Expected]]] = {
    "p_chain": _chain,
    "p_pauses": _pauses,
    "p_long": _long,
    "p_paid": _paid,
    "p_asked": _asked,
    "p_unsteady": _retried,
    "p_fan": _fan,
    "p_saga": _saga,
    "p_parent": _parent,
    "p_stopped": _stopped,
}
