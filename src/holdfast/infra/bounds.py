"""The bounds of alarms that depend on the business: `alarm_bounds` in the context or in
`Holdfast(...)`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from .unfit import Unfit, read_object

_KEY: Final = "alarm_bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmBounds:
    """The bounds. An alarm is raised above its bound; a bound of None leaves the alarm out.

    * `failed`: executions of one workflow that failed within five minutes.
    * `retries`: attempts after a failure within five minutes, in the whole stack.
    * `oldest_wait_days`: how long an execution has waited.
    * `dollars_per_day`: the cost of a day's use, as `spending.py` estimates it.
    """

    failed: int | None = 0
    retries: int | None = 500
    oldest_wait_days: float | None = None
    dollars_per_day: float | None = None


def require_bounds(bounds: AlarmBounds) -> None:
    """Raise Unfit for an invalid bound."""
    for field in dataclasses.fields(bounds):
        found = getattr(bounds, field.name)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if found is not None and not (is_number and found >= 0):
            raise Unfit(f"{_KEY}.{field.name}", found, "a number from 0, or none for no alarm")


def read_bounds(value: object) -> AlarmBounds:
    """Return the bounds in the context. Raises Unfit for an invalid one."""
    wanted = read_object(_KEY, value)
    known = [field.name for field in dataclasses.fields(AlarmBounds)]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise Unfit(_KEY, unknown[0], f"one of {', '.join(known)}")
    return AlarmBounds(**wanted)
