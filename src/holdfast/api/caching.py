"""Checks the cache of a task, `@task(cache=days(1))`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from holdfast.api.runs_on import Lambda, place_name
from holdfast.errors import WorkflowError
from holdfast.limits import CACHE_SECONDS_MAX

_LONGEST: Final = timedelta(seconds=CACHE_SECONDS_MAX)


def require_cache(name: str, cache: Any, runs_on: Any, *, has_batch: bool) -> None:
    """Raises WorkflowError HF437 for a cache that the engine cannot keep."""
    is_time = isinstance(cache, timedelta) and timedelta(seconds=1) <= cache <= _LONGEST
    if not is_time or cache.microseconds:
        found = (
            f"cache={cache!r}: a time of whole seconds, at most {_LONGEST.days} days, is expected"
        )
        raise _refused(name, f"has {found}", "cache=days(1)")
    if has_batch:
        raise _refused(
            name, "is a batch task, whose call has items of many executions", "without cache="
        )
    if runs_on is not None and not isinstance(runs_on, Lambda):
        where = f"runs on {place_name(runs_on)}, which sends its result past the worker"
        raise _refused(name, where, "cache= for tasks of the engine, of a group and on Lambda")


def require_cache_key(name: str, cache_key: Any, parameters: Collection[str]) -> None:
    """Raises WorkflowError HF437 for a key that does not name some of the parameters."""
    if cache_key is None:
        return
    known = ", ".join(parameters) or "none"
    names = () if isinstance(cache_key, str) else tuple(cache_key)
    if not names or len(set(names)) < len(names) or not set(names) <= set(parameters):
        what = f"has cache_key={cache_key!r}: a tuple of its parameters is expected ({known})"
        raise _refused(name, what, f'cache_key=("{next(iter(parameters), "query")}",)')


def _refused(name: str, what: str, help_: str) -> WorkflowError:
    return WorkflowError("HF437", f"the task {name} with a cache {what}", help=help_)
