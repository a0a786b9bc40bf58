"""The sizes of the functions that a deployment may change: memory, time-out, concurrency, batches.

`holdfast.resources` has the default of each function. The context key `functions` in `cdk.json`
replaces some of them:

    "functions": {"worker": {"memory_mb": 1024, "concurrency": 200}, "api": {"timeout_seconds": 10}}

With `cdk deploy -c functions=…` the value is the same JSON as text. In Python it is
`functions={"worker": Size(memory_mb=1024, concurrency=200)}`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from holdfast import resources
from holdfast.resources import LambdaFunction

from .unfit import Unfit, read_object

#: The names of the functions in `resources.FUNCTIONS`.
FunctionName: TypeAlias = Literal["worker", "worker-single", "events", "sweeper", "api"]

_KEY: Final = "functions"
_NAMES: Final = get_args(FunctionName)
#: For each setting, the field of `LambdaFunction` that the setting replaces.
_FIELDS: Final = {
    "memory_mb": "memory_mb",
    "timeout_seconds": "timeout_seconds",
    "concurrency": "reserved_concurrency",
}
#: The bounds of the memory of a function, and of its concurrency: an event source processes at
#: least two batches at once (Lambda quotas).
_BOUNDS: Final = {"memory_mb": (128, 10_240), "concurrency": (2, 10_000)}
#: The worker has two event sources, one for running executions and one for starts. Each processes
#: at least two batches at once.
_WORKER_CONCURRENCY_BOUNDS: Final = (4, 10_000)
#: The bounds of the time-outs. The sweeper must end before the next sweep begins, and the API
#: before API Gateway stops waiting. The worker is not in this list: a task may run for 14 minutes
#: in it, so it keeps Lambda's longest time-out.
_TIMEOUT_BOUNDS: Final = {
    resources.EVENTS.name: (5, 900),
    resources.SWEEPER.name: (10, 58),
    resources.API.name: (3, 29),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The settings of a function that replace its defaults; None keeps the default."""

    memory_mb: int | None = None
    timeout_seconds: int | None = None
    concurrency: int | None = None

    def changes(self) -> dict[str, int]:
        return {
            name: value for name, value in dataclasses.asdict(self).items() if value is not None
        }


def read_sizes(value: object) -> dict[str, LambdaFunction]:
    """Return every function by name, with the sizes in `value`.

    `value` is the context key `functions`: an object, the same object as JSON text, or None. Raises
    Unfit, which names the function, the setting and its bounds.
    """
    wanted = read_object(_KEY, value)
    unknown = sorted(set(wanted) - set(_NAMES))
    if unknown:
        raise _refused(unknown[0], f"one of {', '.join(_NAMES)}")
    return {
        function.name: _sized(function, wanted.get(function.name, {}))
        for function in resources.FUNCTIONS
    }


def sizes_of(functions: Mapping[str, LambdaFunction]) -> dict[FunctionName, Size]:
    """Return the sizes of the functions that `read_sizes` has returned."""
    return {
        name: Size(
            memory_mb=functions[name].memory_mb,
            timeout_seconds=functions[name].timeout_seconds,
            concurrency=functions[name].reserved_concurrency,
        )
        for name in get_args(FunctionName)
    }


def _sized(function: LambdaFunction, wanted: object) -> LambdaFunction:
    place = f"{_KEY}.{function.name}"
    if not isinstance(wanted, Mapping):
        raise _refused(wanted, "an object such as {'memory_mb': 1024}", place)
    unknown = sorted(set(wanted) - set(_FIELDS))
    if unknown:
        raise _refused(unknown[0], f"one of {', '.join(_FIELDS)}", place)
    changes: dict[str, Any] = {
        _FIELDS[name]: _number(function, name, number) for name, number in wanted.items()
    }
    return dataclasses.replace(function, **changes)


def _number(function: LambdaFunction, name: str, number: object) -> int:
    place = f"{_KEY}.{function.name}.{name}"
    bounds = _BOUNDS.get(name) or _TIMEOUT_BOUNDS.get(function.name)
    if name == "concurrency" and function.name == resources.WORKER.name:
        bounds = _WORKER_CONCURRENCY_BOUNDS
    if bounds is None and number == function.timeout_seconds:
        return function.timeout_seconds
    if bounds is None:
        raise _refused(number, "no value: a task may run for 14 minutes in a worker", place)
    least, most = bounds
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise _refused(number, f"a whole number from {least} to {most}", place)
    return number


def _refused(found: object, expected: str, place: str = _KEY) -> Unfit:
    return Unfit(place, found, expected)
