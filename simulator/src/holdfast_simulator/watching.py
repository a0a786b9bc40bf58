"""Observations of hosts and messages, made at each effect and delivery.

Everything here only counts. Hosts are stored by name, so none is kept alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime import messages
from holdfast.runtime.effects import (
    Begin,
    Delete,
    Effect,
    Get,
    Item,
    Put,
    PutBlob,
    PutIfAbsent,
    Send,
    SetVisibility,
    Unlist,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.worker.leases import ReceivedMessage
from holdfast.runtime.worker.loop import OTHER_FORMAT_SECONDS
from holdfast_simulator.faults import NO_ANSWER, run_of
from holdfast_simulator.marks import Seen
from holdfast_simulator.processes import Process, SimulatedHost
from holdfast_simulator.services import Services

_KINDS: Final = {
    messages.START: Seen.START,
    messages.WAKE_TIMER: Seen.WAKE_TIMER,
    messages.WAKE_MAIL: Seen.WAKE_MAIL,
    messages.GO: Seen.GO,
    messages.RECOVER: Seen.RECOVER,
    messages.ARCHIVE: Seen.ARCHIVE,
}
_DEATHS: Final = frozenset({"killed before", "killed after"})
_OFTEN: Final = 4
_RACES: Final = 3
_DUE: Final = "~due#"


class Watcher:
    """Counts into `marks`. `now` is the true time."""

    def __init__(self, marks: Counter[str], services: Services, now: Callable[[], int]) -> None:
        self.marks = marks
        self._services = services
        self._now = now
        self._deliveries: dict[str, ReceivedMessage] = {}
        #: By process: what its last write was.
        self._last: dict[str, Seen | None] = {}
        self._doubts: dict[str, str] = {}
        self._races: Counter[str] = Counter()
        #: The writers of records under each (run, message).
        self._writers: dict[tuple[str, str], set[str]] = {}
        self._hands: dict[tuple[str, str], SimulatedHost] = {}
        self._once: dict[tuple[object, ...], str] = {}
        self._ended: set[str] = set()

    # -- records -----------------------------------------------------------------------------------

    def record(self, process: Process, item: Item, found: Any, *, is_heard: bool) -> None:
        """Observe a put into a log. `found`: the item already there, None when it was stored."""
        nonce, owner = str(item["w"]), process.name.partition(":")[0]
        run = str(item["pk"]).partition("#")[2]
        if found is None:
            if process.is_late:
                self.marks[Seen.THAWED_WROTE] += 1
            if self._doubts.get(nonce) == "answer lost":
                self.marks[Seen.DOUBT_DONE] += 1
            self._writers.setdefault((run, str(item["m"])), set()).add(owner)
            if item["st"] == "RUNNING":
                self._ended.discard(str(item["pk"]))
            else:
                self._ended.add(str(item["pk"]))
        elif found["w"] == nonce:
            self.marks[Seen.OWN_WRITE if is_heard else Seen.LATE_FIRST_TRY] += 1
        elif process.is_late:
            self.marks[Seen.THAWED_REFUSED] += 1
        else:
            self.marks[Seen.RACE_LOST] += 1
            self._races[owner] += 1
            if self._races[owner] == _RACES:
                self.marks[Seen.RACES_LOST] += 1

    # -- effects -----------------------------------------------------------------------------------

    def tried(self, process: Process, effect: Effect, fault: str | None) -> None:
        """A process is about to do this; what goes wrong around it."""
        kind = type(effect)
        if fault in _DEATHS:
            self._died(process, effect, fault)
        elif fault in NO_ANSWER and _is_record(effect):
            assert fault is not None
            self._doubts[str(effect.item["w"])] = fault  # type: ignore[union-attr]
            if fault == "not done":
                self.marks[Seen.DOUBT_NOT_DONE] += 1
        if kind in _WATCHED:
            _WATCHED[kind](self, process, effect)

    def _died(self, process: Process, effect: Effect, fault: str | None) -> None:
        if fault == "killed after":
            self._last[process.name] = self._step(process, effect)
        last = self._last.get(process.name)
        if last is not None:
            self.marks[last] += 1
        if process.running:
            self.killed_at_task(process)

    def killed_at_task(self, process: Process) -> None:
        """Observe a crash of the host while it runs a task."""
        delivery = self._deliveries.get(process.name)
        if delivery is not None and delivery.body["k"] == messages.START:
            self._count_if(Seen.FIRST_HOLD_DIED, not self._has_log(delivery))

    def _step(self, process: Process, effect: Effect) -> Seen | None:
        """The situation if the host crashed after this effect."""
        is_sweeper = process.host.name.startswith("sweeper")
        match effect:
            case PutIfAbsent(tables.EXECUTIONS):
                return Seen.DIED_AFTER_RECORD
            case PutBlob():
                return Seen.DIED_AFTER_BLOB
            case Put(_, item) if str(item["pk"]).startswith(_DUE):
                return Seen.DIED_AFTER_MOVE if is_sweeper else Seen.DIED_AFTER_WATCH
            case Send(sent) if is_sweeper and sent[0].body["k"] == messages.WAKE_TIMER:
                return Seen.DIED_AFTER_TIMER
            case PutIfAbsent(tables.MAIL, item) if not self._deliveries.get(process.name):
                return None if "#def#" in str(item["pk"]) else Seen.STORED_NOT_TOLD
            case _:
                return None

    def done(self, process: Process, effect: Effect) -> None:
        """Observe the effect, at its place in the order of all hosts' effects."""
        step = self._step(process, effect)
        if step is not None or type(effect) in _WRITES:
            self._last[process.name] = step

    def _put(self, process: Process, effect: Put) -> None:
        item = effect.item
        partition = str(item["pk"])
        if partition == keys.QUARANTINE:
            self._count_if(Seen.QUARANTINED_START, '"k": "start"' in str(item.get("body")))
        elif partition.startswith(_DUE) and process.host.name.startswith("sweeper"):
            self._second((partition, item["sk"]), process, Seen.TWO_SWEEPERS)

    def _put_if_absent(self, _process: Process, effect: PutIfAbsent) -> None:
        if effect.item["pk"] == keys.QUARANTINE:
            self.marks[Seen.QUARANTINED] += 1

    def _sent(self, process: Process, effect: Send) -> None:
        delivery = self._deliveries.get(process.name)
        for message in effect.messages:
            body = message.body
            if body["k"] == messages.WAKE_TIMER:
                self._sent_timer(process, body, delivery)
            elif body["k"] == messages.START and delivery is not None:
                key = ("start", body["run"])
                self._count_if(Seen.CHILD_TWICE, key in self._once)
                self._once[key] = process.host.name
        if effect.queue == "single" and delivery is not None:
            self.marks[Seen.GOES_ALONE] += 1

    def _sent_timer(self, process: Process, body: Any, delivery: ReceivedMessage | None) -> None:
        timer = ("timer", body["run"], body["entry"], body["due"])
        if process.host.name.startswith("sweeper"):
            self.marks[Seen.TIMER_ROW] += 1
            return
        self._second(timer, process, Seen.TWO_WAKES)
        if delivery is not None and delivery.body["k"] == messages.WAKE_TIMER:
            cause = ("timer", delivery.body["run"], delivery.body["entry"], delivery.body["due"])
            self._count_if(Seen.EARLY_WAKE_AGAIN, timer == cause)

    def _second(self, key: tuple[object, ...], process: Process, mark: Seen) -> None:
        """Another worker has done the same."""
        first = self._once.setdefault(key, process.host.name)
        self._count_if(mark, first != process.host.name)

    def _got(self, process: Process, effect: Get) -> None:
        if "#def#" in effect.pk and process.name in self._deliveries:
            self.marks[Seen.FETCHED] += 1

    def _hidden(self, _process: Process, effect: SetVisibility) -> None:
        self._count_if(Seen.NOT_ACKNOWLEDGED, effect.seconds != OTHER_FORMAT_SECONDS)

    def _unlisted(self, process: Process, effect: Unlist) -> None:
        self._second(("unlist", effect.pk, effect.sk), process, Seen.UNLISTED_AGAIN)

    def _began(self, process: Process, _effect: Begin) -> None:
        delivery = self._deliveries.get(process.name)
        if delivery is not None:
            hand = self._hands.get((delivery.body["run"], delivery.message_id))
            self._count_if(Seen.LIVED_ON, hand is not process.host)

    # -- deliveries --------------------------------------------------------------------------------

    def delivery(self, name: str, delivery: ReceivedMessage, host: SimulatedHost) -> None:
        """`name` is that of the process which works for it."""
        body, received = delivery.body, delivery.receive_count
        self._deliveries[name] = delivery
        self.marks[_KINDS[body["k"]]] += 1
        self._count_if(Seen.DELIVERED_BEFORE, received > 1)
        self._count_if(Seen.DELIVERED_OFTEN, received == _OFTEN)
        if not run_of(body):
            return
        place = (body["run"], delivery.message_id)
        before = self._hands.get(place)
        self._hands[place] = host
        self._count_if(Seen.COPY, before is not None and received == 1)
        self._count_if(Seen.TWO_HANDS, before is not None and before.is_alive)
        self._count_if(Seen.TWIN_NOTICED, place in self._writers)
        self._log_of(delivery)
        if body["k"] == messages.WAKE_TIMER:
            early_ms = body["due"] + 2 * CLOCK_ERROR_MS - self._now() - host.skew_ms
            self._count_if(Seen.EARLY_WAKE, 0 < early_ms <= 1_000)

    def _log_of(self, delivery: ReceivedMessage) -> None:
        is_start, is_letter = delivery.body["k"] == messages.START, bool(delivery.body.get("of"))
        self._count_if(Seen.LETTER_START, is_start and is_letter)
        if not self._has_log(delivery):
            self._count_if(Seen.ABSENT, not is_start)
            return
        self._count_if(Seen.BEGUN_AGAIN, is_start)
        if keys.execution(delivery.body["t"], delivery.body["run"]) in self._ended:
            self.marks[Seen.AFTER_END] += 1
            self._count_if(Seen.LETTER_AFTER_END, is_letter)

    def _has_log(self, delivery: ReceivedMessage) -> bool:
        partition = keys.execution(delivery.body["t"], delivery.body["run"])
        return self._services.has(tables.EXECUTIONS, partition, 0)

    def past_limit(self, now_ms: int, limit_ms: int) -> None:
        self._count_if(Seen.PAST_LIMIT, now_ms > limit_ms)

    def died_with(self, messages_open: int) -> None:
        """A host is dead, and so many of its messages were at work."""
        self._count_if(Seen.MANY_DIED, messages_open > 1)

    def _count_if(self, mark: Seen, is_so: bool) -> None:
        if is_so:
            self.marks[mark] += 1


def _is_record(effect: Effect) -> bool:
    return isinstance(effect, PutIfAbsent) and effect.table == tables.EXECUTIONS


_WATCHED: Final[dict[type[Any], Callable[[Watcher, Process, Any], None]]] = {
    Put: Watcher._put,  # noqa: SLF001  # a table of this class's own methods
    PutIfAbsent: Watcher._put_if_absent,  # noqa: SLF001
    Send: Watcher._sent,  # noqa: SLF001
    Get: Watcher._got,  # noqa: SLF001
    SetVisibility: Watcher._hidden,  # noqa: SLF001
    Unlist: Watcher._unlisted,  # noqa: SLF001
    Begin: Watcher._began,  # noqa: SLF001
}
_WRITES: Final = frozenset({Put, PutIfAbsent, PutBlob, Send, Delete})
