"""The results of tasks with a cache, `@task(cache=days(1))`, in one World."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.api.boundary import JsonValue
from holdfast.api.tasks import Task
from holdfast.asl.whole_numbers import with_whole_numbers
from holdfast.sealed import holds_sealed
from holdfast.testing.places import WaitingPlace


class CachedResult(NamedTuple):
    output: JsonValue
    expires_ms: int


@dataclass(slots=True)
class CachedResults:
    """The results by task and arguments. The run in Python and the compiled run each begin with a
    copy of what the runs before have left, so both take the same results.
    """

    results: dict[str, CachedResult] = field(default_factory=dict)

    def copy(self) -> CachedResults:
        return CachedResults(dict(self.results))

    def find(self, place: WaitingPlace, now_ms: int) -> CachedResult | None:
        key = _key_of(place)
        found = None if key is None else self.results.get(key)
        return found if found is not None and now_ms < found.expires_ms else None

    def keep(self, place: WaitingPlace, output: JsonValue, now_ms: int) -> None:
        """Store the result of a task that has run."""
        key = None if place.is_cached or holds_sealed(output) else _key_of(place)
        if key is not None:
            lifetime_ms = int(place.subject.cache.total_seconds()) * 1_000
            self.results[key] = CachedResult(output, now_ms + lifetime_ms)


def _key_of(place: WaitingPlace) -> str | None:
    """Return the key of the call; None for a call without a cache."""
    task = place.subject
    if place.kind != "task" or not isinstance(task, Task) or task.cache is None:
        return None
    if holds_sealed(place.arguments):
        return None
    scope = [task.function.__module__, task.name, task.cache_version]
    arguments = place.arguments
    if task.cache_key is not None and isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if name in task.cache_key}
    return json.dumps([scope, with_whole_numbers(arguments)], sort_keys=True)
