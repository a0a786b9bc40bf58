"""Checks the settings of `wait_for_condition`, which calls a task until it returns a value."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any, Final

from holdfast.api.runs_on import Lambda
from holdfast.api.tasks import Polling, Pure, Task
from holdfast.errors import WorkflowError

_SECOND: Final = timedelta(seconds=1)
#: The longest time that a definition can contain.
_LONGEST: Final = timedelta(seconds=99_999_999)
_EXAMPLE: Final = "wait_for_condition(check, every=minutes(5), backoff=2.0, most=hours(6))(order)"


def polled(task: Any, every: Any, backoff: Any, most: Any) -> Task[..., Any]:
    """Return the task with these poll settings. Raises WorkflowError HF370 for a setting that is
    not a valid time or factor.
    """
    if not isinstance(task, Task) or isinstance(task, Pure) or task.batch is not None:
        raise _refused("takes a @task that has no batch, and no @pure function")
    if task.cache is not None:
        raise _refused("takes a @task without cache: it is called until its result changes")
    if task.at_most_once:
        raise _refused("takes a @task without at_most_once: each call is an attempt of its own")
    if not isinstance(task.runs_on, Lambda | None):
        raise _refused("takes a @task of the engine or on Lambda, not in a pool or a container")
    if isinstance(backoff, bool) or not isinstance(backoff, int | float) or not 1 <= backoff < 100:
        raise _refused(f"has backoff={backoff!r}, expected a number from 1 to 100")
    if most is None:
        most = every if backoff == 1 else _LONGEST
    for name, found in (("every", every), ("most", most)):
        is_whole = isinstance(found, timedelta) and not found.microseconds
        if not is_whole or not _SECOND <= found <= _LONGEST:
            raise _refused(f"has {name}={found!r}, expected whole seconds, at least one")
    if most < every:
        raise _refused("has a `most` that is shorter than `every`")
    changed = copy.copy(task)
    changed.polling = Polling(every, float(backoff), most)
    return changed


def _refused(what: str) -> WorkflowError:
    return WorkflowError("HF370", f"wait_for_condition() {what}", help=_EXAMPLE)
