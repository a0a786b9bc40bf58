"""A bank that accepts 20 calls a second, behind the rate limiter of a DBOS queue.

    pip install dbos && python benchmarks/bank_beside_dbos.py

The same bank and the same limit in Holdfast are in tests/sim/limits_test.py, on virtual time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass, field

from dbos import DBOS

PER_SECOND = 20
BURST = 8
EXECUTIONS = 400


@dataclass
class Bank:
    """Refuses a call when more than `PER_SECOND`, and `BURST` after a pause, have come."""

    tokens: float = BURST
    at: float = field(default_factory=time.monotonic)
    calls: list[tuple[float, bool]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self) -> bool:
        with self.lock:
            now = time.monotonic()
            self.tokens = min(BURST, self.tokens + (now - self.at) * PER_SECOND)
            self.at = now
            is_taken = self.tokens >= 1
            self.tokens -= is_taken
            self.calls.append((now, is_taken))
            return is_taken


bank = Bank()


@DBOS.step()
def call() -> bool:
    return bank.call()


@DBOS.workflow()
def pay() -> bool:
    return call()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/dbos.sqlite"
        DBOS(config={"name": "bank", "system_database_url": url, "run_admin_server": False})
        DBOS.launch()
        DBOS.register_queue("bank", limiter={"limit": PER_SECOND, "period": 1})
        queue = DBOS.retrieve_queue("bank")
        for handle in [queue.enqueue(pay) for _ in range(EXECUTIONS)]:
            handle.get_result()
        DBOS.destroy()
    refused = sum(not is_taken for _, is_taken in bank.calls)
    seconds = bank.calls[-1][0] - bank.calls[0][0]
    print(f"refused {refused / EXECUTIONS:.1%}, {EXECUTIONS / seconds:.1f} calls a second")


if __name__ == "__main__":
    main()
