"""A payment that the bank confirms later: the bank's answers, their times, and the voided
payments.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import TaskContext, hours, minutes, seconds, task_context
from holdfast.testing import World, check_workflow, fails, in_turn, never, takes
from statemachines.payment_confirmation import (
    INQUIRIES_MAX,
    PATIENCE_HOURS,
    AccountDeclined,
    BankUnavailable,
    LedgerClosed,
    Payment,
    Settlement,
    Verdict,
    authorise,
    book,
    confirm_payment,
    free_rest,
    inquire,
    void,
)
from tests.thorough import worlds

PAYMENT = Payment(id="p1", account="GB29", cents=10_000, cents_min=8_000)
SETTLED = Settlement(verdict=Verdict.SETTLED, cents=10_000)
NO_WORD = {inquire: None}


def test_a_payment_that_the_bank_confirms_is_booked() -> None:
    world = World(NO_WORD)
    world.send("bank.settlement", SETTLED, key="p1", at=hours(5))
    run = world.run(confirm_payment, PAYMENT)
    assert (run.output.status, run.output.cents, run.ended) == ("settled", 10_000, hours(5))
    assert run.steps == ["authorise", "bank.settlement", "book"]
    assert run.calls_of(authorise)[0].arguments == {
        "payment_id": "p1",
        "account": "GB29",
        "cents": 10_000,
    }


def test_a_confirmation_that_comes_before_the_authorisation_ends_is_kept() -> None:
    world = World({authorise: takes(seconds(30))})
    world.send("bank.settlement", SETTLED, key="p1", at=seconds(1))
    run = world.run(confirm_payment, PAYMENT)
    assert (run.output.status, run.ended) == ("settled", seconds(30))


def test_a_confirmation_that_comes_twice_is_booked_once() -> None:
    world = World({book: takes(seconds(30))})
    world.send("bank.settlement", SETTLED, key="p1", at=hours(1))
    world.send("bank.settlement", SETTLED, key="p1", at=hours(1) + seconds(10))
    run = world.run(confirm_payment, PAYMENT)
    assert run.output.status == "settled"
    assert len(run.calls_of(book)) == 1


def test_the_confirmation_of_another_payment_is_not_taken_for_this_one() -> None:
    world = World(NO_WORD)
    world.send("bank.settlement", SETTLED, key="p2", at=hours(1))
    assert world.run(confirm_payment, PAYMENT).output.status == "unconfirmed"


def test_a_silent_bank_is_asked_every_twelve_hours_and_may_have_decided() -> None:
    run = World({inquire: in_turn(None, None, SETTLED)}).run(confirm_payment, PAYMENT)
    assert (run.output.status, run.ended) == ("settled", hours(3 * PATIENCE_HOURS))
    assert [call.at for call in run.calls_of(inquire)] == [
        hours(PATIENCE_HOURS * n).total_seconds() for n in (1, 2, 3)
    ]


def test_a_confirmation_after_two_inquiries_counts() -> None:
    world = World(NO_WORD)
    world.send("bank.settlement", SETTLED, key="p1", at=hours(30))
    run = world.run(confirm_payment, PAYMENT)
    assert (run.output.status, run.ended, len(run.calls_of(inquire))) == ("settled", hours(30), 2)


def test_a_bank_that_never_decides_costs_the_payment_and_it_is_voided() -> None:
    run = World(NO_WORD).run(confirm_payment, PAYMENT)
    assert (run.output.status, run.ended) == ("unconfirmed", hours(72))
    assert run.output.reason == "no word from the bank after 6 inquiries"
    assert len(run.calls_of(inquire)) == INQUIRIES_MAX
    assert run.steps[-1] == "void"


def test_a_refusal_voids_the_payment_and_gives_the_reason() -> None:
    world = World(NO_WORD)
    refusal = Settlement(verdict=Verdict.REFUSED, reason="account frozen")
    world.send("bank.settlement", refusal, key="p1", at=hours(1))
    run = world.run(confirm_payment, PAYMENT)
    assert (run.output.status, run.output.reason) == ("refused", "account frozen")
    assert run.steps[-1] == "void"


def test_enough_of_a_payment_is_booked_and_the_rest_is_freed() -> None:
    settlement = Settlement(verdict=Verdict.SETTLED, cents=8_000)
    run = World({"bank.settlement": settlement}).run(confirm_payment, PAYMENT)
    assert (run.output.status, run.output.cents) == ("partial", 8_000)
    assert run.calls_of(free_rest)[0].arguments == {"payment_id": "p1", "cents": 2_000}
    assert run.calls_of(book)[0].arguments == {"payment_id": "p1", "cents": 8_000}


def test_too_little_is_given_back() -> None:
    settlement = Settlement(verdict=Verdict.SETTLED, cents=7_999)
    run = World({"bank.settlement": settlement}).run(confirm_payment, PAYMENT)
    assert (run.output.status, run.output.reason) == (
        "too_little",
        "7999 of 10000 cents came",
    )
    assert run.steps == ["authorise", "bank.settlement", "void"]


def test_a_declined_account_is_an_answer() -> None:
    run = World({authorise: AccountDeclined("no such account")}).run(confirm_payment, PAYMENT)
    assert (run.output.status, run.output.reason) == ("declined", "no such account")
    assert run.steps == ["authorise", "void"]


def test_a_bank_that_is_down_for_a_moment_is_asked_again_under_the_same_key() -> None:
    contexts: list[TaskContext] = []

    def down_once(payment_id: str, account: str, cents: int) -> None:
        contexts.append(task_context())
        if len(contexts) == 1:
            raise BankUnavailable("down")

    world = World({authorise: down_once, "bank.settlement": SETTLED})
    assert world.run(confirm_payment, PAYMENT).output.status == "settled"
    assert [context.attempt for context in contexts] == [1, 2]
    assert len({context.idempotency_key for context in contexts}) == 1


def test_an_authorisation_whose_answer_is_lost_is_voided() -> None:
    run = World({authorise: never}).run(confirm_payment, PAYMENT)
    assert (run.status, run.error, run.ended) == ("FAILED", "States.Timeout", minutes(1))
    assert run.steps == ["authorise", "void"]


def test_a_payment_that_cannot_be_booked_is_voided() -> None:
    world = World({"bank.settlement": SETTLED, book: LedgerClosed("at night")})
    run = world.run(confirm_payment, PAYMENT)
    assert (run.status, run.error) == ("FAILED", "LedgerClosed")
    assert run.steps == ["authorise", "bank.settlement", *["book"] * 4, "void"]


def test_a_void_that_fails_is_tried_again() -> None:
    world = World({authorise: never, void: fails(BankUnavailable("down"), times=7)})
    run = world.run(confirm_payment, PAYMENT)
    assert [call.attempt for call in run.calls_of(void)] == list(range(1, 9))
    assert run.error == "States.Timeout"


def test_a_void_that_never_succeeds_is_said_so() -> None:
    world = World({"bank.settlement": SETTLED, book: LedgerClosed, void: BankUnavailable("down")})
    assert world.run(confirm_payment, PAYMENT).error == "CompensationFailed"


@pytest.mark.parametrize("stopped", [hours(1), hours(13)])
def test_a_payment_that_is_stopped_while_the_bank_thinks_is_voided(stopped: timedelta) -> None:
    world = World(NO_WORD)
    world.stop(at=stopped)
    run = world.run(confirm_payment, PAYMENT)
    assert (run.status, run.steps[-1], run.ended) == ("ABORTED", "void", stopped)


def test_confirm_payment_behaves_as_its_python() -> None:
    ended = check_workflow(confirm_payment, examples=worlds(60))
    assert ended["SUCCEEDED"] > 0
