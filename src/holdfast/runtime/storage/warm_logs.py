"""Logs that a worker process keeps between deliveries, so that the next delivery reads only new
records.

The parent of a thousand children gets a wake for the end of each child. If every wake loaded the
whole log, the cost of each child would grow with the number of earlier ends.

A kept log does not replace the query: each delivery still queries the end of the log, strongly
consistent (`Log.load_newer`). Stored records never change, so the state after a known record does
not change either.

Rules of this file:
* Only one delivery has a kept log at a time: `take` removes it. A delivery that crashes keeps
  nothing.
* A log is kept only if its state and its book of values are those of its stored records.
* A recovery does not use a kept log: it must read the records of its message (R8).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from holdfast.limits import WARM_LOG_BYTES_MAX, WARM_LOGS_BYTES_MAX
from holdfast.runtime.storage.log import Log


@dataclass(frozen=True, slots=True)
class WarmLogs:
    """The logs of the executions that this process has last worked on."""

    _logs: OrderedDict[str, Log] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, partition: str) -> Log | None:
        with self._lock:
            return self._logs.pop(partition, None)

    def keep(self, log: Log) -> None:
        if not log.is_exact or log.state is None or log.state.is_ended:
            return
        if log.stored_bytes > WARM_LOG_BYTES_MAX:
            return
        with self._lock:
            self._logs[log.partition] = log
            self._logs.move_to_end(log.partition)
            while sum(kept.stored_bytes for kept in self._logs.values()) > WARM_LOGS_BYTES_MAX:
                self._logs.popitem(last=False)
