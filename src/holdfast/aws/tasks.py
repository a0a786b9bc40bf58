"""Performs tasks: the user's own code, or a call of a service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import RunTask, TaskPending, TaskResult

TaskPerformer: TypeAlias = Callable[[RunTask], TaskResult]

_OWN_CODE = frozenset({"task", "pure"})


class TaskRunner:
    """The performer of `RunTask`, for all threads of a process.

    `make_services` makes the performer of service calls. It is called at the first task that needs
    it, so a worker without state machines never loads botocore's models.
    """

    def __init__(self, run_own: TaskPerformer, make_services: Callable[[], TaskPerformer]) -> None:
        self._run_own = run_own
        self._make_services = make_services
        self._lock = threading.Lock()
        self._call_service: TaskPerformer | None = None

    def perform(self, effect: RunTask) -> TaskResult:
        if effect.kind in _OWN_CODE:
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
