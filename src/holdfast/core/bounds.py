"""The bounds of a distributed Map: children at once, and failed items that it tolerates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.lazy_dataclass import dataclass
from holdfast.limits import CHILDREN_AT_ONCE_MAX

#: The fields of a request that changes bounds, and of the event that records it.
FIELDS: Final = ("concurrency", "count", "percentage")
#: The argument of a reading attempt that holds the changes which arrived during the reading.
CHANGED: Final = "bounds"


@dataclass(frozen=True, slots=True)
class Bounds:
    """`concurrency` 0: the definition has no bound. None: the definition does not have the field.

    `count` and `percentage` are those of failed items. A run fails when it exceeds either.
    """

    concurrency: int
    count: int | None
    percentage: float | None

    def fields(self) -> dict[str, Any]:
        return {
            "concurrency": self.concurrency,
            "count": self.count,
            "percentage": self.percentage,
        }

    def tolerated(self) -> dict[str, Any]:
        """Return the bounds of failures that the definition, or a request, has given."""
        given = {"count": self.count, "percentage": self.percentage}
        return {name: bound for name, bound in given.items() if bound is not None}

    def changed(self, wanted: Mapping[str, Any]) -> Bounds:
        """Return the bounds after a request, which has only the fields that it changes."""
        return Bounds(**{**self.fields(), **wanted})

    @property
    def at_once(self) -> int:
        return min(self.concurrency or CHILDREN_AT_ONCE_MAX, CHILDREN_AT_ONCE_MAX)

    def failures_max(self, items: int) -> int:
        """Return how many items may fail: the smaller of both bounds, or 0 without any."""
        allowed = [] if self.count is None else [self.count]
        if self.percentage is not None:
            allowed.append(int(items * self.percentage / 100))
        return min(allowed, default=0)
