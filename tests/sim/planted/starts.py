"""Bugs by which an accepted start is lost with its message (I16, I17)."""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import ServiceFault
from holdfast.runtime import pending_starts
from holdfast.runtime.effects import NoResult
from holdfast.runtime.maintenance import lost_starts
from holdfast_simulator.scenarios import Scenario
from tests.builders import machine
from tests.sim.planted.kit import Patch, Planted
from tests.sim.planted.protocol import STEPS

_DAY_MS: Final = 86_400_000
_PURGED: Final = {"vanished": 0.5}


def _nothing(*_: object) -> NoResult:
    yield from ()


def _put_no_row(patch: Patch) -> None:
    patch.setattr(pending_starts, "guard", _nothing)


def _send_nothing_again(patch: Patch) -> None:
    patch.setattr(lost_starts, "_work_off", _nothing)


def _pass_rows_that_could_not_be_read(patch: Patch) -> None:
    """The place moves past a row whose check failed."""
    real = lost_starts._work_off

    def work_off(*given: Any) -> NoResult:
        try:
            yield from real(*given)
        except ServiceFault:
            return

    patch.setattr(lost_starts, "_work_off", work_off)


def _forget_what_was_sent_again(patch: Patch) -> None:
    """The second message may be lost as the first one was."""
    patch.setattr(lost_starts, "_look_later", _nothing)


def _check_after_a_day(patch: Patch) -> None:
    patch.setattr(lost_starts, "FIRST_MS", _DAY_MS)


def _see_no_missing_report(patch: Patch) -> None:
    """A child that has ended counts as one that has reported."""

    def has_reported(_: object) -> NoResult:
        yield from ()
        return True  # type: ignore[return-value]

    patch.setattr(lost_starts, "_has_reported", has_reported)


#: A child that ends in the delivery of its start has no watchdog row.
CALLS: Final = Scenario(
    "a short child",
    "a call without a time-out",
    {
        "main": machine(
            {"call": {"Type": "Task", "Resource": "holdfast:workflow:short", "End": True}}
        ),
        "short": machine({"done": {"Type": "Succeed"}}),
    },
)

_I16: Final = frozenset({"I16"})

PLANTED = (
    Planted("a start has no row", _put_no_row, _I16, STEPS, _PURGED),
    Planted("a lost start is not sent again", _send_nothing_again, _I16, STEPS, _PURGED),
    Planted(
        "a start whose check failed is passed",
        _pass_rows_that_could_not_be_read,
        _I16,
        STEPS,
        {**_PURGED, "throttled": 0.3, "killed before": 0.1},
        {"safety_ms": 2_000_000},
    ),
    Planted(
        "a start is sent again once only",
        _forget_what_was_sent_again,
        _I16,
        STEPS,
        _PURGED,
        {"safety_ms": 2_000_000},
    ),
    Planted(
        "a lost start is sent again after a day",
        _check_after_a_day,
        frozenset({"I17"}),
        STEPS,
        _PURGED,
    ),
    Planted(
        "a child that ended without a report is passed",
        _see_no_missing_report,
        frozenset({"I7"}),
        CALLS,
        {"vanished": 0.2, "killed before": 0.2},
    ),
)
