"""All proofs of one machine: its findings, and a few lines about what is proven.

Every line is certain: it says what is true in every run, or that it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.proofs.amounts import Amount, Bound
from holdfast.proofs.bounds import (
    EVENTS_MAX_OF_STEP_FUNCTIONS,
    Worst,
    block_seconds,
    has_timeout,
    kind_of,
    retries_of,
    retry_seconds_of,
    worst_of,
)
from holdfast.proofs.costs import EXECUTIONS, Costs, costs_of
from holdfast.proofs.findings import Placed, ProofFinding, SourceLocation
from holdfast.proofs.graph import MachineLevel, is_distributed, levels_of
from holdfast.proofs.loops import BoundedLoop, find_loops, loops_of
from holdfast.proofs.names import find_names
from holdfast.proofs.reach import find_reach
from holdfast.proofs.sagas import FactsByTask, Registration, Saga, find_sagas, occasions, saga_of
from holdfast.proofs.waits import BoundedWait, find_waits, waits_of, without_timeout

_MARGIN: Final = 11
_ORDER: Final[Mapping[str, int]] = {"error": 0, "warning": 1, "note": 2}
#: A function that returns the place of a state in the source, given its name and its location in
#: the definition.
Locate = Callable[[str, str], SourceLocation]


@dataclass(frozen=True, slots=True)
class Proofs:
    """The result of all proofs. `findings` begin with the most severe, then follow the order of the
    definition. `limits` are those of each state's task, as text.
    """

    name: str
    levels: tuple[MachineLevel, ...]
    findings: tuple[ProofFinding, ...]
    loops: tuple[BoundedLoop, ...]
    waits: tuple[BoundedWait, ...]
    idle: tuple[tuple[MachineLevel, str], ...]
    saga: Saga
    worst: Worst
    costs: Costs
    timeout_seconds: int | None
    limits: tuple[tuple[MachineLevel, str, tuple[str, ...]], ...] = ()


def prove(
    name: str,
    document: Mapping[str, Any],
    facts: FactsByTask,
    own_event: str | None = None,
    *,
    is_keyed: bool = False,
    is_python: bool = False,
) -> Proofs:
    """Prove a validated document. `facts` are the known facts about tasks, by name. `own_event` is
    the event that starts the workflow. A workflow with a key may run for ever.
    """
    levels = levels_of(document)
    loops = loops_of(levels)
    worst = worst_of(levels)
    findings = [
        *find_reach(levels, may_run_for_ever=is_keyed),
        *find_names(levels),
        *find_loops(loops, may_run_for_ever=is_keyed),
        *find_waits(document, levels, own_event),
        *find_sagas(levels, facts),
        *_find_history(name, levels, worst),
    ]
    if not is_python:
        findings = [replace(found, help=found.help_in_json or found.help) for found in findings]
    return Proofs(
        name=name,
        levels=tuple(levels),
        findings=tuple(sorted(findings, key=lambda found: _ORDER[found.severity])),
        loops=tuple(loops),
        waits=tuple(waits_of(document, levels)),
        idle=tuple(without_timeout(document, levels)),
        saga=saga_of(levels, facts),
        worst=worst,
        costs=costs_of(worst),
        timeout_seconds=document.get("TimeoutSeconds"),
        limits=tuple(_limits(levels, facts)),
    )


def _limits(
    levels: Sequence[MachineLevel], facts: FactsByTask
) -> Iterator[tuple[MachineLevel, str, tuple[str, ...]]]:
    for level in levels:
        for name, state in level.states.items():
            found = facts.get(str(state.get("Resource", "")).rpartition(":")[2])
            if found is not None and found.limits:
                yield level, name, found.limits


def _find_history(
    name: str, levels: Sequence[MachineLevel], worst: Worst
) -> Iterator[ProofFinding]:
    events = None if worst.events is None else worst.events.constant
    if events is not None and events > EVENTS_MAX_OF_STEP_FUNCTIONS:
        start = levels[0].start
        yield ProofFinding(
            "HF0A5",
            "warning",
            start,
            levels[0].location(start),
            f"{name} may write {events:,.0f} events; Step Functions ends a run at "
            f"{EVENTS_MAX_OF_STEP_FUNCTIONS:,}",
            _shorter_history(levels, events),
        )


def _shorter_history(levels: Sequence[MachineLevel], events: float) -> str:
    """Return the help for a long history: most of it may be repeated attempts of tasks."""
    retries = [retries_of(state) for level in levels for state in level.states.values()]
    if sum(retries) * 2 > events / 3:
        return f"fewer attempts than {max(retries) + 1:,} for one task, or keep --target holdfast"
    return "move the loop into a child workflow, or keep --target holdfast"


# -- texts for the terminal ------------------------------------------------------------------------


def placed(proofs: Proofs, locate: Locate) -> list[Placed]:
    return [Placed(found, locate(found.state, found.location)) for found in proofs.findings]


def render(proofs: Proofs, locate: Locate) -> str:
    """Return a heading, and a line for each proof. Findings are not included."""
    lines = [proofs.name]
    for title, text in _lines(proofs, locate):
        head, *rest = text.split("\n")
        lines.append(f"  {title:<{_MARGIN}}{head}")
        lines += [" " * (_MARGIN + 2) + line for line in rest]
    return "\n".join(lines)


def to_json(proofs: Proofs) -> dict[str, Any]:
    worst, costs = proofs.worst, proofs.costs
    return {
        "workflow": proofs.name,
        "events": _shown(worst.events),
        "transitions": _shown(worst.transitions),
        "durable_steps": _shown(worst.steps),
        "waiting_seconds": _shown(worst.seconds),
        "usd_per_1000": _shown(costs.holdfast),
        "usd_per_1000_on_step_functions": _shown(costs.step_functions),
        "loops": [{"state": loop.state, "rounds": _shown(loop.rounds)} for loop in proofs.loops],
        "waits": [{"state": wait.state, "bounded_by": wait.bounded_by} for wait in proofs.waits],
        **({"bounds_of": "one round"} if _goes_on_as_new(proofs) else {}),
    }


def _goes_on_as_new(proofs: Proofs) -> bool:
    """Return True when the execution may continue as new, so that its bounds are those of one
    round.
    """
    states = (state for level in proofs.levels for state in level.states.values())
    return any(state.get("Resource") == "holdfast:again" for state in states)


def _shown(bound: Bound) -> str | None:
    return None if bound is None else str(bound)


def _lines(proofs: Proofs, locate: Locate) -> Iterator[tuple[str, str]]:
    yield "ends", _ends(proofs)
    yield "names", _names(proofs)
    yield "loops", "\n".join(_loop(loop, locate) for loop in proofs.loops) or "none"
    yield "waits", _waits(proofs.waits, locate)
    if retries := list(_retries(proofs, locate)):
        yield "retries", "\n".join(retries)
    if proofs.limits:
        yield (
            "limits",
            "\n".join(
                f"{_where(level, name, locate)}: {'; '.join(limits)}"
                for level, name, limits in proofs.limits
            ),
        )
    yield "undo", _undo(proofs, locate)
    if _goes_on_as_new(proofs):
        yield "again", "it may go on as new: history, cost and time are those of one round"
    yield "history", _history(proofs)
    yield "cost", _cost(proofs.costs)
    yield "time", _time(proofs)


def _codes(proofs: Proofs) -> set[str]:
    return {found.code for found in proofs.findings}


def _ends(proofs: Proofs) -> str:
    if _codes(proofs) & {"HF090", "HF091", "HF092"}:
        return "see below"
    return "a way leads to every state, and from each to an end"


def _names(proofs: Proofs) -> str:
    if _codes(proofs) & {"HF093", "HF094", "HF095"}:
        return "see below"
    return "every variable has a value wherever it is read"


def _loop(loop: BoundedLoop, locate: Locate) -> str:
    where = _where(loop.level, loop.state, locate)
    if loop.rounds is None:
        ended = "" if loop.seconds is None else "; the deadline of its block ends it"
        return f"{where}: no bound is known{'; each round waits' if loop.waits else ''}{ended}"
    rounds = str(loop.rounds)
    return f"{where}: at most {rounds} round{'s'[: rounds != '1']} each time"


def _where(level: MachineLevel, state: str, locate: Locate) -> str:
    place = locate(state, level.location(state))
    return f"{state} (line {place.line})"


def _waits(waits: Sequence[BoundedWait], locate: Locate) -> str:
    if not waits:
        return "for no caller outside"
    return "\n".join(
        f"{_where(wait.level, wait.state, locate)}: "
        + (f"bounded by {wait.bounded_by}" if wait.bounded_by else "not bounded")
        for wait in waits
    )


def _retries(proofs: Proofs, locate: Locate) -> Iterator[str]:
    for level in proofs.levels:
        for name, state in level.states.items():
            count = retries_of(state)
            if count:
                seconds = duration(retry_seconds_of(state))
                where = _where(level, name, locate)
                yield f"{where}: at most {count}, {seconds} of delays together"


def _undo(proofs: Proofs, locate: Locate) -> str:
    by_occasion: dict[str, list[str]] = {}
    for found in proofs.saga.registrations:
        rows = by_occasion.setdefault(occasions(found.level), [])
        rows.append(_taken_back(found, locate))
    parts = [
        row for when, rows in by_occasion.items() for row in (f"{when}, the last first:", *rows)
    ]
    return "\n".join(parts) or "nothing is registered to be taken back"


def _taken_back(found: Registration, locate: Locate) -> str:
    if found.step is None:
        line = locate(found.state, found.level.location(found.state)).line
        why = "before what it takes back" if found.is_early else "for which step is not known"
        return f"{found.task} (line {line}), {why}"
    gap = ", unless a step between them fails" if found.between else ""
    return f"{_where(found.level, found.step, locate)} by {found.task}{gap}"


def _history(proofs: Proofs) -> str:
    worst = proofs.worst
    if worst.events is None:
        loops = [loop.state for loop in proofs.loops if loop.rounds is None]
        return f"no bound is known: {_named(loops)}"
    text = f"at most {worst.events} events, {worst.transitions} transitions, " + (
        "durable steps without a known bound"
        if worst.steps is None
        else f"{worst.steps} durable steps"
    )
    if any(is_distributed(state) for level in proofs.levels for state in level.states.values()):
        text += "\nnot counted: the executions of the items of a distributed Map"
    room = _room(worst.events)
    return f"{text}\n{room}" if room else text


def _room(events: Amount) -> str:
    """Return the length up to which one list may grow on Step Functions."""
    if len(events.symbols) != 1 or set(events.terms) - {(), (events.symbols[0],)}:
        return ""
    (symbol,) = events.symbols
    room = EVENTS_MAX_OF_STEP_FUNCTIONS - events.terms.get((), 0)
    most = int(room // events.terms[(symbol,)])
    limit = f"{EVENTS_MAX_OF_STEP_FUNCTIONS:,}"
    return f"within the {limit} events of Step Functions for {symbol} up to {most:,}"


def _cost(costs: Costs) -> str:
    if costs.holdfast is None or costs.step_functions is None:
        return "no bound is known"
    return (
        f"about ${_dollars(costs.holdfast)} for {EXECUTIONS:,} of the longest runs; "
        f"on Step Functions ${_dollars(costs.step_functions)}"
    )


def _dollars(amount: Amount) -> str:
    return str(Amount({term: round(usd, 6) for term, usd in amount.terms.items()}))


def _time(proofs: Proofs) -> str:
    seconds = proofs.worst.seconds
    tasks = f"{len(proofs.idle)} tasks" if len(proofs.idle) != 1 else "1 task"
    verb = "take" if len(proofs.idle) != 1 else "takes"
    beside = f", and what {tasks} without a timeout {verb}" if proofs.idle else ""
    if proofs.timeout_seconds is not None:
        return f"cancelled after {duration(proofs.timeout_seconds)}, undos apart"
    if seconds is None:
        return f"no bound is known: {_named(_endless(proofs))}{beside}"
    if seconds.constant is None:
        return f"at most {seconds} seconds of waiting{beside}"
    waiting = f"at most {duration(seconds.constant)} of" if seconds.constant else "no"
    return f"{waiting} waiting{beside}"


def _endless(proofs: Proofs) -> Iterator[str]:
    """Yield the states because of which the time has no bound."""
    yield from (wait.state for wait in proofs.waits if not wait.bounded_by)
    yield from (loop.state for loop in proofs.loops if loop.rounds is None and loop.seconds is None)
    for level in proofs.levels:
        for name, state in level.states.items():
            is_moment = state["Type"] == "Wait" and not {"Seconds", "SecondsPath"} & state.keys()
            is_job = state["Type"] == "Task" and kind_of(state) in {"sync", ""}
            is_open = is_moment or is_distributed(state) or (is_job and not has_timeout(state))
            if is_open and block_seconds(level, frozenset([name])) is None:
                yield name


def _named(states: Iterable[str]) -> str:
    return "because of " + ", ".join(f'"{name}"' for name in states)


_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """Return a duration such as "3 d 6 s"."""
    left, parts = int(-(-seconds // 1)), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts) or "0 s"
