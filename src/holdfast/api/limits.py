"""Limits: how often, and how many at once, a stack calls the services that its tasks depend on.

A limit belongs to the stack. It applies to all executions of all workflows whose tasks name it, on
every worker together. docs/how-to/limits.md shows its use, docs/explanation/flow-control.md how it
works.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import timedelta
from typing import Final

from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

_ACTION: Final = re.compile(r"(aws-sdk:)?[a-z0-9-]+(:[A-Za-z0-9]+)?")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
#: The greatest rate. Each gate of a limit gives out at most 400 starts once a second, and a limit
#: has at most 64 gates. That is twice this rate, so a half is left as a reserve.
_PER_SECOND_MAX: Final = 12_800.0
_CONCURRENCY_MAX: Final = 2_560
_DAY_SECONDS: Final = 86_400
_FAILURES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate: `count` starts in `seconds`, spread evenly."""

    count: float
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


def per_second(count: float) -> Rate:
    return Rate(count, 1)


def per_minute(count: float) -> Rate:
    return Rate(count, 60)


def per_hour(count: float) -> Rate:
    return Rate(count, 3_600)


class Throttled(Exception):  # noqa: N818  # named for what the dependency said
    """A task raises it when its dependency asks to be called later.

    The limits of the task then begin nothing for `retry_after`. After that they are slower, until
    they have found the speed that the dependency accepts. The attempt waits, and no retry is
    counted. In a task without limits it is an error like any other.
    """

    def __init__(self, message: str = "", *, retry_after: timedelta = timedelta(seconds=1)) -> None:
        super().__init__(message or f"called too often; the next call in {retry_after}")
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Trip:
    """A circuit breaker: after `failures` failed attempts within `within`, nothing begins for
    `hold`. Then a few attempts are tried. If they succeed, the limit regains its speed within a
    minute; otherwise nothing begins for `hold` again. A success resets the count.
    """

    failures: int = 5
    within: timedelta = timedelta(seconds=60)
    hold: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        if not 1 <= self.failures <= _FAILURES_MAX:
            raise WorkflowError(
                "HF067",
                f"Trip(failures={self.failures}) cannot be counted",
                help=f"expected: 1 to {_FAILURES_MAX}",
            )


@dataclass(frozen=True)
class Limit:
    """A bound on the attempts of tasks: a `rate` of starts, or a `concurrency` of attempts at once.

    * `burst`: starts that are possible at once after a pause; by default those of one second.
    * `by`: a task parameter; each of its values has a limit of its own.
    * `fair`: a parameter whose values take turns. `weights`: how many turns a value has (default:
      one).
    * `trip`: a circuit breaker.
    * `throttled_by`: errors of the dependency's client that mean the same as `Throttled`.
    """

    name: str
    rate: Rate | None = None
    burst: int | None = None
    concurrency: int | None = None
    fair: str | None = None
    weights: Mapping[str, int] = field(default_factory=dict)
    trip: Trip | None = None
    throttled_by: tuple[type[BaseException], ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise _bad(self.name, f"has the name {self.name!r}", "1 to 40 of A-Z a-z 0-9 _ -")
        if (self.rate is None) == (self.concurrency is None):
            raise _bad(self.name, "has not one of rate and concurrency", "give one; two limits may")
        if self.rate is not None:
            self._check_rate(self.rate)
        if self.concurrency is not None and not 1 <= self.concurrency <= _CONCURRENCY_MAX:
            found = f"has concurrency={self.concurrency}"
            raise _bad(self.name, found, f"1 to {_CONCURRENCY_MAX}")
        if self.concurrency is not None and self.burst is not None:
            raise _bad(self.name, "has a burst and no rate", "leave burst out")
        if self.weights and self.fair is None:
            raise _bad(self.name, "has weights and no fair", "name the parameter: fair='tenant'")
        if any(not 1 <= weight <= 100 for weight in self.weights.values()):
            raise _bad(self.name, f"has weights={dict(self.weights)}", "whole numbers, 1 to 100")

    @property
    def is_plain_rate(self) -> bool:
        """Return True for a rate that is the same for every attempt and has no circuit breaker."""
        return self.rate is not None and not (self.key or self.fair or self.trip)

    def _check_rate(self, rate: Rate) -> None:
        is_slow = rate.count <= 0 or rate.seconds / rate.count > _DAY_SECONDS
        if is_slow or rate.per_second > _PER_SECOND_MAX:
            expected = f"from one a day to {_PER_SECOND_MAX:g} a second"
            raise _bad(self.name, f"has a rate of {rate.per_second:g} a second", expected)
        if self.burst is not None and self.burst < 1:
            raise _bad(self.name, f"has burst={self.burst}", "1 or more")

    @property
    def starts_at_once(self) -> int:
        """Return the burst, which by default is the number of starts in one second."""
        if self.burst is not None:
            return self.burst
        return 1 if self.rate is None else max(1, int(self.rate.per_second))

    def __str__(self) -> str:
        """Return a text such as: bank 20/s, burst 40; customer 1 at once for each customer_id."""
        if self.rate is not None:
            bound = f"{self.rate.per_second:g}/s, burst {self.starts_at_once}"
        else:
            bound = f"{self.concurrency} at once"
        keys = f" for each {self.key}" if self.key is not None else ""
        return f"{self.name} {bound}{keys}"

    def by(self, parameter: str) -> Limit:
        """Return the same limit for each value of the task's parameter."""
        return replace(self, key=parameter)


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """The limits on the calls of one AWS service, or of one of its actions; see `limit_service`."""

    action: str
    limits: tuple[Limit, ...]


def limit_service(action: str, *limits: Limit) -> ServiceLimits:
    """Limit the Task states that call a service, or one of its actions.

    Call it at the top of a module of the deployment. `action` is the end of the state's Resource,
    or the beginning of that end for all actions of the service: `aws-sdk:dynamodb`. `by` and `fair`
    name fields of the state's Arguments. A call that the service throttles waits, and no retry is
    counted. Raises WorkflowError HF067.
    """
    if not _ACTION.fullmatch(action):
        raise WorkflowError(
            "HF067",
            f"limit_service({action!r:.60}) names no action of a service",
            help='expected: "aws-sdk:dynamodb:putItem", "aws-sdk:dynamodb" or "sqs:sendMessage"',
        )
    if any(limit.trip for limit in limits):
        raise WorkflowError(
            "HF067",
            f"a limit of {action} has a circuit breaker",
            help="a service that throttles slows its limit down by itself; leave `trip` out",
        )
    return ServiceLimits(action, limits)


def _bad(name: str, found: str, expected: str) -> WorkflowError:
    return WorkflowError("HF067", f"the limit {name!r:.60} {found}", help=f"expected: {expected}")


def require_limits(task: str, parameters: Mapping[str, object], limits: tuple[Limit, ...]) -> None:
    """Check that each parameter in a limit is one of the task's. Raises WorkflowError HF067."""
    for limit in limits:
        for parameter in (limit.key, limit.fair):
            if parameter is not None and parameter not in parameters:
                known = ", ".join(parameters) or "none"
                raise WorkflowError(
                    "HF067",
                    f"the limit {limit.name!r} of task {task} names the parameter {parameter!r}",
                    help=f"the task's parameters are: {known}",
                )
    names = [limit.name for limit in limits]
    if len(set(names)) < len(names):
        raise WorkflowError(
            "HF067", f"task {task} names a limit twice: {', '.join(names)}", help="name it once"
        )
