"""Runs a handler: performs each effect that it yields and sends the result back.

Only `perform` differs between Lambda, a local machine and a test. If there is a `pool`, tasks that
a handler begins run in its threads; otherwise they run at once. In both cases the effect `Finished`
returns all results that are ready, so one commit can include several.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import Begin, Clock, Effect, Finished, Handler, Ticket

Perform = Callable[[Effect], Any]


class BegunTasks:
    """The tasks that one handler has begun and whose results it has not received yet."""

    def __init__(self, perform: Perform, pool: Executor | None) -> None:
        self._perform = perform
        self._pool = pool
        self._count = 0
        self._done: SimpleQueue[tuple[Ticket, Future[Any]]] = SimpleQueue()

    def begin(self, effect: Begin) -> None:
        if self._pool is None:
            future: Future[Any] = Future()
            future.set_result(self._perform(effect.effect))
        else:
            future = self._pool.submit(self._perform, effect.effect)
        self._count += 1
        future.add_done_callback(lambda done: self._done.put((effect.ticket, done)))

    def finished(self, effect: Finished) -> list[tuple[Ticket, Any]]:
        """Return the results that are ready. If there are none, wait for the first one."""
        found: list[tuple[Ticket, Future[Any]]] = []
        if self._count and self._done.empty():
            left_seconds = max(0, effect.until_ms - self._perform(Clock())) / 1_000
            with suppress(Empty):
                found.append(self._done.get(timeout=left_seconds))
        while not self._done.empty():
            found.append(self._done.get())
        self._count -= len(found)
        return [(ticket, future.result()) for ticket, future in found]


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
