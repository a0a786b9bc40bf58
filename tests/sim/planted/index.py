"""Bugs of the index of waits and of search attributes: rows that are missing or too old (I23)."""

from __future__ import annotations

from typing import Any, Final

from holdfast.runtime import search_rows, wait_rows
from holdfast.runtime.effects import Delete
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.log import Log
from holdfast_simulator.scenarios import AttemptOutcome, Brought, Scenario
from tests.builders import ask, call, machine, wait_for
from tests.search_kit import note
from tests.sim.planted.kit import Patch, Planted

Does = Any

_STATES: Final = {
    "begin": note("paid", customer="C-17", stage="new"),
    "paid": wait_for("paid", "pack"),
    "pack": call("pack", "packed"),
    "packed": note("person", stage="packed"),
    "person": ask("sent"),
}


def _searched(name: str, about: str, states: dict[str, Any]) -> Scenario:
    return Scenario(
        name,
        about,
        {"main": machine({**_STATES, **states})},
        tasks={"pack": (AttemptOutcome(output=1, seconds=1),)},
        events=(Brought(40, "paid", "k1", {"n": 1}, "e1"),),
        answers={"person": AttemptOutcome(output=1, seconds=300)},
    )


#: An order that is found by its customer and its stage, and that ends.
SEARCHED = _searched("searched", "attributes, two waits, an end", {"sent": note(stage="sent")})
#: The same, and its last event never comes.
RESTING = _searched(
    "resting",
    "attributes, and a rest that stays",
    {"sent": note("signed", stage="sent", customer=None), "signed": wait_for("signed")},
)


# -- waits -----------------------------------------------------------------------------------------


def _write_no_row(patch: Patch) -> None:
    def put_row(log: Log, now_ms: int, seconds: int = 0) -> Does:
        yield from ()

    patch.setattr(wait_rows, "put_row", put_row)


def _delete_the_row_at_the_end(patch: Patch) -> None:
    """A worker that was frozen then writes its row after the end."""

    def drop_row(log: Log, now_ms: int) -> Does:
        if log.indexed.has_row:
            assert log.state is not None
            yield Delete(tables.MAIL, *wait_rows._key(log, log.state))

    patch.setattr(wait_rows, "drop_row", drop_row)


def _repair_no_row(patch: Patch) -> None:
    def repair_row(log: Log, now_ms: int) -> Does:
        yield from ()

    patch.setattr(wait_rows, "repair_row", repair_row)


# -- attributes ------------------------------------------------------------------------------------


def _repair_no_value(patch: Patch) -> None:
    def repair(log: Log) -> Does:
        yield from ()

    patch.setattr(search_rows, "repair", repair)


def _forget_the_changes(patch: Patch) -> None:
    """Rows of old values are found until TTL deletes them."""

    def do_nothing(log: Log, state: Any, now_ms: int) -> Does:
        yield from ()

    patch.setattr(search_rows, "_put_changes", do_nothing)
    patch.setattr(search_rows, "_expire_old_values", do_nothing)


_ONLY: Final = frozenset({"I23"})

PLANTED = (
    Planted("a later wait gets no row", _write_no_row, _ONLY, RESTING, {}),
    Planted(
        "a frozen worker shows a wait after the end",
        _delete_the_row_at_the_end,
        _ONLY,
        SEARCHED,
        {"frozen before": 0.03},
    ),
    Planted(
        "the row of a crashed worker stays away",
        _repair_no_row,
        _ONLY,
        RESTING,
        {"killed before": 0.04},
    ),
    Planted(
        "the values of a crashed worker stay away",
        _repair_no_value,
        _ONLY,
        SEARCHED,
        {"killed before": 0.04},
    ),
    Planted("changed attributes are not kept", _forget_the_changes, _ONLY, RESTING, {}),
)
