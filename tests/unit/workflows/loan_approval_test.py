"""A loan: decided by rule, by one person, by two of three, or not in time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from holdfast import days, hours, role, seconds
from holdfast.testing import World, check_workflow, fails, real, takes
from statemachines.loan_approval import (
    FOUR_EYES_ABOVE_CENTS,
    AccountClosed,
    BankUnavailable,
    Decision,
    Loan,
    Risk,
    approve_loan,
    assess,
    collect_from,
    credit_history,
    pay_out,
    recall,
    tell_credit_desk,
    verify_identity,
)
from tests.thorough import worlds

PUNCTUAL, UNPUNCTUAL = "Zoe Lane", "Max Wolf"  # late in one month of twelve, and in five
SMALL = Loan(id="L1", applicant=UNPUNCTUAL, cents=500_000)
LARGE = Loan(id="L1", applicant=PUNCTUAL, cents=FOUR_EYES_ABOVE_CENTS + 1)
TITLE = "Approve loan L1"
MANAGER, HEAD = role("credit_manager"), role("head_of_credit")
OFFICER, RISK = role("credit_officer"), role("risk_officer")
YES, NO = Decision(approved=True), Decision(approved=False, note="too risky")
CHECKS = ["verify_identity", "credit_history", "assess"]
PAID = ["set_aside", "pay_out", "collect_from"]


def answered(*answers: tuple[str, Decision, timedelta]) -> World:
    world = World(others=real)
    for assignee, decision, at in answers:
        world.answer(TITLE, decision, assignee=assignee, at=at)
    return world


# -- by rule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("applicant", "cents", "outcome", "steps"),
    [
        ("Unknown", 500_000, "rejected: identity", CHECKS[:2]),
        (PUNCTUAL, 500_000, "approved", CHECKS + PAID),
        (UNPUNCTUAL, 30_000_000, "rejected", CHECKS),
        ("Mallory Finch", 500_000, "rejected", CHECKS),
    ],
)
def test_a_clear_case_is_decided_by_rule(
    applicant: str, cents: int, outcome: str, steps: Iterable[str]
) -> None:
    run = World(others=real).run(approve_loan, Loan(id="L1", applicant=applicant, cents=cents))
    assert (run.output, run.steps, run.ended) == (outcome, list(steps), timedelta())


def test_the_checks_are_made_side_by_side() -> None:
    world = World(
        {verify_identity: takes(seconds(30), real), credit_history: takes(seconds(40), real)},
        others=real,
    )
    run = world.run(approve_loan, Loan(id="L1", applicant=PUNCTUAL, cents=500_000))
    assert (run.output, run.ended) == ("approved", seconds(40))


def test_a_check_that_fails_fails_the_loan_before_anything_is_paid() -> None:
    run = World({credit_history: RuntimeError("down")}, others=real).run(approve_loan, SMALL)
    assert (run.status, run.error) == ("FAILED", "RuntimeError")
    assert "pay_out" not in run.steps


# -- by one person ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "decision", "outcome", "last_step"),
    [
        (hours(1), YES, "approved", "collect_from"),
        (hours(47), YES, "approved", "collect_from"),
        (hours(1), NO, "rejected", TITLE),
        (hours(49), YES, "lapsed", "tell_credit_desk"),
    ],
)
def test_a_case_in_between_is_decided_by_a_person_within_48_hours(
    after: timedelta, decision: Decision, outcome: str, last_step: str
) -> None:
    run = answered((MANAGER, decision, after)).run(approve_loan, SMALL)
    assert (run.output, run.steps[-1]) == (outcome, last_step)
    assert run.ended == min(after, hours(48))


def test_the_person_sees_the_loan_and_its_risk() -> None:
    run = answered((MANAGER, YES, hours(1))).run(approve_loan, SMALL)
    (asked,) = run.calls_of(TITLE)
    assert asked.arguments == {
        "assignee": MANAGER,
        "details": {
            "loan": {"id": "L1", "applicant": UNPUNCTUAL, "cents": 500_000},
            "risk": {"score": 40, "reasons": ["late in 5 of 12 months"]},
        },
    }


def test_after_a_day_the_desk_is_reminded_and_the_head_may_decide_too() -> None:
    run = answered((HEAD, YES, hours(30))).run(approve_loan, SMALL)
    assert (run.output, run.ended) == ("approved", hours(30))
    assert [call.at for call in run.calls_of(tell_credit_desk)] == [days(1).total_seconds()]
    assert run.steps.count(TITLE) == 2


def test_the_manager_may_still_decide_after_the_head_was_asked() -> None:
    run = answered((MANAGER, NO, hours(40)), (HEAD, YES, hours(41))).run(approve_loan, SMALL)
    assert (run.output, run.ended) == ("rejected", hours(40))


def test_a_decision_within_a_day_needs_no_reminder() -> None:
    run = answered((MANAGER, YES, hours(23))).run(approve_loan, SMALL)
    assert run.calls_of(tell_credit_desk) == []


def test_the_desk_is_notified_of_a_loan_that_lapses() -> None:
    run = answered().run(approve_loan, SMALL)
    assert (run.output, run.ended) == ("lapsed", hours(48))
    assert run.calls_of(tell_credit_desk)[-1].arguments == {
        "text": "loan L1 lapsed: not decided within 48 hours"
    }


# -- by two of three -------------------------------------------------------------------------------


def test_two_of_three_are_enough_for_a_large_loan() -> None:
    run = answered((OFFICER, YES, hours(2)), (HEAD, YES, hours(5))).run(approve_loan, LARGE)
    assert (run.output, run.ended) == ("approved", hours(5))


def test_the_second_no_of_two_rejects_a_large_loan() -> None:
    run = answered((RISK, YES, hours(2)), (HEAD, NO, hours(5))).run(approve_loan, LARGE)
    assert (run.output, run.ended) == ("rejected", hours(5))


def test_one_pair_of_eyes_is_not_enough_for_a_large_loan() -> None:
    run = answered((OFFICER, YES, hours(2))).run(approve_loan, LARGE)
    assert (run.output, run.ended) == ("lapsed", hours(48))


def test_one_is_enough_up_to_the_limit() -> None:
    loan = LARGE.model_copy(update={"cents": FOUR_EYES_ABOVE_CENTS})
    run = answered((MANAGER, YES, hours(2))).run(approve_loan, loan)
    assert (run.output, run.ended) == ("approved", hours(2))


# -- the money -------------------------------------------------------------------------------------


def test_a_loan_whose_account_is_closed_is_undone_in_reverse() -> None:
    world = World(
        {collect_from: AccountClosed("closed"), assess: Risk(score=90, reasons=[])}, others=real
    )
    run = world.run(approve_loan, SMALL)
    assert run.output == "rejected: account"
    assert run.steps == [*CHECKS, *PAID, "recall", "give_up", "tell_credit_desk"]
    assert run.calls_of(recall)[0].arguments == {"transfer": "transfer-L1"}


def test_a_bank_that_is_down_for_a_moment_is_asked_again() -> None:
    outcomes = {
        assess: Risk(score=90, reasons=[]),
        pay_out: fails(BankUnavailable("down"), times=3, then=real),
    }
    run = World(outcomes, others=real).run(approve_loan, SMALL)
    assert run.output == "approved"
    assert [call.attempt for call in run.calls_of(pay_out)] == [1, 2, 3, 4]


def test_a_bank_that_stays_down_fails_the_loan_and_frees_the_money() -> None:
    outcomes = {assess: Risk(score=90, reasons=[]), pay_out: BankUnavailable("down")}
    run = World(outcomes, others=real).run(approve_loan, SMALL)
    assert (run.status, run.error, run.steps[-1]) == ("FAILED", "BankUnavailable", "give_up")


def test_a_loan_that_is_stopped_while_it_is_paid_is_taken_back() -> None:
    outcomes = {
        assess: Risk(score=90, reasons=[]),
        collect_from: takes(seconds(20), real),
    }
    world = World(outcomes, others=real)
    world.stop(at=seconds(5))
    run = world.run(approve_loan, SMALL)
    assert (run.status, run.steps[-2:]) == ("ABORTED", ["recall", "give_up"])


@pytest.mark.parametrize("loan", [SMALL, LARGE])
def test_a_loan_that_is_stopped_while_people_decide_pays_nothing(loan: Loan) -> None:
    world = World(others=real)
    world.stop(at=hours(30))
    run = world.run(approve_loan, loan)
    assert run.status == "ABORTED"
    assert "set_aside" not in run.steps


def test_approve_loan_behaves_as_its_python() -> None:
    assert check_workflow(approve_loan, examples=worlds(60))["SUCCEEDED"] > 0


@pytest.mark.parametrize("score", [50, 90])
def test_a_loan_that_people_decide_behaves_as_its_python(score: int) -> None:
    outcomes = {
        verify_identity: True,
        credit_history: [],
        assess: Risk(score=score, reasons=[]),
    }
    assert check_workflow(approve_loan, examples=worlds(60), outcomes=outcomes)["SUCCEEDED"] > 0
