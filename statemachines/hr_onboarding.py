"""Bring a new colleague on board: contract, accounts, laptop, first week, buddy, first day.

The candidate may withdraw at any time before the first day: whatever was done is then taken back.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from pydantic import AwareDatetime, BaseModel

from holdfast import (
    BlockTimeout,
    Retry,
    TaskError,
    WaitTimeout,
    ask,
    compensating,
    days,
    each,
    first,
    minutes,
    parallel,
    pure,
    role,
    sleep_until,
    task,
    task_context,
    timeout,
    wait_for_event,
    workflow,
)
from statemachines.provision_accounts import (
    Account,
    Person,
    SystemBusy,
    UnknownSystem,
    provision_accounts,
)

EQUIPMENT_DAYS_BEFORE: Final = 3
"""A laptop that is not there by then is replaced by one from the shelf."""

_outside = logging.getLogger("people")


class NewHire(BaseModel):
    person: Person
    manager: str
    nominees: tuple[str, str, str]
    """Three colleagues who are asked to be a buddy: the first two who volunteer are."""
    systems: list[str]
    starts_at: AwareDatetime


class Signature(BaseModel):
    signed_at: str


class Delivery(BaseModel):
    serial_number: str


class Withdrawal(BaseModel):
    reason: str


class FirstWeek(BaseModel):
    plan: str


class Workplace(BaseModel):
    desk: str


class Volunteer(BaseModel):
    name: str


class Outcome(BaseModel):
    person_id: str
    status: str
    """ "started", or why not: "withdrawn", "not_signed", "no_accounts"."""
    reason: str = ""
    laptop: str | None = None
    buddies: list[str] = []


class NotSigned(TaskError):
    """The contract came back neither in time nor after a reminder."""


@task(timeout=minutes(1))
def send_contract(person: Person) -> str:
    """-> the contract's number."""
    contract = f"contract-{person.id}"
    _log(f"send {contract} to {person.name}")
    return contract


@task(timeout=minutes(1))
def remind_of_contract(contract: str) -> None:
    _log(f"remind of {contract}")


@task(timeout=minutes(1), retry=Retry(max_attempts=5))
def void_contract(contract: str) -> None:
    _log(f"void {contract}")


@task(timeout=minutes(1), retry=Retry(max_attempts=5))
def close_accounts(accounts: list[Account]) -> None:
    for account in accounts:
        _log(f"close {account.login} in {account.system}")


@task(timeout=minutes(1))
def order_laptop(person: Person) -> str:
    """-> the order's number."""
    order = f"laptop-{person.id}"
    _log(f"order {order}")
    return order


@task(timeout=minutes(1), retry=Retry(max_attempts=5))
def take_laptop_back(order: str) -> None:
    """Cancels the order, sends back what was delivered, and frees the one from the shelf."""
    _log(f"take {order} back")


@task(timeout=minutes(1))
def lend_laptop(order: str) -> str:
    """-> the serial number of one from the shelf; the ordered one replaces it when it comes."""
    _log(f"lend a laptop for {order}")
    return f"shelf-{order}"


@task(timeout=minutes(1))
def name_buddies(person: Person, buddies: list[str]) -> None:
    _log(f"{' and '.join(buddies)} look after {person.name}")


@task(timeout=minutes(1))
def tell(somebody: str, text: str) -> None:
    _log(f"tell {somebody}: {text}")


@pure
def equipment_due(starts_at: datetime) -> datetime:
    return starts_at - timedelta(days=EQUIPMENT_DAYS_BEFORE)


@workflow(name="hr_onboarding", timeout=days(180))
def onboard(hire: NewHire) -> Outcome:
    person = hire.person

    def withdrawn() -> Outcome:
        withdrawal = wait_for_event("candidate.withdrew", Withdrawal, key=person.id)
        return Outcome(person_id=person.id, status="withdrawn", reason=withdrawal.reason)

    def prepared() -> Outcome:
        with compensating() as undo:
            contract = send_contract(person)
            undo(void_contract, contract)
            for reminders in range(2):
                try:
                    wait_for_event("contract.signed", Signature, key=contract, timeout=days(7))
                    break
                except WaitTimeout:
                    if reminders == 0:
                        remind_of_contract(contract)
            else:
                raise NotSigned(f"{contract} was not signed within 14 days")

            accounts = provision_accounts(person, hire.systems)
            undo(close_accounts, accounts)
            order = order_laptop(person)
            undo(take_laptop_back, order)
            due = equipment_due(hire.starts_at)

            def overdue() -> None:
                sleep_until(due)

            def laptop() -> str:
                delivery = first(
                    lambda: wait_for_event("laptop.delivered", Delivery, key=order), overdue
                )
                if delivery is None:
                    return lend_laptop(order)
                return delivery.serial_number

            def first_week() -> str:
                try:
                    with timeout(days(10)):
                        week = ask(
                            f"Plan the first week of {person.name}",
                            FirstWeek,
                            assignee=hire.manager,
                        )
                        tell(person.name, f"your first week: {week.plan}")
                        return week.plan
                except BlockTimeout:
                    tell(hire.manager, f"{person.name} gets the usual first week")
                    return "the usual"

            def workplace() -> str:
                try:
                    with timeout(days(3)):
                        place = ask(
                            f"Set up a desk for {person.name}",
                            Workplace,
                            assignee=role("it"),
                            details={"logins": accounts},
                        )
                        return place.desk
                except BlockTimeout:
                    tell(role("it"), f"{person.name} has no desk yet: any free one will do")
                    return "any"

            def buddies() -> list[str]:
                question = f"Will you look after {person.name}?"
                try:
                    volunteers = each(
                        hire.nominees,
                        lambda name: ask(question, Volunteer, assignee=name, timeout=days(5)),
                        at_least=2,
                    )
                    found = [one.name for one in volunteers if one is not None]
                except WaitTimeout:
                    found = [hire.manager]
                name_buddies(person, found)
                return found

            serial_number, looked_after_by, _, _ = parallel(laptop, buddies, first_week, workplace)
            sleep_until(hire.starts_at)
            tell(person.name, "welcome")
        return Outcome(
            person_id=person.id,
            status="started",
            laptop=serial_number,
            buddies=looked_after_by,
        )

    try:
        outcome = first(prepared, withdrawn)
    except NotSigned as err:
        outcome = Outcome(person_id=person.id, status="not_signed", reason=str(err))
    except (UnknownSystem, SystemBusy) as err:
        outcome = Outcome(person_id=person.id, status="no_accounts", reason=str(err))
    if outcome.status != "started":
        tell(hire.manager, f"{person.name} does not start: {outcome.status}")
    return outcome


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
