"""Bugs of a pause: it begins work that it should delay, or loses frozen timers (I21, I6,
I16, I17).
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.core import advance, attempt_facts, pausing, waits
from holdfast.core.apply import pausing as apply_pausing
from holdfast.core.state import Frame
from holdfast.runtime.worker import attempts, external_facts, loop
from tests.sim.planted.kit import CORPUS, Patch, Planted

_TASKS: Final = CORPUS["paused between tasks"]
_TIMERS: Final = CORPUS["paused timers"]
_STOPPED: Final = CORPUS["paused and stopped"]
_ALWAYS: Final = {"pause_percent": 100, "stop_percent": 0}


def _settle_in_the_pause(patch: Patch) -> None:
    """The state after a result is evaluated, whatever the operator has said."""
    real = advance._settle

    def settle(decision: Any) -> None:
        paused = decision.state.paused if decision.is_started else None
        if paused is None:
            real(decision)
            return
        decision.state = decision.state._replace(paused=None)
        real(decision)
        if not decision.state.is_ended:
            decision.state = decision.state._replace(paused=paused)

    patch.setattr(advance, "_settle", settle)


def _fire_in_the_pause(patch: Patch) -> None:
    for module in (advance, external_facts, attempts):
        patch.setattr(module, "is_frozen", lambda _state: False)
    for module in (advance, external_facts, loop):
        for name in ("overdue", "overdue_frames", "is_due"):
            if hasattr(module, name):
                _thaw(patch, module, name)


def _thaw(patch: Patch, module: Any, name: str) -> None:
    real = getattr(module, name)
    patch.setattr(module, name, lambda state, past_ms: real(state._replace(paused=None), past_ms))


def _shift_by_half(patch: Patch) -> None:
    real = apply_pausing._shifted

    def shifted(frame: Frame, shift_ms: int, *, is_frozen: bool) -> Frame:
        return real(frame, shift_ms // 2, is_frozen=is_frozen)

    patch.setattr(apply_pausing, "_shifted", shifted)


def _forget_the_timers(patch: Patch) -> None:
    """After the resume, request nothing again: each wait counts as requested."""
    patch.setattr(waits, "stays_asked", lambda _command, _pause: True)
    patch.setattr(external_facts, "again_if_early", _no_copy)


def _no_copy(*_: Any) -> Any:
    yield from ()
    return False


def _take_over_in_the_pause(patch: Patch) -> None:
    real = attempt_facts._taken_over

    def taken_over(decision: Any, fact: Any) -> None:
        paused = decision.state.paused
        if paused is None:
            real(decision, fact)
            return
        decision.state = decision.state._replace(paused=None)
        real(decision, fact)
        if not decision.state.is_ended:
            decision.state = decision.state._replace(paused=paused)

    patch.setattr(attempt_facts, "_taken_over", taken_over)


def _lose_the_pause_at_a_stop(patch: Patch) -> None:
    """Keep the pause at a stop: the undo waits for a resume that never comes."""
    patch.setattr(pausing, "lift", lambda _decision, _reason: None)


PLANTED = (
    Planted(
        "a paused execution evaluates the next state",
        _settle_in_the_pause,
        frozenset({"I21"}),
        _TASKS,
        {},
        _ALWAYS,
    ),
    Planted(
        "a frozen timer fires during the pause",
        _fire_in_the_pause,
        frozenset({"I6"}),
        _TIMERS,
        {},
        _ALWAYS,
    ),
    Planted(
        "the resume shifts by half of the paused time",
        _shift_by_half,
        frozenset({"I6"}),
        _TIMERS,
        {},
        _ALWAYS,
    ),
    Planted(
        "the resume starts no timer",
        _forget_the_timers,
        frozenset({"I17", "I18", "I16"}),
        _TIMERS,
        {},
        _ALWAYS,
    ),
    Planted(
        "a lost attempt is taken over during the pause",
        _take_over_in_the_pause,
        frozenset({"I21"}),
        _TASKS,
        {"killed after": 0.1, "duplicated": 0.1, "delivered again": 0.2},
        _ALWAYS,
    ),
    Planted(
        "a stop leaves the pause as it is",
        _lose_the_pause_at_a_stop,
        frozenset({"I6", "I13", "I16", "I17", "I21"}),
        _STOPPED,
        {},
        {"pause_percent": 100, "stop_percent": 100},
    ),
)
