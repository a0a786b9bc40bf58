"""Records the work that workers carried out for executions, and its first time: messages, rows,
inbox items.

Each piece of work has a key: ("timer", tenant, run, entry, due ms), ("start", tenant, run),
("stop", tenant, run), ("registration", tenant, run, place of the event).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from holdfast.runtime import messages
from holdfast.runtime.effects import Effect, Item, Put, PutIfAbsent, Send
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.scenarios import Scenario

#: The key of one piece of work that a worker carried out.
DispatchKey: TypeAlias = tuple[str | int, ...]

_ROWS: Final = "~due#"
_STOP_OF_A_PARENT: Final = keys.control("0" * 27)


@dataclass
class Dispatches:
    """The commands that workers carried out. `first_ms`: true times. `replaced`: the ids of dead
    letters that other messages replace.

    `handed`: the owners of leases that had no time left and handed them over. `rows`: the rows that
    the sweeper reads, by execution. A recovery puts a row once more. `canaries`: texts of the
    scenario that must not leak; `leaked`: messages that contain one.
    """

    canaries: tuple[str, ...] = ()
    first_ms: dict[DispatchKey, int] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    rows: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    leaked: list[str] = field(default_factory=list)

    def see(self, effect: Effect, now_ms: int) -> None:
        match effect:
            case Send(sent):
                for message in sent:
                    self.replaced.update(messages.replaced_by(message.body))
                    if message.body["k"] == messages.GO:
                        self.handed.add(str(message.body["from"]))
                    self._note(_of_message(message.body), now_ms)
                    self._look_for_canaries(message.body)
            case Put(tables.MAIL, item) | PutIfAbsent(tables.MAIL, item):
                if str(item["pk"]).startswith(_ROWS) and "run" in item:
                    self.rows[str(item["run"])].add(str(item["sk"]))
                self._note(_of_item(item), now_ms)

    def _note(self, found: Iterator[DispatchKey], now_ms: int) -> None:
        for key in found:
            self.first_ms.setdefault(key, now_ms)

    def _look_for_canaries(self, body: Mapping[str, Any]) -> None:
        for canary in self.canaries:
            told = {name: value for name, value in body.items() if name != "input"}
            if canary in str(told):
                self.leaked.append(f"a message of the kind {body['k']} tells {canary}")


#: A text of a scenario that represents a secret.
_CANARY: Final = re.compile(r"canary-\w+")


def canaries_of(scenario: Scenario) -> tuple[str, ...]:
    said = (scenario.input, scenario.tasks, scenario.events, scenario.answers)
    return tuple(sorted(set(_CANARY.findall(str(said)))))


def _of_message(body: Mapping[str, Any]) -> Iterator[DispatchKey]:
    match body["k"]:
        case messages.WAKE_TIMER:
            yield timer(body["t"], body["run"], body["entry"], body["due"])
        case messages.START:
            yield start(body["t"], body["run"])


def _of_item(item: Item) -> Iterator[DispatchKey]:
    pk, sk = str(item["pk"]), str(item["sk"])
    if pk.startswith(_ROWS) and "entry" in item:
        yield timer(str(item["t"]), str(item["run"]), int(item["entry"]), int(item["due"]))
    elif sk.startswith(keys.REGISTRATION_PREFIX):
        tenant, _, _ = pk.partition("#")
        yield registration(tenant, sk.removeprefix(keys.REGISTRATION_PREFIX), pk)
    elif sk == _STOP_OF_A_PARENT:
        tenant, _, rest = pk.partition("#")
        yield stop(tenant, rest.partition("#")[2])


def timer(tenant: str, run: str, entry: int, due_ms: int) -> DispatchKey:
    return ("timer", tenant, run, entry, due_ms)


def start(tenant: str, run: str) -> DispatchKey:
    return ("start", tenant, run)


def stop(tenant: str, run: str) -> DispatchKey:
    return ("stop", tenant, run)


def registration(tenant: str, run: str, place: str) -> DispatchKey:
    return ("registration", tenant, run, place)
