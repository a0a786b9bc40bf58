"""A worker of a pool: it polls for attempts, runs them, and reports their ends.

    the main thread            a thread for each attempt        a thread for its heartbeats
    wait for a free slot
    poll ─── attempt ────────► run the task                     each third of the heartbeat:
    poll, or pause             │                                heartbeat ── over? ─► `cancelled`
                               answer, until it is taken ─────► the last one

Another thread announces the worker each minute, for `holdfast pools` and `doctor`.

All requests go out: the machine needs no address. Rules:

* A slot is free before the poll, because a poll that finds a task takes it.
* A heartbeat is sent by this process for a task without `heartbeat=`. A task that declares one
  sends its own with `heartbeat()`; its silence must count as a task that hangs.
* Heartbeats go on until the answer is stored. Otherwise the API could be away for a minute while
  the result is there, and the work would be done again.
* An answer is sent again until the API takes it or says that the attempt is over. If the API
  refuses it, the attempt fails with that reason; if it refuses this failure, too, the worker gives
  the attempt up: else a token that the API no longer reads would hold the slot for ever.
* In a container the process itself is the attempt: a task that does not end when it is cancelled
  is ended with the process, and with it the container.
* The drain (SIGTERM) ends the polls. Attempts that run are finished and answered.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.api.runs_on import BatchJob, Fargate, Worker
from holdfast.api.task_errors import HeartbeatMissed, InvalidResult
from holdfast.api.tasks import Task
from holdfast.asl.resources import CONTAINERS
from holdfast.deployment import Deployment
from holdfast.errors import HoldfastError, RequestError, WorkflowError, known_names
from holdfast.limits import POOL_HEARTBEAT_SECONDS
from holdfast.remote import pools
from holdfast.remote.client import Client
from holdfast.remote.errors import NO_API
from holdfast.remote.pools import Handed
from holdfast.runtime.effects import OwnResult, TaskFailed
from holdfast.runtime.handed_attempts import read_attempt, result_message
from holdfast.task_runs import Outside

#: The pause after a poll that found no task. It is short at first, because a task often follows
#: another one at once. For an idle pool it grows, because each poll costs money.
PAUSE_SECONDS: Final = 0.5
PAUSE_SECONDS_MAX: Final = 5.0
ANNOUNCE_SECONDS: Final = 60.0
LEAVE_SECONDS: Final = 30.0
_FETCH_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_GROWTH: Final = 1.5
_ANSWER_PAUSE_SECONDS_MAX: Final = 30.0
#: The number of heartbeats in the longest time that may pass without one. So two heartbeats may be
#: lost.
_BEATS: Final = 3


def _stay() -> None:
    """A worker with other attempts goes on."""


def tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def worker_name() -> str:
    """Return the name that histories show: the machine and the process."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}"


def _known_pools(pool: str, tasks: Iterable[Task[..., Any]]) -> str:
    places = [task.runs_on for task in tasks]
    return known_names(pool, {place.pool for place in places if isinstance(place, Worker)})


@dataclass(frozen=True, slots=True)
class Pulse:
    """The heartbeats of an attempt, as its task sends them."""

    is_over: threading.Event = field(default_factory=threading.Event)
    has_beaten: threading.Event = field(default_factory=threading.Event)
    #: The newest progress that no heartbeat has carried yet.
    unsent: deque[Any] = field(default_factory=lambda: deque(maxlen=1))

    def beat(self, progress: Any = None) -> None:
        if self.is_over.is_set():
            raise HeartbeatMissed("the engine no longer waits for this attempt")
        if progress is not None:
            self.unsent.append(progress)
        self.has_beaten.set()

    def take_progress(self) -> Any:
        """Return the progress to send, None without any."""
        try:
            return self.unsent.pop()
        except IndexError:
            return None

    def keep_progress(self, progress: Any) -> None:
        """Keep the progress of a heartbeat that was not stored, unless a newer one has come."""
        if progress is not None and not self.unsent:
            self.unsent.append(progress)


@dataclass(slots=True)
class PoolWorker:
    """The worker of one pool, which runs up to `slots` attempts at once."""

    deployment: Deployment
    client: Client
    pool: str
    slots: int = 1
    #: The pool whose tasks this worker has; "" for its own. A pool that workflows choose at run
    #: time is in no declaration.
    tasks_of: str = ""
    name: str = field(default_factory=worker_name)
    say: Callable[[str], None] = tell
    pause: Callable[[float], None] = time.sleep
    #: Called when a cancelled task still runs after LEAVE_SECONDS. In a container it ends the
    #: process.
    leave: Callable[[], None] = _stay
    draining: threading.Event = field(default_factory=threading.Event)
    tasks: tuple[str, ...] = field(init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _busy: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        registry = self.deployment.registry
        found = [*registry.tasks.values(), *registry.namesakes.values()]
        self.tasks = tuple(sorted({task.name for task in found if self._is_own(task)}))
        if not self.tasks:
            pool = self._declared
            raise WorkflowError(
                "HF434",
                f"no task of these modules runs on the pool {pool}",
                help=f'{_known_pools(pool, found)}; or @task(runs_on=Worker("{pool}")); '
                f"or --tasks-of POOL, if workflows choose {pool} at run time",
            )

    @property
    def _declared(self) -> str:
        return self.tasks_of or self.pool

    def _is_own(self, task: Task[..., Any]) -> bool:
        if self.pool == CONTAINERS:
            return isinstance(task.runs_on, Fargate | BatchJob)
        return task.runs_on == Worker(self._declared)

    # -- the loop ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until the drain, and then until every attempt in hand is answered."""
        announcing = threading.Thread(target=self._announce_each_minute, daemon=True)
        announcing.start()
        try:
            self._poll_until_drain()
        finally:
            self._ended.set()
            announcing.join()

    def _poll_until_drain(self) -> None:
        free = threading.Semaphore(self.slots)
        threads: set[threading.Thread] = set()
        pause = PAUSE_SECONDS
        while not self.draining.is_set():
            if not free.acquire(timeout=PAUSE_SECONDS):
                continue
            handed = self._poll()
            if handed is None:
                free.release()
                self.draining.wait(pause)
                pause = min(pause * _GROWTH, PAUSE_SECONDS_MAX)
                continue
            pause = PAUSE_SECONDS
            threads = {thread for thread in threads if thread.is_alive()}
            threads.add(self._begin(handed, free))
        for thread in threads:
            thread.join()

    def run_one(self) -> bool:
        """Run one attempt in this thread. Return False when none waits."""
        handed = self._poll()
        if handed is not None:
            self._work(handed)
        return handed is not None

    def run_token(self, token: str) -> bool:
        """Run the attempt for which this container was started. Return False when it is over."""
        for pause in _FETCH_PAUSES:
            try:
                handed = self.client.perform(pools.fetch(self.pool, token))
            except HoldfastError as error:
                # Try again, because the container may be up before the record of its start is
                # stored, or before its network works.
                self.say(f"the attempt cannot be fetched: {error}")
                self.pause(pause)
                continue
            self._work(handed)
            return True
        return False

    def _begin(self, handed: Handed, free: threading.Semaphore) -> threading.Thread:
        def work() -> None:
            try:
                self._work(handed)
            finally:
                self._busy -= 1
                free.release()

        self._busy += 1
        thread = threading.Thread(target=work, name=f"attempt of pool {self.pool}")
        thread.start()
        return thread

    def _announce_each_minute(self) -> None:
        since_ms = 0
        while not self._ended.is_set():
            since_ms = self._announce(self.slots, since_ms)
            self._ended.wait(ANNOUNCE_SECONDS)
        self._announce(0, since_ms)

    def _announce(self, slots: int, since_ms: int) -> int:
        told = pools.announce(
            *(self.pool, self.name, self.tasks), slots=slots, busy=self._busy, since_ms=since_ms
        )
        try:
            return self.client.perform(told)
        except HoldfastError as error:
            self.say(f"the pool {self.pool} was not told of this worker: {error}")
            return since_ms

    def _poll(self) -> Handed | None:
        try:
            return self.client.perform(pools.poll(self.pool, self.name, self.tasks))
        except HoldfastError as error:
            # Continue after this error, because the network may come back. If the address is wrong
            # or a right is missing, the user sees the message on the terminal.
            self.say(f"the poll failed: {error}")
            return None

    # -- one attempt -------------------------------------------------------------------------------

    def _work(self, handed: Handed) -> None:
        try:
            effect = read_attempt(handed.attempt).effect
        except HoldfastError as error:
            # This worker's code cannot run the attempt, so it sends no heartbeats for it. The
            # attempt then times out, and a worker with other code may get the next one.
            self.say(f"an attempt cannot be run: {error}")
            return
        pulse, answered = Pulse(), threading.Event()
        title = f"{effect.name}, attempt {effect.attempt} of {effect.run}"
        self.say(f"{title}: begun")
        silence = effect.heartbeat_seconds or POOL_HEARTBEAT_SECONDS
        seconds = min(silence, POOL_HEARTBEAT_SECONDS) / _BEATS
        beating = threading.Thread(
            target=self._beat, args=(handed, seconds, pulse, answered), daemon=True
        )
        beating.start()
        try:
            outside = Outside(
                pulse,
                pulse.is_over.is_set,
                save_progress=lambda: self._send_progress(handed, pulse),
            )
            is_taken = self._send(handed.token, self.deployment.run_task(effect, outside))
        finally:
            answered.set()
            beating.join()
        self.say(f"{title}: {'answered' if is_taken else 'the engine no longer waited for it'}")

    def _send(self, token: str, result: OwnResult) -> bool:
        """Send the result until the API takes it. Return False when the attempt is over, or when
        the API takes no answer for it.
        """
        pause, message = PAUSE_SECONDS, result_message(result)
        was_refused = False
        while True:
            try:
                return self.client.perform(pools.answer(self.pool, token, message))
            except HoldfastError as error:
                self.say(f"a result was not taken: {error}")
                if _is_refused(error):
                    if was_refused:
                        return False
                    was_refused = True
                    # The same result would be refused each time. So end the attempt with the error
                    # that a worker of the engine would give it.
                    message = result_message(TaskFailed(InvalidResult.__name__, error.message))
            self.pause(pause)
            pause = min(pause * 2, _ANSWER_PAUSE_SECONDS_MAX)

    def _beat(
        self, handed: Handed, seconds: float, pulse: Pulse, answered: threading.Event
    ) -> None:
        while not answered.wait(seconds):
            if handed.beats and not pulse.has_beaten.is_set():
                continue
            pulse.has_beaten.clear()
            if not self._send_heartbeat(handed, pulse):
                pulse.is_over.set()
                break
        if not answered.wait(LEAVE_SECONDS):
            self.leave()

    def _send_progress(self, handed: Handed, pulse: Pulse) -> None:
        """Send the progress of a failed attempt that no heartbeat has carried yet."""
        if pulse.unsent:
            self._send_heartbeat(handed, pulse)

    def _send_heartbeat(self, handed: Handed, pulse: Pulse) -> bool:
        """Send a heartbeat with the newest progress. Return False once the attempt is over."""
        progress = pulse.take_progress()
        try:
            return self.client.perform(pools.heartbeat(self.pool, handed.token, progress))
        except HoldfastError as error:
            self.say(f"a heartbeat failed: {error}")
            # Send the heartbeat again in the next round, even if the task gives none until then.
            # Otherwise the attempt could time out because of one lost request.
            pulse.keep_progress(progress)
            pulse.has_beaten.set()
            return not _is_refused(error)


def _is_refused(error: HoldfastError) -> bool:
    """Return True when the API read the answer and cannot store it. An answer of a gateway, or a
    missing right, may be another one next time.
    """
    return isinstance(error, RequestError) and error.code != NO_API and error.status in {400, 413}
