"""An invocation as Lambda and SQS make it: its deadline, receive counts, the time for which its
messages stay hidden, and the batches that are not of this stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import resources
from holdfast.aws.messaging import DeadLetter
from holdfast.errors import HoldfastError, ServiceFault
from holdfast.limits import (
    DEAD_LETTER_BATCHES_MAX,
    LIMIT_MARGIN_MS,
    OPEN_COUNT_MINUTES,
    VISIBILITY_EXTENSION_SECONDS,
    VISIBILITY_SECONDS,
)
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import Deadline, Effect, SetVisibility, WriteDeadline
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast.runtime.visibility import Holds
from holdfast.runtime.worker.leases import ReceivedMessage
from tests.builders import Shop, chain, machine, wait_for
from tests.unit.host_kit import Context, Site, site

ARN = "arn:aws:sqs:eu-west-1:111111111111:holdfast-"


def record(name: str = "m1", *, queue: str = "work", **attributes: str) -> dict[str, Any]:
    return {
        "messageId": name,
        "receiptHandle": f"receipt of {name}",
        "body": "{}",
        "attributes": {"ApproximateReceiveCount": "1", **attributes},
        "eventSourceARN": f"{ARN}{queue}",
    }


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the deliveries, each with what the worker sees of its times. None does any work."""
    seen: list[Any] = []

    def note(_setting: Any, delivery: ReceivedMessage) -> Any:
        deadline_ms = yield Deadline()
        limit_ms = yield WriteDeadline()
        seen.append((delivery, deadline_ms, limit_ms))
        return True

    monkeypatch.setattr("holdfast.aws.host.deliver", note)
    return seen


def quiet(found: Site) -> None:
    """Let the ports hide a message that the memory services do not have."""
    found.ports.extend_visibility = (  # type: ignore[method-assign]
        lambda queue, receipts, seconds: found.ports.hidden.append((list(receipts), seconds))
    )


@pytest.mark.parametrize("has_threads", [False, True])
@pytest.mark.parametrize("left_ms", [20_000, 500_000])
def test_the_deadline_is_what_lambda_leaves_less_the_margin(
    delivered: list[Any], has_threads: bool, left_ms: int
) -> None:
    found = Site(Shop(chain(1)), has_threads=has_threads)
    quiet(found)
    found.host.worker({"Records": [record()]}, Context(left_ms=left_ms))
    now_ms = found.shop.world.now_ms
    [(_, deadline_ms, limit_ms)] = delivered
    assert deadline_ms == now_ms + left_ms - LIMIT_MARGIN_MS
    hidden_ms = min(left_ms, VISIBILITY_SECONDS * 1_000) if has_threads else left_ms
    assert limit_ms == now_ms + hidden_ms - LIMIT_MARGIN_MS


def test_a_delivery_has_the_count_the_time_and_the_id_that_sqs_gives(delivered: list[Any]) -> None:
    found = site(chain(1))
    quiet(found)
    sent = record("m7", ApproximateReceiveCount="7", SentTimestamp="1750000000123")
    found.host.worker({"Records": [sent, record("m8")]}, Context("request-id-of-36"))
    (first, *_), (second, *_) = delivered
    assert (first.message_id, first.receive_count, first.sent_ms) == ("m7", 7, 1_750_000_000_123)
    assert (second.message_id, second.receive_count, second.sent_ms) == ("m8", 1, 0)
    assert first.body == {}
    for one in (first, second):
        assert one.owner.startswith("request-")
        assert len(one.owner) == 16
    assert first.owner != second.owner


def test_a_batch_from_a_queue_of_another_stack_stays_there(delivered: list[Any]) -> None:
    found = site(chain(1))
    quiet(found)
    batches: list[list[dict[str, Any]]] = [
        [record("a", queue="other"), record("b", queue="other")],
        [record("a"), record("b", queue="single")],
        [record("a", queue="work-dlq"), record("b", queue="work-dlq")],
    ]
    for records in batches:
        answer = found.host.worker({"Records": records}, Context())
        assert answer == {"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": "b"}]}
    assert delivered == []
    assert [what for what, _ in found.faults] == ["a batch was not processed"] * 3


@pytest.mark.parametrize("queue", ["work", "single", "starts"])
def test_a_batch_is_hidden_in_the_queue_of_its_arn(delivered: list[Any], queue: str) -> None:
    found, asked = site(chain(1)), []
    found.ports.extend_visibility = (  # type: ignore[method-assign]
        lambda queue, receipts, seconds: asked.append((queue, list(receipts), seconds))
    )
    records = [record("a", queue=queue), record("b", queue=queue)]
    assert found.host.worker({"Records": records}, Context()) == {"batchItemFailures": []}
    assert asked == [(queue, ["receipt of a", "receipt of b"], VISIBILITY_SECONDS)]


def test_a_message_that_is_given_back_is_not_hidden_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_back(_setting: Any, _delivery: ReceivedMessage) -> Any:
        yield SetVisibility(5)
        return False

    monkeypatch.setattr("holdfast.aws.host.deliver", give_back)
    found = site(chain(1))
    quiet(found)
    bound: list[tuple[str, str, int]] = []

    def for_message(queue: Any, receipt: str) -> Any:
        def perform(effect: Effect) -> None:
            assert isinstance(effect, SetVisibility)
            bound.append((queue, receipt, effect.seconds))

        return perform

    found.ports.for_message = for_message  # type: ignore[method-assign]
    answer = found.host.worker({"Records": [record("a")]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "a"}]}
    assert bound == [("work", "receipt of a", 5)]


@dataclass
class Ticks:
    """An event that is set after so many waits. The world's clock moves with them."""

    found: Site
    ticks: int
    waited: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.found.shop.world.now_ms += round(seconds * 1_000)
        return len(self.waited) > self.ticks


def test_messages_are_hidden_again_every_minute_for_two_minutes_from_then() -> None:
    found = Site(Shop(chain(1)), has_threads=True)
    quiet(found)
    start_ms = found.shop.world.now_ms
    holds = Holds({"a": "r1", "b": "r2"}, start_ms + 900_000, start_ms)
    done = Ticks(found, 3)
    found.host._keep_hidden("work", holds, done)  # type: ignore[arg-type]
    assert done.waited == [VISIBILITY_EXTENSION_SECONDS] * 4
    assert found.ports.hidden == [(["r1", "r2"], VISIBILITY_SECONDS)] * 3
    last_ms = start_ms + 3 * VISIBILITY_EXTENSION_SECONDS * 1_000
    for name in ("a", "b"):
        assert holds.limit_ms(name) == last_ms + VISIBILITY_SECONDS * 1_000 - LIMIT_MARGIN_MS


def test_a_receipt_that_sqs_refuses_is_let_go_and_the_others_are_hidden() -> None:
    found = Site(Shop(chain(1)), has_threads=True)

    def refuse(queue: Any, receipts: list[str], seconds: int) -> None:
        found.ports.hidden.append((list(receipts), seconds))
        if "r1" in receipts:
            raise ServiceFault("HF323", "gone", retry="never")

    found.ports.extend_visibility = refuse  # type: ignore[method-assign]
    start_ms = found.shop.world.now_ms
    holds = Holds({"a": "r1", "b": "r2"}, start_ms + 900_000, start_ms)
    found.host._hide("work", holds, start_ms + 50_000)
    assert found.ports.hidden == [
        (receipts, VISIBILITY_SECONDS) for receipts in (["r1", "r2"], ["r1"], ["r2"])
    ]
    assert holds.receipts == {"b": "r2"}
    lasts_ms = VISIBILITY_SECONDS * 1_000 - LIMIT_MARGIN_MS
    assert holds.limit_ms("a") == start_ms + lasts_ms
    assert holds.limit_ms("b") == start_ms + 50_000 + lasts_ms
    assert [(what, str(error)) for what, error in found.faults] == [
        ("a message was not hidden", "error[HF323]: gone")
    ]
    found.ports.hidden.clear()
    holds.let_go("b")
    found.host._hide("work", holds, start_ms)
    assert found.ports.hidden == []


# -- the minute ------------------------------------------------------------------------------------


def letters(*bodies: Any) -> list[DeadLetter]:
    return [DeadLetter(f"m{n}", f"r{n}", body) for n, body in enumerate(bodies)]


def test_a_sweep_takes_a_bounded_number_of_dead_letters_from_each_queue() -> None:
    found = site(machine({"it": wait_for("paid")}))
    received: list[str] = []
    deleted: list[str] = []

    def receive(queue: Any) -> list[DeadLetter]:
        received.append(queue)
        return letters({"k": "?"})

    found.ports.receive_dead_letters = receive  # type: ignore[method-assign]
    found.ports.delete_dead_letter = (  # type: ignore[method-assign]
        lambda queue, receipt: deleted.append(receipt)
    )
    found.host.sweeper(Context())
    assert received == [
        queue for queue in ("work", "single", "starts") for _ in range(DEAD_LETTER_BATCHES_MAX)
    ]
    # They cannot be read, so they stay.
    assert deleted == []
    refused = found.shop.world.services.metrics[resources.METRIC_SWEEP_REFUSED]
    assert refused == 3 * DEAD_LETTER_BATCHES_MAX


def test_a_dead_letter_keeps_its_id_when_sqs_delivers_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sweeper counts the rounds of a letter by its id. A receipt is another one each time."""
    seen: list[Any] = []
    deleted: list[str] = []

    def revive(letter: Any, _formats: Any) -> Any:
        seen.append((letter.body, letter.message_id))
        return
        yield

    monkeypatch.setattr("holdfast.runtime.maintenance.dead_letters.revive", revive)
    found = site(chain(1))
    batches = {"work": [letters({"k": "go"}, {"k": "recover"})]}
    found.ports.receive_dead_letters = (  # type: ignore[method-assign]
        lambda queue: batches[queue].pop() if batches.get(queue) else []
    )
    found.ports.delete_dead_letter = (  # type: ignore[method-assign]
        lambda queue, receipt: deleted.append(f"{queue} {receipt}")
    )
    found.host.sweeper(Context())
    assert seen == [({"k": "go"}, "m0"), ({"k": "recover"}, "m1")]
    assert deleted == ["work r0", "work r1"]


def test_every_shard_of_each_kind_is_swept_and_the_archive_only_where_there_is_one() -> None:
    swept: list[str] = []
    found = site(machine({"it": wait_for("paid")}))

    def note(effect: Effect) -> Any:
        partition = str(getattr(effect, "pk", ""))
        if partition.startswith("~"):
            swept.append(partition.partition("#")[0])
        return found.shop.world.services.perform(effect)

    found.ports.performs = note
    found.host.sweeper(Context())
    assert swept.count("~due") == DUE.least
    kinds = {kind: swept.count(kind) for kind in sorted(set(swept))}
    assert STARTS.least in kinds.values()


def test_a_format_or_a_pause_that_cannot_be_read_stops_no_invocation(
    delivered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: Any) -> Iterator[Any]:
        raise HoldfastError("HF321", "slow down")
        yield

    found = site(chain(1))
    quiet(found)
    monkeypatch.setattr(found.host.control, "look", fail)
    monkeypatch.setattr("holdfast.runtime.gates.memory.GateMemory.look", fail)
    assert found.host.worker({"Records": [record()]}, Context()) == {"batchItemFailures": []}
    assert len(delivered) == 1
    assert [what for what, _ in found.faults] == ["~ctl was not read", "the pauses were not read"]


def test_whatever_an_invocation_has_measured_is_written_with_its_time(
    delivered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(
        "holdfast.aws.telemetry.Metrics.flush", lambda _self, now_ms: flushed.append(now_ms)
    )
    found = site(machine({"it": wait_for("paid")}))
    quiet(found)
    now_ms = found.shop.world.now_ms
    found.host.worker({"Records": [record()]}, Context())
    found.host.events({"id": "b1", "detail": {"name": "paid", "key": "k1", "data": 5}})
    found.host.sweeper(Context())
    assert flushed == [now_ms] * 3


def test_a_fault_is_logged_with_the_message_or_the_shard_that_it_concerns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_given: Any) -> Any:
        raise ServiceFault("HF321", "slow down")
        yield

    told: list[tuple[str, dict[str, str]]] = []
    found = site(chain(1))
    found.host.log_fault = lambda what, _error, **ids: told.append((what, ids))
    found.ports.receive_dead_letters = lambda queue: letters({"k": "?"})  # type: ignore[method-assign]
    monkeypatch.setattr("holdfast.aws.host.deliver", fail)
    monkeypatch.setattr("holdfast.aws.host.DEAD_LETTER_BATCHES_MAX", 1)
    monkeypatch.setattr("holdfast.runtime.maintenance.sweeper.sweep", fail)
    quiet(found)
    assert found.host.worker({"Records": [record("m9")]}, Context())["batchItemFailures"]
    found.host.sweeper(Context())
    assert ("a work message was not processed", {"message_id": "m9"}) in told
    assert ("a dead letter was not revived", {"message_id": "m0"}) in told
    assert {ids["shard"] for what, ids in told if what == "a shard was not swept"} == {
        str(shard) for shard in range(16)
    }


@pytest.mark.parametrize("is_keyed", [False, True])
def test_only_an_event_that_may_start_a_keyed_workflow_needs_the_keys_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, is_keyed: bool
) -> None:
    """They are in Secrets Manager: a call more for each new process."""
    seen: list[Any] = []

    def note(front: Front, tenant: str, event_id: str, detail: Any, chance: bytes) -> Any:
        seen.append((front.keys, tenant, event_id, detail, len(chance)))
        return {}
        yield

    monkeypatch.setattr(Front, "bus_event", note)
    found = site(chain(1))
    none: Any = object()
    flow: Any = SimpleNamespace(source_map={"keyed": {}} if is_keyed else {})
    found.shop.front = replace(found.shop.front, keys=none, workflows={"flow": flow})
    found.host.events({"id": "b1", "detail": {"name": "paid"}})
    keys = found.host.setting.keys() if is_keyed else none
    assert seen == [(keys, "default", "b1", {"name": "paid"}, 8)]


def test_a_part_of_a_sweep_that_fails_is_named_and_keeps_no_other_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = ServiceFault("HF321", "slow down")

    def fail(*_given: Any) -> Any:
        raise fault
        yield

    def damaged_row(*_given: Any, **_more: Any) -> Any:
        return [fault]
        yield

    found = site(chain(1))
    quiet(found)
    found.shop.world.now_ms -= found.shop.world.now_ms % (OPEN_COUNT_MINUTES * 60_000)
    # As with a great spread of starts, whose shards a sweep hands out to workers.
    monkeypatch.setattr(
        "holdfast.aws.host.STARTS", SimpleNamespace(count=lambda _spread: 2, least=1)
    )
    monkeypatch.setattr("holdfast.runtime.commands.schedules.deploy", fail)
    monkeypatch.setattr("holdfast.runtime.maintenance.sweeper.sweep", damaged_row)
    monkeypatch.setattr("holdfast.runtime.maintenance.lost_starts.hand_out", fail)
    monkeypatch.setattr("holdfast.runtime.commands.counts.measure_open", fail)
    found.host.sweeper(Context())
    assert list(dict.fromkeys(found.faults)) == [
        ("the schedules of the code were not stored", fault),
        ("a due row was not worked off", fault),
        ("the shards of starts were not handed out", fault),
        ("the open executions or the pools were not counted", fault),
    ]
    # A damaged row has a row of its own that waits for a person.
    assert found.shop.world.services.metrics[resources.METRIC_SWEEP_REFUSED] == 3
