"""Growth of the cost in one execution: `uv run python benchmarks/growth.py [--to 1000] [NAME …]`.

Each workload runs at several sizes and reports what one unit of it (a step, an event, an item, a
page) costs: CPU of the handlers, read and write units, bytes written. The exponent is fitted over
all sizes: 1.0 means that the whole cost is linear, 2.0 that it is quadratic. The memory store and
its clock are left out of the CPU.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from holdfast.core.run_ids import uuid_of
from holdfast.cost import Usage
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskSucceeded
from holdfast.runtime.maintenance import sweeper
from holdfast.runtime.storage.spread import DUE
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast_simulator.world import SimulatorWorld
from tests.builders import KEYS, Machine, Shop, call, machine, wait_for
from tests.unit.child_kit import Family, call_of
from tests.unit.states_kit import PLACE
from tests.unit.states_world import Office, states

SIZES = (100, 300, 1_000, 3_000, 10_000)
#: An inline Map has at most 6,250 items (`Holdfast.TooManyLanes`).
INLINE_MAX = 6_000
DAY = 86_400


@dataclass
class Meter:
    """The cost of what the handlers of a world do while it is on."""

    world: SimulatorWorld
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._before = self.world.services.usage.copy()
        self._bytes_before = self._bytes()
        for name in ("deliver", "call"):
            setattr(self.world, name, self._timed(getattr(self.world, name)))

    def _timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begin = time.process_time()
            try:
                return work(*arguments)
            finally:
                self.seconds += time.process_time() - begin

        return timed

    def cost(self) -> Cost:
        used: Usage = self.world.services.usage.minus(self._before)
        written = self._bytes() - self._bytes_before
        return Cost(self.seconds * 1_000, used.read_units, used.write_units, written)

    def _bytes(self) -> float:
        stored = sum(map(len, self.world.services.blobs().values()))
        return sum(self.world.services.bytes_written.values()) + stored


@dataclass(frozen=True)
class Cost:
    cpu_ms: float
    reads: float
    writes: float
    bytes_: float


# -- workloads -------------------------------------------------------------------------------------


def _looped(states_between: Machine, first: str, rounds: int, **variables: Any) -> Machine:
    """Return a machine that runs the states `rounds` times; `first` is the first of them."""
    again = {"Condition": f"{{% $n < {rounds} %}}", "Next": first}
    return machine(
        {
            "begin": {"Type": "Pass", "Assign": {"n": 0, **variables}, "Next": first},
            **states_between,
            "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
            "done": {"Type": "Succeed", "Output": "{% $n %}"},
        }
    )


def _run(definition: Machine, tasks: Callable[[RunTask], Any] | None = None) -> Cost:
    shop = Shop(definition) if tasks is None else Shop(definition, tasks)
    meter = Meter(shop.world)
    shop.run()
    return meter.cost()


def steps(size: int) -> Cost:
    arguments, assign = {"n": "{% $n %}"}, {"n": "{% $states.result.n %}"}
    work = call("add", "again?", Arguments=arguments, Assign=assign)
    return _run(_looped({"work": work}, "work", size))


def growing_list(size: int) -> Cost:
    """`results.append(task(…))` in a loop; each result has 40 bytes."""
    assign = {"n": "{% $n + 1 %}", "results": "{% $append($results, [$states.result]) %}"}
    work = call("add", "again?", Arguments={"n": "{% $n %}"}, Assign=assign)

    def tasks(effect: RunTask) -> TaskSucceeded:
        return TaskSucceeded({"order": f"{effect.arguments['n']:06d}", "state": "paid", "sum": 12})

    return _run(_looped({"work": work}, "work", size, results=[]), tasks)


def events(size: int) -> Cost:
    """An entity: it waits for an event, again and again, and keeps a sum."""
    waiting = wait_for("paid", "again?", Assign={"n": "{% $n + 1 %}"})
    shop = Shop(_looped({"waiting": waiting}, "waiting", size))
    meter = Meter(shop.world)
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    for number in range(size):
        shop.send_event(data={"sum": number}, event_id=f"e{number:06d}")
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
    return meter.cost()


def items(size: int) -> Cost:
    """An inline Map, 40 items at once, each with one task."""
    one = {"one": call("add", Arguments={"n": "{% $states.input %}"})}
    processor = {"StartAt": "one", "States": one}
    each = {"Type": "Map", "Items": f"{{% [1..{size}] %}}", "ItemProcessor": processor}
    return _run(machine({"all": {**each, "MaxConcurrency": 40, "End": True}}))


def child_workflows(size: int) -> Cost:
    """An inline Map, each item a call of a workflow of one task."""
    one = {"one": call_of("inner", Arguments={"n": "{% $states.input %}"})}
    each = {
        "Type": "Map",
        "Items": f"{{% [1..{size}] %}}",
        "ItemProcessor": {"StartAt": "one", "States": one},
        "End": True,
    }
    inner = machine({"work": call("add", Arguments={"n": "{% $states.input.n %}"})})
    family = Family({"outer": machine({"all": each}), "inner": inner})
    meter = Meter(family.world)
    family.start()
    family.world.run(until_ms=family.world.now_ms + 600_000)
    return meter.cost()


def children(size: int) -> Cost:
    """A distributed Map, each child one Pass."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "inner",
        "States": {"inner": {"Type": "Pass", "End": True}},
    }
    each = {"Type": "Map", "Items": f"{{% [1..{size}] %}}", "ItemProcessor": processor}
    office = Office()
    execution = office.create(states(all=each))
    meter = Meter(office.world)
    office.start(execution)
    office.wait(600)
    return meter.cost()


def pages(size: int) -> Cost:
    """Reads a history of so many pages by the API of AWS, ten events a page."""
    assign = {"n": "{% $n + 1 %}"}
    work = {**call("add", "again?", Arguments={"n": "{% $n %}"}), "Assign": assign}
    shop = Shop(_looped({"work": work}, "work", size * 10 // 7))
    run = shop.start(name=None)
    shop.world.run()
    workflows = {"flow": shop.definition}
    service = Service(shop.programs, KEYS, "default", PLACE, PAYLOAD_BYTES_MAX, workflows)
    api = StatesApi(service)
    arn = f"arn:aws:states:{PLACE.region}:{PLACE.account}:execution:flow:{uuid_of(run)}"
    request = {"executionArn": arn}
    meter, read = Meter(shop.world), 0
    while read < size:
        asked = {"maxResults": 10, **request}
        answer = shop.world.call(api.call("GetExecutionHistory", asked, bytes(CHANCE_BYTES)))
        read += 1
        if "nextToken" not in answer:
            break
        request["nextToken"] = answer["nextToken"]
    return meter.cost()


def parked(size: int) -> Cost:
    """Executions that wait for 20 days: their starts, and one sweep of every shard."""
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 20 * DAY, "End": True}}))
    meter = Meter(shop.world)
    for number in range(size):
        request = {"workflow": "flow"}
        shop.world.call(shop.front.start(shop.tenant, request, number.to_bytes(8, "big")))
    while shop.world._deliver_visible():  # noqa: SLF001  (no sweep of its own in between)
        pass
    for shard in range(DUE.least):
        shop.world.call(sweeper.sweep(shard, "sweeper"))
    return meter.cost()


WORKLOADS = (steps, growing_list, events, items, child_workflows, children, pages, parked)


# -- the table -------------------------------------------------------------------------------------


def exponent(sizes: list[int], totals: list[float]) -> float:
    """Return the slope of log(total) over log(size), by least squares."""
    points = [(math.log(n), math.log(t)) for n, t in zip(sizes, totals, strict=True) if t > 0]
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points)


def measure(workload: Callable[[int], Cost], sizes: list[int]) -> None:
    costs: list[Cost] = []
    workload(sizes[0])  # the first run imports modules and compiles expressions
    print(f"\n{workload.__name__}: per unit")
    for size in sizes:
        gc.collect()
        cost = workload(size)
        costs.append(cost)
        print(
            f"  {size:6}  {cost.cpu_ms / size:8.3f} ms  {cost.reads / size:7.2f} R "
            f"{cost.writes / size:7.2f} W  {cost.bytes_ / size:9.0f} bytes",
            flush=True,
        )
    fitted = {
        "cpu": exponent(sizes, [cost.cpu_ms for cost in costs]),
        "reads": exponent(sizes, [cost.reads for cost in costs]),
        "writes": exponent(sizes, [cost.writes for cost in costs]),
        "bytes": exponent(sizes, [cost.bytes_ for cost in costs]),
    }
    print("  exponents " + json.dumps({name: round(value, 2) for name, value in fitted.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=int, default=max(SIZES), help="the largest size")
    parser.add_argument("workloads", nargs="*", help="names; none: all")
    chosen = parser.parse_args()
    sizes = [size for size in SIZES if size <= chosen.to]
    for workload in WORKLOADS:
        if not chosen.workloads or workload.__name__ in chosen.workloads:
            is_inline = workload in {items, child_workflows}
            measure(workload, [min(size, INLINE_MAX) for size in sizes] if is_inline else sizes)


if __name__ == "__main__":
    main()
