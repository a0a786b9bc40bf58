"""Bugs of a fork: it does not continue the history of its origin (I25)."""

from __future__ import annotations

from typing import Any, Final

from holdfast.core import forking as core_forking
from holdfast.runtime.commands import fork
from holdfast.runtime.effects import Put
from holdfast.runtime.storage import keys
from holdfast.runtime.worker import forking
from tests.sim.planted.kit import CORPUS, Patch, Planted

_TASKS: Final = CORPUS["chain of tasks"]
_LOOP: Final = CORPUS["loop with a task"]
_ALWAYS: Final = {"fork_percent": 100, "stop_percent": 0, "redrive_percent": 0}


def _copy_the_first(patch: Patch) -> None:
    """The worker copies up to the first visit of the step, not to the one that was requested."""
    real = forking._until

    def until(events: Any, event_id: int) -> Any:
        copied = real(events, event_id)
        name = copied[-1].details["name"]
        place = next(n for n, one in enumerate(copied) if one.details.get("name") == name)
        return copied[: place + 1]

    patch.setattr(forking, "_until", until)


def _lose_a_result(patch: Patch) -> None:
    """A copied step has no result."""
    real = core_forking._copied

    def copied(events: Any, started: Any) -> Any:
        for event in real(events, started):
            if event.type == "TaskSucceeded":
                yield event._replace(details={**event.details, "output": None})
            else:
                yield event

    patch.setattr(core_forking, "_copied", copied)


def _leave_no_row(patch: Patch) -> None:
    """The inbox of the origin does not say that it has a fork."""
    real = fork._send

    def send(*arguments: Any) -> Any:
        handler, answer = real(*arguments), None
        while True:
            try:
                effect = handler.send(answer)
            except StopIteration as stop:
                return stop.value
            is_row = isinstance(effect, Put) and str(effect.item["sk"]).startswith(keys.FORK_PREFIX)
            answer = None if is_row else (yield effect)

    patch.setattr(fork, "_send", send)


_ONLY: Final = frozenset({"I25"})

PLANTED = (
    Planted(
        "a fork of a loop begins in an earlier round", _copy_the_first, _ONLY, _LOOP, {}, _ALWAYS
    ),
    Planted("a fork has lost the result of a step", _lose_a_result, _ONLY, _TASKS, {}, _ALWAYS),
    Planted("an origin does not know its fork", _leave_no_row, _ONLY, _TASKS, {}, _ALWAYS),
)
