"""Approve a loan: checks side by side, then a decision by rule or, in between, by people.

People have 48 hours. One of them is enough for a small loan, and after a day the head of the desk
is asked beside the manager; a large loan takes two pairs of eyes.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from pydantic import BaseModel

from holdfast import (
    BlockTimeout,
    Retry,
    TaskError,
    ask,
    compensating,
    each,
    first,
    hours,
    minutes,
    parallel,
    role,
    sleep,
    task,
    task_context,
    timeout,
    workflow,
)

MONTHS_LOOKED_AT: Final = 12
FRAUD_REGISTER: Final = frozenset({"Mallory Finch"})
FOUR_EYES_ABOVE_CENTS: Final = 40_000_000
DECISION_HOURS: Final = 48
ESCALATION_HOURS: Final = 24

_outside = logging.getLogger("loans")


class Loan(BaseModel):
    id: str
    applicant: str
    cents: int


class Risk(BaseModel):
    score: int
    """0 is certain loss, 100 is certain repayment."""
    reasons: list[str]


class Decision(BaseModel):
    approved: bool
    note: str = ""


class AccountClosed(TaskError):
    """The applicant's account takes no money."""


class BankUnavailable(TaskError):
    """The bank could not be reached; the next attempt may succeed."""


@task(timeout=minutes(1), idempotent=True)
def verify_identity(applicant: str) -> bool:
    """The simulated register knows everybody by a first name and a surname."""
    return len(applicant.split()) >= 2


@task(timeout=minutes(5), idempotent=True)
def credit_history(applicant: str) -> list[int]:
    """Days late, month by month; the simulated credit bureau derives them from the name."""
    digest = hashlib.shake_256(applicant.encode()).digest(MONTHS_LOOKED_AT)
    return [max(0, byte - 200) for byte in digest]


@task(timeout=minutes(1), idempotent=True)
def assess(loan: Loan, history: list[int]) -> Risk:
    late_months = sum(1 for days_late in history if days_late > 0)
    reasons = [f"late in {late_months} of {len(history)} months"] if late_months else []
    if loan.applicant in FRAUD_REGISTER:
        reasons.append("fraud")
    return Risk(score=max(0, 100 - 12 * late_months - loan.cents // 1_000_000), reasons=reasons)


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def set_aside(loan_id: str, cents: int) -> None:
    """Takes the money out of what else may be lent."""
    _log(f"set {cents} cents aside for loan {loan_id}")


@task(timeout=minutes(1), retry=Retry(max_attempts=8, on=(BankUnavailable,)))
def give_up(loan_id: str) -> None:
    _log(f"lend what was set aside for loan {loan_id} to others")


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def pay_out(loan_id: str, cents: int) -> str:
    """-> the bank's number of the transfer."""
    _log(f"pay {cents} cents for loan {loan_id}")
    return f"transfer-{loan_id}"


@task(timeout=minutes(1), retry=Retry(max_attempts=8, on=(BankUnavailable,)))
def recall(transfer: str) -> None:
    _log(f"recall {transfer}")


@task(timeout=minutes(1), retry=Retry(max_attempts=4, on=(BankUnavailable,)))
def collect_from(loan_id: str, applicant: str) -> None:
    """The instalments; an applicant whose account takes none gets no loan."""
    _log(f"collect the instalments of loan {loan_id} from {applicant}")


@task(timeout=minutes(1), retry=Retry(max_attempts=5))
def tell_credit_desk(text: str) -> None:
    _log(f"tell the credit desk: {text}")


@workflow(name="loan_approval")
def approve_loan(loan: Loan) -> str:
    known, history = parallel(
        lambda: verify_identity(loan.applicant),
        lambda: credit_history(loan.applicant),
    )
    if not known:
        return "rejected: identity"
    risk = assess(loan, history)
    if risk.score >= 80 and loan.cents <= 1_000_000:
        approved = True
    elif risk.score < 20 or "fraud" in risk.reasons:
        approved = False
    else:
        title = f"Approve loan {loan.id}"
        details = {"loan": loan, "risk": risk}

        def decision_of(desk: str) -> Decision:
            return ask(title, Decision, assignee=role(desk), details=details)

        def head_is_asked_later() -> Decision:
            sleep(hours(ESCALATION_HOURS))
            tell_credit_desk(f"loan {loan.id} has waited {ESCALATION_HOURS} hours for a decision")
            return ask(title, Decision, assignee=role("head_of_credit"), details=details)

        try:
            with timeout(hours(DECISION_HOURS)):
                if loan.cents <= FOUR_EYES_ABOVE_CENTS:
                    decision = first(lambda: decision_of("credit_manager"), head_is_asked_later)
                    approved = decision.approved
                else:
                    desks = ["credit_officer", "risk_officer", "head_of_credit"]
                    decisions = each(desks, decision_of, at_least=2)
                    approved = all(one.approved for one in decisions if one is not None)
        except BlockTimeout:
            tell_credit_desk(f"loan {loan.id} lapsed: not decided within {DECISION_HOURS} hours")
            return "lapsed"
    if not approved:
        return "rejected"
    try:
        with compensating() as undo:
            set_aside(loan.id, loan.cents)
            undo(give_up, loan.id)
            transfer = pay_out(loan.id, loan.cents)
            undo(recall, transfer)
            collect_from(loan.id, loan.applicant)
    except AccountClosed:
        tell_credit_desk(f"loan {loan.id} was taken back: the applicant's account is closed")
        return "rejected: account"
    return "approved"


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
