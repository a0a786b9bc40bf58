"""Batches: the items of many executions in one call of a task's function.

An attempt of a batch task never runs in the worker of its execution. It waits at a gate of its own,
`batch:<task>#<tenant>`, and its row holds its input. A tick (a delayed message) collects rows: when
`max` of them wait, or the oldest has waited for long enough, it runs the function once and stores
each result as an answer of its attempt. Only the first answer of an attempt counts, so a batch may
be run twice.

    attempt ─► AttemptQueued ─► row with the input ─┐
    attempt ─► AttemptQueued ─► row with the input ─┼─► tick: one call ─► an answer each ─► wakes
    attempt ─► AttemptQueued ─► row with the input ─┘

Rules of this file:
* One tick at a time processes a queue: it increments the number of the next tick before the call.
  Batches of one task and tenant run one after the other.
* The answer is stored, then its wake is sent, then its row is deleted. After a crash in between the
  row still exists.
* A call takes one token of each limit of the task. It may take the next future token, because its
  items have already waited.
* A tick that SQS delivers again, after a crash, runs one row alone, and first counts that in the
  row. So an input that crashes its worker delays the other rows by two minutes, and fails after
  three crashed workers.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.commands import JoinQueue
from holdfast.core.state import Attempt, Execution
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    CLAIM_SECONDS_DEFAULT,
    EVENT_RETENTION_SECONDS,
    SQS_DELAY_SECONDS_MAX,
    TAKEOVERS_MAX,
    VALUE_INLINE_BYTES_MAX,
)
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import (
    Begin,
    Clock,
    Condition,
    Deadline,
    Delete,
    Effect,
    Finished,
    Get,
    Item,
    Message,
    NoResult,
    PutIfAbsent,
    Query,
    RunTask,
    Send,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
    TaskThrottled,
    Update,
)
from holdfast.runtime.gates import dispense
from holdfast.runtime.gates import gate as gates
from holdfast.runtime.gates.gate import gate_from
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.permits import in_order, slow_down, take_next_token
from holdfast.runtime.gates.rules import BatchRule, GateId, LimitRule, gate_of
from holdfast.runtime.gates.scopes import ALL, Scope
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD

#: The error of an input when every worker that processed it has crashed.
WORKER_LOST: Final = "Holdfast.WorkerLost"
_TICKET: Final = (0, 0)
_ROW_BYTES_MAX: Final = VALUE_INLINE_BYTES_MAX
#: A batch that finds no free token of its limit tries again after this time.
_FULL_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class _Row:
    """One attempt that waits for a batch. `lost` counts the workers that crashed while they ran
    only this attempt.
    """

    sk: str
    tenant: str
    run: str
    entry: int
    attempt: int
    since_ms: int
    input: Json
    lost: int


def join(tenant: str, run: str, command: JoinQueue, state: Execution, now_ms: int) -> NoResult:
    """Put the row with the attempt's input. The first row of a queue starts its chain of ticks."""
    frame = state.frame_of(command.entry)
    assert frame is not None
    assert isinstance(frame.waiting, Attempt)
    stowed = yield from inbox.stow(tenant, run, frame.waiting.arguments, _ROW_BYTES_MAX)
    yield from dispense.join(tenant, run, command, now_ms, stowed)


@dataclass(frozen=True, slots=True)
class Collector:
    """The work of one tick on the queue of a batch task. `gate_id` identifies the queue of one
    tenant.
    """

    memory: GateMemory
    rule: BatchRule
    gate_id: GateId

    def collect(
        self, number: int, message: str, receive_count: int
    ) -> Generator[Effect, Any, bool]:
        """Run a batch if it is due. Return True when the tick message may be deleted. `number` is
        that of the tick in its chain.
        """
        gate_id, rule = self.gate_id, self.rule
        gate = gate_from((yield Get(tables.MAIL, keys.gate(str(gate_id)), keys.ONLY)))
        now_ms = yield Clock()
        is_again = gate.chain_message == message and gate.chain == number + 1
        if not gate.has_waiters or not (is_again or gate.chain == number):
            return True
        if not is_again:
            mine = Condition("tn", "=", number)
            deadline_ms = now_ms + 1_000 * (rule.timeout_seconds or CLAIM_SECONDS_DEFAULT)
            put: dict[str, str | int] = {"tm": message, "nx": deadline_ms}
            written = yield gates.update(
                gate_id, now_ms, mine, put=put, add={"tn": 1}, ends_ms=deadline_ms
            )
            if not written.is_done:
                # Another worker has the chain of ticks now and serves the queue.
                return True
        while True:
            rows = yield Query(tables.MAIL, keys.queue(str(gate_id)), limit=rule.most)
            now_ms = yield Clock()
            wait_ms = _wait_ms(rule, rows, now_ms)
            if not rows:
                yield from dispense.empty(gate_id, number + 1, now_ms)
                return True
            if wait_ms <= 0 and (yield Deadline()) - now_ms >= 1_000 * (rule.timeout_seconds or 60):
                chosen = rows[:1] if is_again or receive_count > 1 else rows
                wait_ms = yield from self._run(chosen)
                is_again, receive_count = False, 1
                if wait_ms == 0:
                    continue
            yield from _next_tick(gate_id, number + 1, max(0, wait_ms))
            return True

    def _run(self, items: list[Item]) -> Generator[Effect, Any, int]:
        """Run one batch. Return how many ms the next batch must wait because a limit is full, or
        because the dependency asked for a pause. The rows then stay, and no attempt is counted.
        """
        scopes = (ALL, Scope("task", self.rule.task))
        if (yield from self.memory.pause_of(scopes, (yield Clock()))) is not None:
            return _FULL_MS
        limits = yield from self._limits(str(items[0]["run"]))
        if not (yield from self._take_tokens(limits)):
            return _FULL_MS
        rows = list[_Row]()
        for item in items:
            rows += [(yield from _row(item))]
        result = yield from _result(self.rule, self.gate_id, rows)
        if limits and isinstance(result, TaskThrottled):
            for gate_id, rule in limits:
                yield from slow_down(self.memory, gate_id, rule, result.retry_after_ms)
            if len(rows) == 1:
                # Take back the count that was added before the call, because this worker has not
                # crashed. Otherwise an attempt that is throttled often would fail with WORKER_LOST.
                place = keys.queue(str(self.gate_id))
                yield Update(tables.MAIL, place, rows[0].sk, add={"lost": -1}, where=(_PRESENT,))
            return max(1, result.retry_after_ms)
        if result is not None:
            now_ms = yield Clock()
            for row, given in zip(rows, _answers(self.rule, result, len(rows)), strict=True):
                yield from _answer(self.gate_id, row, given, now_ms)
        return 0

    def _limits(self, run: str) -> Generator[Effect, Any, list[tuple[GateId, LimitRule]]]:
        """Return the gates of the task's limits, in the order in which workers take them."""
        found = []
        for use in in_order(self.memory.book.uses(self.rule.task)):
            rule = yield from self.memory.rule(use.rule, (yield Clock()))
            found.append((gate_of(use, rule, None, run), rule))
        return found

    def _take_tokens(self, limits: list[tuple[GateId, LimitRule]]) -> Generator[Effect, Any, bool]:
        """Take a token of each limit, or none. A batch that waits for one limit must not use up the
        tokens of another one.
        """
        if any(rule.is_paused for _, rule in limits):
            return False
        taken: list[tuple[GateId, LimitRule]] = []
        for gate_id, rule in limits:
            part = rule.of_shard(gate_id.shard)
            if (yield from take_next_token(self.memory, gate_id, part)):
                taken.append((gate_id, part))
                continue
            now_ms = yield Clock()
            for other, other_part in taken:
                seen = self.memory.seen(other)
                yield gates.give_token_back(other, other_part, seen, now_ms)
            return False
        return True


def _wait_ms(rule: BatchRule, rows: list[Item], now_ms: int) -> int:
    """Return how long the batch waits for more rows: 0 when it is full, or its oldest row has
    waited long enough.
    """
    if len(rows) >= rule.most or not rows:
        return 0
    oldest_ms = min(int(row["since"]) for row in rows)
    return max(0, oldest_ms + rule.wait_ms - now_ms)


def _next_tick(gate_id: GateId, chain: int, wait_ms: int) -> NoResult:
    now_ms = yield Clock()
    put: dict[str, str | int] = {"nx": now_ms + wait_ms}
    mine = Condition("tn", "=", chain)
    yield gates.update(gate_id, now_ms, mine, put=put, ends_ms=now_ms + wait_ms)
    delay_seconds = min(-(-wait_ms // 1_000), SQS_DELAY_SECONDS_MAX)
    yield dispense.next_tick(gate_id, chain, delay_seconds)


def _row(item: Item) -> Generator[Effect, Any, _Row]:
    tenant, run = str(item["t"]), str(item["run"])
    return _Row(
        sk=str(item["sk"]),
        tenant=tenant,
        run=run,
        entry=int(item["entry"]),
        attempt=int(item["attempt"]),
        since_ms=int(item["since"]),
        input=(yield from inbox.unstow(tenant, run, item)),
        lost=int(item.get("lost", 0)),
    )


def _result(
    rule: BatchRule, gate_id: GateId, rows: list[_Row]
) -> Generator[Effect, Any, TaskResult | None]:
    """Call the function. Return None when too many workers have crashed on the only row; the error
    is then stored as its answer.
    """
    now_ms = yield Clock()
    if len(rows) == 1:
        (row,) = rows
        place = keys.queue(str(gate_id))
        yield Update(tables.MAIL, place, row.sk, add={"lost": 1}, where=(_PRESENT,))
        if row.lost > TAKEOVERS_MAX:
            cause = f"{row.lost} workers in a row were lost while they ran {rule.task}"
            yield from _answer(gate_id, row, {"error": WORKER_LOST, "cause": cause}, now_ms)
            return None
    first = rows[0]
    timeout_ms = 1_000 * (rule.timeout_seconds or CLAIM_SECONDS_DEFAULT)
    yield Begin(
        _TICKET,
        RunTask(
            name=rule.task,
            kind="task",
            arguments=[row.input for row in rows],
            tenant=first.tenant,
            run=first.run,
            run_name=None,
            workflow="",
            entry=first.entry,
            attempt=first.attempt,
            deadline_ms=now_ms + timeout_ms,
            is_batch=True,
            is_timed=True,
        ),
    )
    done = yield Finished(now_ms + timeout_ms)
    return done[0][1] if done else TaskFailed("States.Timeout", None)


_PRESENT: Final = Condition("pk", "present")


def _answers(rule: BatchRule, result: TaskResult, count: int) -> list[dict[str, Any]]:
    """Return the output or error of each row. If the function raised an exception, it is the error
    of every row.
    """
    match result:
        case TaskSucceeded(list() as outcomes) if len(outcomes) == count:
            return list(outcomes)
        case TaskFailed(error, cause, _):
            return [{"error": error, "cause": cause}] * count
        case TaskThrottled(_, cause, _):
            return [{"error": "Throttled", "cause": cause}] * count
        case _:
            cause = f"{rule.task} returned no list of {count} results"
            return [{"error": "InvalidResult", "cause": cause}] * count


def _answer(gate_id: GateId, row: _Row, given: dict[str, Any], now_ms: int) -> NoResult:
    """Store the row's answer unless one is already stored, wake the execution, then delete the
    row.
    """
    key = keys.answer(row.entry, row.attempt)
    if "output" in given:
        fields: dict[str, Any] = yield from inbox.stow(row.tenant, row.run, given["output"])
    else:
        fields = {name: text for name, text in given.items() if text is not None}
    item = {
        "pk": keys.inbox(row.tenant, row.run),
        "sk": key,
        FORMAT_FIELD: FORMAT,
        "at": now_ms,
        "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
        **fields,
    }
    yield PutIfAbsent(tables.MAIL, item)
    yield Send((Message(messages.wake_mail(row.tenant, row.run, key)),))
    yield Delete(tables.MAIL, keys.queue(str(gate_id)), row.sk)
