"""The shipped workflows, run directly as plain Python in a world with a clock but no waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Task, TaskContext, WaitTimeout, days, hours
from holdfast.dsl import surface
from holdfast.dsl.registry import Registry
from statemachines.bank import BankMessage, bank_messages
from statemachines.document_signing import Signature, sign_document
from statemachines.fates import PENDING, Fate, fate_of
from statemachines.loan_approval import Decision, Loan, approve_loan
from statemachines.order_fulfilment import fulfil
from statemachines.orders import read_orders
from statemachines.shop import LABEL_CHARACTERS, Line, Order, Outcome, Parcel, payment_id_of

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


@dataclass
class World:
    """Retries tasks as the engine does, and lets messages and answers come at their time."""

    messages: list[BankMessage] = field(default_factory=list)
    answers: list[tuple[timedelta, Any]] = field(default_factory=list)
    now_seconds: float = 0
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)
    results: list[Any] = field(default_factory=list)

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        self.calls.append((task.name, arguments))
        attempts_max = task.retry.max_attempts if task.retry else 1
        for attempt in range(1, attempts_max + 1):
            self.attempts[task.name] += 1
            context = TaskContext("run", None, "workflow", task.name, attempt, f"run/{task.name}")
            with surface.running_task(context):
                try:
                    result = task.function(**arguments)
                except Exception as error:
                    if task.retry and isinstance(error, task.retry.on) and attempt < attempts_max:
                        continue
                    raise
                assert task.function(**arguments) == result, "an attempt that runs twice differs"
            self.results.append(result)
            return result
        raise AssertionError(f"{task.name} was never attempted")

    def wait(
        self,
        kind: str,
        name: str,
        payload: type[Any],
        /,
        *,
        arguments: Mapping[str, Any],
        timeout_seconds: float | None,
    ) -> Any:
        assert timeout_seconds is not None
        coming = self.answers if kind == "ask" else self._coming(name, arguments["key"])
        until_seconds = self.now_seconds + timeout_seconds
        for delay, value in coming:
            if delay.total_seconds() <= until_seconds:
                self.now_seconds = max(self.now_seconds, delay.total_seconds())
                return value if kind == "ask" else payload.model_validate(value)
        self.now_seconds = until_seconds
        raise WaitTimeout("nobody answered")

    def sleep(self, seconds: float, /) -> None:
        self.now_seconds += seconds

    def _coming(self, name: str, key: str) -> list[tuple[timedelta, Any]]:
        sent = [m for m in self.messages if (m.name, m.key) == (name, key)]
        return [(timedelta(seconds=m.delay_seconds), m.data) for m in sent] + self.answers

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@contextmanager
def installed(world: World) -> Iterator[World]:
    token = surface.harness.set(world)
    try:
        yield world
    finally:
        surface.harness.reset(token)


def run_order(order: Order) -> tuple[Outcome, World]:
    with installed(World(bank_messages(order))) as world:
        return fulfil(order), world


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
    assert world.names() == ["reserve", "charge", "pack", "pack", "ship", "notify"]


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
    assert [arguments["line"].sku for name, arguments in world.calls if name == "pack"] == ["LH01"]


def test_a_discount_line_lowers_the_total_and_is_no_return() -> None:
    outcome, world = run_order(order_of(line(qty=2, unit_pence=450), line("D", -1, 350)))
    assert outcome.reason == "shipped"
    assert world.calls[1][1]["pence"] == 550


def test_an_order_of_services_alone_is_charged_and_nothing_is_undone() -> None:
    outcome, world = run_order(order_of(line("BANK CHARGES", 1, 1500)))
    assert outcome == Outcome(order_id="700100", status="charged", reason="nothing_to_pack")
    assert world.names() == ["reserve", "charge"]


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
    assert world.names()[-len(undone) - 1 :] == [*undone, "turn_down"]


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
    assert world.now_seconds == waited.total_seconds()


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


def outcomes_of(path: Path) -> Counter[str]:
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return Counter(run_order(request.order)[0].reason for request in read_orders(path))


def test_the_sample_shows_every_outcome() -> None:
    reasons = outcomes_of(SAMPLE)
    assert reasons.total() == 24
    assert set(reasons) == REASONS


def test_the_sample_shows_every_fate() -> None:
    charged = [r.order for r in read_orders(SAMPLE) if "charge" in run_order(r.order)[1].names()]
    assert {fate_of(order.id) for order in charged} == set(Fate)


def test_the_first_real_day_ships_most_orders_and_shows_every_fault() -> None:
    reasons = outcomes_of(DATA / "orders-2010-12-01.jsonl")
    assert reasons.total() == 143
    assert reasons["cancellation"] == 6
    assert reasons["return"] == 1
    assert reasons["non_positive_total"] == 9
    assert reasons["shipped"] >= 100
    assert set(reasons) == REASONS - {"nothing_to_pack"}


def test_the_second_real_day_shows_every_outcome() -> None:
    reasons = outcomes_of(DATA / "orders-2010-12-02.jsonl")
    assert reasons.total() == 167
    assert reasons["cancellation"] == 23
    assert reasons["nothing_to_pack"] == 1
    assert set(reasons) == REASONS


@pytest.mark.parametrize("day", ["2010-12-01", "2010-12-02"])
def test_every_fate_occurs_among_the_charged_orders_of_a_real_day(day: str) -> None:
    path = DATA / f"orders-{day}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    charged = [r.order for r in read_orders(path) if "charge" in run_order(r.order)[1].names()]
    assert {fate_of(order.id) for order in charged} == set(Fate)


# -- Loan approval ---------------------------------------------------------------------------------

PUNCTUAL, UNPUNCTUAL = "Zoe Lane", "Max Wolf"  # late in one month of twelve, and in five


def run_loan(applicant: str, cents: int, *answers: tuple[timedelta, Decision]) -> tuple[str, World]:
    with installed(World(answers=list(answers))) as world:
        return approve_loan(Loan(id="L1", applicant=applicant, cents=cents)), world


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
    result, world = run_loan(applicant, cents)
    assert (result, world.names(), world.now_seconds) == (outcome, steps, 0)


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
    result, world = run_loan(UNPUNCTUAL, 500_000, (answered_after, Decision(approved=approved)))
    assert (result, world.names()[-1]) == (outcome, last_step)


# -- Document signing ------------------------------------------------------------------------------


def run_document(*answers: timedelta) -> tuple[str, World]:
    signature = Signature(by="Ida Berg", at="2026-03-02T09:00:00Z").model_dump(mode="json")
    with installed(World(answers=[(delay, signature) for delay in answers])) as world:
        return sign_document("D1"), world


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
    result, world = run_document(signed_after)
    assert (result, world.names()) == (outcome, steps)


# -- All together ----------------------------------------------------------------------------------


def test_all_workflows_load_side_by_side() -> None:
    modules = ("order_fulfilment", "loan_approval", "document_signing")
    registry = Registry.from_modules(f"statemachines.{module}" for module in modules)
    assert set(registry.workflows) == {"order_fulfilment", "loan_approval", "document_signing"}
