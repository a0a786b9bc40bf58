"""The worker function with arbitrary input: any bytes as messages, any damage to stored data."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from holdfast.core.state import ROOT
from holdfast.errors import HoldfastError
from holdfast.runtime.effects import Effect, Item, RunTask, SetVisibility, TaskSucceeded
from holdfast_simulator.queues import MemoryQueue
from holdfast_simulator.services import Services
from holdfast_simulator.tables import MemoryTable
from tests.builders import Machine, Shop, ask, call, machine, wait_for
from tests.unit.bad_input import junk
from tests.unit.host_kit import Context, Site

ARN: Final = "arn:aws:sqs:eu-west-1:111111111111:holdfast-"


def waiting_machine() -> Machine:
    """Return a machine with a task, then an event, then a question: an execution waits at the
    event.
    """
    return machine({"step": call("step", "event"), "event": wait_for("paid", "ask"), "ask": ask()})


def echo(effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded(effect.arguments)


@dataclass(frozen=True, slots=True)
class Answer:
    """The worker's answer. `came_back`: by number, the messages that it did not take. `faults`: its
    logged errors.
    """

    came_back: tuple[int, ...]
    faults: tuple[Exception, ...]

    @property
    def codes(self) -> list[str]:
        """An exception that is not of ours shows by its kind: no test expects one."""
        return [
            fault.code if isinstance(fault, HoldfastError) else repr(fault) for fault in self.faults
        ]


class Belt:
    """A stack to whose worker any text can be delivered as a message."""

    def __init__(self, definition: Machine | None = None, **options: Any) -> None:
        whole = waiting_machine() if definition is None else definition
        self.shop = Shop(whole, **{"tasks": echo, **options})
        self.site = Site(self.shop)
        self.hidden: list[int] = []
        self._numbers = itertools.count()
        ports: Any = self.site.ports
        ports.extend_visibility = lambda *_: None
        ports.for_message = lambda *_: self._perform

    @property
    def services(self) -> Services:
        return self.shop.world.services

    def _perform(self, effect: Effect) -> Any:
        """Perform an effect. None of these messages is in a queue, so hiding has no effect."""
        if isinstance(effect, SetVisibility):
            self.hidden.append(effect.seconds)
            return None
        return self.site.ports.perform(effect)

    def start(self, data: Any, name: str) -> str:
        """Start an execution and return it at its first wait."""
        run = self.shop.start(data, name)
        self.shop.world.run(until_ms=self.shop.world.now_ms)
        return run

    def deliver(self, *texts: Any, queue: str = "work", arn: str = ARN, times: int = 1) -> Answer:
        """One batch; `times`: how often its messages have been received."""
        records = [
            {
                "messageId": f"m{next(self._numbers)}",
                "receiptHandle": f"r{number}",
                "body": text,
                "attributes": {"ApproximateReceiveCount": str(times)},
                "eventSourceARN": f"{arn}{queue}",
            }
            for number, text in enumerate(texts)
        ]
        self.site.faults.clear()
        answer = self.site.host.worker({"Records": records}, Context())
        failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
        numbers = [number for number, r in enumerate(records) if r["messageId"] in failed]
        return Answer(tuple(numbers), tuple(error for _, error in self.site.faults))

    def sweep(self) -> Answer:
        self.site.faults.clear()
        self.site.host.sweeper(Context())
        return Answer((), tuple(error for _, error in self.site.faults))

    def position(self, run: str) -> str:
        return self.shop.history(run).state.frames[ROOT].position

    def stored(self) -> tuple[Any, ...]:
        """Return all durable data: a refused request must not change it."""
        services = self.services
        return services.items("executions"), services.items("mail"), services.blobs(), self.sent()

    def sent(self) -> list[list[str]]:
        """The ids of all messages, queue by queue."""
        queues = self.services._queues
        return [sorted(queues[name].messages) for name in sorted(queues)]

    def put(self, table: Any, item: Mapping[str, Any]) -> None:
        """Store an item past all checks, as other software might."""
        store = self.services._tables[table]
        there = store.get(item["pk"], item["sk"])
        if there is not None:
            store.remove(there)
        store.add(dict(item))

    def save(self) -> Callable[[], None]:
        """Return a function that restores the stored data and the time. Items never change."""
        services, world = self.services, self.shop.world
        now_ms, task_runs = world.now_ms, dict(world.task_runs)
        blobs = dict(services._blobs)
        tables = [(table, _table_parts(table)) for table in services._tables.values()]
        queues = [(queue, _queue_parts(queue)) for queue in services._queues.values()]

        def restore() -> None:
            services._blobs.clear()
            services._blobs.update(blobs)
            for table, (items, keys, index) in tables:
                table._items = {pk: dict(found) for pk, found in items.items()}
                table._keys = {pk: list(found) for pk, found in keys.items()}
                table._index = {lp: list(found) for lp, found in index.items()}
            for queue, (messages, heap) in queues:
                queue.messages = {name: copy.copy(found) for name, found in messages.items()}
                queue._heap = list(heap)
            world.now_ms = now_ms
            world.task_runs.clear()
            world.task_runs.update(task_runs)
            self.hidden.clear()
            # Another process: it has read no log yet.
            self.site.host.setting.warm_logs._logs.clear()

        return restore

    def take_away(self, table: Any, item: Item) -> None:
        self.services._tables[table].remove(item)


def _table_parts(table: MemoryTable) -> tuple[Any, Any, Any]:
    items = {pk: dict(found) for pk, found in table._items.items()}
    keys = {pk: list(found) for pk, found in table._keys.items()}
    return items, keys, {lp: list(found) for lp, found in table._index.items()}


def _queue_parts(queue: MemoryQueue) -> tuple[Any, Any]:
    return {name: copy.copy(found) for name, found in queue.messages.items()}, list(queue._heap)


def damaged(draw: Random, whole: Any) -> Any:
    """Return a copy of a JSON value in which one place is missing, is junk, or has a new
    neighbour.
    """
    found = copy.deepcopy(whole)
    place, key = draw.choice(list(_places(found)))
    match draw.randrange(8):
        case 0 | 1 if isinstance(place, dict):
            del place[key]
        case 2 if isinstance(place, dict):
            place[f"{key}x"] = junk(draw)
        case 3 if isinstance(place[key], int):
            place[key] += draw.choice([-1, 1, 2**31, 2**63, -(2**40), 0.5])
        case _:
            place[key] = junk(draw)
    return found


def _places(value: Any) -> Any:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def damaged_text(draw: Random, text: str) -> str:
    """Return the text cut, or with one character changed, doubled or gone."""
    at = draw.randrange(len(text) + 1)
    match draw.randrange(4):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            return (
                text[:at]
                + chr(draw.choice([0, 34, 44, 57, 92, 123, 125, 233, 0x1F600]))
                + text[at:]
            )
        case _:
            return text[:at] + text[draw.randrange(len(text)) :]


def as_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
