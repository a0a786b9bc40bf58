"""Approve a loan: two checks side by side, then a decision by rule or, in between, by a person."""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from pydantic import BaseModel

from holdfast import WaitTimeout, ask, hours, parallel, role, task, task_context, workflow

MONTHS_LOOKED_AT: Final = 12
FRAUD_REGISTER: Final = frozenset({"Mallory Finch"})

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


@task
def verify_identity(applicant: str) -> bool:
    """The simulated register knows everybody by a first name and a surname."""
    return len(applicant.split()) >= 2


@task
def credit_history(applicant: str) -> list[int]:
    """Days late, month by month; the simulated credit bureau derives them from the name."""
    digest = hashlib.shake_256(applicant.encode()).digest(MONTHS_LOOKED_AT)
    return [max(0, byte - 200) for byte in digest]


@task
def assess(loan: Loan, history: list[int]) -> Risk:
    late_months = sum(1 for days_late in history if days_late > 0)
    reasons = [f"late in {late_months} of {len(history)} months"] if late_months else []
    if loan.applicant in FRAUD_REGISTER:
        reasons.append("fraud")
    return Risk(score=max(0, 100 - 12 * late_months - loan.cents // 1_000_000), reasons=reasons)


@task
def pay_out(loan_id: str, cents: int) -> None:
    key = task_context().idempotency_key
    _outside.info("pay %d cents for loan %s (idempotency key %s)", cents, loan_id, key)


@task
def tell_credit_desk(text: str) -> None:
    _outside.info("tell the credit desk: %s", text)


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
        try:
            decision = ask(
                f"Approve loan {loan.id}",
                Decision,
                assignee=role("credit_manager"),
                details={"loan": loan, "risk": risk},
                timeout=hours(48),
            )
            approved = decision.approved
        except WaitTimeout:
            tell_credit_desk(f"loan {loan.id} lapsed: nobody decided within 48 hours")
            return "lapsed"
    if approved:
        pay_out(loan.id, loan.cents)
    return "approved" if approved else "rejected"
