"""Runs a handler: performs each effect that it yields and sends the result back.

Only `perform` differs between Lambda, a local machine and a test. If there is a `pool`, tasks that
a handler begins run in its threads; otherwise they run at once. In both cases the effect `Finished`
returns all results that are ready, so one commit can include several.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Begin, Clock, Effect, Finished, Handler, Ticket

Perform = Callable[[Effect], Any]


class BegunTasks:
    """The tasks that one handler has begun and whose results it has not received yet."""

    def __init__(self, perform: Perform, pool: Executor | None) -> None:
        self._perform = perform
        self._pool = pool
        self._running: dict[Future[Any], Ticket] = {}
        self._done: list[tuple[Ticket, Any]] = []

    def begin(self, effect: Begin) -> None:
        if self._pool is None:
            self._done.append((effect.ticket, self._perform(effect.effect)))
        else:
            self._running[self._pool.submit(self._perform, effect.effect)] = effect.ticket

    def finished(self, effect: Finished) -> list[tuple[Ticket, Any]]:
        if self._running:
            left_seconds = max(0, effect.until_ms - self._perform(Clock())) / 1_000
            ready, _ = wait(
                self._running,
                timeout=0 if self._done else left_seconds,
                return_when=FIRST_COMPLETED,
            )
            self._done += [(self._running.pop(future), future.result()) for future in ready]
        done, self._done = self._done, []
        return done


def run(handler: Handler, perform: Perform, pool: Executor | None = None) -> Any:
    """Run the handler with its effects and return its result. The error of an effect is raised
    inside the handler, which may handle it.
    """
    tasks = BegunTasks(perform, pool)
    # Bind `send` once. A step of a workflow has about a dozen effects, and each lookup of
    # `handler.send` would create a new object.
    resume: Callable[[Any], Effect] = handler.send
    result: Any = None
    while True:
        try:
            effect = resume(result)
        except StopIteration as stop:
            return stop.value
        try:
            resume, result = handler.send, _dispatch(effect, perform, tasks)
        except ServiceFault as fault:
            resume, result = handler.throw, fault


def _dispatch(effect: Effect, perform: Perform, tasks: BegunTasks) -> Any:
    match effect:
        case Begin():
            return tasks.begin(effect)
        case Finished():
            return tasks.finished(effect)
        case _:
            return perform(effect)
