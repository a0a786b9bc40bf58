"""Logs that a worker process keeps between deliveries, so that the next one reads only new records.

A parent of a thousand children gets a wake for each child's end. If every wake loaded the log, each
child would cost all the ends before it.

A kept log saves no read of the log: the delivery still queries its end, strongly consistent
(`Log.load_newer`). Records never change, so the state up to a known record does not change either.

Rules of this file:
* One delivery has a kept log at a time: `take` removes it. A delivery that crashes keeps nothing.
* A log is kept only if its state and its book of values are those of its stored records.
* A recovery does not use a kept log: it reads the records of its message (R8).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from holdfast.limits import WARM_LOG_BYTES_MAX, WARM_LOGS_BYTES_MAX
from holdfast.runtime.storage.log import Log


@dataclass(frozen=True, slots=True)
class WarmLogs:
    """The logs of the executions that this process has worked on last."""

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
