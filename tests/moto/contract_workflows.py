"""A workflow whose bank fails until `mend` is called, like an outage seen by a worker."""

from __future__ import annotations

from collections import Counter

from holdfast import TaskError, task, workflow

#: How often each task has run, in this process.
CALLS: Counter[str] = Counter()
_BANK = {"is_down": True}


class CardDeclined(TaskError):  # noqa: N818  # a word of the business
    """The bank is down."""


def break_down() -> None:
    CALLS.clear()
    _BANK["is_down"] = True


def mend() -> None:
    _BANK["is_down"] = False


@task
def reserve(contract: str) -> str:
    CALLS["reserve"] += 1
    return f"reserved {contract}"


@task
def charge(contract: str) -> int:
    CALLS["charge"] += 1
    if _BANK["is_down"]:
        raise CardDeclined(contract)
    return 500


@workflow
def contract_payment(contract: str) -> str:
    place = reserve(contract)
    cents = charge(contract)
    return f"{place}: {cents}"
