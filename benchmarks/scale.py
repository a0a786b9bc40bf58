"""What a rate of starts does to each partition: `uv run python benchmarks/scale.py`.

Each workload runs some hundred times in the simulator. The writes of every kind of partition key
are counted, of the tables and of their indexes, and spread over the partitions that such keys have.
The table says how many write units a second the busiest partition of each kind takes at 100, 1,000
and 10,000 starts a second, and what the sweeper, the queues and Lambda do then. The number of
partitions is that of a stack whose `starts_per_second` is the rate.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from holdfast import cost, resources
from holdfast.limits import SWEEP_SECONDS, WRITE_UNIT_BYTES
from holdfast.runtime.effects import Item
from holdfast.runtime.listing import DONE, FAILED, OPEN
from holdfast.runtime.storage.spread import (
    DUE,
    LIST_ENDED,
    LIST_OPEN,
    STARTS,
    Shards,
    spread_for,
)
from tests.builders import Machine, Shop, call, chain, machine, wait_for

RATES: Final = (100, 1_000, 10_000)
EXECUTIONS: Final = 96
DAY: Final = 86_400
#: An invocation that runs no task of its own: load, one or two commits, acknowledgement.
DELIVERY_SECONDS: Final = 0.05
#: A due row costs the sweeper two or three calls, the row of a start one: 5 ms for each call.
DUE_ROW_SECONDS: Final = 0.0125
START_ROW_SECONDS: Final = 0.005

#: Each execution waits for an event of its own, because one execution uses an event.
PAID: Final = {"event": "paid", "key": "{% $states.context.Execution.Name %}"}
THREE_DAYS: Final = {"Type": "Wait", "Seconds": 3 * DAY, "Next": "last"}
WORKLOADS: Final[Mapping[str, Machine]] = {
    "short": chain(5),
    "bank": machine(
        {
            "first": call("add", "wait", Arguments={"n": 1}),
            "wait": {**wait_for("paid", "last"), "Arguments": PAID},
            "last": call("add", Arguments={"n": 1}),
        }
    ),
    "three days": machine(
        {
            "first": call("add", "wait", Arguments={"n": 1}),
            "wait": THREE_DAYS,
            "last": call("add", Arguments={"n": 1}),
        }
    ),
}

#: How the keys of many executions share partitions: the key, and a name for its kind. A number at
#: the end is a shard. Keys of any other form belong to one execution, event or name.
SHARED: Final = (
    (re.compile(r"~due#\d+"), "mail: due rows"),
    (re.compile(r"~start#\d+"), "mail: rows of starts"),
    (re.compile(r".*#waits#\d+"), "mail: rows of waits"),
)
SHARDS: Final[Mapping[str, Shards]] = {
    "mail: due rows": DUE,
    "mail: rows of starts": STARTS,
    "mail: rows of waits": LIST_OPEN,
    f"list: {OPEN}": LIST_OPEN,
    f"list: {DONE}": LIST_ENDED,
    f"list: {FAILED}": LIST_ENDED,
}


@dataclass
class Load:
    """The write units of the executions by kind of partition, and the partitions of each kind."""

    units: Counter[str] = field(default_factory=Counter)
    partitions: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    executions: int = 0
    deliveries: float = 0
    due_rows: int = 0

    def note(self, kind: str, partition: str, units: float) -> None:
        self.units[kind] += round(units)
        self.partitions[kind].add(partition)

    def hottest(self, rate: int) -> dict[str, float]:
        """Return the write units a second of the busiest partition of each kind that is shared."""
        spread = spread_for(rate)
        return {
            kind: self.units[kind] / self.executions * rate / SHARDS[kind].count(spread)
            for kind in sorted(self.units)
            if kind != OWN
        }


OWN: Final = "its own"


def _kind(pk: str) -> str:
    return next((name for pattern, name in SHARED if pattern.fullmatch(pk)), OWN)


def measure(definition: Machine, executions: int = EXECUTIONS) -> Load:
    """Run the executions from start to end, the sweeper included."""
    shop, load = Shop(definition), Load(executions=executions)
    services = shop.world.services
    write = services._write  # noqa: SLF001  (the one place that every write goes through)

    def noting(table: Any, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            pk = str(item["pk"])
            size = max(cost.item_bytes(one) for one in (before or {}, after or {}))
            load.note(_kind(pk), pk, -(-size // WRITE_UNIT_BYTES))
            if pk.startswith("~due#") and after is not None:
                load.due_rows += 1
            for one in (before, after):
                entry = None if one is None else one.get(resources.LIST_PARTITION)
                if entry is not None and before != after:
                    load.note(f"list: {str(entry).split('#')[-2]}", str(entry), 1)
        write(table, before, after)

    services._write = noting  # type: ignore[method-assign]  # noqa: SLF001
    for number in range(executions):
        name = f"order-{number}"
        request = {"workflow": "flow", "name": name, "input": {"n": 0}}
        chance = (number * 2_654_435_761 % 2**64).to_bytes(8, "big")
        shop.world.call(shop.front.start(shop.tenant, request, chance))
    if "paid" in str(definition):
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
        for number in range(executions):
            event = {"name": "paid", "key": f"order-{number}", "data": "", "id": "e1"}
            shop.world.call(shop.front.event(shop.tenant, event, bytes(8)))
    shop.world.run()
    load.deliveries = services.usage.sqs_deliveries / executions
    return load


def report(name: str, load: Load) -> list[str]:
    """Return the rows of the table of one workload."""
    found = {
        kind: [f"{load.hottest(rate)[kind]:,.0f} of {_shards(kind, rate)}" for rate in RATES]
        for kind in load.hottest(1)
    }
    due = load.due_rows / load.executions
    found["due rows a minute in a shard"] = [
        f"{due * rate * SWEEP_SECONDS / DUE.count(spread_for(rate)):,.0f}" for rate in RATES
    ]
    # The sweeper and its workers check each due row and each start, apart from the deliveries.
    swept = due * DUE_ROW_SECONDS + START_ROW_SECONDS
    more = {
        "messages delivered a second": load.deliveries,
        "workers at once": load.deliveries * DELIVERY_SECONDS,
        "sweeps at once": swept,
    }
    for what, each in more.items():
        found[what] = [f"{each * rate:,.0f}" for rate in RATES]
    return [f"| {name} | {what} | {' | '.join(rates)} |" for what, rates in found.items()]


def _shards(kind: str, rate: int) -> int:
    return SHARDS[kind].count(spread_for(rate))


def main() -> None:
    print("| workload | of the busiest partition | 100/s | 1,000/s | 10,000/s |")
    print("|---|---|---|---|---|")
    for name, definition in WORKLOADS.items():
        print("\n".join(report(name, measure(definition))))


if __name__ == "__main__":
    main()
