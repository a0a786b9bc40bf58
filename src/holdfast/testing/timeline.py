"""Virtual time: the ends of a run's waits, in the order in which they happen.

Both runs of a workflow use this class, so simultaneous events have the same order in both: events
at the same millisecond happen in the order in which their waits began, and for waits that began
together in the order of their branches.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.api.boundary import JsonValue
from holdfast.api.harness import OwnExecution
from holdfast.testing.ends import End
from holdfast.testing.limited import LimitGates
from holdfast.testing.outcomes import ScriptError
from holdfast.testing.places import CallKind, RunPath, WaitingPlace
from holdfast.testing.script import Script, ScriptedAnswer, Sent
from holdfast.testing.sets import takes_sets


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt of a task, one wait, one sleep or one published value, when it began.

    `at` is in seconds since the start, `timeout` in seconds. `path` is "" outside of branches;
    "0.1" is branch 1 of the branches that branch 0 opened. `after`: in how many seconds a `send` or
    `start` with a delay has its effect.
    """

    kind: CallKind
    name: str
    #: The arguments as JSON. The type is Any, so that a test can read them without casts.
    arguments: Any
    at: float
    path: str = ""
    attempt: int = 1
    timeout: float | None = None
    after: float | None = None
    #: True when the arguments contain sets. The order of their items has no meaning, so a
    #: comparison ignores it.
    has_sets: bool = field(default=False, repr=False, compare=False)
    #: True for a task with a cache that did not run: an earlier call has given the result.
    from_cache: bool = False
    #: The pool of workers that the task is offered to; None for another place.
    pool: str | None = None

    def __str__(self) -> str:
        number = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        bound = "" if self.timeout is None else f", timeout {self.timeout:g} s"
        later = "" if self.after is None else f", after {self.after:g} s"
        where = f" in branch {self.path}" if self.path else ""
        where += " from the cache" if self.from_cache else ""
        where += f" on the pool {self.pool}" if self.pool else ""
        what = f"{self.kind} {self.name}".rstrip()
        return f"{self.at:g} s: {what} {self.arguments!r}{number}{bound}{later}{where}"


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of one run. With `end` None it could not follow the other run, and `why` has the
    reason.
    """

    end: End | None
    calls: list[Call]
    ended_ms: int
    why: str = ""
    result: Any = None
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Over:
    """The end of a place. `answer` is None for a time-out, or the end of a sleep."""

    place: WaitingPlace
    answer: ScriptedAnswer | None


@dataclass(frozen=True, slots=True)
class _Entry:
    place: WaitingPlace | None
    answer: ScriptedAnswer | None = None
    is_beginning: bool = False
    runs_child: bool = False
    sent: int | None = None


class Timeline:
    """The clock of one run. Times are UTC milliseconds."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.now_ms = script.started_ms
        self.calls: list[Call] = []
        self._new: list[WaitingPlace] = []
        self._agenda: list[tuple[int, int, _Entry]] = []
        self._order = itertools.count()
        self._attempts: Counter[str] = Counter()
        self._starts: Counter[str] = Counter()
        self._executions: Counter[RunPath] = Counter()
        self._keys: Counter[str] = Counter()
        #: The ids of the executions that send an event later, by the number of the event.
        self._senders: dict[int, str] = {}
        #: The ids of the executions that the workflow has stopped.
        self._cancelled: set[str] = set()
        self._waits: list[WaitingPlace] = []
        self._arrived: list[int] = []
        #: The events and answers that the test sends, and after them those that the workflow sends.
        self._sent = [script.stored(number, sent) for number, sent in enumerate(script.sent)]
        self._limits = LimitGates(script.limits)
        for number, sent in enumerate(script.sent):
            self._push(sent.at_ms, _Entry(None, sent=number))

    def begin(self, place: WaitingPlace) -> None:
        self._new.append(place)

    def close(self, place: WaitingPlace) -> None:
        """Remove a cancelled wait: it has no outcome."""
        place.is_closed = True
        self._leave_limits(place)

    def next(self) -> Over | None:
        """Return the next end, and set the clock to its time; None when nothing more will
        happen.
        """
        while True:
            self._flush()
            if not self._agenda:
                return None
            due_ms, _, entry = heapq.heappop(self._agenda)
            place = entry.place
            if place is not None and place.is_closed:
                continue
            self.now_ms = max(self.now_ms, due_ms)
            if entry.sent is not None:
                over = self._deliver(entry.sent)
                if over is not None:
                    return over
                continue
            assert place is not None
            if entry.is_beginning:
                self._begin(place)
                continue
            if entry.runs_child:
                return _child_begins(place)
            if self._is_throttled(place, entry.answer):
                continue
            return self._over(place, entry.answer)

    @property
    def open_waits(self) -> list[WaitingPlace]:
        return [place for place in self._waits if not place.is_closed]

    def _over(self, place: WaitingPlace, answer: ScriptedAnswer | None) -> Over:
        place.is_closed = True
        self._leave_limits(place)
        if answer is not None and answer.error is None:
            self.script.cached.keep(place, answer.output, self.now_ms)
        return Over(place, answer)

    # Limits.

    def _leave_limits(self, place: WaitingPlace) -> None:
        for waiting in self._limits.end(place):
            self._push(self.now_ms, _Entry(waiting, is_beginning=True))

    def _is_throttled(self, place: WaitingPlace, answer: ScriptedAnswer | None) -> bool:
        """Return True when the attempt waits for its limits again, with the same number."""
        error = None if answer is None else answer.error
        if error is None or not self._limits.throttle(place, error, self.now_ms):
            return False
        self._leave_limits(place)
        self._push(self.now_ms, _Entry(place, is_beginning=True))
        return True

    def _is_let_in(self, place: WaitingPlace) -> bool:
        admitted_ms = self._limits.admit(place, self.now_ms)
        if admitted_ms is not None and admitted_ms > self.now_ms:
            self._push(admitted_ms, _Entry(place, is_beginning=True))
        return admitted_ms == self.now_ms

    def _push(self, due_ms: int, entry: _Entry) -> None:
        heapq.heappush(self._agenda, (due_ms, next(self._order), entry))

    def _flush(self) -> None:
        began = sorted(self._new, key=lambda place: [_sortable(part) for part in place.path])
        self._new.clear()
        for place in began:
            if place.is_closed:
                continue
            if place.begins_ms > self.now_ms and place.kind != "silent":
                self._push(place.begins_ms, _Entry(place, is_beginning=True))
            else:
                self._begin(place)

    def _begin(self, place: WaitingPlace) -> None:
        cached = self.script.cached.find(place, self.now_ms)
        place.is_cached = cached is not None
        if not place.is_cached and not self._is_let_in(place):
            return
        place.begins_ms = self.now_ms
        if place.kind != "silent":
            self._note(place)
        match place.kind:
            case "silent" | "sleep":
                assert place.timeout_ms is not None
                self._push(self.now_ms + place.timeout_ms, _Entry(place))
            case "workflow":
                self._begin_child(place)
            case "task" | "pure" if cached is not None:
                self._push(self.now_ms, _Entry(place, ScriptedAnswer(0, output=cached.output)))
            case "task" | "pure":
                answer = self.script.task_answer(place, self._count(place))
                self._send_all(answer.sends)
                self._answer(place, answer)
            case "event" | "ask" | "request":
                self._wait(place)
            case "again" | "reply":
                self._push(self.now_ms, _Entry(place, ScriptedAnswer(0)))
            case "stop":
                self._cancelled.add(place.name)
                self._push(self.now_ms, _Entry(place, ScriptedAnswer(0)))
            case "send":
                self._send(place)
            case "start":
                started = self._started(place)
                self._push(self.now_ms, _Entry(place, ScriptedAnswer(0, output=started)))
            case "publish":
                raise AssertionError("a published value is no wait")

    def _begin_child(self, place: WaitingPlace) -> None:
        answer = self.script.child_answer(place, self._count(place))
        if answer is not None:
            self._answer(place, answer)
            return
        # `finish` reports the end of the child.
        self._push(self.now_ms, _Entry(place, runs_child=True))
        if place.timeout_ms is not None:
            self._push(self.now_ms + place.timeout_ms, _Entry(place))

    def finish(self, place: WaitingPlace, answer: ScriptedAnswer) -> None:
        """Record that a child execution ends at the present time."""
        self._push(self.now_ms, _Entry(place, answer))

    def _count(self, place: WaitingPlace) -> int:
        self._attempts[place.name] += 1
        return self._attempts[place.name]

    def _note(self, place: WaitingPlace) -> None:
        timeout = place.timeout_ms
        is_sleep = place.kind == "sleep"
        assert place.kind != "silent"
        if len(self.calls) == self.script.calls_max:
            raise self._endless()
        self.calls.append(
            Call(
                kind=place.kind,
                name=place.name,
                arguments=place.arguments,
                at=(self.now_ms - self.script.started_ms) / 1_000,
                path=".".join(str(part) for part in place.path),
                attempt=place.attempt,
                timeout=None if timeout is None or is_sleep else timeout / 1_000,
                after=None if place.after_ms is None else place.after_ms / 1_000,
                has_sets=takes_sets(place.subject),
                from_cache=place.is_cached,
                pool=place.pool,
            )
        )

    def new_execution(self, path: RunPath) -> OwnExecution:
        """Return the execution that starts at the path. Its id is "run", or "run.pack.1" for the
        first child `pack`. Only the first execution may have a name of its own.

        The run in Python and the compiled run start children in the same order at one path, so
        both runs give the same ids.
        """
        started = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.now_ms)
        if not path:
            return OwnExecution("run", self.script.name or "run", started)
        self._executions[path] += 1
        child = ".".join(map(str, ("run", *path, self._executions[path])))
        return OwnExecution(child, child, started)

    def new_key(self, execution: str) -> str:
        """Return the idempotency key of a task's next call in the execution."""
        self._keys[execution] += 1
        return f"{execution}.{self._keys[execution]}"

    def publish(self, name: str, value: JsonValue, path: RunPath) -> None:
        """Record a published value. It is a call without an end."""
        self._note(WaitingPlace(path, None, "publish", name, value))

    def _answer(self, place: WaitingPlace, answer: ScriptedAnswer) -> None:
        timeout_ms = place.timeout_ms
        if answer.takes_ms is not None and (timeout_ms is None or answer.takes_ms <= timeout_ms):
            self._push(self.now_ms + answer.takes_ms, _Entry(place, answer))
        elif timeout_ms is not None:
            self._push(self.now_ms + timeout_ms, _Entry(place))
        else:
            self._waits.append(place)

    # Events and answers that are sent at a time.

    def _wait(self, place: WaitingPlace) -> None:
        number = self._count(place)
        answer = self.script.wait_answer(place, number)
        if answer is not None:
            self._answer(place, answer)
            return
        for sent in self._arrived:
            if self._sent[sent].is_for(place):
                self._arrived.remove(sent)
                self._push(self.now_ms, _Entry(place, self._sent_answer(sent, place)))
                return
        self._waits.append(place)
        if place.timeout_ms is not None:
            self._push(self.now_ms + place.timeout_ms, _Entry(place))

    def _send(self, place: WaitingPlace) -> None:
        """Send an event as the workflow does. A wait of the same run may receive it."""
        given: Any = place.arguments
        number, at_ms = len(self._sent), self.now_ms + (place.after_ms or 0)
        sent = Sent("event", place.name, given["data"], given["key"], None, at_ms)
        self._sent.append(self.script.stored(number, sent))
        waits = None if place.after_ms is None else self._started(place)
        if waits is not None:
            self._senders[number] = waits
        self._push(self.now_ms, _Entry(place, ScriptedAnswer(0, output=waits)))
        self._push(at_ms, _Entry(None, sent=number))

    def _send_all(self, sends: Sequence[Sent]) -> None:
        """Send what the scripted function of a task has sent."""
        for sent in sends:
            number = len(self._sent)
            self._sent.append(self.script.stored(number, sent))
            self.script.note_sent(number, sent)
            self._push(max(self.now_ms, sent.at_ms), _Entry(None, sent=number))

    def _started(self, place: WaitingPlace) -> str:
        """Return the id of the execution that the place starts."""
        self._starts[place.name] += 1
        return f"{place.name}-{self._starts[place.name]}"

    def _deliver(self, number: int) -> Over | None:
        if self._senders.get(number) in self._cancelled:
            return None
        for place in self.open_waits:
            if self._sent[number].is_for(place):
                return self._over(place, self._sent_answer(number, place))
        self._arrived.append(number)
        return None

    def _sent_answer(self, number: int, place: WaitingPlace) -> ScriptedAnswer:
        return self.script.sent_answer(number, self._sent[number].value, place)

    def _endless(self) -> ScriptError:
        names = ", ".join(sorted({call.name or "sleep" for call in self.calls[-100:]}))
        return ScriptError(
            f"the workflow is not over after {self.script.calls_max:,} calls, the last of them of: "
            f"{names}. Script what ends the loop: in_turn(pending, pending, done), or "
            "world.stop(at=…). For a run that needs more calls: World(…, calls_max=100_000)"
        )

    def stuck(self) -> ScriptError:
        """Return the error for a run that has not ended and in which nothing more can happen."""
        waits = "; ".join(
            f"{place.kind} {place.name} {place.arguments!r}" for place in self.open_waits
        )
        scripted = ", ".join(self.script.names) or "nothing"
        return ScriptError(
            f"the workflow waits for ever: {waits or 'for nothing'}. Scripted are: {scripted}. "
            "Script an outcome, send it with world.send(…) or world.answer(…), or give a timeout="
        )


def _child_begins(place: WaitingPlace) -> Over:
    """Return the moment at which the child of the call begins, as an end that starts it."""

    def begin(_: Over) -> None:
        assert place.run_child is not None
        place.run_child()

    return Over(WaitingPlace(place.path, begin, "silent"), None)


def _sortable(part: int | str) -> tuple[int, str]:
    return (part, "") if isinstance(part, int) else (-1, part)
