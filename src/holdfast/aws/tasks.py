"""Performs tasks: the user's own code, or a call of a service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import RunTask, TaskPending, TaskResult

TaskPerformer: TypeAlias = Callable[[RunTask], TaskResult]

#: Returns a task's run on its own function, which needs the performer of service calls.
Elsewhere: TypeAlias = Callable[[RunTask], Callable[[TaskPerformer], TaskResult] | None]

_OWN_CODE = frozenset({"task", "pure"})


class TaskRunner:
    """The performer of `RunTask`, for all threads of a process.

    `elsewhere` performs the tasks that run on a function of their own, with the performer of
    service calls; it returns None for a task that runs here.

    `make_services` makes the performer of service calls. It is called at the first task that needs
    it, so a worker without state machines never loads botocore's models.
    """

    def __init__(
        self,
        run_own: TaskPerformer,
        make_services: Callable[[], TaskPerformer],
        elsewhere: Elsewhere = lambda _: None,
    ) -> None:
        self._run_own = run_own
        self._elsewhere = elsewhere
        self._make_services = make_services
        self._lock = threading.Lock()
        self._call_service: TaskPerformer | None = None

    def perform(self, effect: RunTask) -> TaskResult:
        if effect.kind in _OWN_CODE:
            run_on_function = self._elsewhere(effect)
            if run_on_function is not None:
                return run_on_function(self._services())
            return self._run_own(effect)
        try:
            call_service = self._services()
        except ServiceFault:
            if effect.is_poll:
                return TaskPending()  # the job still runs, so a worker polls it again
            raise
        return call_service(effect)

    def _services(self) -> TaskPerformer:
        with self._lock:
            if self._call_service is None:
                self._call_service = self._make_services()
            return self._call_service
