"""Pauses of a task, of a workflow, or of the whole stack: nothing that they cover begins.

The problem. A bank is down for an hour. Three hundred orders must not fail, and the operator cannot
pause them one by one: new ones start each minute. Executions that are not paused must not cost more
because pauses are possible.

A pause is a gate like that of a limit (`gate.py`), but it lets everything pass while there is no
pause:

    pause     the settings of the gate `pause:task:charge` say so: one item, kept over deployments
    workers   read the settings of all pauses with one query, at most every five seconds
    held      a covered attempt waits in the gate's queue, a new execution before its start
    resume    ticks let the queue in, `RESUME_PER_SECOND` at a time

So an attempt that is not paused costs no read. Timers and time-outs of executions pass during a
pause; the time-out of a held task counts from its begin. An attempt that runs is not interrupted.

Rules of this file:
* A pause with an end is over at that end by every clock, even if no tick comes.
* An attempt that one resume has let in still waits if another pause covers it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from holdfast.asl.resources import BULK_WORKFLOW, CONTAINER
from holdfast.core.commands import argument_text
from holdfast.core.state import Attempt
from holdfast.errors import HoldfastBug
from holdfast.lazy_dataclass import dataclass

ScopeKind: TypeAlias = Literal["task", "workflow", "all"]
#: The prefix of the name of the gate at which paused work waits. No limit has a name with this
#: prefix.
SCOPE_PREFIX: Final = "pause:"
#: The kinds of attempts that run a function by its name.
_FUNCTIONS: Final = frozenset({"task", "pure"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a stack that a pause covers: a task, a workflow, or the stack itself, whose
    `name` is "".
    """

    kind: ScopeKind
    name: str = ""

    @property
    def gate(self) -> str:
        """Return the name under which the settings and the gate of the pause are stored, next to
        those of limits.
        """
        return f"{SCOPE_PREFIX}{self.kind}:{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else "everything"


ALL: Final = Scope("all")


def is_scope(limit: str) -> bool:
    return limit.startswith(SCOPE_PREFIX)


def scope_of(gate: str) -> Scope:
    """Return the scope of a gate's name."""
    kind, _, name = gate.removeprefix(SCOPE_PREFIX).partition(":")
    match kind:
        case "task" | "workflow":
            return Scope(kind, name)
        case "all":
            return ALL
        case _:
            raise HoldfastBug(f"{kind!r:.40} is no kind of scope")


def covering(workflow: str, attempt: Attempt | None = None) -> tuple[Scope, ...]:
    """Return the scopes that cover an execution or, with `attempt`, an attempt in it.

    No scope covers a bulk operation: operators must be able to stop and skip while everything is
    paused.
    """
    if workflow == BULK_WORKFLOW:
        return ()
    found = (ALL, Scope("workflow", workflow))
    if attempt is None:
        return found
    if attempt.kind in _FUNCTIONS:
        return (*found, Scope("task", attempt.target))
    if attempt.target.startswith(CONTAINER):
        return (*found, Scope("task", argument_text(attempt.arguments, "task")))
    return found
