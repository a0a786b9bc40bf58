"""Take a payment that the bank confirms later: authorise it, wait, ask the bank now and then.

The bank speaks of a payment by the shop's own number for it, so a confirmation that comes early is
kept until somebody waits for it, and one that comes twice finds nobody the second time.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Final

from pydantic import BaseModel

from holdfast import (
    Retry,
    TaskError,
    WaitTimeout,
    compensating,
    hours,
    minutes,
    task,
    task_context,
    wait_for_event,
    workflow,
)

PATIENCE_HOURS: Final = 12
"""How long the bank may be silent before it is asked."""
INQUIRIES_MAX: Final = 6

_outside = logging.getLogger("payments")


class Payment(BaseModel):
    id: str
    account: str
    cents: int
    cents_min: int
    """What is enough, should the account not give everything."""


class Verdict(Enum):
    SETTLED = "settled"
    REFUSED = "refused"


class Settlement(BaseModel):
    """What the bank says about a payment: `cents` came, perhaps less than was asked for."""

    verdict: Verdict
    cents: int = 0
    reason: str = ""


class Outcome(BaseModel):
    payment_id: str
    status: str
    """"settled" or "partial"; or voided: "declined", "refused", "too_little", "unconfirmed"."""
    cents: int = 0
    reason: str = ""


class AccountDeclined(TaskError):
    """The bank does not reserve this amount; asking again would not help."""


class Refused(TaskError):
    """The bank took its authorisation back."""


class TooLittle(TaskError):
    """Less came than is enough."""


class Unconfirmed(TaskError):
    """The bank did not decide in time."""


class BankUnavailable(TaskError):
    """The bank could not be reached; the next attempt may succeed."""


class LedgerClosed(TaskError):
    """The ledger takes no entries just now; the next attempt may succeed."""


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def authorise(payment_id: str, account: str, cents: int) -> None:
    if cents <= 0:
        raise AccountDeclined(f"{cents} cents cannot be paid")
    _log(f"authorise {cents} cents of {account} as {payment_id}")


@task(timeout=minutes(1), retry=Retry(max_attempts=8, on=(BankUnavailable,)))
def void(payment_id: str) -> None:
    """Frees what is reserved and gives back what came; there may be nothing."""
    _log(f"void {payment_id}")


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def inquire(payment_id: str) -> Settlement | None:
    """Asks the bank, which reminds it too; None: it has not decided yet."""
    _log(f"ask the bank about {payment_id}")
    return None


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def free_rest(payment_id: str, cents: int) -> None:
    _log(f"free the last {cents} cents of {payment_id}")


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(LedgerClosed,)))
def book(payment_id: str, cents: int) -> None:
    _log(f"book {cents} cents for {payment_id}")


@workflow(name="payment_confirmation")
def confirm_payment(payment: Payment) -> Outcome:
    try:
        with compensating() as undo:
            # Before, not after: an authorisation whose answer is lost has to be voided, too.
            undo(void, payment.id)
            authorise(payment.id, payment.account, payment.cents)
            settlement: Settlement | None = None
            for _ in range(INQUIRIES_MAX):
                try:
                    settlement = wait_for_event(
                        "bank.settlement",
                        Settlement,
                        key=payment.id,
                        timeout=hours(PATIENCE_HOURS),
                    )
                except WaitTimeout:
                    settlement = inquire(payment.id)
                if settlement is not None:
                    break
            if settlement is None:
                raise Unconfirmed(f"no word from the bank after {INQUIRIES_MAX} inquiries")
            if settlement.verdict is Verdict.REFUSED:
                raise Refused(settlement.reason)
            if settlement.cents < payment.cents_min:
                raise TooLittle(f"{settlement.cents} of {payment.cents} cents came")
            missing = payment.cents - settlement.cents
            if missing > 0:
                free_rest(payment.id, missing)
            book(payment.id, settlement.cents)
    except AccountDeclined as err:
        return Outcome(payment_id=payment.id, status="declined", reason=str(err))
    except Refused as err:
        return Outcome(payment_id=payment.id, status="refused", reason=str(err))
    except TooLittle as err:
        return Outcome(payment_id=payment.id, status="too_little", reason=str(err))
    except Unconfirmed as err:
        return Outcome(payment_id=payment.id, status="unconfirmed", reason=str(err))
    return Outcome(
        payment_id=payment.id,
        status="partial" if missing > 0 else "settled",
        cents=settlement.cents,
    )


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
