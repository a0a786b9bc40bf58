"""A new colleague comes on board, or everything is taken back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from holdfast import days, hours, minutes, role
from holdfast.testing import Run, World, check_workflow, real, takes
from statemachines.hr_onboarding import (
    Delivery,
    FirstWeek,
    NewHire,
    Outcome,
    Signature,
    Volunteer,
    Withdrawal,
    Workplace,
    onboard,
    order_laptop,
    tell,
)
from statemachines.provision_accounts import Person, SystemBusy, open_account
from tests.thorough import worlds

STARTED = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)  # noqa: UP017
GRACE = NewHire(
    person=Person(id="p1", name="Grace Hopper", team="compilers"),
    manager="howard",
    nominees=("ada", "barbara", "edsger"),
    systems=["mail", "repositories"],
    starts_at=STARTED + days(30),
)
BUDDY = "Will you look after Grace Hopper?"
WEEK = "Plan the first week of Grace Hopper"
DESK = "Set up a desk for Grace Hopper"
TAKEN_BACK = ["take_laptop_back", "close_accounts", "void_contract"]


def a_world(*missing: str, outcomes: dict[Any, Any] | None = None) -> World:
    """Return a world without failures, except for the given ones."""
    world = World(outcomes, others=real, starts=STARTED)
    if "signature" not in missing:
        world.send("contract.signed", Signature(signed_at="today"), key="contract-p1", at=days(2))
    if "laptop" not in missing:
        delivery = Delivery(serial_number="X1")
        world.send("laptop.delivered", delivery, key="laptop-p1", at=days(20))
    if "week" not in missing:
        world.answer(WEEK, FirstWeek(plan="meet everybody"), assignee="howard", at=days(4))
    if "desk" not in missing:
        world.answer(DESK, Workplace(desk="4.17"), assignee=role("it"), at=days(3))
    if "buddies" not in missing:
        for name, answered in (("edsger", days(3)), ("ada", days(4)), ("barbara", days(6))):
            world.answer(BUDDY, Volunteer(name=name), assignee=name, at=answered)
    return world


def told(run: Run[Outcome]) -> list[Any]:
    return [call.arguments["text"] for call in run.calls_of(tell)]


def test_a_newcomer_who_does_everything_in_time_starts_on_the_day() -> None:
    run = a_world().run(onboard, GRACE)
    assert run.output == Outcome(
        person_id="p1", status="started", laptop="X1", buddies=["ada", "edsger"]
    )
    assert run.ended == days(30)
    assert told(run) == ["your first week: meet everybody", "welcome"]


def test_the_accounts_are_a_child_workflow() -> None:
    run = a_world().run(onboard, GRACE)
    (call,) = run.calls_of("provision_accounts")
    assert call.arguments["systems"] == ["mail", "repositories"]


# -- The contract ----------------------------------------------------------------------------------


def test_an_unsigned_contract_is_reminded_of_after_a_week() -> None:
    world = a_world("signature")
    world.send("contract.signed", Signature(signed_at="late"), key="contract-p1", at=days(13))
    run = world.run(onboard, GRACE)
    assert run.output.status == "started"
    assert [call.at for call in run.calls_of("remind_of_contract")] == [days(7).total_seconds()]


def test_a_contract_that_is_not_signed_within_two_weeks_is_void() -> None:
    run = a_world("signature").run(onboard, GRACE)
    assert run.output == Outcome(
        person_id="p1", status="not_signed", reason="contract-p1 was not signed within 14 days"
    )
    assert run.ended == days(14)
    assert run.steps[-2:] == ["void_contract", "tell"]


# -- The accounts ----------------------------------------------------------------------------------


def test_without_accounts_the_first_day_does_not_start() -> None:
    unknown = GRACE.model_copy(update={"systems": ["mail", "abacus"]})
    run = a_world().run(onboard, unknown)
    assert run.output == Outcome(
        person_id="p1", status="no_accounts", reason="there is no system abacus"
    )
    assert run.steps[-3:] == ["close_account", "void_contract", "tell"]


def test_a_system_that_stays_busy_is_no_reason_to_wait_for_ever() -> None:
    run = a_world(outcomes={open_account: SystemBusy("maintenance")}).run(onboard, GRACE)
    assert (run.output.status, run.output.reason) == ("no_accounts", "maintenance")


# -- What is prepared side by side -----------------------------------------------------------------


def test_a_laptop_that_is_not_there_three_days_before_is_replaced_from_the_shelf() -> None:
    run = a_world("laptop").run(onboard, GRACE)
    assert run.output.laptop == "shelf-laptop-p1"
    assert [call.at for call in run.calls_of("lend_laptop")] == [days(27).total_seconds()]


def test_a_newcomer_who_starts_at_once_gets_a_laptop_from_the_shelf_at_once() -> None:
    soon = GRACE.model_copy(update={"starts_at": STARTED + days(4)})
    run = a_world("buddies").run(onboard, soon)
    assert [call.at for call in run.calls_of("lend_laptop")] == [days(2).total_seconds()]
    assert run.output.buddies == ["howard"]


def test_a_manager_has_ten_days_for_the_plan() -> None:
    run = a_world("week").run(onboard, GRACE)
    assert told(run) == ["Grace Hopper gets the usual first week", "welcome"]
    (call,) = [call for call in run.calls_of(tell) if call.arguments["somebody"] == "howard"]
    assert call.at == days(12).total_seconds()


def test_the_desk_has_three_days() -> None:
    run = a_world("desk").run(onboard, GRACE)
    (call,) = [call for call in run.calls_of(tell) if call.arguments["somebody"] == role("it")]
    assert call.at == days(5).total_seconds()
    assert run.output.status == "started"


def test_the_first_two_volunteers_are_the_buddies() -> None:
    run = a_world().run(onboard, GRACE)
    (call,) = run.calls_of("name_buddies")
    assert (call.arguments["buddies"], call.at) == (["ada", "edsger"], days(4).total_seconds())


@pytest.mark.parametrize("volunteers", [[], ["barbara"]])
def test_the_manager_steps_in_where_two_cannot_be_found(volunteers: list[str]) -> None:
    world = a_world("buddies")
    for name in volunteers:
        world.answer(BUDDY, Volunteer(name=name), assignee=name, at=days(3))
    run = world.run(onboard, GRACE)
    assert run.output.buddies == ["howard"]
    assert [call.at for call in run.calls_of("name_buddies")] == [days(7).total_seconds()]


# -- Withdrawal, stop, time-out --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "undone"),
    [
        (hours(1), TAKEN_BACK[2:]),
        (days(3), TAKEN_BACK),
        (days(11), TAKEN_BACK),
        (days(29), TAKEN_BACK),
    ],
)
def test_a_candidate_may_withdraw_at_any_time_and_everything_is_taken_back(
    when: timedelta, undone: list[str]
) -> None:
    world = a_world()
    world.send("candidate.withdrew", Withdrawal(reason="another offer"), key="p1", at=when)
    run = world.run(onboard, GRACE)
    assert run.output == Outcome(person_id="p1", status="withdrawn", reason="another offer")
    assert run.steps[-len(undone) - 1 :] == [*undone, "tell"]
    assert run.ended == when


def test_accounts_that_are_just_being_opened_are_closed_too() -> None:
    world = a_world(outcomes={open_account: takes(minutes(1.5), real)})
    world.send("candidate.withdrew", Withdrawal(reason="a cold"), key="p1", at=days(2) + minutes(2))
    run = world.run(onboard, GRACE)
    assert run.output.status == "withdrawn"
    # The child undoes its own steps while the parent undoes the rest.
    assert sorted(run.steps[-3:]) == ["close_account", "tell", "void_contract"]


def test_after_the_first_day_a_withdrawal_changes_nothing() -> None:
    world = a_world()
    world.send("candidate.withdrew", Withdrawal(reason="too late"), key="p1", at=days(31))
    assert world.run(onboard, GRACE).output.status == "started"


def test_a_stop_takes_back_the_same() -> None:
    world = a_world()
    world.stop(at=days(15))
    run = world.run(onboard, GRACE)
    assert run.status == "ABORTED"
    assert run.steps[-3:] == TAKEN_BACK


def test_an_endless_onboarding_is_undone_after_half_a_year() -> None:
    distant = GRACE.model_copy(update={"starts_at": STARTED + days(400)})
    run = a_world().run(onboard, distant)
    assert (run.status, run.ended) == ("TIMED_OUT", days(180))
    assert run.steps[-3:] == TAKEN_BACK


def test_an_order_that_fails_closes_the_accounts_and_fails_the_run() -> None:
    run = a_world(outcomes={order_laptop: ConnectionError("no shop")}).run(onboard, GRACE)
    assert (run.error, run.cause) == ("ConnectionError", "no shop")
    assert run.steps[-2:] == ["close_accounts", "void_contract"]


def test_in_every_world_it_behaves_as_its_python() -> None:
    assert check_workflow(onboard, examples=worlds(25))
