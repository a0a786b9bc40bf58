"""The errors in the logs of the processes. Faults of the cloud are expected, bugs are not: one
that a second delivery makes good leaves no trace in any log of an execution.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from holdfast.errors import BUG

#: Logged by the trial's own event source mapping; its calls are not the engine's.
BATCH_GIVEN_UP: Final = "a batch was given up"


def complaints(folder: Path, roles: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the process and the line of each complaint: `what`, `error`, `code`."""
    for role in roles:
        path = folder / f"{role}.log"
        for line in path.read_text().splitlines() if path.exists() else ():
            said = _parsed(line)
            if said.get("level") == "ERROR" and said["what"] != BATCH_GIVEN_UP:
                yield role, said


def bugs(found: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    for role, said in found:
        if said["code"] == BUG:
            yield role, f"{said['what']}: {said['error']}; see {role}.log"


def by_code(found: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, int]:
    return dict(sorted(Counter(said["code"] for _, said in found).items()))


def _parsed(line: str) -> dict[str, Any]:
    """Metrics, and half lines of those that were killed, are no complaints."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
