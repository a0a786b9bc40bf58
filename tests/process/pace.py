"""The engine at a tenth of its patience: claims, visibility and sweeps of ten seconds.

Bounds are constants that other modules copy when they are imported, so `shorten` comes first, in
the process from which all others are forked. Nothing else of the product is changed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Final

from holdfast import limits, resources

SECONDS: Final = 10

LIMITS: Final[dict[str, int]] = {
    "VISIBILITY_SECONDS": SECONDS,
    "VISIBILITY_EXTENSION_SECONDS": 4,
    # The lease ends its grace after the attempt's time-out: ten seconds in all.
    "CLAIM_SECONDS_DEFAULT": 7,
    "CLAIM_GRACE_MS": 3_000,
    "SWEEP_SECONDS": SECONDS,
    "SWEEP_AHEAD_SECONDS": SECONDS,
    "OVERDUE_SECONDS": SECONDS,
    "WATCH_GRID_SECONDS": SECONDS,
    "WATCH_LOOK_SECONDS_MIN": SECONDS,
    # Longer waits become timer rows, so that the sweeper has those to work off, too.
    "SQS_DELAY_SECONDS_MAX": 24,
    "TIMER_ROW_LEAD_SECONDS": 12,
    # Workers die each second: four losses in a row are no sign of a task that kills its worker.
    "TAKEOVERS_MAX": 30,
}
#: A message whose workers crashed this often is a dead letter, and the sweeper's.
RECEIVES_MAX: Final = 3
#: Of one invocation, in place of Lambda's 15 minutes.
INVOCATION_SECONDS: Final = 30


def shorten() -> None:
    """Sets the bounds. Too late once the engine has been imported: then it refuses."""
    loaded = {"holdfast.runtime", "holdfast.aws", "holdfast.local"} & sys.modules.keys()
    assert not loaded, f"{sorted(loaded)} are imported and have copied their bounds"
    for name, value in LIMITS.items():
        assert hasattr(limits, name), f"there is no limit {name}"
        setattr(limits, name, value)
    for name in ("WORK", "SINGLE", "STARTS"):
        queue: Any = getattr(resources, name)
        setattr(
            resources,
            name,
            replace(queue, visibility_seconds=SECONDS, receives_max=RECEIVES_MAX),
        )
    queues = (resources.WORK, resources.SINGLE, resources.STARTS)
    resources.QUEUES = queues  # type: ignore[misc]
