"""Open the accounts of one person, system by system; if one cannot be opened, none is left.

A workflow of its own, because more than one asks for it: `hr_onboarding` calls it as a child, and
whoever is given a new role starts it by hand.
"""

from __future__ import annotations

import logging

from pydantic import BaseModel

from holdfast import Retry, TaskError, compensating, minutes, task, task_context, workflow

_outside = logging.getLogger("accounts")


class Person(BaseModel):
    id: str
    name: str
    team: str


class Account(BaseModel):
    system: str
    login: str


class UnknownSystem(TaskError):
    """Nobody has heard of this system."""


class SystemBusy(TaskError):
    """The system is down for maintenance; the next attempt may succeed."""


SYSTEMS = frozenset({"directory", "mail", "chat", "payroll", "repositories", "vpn"})


@task(timeout=minutes(2), retry=Retry(max_attempts=4, interval=minutes(5), on=(SystemBusy,)))
def open_account(person: Person, system: str) -> Account:
    """The simulated company makes the login of the name: `grace.hopper` for Grace Hopper."""
    if system not in SYSTEMS:
        raise UnknownSystem(f"there is no system {system}")
    account = Account(system=system, login=".".join(person.name.lower().split()))
    _log(f"open {account.login} in {system} for {person.team}")
    return account


@task(timeout=minutes(2), retry=Retry(max_attempts=6, interval=minutes(1)))
def close_account(account: Account) -> None:
    _log(f"close {account.login} in {account.system}")


@workflow(name="provision_accounts")
def provision_accounts(person: Person, systems: list[str]) -> list[Account]:
    """Raises UnknownSystem, or SystemBusy when the patience is over: then nothing is open."""
    accounts: list[Account] = []
    with compensating() as undo:
        for system in systems:
            account = open_account(person, system)
            undo(close_account, account)
            accounts.append(account)
    return accounts


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
