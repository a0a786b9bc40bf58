"""DynamoDB, SQS and S3 as the handlers see them, in memory and without faults.

One `perform` door, the same as that of `aws.ports`; tests/contract holds the two to one behaviour.
Everything happens at once and in a repeatable order; time is what `clock` says. Kills, throttles,
lost answers and duplicates are the simulator's business, added around this door.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, Final

from holdfast import cost, limits, resources
from holdfast.errors import GONE, HoldfastBug, ServiceFault
from holdfast.runtime.effects import (
    Archived,
    Clock,
    Delete,
    Effect,
    Extend,
    Get,
    GetArchive,
    GetBlob,
    GetMany,
    Item,
    ListPage,
    Measure,
    Pause,
    Publish,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    QueueName,
    Replace,
    RunTask,
    Send,
    SetVisibility,
    TableName,
    TaskResult,
    Together,
    Unlist,
    Update,
    Updated,
)
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.items import changed, holds, refused
from holdfast_simulator.queues import AnyQueueName, MemoryQueue, Received
from holdfast_simulator.tables import MemoryTable

WORK_QUEUES: Final[tuple[QueueName, ...]] = ("work", "single", "starts")
DEAD_LETTERS: Final[tuple[AnyQueueName, ...]] = (
    "work-dlq",
    "single-dlq",
    "starts-dlq",
)


class Services:
    """The services of one stack. `clock` gives milliseconds since the epoch.

    `pause` lets that many milliseconds pass for the caller; without it a pause takes no time.
    `is_metered` False: `usage` and `bytes_written` are not counted, which saves a fifth of the
    time.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        *,
        tasks: Callable[[RunTask], TaskResult] | None = None,
        pause: Callable[[int], None] | None = None,
        is_metered: bool = True,
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._pauses = pause
        self._is_metered = is_metered
        self._tables = {table.name: MemoryTable(table, clock) for table in resources.TABLES}
        self._queues: dict[str, MemoryQueue] = {}
        for queue in resources.QUEUES:
            self._queues[f"{queue.name}-dlq"] = MemoryQueue(queue, clock, dead_letters=None)
            self._queues[queue.name] = MemoryQueue(
                queue, clock, dead_letters=self._queues[f"{queue.name}-dlq"]
            )
        self._blobs: dict[str, bytes] = {}
        #: The objects of the archive by key.
        self.archive: dict[str, bytes] = {}
        #: By how much the list is behind its table.
        self.index_lag_ms: Callable[[], int] = lambda: 0
        #: The events on the bus.
        self.published: list[Publish] = []
        self._performers: dict[type[Any], Callable[[Any], Any]] = {
            Query: self._query,
            QueryList: self._query_list,
            Together: self._query_together,
            Get: self._get,
            GetMany: self._get_many,
            PutIfAbsent: self._put_if_absent,
            Put: self._put,
            Replace: self._replace,
            Update: self._update,
            Delete: self._delete,
            Unlist: self._unlist,
            Extend: self._extend,
            PutBlob: self._put_blob,
            GetBlob: self._get_blob,
            PutArchive: self._put_archive,
            GetArchive: self._get_archive,
            Send: self._send,
            RunTask: self._run_task,
            Publish: self.published.append,
            Clock: lambda _: clock(),
            Pause: self._pause,
            Measure: self._measure,
        }
        #: Effects performed, by class name.
        self.effects: Counter[str] = Counter()
        #: Bytes of all items that were stored, by table.
        self.bytes_written: Counter[str] = Counter()
        #: AWS's bill for the effects performed so far.
        self.usage = cost.Usage()
        self.metrics: dict[str, float] = defaultdict(float)
        self.when_measured: Callable[[Measure], None] = lambda _: None

    def perform(self, effect: Effect) -> Any:
        """Return the effect's result (see `runtime.effects`). `SetVisibility` needs
        `for_message`.
        """
        kind = type(effect)
        performer = self._performers.get(kind)
        if performer is None:
            raise HoldfastBug(f"{kind.__name__} cannot be performed here")
        self.effects[kind.__name__] += 1
        return performer(effect)

    def for_message(self, queue: AnyQueueName, receipt: str) -> Callable[[Effect], Any]:
        """Return `perform` for the handler of one message of `queue`."""

        def perform(effect: Effect) -> Any:
            if isinstance(effect, SetVisibility):
                self.effects["SetVisibility"] += 1
                return self.extend_visibility(queue, [receipt], effect.seconds)
            return self.perform(effect)

        return perform

    # The platform's work on queues, and queries of tests.

    def receive(self, queue: AnyQueueName, messages_max: int = 10) -> list[Received]:
        batch = self._queues[queue].receive(queue, messages_max)
        self.usage.sqs_deliveries += len(batch)
        return batch

    def delete(self, receipt: str, *, accepts_stale: bool = True) -> bool:
        """Return True when this call deleted the message.

        SQS says of an old receipt that it "might not" delete; the caller chooses the behaviour.
        """
        return any(q.delete(receipt, accepts_stale=accepts_stale) for q in self._queues.values())

    def has_message(self, message_id: str) -> bool:
        """Return True when any queue has it, or a copy of it."""
        stored = (one for queue in self._queues.values() for one in queue.messages.values())
        return any(one.message_id == message_id for one in stored)

    def extend_visibility(self, queue: AnyQueueName, receipts: Iterable[str], seconds: int) -> None:
        for receipt in receipts:
            self._queues[queue].set_visibility(receipt, seconds)

    def next_visible_ms(self, queues: Iterable[AnyQueueName] = WORK_QUEUES) -> int | None:
        """Return the time at which the earliest message of `queues` can be received; None when they
        are empty.
        """
        times = [at for name in queues if (at := self._queues[name].next_visible_ms()) is not None]
        return min(times, default=None)

    def queue(self, name: AnyQueueName) -> MemoryQueue:
        return self._queues[name]

    def depth(self, queue: AnyQueueName) -> int:
        """Return messages in the queue: visible, delayed and in flight."""
        return len(self._queues[queue].messages)

    def items(self, table: TableName) -> list[Item]:
        """Return the stored items by partition and key, including those that TTL has deleted."""
        found = list(self._tables[table])
        gone = self._tables[table].gone
        return sorted([*found, *gone], key=self._tables[table].key) if gone else found

    def expired(self, table: TableName) -> list[Item]:
        """Return items that TTL may take by now."""
        return self._tables[table].expired(self._clock() // 1_000)

    def expire(self, table: TableName, item: Item) -> None:
        self._tables[table].expire(item)

    def has(self, table: TableName, pk: str, sk: int | str) -> bool:
        return self._tables[table].get(pk, sk) is not None

    def has_partition(self, table: TableName, pk: str) -> bool:
        """Return True when a row of the partition is stored."""
        return self._tables[table].has_partition(pk)

    def partition(self, table: TableName, pk: str) -> Sequence[Item]:
        """Return the stored rows of the partition, by key. It is no effect and costs no unit."""
        return self._tables[table].partition(pk)

    def row(self, table: TableName, pk: str, sk: int | str) -> Item | None:
        """Return one stored row. It is no effect and costs no unit."""
        return self._tables[table].get(pk, sk)

    def first_key(self, table: TableName, pk: str) -> int | str | None:
        """Return the sort key of the first stored row of the partition."""
        return self._tables[table].first_key(pk)

    def blobs(self) -> dict[str, bytes]:
        return dict(self._blobs)

    # DynamoDB.

    def _query(self, effect: Query) -> list[Item]:
        found = self._tables[effect.table].query(effect)
        self._meter_read(found, is_strong=effect.is_strong)
        return found

    def _query_list(self, effect: QueryList) -> ListPage:
        lag_ms = self.index_lag_ms() if effect.table == tables.EXECUTIONS else 0
        page = self._tables[effect.table].query_list(effect, lag_ms)
        self._meter_read(page.items, is_strong=False)
        return page

    def _query_together(self, effect: Together) -> list[ListPage]:
        return [self._query_list(query) for query in effect.queries]

    def _get(self, effect: Get) -> Item | None:
        found = self._tables[effect.table].get(effect.pk, effect.sk)
        self._meter_read([found or {}])
        return found

    def _get_many(self, effect: GetMany) -> list[Item]:
        if len(effect.keys) > limits.BATCH_GET_MAX:
            raise refused(f"a batch of {len(effect.keys)} keys; {limits.BATCH_GET_MAX} are allowed")
        found = [self._tables[effect.table].get(pk, sk) for pk, sk in effect.keys]
        for item in found:
            self._meter_read([item or {}], is_strong=False)
        return [item for item in found if item is not None]

    def _put_if_absent(self, effect: PutIfAbsent) -> Item | None:
        table = self._tables[effect.table]
        item = table.checked(effect.item)
        there = table.get(*table.key(item))
        if there is None:
            self._write(effect.table, None, item)
        else:
            self._meter_refusal(there, item)
        return there

    def _put(self, effect: Put) -> None:
        table = self._tables[effect.table]
        item = table.checked(effect.item)
        self._write(effect.table, table.get(*table.key(item)), item)

    def _replace(self, effect: Replace) -> bool:
        table = self._tables[effect.table]
        item = table.checked(effect.item)
        there = table.get(*table.key(item))
        if there is None or there.get("rv") != effect.seen:
            self._meter_refusal(there, item)
            return False
        self._write(effect.table, there, item)
        return True

    def _update(self, effect: Update) -> Updated:
        table = self._tables[effect.table]
        there = table.get(effect.pk, effect.sk)
        if not all(holds(there or {}, condition) for condition in effect.where):
            self._meter_refusal(there, None)
            return Updated(is_done=False, item=there or {})
        item = table.checked(changed(there or {"pk": effect.pk, "sk": effect.sk}, effect))
        self._write(effect.table, there, item)
        return Updated(is_done=True, item=item)

    def _delete(self, effect: Delete) -> None:
        there = self._tables[effect.table].get(effect.pk, effect.sk)
        if all(holds(there or {}, condition) for condition in effect.where):
            self._write(effect.table, there, None)
        else:
            self._meter_refusal(there, None)

    def _unlist(self, effect: Unlist) -> None:
        before = self._tables[tables.EXECUTIONS].get(effect.pk, effect.sk)
        if before is None or resources.LIST_PARTITION not in before:
            self._meter_refusal(before, None)
            return
        after = {
            name: before[name]
            for name in before
            if name not in (resources.LIST_PARTITION, resources.LIST_SORT)
        }
        self._write(tables.EXECUTIONS, before, MappingProxyType(after))

    def _extend(self, effect: Extend) -> None:
        before = self._tables[tables.MAIL].get(effect.pk, effect.sk)
        if before is None or before.get("run") != effect.run:
            self._meter_refusal(before, None)
            return
        self._write(tables.MAIL, before, MappingProxyType({**before, "ttl": effect.ttl}))

    def _write(self, table: TableName, before: Item | None, after: Item | None) -> None:
        store = self._tables[table]
        if before is not None:
            store.remove(before)
        if after is not None:
            store.add(after)
        if self._is_metered:
            self.usage.write_units += cost.put_units(store.table, before, after)
            self.bytes_written[table] += cost.item_bytes(after or {})

    def _meter_read(self, found: Sequence[Item], *, is_strong: bool = True) -> None:
        if self._is_metered:
            size = sum(map(cost.item_bytes, found))
            self.usage.read_units += cost.read_units(size, is_strong=is_strong)

    def _meter_refusal(self, there: Item | None, item: Item | None) -> None:
        if self._is_metered:
            self.usage.write_units += cost.refused_units(there, item)

    # S3, SQS and the rest.

    def _put_blob(self, effect: PutBlob) -> None:
        self.usage.s3_puts += 1
        self._blobs[effect.key] = bytes(effect.data)

    def _get_blob(self, effect: GetBlob) -> bytes:
        self.usage.s3_gets += 1
        if effect.key not in self._blobs:
            raise ServiceFault(GONE, f"no object {effect.key} in the bucket", retry="never")
        return self._blobs[effect.key]

    def _put_archive(self, effect: PutArchive) -> None:
        self.usage.s3_puts += 1
        self.archive[effect.key] = effect.data

    def _get_archive(self, effect: GetArchive) -> Archived | None:
        found = effect.last_of(key for key in self.archive if key.startswith(effect.prefix))
        return None if found is None else Archived(found, self.archive[found])

    def _send(self, effect: Send) -> None:
        size = limits.SQS_BATCH_ENTRIES_MAX
        batches = [effect.messages[i : i + size] for i in range(0, len(effect.messages), size)]
        for batch in batches:
            sent = sum(self._queues[effect.queue].send(message) for message in batch)
            self.usage.sqs_send_requests += cost.billed_chunks(sent)

    def _run_task(self, effect: RunTask) -> TaskResult:
        if self._tasks is None:
            raise HoldfastBug(f"task {effect.name} was called where there are no tasks")
        return self._tasks(effect)

    def _pause(self, effect: Pause) -> None:
        if self._pauses is None:
            raise HoldfastBug("a caller waits where no time goes by")
        self._pauses(effect.milliseconds)

    def _measure(self, effect: Measure) -> None:
        self.metrics[effect.name] += effect.value
        self.when_measured(effect)
