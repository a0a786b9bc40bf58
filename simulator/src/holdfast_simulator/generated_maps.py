"""Generates random distributed Maps from a given branch."""

from __future__ import annotations

from random import Random
from typing import Any, Final

_ITEMS_MAX: Final = 4
_TRANSFORMATIONS: Final = ("NONE", "COMPACT", "FLATTEN")


def distributed(random: Random, lane: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a Map whose items are executions of this lane."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    body: dict[str, Any] = {
        "Type": "Map",
        "Items": list(range(random.randint(0, _ITEMS_MAX))),
        "ItemProcessor": {**lane, "ProcessorConfig": config},
        "MaxConcurrency": random.randint(1, 3),
    }
    if random.random() < 0.5:
        body["ToleratedFailurePercentage"] = random.choice([0, 30, 100])
    if random.random() < 0.3:
        body["ItemBatcher"] = {"MaxItemsPerBatch": 2}
    if random.random() < 0.3:
        writer = {"OutputType": "JSON", "Transformation": random.choice(_TRANSFORMATIONS)}
        body["ResultWriter"] = {"WriterConfig": writer}
    return body
