"""The requests to the cloud with their times, beside moto's answers, by the clock of the trial.

Writers use their own clocks, and a frozen writer uses an old time. Here a record is as old as the
request that brought it; all processes of a trial share the machine's one clock.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.aws.store import item_of
from holdfast.runtime import messages
from holdfast.runtime.effects import Item

SAMPLES_MAX: Final = 400


def digest(item: Item) -> str:
    """Return of a record's bytes, but for the place in the list, which goes when all is over."""
    kept = sorted((name, value) for name, value in item.items() if name not in {"lp", "ls"})
    return hashlib.sha256(repr(kept).encode()).hexdigest()


@dataclass
class Journal:
    """The requests to the cloud. Records are named by partition and sequence: `<pk> <sk>`.

    `writers`: the nonces whose puts were accepted there. `arrived`: the time of the first of those
    puts, in seconds. `digests`: its content. `starts`: the number of starts sent for each
    execution.
    """

    executions_table: str
    requests: Counter[str] = field(default_factory=Counter)
    refused_puts: int = 0
    writers: dict[str, list[str]] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def note(self, target: str, body: bytes, status: int, arrived_at: float) -> None:
        operation = target.rpartition(".")[2]
        with self._lock:
            match operation:
                case "PutItem":
                    self._put(json.loads(body), status, arrived_at)
                case "SendMessageBatch":
                    self._sent(json.loads(body))
                case "DeleteMessage" if b"-dlq" in body:
                    operation = "DeleteMessage (dead letter)"
            self.requests[operation] += 1

    def _put(self, request: dict[str, Any], status: int, arrived_at: float) -> None:
        if request["TableName"] != self.executions_table:
            return
        if status != 200:
            self.refused_puts += 1
            return
        item = item_of(_unpacked(request["Item"]))
        key = f"{item['pk']!s} {item['sk']!s}"
        self.writers.setdefault(key, []).append(str(item["w"]))
        self.arrived.setdefault(key, arrived_at)
        self.digests.setdefault(key, digest(item))
        self.statuses[str(item["pk"])] = str(item["st"])

    def _sent(self, request: dict[str, Any]) -> None:
        """An even sample of all messages that ever were: they come back long after."""
        for entry in request["Entries"]:
            self._seen += 1
            message = json.loads(entry["MessageBody"])
            self.starts[message["run"]] += message["k"] == messages.START
            if len(self.messages) < SAMPLES_MAX:
                self.messages.append(entry["MessageBody"])
            elif (place := self._draw.randrange(self._seen)) < SAMPLES_MAX:
                self.messages[place] = entry["MessageBody"]

    def statuses_json(self) -> bytes:
        with self._lock:
            return json.dumps(self.statuses).encode()

    def to_json(self) -> bytes:
        with self._lock:
            shown = {
                "requests": self.requests,
                "refused_puts": self.refused_puts,
                "writers": self.writers,
                "arrived": self.arrived,
                "digests": self.digests,
                "starts": self.starts,
                "messages": self.messages,
            }
            return json.dumps(shown).encode()


def _unpacked(attributes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """On the wire bytes are text."""
    return {
        name: {"B": b64decode(attribute["B"])} if "B" in attribute else attribute
        for name, attribute in attributes.items()
    }
