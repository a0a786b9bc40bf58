"""A distributed Map of a million small items: `uv run python benchmarks/million.py [--outer 100]`.

A list may have no more than 500,000 parts, so the Map has two levels. Each child of the outer Map
runs a Map of 10,000 items, and that one gives 100 items to each of its children. The memory store
keeps every log. Prints the time and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.states_world import Office, states

INNER: Final = 10_000
BATCH: Final = 100
HOUR: Final = 3_600


def distributed(items: str, name: str, inner: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a Map state whose children are executions of their own."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    processor = {"ProcessorConfig": config, "StartAt": name, "States": {name: inner}}
    return {"Type": "Map", "Items": items, "ItemProcessor": processor, **fields}


def machine(outer: int) -> dict[str, Any]:
    add = {"Type": "Pass", "Output": "{% $count($states.input.Items) %}", "End": True}
    batches = {"ItemBatcher": {"MaxItemsPerBatch": BATCH}}
    each = distributed(f"{{% [1..{INNER}] %}}", "count", add, **batches)
    each = {**each, "Output": "{% $sum($states.result) %}", "End": True}
    total = {"Output": "{% $sum($states.result) %}"}
    return states(all=distributed(f"{{% [1..{outer}] %}}", "each", each, **total))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outer", type=int, default=100, help="children of the outer Map")
    chosen = parser.parse_args()
    office = Office()
    arn = office.create(machine(chosen.outer))
    print(f"before: {peak_mb():.0f} MB")
    begin, cpu = time.monotonic(), time.process_time()
    execution = office.start(arn)
    office.wait(HOUR)
    found = office.describe(execution)
    print(f"{found['status']}: {found.get('output', found.get('cause'))} items")
    print(f"CPU {time.process_time() - cpu:.1f} s, {time.monotonic() - begin:.1f} s")
    logs = len({str(item["pk"]) for item in office.world.services.items("executions")})
    print(f"{logs} executions; peak {peak_mb():.0f} MB")


if __name__ == "__main__":
    main()
