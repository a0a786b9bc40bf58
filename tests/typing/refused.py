"""Misuse that a type checker must see in the editor: every marked line, and no other."""

from __future__ import annotations

from datetime import datetime

from holdfast import (
    AsyncClient,
    Batch,
    BatchJob,
    Client,
    Fargate,
    Lambda,
    Limit,
    Retry,
    Worker,
    ask,
    compensating,
    dag,
    each,
    first,
    migrates,
    minutes,
    parallel,
    send,
    sleep,
    sleep_until,
    start,
    step,
    task,
    timeout,
    wait_for_condition,
    wait_for_event,
)
from tests.typing.accepted import Line, arrived, charge, charge_order, child, is_valid, pack, refund


def steps(o: str, moment: datetime) -> None:
    charge()  # refused
    charge(1)  # refused
    charge(o, price=5)  # refused
    charge(o, 5, True)  # refused
    charge(o).idd  # refused
    charge(o).note.upper()  # refused
    charge.options(timeout=5)  # refused
    charge.options(retries=3)  # refused
    charge.options(label="again")(5)  # refused
    is_valid(o)  # refused
    child()  # refused
    child(o).upper()  # refused
    sleep(5)  # refused
    sleep(moment)  # refused
    sleep_until(minutes(5))  # refused
    Retry(max_attempts="3")  # refused


@task(retries=3)  # refused
def unknown_setting() -> None: ...


def branches(o: str) -> None:
    parallel(lambda n: n, lambda: o)  # refused
    parallel(charge, lambda: o)  # refused
    parallel(lambda: o)  # refused
    parallel(lambda: o, lambda: o, at_least="1")  # refused
    text: str = parallel(lambda: charge(o), lambda: o)  # refused
    payment, other = parallel(lambda: charge(o), lambda: o, at_least=1)
    payment.id  # refused
    first(lambda: charge(o), lambda: o).id  # refused
    first(lambda n: n, lambda: o)  # refused
    del text, other


def maps(lines: list[Line], o: str) -> None:
    each([1, 2], pack)  # refused
    each(lines, lambda line: line.skuu)  # refused
    each(lines, lambda: o)  # refused
    each(lines, pack, batch=5)  # refused
    each(enumerate(lines), lambda i, line: line.skuu)  # refused
    each(lines, pack, concurrency="5")  # refused
    each(lines, pack, tolerate=1, cancel_others=False)  # refused
    for sku in each(lines, pack, tolerate=1):
        sku.upper()  # refused


def scopes(o: str) -> None:
    with compensating() as undo:
        undo(refund)  # refused
        undo(refund, 5)  # refused
        undo(refund, payment=o)  # refused
    with compensating(on_undo_failure="ignore"):  # refused
        pass
    with timeout(5):  # refused
        pass


def waits(o: str) -> None:
    wait_for_event("paid", Line, key=5)  # refused
    wait_for_event("paid", Line, key=o).skuu  # refused
    wait_for_event("paid", key=o)  # refused
    send("paid", 1)  # refused
    start(child, 5)  # refused
    start(child, "o", delay=5)  # refused
    send("paid", 1, key="o", delay=5)  # refused
    ask("Sure?", bool)  # refused
    ask("Sure?", bool, assignee=o).upper()  # refused
    ask("Sure?", bool, assignee=o, timeout=5)  # refused


def graphs(o: str) -> None:
    step("charge")  # refused
    step(5, charge)  # refused
    step("charge", graphs)  # refused
    step("charge", charge, depends_on="refund")  # refused
    step("charge", charge, depends_on=[charge])  # refused
    step("charge", charge, arguments={5: o})  # refused
    dag("nightly", charge)  # refused
    dag("nightly", step("charge", charge), timeout=5)  # refused


def started(client: Client, o: str) -> None:
    client.start(charge_order)  # refused
    client.start(charge_order, 5)  # refused
    client.start(charge_order, o, "5")  # refused
    client.start(charge_order, o, 5, 6)  # refused
    client.start(charge_order, o, name=5)  # refused
    client.start(charge_order, o).result().idd  # refused
    client.handle(o, "child")  # refused
    client.describe()  # refused
    client.describe(5)  # refused
    client.stop(o, at_once=True)  # refused
    client.list(stauts="FAILED")  # refused
    client.list(status="BROKEN")  # refused


def conditions(o: str) -> None:
    wait_for_condition(arrived)(o)  # refused
    wait_for_condition(arrived, every=5)(o)  # refused
    wait_for_condition(arrived, every=minutes(5))(5)  # refused
    wait_for_condition(arrived, every=minutes(5))(o).idd  # refused
    wait_for_condition(charge, every=minutes(5))  # refused


def places_of_tasks() -> None:
    task(runs_on="gpu")  # refused
    task(runs_on=Worker("gpu"), limits=[Limit("bank", concurrency=5)])  # refused
    task(runs_on=Worker("gpu"), group="payments")  # refused
    task(runs_on=Lambda("arn"), heartbeat=minutes(1))  # refused
    task(runs_on=Lambda("arn"), batch=Batch(max=10))  # refused
    task(group=5)  # refused
    BatchJob("gpu")  # refused
    Fargate("films", "mix", "main")  # refused


migrates("loan")  # refused


async def awaited(client: AsyncClient, o: str) -> None:
    (await client.start(charge_order, o)).result().idd  # refused
    client.describe(o)["status"]  # refused
    await client.start(charge_order, 5)  # refused
