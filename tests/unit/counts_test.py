"""The cost of each path: write units, reads, messages. The figures are in docs/reference/log.md.

Counted on the memory services, which bill by DynamoDB's rules; tests/infra/capacity_test.py holds
those rules against an emulator of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, cost, limits
from holdfast.aws.group_tasks import GroupTasks
from holdfast.deployment import Deployment
from holdfast.local.group_calls import local_call
from holdfast.runtime.effects import Delete, Put, TaskFailed, TaskSucceeded
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.storage.spread import DUE
from holdfast_simulator.world import SimulatorWorld
from tests.builders import CHANCE, KEYS, Machine, Shop, ask, call, chain, machine, wait_for
from tests.unit import conversation_flows, keyed_flows
from tests.unit.client_kit import MemoryStack, _compile
from tests.unit.dsl_kit import loaded
from tests.unit.keyed_test import ADD, CHECKOUT

DAY = 86_400


class Bill:
    """Units between its making and its reading; the definition is stored before."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        shop.world.call(shop.programs.store(shop.tenant, shop.definition))
        self.before = replace(shop.world.services.usage)

    def usage(self) -> cost.Usage:
        now = self.shop.world.services.usage
        counted = {}
        for field in fields(now):
            after, before = getattr(now, field.name), getattr(self.before, field.name)
            counted[field.name] = after - before if isinstance(after, int | float) else after
        return cost.Usage(**counted)


def bill_of(definition: Machine, data: Any = None, **options: Any) -> tuple[cost.Usage, Shop]:
    shop = Shop(definition, **options)
    bill = Bill(shop)
    shop.run(data)
    return bill.usage(), shop


def test_a_named_chain_of_ten_tasks_takes_thirteen_write_units_and_one_message() -> None:
    usage, shop = bill_of(chain(10), {"n": 0})

    assert usage.write_units == 13  # ten records, the name, the row of the start, the listing
    assert usage.read_units == 1
    assert (usage.sqs_send_requests, usage.sqs_deliveries) == (1, 1)
    assert shop.world.services.effects["Query"] == 1
    records = shop.world.services.items("executions")
    assert len(records) == 10
    assert max(map(cost.item_bytes, records)) <= limits.WRITE_UNIT_BYTES


def test_a_durable_step_of_that_chain_costs_less_than_ninety_five_cents_a_million() -> None:
    usage, _ = bill_of(chain(10), {"n": 0})
    whole = replace(usage, lambda_requests=1 / limits.SQS_BATCH_ENTRIES_MAX, commits=10)

    assert cost.receipt(whole).total_usd / 10 * 1e6 <= 0.95


def test_a_step_more_costs_one_write_unit_and_nothing_else() -> None:
    ten, _ = bill_of(chain(10), {"n": 0})
    twenty, _ = bill_of(chain(20), {"n": 0})

    assert twenty.write_units - ten.write_units == 10
    assert twenty.read_units == ten.read_units
    assert twenty.sqs_send_requests == ten.sqs_send_requests


def test_a_step_that_appends_to_a_list_costs_the_same_at_every_length() -> None:
    """A log in format 1 goes over to format 2 once that saves something: with one snapshot."""

    def bill(steps: int) -> tuple[float, float]:
        again = {"Condition": f"{{% $count($results) < {steps} %}}", "Next": "work"}
        results = {"results": "{% $append($results, [$states.result]) %}"}
        states = {
            "begin": {"Type": "Pass", "Assign": {"results": []}, "Next": "work"},
            "work": call("add", "again?", Arguments={"n": 1}, Assign=results),
            "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
            "done": {"Type": "Succeed", "Output": "{% $count($results) %}"},
        }
        shop = Shop(
            machine(states), lambda _: TaskSucceeded({"order": "o" * 20, "state": "paid", "n": 12})
        )
        before = sum(shop.world.services.bytes_written.values())
        shop.run()
        usage = shop.world.services.usage
        return usage.write_units, sum(shop.world.services.bytes_written.values()) - before

    (short_units, short_bytes), (long_units, long_bytes) = bill(60), bill(180)
    assert (long_units - short_units) / 120 <= 1.1
    assert (long_bytes - short_bytes) / 120 <= 1.1 * short_bytes / 60


def test_a_pure_loop_of_a_thousand_iterations_takes_at_most_twenty_one_writes() -> None:
    loop = {
        "begin": {"Type": "Pass", "Assign": {"i": 0}, "Next": "again?"},
        "again?": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $i < 1000 %}", "Next": "count"}],
            "Default": "done",
        },
        "count": {"Type": "Pass", "Assign": {"i": "{% $i + 1 %}"}, "Next": "again?"},
        "done": {"Type": "Succeed", "Output": "{% $i %}"},
    }
    _, shop = bill_of(machine(loop))

    assert shop.world.services.effects["PutIfAbsent"] - 2 <= 21  # less the definition and the name


#: A chain of one task, then the measured path: the difference is the path's own cost.
def _after_a_task(state: Machine) -> Machine:
    return machine({"first": call("add", "then", Arguments={"n": 1}), "then": state})


def test_the_first_wait_costs_a_watch_row_two_listings_and_a_timer() -> None:
    plain, _ = bill_of(machine({"first": call("add", Arguments={"n": 1})}))
    waiting, shop = bill_of(_after_a_task({"Type": "Wait", "Seconds": 10, "End": True}))

    # Fired 1, watch row put and deleted 2, RUNNING entry 1 and its removal 2.
    assert waiting.write_units - plain.write_units == 6
    assert waiting.sqs_send_requests - plain.sqs_send_requests == 1
    assert shop.world.services.depth("work") == 0


def test_a_wait_of_thirty_days_costs_a_few_visits_and_one_message() -> None:
    short, _ = bill_of(_after_a_task({"Type": "Wait", "Seconds": 10, "End": True}))
    long, _ = bill_of(_after_a_task({"Type": "Wait", "Seconds": 30 * DAY, "End": True}))

    assert long.write_units - short.write_units <= 11  # timer row 2, four visits 8, one to spare
    assert long.sqs_send_requests == short.sqs_send_requests


def test_an_end_after_more_than_a_day_costs_one_unit_more_for_its_snapshot() -> None:
    bills = [
        bill_of(_after_a_task({"Type": "Wait", "Seconds": hours * 3_600, "End": True}))
        for hours in (23, 25)
    ]
    ends = [shop.world.services.items("executions")[-1] for _, shop in bills]

    assert ["so" in end for end in ends] == [False, True]
    assert bills[1][0].write_units - bills[0][0].write_units <= 1


def test_an_event_for_the_only_wait_costs_its_registration_itself_and_one_record() -> None:
    short, _ = bill_of(_after_a_task({"Type": "Wait", "Seconds": 10, "End": True}))
    shop = Shop(_after_a_task(wait_for("paid")))
    bill = Bill(shop)
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.send_event()
    shop.world.run()

    # got it 1 (as fired), + 1 + 1, and 1 that the sweeper writes for all the starts of a minute
    assert bill.usage().write_units - short.write_units == 3
    assert bill.usage().sqs_send_requests == 2


def test_a_check_of_a_wait_for_an_event_moves_its_row_and_sends_no_message() -> None:
    shop = Shop(_after_a_task(wait_for("paid", TimeoutSeconds=30 * DAY)))
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    bill = Bill(shop)
    shop.world.run(until_ms=shop.world.now_ms + DAY // 2 * 1_000)

    assert shop.history(run).state.status == "RUNNING"
    # After an hour and after six the row is put and deleted; the sweeper has read the start, too.
    assert bill.usage().write_units == 2 * 2 + 1
    assert bill.usage().sqs_send_requests == 0


def test_the_row_of_a_start_takes_its_compressed_input() -> None:
    """An input of 100 lines of an order, 5 KB."""
    line = {"sku": "85123A", "description": "LANTERN", "qty": 6}
    definition = machine({"first": call("add", Arguments={"n": 1})})
    short, _ = bill_of(definition, {})
    long, shop = bill_of(definition, {"lines": [{**line, "n": n} for n in range(100)]})
    (row,) = (item for item in shop.world.services.items("mail") if "body" in item)

    assert row["f"] == 2
    assert cost.item_bytes(row) <= limits.WRITE_UNIT_BYTES
    assert long.write_units - short.write_units <= 1  # record 0 has the input, too


def test_events_after_the_end_of_the_waiting_execution_cost_one_mark_and_a_row_each() -> None:
    shop = Shop(_after_a_task(wait_for("paid")))
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.send_event()
    shop.world.run()
    bills = []
    for number in range(2):
        bill = Bill(shop)
        shop.send_event(event_id=f"late-{number}")
        shop.world.run()
        bills.append((bill.usage().write_units, bill.usage().sqs_send_requests))

    # The event and its row in the list; the first one wakes a worker, which marks the registration.
    assert bills == [(3, 1), (2, 0)]


class TalkBill:
    """Counts of the calls to a whole stack, one a minute."""

    def __init__(self, module: str) -> None:
        self.stack = MemoryStack(module)
        self.client = Client.of(self.stack.api)

    def of(self, call: Callable[[Client], object]) -> tuple[float, float, float]:
        """Return write units, read units and sent messages of the call and what follows it."""
        self.stack.world.now_ms += 60_000
        self.client.limits()  # the API reads `~ctl` once a minute, whatever the calls are
        usage = self.stack.world.services.usage
        before = replace(usage)
        call(self.client)
        writes, reads = usage.write_units - before.write_units, usage.read_units - before.read_units
        return writes, reads, usage.sqs_send_requests - before.sqs_send_requests


def test_an_event_of_a_keyed_workflow_costs_the_writes_of_any_event() -> None:
    """The figures are in docs/how-to/talk.md."""
    bill = TalkBill(keyed_flows.__name__)
    bill.client.event("cart", "c0", CHECKOUT)  # stores the definition

    # The row of the key, the key of the execution, the pending start, the event, the watchdog row,
    # two for record 0 and its list entry, a record and a registration for each of two rounds.
    assert bill.of(lambda client: client.event("cart", "c1", ADD)) == (11, 8, 1)
    # The event, a record for its use and one for the next round, a registration, the row of waits.
    assert bill.of(lambda client: client.event("cart", "c1", ADD)) == (5, 8, 1)
    # The event, two for the end and its list entry, the row of the key, the key of the execution,
    # the row of waits, two for the list entry that goes.
    assert bill.of(lambda client: client.event("cart", "c1", CHECKOUT)) == (8, 9, 1)


def test_a_request_costs_two_writes_more_than_an_event() -> None:
    """Those are its own row and its reply."""
    bill = TalkBill(conversation_flows.__name__)
    asked = ("payment", "k", {"action": "get"})
    bill.client.request(*asked)

    assert bill.of(lambda client: client.request(*asked)) == (7, 9, 1)


def test_a_large_event_is_read_once_however_many_follow_it() -> None:
    """Used events stay stored, and each wait for the next one looks at all of them."""
    waits = {f"w{number}": wait_for("paid", f"w{number + 1}") for number in range(6)}
    shop = Shop(machine({**waits, "w6": {"Type": "Succeed"}}))
    run = shop.start()
    for number in range(6):
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
        shop.send_event(data={"text": "x" * 400_000}, event_id=f"e{number}")
    shop.world.run()

    assert shop.history(run).state.status == "SUCCEEDED"
    assert shop.world.services.usage.s3_gets <= 6 + 2


def test_an_answer_costs_itself_one_record_and_the_row_of_its_question() -> None:
    short, _ = bill_of(_after_a_task({"Type": "Wait", "Seconds": 10, "End": True}))
    shop = Shop(_after_a_task(ask()))
    bill = Bill(shop)
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.answer(run, output={"approved": True})
    shop.world.run()

    # The row is put and deleted; one more that the sweeper writes for all the starts of a minute.
    assert bill.usage().write_units - short.write_units == 4
    assert bill.usage().sqs_send_requests == 2


def test_a_retry_costs_one_record_and_one_delayed_message() -> None:
    def flaky(effect: Any) -> Any:
        return TaskFailed("Busy", "") if effect.attempt <= failures else TaskSucceeded({"n": 1})

    retry = [{"ErrorEquals": ["Busy"], "MaxAttempts": 5}]
    definition = machine({"first": call("add", Arguments={"n": 1}, Retry=retry)})
    failures = 1
    once, _ = bill_of(definition, tasks=flaky)
    failures = 2
    twice, _ = bill_of(definition, tasks=flaky)

    assert twice.write_units - once.write_units == 1
    assert twice.sqs_send_requests - once.sqs_send_requests == 1


#: Of three frames, as `holdfast.api.tracebacks` writes them.
TRACEBACK = "\n".join(
    f'  File "shop/{file}.py", line {line}, in {function}\n    {source}'
    for file, line, function, source in (
        ("payments", 41, "charge", "return bank.transfer(order.account, order.total_pence)"),
        ("bank", 117, "transfer", "answer = self.call('POST', '/transfers', body, timeout=5)"),
        ("bank", 63, "call", "raise BankUnavailable(f'{method} {path}: {answer.status}')"),
    )
)


def test_a_traceback_of_usual_length_costs_no_write_unit() -> None:
    def failing(traceback: str | None) -> int:
        def flaky(effect: Any) -> Any:
            if effect.attempt <= 3:
                return TaskFailed("BankUnavailable", "POST /transfers: 503", traceback)
            return TaskSucceeded({"n": 1})

        retry = [{"ErrorEquals": ["BankUnavailable"], "MaxAttempts": 5}]
        definition = machine({"first": call("add", Arguments={"n": 1}, Retry=retry)})
        return int(bill_of(definition, tasks=flaky)[0].write_units)

    assert failing(TRACEBACK) == failing(None)


def test_a_stop_costs_its_inbox_message_and_one_record() -> None:
    short, _ = bill_of(_after_a_task({"Type": "Wait", "Seconds": 10, "End": True}))
    shop = Shop(_after_a_task({"Type": "Wait", "Seconds": 600, "End": True}))
    bill = Bill(shop)
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.stop(run)
    shop.world.run()

    assert shop.history(run).state.status == "ABORTED"
    assert bill.usage().write_units - short.write_units == 1


def test_a_map_of_a_hundred_quick_tasks_takes_a_handful_of_records() -> None:
    one = {"one": call("add", Arguments={"n": "{% $states.input %}"})}
    each = {
        "Type": "Map",
        "Items": "{% [1..100] %}",
        "ItemProcessor": {"StartAt": "one", "States": one},
        "End": True,
    }
    _, shop = bill_of(machine({"all": each}))

    assert len(shop.world.services.items("executions")) <= 12


#: An order: a task, the wait for an event, a task, ten seconds, a task.
ORDER = machine(
    {
        "first": call("add", "paid", Arguments={"n": 1}),
        "paid": wait_for("paid", "second"),
        "second": call("add", "nap", Arguments={"n": 1}),
        "nap": {"Type": "Wait", "Seconds": 10, "Next": "last"},
        "last": call("add", Arguments={"n": 1}),
    }
)


def test_an_order_of_five_steps_reads_six_tenths_of_what_it_writes_path_by_path() -> None:
    shop = Shop(ORDER)
    Bill(shop)
    services = shop.world.services
    found: list[tuple[float, float, float]] = []

    def path(act: Any, seconds: float = 1) -> None:
        before = services.usage.copy()
        act()
        shop.world.run(until_ms=shop.world.now_ms + int(seconds * 1_000))
        used = services.usage.minus(before)
        found.append((used.write_units, used.read_units, used.sqs_send_requests))

    def sweep() -> None:
        """What the sweeper does for this execution: the other shards have nothing."""
        row = next(item for item in services.items("mail") if str(item["sk"]).endswith("#w"))
        shop.world.now_ms += 3_600_000
        shop.world.call(sweeper.sweep(DUE.of(str(row["run"])), "sweeper"))

    path(lambda: shop.start({"n": 0}))
    path(shop.send_event)
    path(lambda: None, 20)
    path(sweep, 0)

    assert found == [
        # name, row of the start, row of the watchdog, record with its list entry 2, registration;
        # the log, stored events, the inbox
        (6, 3, 1),
        # the event, two records, the waits in the index; registrations, the log, the events
        (4, 2.5, 2),
        # two records, the list entry of the end 1, of the opening removed 2, the row of waits; log
        (6, 1, 0),
        # the row of the watchdog; the due rows, and the log with the listed record
        (1, 2, 0),
    ]
    assert sum(reads for _, reads, _ in found) <= 0.6 * sum(writes for writes, _, _ in found)


@pytest.mark.parametrize("parked", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_sweep_over_parked_executions_reads_the_one_that_is_overdue(parked: int) -> None:
    """In each shard: one query for due rows. For the overdue one: its log, and its inbox."""
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 20 * DAY, "End": True}}))
    for number in range(parked):
        shop.world.call(
            shop.front.start(shop.tenant, {"workflow": "flow"}, number.to_bytes(8, "big"))
        )
    shop.world.run(until_ms=shop.world.now_ms + 60_000)
    row = min(
        (item for item in shop.world.services.items("mail") if str(item["sk"]).endswith("#w")),
        key=lambda item: str(item["sk"]),
    )
    overdue = {**row, "sk": f"{shop.world.now_ms:015d}#{row['t']!s}#{row['run']!s}#w"}
    services = shop.world.services
    services.perform(Put("mail", overdue))
    services.perform(Delete("mail", str(row["pk"]), str(row["sk"])))
    reads = {}
    for shard in range(DUE.least):
        before = services.effects["Query"] + services.effects["Get"]
        shop.world.call(sweeper.sweep(shard, "sweeper"))
        reads[shard] = services.effects["Query"] + services.effects["Get"] - before

    assert reads.pop(DUE.of(str(row["run"]))) <= 3
    assert set(reads.values()) == {1}


STEPS = """
from __future__ import annotations

from holdfast import task, workflow


@task{options}
def add(n: int) -> int:
    return n + 1


@workflow
def count(n: int) -> int:
    while n < 10:
        n = add(n)
    return n
"""


@pytest.mark.parametrize(("options", "calls"), [("", 0), ('(group="sums")', 10)])
def test_a_step_in_a_group_costs_one_call_of_its_function_and_nothing_of_the_engine(
    tmp_path: Path, options: str, calls: int
) -> None:
    with loaded(tmp_path, STEPS.replace("{options}", options)) as module:
        deployment = Deployment.from_modules([module.__name__], _compile)
        function, sent = local_call(deployment), []

        def call(group: str, payload: bytes) -> tuple[bool, bytes]:
            sent.append(payload)
            return function(group, payload)

        programs = deployment.programs()
        perform = GroupTasks(deployment, call).perform
        world = SimulatorWorld(deployment.setting(programs, lambda: KEYS), perform)
        front = deployment.front(programs, KEYS)
        world.call(front.start("default", {"workflow": "count", "input": {"n": 0}}, CHANCE))
        world.run()

    usage = world.services.usage
    assert len(sent) == calls
    assert max(map(len, sent), default=0) < 400
    assert usage.write_units == 13  # ten records, the definition, the row of the start, the listing
    assert (usage.read_units, usage.sqs_send_requests, usage.sqs_deliveries) == (1, 1, 1)
