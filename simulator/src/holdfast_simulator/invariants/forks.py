"""I25: a fork begins with the history of its origin up to its step, and continues from there.

The copied events are compared with those of the origin, one by one. The other invariants judge them
only in the origin: there they were recorded, and there the tasks ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.core.events import Event
from holdfast.runtime.storage import keys
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case

#: Fields of the first event that belong to one execution.
_OWN: Final = frozenset({"run", "name", "parent", "due"})
#: The code for a step of an undo: it cannot be forked.
_UNDOES: Final = "HF217"
#: Events that follow the entry of a step at which the origin itself began as a fork.
_WITH_STEP: Final = frozenset({"ExecutionForked", "DeadlineSet"})


def continued(case: Case) -> Iterator[str]:
    found = {(history.tenant, history.run): history for history in case.histories}
    for history in case.histories:
        fork = history.fork
        if fork is not None:
            origin = found.get((history.tenant, str(fork.holdfast["of"]["run"])))
            for text in _of(history, fork, origin):
                yield f"{history.run}: {text}"
    if case.evidence is not None:
        yield from _as_asked(case, found)
        yield from _ran_again(case, found)


def _of(history: StoredHistory, fork: Event, origin: StoredHistory | None) -> Iterator[str]:
    if origin is None:
        yield f"its origin {fork.holdfast['of']['run']} has no log"
        return
    copied = history.events[: history.copied]
    # `Opened` belongs to the entry of one execution in the list.
    before = [event for event in origin.events if event.type != "Opened"][: len(copied)]
    for one, other in zip(copied, before, strict=False):
        if _shared(one) != _shared(other):
            yield f"event {one.id} is {one!r:.120}, and in its origin {other!r:.120}"
            return
    if len(before) < len(copied):
        yield f"it copies {len(copied)} events, and its origin has {len(before)}"
    entered = [event for event in copied if event.type.endswith("StateEntered")]
    step, event_id = fork.holdfast["of"]["step"], fork.holdfast["of"]["event"]
    if not entered or (entered[-1].details["name"], entered[-1].id) != (step, event_id):
        yield f"it was to begin at {step!r}, event {event_id}, and its last copied step is another"
        return
    if {event.type for event in copied[copied.index(entered[-1]) + 1 :]} - _WITH_STEP:
        yield f"it copies events after the entry of {step!r}"


def _shared(event: Event) -> Event:
    if event.type != "ExecutionStarted":
        return event
    kept = {name: value for name, value in event.holdfast.items() if name not in _OWN}
    return event._replace(holdfast=kept)


def _as_asked(case: Case, found: Mapping[tuple[str, str], StoredHistory]) -> Iterator[str]:
    """Check that each accepted fork began as it was requested, and that each refusal is right."""
    for answer in case.schedule.forks:
        history = found.get((answer.tenant, answer.run))
        fork = None if history is None else history.fork
        of: Any = {} if fork is None else fork.holdfast["of"]
        if (of.get("run"), of.get("step")) != (answer.origin, answer.step):
            yield f"{answer.run} was accepted as a fork of {answer.origin}, and is {dict(of)}"
        row = keys.inbox(answer.tenant, answer.origin), keys.fork(answer.run)
        if row not in case.schedule.stored:
            yield f"no row says that {answer.run} is a fork of {answer.origin}"
    for told in case.schedule.told:
        if told.what == "fork" and told.refused is not None:
            origin = found[told.tenant, str(told.run)]
            has_undone = any(event.type == "Cancelled" for event in origin.events)
            if told.refused != _UNDOES or not has_undone:
                what = f"the fork of {told.run} at {told.request['step']}"
                yield f"{what} was refused: {told.refused}"


def _ran_again(case: Case, found: Mapping[tuple[str, str], StoredHistory]) -> Iterator[str]:
    """Yield the tasks of copied steps that ran for the fork."""
    copied = {
        (history.run, event.holdfast["entry"])
        for history in found.values()
        for event in history.events[: history.copied]
        if event.type.endswith("Scheduled")
    }
    for ran in case.schedule.ran:
        if (ran.run, ran.entry) in copied:
            yield f"{ran.run}: {ran.name} of a copied step ran again"
