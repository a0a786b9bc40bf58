"""The process from which all others are forked, and by which they are killed.

It has everything imported and runs no thread, so that a killed worker costs a fork and not a start.
It kills and waits in one step: a signal never meets a stranger that got the number of a dead one.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Body = Callable[[], None]


@dataclass
class Nursery:
    bodies: Mapping[str, Body]
    folder: Path
    pids: dict[str, int] = field(default_factory=dict)
    ended: list[tuple[str, int]] = field(default_factory=list)
    """Who has ended by itself, ever, and with which exit status."""

    def serve(self, orders: Connection) -> None:
        """Serve until `quit`, or until the parent is gone; end every child process then."""
        try:
            while True:
                verb, role, *rest = orders.recv()
                if verb == "quit":
                    return
                orders.send(self._obey(verb, role, orders, *rest))
        except EOFError:
            return
        finally:
            for role in list(self.pids):
                self._end(role)

    def _obey(self, verb: str, role: str, orders: Connection, *rest: Any) -> Any:
        match verb:
            case "up":
                self._begin(role, orders)
            case "down":
                self._end(role)
            case "kill":
                killed = self._end(role)
                self._begin(role, orders)
                return killed
            case "signal":
                os.kill(self.pids[role], rest[0])
            case "ended":
                for one in list(self.pids):
                    self._has_ended(one)
                return self.ended
            case _:
                raise ValueError(verb)
        return self.pids.get(role)

    def _begin(self, role: str, orders: Connection) -> None:
        pid = os.fork()
        if pid == 0:
            orders.close()
            run_and_exit(self.bodies[role], self.folder / f"{role}.log")
        self.pids[role] = pid

    def _end(self, role: str) -> int | None:
        """Return the processes that this ended; None if the parent was gone."""
        if role not in self.pids or self._has_ended(role):
            return None
        pid = self.pids.pop(role)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return pid

    def _has_ended(self, role: str) -> bool:
        """Return the processes that ended by themselves. Read before any kill, or a crash would
        count as a kill.
        """
        pid, status = os.waitpid(self.pids[role], os.WNOHANG)
        if pid == 0:
            return False
        self.ended.append((role, status))
        del self.pids[role]
        return True


def fork(body: Body, log: Path) -> int:
    """Return the number of a new process that does `body`, and ends."""
    pid = os.fork()
    if pid == 0:
        run_and_exit(body, log)
    return pid


def run_and_exit(body: Body, log: Path) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    # Flushed at each line, so that its output survives a kill in the next moment.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    status = 1
    try:
        body()
        status = 0
    except BaseException:  # noqa: BLE001  # the log is all that is left of it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)
