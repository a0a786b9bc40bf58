"""`Schedule`: when a workflow starts without a caller. docs/how-to/schedule.md shows its use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

from holdfast.errors import WorkflowError

_MINUTE: Final = timedelta(minutes=1)
_YEAR: Final = timedelta(days=365)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Starts the workflow by `cron` in the time zone `zone`, or once in each period `every` since
    1970.

    A nominal time is a time at which the schedule should start an execution.

    * `input`: the arguments of every execution.
    * `time_as`: the parameter that gets the nominal time, as text like 2026-03-29T07:00:00Z.
    * `overlap`: what happens when an execution still runs.
    * `missing`, `repeated`: what daylight saving time does to a local time.
    * `catch_up`: how old a nominal time may be that was not started in time.
    * `jitter`: starts are spread over this time; each nominal time has always the same place in it.
    * `pause_on_failure`: a failed execution pauses the schedule.
    """

    cron: str | None = None
    zone: str = "UTC"
    every: timedelta | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    time_as: str | None = None
    overlap: Literal["skip", "queue-one", "queue-all", "cancel-other", "allow"] = "skip"
    missing: Literal["shift", "skip"] = "shift"
    repeated: Literal["first", "last"] = "first"
    catch_up: timedelta = _YEAR
    jitter: timedelta = timedelta()
    pause_on_failure: bool = False

    def __post_init__(self) -> None:
        if (self.cron is None) == (self.every is None):
            raise _bad("has not one of cron and every", "cron='0 9 * * MON-FRI' or every=hours(1)")
        if self.every is not None and (self.every < _MINUTE or self.every % _MINUTE):
            raise _bad(f"has every={self.every}", "whole minutes, at least one")
        choices = {
            "overlap": ("skip", "queue-one", "queue-all", "cancel-other", "allow"),
            "missing": ("shift", "skip"),
            "repeated": ("first", "last"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise _bad(f"has {name}={getattr(self, name)!r}", f"one of {', '.join(allowed)}")
        for name in ("catch_up", "jitter"):
            if getattr(self, name) < timedelta():
                raise _bad(f"has a negative {name}", "zero or more")


def require_startable(workflow: str, parameters: Mapping[str, Any], schedule: Schedule) -> None:
    """Raise WorkflowError HF082 when the schedule gives too few arguments, or unknown ones."""
    given = {*schedule.input, *([schedule.time_as] if schedule.time_as else [])}
    unknown = sorted(given - set(parameters))
    needed = {name for name, one in parameters.items() if one.default is inspect.Parameter.empty}
    missing = sorted(needed - given)
    if unknown or missing:
        found = f"gives {unknown[0]!r}" if unknown else f"does not give {missing[0]!r}"
        raise WorkflowError(
            "HF082",
            f"the schedule of {workflow} {found}",
            help=f"its parameters are: {', '.join(parameters) or 'none'}; see input and time_as",
        )


def _bad(found: str, expected: str) -> WorkflowError:
    return WorkflowError("HF081", f"a Schedule {found}", help=f"expected: {expected}")
