"""The shipped workflows, each run both as plain Python and compiled (see `worlds`)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import days, hours
from holdfast.dsl.registry import Registry
from statemachines.bank import bank_messages
from statemachines.document_signing import Signature, sign_document
from statemachines.fates import PENDING, Fate, fate_of
from statemachines.loan_approval import Decision, Loan, approve_loan
from statemachines.order_fulfilment import fulfil
from statemachines.orders import read_orders
from statemachines.shop import LABEL_CHARACTERS, Line, Order, Outcome, Parcel, payment_id_of
from tests.unit.worlds import MODULES, Arrival, World, run_both

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SAMPLE = Path(__file__).parents[2] / "statemachines" / "orders-sample.jsonl"

REASONS = {
    "shipped",
    "nothing_to_pack",
    "cancellation",
    "return",
    "non_positive_total",
    "card_declined",
    "payment_not_settled",
    "payment_timed_out",
    "out_of_stock",
}


def run_order(order: Order) -> tuple[Outcome, World]:
    messages = [
        Arrival(timedelta(seconds=m.delay_seconds), m.event_id, m.key, m.data)
        for m in bank_messages(order)
    ]
    world = run_both(fulfil, order, arrivals=messages)
    return world.results[-1], world


def order_of(*lines: Line, order_id: str = "700100", customer_id: str | None = "4001") -> Order:
    return Order(
        id=order_id,
        placed_at="2026-03-02 09:00:00",
        customer_id=customer_id,
        country="Norway",
        lines=list(lines) or [line()],
    )


def line(sku: str = "LH01", qty: int = 2, unit_pence: int = 450) -> Line:
    return Line(sku=sku, qty=qty, unit_pence=unit_pence)


def id_with(fate: Fate) -> str:
    return next(str(number) for number in range(700_100, 700_200) if fate_of(str(number)) is fate)


# -- Order fulfilment ------------------------------------------------------------------------------


def test_a_plain_order_is_reserved_charged_packed_and_shipped() -> None:
    outcome, world = run_order(order_of(line("LH01"), line("GL77")))
    assert outcome == Outcome(
        order_id="700100", status="shipped", reason="shipped", tracking="track-700100"
    )
    assert world.steps == ["reserve", "charge", "pack", "pack", "ship", "notify"]


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (order_of(line(qty=-1), order_id="C700100"), "cancellation"),
        (order_of(line("D", qty=-1), order_id="C700107"), "cancellation"),
        (order_of(line(qty=5), line(qty=-1)), "return"),
        (order_of(line(qty=-10, unit_pence=0)), "return"),
        (order_of(line(unit_pence=0)), "non_positive_total"),
        (order_of(line(unit_pence=-5)), "non_positive_total"),
        (order_of(line(qty=1, unit_pence=450), line("D", -1, 450)), "non_positive_total"),
        (order_of().model_copy(update={"lines": []}), "non_positive_total"),
    ],
)
def test_what_cannot_be_sold_is_refused_with_its_reason_before_anything_is_done(
    order: Order, reason: str
) -> None:
    outcome, world = run_order(order)
    assert outcome == Outcome(order_id=order.id, status="refused", reason=reason)
    assert world.calls == []


def test_a_missing_customer_is_a_guest_and_is_fulfilled() -> None:
    outcome, world = run_order(order_of(customer_id=None))
    assert outcome.reason == "shipped"
    assert world.calls[1][1]["customer"] == "guest"


@pytest.mark.parametrize("sku", ["POST", "DOT", "D", "M", "C2", "BANK CHARGES"])
def test_services_are_charged_but_not_packed(sku: str) -> None:
    outcome, world = run_order(order_of(line(qty=2, unit_pence=450), line(sku, 1, 350)))
    assert outcome.reason == "shipped"
    assert world.calls[1] == (
        "charge",
        {"order_id": "700100", "customer": "4001", "pence": 1250},
    )
    assert [arguments["line"]["sku"] for name, arguments in world.calls if name == "pack"] == [
        "LH01"
    ]


def test_a_discount_line_lowers_the_total_and_is_no_return() -> None:
    outcome, world = run_order(order_of(line(qty=2, unit_pence=450), line("D", -1, 350)))
    assert outcome.reason == "shipped"
    assert world.calls[1][1]["pence"] == 550


def test_an_order_of_services_alone_is_charged_and_nothing_is_undone() -> None:
    outcome, world = run_order(order_of(line("BANK CHARGES", 1, 1500)))
    assert outcome == Outcome(order_id="700100", status="charged", reason="nothing_to_pack")
    assert world.steps == ["reserve", "charge"]


def test_the_same_article_twice_is_packed_twice_each_with_its_own_label() -> None:
    _, world = run_order(order_of(line("LH01"), line("LH01")))
    labels = [result.label for result in world.results if isinstance(result, Parcel)]
    assert len(set(labels)) == 2
    assert {len(label.encode()) for label in labels} == {LABEL_CHARACTERS}


@pytest.mark.parametrize(
    ("fate", "reason", "undone"),
    [
        (Fate.DECLINED, "card_declined", ["release"]),
        (Fate.UNSETTLED, "payment_not_settled", ["refund", "release"]),
        (Fate.LATE, "payment_timed_out", ["refund", "release"]),
        (Fate.SILENT, "payment_timed_out", ["refund", "release"]),
        (Fate.OUT_OF_STOCK, "out_of_stock", ["refund", "release"]),
    ],
)
def test_a_failed_order_undoes_what_was_done_in_reverse(
    fate: Fate, reason: str, undone: list[str]
) -> None:
    outcome, world = run_order(order_of(order_id=id_with(fate)))
    assert (outcome.status, outcome.reason, outcome.tracking) == ("failed", reason, None)
    assert world.steps[-len(undone) - 1 :] == [*undone, "turn_down"]


@pytest.mark.parametrize(
    ("fate", "waited"),
    [
        (Fate.PLAIN, timedelta(0)),
        (Fate.EARLY, timedelta(0)),
        (Fate.MINUTES, timedelta(minutes=4)),
        (Fate.HOURS, timedelta(hours=5)),
        (Fate.DAYS, timedelta(days=2)),
        (Fate.TWICE, timedelta(minutes=30)),
    ],
)
def test_a_confirmed_payment_is_shipped_as_soon_as_the_bank_says_so(
    fate: Fate, waited: timedelta
) -> None:
    outcome, world = run_order(order_of(order_id=id_with(fate)))
    assert outcome.reason == "shipped"
    assert world.now == waited


@pytest.mark.parametrize(
    ("fate", "task", "attempts"), [(Fate.BANK_DOWN, "charge", 2), (Fate.CARRIER_BUSY, "ship", 3)]
)
def test_a_transient_error_is_retried_until_it_passes(fate: Fate, task: str, attempts: int) -> None:
    outcome, world = run_order(order_of(order_id=id_with(fate)))
    assert outcome.reason == "shipped"
    assert world.attempts[task] == attempts


# -- The bank --------------------------------------------------------------------------------------


def test_every_fate_comes_up_in_any_hundred_order_numbers() -> None:
    for first in (700_100, 536_365):
        fates = Counter(fate_of(str(number)) for number in range(first, first + 100))
        assert set(fates) == set(Fate)


@pytest.mark.parametrize("order_id", ["", "A", "7", "order ²²", "9" * 5000])
def test_any_id_has_a_fate(order_id: str) -> None:
    assert fate_of(order_id) in Fate


@pytest.mark.parametrize("fate", Fate)
def test_the_bank_speaks_only_of_pending_payments(fate: Fate) -> None:
    order = order_of(order_id=id_with(fate))
    messages = bank_messages(order)
    assert bool(messages) == (fate in PENDING - {Fate.SILENT})
    assert {message.key for message in messages} <= {payment_id_of(order.id)}
    assert [m.delay_seconds for m in messages] == sorted(m.delay_seconds for m in messages)


def test_a_repeated_message_keeps_its_event_id() -> None:
    first, second = bank_messages(order_of(order_id=id_with(Fate.TWICE)))
    assert first.event_id == second.event_id
    assert first.delay_seconds < second.delay_seconds


def test_a_late_message_comes_after_the_patience_of_the_workflow() -> None:
    (message,) = bank_messages(order_of(order_id=id_with(Fate.LATE)))
    assert message.delay_seconds > days(3).total_seconds()


def test_an_order_that_is_never_charged_never_reaches_the_bank() -> None:
    assert bank_messages(order_of(line(qty=-1), order_id=f"C{id_with(Fate.MINUTES)}")) == []


# -- Whole days ------------------------------------------------------------------------------------


def reasons_and_fates(path: Path) -> tuple[Counter[str], set[Fate]]:
    """How the orders of a file end, and which fates the charged ones among them had."""
    if not path.exists():
        pytest.skip(f"{path} is not here")
    reasons: Counter[str] = Counter()
    fates = set()
    for request in read_orders(path).requests:
        outcome, world = run_order(request.order)
        assert outcome.order_id == request.name
        reasons[outcome.reason] += 1
        if "charge" in world.steps:
            fates.add(fate_of(request.name))
    return reasons, fates


def test_the_sample_shows_every_outcome_and_every_fate() -> None:
    reasons, fates = reasons_and_fates(SAMPLE)
    assert reasons.total() == 24
    assert (set(reasons), fates) == (REASONS, set(Fate))


def test_the_first_real_day_ships_most_orders_and_shows_every_fate() -> None:
    reasons, fates = reasons_and_fates(DATA / "orders-2010-12-01.jsonl")
    assert reasons.total() == 143
    assert reasons["cancellation"] == 6
    assert reasons["return"] == 1
    assert reasons["non_positive_total"] == 9
    assert reasons["shipped"] >= 100
    assert (set(reasons), fates) == (REASONS - {"nothing_to_pack"}, set(Fate))


def test_the_second_real_day_shows_every_outcome_and_every_fate() -> None:
    reasons, fates = reasons_and_fates(DATA / "orders-2010-12-02.jsonl")
    assert reasons.total() == 167
    assert reasons["cancellation"] == 23
    assert reasons["nothing_to_pack"] == 1
    assert (set(reasons), fates) == (REASONS, set(Fate))


# -- Loan approval ---------------------------------------------------------------------------------

PUNCTUAL, UNPUNCTUAL = "Zoe Lane", "Max Wolf"  # late in one month of twelve, and in five


def run_loan(applicant: str, cents: int, *answers: Arrival) -> World:
    loan = Loan(id="L1", applicant=applicant, cents=cents)
    return run_both(approve_loan, loan, arrivals=list(answers))


@pytest.mark.parametrize(
    ("applicant", "cents", "outcome", "steps"),
    [
        ("Unknown", 500_000, "rejected: identity", ["verify_identity", "credit_history"]),
        (PUNCTUAL, 500_000, "approved", ["verify_identity", "credit_history", "assess", "pay_out"]),
        (UNPUNCTUAL, 30_000_000, "rejected", ["verify_identity", "credit_history", "assess"]),
        ("Mallory Finch", 500_000, "rejected", ["verify_identity", "credit_history", "assess"]),
    ],
)
def test_a_clear_case_is_decided_by_rule(
    applicant: str, cents: int, outcome: str, steps: list[str]
) -> None:
    world = run_loan(applicant, cents)
    assert (world.results[-1], world.steps, world.now) == (outcome, steps, timedelta(0))


@pytest.mark.parametrize(
    ("answered_after", "approved", "outcome", "last_step"),
    [
        (hours(1), True, "approved", "pay_out"),
        (hours(48), True, "approved", "pay_out"),
        (hours(1), False, "rejected", "assess"),
        (hours(49), True, "lapsed", "tell_credit_desk"),
    ],
)
def test_a_case_in_between_is_decided_by_a_person_within_48_hours(
    answered_after: timedelta, approved: bool, outcome: str, last_step: str
) -> None:
    decision = Decision(approved=approved).model_dump(mode="json")
    world = run_loan(UNPUNCTUAL, 500_000, Arrival(answered_after, "a1", None, decision))
    assert (world.results[-1], world.steps[-1]) == (outcome, last_step)


# -- Document signing ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signed_after", "outcome", "steps"),
    [
        (days(1), "signed", ["send_for_signature", "file_signature"]),
        (days(30), "signed", ["send_for_signature", "file_signature"]),
        (days(31), "signed", ["send_for_signature", "send_reminder", "file_signature"]),
        (days(38), "cancelled", ["send_for_signature", "send_reminder", "cancel_document"]),
    ],
)
def test_a_document_is_signed_in_time_or_cancelled_after_one_reminder(
    signed_after: timedelta, outcome: str, steps: list[str]
) -> None:
    signature = Signature(by="Ida Berg", at="2026-03-02T09:00:00Z").model_dump(mode="json")
    arrivals = [Arrival(signed_after, "s1", "D1", signature)]
    world = run_both(sign_document, "D1", arrivals=arrivals)
    assert (world.results[-1], world.steps) == (outcome, steps)


# -- All together ----------------------------------------------------------------------------------


def test_all_workflows_load_side_by_side() -> None:
    registry = Registry.from_modules(MODULES)
    assert set(registry.workflows) == {"order_fulfilment", "loan_approval", "document_signing"}
