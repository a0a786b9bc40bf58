"""The fast path: the first tasks run before record 0 is committed. This module decides whether
their results count (R3).

The first tasks follow from the start message alone. But one execution may have two start messages:
a recovery of the parent sends the start of a Map's child again, at another time; and two starts
with one name encrypt a secret differently. The start in record 0 decides; if it differs, the
results of tasks that ran for the other start do not count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.asl.program import Json, Program
from holdfast.core import facts
from holdfast.core.advance import advance
from holdfast.core.facts import DecisionInputs
from holdfast.core.state import Execution
from holdfast.core.waits import attempts_of
from holdfast.runtime.effects import Ticket
from holdfast.runtime.worker.attempts import ticket_of

#: `asks_for_the_same_later` computes the first tasks for a time that is later by this much: more
#: than ten years, and on another day of the week. So most tasks that depend on the time get other
#: arguments then.
_LATER_MS: Final = 333_333_333_333


def asks_for_the_same_later(
    program: Program, started: facts.Started, state: Execution, moment: DecisionInputs
) -> bool:
    """Return True when a repeated start would request the same first tasks as this one (`state`).

    The repeated start of a Map's child has another time, so this tries a much later time. For a
    nested state machine the repeated start may even have another definition.
    """
    if started.parent is None:
        return True
    if "lane" not in started.parent:
        return False
    later_ms = started.started_ms + _LATER_MS
    later = advance(
        program,
        None,
        [replace(started, started_ms=later_ms)],
        replace(moment, now_ms=later_ms),
    )
    return _asked_by(later.state) == _asked_by(state)


def _asked_by(state: Execution) -> list[tuple[Ticket, str, Json]]:
    return [(ticket_of(one), one.target, one.arguments) for one in attempts_of(state)]


def is_same_start(ours: Execution, theirs: Execution) -> bool:
    """Return True when record 0, which gave the state `theirs`, has the start for which the tasks
    ran.
    """
    return _start_of(ours) == _start_of(theirs)


def _start_of(state: Execution) -> tuple[str, int, Json]:
    return state.definition, state.started_ms, state.input
