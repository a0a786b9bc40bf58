"""Workflows that reply to requests, for the test of a whole stack."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from holdfast import (
    BlockTimeout,
    RequestCancelled,
    TaskError,
    compensating,
    minutes,
    publish,
    receive,
    request,
    send,
    task,
    timeout,
    wait_for_event,
    workflow,
)


class Withdraw(BaseModel):
    kind: Literal["withdraw"] = "withdraw"
    cents: int


class Deposit(BaseModel):
    kind: Literal["deposit"] = "deposit"
    cents: int
    note: str


class Overdrawn(TaskError):  # noqa: N818
    pass


@task
def book(cents: int) -> int:
    return cents


@workflow(key="owner", starts_on="account")
def account(owner: str, balance: int = 0) -> int:
    while balance < 1_000:
        with receive("account", Deposit | Withdraw, key=owner) as request:
            asked: Deposit | Withdraw = request.data
            match asked:
                case Deposit(cents=cents):
                    balance += book(cents)
                    request.reply(balance)
                case Withdraw(cents=cents):
                    if cents > balance:
                        raise Overdrawn(f"only {balance} of {cents}")
                    balance -= book(cents)
                    publish("balance", balance)
                    request.reply({"left": balance, "id": request.id})
    return balance


@workflow
def divide(key: str) -> int:
    shares = 12
    for _ in range(3):
        with receive("divide", int, key=key) as request:
            if request.data == 0:
                request.reply(None)
                break
            request.reply(shares // (request.data - 1))
    return shares


@workflow
def gate(key: str) -> int:
    """A request and an event without data: the block that only raises rejects, and goes on."""
    with receive("close", None, key=key) as request:
        raise Overdrawn(request.id)
    wait_for_event("gate", None, key=key)
    return 1


@workflow
def buys(owner: str, cents: int) -> str:
    """Ask the account of the owner, and go on with its reply or with its refusal."""
    try:
        left: int | dict[str, int | str] = request(
            "account", Withdraw(cents=cents), key=owner, returns=int | dict[str, int | str]
        )
    except Overdrawn as error:
        return f"refused: {error}"
    return f"left: {left['left'] if isinstance(left, dict) else left}"


@workflow
def asks_for_text(owner: str) -> str:
    return request("account", Deposit(cents=1, note=""), key=owner, returns=str)


@workflow
def asks_at_most(owner: str) -> int:
    return request("divide", 2, key=owner, returns=int, timeout=minutes(5))


@workflow(key="name", starts_on="add")
def counter(name: str) -> None:
    total = 0
    while True:
        with receive("add", int, key=name) as asked:
            total += asked.data
            asked.reply(total)


@workflow
def adds(name: str, amount: int) -> int:
    return request("add", amount, key=name, returns=int)


@workflow(key="owner", starts_on="audit")
def audited(owner: str) -> int:
    """A request that takes a task of its own time, within a deadline of the workflow."""
    done = 0
    while True:
        try:
            with timeout(minutes(10)), compensating() as undo:
                undo(book, -1)
                with receive("audit", int, key=owner) as asked:
                    done += wait_for_event("audit.done", int, key=owner)
                    asked.reply(done)
        except BlockTimeout:
            publish("late", done)


@workflow
def audits(owner: str) -> str:
    try:
        return f"{request('audit', 1, key=owner, returns=int)} are done"
    except RequestCancelled as error:
        return f"cancelled: {error}"


@workflow
def payroll(owner: str, cents: int) -> None:
    send("account", Deposit(cents=cents, note="salary"), key=owner)


@workflow
def sends_to_itself(key: str) -> int:
    send("itself", 7, key=key)
    number = 0
    with receive("itself", int, key=key) as request:
        number = request.data
        request.reply(number + 1)
    return number
