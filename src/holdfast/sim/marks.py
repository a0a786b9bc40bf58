"""Reach marks: named situations that a level must have met, or its silence proves nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

from holdfast.runtime.claims import Delivery
from holdfast.runtime.effects import Item
from holdfast.sim.processes import Process


class Watcher:
    """Counts what happens while it happens; `marks` is the count by name."""

    def __init__(self, marks: Counter[str]) -> None:
        self.marks = marks

    def record(self, process: Process, item: Item, found: Any) -> None:
        """A put into a log. `found`: what stood there, None when it was stored."""
        if found is None:
            if process.was_frozen:
                self.marks["a thawed host wrote a record"] += 1
            return
        owner = str(item["w"]).partition(".")[0]
        if found["w"] == item["w"]:
            self.marks["refused by its own write"] += 1
        elif str(found["w"]).startswith(f"{owner}."):
            self.marks["refused by its own earlier bytes"] += 1
        elif process.was_frozen:
            self.marks["a thawed host was refused"] += 1
        else:
            self.marks["a race was lost"] += 1

    def delivery(self, delivery: Delivery) -> None:
        self.marks[f"delivered: {delivery.body['k']}"] += 1
        if delivery.receive_count > 1:
            self.marks["delivered before"] += 1
