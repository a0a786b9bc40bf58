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

Where one process runs the worker and the API, as `serve` does, it also keeps the logs of executions
that have ended, in a `WarmLogs` of their own. A client asks for a result right after the end, and
the API then reads the newest record only. Workers do not use these logs.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from holdfast.limits import WARM_LOG_BYTES_MAX, WARM_LOGS_BYTES_MAX
from holdfast.runtime.storage.log import Log


@dataclass(slots=True)
class WarmLogs:
    """The logs of the executions that this process has last worked on: open ones, or with
    `of_ended` those that have ended.
    """

    of_ended: bool = False
    _logs: OrderedDict[str, Log] = field(default_factory=OrderedDict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _bytes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def take(self, partition: str) -> Log | None:
        with self._lock:
            return self._removed(partition)

    def keep(self, log: Log) -> None:
        if not log.is_exact or log.state is None or log.state.is_ended != self.of_ended:
            return
        size = log.stored_bytes
        if size > WARM_LOG_BYTES_MAX:
            return
        with self._lock:
            self._removed(log.partition)
            self._logs[log.partition], self._sizes[log.partition] = log, size
            self._bytes += size
            while self._bytes > WARM_LOGS_BYTES_MAX:
                self._removed(next(iter(self._logs)))

    def _removed(self, partition: str) -> Log | None:
        self._bytes -= self._sizes.pop(partition, 0)
        return self._logs.pop(partition, None)
