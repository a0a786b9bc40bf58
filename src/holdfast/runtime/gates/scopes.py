"""Pauses of a task, of a workflow, or of the whole stack: nothing that they cover begins.

The problem. A bank is down for an hour. Three hundred orders must not fail, and the operator cannot
pause them one by one: new ones start each minute. Nor may an execution that is not paused pay for
the question whether it is.

A pause of a scope is a gate like that of a limit (`gate.py`), without a limit while it is open:

    pause     the settings of the gate `pause:task:charge` say so: one item, kept over deployments
    workers   read the settings of all scopes with one query, at most every five seconds
    held      an attempt that is covered waits in the gate's queue, a new execution before its start
    resume    ticks let the queue in, `RESUME_PER_SECOND` at a time

So an attempt that is not paused costs nothing more. Timers and time-outs pass; a task's own
time-out counts from its beginning. An attempt that runs is not interrupted.

Rules of this file:
* A pause with an end is over at that end by every clock, whether a tick comes or not.
* An attempt that one scope has let go is held by the next one that covers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from holdfast.asl.resources import BULK_WORKFLOW
from holdfast.core.state import Attempt
from holdfast.errors import HoldfastBug

ScopeKind: TypeAlias = Literal["task", "workflow", "all"]
#: The prefix of a scope's gate name. No limit's name begins with it.
SCOPE_PREFIX: Final = "pause:"
#: The kinds of attempts that run a function by its name.
_FUNCTIONS: Final = frozenset({"task", "pure"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a stack that a pause covers: a task, a workflow or the stack. `name` is "" for
    the stack.
    """

    kind: ScopeKind
    name: str = ""

    @property
    def gate(self) -> str:
        """The name under which the scope's settings and gate are stored, beside those of limits."""
        return f"{SCOPE_PREFIX}{self.kind}:{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" if self.name else "everything"


ALL: Final = Scope("all")


def is_scope(limit: str) -> bool:
    return limit.startswith(SCOPE_PREFIX)


def scope_of(gate: str) -> Scope:
    """Return the scope of the gate's name."""
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

    None covers a bulk operation: while all is paused, operators still stop and skip.
    """
    if workflow == BULK_WORKFLOW:
        return ()
    found = (ALL, Scope("workflow", workflow))
    if attempt is None or attempt.kind not in _FUNCTIONS:
        return found
    return (*found, Scope("task", attempt.target))
