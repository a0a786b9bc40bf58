"""I5: attempts are numbered without gaps, one worker at a time holds each, they are repeated as the
state says, and each ends once, with its own result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.program import MapState, ParallelState, Program, Retrier, TaskState
from holdfast.core.events import TASK_EVENTS, Event
from holdfast.limits import (
    CLOCK_ERROR_MS,
    ERROR_CHARACTERS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    TAKEOVERS_MAX,
)
from holdfast_simulator.evidence import Evidence, Ran
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.dues import UNHIDDEN_MS, Skews, skews
from holdfast_simulator.invariants.programs import program_of

_TASKS: Final = ("Task", *TASK_EVENTS.values())
_SCHEDULED: Final = frozenset(f"{task}Scheduled" for task in _TASKS)
_SUCCEEDED: Final = frozenset(f"{task}Succeeded" for task in _TASKS)
_FAILED: Final = frozenset(f"{task}Failed" for task in _TASKS)
_RESULTS: Final = _SUCCEEDED | _FAILED | frozenset(f"{task}TimedOut" for task in _TASKS)
#: The first and last attempt of a distributed Map, for which there is no TaskScheduled event.
_ENDS_OF_A_MAP: Final = frozenset({"ItemsAsked", "ResultsAsked"})
_WORKER_LOST: Final = "Holdfast.WorkerLost"
#: Errors that the engine gives an attempt, independent of the task's result.
_INTERRUPTED: Final = "StepInterrupted"
_OF_THE_ENGINE: Final = frozenset({_WORKER_LOST, _INTERRUPTED, error_names.DATA_LIMIT_EXCEEDED})

#: The owner, the message, the number of its delivery, and the end of the lease.
_Claim: TypeAlias = tuple[str, str, int, int]
_Runs: TypeAlias = Mapping[tuple[str, int, int], Ran]


@dataclass
class _Line:
    """One frame: its present state, and its open attempt."""

    state: str = ""
    retries: dict[int, int] = field(default_factory=dict)
    entry: int = -1
    attempt: int = 0
    is_open: bool = False
    is_submitted: bool = False
    polls: int = 0
    claim: _Claim | None = None
    takeovers: int = 0


def applied_once(case: Case) -> Iterator[str]:
    runs: _Runs = {}
    if case.evidence is not None:
        begun = [one for one in reversed(case.evidence.ran) if not one.is_poll]
        runs = {(one.run, one.entry, one.attempt): one for one in begun}
    skew_of = skews(case.evidence)
    for history in case.histories:
        yield from _Walk(case, history, runs, skew_of).violations()
    if case.evidence is not None:
        yield from _killed_often(case.evidence)


def _killed_often(evidence: Evidence) -> Iterator[str]:
    """Yield tasks that crashed too many workers. Such a task crashes its worker once before a lease
    exists, and then one worker for each allowed owner.

    Applies to a time without faults: a wake that was sent twice among faults may begin the task
    twice.
    """
    if not evidence.scenario.kills:
        return
    begun: dict[tuple[str, int, int], list[int]] = {}
    for one in evidence.ran:
        if not one.is_poll:
            begun.setdefault((one.run, one.entry, one.attempt), []).append(one.at_ms)
    settled_ms = evidence.faults_end_ms + UNHIDDEN_MS
    for (run, entry, attempt), times in begun.items():
        if min(times) > settled_ms and len(times) > TAKEOVERS_MAX + 2:
            yield f"{run}: attempt {entry}.{attempt} was begun {len(times)} times"


class _Walk:
    """Reads one history from its beginning and checks each line of control."""

    def __init__(self, case: Case, history: StoredHistory, runs: _Runs, skew_of: Skews) -> None:
        self._evidence: Evidence | None = case.evidence
        self._program: Program | None = None
        if case.evidence is not None:
            self._program = program_of(case, history)
        self._history, self._runs, self._skew_of = history, runs, skew_of
        ran = () if case.evidence is None else case.evidence.ran
        self._starts = Counter((one.run, one.entry, one.attempt) for one in ran if not one.is_poll)
        self._lines: dict[str, _Line] = {}
        self._skew_ms = 0

    def violations(self) -> Iterator[str]:
        for record in self._history.records:
            place = (self._history.tenant, self._history.run, record.sequence)
            self._skew_ms = self._skew_of.get(place, 0)
            for event, is_copied in self._history.marked(record):
                for text in self._at(event):
                    if not is_copied:
                        yield f"{self._history.run}: event {event.id} {event.type}: {text}"

    def _at(self, event: Event) -> Iterator[str]:
        own = event.holdfast
        line = self._lines.setdefault(own.get("frame", ""), _Line())
        if event.type == "ExecutionRedriven":
            for each in self._lines.values():
                each.retries, each.is_open = {}, False
        elif event.type.endswith("StateEntered"):
            self._lines[own.get("frame", "")] = _Line(event.details["name"])
        elif event.type in _SCHEDULED:
            yield from self._scheduled(line, event)
        elif event.type in _ENDS_OF_A_MAP:
            line.claim, line.takeovers = _claim_of(event), 0
        elif event.type == "RetryDelayed":
            yield from self._retried(line, event)
        elif event.type == "ConditionUnmet":
            yield from self._polled(line, event)
        elif event.type == "Claimed":
            yield from self._claimed(line, event)
        elif event.type == "TaskUnknown":
            line.claim = None
        elif event.type == "TaskSubmitted":
            yield from self._ended(line, event)
            line.is_submitted = True
        elif event.type in _RESULTS:
            if not line.is_open:
                yield "no attempt is open"
            yield from self._ended(line, event)
            line.is_open = False

    def _is_once(self, line: _Line) -> bool:
        """Return True when the state's attempts start their task at most once."""
        state = None if self._program is None else self._program.states.get(line.state)
        return isinstance(state, TaskState) and state.is_at_most_once

    # -- scheduling --------------------------------------------------------------------------------

    def _scheduled(self, line: _Line, event: Event) -> Iterator[str]:
        own = event.holdfast
        entry, attempt, retrier = own["entry"], own["attempt"], own.get("retrier")
        if line.is_open:
            yield f"attempt {line.entry}.{line.attempt} is open"
        wanted = (line.entry, line.attempt + 1) if retrier is not None else (entry, 1)
        if (entry, attempt) != wanted:
            yield f"attempt {entry}.{attempt} follows {line.entry}.{line.attempt}"
        if retrier is not None:
            yield from self._retried(line, event)
        place = (self._history.run, entry, attempt)
        if self._is_once(line) and self._starts[place] > 1:
            yield f"attempt {entry}.{attempt}, which starts at most once, started again"
        line.entry, line.attempt, line.is_open, line.is_submitted = entry, attempt, True, False
        line.polls = 0
        line.claim, line.takeovers = _claim_of(event), 0

    def _retried(self, line: _Line, event: Event) -> Iterator[str]:
        if self._program is None:
            return
        state = self._program.states.get(line.state)
        if not isinstance(state, TaskState | ParallelState | MapState):
            yield f"{line.state!r} cannot be retried"
            return
        number = event.holdfast["retrier"]
        retrier, used = state.retry[number], line.retries.get(number, 0)
        line.retries[number] = used + 1
        if used >= retrier.attempts_max:
            yield f"{line.state!r} is retried {used + 1} times of {retrier.attempts_max}"
        delay_ms = event.holdfast.get("due", event.at_ms) - event.at_ms
        most_ms = _delay_ms(retrier, used)
        least_ms = 0 if retrier.has_full_jitter else most_ms
        if not least_ms <= delay_ms <= most_ms:
            yield f"retry {used + 1} rests {delay_ms} ms instead of {least_ms} to {most_ms}"

    def _polled(self, line: _Line, event: Event) -> Iterator[str]:
        """Check a poll without a value: the next poll is another attempt, after the interval."""
        if not line.is_open:
            yield "no attempt is open"
        own, polls = event.holdfast, line.polls + 1
        if own["polls"] != polls or own["attempt"] != line.attempt + 1:
            yield f"counts {own['polls']} polls instead of {polls}"
        ran = self._runs.get((self._history.run, line.entry, line.attempt))
        if self._evidence is not None and ran is None:
            yield f"poll {line.entry}.{line.attempt} has no value and never ran"
        state = None if self._program is None else self._program.states.get(line.state)
        if isinstance(state, TaskState):
            rule = state.poll
            if rule is None:
                yield f"{line.state!r} is not polled"
            else:
                wanted = min(rule.seconds * rule.backoff ** (polls - 1), rule.seconds_max)
                if own["due"] - event.at_ms != int(wanted * 1_000):
                    yield f"poll {polls} is followed by one after {own['due'] - event.at_ms} ms"
        line.attempt, line.polls, line.claim, line.takeovers = line.attempt + 1, polls, None, 0

    # -- claims ------------------------------------------------------------------------------------

    def _claimed(self, line: _Line, event: Event) -> Iterator[str]:
        before, now = line.claim, _claim_of(event)
        counted = event.holdfast["takeovers"]
        if self._is_once(line) and before is not None and now is not None and before[0] == now[0]:
            # The worker extends its own lease, so that the attempt does not fail while it runs.
            line.claim = now
            return
        losses = line.takeovers + (before is not None)
        # The worker that received the attempt extends its lease when it needs more time; no worker
        # was lost.
        is_handed = before is not None and self._was_handed_on(before) and counted < losses
        if is_handed:
            losses = line.takeovers
        if counted != losses:
            yield f"counts {counted} lost owners instead of {losses}"
        if self._evidence is not None and before is not None and now is not None:
            seen = self._evidence.dispatches
            is_given = before[1] in seen.replaced or before[0] in seen.handed
            if not _is_lost(before, now, event.at_ms) and not is_given:
                yield f"{now} takes the attempt from {before}, who has not lost it"
        line.claim, line.takeovers = now, losses

    def _was_handed_on(self, claim: _Claim) -> bool:
        return self._evidence is None or claim[0] in self._evidence.dispatches.handed

    # -- results -----------------------------------------------------------------------------------

    def _ended(self, line: _Line, event: Event) -> Iterator[str]:
        """Check that the recorded result is the result of the attempt by its own worker, and is not
        dated before its end.
        """
        if self._evidence is None or line.is_submitted:
            return  # The task's result is unknown here: the task may have raised this error itself
        resource = str(event.details.get("resource", ""))
        is_lost = event.details.get("error") == _WORKER_LOST
        if event.details.get("error") == _INTERRUPTED and not self._is_once(line):
            yield "tells of an interruption, and its task may start again"
        # The error of a child is passed on unchanged: the lost workers belonged to the child.
        if is_lost and line.takeovers < TAKEOVERS_MAX and not resource.startswith("workflow:"):
            yield f"tells of a lost worker after {line.takeovers} losses"
        place = (self._history.run, line.entry, line.attempt)
        ran = self._runs.get(place)
        if ran is None:
            if event.type in _SUCCEEDED and resource.startswith(("task:", "pure:", "poll:")):
                yield f"attempt {line.entry}.{line.attempt} succeeded and never ran"
            return
        outcome = self._evidence.scenario.outcome(ran.name, ran.attempt)
        told = f"attempt {line.entry}.{line.attempt} of {ran.name}"
        over_ms = ran.at_ms + int(outcome.seconds * 1_000)
        if _is_own(event) and event.at_ms - self._skew_ms < over_ms:
            yield f"{told} was over at {over_ms}, and its result says {event.at_ms}"
        if event.type in _FAILED:
            error = event.details.get("error")
            expected = None if outcome.error is None else outcome.error[:ERROR_CHARACTERS_MAX]
            if error not in _OF_THE_ENGINE and error != expected:
                yield f"{told} failed with {error}, and came to {expected}"
        elif event.type in _SUCCEEDED or event.type == "TaskSubmitted":
            output = event.details["output"]
            if outcome.error is not None or output != outcome.output_for(ran.arguments):
                yield f"{told} succeeded with what it did not come to"


def _is_own(event: Event) -> bool:
    """Return True when the task itself ended in this way; no other worker has declared it lost."""
    if event.type in _FAILED:
        return event.details.get("error") not in _OF_THE_ENGINE
    return event.type in _SUCCEEDED or event.type == "TaskSubmitted"


def _claim_of(event: Event) -> _Claim | None:
    claim = event.holdfast.get("claim")
    return None if claim is None else tuple(claim)


def _is_lost(before: _Claim, now: _Claim, at_ms: int) -> bool:
    """Return True when the lease has lapsed, or its owner had an earlier delivery of the same
    message.
    """
    _, message, delivery, until_ms = before
    is_lapsed = until_ms + 2 * CLOCK_ERROR_MS < at_ms
    return is_lapsed or (message == now[1] and delivery < now[2])


def _delay_ms(retrier: Retrier, used: int) -> int:
    """Return the longest delay before the retry after so many retries, by ASL's rules for
    Retriers.
    """
    try:
        seconds: float = retrier.interval_seconds * retrier.backoff_rate**used
    except OverflowError:
        seconds = RETRY_DELAY_SECONDS_MAX
    if retrier.delays:
        seconds = retrier.delays[min(used, len(retrier.delays) - 1)]
    caps = [RETRY_DELAY_SECONDS_MAX]
    if retrier.delay_seconds_max is not None:
        caps.append(retrier.delay_seconds_max)
    return int(min(seconds, *caps) * 1_000)
