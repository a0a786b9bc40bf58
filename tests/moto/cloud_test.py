"""The laptop cloud: no call leaves it, it behaves as AWS, and days of waiting are free."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.httpsession
import pytest
from botocore.config import Config
from botocore.session import Session

from holdfast import limits, resources
from holdfast.aws.ports import AwsPorts
from holdfast.errors import HoldfastBug, RequestError
from holdfast.local import intercept
from holdfast.local.clock import SystemClock, VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.local.pump import STARTS_MAX, FunctionBody, Handlers, LambdaContext, Pump
from holdfast.runtime.effects import (
    Delete,
    Get,
    Item,
    Message,
    Put,
    PutIfAbsent,
    Query,
    Send,
    TaskFailed,
)

START_MS = 1_760_000_040_000  # a full minute
MINUTE_MS = 60_000
DAY_MS = 86_400_000


@dataclass
class Recorder:
    """A handler that records its input and gives scripted answers."""

    answer: Callable[[dict[str, Any]], Any] = lambda _: None
    calls: list[tuple[dict[str, Any], LambdaContext]] = field(default_factory=list)

    def __call__(self, event: dict[str, Any], context: LambdaContext, /) -> Any:
        self.calls.append((event, context))
        return self.answer(event)

    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in event["Records"]] for event, _ in self.calls]


def unwanted(event: dict[str, Any], _: LambdaContext, /) -> None:
    raise AssertionError(f"nothing should have called this: {event}")


def handlers(**given: FunctionBody) -> Handlers:
    names = ("worker", "worker_single", "events", "sweeper")
    return Handlers(**{name: given.get(name, unwanted) for name in names})


def play(cloud: LocalCloud, **given: FunctionBody) -> None:
    """Until nothing is left, by the handlers given and no other."""
    pump = Pump(cloud, handlers(**given))
    pump.run_until_idle()
    assert_nothing_unwanted(pump)


def assert_nothing_unwanted(pump: Pump) -> None:
    # The pump treats an exception of a handler as a failed invocation and continues.
    raised = [failure.error for failure in pump.failures]
    assert [error for error in raised if isinstance(error, AssertionError)] == []


def ports(cloud: LocalCloud) -> AwsPorts:
    return AwsPorts(
        cloud.clients,
        cloud.names,
        tasks=lambda _: TaskFailed("None", ""),
        clock=cloud.clock,
        metrics=lambda _: None,
    )


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START_MS)


@pytest.fixture
def cloud(clock: VirtualClock) -> Iterator[LocalCloud]:
    with LocalCloud(clock) as opened:
        yield opened


def send(cloud: LocalCloud, *runs: str, delay_seconds: int = 0) -> None:
    messages = [Message({"t": "default", "run": run}, delay_seconds) for run in runs]
    ports(cloud).perform(Send(tuple(messages)))


# -- nothing leaves --------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def assert_nobody_called(listener: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_endpoints_profiles_and_credentials_of_the_environment_are_not_looked_at(
    listener: socket.socket,
) -> None:
    """In a process of its own: clients, and moto's, are made once and remember."""
    program = """
from holdfast.aws.ports import AwsPorts
from holdfast.local.clock import VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.runtime.effects import Get, GetBlob, Put, PutBlob

with LocalCloud(VirtualClock(0)) as cloud:
    perform = AwsPorts(
        cloud.clients, cloud.names, tasks=None, clock=cloud.clock, metrics=None
    ).perform
    perform(Put("mail", {"pk": "a", "sk": "b"}))
    perform(PutBlob("key", b"data"))
    print(perform(Get("mail", "a", "b")), perform(GetBlob("key")), cloud.names.work_queue_url)
"""
    endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_PROFILE": "production",
        "AWS_ACCESS_KEY_ID": "AKIAREALLOOKINGKEY00",
        "AWS_SECRET_ACCESS_KEY": "real-looking-secret",
        "AWS_SESSION_TOKEN": "real-looking-token",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_USE_DUALSTACK_ENDPOINT": "true",
        "HTTPS_PROXY": endpoint,
    }
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert finished.stderr == ""
    assert finished.stdout.split("} ")[0] == "{'pk': 'a', 'sk': 'b'"
    assert "b'data' https://sqs.us-east-1.amazonaws.com/" in finished.stdout
    assert_nobody_called(listener)


@pytest.mark.parametrize("is_made_before", [True, False])
def test_a_foreign_client_cannot_reach_the_network_either(
    listener: socket.socket, clock: VirtualClock, is_made_before: bool
) -> None:
    def client() -> Any:
        session = Session()
        session.set_credentials("AKIAREALLOOKINGKEY00", "real-looking-secret")
        return session.create_client(
            "dynamodb",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
            config=Config(retries={"total_max_attempts": 1}),
        )

    made_before = client() if is_made_before else None
    with LocalCloud(clock), pytest.raises(RequestError) as refusal:
        (made_before or client()).list_tables()

    assert refusal.value.code == "HF260"
    assert "lets nothing out" in refusal.value.message
    assert_nobody_called(listener)


def test_an_operation_that_the_cloud_does_not_have_is_refused(cloud: LocalCloud) -> None:
    session = Session()
    session.set_credentials("AKIAREALLOOKINGKEY00", "real-looking-secret")
    outside = session.create_client(
        "bedrock-runtime", region_name="us-east-1", config=Config(retries={"total_max_attempts": 1})
    )

    with pytest.raises(RequestError, match="request to bedrock-runtime"):
        outside.converse(modelId="x", messages=[])


def test_outside_a_cloud_botocore_is_as_it_was(clock: VirtualClock) -> None:
    before = botocore.httpsession.URLLib3Session.send
    environment = dict(os.environ)
    with LocalCloud(clock):
        assert botocore.httpsession.URLLib3Session.send is not before

    assert botocore.httpsession.URLLib3Session.send is before
    assert dict(os.environ) == environment


def test_a_second_cloud_begins_empty_and_two_at_once_are_refused(clock: VirtualClock) -> None:
    with LocalCloud(clock) as first:
        ports(first).perform(Put("mail", {"pk": "a", "sk": "b"}))
        with pytest.raises(HoldfastBug, match="already open"), LocalCloud(clock):
            pass
        assert ports(first).perform(Get("mail", "a", "b")) is not None
    with LocalCloud(clock) as second:
        assert ports(second).perform(Get("mail", "a", "b")) is None


def test_two_threads_are_never_inside_moto_together(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = threading.Barrier(2)
    met: list[int] = []
    put_item = intercept.PartitionedTable.put_item

    def put_after_meeting(*arguments: Any, **named: Any) -> Any:
        # With the lock the first thread waits in vain, and the second finds the barrier broken.
        with suppress(threading.BrokenBarrierError):
            met.append(meeting.wait(timeout=0.2))
        return put_item(*arguments, **named)

    monkeypatch.setattr(intercept.PartitionedTable, "put_item", put_after_meeting)
    puts = [PutIfAbsent("executions", {"pk": "r", "sk": 0, "w": f"{n}"}) for n in range(2)]
    with ThreadPoolExecutor(2) as pool:
        winners = sum(there is None for there in pool.map(ports(cloud).perform, puts))

    assert met == []
    assert winners == 1


def test_the_tables_have_what_the_deployed_ones_have(cloud: LocalCloud) -> None:
    store = cloud.clients.get("store")
    described = store.describe_table(TableName=cloud.names.executions_table)["Table"]
    (index,) = described["GlobalSecondaryIndexes"]
    assert resources.EXECUTIONS.index is not None
    projected = list(resources.EXECUTIONS.index.projected)
    assert index["Projection"]["NonKeyAttributes"] == projected
    for table in (cloud.names.executions_table, cloud.names.mail_table):
        ttl = store.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


# -- the pump --------------------------------------------------------------------------------------


def test_a_worker_gets_batches_of_ten_in_lambdas_shape(
    cloud: LocalCloud, clock: VirtualClock
) -> None:
    worker = Recorder()
    send(cloud, *(f"r{n}" for n in range(12)))
    play(cloud, worker=worker)

    assert [len(event["Records"]) for event, _ in worker.calls] == [10, 2]
    record, context = worker.calls[0][0]["Records"][0], worker.calls[0][1]
    assert record["body"] == '{"t":"default","run":"r0"}'
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["attributes"]["MessageGroupId"] == "default"
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"].endswith(":holdfast-work")
    assert {"messageId", "receiptHandle"} <= set(record)
    assert context.function_name == "worker"
    assert context.get_remaining_time_in_millis() == 900_000
    assert worker.calls[1][1].aws_request_id != context.aws_request_id
    assert cloud.next_message_ms([cloud.names.work_queue_url]) == [None]


def test_the_remaining_time_follows_the_clock(cloud: LocalCloud, clock: VirtualClock) -> None:
    worker = Recorder()
    send(cloud, "r")
    play(cloud, worker=worker)
    clock.advance(100_000)

    assert worker.calls[0][1].get_remaining_time_in_millis() == 800_000


def test_only_the_failed_messages_of_a_batch_come_back_after_their_visibility(
    cloud: LocalCloud, clock: VirtualClock
) -> None:
    def fail_the_second_once(event: dict[str, Any]) -> dict[str, Any]:
        failed = [
            {"itemIdentifier": record["messageId"]}
            for record in event["Records"]
            if "r1" in record["body"] and record["attributes"]["ApproximateReceiveCount"] == "1"
        ]
        return {"batchItemFailures": failed}

    worker = Recorder(fail_the_second_once)
    send(cloud, "r0", "r1", "r2")
    play(cloud, worker=worker)

    assert [len(bodies) for bodies in worker.bodies()] == [3, 1]
    assert clock() == START_MS + resources.WORK.visibility_seconds * 1_000 + 1


@pytest.mark.parametrize(
    "answer", [{"batchItemFailures": [{"itemIdentifier": ""}]}, {"batchItemFailures": [{}]}]
)
def test_an_answer_that_names_no_message_fails_the_whole_batch(
    cloud: LocalCloud, answer: dict[str, Any]
) -> None:
    worker = Recorder(lambda _: answer if len(worker.calls) == 1 else None)
    send(cloud, "r0", "r1")
    play(cloud, worker=worker)

    assert [len(bodies) for bodies in worker.bodies()] == [2, 2]


def test_a_message_that_always_fails_ends_as_a_dead_letter_that_the_sweeper_is_woken_for(
    cloud: LocalCloud, clock: VirtualClock
) -> None:
    def crash(_: dict[str, Any]) -> None:
        raise MemoryError

    letters: list[dict[str, Any]] = []

    def drain(_: dict[str, Any]) -> None:
        for letter in ports(cloud).receive_dead_letters("work"):
            letters.append(letter.body)
            ports(cloud).delete_dead_letter("work", letter.receipt_handle)

    worker, sweeper = Recorder(crash), Recorder(drain)
    pump = Pump(cloud, handlers(worker=worker, sweeper=sweeper))
    send(cloud, "r0")
    pump.run_until_idle()

    assert len(worker.calls) == resources.WORK.receives_max
    assert letters == [{"t": "default", "run": "r0"}]
    assert len(sweeper.calls) == 1
    assert clock() % MINUTE_MS == 0
    failures = [type(failure.error) for failure in pump.failures]
    assert failures == [MemoryError] * resources.WORK.receives_max


def test_a_delayed_message_comes_at_its_time(cloud: LocalCloud, clock: VirtualClock) -> None:
    worker = Recorder()
    send(cloud, "r", delay_seconds=840)
    play(cloud, worker=worker)

    assert clock() == START_MS + 840_000
    assert len(worker.calls) == 1


def test_an_event_on_the_bus_reaches_the_events_function_in_eventbridges_shape(
    cloud: LocalCloud,
) -> None:
    events = Recorder()
    cloud.put_event("bank.confirmed", "p-1", {"settled": True}, event_id="e-1")
    play(cloud, events=events)

    ((event, context),) = events.calls
    assert event["detail-type"] == resources.EVENT_DETAIL_TYPE
    assert event["detail"] == {
        "name": "bank.confirmed", "key": "p-1", "data": {"settled": True}, "id": "e-1"
    }  # fmt: skip
    assert set(event) == {
        "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail"
    }  # fmt: skip
    assert event["time"] == "2025-10-09T08:54:00Z"
    assert context.function_name == "events"


def test_other_events_on_the_bus_are_not_ours(cloud: LocalCloud) -> None:
    cloud.clients.get("bus").put_events(
        Entries=[
            {
                "EventBusName": resources.BUS,
                "Source": "shop",
                "DetailType": "order.placed",
                "Detail": "{}",
            }
        ]
    )
    play(cloud)


def test_an_event_is_tried_again_when_its_function_fails(cloud: LocalCloud) -> None:
    def crash_once(_: dict[str, Any]) -> None:
        if len(events.calls) == 1:
            raise ConnectionError

    events = Recorder(crash_once)
    cloud.put_event("bank.confirmed", "p-1", {})
    play(cloud, events=events)

    assert len(events.calls) == 2
    assert events.calls[0][0] == events.calls[1][0]


def due_row(look_ms: int, rest: str = "default#r#w") -> Put:
    return Put("mail", {"pk": "~due#7", "sk": f"{look_ms:015d}#{rest}"})


def test_thirty_days_of_waiting_are_one_sweep(cloud: LocalCloud, clock: VirtualClock) -> None:
    def remove_due_rows(_: dict[str, Any]) -> None:
        until = f"{clock() + limits.SWEEP_AHEAD_SECONDS * 1_000:015d}$"
        for row in ports(cloud).perform(Query("mail", "~due#7", until=until)):
            ports(cloud).perform(Delete("mail", "~due#7", row["sk"]))

    sweeper = Recorder(remove_due_rows)
    look_ms = START_MS + 30 * DAY_MS + 5_000
    ports(cloud).perform(due_row(look_ms))
    play(cloud, sweeper=sweeper)

    # The first full minute whose sweep looks ahead as far as the row.
    assert clock() == START_MS + 30 * DAY_MS
    ((event, context),) = sweeper.calls
    assert event["detail-type"] == "Scheduled Event"
    assert event["time"] == "2025-11-08T08:54:00Z"
    assert context.function_name == "sweeper"


def test_a_row_that_a_sweep_leaves_is_swept_a_minute_later(
    cloud: LocalCloud, clock: VirtualClock
) -> None:
    times: list[int] = []
    pump = Pump(cloud, handlers(sweeper=lambda *_: times.append(clock())))
    ports(cloud).perform(due_row(START_MS))
    pump.run_until_idle(until_ms=START_MS + 3 * MINUTE_MS + 1)
    assert_nothing_unwanted(pump)

    assert times == [START_MS + minute * MINUTE_MS for minute in range(4)]
    assert clock() == START_MS + 3 * MINUTE_MS + 1


def test_the_outside_world_acts_at_its_time_and_in_its_order(
    cloud: LocalCloud, clock: VirtualClock
) -> None:
    acts: list[tuple[str, int]] = []
    worker = Recorder(lambda _: acts.append(("work", clock())))
    pump = Pump(cloud, handlers(worker=worker))

    def bank() -> None:
        acts.append(("bank", clock()))
        send(cloud, "r")
        pump.at(clock() + 1_000, lambda: acts.append(("later", clock())))

    pump.at(START_MS + 2 * DAY_MS, bank)
    pump.at(START_MS + DAY_MS, lambda: acts.append(("first", clock())))
    pump.run_until_idle()
    assert_nothing_unwanted(pump)

    assert acts == [
        ("first", START_MS + DAY_MS),
        ("bank", START_MS + 2 * DAY_MS),
        ("work", START_MS + 2 * DAY_MS),
        ("later", START_MS + 2 * DAY_MS + 1_000),
    ]


def test_a_stack_that_never_becomes_idle_is_reported(cloud: LocalCloud) -> None:
    worker = Recorder(lambda _: send(cloud, "again"))
    send(cloud, "r")
    with pytest.raises(HoldfastBug, match="did not come to rest in 50 rounds"):
        Pump(cloud, handlers(worker=worker)).run_until_idle(rounds_max=50)


def test_the_same_day_twice_is_the_same_to_the_last_message_id() -> None:
    def ids() -> list[str]:
        with LocalCloud(VirtualClock(START_MS)) as cloud:
            worker = Recorder()
            send(cloud, "r0", "r1")
            play(cloud, worker=worker)
            return [record["messageId"] for record in worker.calls[0][0]["Records"]]

    assert ids() == ids()


def test_on_the_systems_clock_the_pump_runs_until_a_stop() -> None:
    stop, worked = threading.Event(), threading.Event()
    with LocalCloud(SystemClock()) as cloud:
        worker = Recorder(lambda _: worked.set())
        pump = Pump(cloud, handlers(worker=worker, sweeper=Recorder()))
        thread = threading.Thread(target=pump.run_forever, args=(stop,))
        thread.start()
        try:
            send(cloud, "r")
            assert worked.wait(timeout=20)
        finally:
            stop.set()
            thread.join(timeout=20)
        assert not thread.is_alive()
        assert worker.bodies() == [['{"t":"default","run":"r"}']]
        assert cloud.next_message_ms([cloud.names.work_queue_url]) == [None]


# -- starts ----------------------------------------------------------------------------------------

STARTS = [f"start{number}" for number in range(400)]


def send_starts(cloud: LocalCloud) -> None:
    for number in range(0, len(STARTS), 10):
        messages = [Message({"t": "default", "run": run}) for run in STARTS[number : number + 10]]
        ports(cloud).perform(Send(tuple(messages), "starts"))


def test_work_under_way_passes_400_queued_starts(cloud: LocalCloud, clock: VirtualClock) -> None:
    def act(event: dict[str, Any]) -> None:
        if len(worker.calls) == 1:  # an event for a waiting order, while the first starts run
            send(cloud, "order")

    worker = Recorder(act)
    send_starts(cloud)
    play(cloud, worker=worker)

    batches = worker.bodies()
    assert batches[1] == ['{"t":"default","run":"order"}']
    assert len(batches) == 1 + len(STARTS) / resources.STARTS.batch_size
    assert clock() == START_MS


def test_on_the_systems_clock_starts_leave_invocations_free_for_work_under_way() -> None:
    stop, full, passed, done = (threading.Event() for _ in range(4))
    lock = threading.Lock()
    running, most, ended = 0, 0, 0

    def act(event: dict[str, Any]) -> None:
        nonlocal running, most, ended
        if "order" in event["Records"][0]["body"]:
            passed.set()
            return
        with lock:
            running += 1
            most = max(most, running)
        if running == STARTS_MAX:
            full.set()
        assert passed.wait(timeout=20)
        with lock:
            running -= 1
            ended += len(event["Records"])
        if ended == len(STARTS):
            done.set()

    with LocalCloud(SystemClock()) as cloud:
        send_starts(cloud)
        pump = Pump(cloud, handlers(worker=Recorder(act), sweeper=Recorder()))
        thread = threading.Thread(target=pump.run_forever, args=(stop,))
        thread.start()
        try:
            assert full.wait(timeout=20)
            send(cloud, "order")
            assert passed.wait(timeout=20)
            assert done.wait(timeout=20)
        finally:
            passed.set()
            stop.set()
            thread.join(timeout=20)
        assert_nothing_unwanted(pump)
    assert most == STARTS_MAX


# -- the meter -------------------------------------------------------------------------------------


def test_the_meter_counts_calls_and_their_price(cloud: LocalCloud) -> None:
    perform = ports(cloud).perform
    record: Item = {"pk": "default#r", "sk": 0, "lp": "p", "ls": "1", "ev": b"x" * 1_500}
    perform(PutIfAbsent("executions", record))  # 2 units and 1 of the index
    perform(PutIfAbsent("executions", record))  # refused: 2
    perform(Put("mail", {"pk": "a", "sk": "b"}))  # 1
    perform(Delete("mail", "a", "b"))  # 1
    perform(Delete("mail", "a", "b"))  # 1: nothing was there
    perform(Get("mail", "a", "b"))  # 1
    perform(Query("executions", "default#r"))  # 1
    send(cloud, *(f"r{n}" for n in range(12)))
    play(cloud, worker=Recorder())

    assert cloud.meter.calls == {
        "dynamodb.PutItem": 3,
        "dynamodb.DeleteItem": 2,
        "dynamodb.GetItem": 1,
        "dynamodb.Query": 1,
        "sqs.SendMessageBatch": 2,
        "sqs.ReceiveMessage": 2,
        "sqs.DeleteMessageBatch": 2,
    }
    usage = cloud.meter.usage
    assert (usage.write_units, usage.read_units) == (8, 2)
    assert (usage.sqs_send_requests, usage.sqs_deliveries) == (2, 12)
    assert (usage.lambda_requests, usage.commits) == (2, 1)
    assert cloud.meter.invocations == {"worker": 2}


def test_events_are_billed_and_the_queue_that_stands_in_for_the_bus_is_not(
    cloud: LocalCloud,
) -> None:
    cloud.put_event("bank.confirmed", "p-1", {})
    play(cloud, events=Recorder())

    assert cloud.meter.calls == {"events.PutEvents": 1}
    assert cloud.meter.usage.bus_events == 1
    assert cloud.meter.usage.sqs_deliveries == 0


def test_a_cloud_forgets_the_session_that_boto3_keeps_for_the_host() -> None:
    boto3.setup_default_session(region_name="eu-west-3")
    with LocalCloud(lambda: 0):
        assert boto3.DEFAULT_SESSION is None
        boto3.setup_default_session(region_name="us-east-1")
    assert boto3.DEFAULT_SESSION is None
