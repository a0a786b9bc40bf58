"""A running handler, and its host.

A host is one process of the operating system: a crash or a freeze affects everything that runs in
it. Its clock is wrong by `skew_ms`.

The simulation kills a host at its time-out. The time is measured outside of the host: the
simulation gives a frozen host up, and ignores its results when it continues later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.effects import Effect, Handler, TaskResult, Ticket


class Deadly(BaseException):
    """An error that crashes the process, such as the end of memory or an abort in a library."""


@dataclass(eq=False)
class SimulatedHost:
    name: str
    skew_ms: int
    is_alive: bool = True
    is_given_up: bool = False
    frozen_from_ms: int = 0
    frozen_until_ms: int = 0
    #: Called for the dependants of a process that has crashed or was given up.
    on_loss: Callable[[], None] = lambda: None

    def kill(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.give_up()

    def give_up(self) -> None:
        if not self.is_given_up:
            self.is_given_up = True
            self.on_loss()

    def finish(self) -> bool:
        """End the process. Return whether its result reaches the queue."""
        self.is_alive = False
        return not self.is_given_up


@dataclass(eq=False)
class Process:
    """One process. `perform` answers the effects that only its host can answer: visibility, limits.
    `finished` gets the handler's result, `failed` its exception.
    """

    name: str
    tenant: str
    host: SimulatedHost
    handler: Handler
    perform: Callable[[Effect], Any]
    finished: Callable[[Any], None]
    failed: Callable[[Exception], None]
    #: The results of tasks that the handler has not read yet, and the number of running tasks.
    results: list[tuple[Ticket, TaskResult]] = field(default_factory=list)
    running: int = 0
    #: Set while the handler waits for results: the function that wakes the handler.
    waiting: Callable[[], None] | None = None
    #: True when the host was frozen for longer than a message stays hidden: another worker may have
    #: the message.
    is_late: bool = False
