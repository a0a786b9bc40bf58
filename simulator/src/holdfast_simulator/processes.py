"""A handler under way, and the host it runs on.

A host is one process of the operating system: a kill or a freeze hits everything that runs there.
Its clock is off by `skew_ms`.

A host whose time is up is killed. The time is kept outside of the host: a frozen host is given up,
and goes on when it thaws, although its results are ignored then.
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
        """The process has finished. -> whether its result reaches the queue."""
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
    #: Results of tasks that were not taken yet, and how many run.
    results: list[tuple[Ticket, TaskResult]] = field(default_factory=list)
    running: int = 0
    #: Set while it waits for results: the function that wakes it.
    waiting: Callable[[], None] | None = None
    #: It was frozen for longer than a message stays hidden: another worker may have the message
    #: now.
    is_late: bool = False
