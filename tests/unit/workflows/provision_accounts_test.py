"""Accounts are opened one by one; all of them, or none."""

from __future__ import annotations

import pytest

from holdfast import minutes
from holdfast.testing import World, check_workflow, fails, never, real, takes
from statemachines.provision_accounts import (
    Account,
    Person,
    SystemBusy,
    UnknownSystem,
    close_account,
    open_account,
    provision_accounts,
)
from tests.thorough import worlds

GRACE = Person(id="p1", name="Grace Hopper", team="compilers")
SYSTEMS = ["directory", "mail", "repositories"]


def test_accounts_are_opened_in_the_order_in_which_they_are_asked_for() -> None:
    run = World({open_account: real}).run(provision_accounts, GRACE, SYSTEMS)
    assert run.output == [Account(system=system, login="grace.hopper") for system in SYSTEMS]
    assert run.steps == ["open_account"] * 3


def test_nothing_asked_for_is_nothing_done() -> None:
    run = World().run(provision_accounts, GRACE, [])
    assert (run.output, run.steps) == ([], [])


def test_an_unknown_system_closes_the_opened_accounts_the_last_first() -> None:
    run = World({open_account: real}).run(provision_accounts, GRACE, ["mail", "chat", "abacus"])
    assert (run.error, run.cause) == ("UnknownSystem", "there is no system abacus")
    closed = [call.arguments["account"]["system"] for call in run.calls_of(close_account)]
    assert closed == ["chat", "mail"]


@pytest.mark.parametrize(("times", "status"), [(1, "SUCCEEDED"), (3, "SUCCEEDED"), (4, "FAILED")])
def test_a_busy_system_is_asked_four_times(times: int, status: str) -> None:
    outcome = fails(SystemBusy("maintenance"), times=times, then=real)
    run = World({open_account: outcome}).run(provision_accounts, GRACE, ["mail"])
    assert run.status == status


def test_a_system_that_does_not_answer_counts_as_a_failure() -> None:
    run = World({open_account: fails(UnknownSystem, after=9, then=never)}).run(
        provision_accounts, GRACE, ["mail"]
    )
    assert (run.error, run.ended) == ("States.Timeout", minutes(2))


def test_an_account_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    world = World(
        {
            open_account: fails(UnknownSystem("no"), after=2, then=real),
            close_account: fails(ConnectionError("down"), times=6),
        }
    )
    run = world.run(provision_accounts, GRACE, SYSTEMS)
    assert run.error == "CompensationFailed"
    closed = {call.arguments["account"]["system"] for call in run.calls_of(close_account)}
    assert closed == {"mail", "directory"}


def test_a_stopped_provisioning_leaves_nothing_open() -> None:
    world = World({open_account: takes(minutes(1), real)})
    world.stop(at=minutes(1.5))
    run = world.run(provision_accounts, GRACE, SYSTEMS)
    assert (run.status, run.steps) == ("ABORTED", ["open_account", "open_account", "close_account"])


def test_in_every_world_it_behaves_as_its_python() -> None:
    assert check_workflow(provision_accounts, examples=worlds(25))["SUCCEEDED"]
