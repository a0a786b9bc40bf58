"""Bugs planted into the migration: each is caught by an ordinary test of it.

The first three are bugs that other engines had: a wait that is lost by a rejected migration, a wait
that is registered twice, and a mark of the old version that stays on the migrated execution.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import migrating
from holdfast.core.apply import migrating as applied
from holdfast.core.decision import Decision
from holdfast.core.facts import MigrateRequested
from holdfast.core.state import Execution, Timer
from holdfast.core.waits import pending_commands
from holdfast.migration.model import Obstacle
from holdfast.migration.proof import Migration
from holdfast.runtime.commands import migrate as command
from holdfast.runtime.effects import Delete
from holdfast.runtime.storage import keys, tables
from tests.unit import migration_test as tests

Patch = pytest.MonkeyPatch
pairs: Any = importlib.import_module("tests.sim.migration_test")


def _lose_the_wait_of_a_rejected_migration(patch: Patch) -> None:
    real = command.migrate

    def migrate(known: Any, tenant: str, run: str, request: Any, chance: bytes) -> Any:
        told = yield from real(known, tenant, run, {**request, "dry_run": True}, chance)
        if not told["moves"] and not request.get("dry_run"):
            registration = keys.registration(told["execution"])
            yield Delete(tables.MAIL, keys.event(tenant, "paid", "k1"), registration)
        return (yield from real(known, tenant, run, request, chance))

    patch.setattr(command, "migrate", migrate)


def _request_each_wait_again(patch: Patch) -> None:
    patch.setattr(migrating, "carried_out", lambda state, events: pending_commands(state))


def _keep_the_name_of_the_old_task(patch: Patch) -> None:
    patch.setattr(applied, "_waiting", lambda waiting, plan: waiting)


def _move_without_a_proof(patch: Patch) -> None:
    patch.setattr(Migration, "_of_step", _nothing)
    patch.setattr(Migration, "_of_variables", _nothing)


def _miss_steps(patch: Patch) -> None:
    patch.setattr(Migration, "_of_steps", _nothing)


def _nothing(*_: Any) -> Iterator[Obstacle]:
    yield from ()


def _forget_variables(patch: Patch) -> None:
    patch.setattr(applied, "_variables", lambda frame, plan: dict(frame.variables))


def _apply_a_void_request(patch: Patch) -> None:
    """A request is applied although the visit that it was made for has ended."""

    def is_open(state: Execution, fact: MigrateRequested) -> bool:
        return not state.is_ended and fact.control_id > state.last_control

    patch.setattr(migrating, "is_open", is_open)


def _start_timers_anew(patch: Patch) -> None:
    real = migrating.migrate

    def migrate(decision: Decision, fact: MigrateRequested) -> None:
        real(decision, fact)
        for frame in list(decision.state.frames.values()):
            if isinstance(frame.waiting, Timer):
                entry = decision.state.next_entry
                due_ms = decision.moment.now_ms + 86_400_000
                decision.emit("TimerSet", frame=frame.id, entry=entry, due=due_ms)

    patch.setattr(migrating, "migrate", migrate)


def _event_arrives(folder: Path) -> None:
    tests.test_it_may_not_move_to(folder, "another key of the event")


def _gone(folder: Path) -> None:
    tests.test_it_may_not_move_to(folder, "a value that was not computed")


def _all_pairs(folder: Path) -> None:
    for seed in range(4):
        pairs.try_pair(folder, seed)


@pytest.mark.parametrize(
    ("plant", "test"),
    [
        (_lose_the_wait_of_a_rejected_migration, _event_arrives),
        (
            _request_each_wait_again,
            tests.test_a_waiting_retry_runs_once_under_the_new_name_of_its_task,
        ),
        (
            _keep_the_name_of_the_old_task,
            tests.test_a_waiting_retry_runs_once_under_the_new_name_of_its_task,
        ),
        (_move_without_a_proof, _gone),
        (_miss_steps, _all_pairs),
        (_forget_variables, pairs.test_before_the_escalation_a_loan_moves_with_its_timer),
        (
            _apply_a_void_request,
            tests.test_an_execution_that_moved_on_since_the_proof_stays_whole_on_its_version,
        ),
        (_start_timers_anew, pairs.test_before_the_escalation_a_loan_moves_with_its_timer),
    ],
)
def test_a_planted_bug_is_caught(
    plant: Callable[[Patch], None],
    test: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: Patch,
) -> None:
    test(tmp_path)
    plant(monkeypatch)
    with pytest.raises((Exception, SystemExit)):  # whichever way the test fails
        test(tmp_path)
