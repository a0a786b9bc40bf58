"""Calls of everything that a workflow is written with, and the type that each of them reveals."""
# pyright: strict

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import reveal_type

from pydantic import BaseModel

from holdfast import (
    AsyncClient,
    Batch,
    BatchJob,
    Client,
    Dag,
    Fargate,
    Lambda,
    Limit,
    Retry,
    Task,
    TaskError,
    Worker,
    again,
    ask,
    choice,
    compensating,
    dag,
    days,
    each,
    execution_id,
    execution_name,
    execution_started,
    first,
    from_input,
    from_step,
    heartbeat,
    hours,
    migrates,
    minutes,
    note,
    parallel,
    publish,
    pure,
    receive,
    request,
    role,
    seconds,
    send,
    shielded,
    sleep,
    sleep_until,
    start,
    step,
    stop,
    task,
    task_context,
    timeout,
    wait_for_condition,
    wait_for_event,
    workflow,
)


class Payment(BaseModel):
    id: str
    note: str | None = None


class Line(BaseModel):
    sku: str


class Decision(Enum):
    YES = "yes"
    NO = "no"


@task
def charge(order_id: str, cents: int = 0, *, dry: bool = False) -> Payment:
    return Payment(id=f"{order_id}{cents}{dry}")


@task(
    name="refund_payment",
    retry=Retry(max_attempts=3, on=(ConnectionError,), not_on=(ConnectionRefusedError,)),
    timeout=minutes(5),
    heartbeat=seconds(30),
    idempotent=True,
)
def refund(payment_id: str) -> None:
    del payment_id


@task
def pack(line: Line) -> str:
    return line.sku


@pure
def is_valid(payment: Payment) -> bool:
    return bool(payment.id)


@workflow
def child(order_id: str) -> list[int]:
    return [len(order_id)]


@workflow
def charge_order(order_id: str, cents: int = 0) -> Payment:
    return charge(order_id, cents)


@workflow(name="other_child", timeout=days(3))
def other(order_id: str) -> str | None:
    return order_id or None


def settings(context_free: Task[[str], None]) -> None:
    reveal_type(context_free("p"))  # -> None
    reveal_type(charge.name)  # -> str
    reveal_type(charge.idempotent)  # -> bool
    reveal_type(task_context().idempotency_key)  # -> str
    reveal_type(seconds(1))  # -> timedelta
    reveal_type(minutes(1.5))  # -> timedelta
    reveal_type(hours(1))  # -> timedelta
    reveal_type(days(1))  # -> timedelta
    reveal_type(role("manager"))  # -> str


def steps(order_id: str) -> None:
    reveal_type(charge(order_id, 5))  # -> Payment
    reveal_type(charge(order_id, cents=5, dry=True).note)  # -> str | None
    reveal_type(charge.options(timeout=minutes(1), heartbeat=seconds(5))(order_id))  # -> Payment
    reveal_type(charge.options(retry=Retry(), label="charge again")(order_id))  # -> Payment
    reveal_type(is_valid(Payment(id="p")))  # -> bool
    reveal_type(child(order_id))  # -> list[int]
    reveal_type(other(order_id))  # -> str | None
    settings(refund)


def branches(o: str) -> None:
    reveal_type(parallel(lambda: charge(o), lambda: child(o)))  # -> tuple[Payment, list[int]]
    reveal_type(parallel(lambda: 1, lambda: "", lambda: True))  # -> tuple[int, str, bool]
    four = parallel(lambda: 1, lambda: "", lambda: True, lambda: charge(o))
    reveal_type(four)  # -> tuple[int, str, bool, Payment]
    a, b, c, d, e = parallel(lambda: charge(o), lambda: 1, lambda: o, lambda: 2, lambda: True)
    reveal_type((a, b, c, d, e))  # -> tuple[Payment, int, str, int, bool]
    f = parallel(lambda: o, lambda: 1, lambda: o, lambda: 2, lambda: o, lambda: 3)
    reveal_type(f)  # -> tuple[str, int, str, int, str, int]
    g = parallel(lambda: o, lambda: 1, lambda: o, lambda: 2, lambda: o, lambda: 3, lambda: o)
    reveal_type(g)  # -> tuple[str, int, str, int, str, int, str]
    h = parallel(
        lambda: o,
        lambda: 1,
        lambda: o,
        lambda: 2,
        lambda: o,
        lambda: 3,
        lambda: o,
        lambda: charge(o),
    )
    reveal_type(h)  # -> tuple[str, int, str, int, str, int, str, Payment]

    def verify() -> bool:
        return is_valid(charge(o))

    reveal_type(parallel(verify, lambda: other(o)))  # -> tuple[bool, str | None]


def quorums(o: str) -> None:
    both = parallel(lambda: charge(o), lambda: o, return_exceptions=True)
    reveal_type(both)  # -> tuple[Payment | Exception, str | Exception]
    partial = parallel(lambda: charge(o), lambda: o, at_least=1, return_exceptions=True)
    reveal_type(partial)  # -> tuple[Payment | Exception, str | Exception]
    late = parallel(lambda: charge(o), lambda: o, cancel_others=False)
    reveal_type(late)  # -> tuple[Payment, str]
    most = parallel(lambda: charge(o), lambda: o, tolerate=1, concurrency=1)
    reveal_type(most)  # -> tuple[Payment | None, str | None]
    both_limits = parallel(lambda: charge(o), lambda: o, at_least=1, tolerate=0)
    reveal_type(both_limits)  # -> tuple[Payment | None, str | None]
    reveal_type(parallel(lambda: charge(o), lambda: o, concurrency=1))  # -> tuple[Payment, str]
    two = parallel(lambda: charge(o), lambda: o, at_least=1)
    reveal_type(two)  # -> tuple[Payment | None, str | None]
    three = parallel(lambda: charge(o), lambda: o, lambda: 1, at_least=2)
    reveal_type(three)  # -> tuple[Payment | None, str | None, int | None]
    four = parallel(lambda: 1, lambda: o, lambda: 1, lambda: o, at_least=2)
    reveal_type(four)  # -> tuple[int | None, str | None, int | None, str | None]
    five = parallel(lambda: 1, lambda: o, lambda: 1, lambda: o, lambda: 1, at_least=2)
    reveal_type(five)  # -> tuple[int | None, str | None, int | None, str | None, int | None]
    one = parallel(
        lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: charge(o), at_least=2
    )
    reveal_type(one[5])  # -> Payment | None
    last = parallel(
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: charge(o),
        at_least=3,
    )
    reveal_type(last[6])  # -> Payment | None
    eight = parallel(
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: charge(o),
        at_least=3,
    )
    reveal_type(eight[7])  # -> Payment | None


def races(o: str) -> None:
    reveal_type(first(lambda: charge(o), lambda: o))  # -> Payment | str
    reveal_type(first(lambda: charge(o), lambda: sleep(days(1))))  # -> Payment | None
    reveal_type(first(lambda: 1, lambda: o, lambda: charge(o)))  # -> int | str | Payment
    reveal_type(first(lambda: 1, lambda: o, lambda: 1, lambda: charge(o)))  # -> int | str | Payment
    five = first(lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: charge(o))
    reveal_type(five)  # -> int | Payment
    six = first(lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: charge(o))
    reveal_type(six)  # -> int | Payment
    seven = first(
        lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: 1, lambda: charge(o)
    )
    reveal_type(seven)  # -> int | Payment
    eight = first(
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: 1,
        lambda: charge(o),
    )
    reveal_type(eight)  # -> int | Payment


def maps(lines: list[Line], names: dict[str, int], n: int) -> None:
    reveal_type(each(lines, pack))  # -> list[str]
    reveal_type(each(lines, lambda line: line.sku, concurrency=n))  # -> list[str]
    reveal_type(each(names, lambda name: charge(name)))  # -> list[Payment]
    reveal_type(each(names, child))  # -> list[list[int]]
    reveal_type(each(lines, pack.options(label="pack it")))  # -> list[str]
    reveal_type(each(names, child.options(timeout=hours(1), retry=Retry())))  # -> list[list[int]]
    reveal_type(each(lines, pack, tolerate=n))  # -> list[str | None]
    reveal_type(each(lines, lambda some: len(some), batch=10))  # -> list[int]
    reveal_type(each(lines, lambda some: some[0].sku, batch=10))  # -> list[str]
    reveal_type(each(lines, lambda some: len(some), batch=n, tolerate=2))  # -> list[int | None]
    reveal_type(each(lines, pack, at_least=2, concurrency=n))  # -> list[str | None]
    reveal_type(each(lines, pack, at_least=2, tolerate=n))  # -> list[str | None]
    reveal_type(each(lines, lambda some: len(some), batch=n, at_least=2))  # -> list[int | None]

    pairs = list(zip(lines, names, strict=True))
    reveal_type(each(pairs, lambda line, name: line.sku + name))  # -> list[str]
    reveal_type(each(enumerate(lines), lambda i, _: i, tolerate=1))  # -> list[int | None]
    three = zip(lines, names, names, strict=True)
    threes = each(three, lambda a, b, c: (a, b, c), return_exceptions=True)
    reveal_type(threes)  # -> list[tuple[Line, str, str] | Exception]
    reveal_type(each(pairs, lambda pair: pair[0]))  # -> list[Line]
    outcomes = each(lines, pack, concurrency=n, return_exceptions=True)
    reveal_type(outcomes)  # -> list[str | Exception]
    reveal_type(each(lines, pack, cancel_others=False))  # -> list[str]
    partial = each(lines, pack, tolerate=n, return_exceptions=True)
    reveal_type(partial)  # -> list[str | Exception]
    reveal_type([one for one in outcomes if not isinstance(one, Exception)])  # -> list[str]
    reveal_type([one for one in outcomes if isinstance(one, Exception)])  # -> list[Exception]
    some = each(lines, lambda some: len(some), batch=n, return_exceptions=True)
    reveal_type(some)  # -> list[int | Exception]

    def checked(line: Line) -> Payment | None:
        return charge(line.sku) if line.sku else None

    reveal_type(each(lines, checked, tolerate=1))  # -> list[Payment | None]


def scopes(o: str) -> None:
    with compensating() as undo:
        payment = charge(o)
        undo(refund, payment.id)
        undo(charge, o, cents=5)
    with compensating(on_undo_failure="stop") as undo:
        undo(refund, payment_id=payment.id)
    with timeout(hours(1)), shielded():
        inside = charge(o)
    reveal_type(inside)  # -> Payment


def waits(o: str, moment: datetime, grace: timedelta) -> None:
    sleep(grace)
    sleep_until(moment)
    reveal_type(wait_for_event("paid", Payment, key=o, timeout=days(3)))  # -> Payment
    reveal_type(wait_for_event("paid", list[Payment], key=o))  # -> list[Payment]
    publish("status", {"order": o})
    note(stage=o)
    send("paid", {"order": o}, key=o)
    stop(o)
    reveal_type(execution_id())  # -> str
    reveal_type(execution_name())  # -> str
    reveal_type(execution_started())  # -> datetime
    reveal_type(request("total", 1, key=o, returns=Payment, timeout=days(1)))  # -> Payment
    with receive("total", Payment, key=o, timeout=days(1)) as asked:
        reveal_type(asked.data)  # -> Payment
        asked.reply(asked.id)
    if o == "again":
        again(o)
    reveal_type(start(child, o))  # -> str
    reveal_type(start(child, o, delay=minutes(5)))  # -> str
    reveal_type(send("paid", o, key=o, delay=minutes(5)))  # -> str
    either: Payment | Line = wait_for_event("either", Payment | Line, key=o)
    reveal_type(either)  # -> Payment | Line
    reveal_type(wait_for_event("counted", dict[str, int], key=o))  # -> dict[str, int]
    reveal_type(ask("Sure?", Decision, assignee=role("manager"), details={"o": o}))  # -> Decision
    reveal_type(ask("How many?", int, assignee="ada", timeout=grace))  # -> int
    paid = first(lambda: wait_for_event("paid", Payment, key=o), lambda: sleep(days(1)))
    reveal_type(paid)  # -> Payment | None
    if paid is not None:
        reveal_type(paid)  # -> Payment


def graphs(lines: list[str]) -> None:
    reveal_type(step("charge", charge))  # -> Step
    reveal_type(from_step("charge"))  # -> FromStep
    nightly = dag(
        "nightly",
        step("charge", charge, arguments={"order_id": from_input("id"), "cents": 5}),
        step("refund", refund, depends_on=["charge"]),
        *[step(line, pack, depends_on=("charge", "refund")) for line in lines],
        timeout=hours(2),
    )
    reveal_type(nightly)  # -> Dag
    reveal_type(nightly(id="o1"))  # -> Any
    reveal_type(Dag.from_json({"workflow_id": "a", "steps": []}, [charge, refund]))  # -> Dag


@task
async def fetched(url: str) -> Payment:
    heartbeat()
    return Payment(id=url)


@task(heartbeat=timedelta(seconds=30))
async def counted(url: str) -> int:
    return len(url)


TOOLS = choice(fetched, counted)


def forms_of_tasks(url: str) -> None:
    reveal_type(fetched(url))  # -> Payment
    reveal_type(counted(url))  # -> int
    reveal_type(counted.options(timeout=minutes(1))(url))  # -> int
    reveal_type(TOOLS["fetched"](url=url))  # -> Any


def started(client: Client, o: str) -> None:
    reveal_type(client.start(charge_order, o, 5, name="order-1").result(30))  # -> Payment
    reveal_type(client.start(charge_order, o).result())  # -> Payment
    reveal_type(client.start(child, o, priority=0))  # -> Handle[list[int]]
    reveal_type(client.start("child", {"order_id": o}).result())  # -> Any
    reveal_type(client.handle("order-1", child).result())  # -> list[int]
    reveal_type(client.describe(o)["execution"])  # -> str
    reveal_type(client.stop(o, "Cancelled", now=True))  # -> dict[str, Any]
    reveal_type(client.handle(o).stop(cause="why"))  # -> dict[str, Any]
    reveal_type([row["name"] for row in client.list(status="FAILED")])  # -> list[str | None]


@task
def arrived(order_id: str, tries: int = 1) -> Payment | None:
    return charge(order_id, tries)


def conditions(o: str) -> None:
    reveal_type(wait_for_condition(arrived, every=minutes(5))(o))  # -> Payment
    wait = wait_for_condition(arrived, every=minutes(5), backoff=2.0, most=hours(6))
    reveal_type(wait(o, tries=2))  # -> Payment


@migrates(child)
def sizes(order_id: str) -> list[int]:
    return [len(order_id)]


def computed(o: str) -> None:
    reveal_type(sizes(o))  # -> list[int]


async def awaited(client: AsyncClient, o: str) -> None:
    handle = await client.start(charge_order, o, name="order-1")
    reveal_type(await handle.result(timeout=30))  # -> Payment
    reveal_type((await client.describe(o))["waits"])  # -> list[dict[str, Any]]
    reveal_type([row["name"] async for row in client.list(paused=True)])  # -> list[str | None]


@task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:weigh"), timeout=minutes(2))
def weighed(order_id: str) -> Payment:
    raise NotImplementedError


@task(runs_on=Worker("gpu"), timeout=hours(6), heartbeat=minutes(1), retry=Retry(max_attempts=2))
def rendered(order_id: str, frames: int = 3) -> Payment:
    return Payment(id=order_id)


@task(runs_on=Fargate("films", "mix", "main", subnets=("subnet-1",)), timeout=hours(2))
def mixed(order_id: str) -> Payment:
    return Payment(id=order_id)


@task(runs_on=BatchJob(queue="gpu", definition="grade"), timeout=hours(12))
def graded(order_id: str) -> Payment:
    return Payment(id=order_id)


@task(group="payments", timeout=minutes(2), limits=[Limit("bank", concurrency=5)])
def debited(order_id: str) -> Payment:
    return Payment(id=order_id)


@task(group="mail", batch=Batch(max=10))
def posted(letters: list[str]) -> list[Payment | TaskError]:
    return [Payment(id=one) for one in letters]


def places_of_tasks(o: str) -> None:
    reveal_type(weighed(o))  # -> Payment
    reveal_type(rendered(o, frames=5))  # -> Payment
    reveal_type(rendered.options(timeout=hours(1))(o))  # -> Payment
    reveal_type(mixed(o))  # -> Payment
    reveal_type(graded(o))  # -> Payment
    reveal_type(debited(order_id=o))  # -> Payment
    reveal_type(posted(o))  # -> Payment
