"""Performs tasks: runs the user's own code, or calls a service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from holdfast.errors import ServiceFault
from holdfast.runtime.effects import RunTask, TaskPending, TaskResult

TaskPerformer: TypeAlias = Callable[[RunTask], TaskResult]


class Services(Protocol):
    """The calls of services. `find_misuse` checks the arguments of a call without making it."""

    def perform(self, effect: RunTask) -> TaskResult: ...

    def find_misuse(self, target: str, arguments: Any) -> str | None: ...


#: A function that decides which tasks run on Lambda functions of their own. For such a task it
#: returns the function that runs it, given the performer of service calls. For any other task it
#: returns None.
Elsewhere: TypeAlias = Callable[[RunTask], Callable[[TaskPerformer], TaskResult] | None]

_OWN_CODE = frozenset({"task", "pure"})


class TaskRunner:
    """The performer of `RunTask`, for all threads of a process.

    `elsewhere` finds tasks that run on Lambda functions of their own; it returns None for a task
    that runs in this process.

    `make_services` creates the calls of services at the first task that needs it. So a
    worker without state machines never loads botocore's models.
    """

    def __init__(
        self,
        run_own: TaskPerformer,
        make_services: Callable[[], Services],
        elsewhere: Elsewhere = lambda _: None,
    ) -> None:
        self._run_own = run_own
        self._elsewhere = elsewhere
        self._make_services = make_services
        self._lock = threading.Lock()
        self._made: Services | None = None

    def perform(self, effect: RunTask) -> TaskResult:
        if effect.kind in _OWN_CODE:
            run_on_function = self._elsewhere(effect)
            if run_on_function is not None:
                return run_on_function(self._services().perform)
            return self._run_own(effect)
        try:
            services = self._services()
        except ServiceFault:
            if effect.is_poll:
                # The job still runs, so a worker will poll it again.
                return TaskPending()
            raise
        return services.perform(effect)

    def find_misuse(self, target: str, arguments: Any) -> str | None:
        """Return why the action cannot be called with the arguments. Never raises: a fault of the
        services is one of the call.
        """
        try:
            return self._services().find_misuse(target, arguments)
        except ServiceFault:
            return None

    def _services(self) -> Services:
        with self._lock:
            if self._made is None:
                self._made = self._make_services()
            return self._made
