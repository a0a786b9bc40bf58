"""The orders of the shop: their ends, the done and undone steps, and the bank's answers."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import TaskContext, TaskError, days
from holdfast.api.surface import running_task
from holdfast.testing import Call, Run, World, check_workflow, real
from statemachines import shop
from statemachines.bank import bank_messages
from statemachines.fates import PENDING, Fate, fate_of
from statemachines.order_fulfilment import fulfil
from statemachines.orders import read_orders
from statemachines.shop import (
    LABEL_CHARACTERS,
    Line,
    Order,
    Outcome,
    charge,
    pack,
    payment_id_of,
    ship,
)
from tests.thorough import worlds

DATA = Path(__file__).parents[3].parent / "shared" / "data"
SAMPLE = Path(__file__).parents[3] / "statemachines" / "orders-sample.jsonl"

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


def run_order(order: Order) -> Run[Outcome]:
    world = World(others=real)
    for message in bank_messages(order):
        at = timedelta(seconds=message.delay_seconds)
        world.send(message.name, message.data, key=message.key, at=at)
    return world.run(fulfil, order)


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
    run = run_order(order_of(line("LH01"), line("GL77")))
    assert run.output == Outcome(
        order_id="700100", status="shipped", reason="shipped", tracking="track-700100"
    )
    assert run.steps == ["reserve", "charge", "pack", "pack", "ship", "notify"]


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
def test_an_order_that_cannot_be_sold_is_refused_with_its_reason_before_anything_is_done(
    order: Order, reason: str
) -> None:
    run = run_order(order)
    assert run.output == Outcome(order_id=order.id, status="refused", reason=reason)
    assert run.calls == []


def test_a_missing_customer_is_a_guest_and_is_fulfilled() -> None:
    run = run_order(order_of(customer_id=None))
    assert run.output.reason == "shipped"
    assert run.calls_of(charge)[0].arguments["customer"] == "guest"


@pytest.mark.parametrize("sku", ["POST", "DOT", "D", "M", "C2", "BANK CHARGES"])
def test_services_are_charged_but_not_packed(sku: str) -> None:
    run = run_order(order_of(line(qty=2, unit_pence=450), line(sku, 1, 350)))
    assert run.output.reason == "shipped"
    (charged,) = run.calls_of(charge)
    assert charged.arguments == {"order_id": "700100", "customer": "4001", "pence": 1250}
    assert [call.arguments["line"]["sku"] for call in run.calls_of(pack)] == ["LH01"]


def test_a_discount_line_lowers_the_total_and_is_no_return() -> None:
    run = run_order(order_of(line(qty=2, unit_pence=450), line("D", -1, 350)))
    assert run.output.reason == "shipped"
    assert run.calls_of(charge)[0].arguments["pence"] == 550


def test_an_order_of_services_alone_is_charged_and_nothing_is_undone() -> None:
    run = run_order(order_of(line("BANK CHARGES", 1, 1500)))
    assert run.output == Outcome(order_id="700100", status="charged", reason="nothing_to_pack")
    assert run.steps == ["reserve", "charge"]


def test_the_same_article_twice_is_packed_twice_each_with_its_own_label() -> None:
    run = run_order(order_of(line("LH01"), line("LH01")))
    labels = [parcel["label"] for parcel in run.calls_of(ship)[0].arguments["parcels"]]
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
def test_a_failed_order_undoes_its_steps_in_reverse(
    fate: Fate, reason: str, undone: list[str]
) -> None:
    run = run_order(order_of(order_id=id_with(fate)))
    assert (run.output.status, run.output.reason, run.output.tracking) == ("failed", reason, None)
    assert run.steps[-len(undone) - 1 :] == [*undone, "turn_down"]


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
    run = run_order(order_of(order_id=id_with(fate)))
    assert run.output.reason == "shipped"
    assert run.ended == waited


@pytest.mark.parametrize(
    ("fate", "task", "attempts"), [(Fate.BANK_DOWN, "charge", 2), (Fate.CARRIER_BUSY, "ship", 3)]
)
def test_a_transient_error_is_retried_until_it_passes(fate: Fate, task: str, attempts: int) -> None:
    run = run_order(order_of(order_id=id_with(fate)))
    assert run.output.reason == "shipped"
    assert len(run.calls_of(task)) == attempts


def test_an_attempt_that_runs_twice_gives_the_same_answer_twice() -> None:
    for request in read_orders(SAMPLE).requests:
        for call in run_order(request.order).calls:
            if call.kind == "task":
                assert attempted(call) == attempted(call)


def attempted(call: Call) -> str:
    """Return the outcome of an attempt as text: the task's answer, or its error."""
    context = TaskContext("run", None, "", call.name, call.attempt, "key")
    with running_task(context):
        try:
            return f"{getattr(shop, call.name).call_json(call.arguments)}"
        except TaskError as error:
            return f"{type(error).__name__}: {error}"


def test_fulfil_does_what_its_python_does() -> None:
    assert check_workflow(fulfil, examples=worlds(60))["SUCCEEDED"] > 0


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
        run = run_order(request.order)
        assert run.output.order_id == request.name
        reasons[run.output.reason] += 1
        if "charge" in run.steps:
            fates.add(fate_of(request.name))
    return reasons, fates


def test_the_sample_shows_every_outcome_and_every_fate() -> None:
    reasons, fates = reasons_and_fates(SAMPLE)
    assert reasons.total() == 24
    assert (set(reasons), fates) == (REASONS, set(Fate))


@pytest.mark.slow
def test_the_first_real_day_ships_most_orders_and_shows_every_fate() -> None:
    reasons, fates = reasons_and_fates(DATA / "orders-2010-12-01.jsonl")
    assert reasons.total() == 143
    assert reasons["cancellation"] == 6
    assert reasons["return"] == 1
    assert reasons["non_positive_total"] == 9
    assert reasons["shipped"] >= 100
    assert (set(reasons), fates) == (REASONS - {"nothing_to_pack"}, set(Fate))


@pytest.mark.slow
def test_the_second_real_day_shows_every_outcome_and_every_fate() -> None:
    reasons, fates = reasons_and_fates(DATA / "orders-2010-12-02.jsonl")
    assert reasons.total() == 167
    assert reasons["cancellation"] == 23
    assert reasons["nothing_to_pack"] == 1
    assert (set(reasons), fates) == (REASONS, set(Fate))
