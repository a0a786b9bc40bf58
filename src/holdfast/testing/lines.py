"""Lines of control of a direct run: threads, of which only one runs at a time, on virtual time.

A line runs until it must wait. Then it chooses the next line itself: one that is ready, or else the
one that the next event of the timeline wakes. So a workflow without branches never leaves the
thread of the test. A line is cancelled by raising `Cancelled` where it waits.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections import deque
from types import FrameType
from typing import Any

from holdfast.api.harness import Cancelled
from holdfast.api.task_errors import BlockTimeout
from holdfast.testing.finals import open_finals
from holdfast.testing.line import WHOLE, ControlLine, Group, LineScope, current_line
from holdfast.testing.outcomes import ScriptError
from holdfast.testing.places import WaitingPlace
from holdfast.testing.timeline import Over, Timeline


class Aborted(BaseException):
    """The run cannot continue: every line ends at once, and no undo runs."""


class ControlLines:
    """All lines of one run. The caller of a method must be the running line."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.failure: BaseException | None = None
        self._ready: deque[ControlLine] = deque()
        self._open: dict[int, ControlLine] = {}
        self._threads: list[threading.Thread] = []
        self._root: ControlLine | None = None
        self._chosen: ControlLine | None = None

    # -- running -----------------------------------------------------------------------------------

    def run(self, root: ControlLine) -> None:
        """Run `root` in this thread, and every line that it starts, until all have ended."""
        self._root = root
        self._open[id(root)] = root
        self._body(root)
        while self._open:
            self._turn(root)
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def start(self, line: ControlLine) -> None:
        line.context = contextvars.copy_context()
        self._open[id(line)] = line
        self._ready.append(line)

    def _body(self, line: ControlLine) -> None:
        token = current_line.set(line)
        try:
            line.result = line.body()
            if line.due(None) is not None:
                line.is_cancelled = True
        except Cancelled:
            line.is_cancelled = True
        except Aborted:
            pass
        except ScriptError as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001 - the line's outcome
            line.error = error
        except BaseException as error:  # noqa: BLE001 - ends the test, from whatever thread
            self.fail(error)
        finally:
            current_line.reset(token)
        self._end(line)

    def _end(self, line: ControlLine) -> None:
        line.is_over = True
        del self._open[id(line)]
        if self.failure is None:
            line.on_end(line)

    def _turn(self, line: ControlLine) -> None:
        """Block the thread of this line, and let other lines run, until it is this line's turn."""
        while True:
            following = self._choose(line)
            if following is line:
                return
            self._resume(following)
            line.baton.acquire()
            if self._chosen is line:
                return

    def _choose(self, current: ControlLine) -> ControlLine:
        """Return the line that runs next. Only the root moves the time, because the script must run
        in its thread.
        """
        assert self._root is not None
        while True:
            following = self._find_ready()
            if following is not None or current is not self._root:
                self._chosen = following
                return following or self._root
            self._let_time_pass()

    def _find_ready(self) -> ControlLine | None:
        while self._ready:
            line = self._ready.popleft()
            if not line.is_over:
                return line
        if not self._open:
            return self._root
        return None if self.failure is None else next(iter(self._open.values()))

    def _let_time_pass(self) -> None:
        try:
            over = self.timeline.next()
            if over is None:
                raise self.timeline.stuck()  # noqa: TRY301 - one way out for every failure
            over.place.owner(over)
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self.fail(error)

    def _resume(self, line: ControlLine) -> None:
        if line.context is not None and line.thread is None:
            line.thread = threading.Thread(target=self._thread, args=(line,), daemon=True)
            self._threads.append(line.thread)
            line.thread.start()
        else:
            line.baton.release()

    def _thread(self, line: ControlLine) -> None:
        assert line.context is not None
        if self.failure is None and not line.is_cancelled:
            line.context.run(self._body, line)
        else:
            self._end(line)
        self._resume(self._choose(line))

    def fail(self, error: BaseException) -> None:
        """End the run with an error. Every open line is resumed once, to leave its blocks without
        further work.
        """
        if self.failure is None:
            self.failure = error

    # -- waiting -----------------------------------------------------------------------------------

    def wait(self, line: ControlLine, place: WaitingPlace) -> Over:
        """Block the line until the wait at the place ends. Raises Cancelled in a cancelled line."""
        if not place.is_plain:
            self.require_open(line)
        place.owner = lambda over: self._wake(line, over)
        line.place, line.over = place, None
        self.timeline.begin(place)
        self._park(line)
        line.place = None
        assert line.over is not None
        return line.over

    def branch(self, line: ControlLine, group: Group, concurrency: int) -> list[Any]:
        """Run the branches of an open line."""
        line.group = group
        if group.after:
            self._start_those_after(group, None)
        else:
            for _ in range(min(concurrency or len(group.branches), len(group.branches))):
                self._start_lane(group, group.started)
        if group.lanes:
            self._park(line)
        line.group = None
        if group.error is not None:
            raise group.error
        return group.results

    def _park(self, line: ControlLine) -> None:
        line.frame, line.is_parked = inspect.currentframe(), True
        try:
            self._turn(line)
        finally:
            frame, line.frame, line.is_parked = line.frame, None, False
        if self.failure is not None:
            raise Aborted
        is_plain = line.place is not None and line.place.is_plain
        if not is_plain and line.due(frame) is not None:
            line.place, line.group, line.child = None, None, None
            self._cut(line, frame)

    def require_open(self, line: ControlLine) -> None:
        """Raise Cancelled in a cancelled line, so that it begins no further work."""
        if self.failure is not None:
            raise Aborted
        self._cut(line, inspect.currentframe())

    def _cut(self, line: ControlLine, frame: FrameType | None) -> None:
        """Raise Cancelled in a line that is cancelled at this point."""
        number = line.due(frame)
        if number is None:
            return
        if number != WHOLE:
            line.scopes[number].is_cut = True
        raise Cancelled

    def _wake(self, line: ControlLine, over: Over) -> None:
        line.over = over
        self._ready.append(line)

    # -- branches ----------------------------------------------------------------------------------

    def _start_those_after(self, group: Group, ended: int | None) -> None:
        """Start the branches whose last predecessor was branch `ended`; None: those without a
        predecessor.
        """
        for number, earlier in enumerate(group.after):
            waited = not earlier if ended is None else ended in earlier
            if waited and group.ended.issuperset(earlier):
                self._start_lane(group, number)

    def _start_lane(self, group: Group, number: int) -> None:
        group.started += 1
        lane = ControlLine(
            path=(*group.owner.path, number),
            execution=group.owner.execution,
            body=group.branches[number],
            on_end=lambda line: self._lane_over(group, line, number),
        )
        group.lanes.append(lane)
        self.start(lane)

    def _lane_over(self, group: Group, lane: ControlLine, number: int) -> None:
        group.lanes.remove(lane)
        if not group.is_settled and not lane.is_cancelled:
            if lane.error is None:
                group.results[number] = lane.result
                group.ended.add(number)
                group.succeeded += 1
                if group.succeeded == group.needed:
                    self._settle(group)
            else:
                group.failed += 1
                if group.returns_errors:
                    group.results[number] = lane.error
                if group.failed > group.tolerated:
                    group.error = None if group.returns_errors else lane.error
                    self._settle(group)
        if not group.is_settled and group.after:
            self._start_those_after(group, number)
        elif not group.is_settled and group.started < len(group.branches):
            self._start_lane(group, group.started)
        if not group.lanes:
            self._ready.append(group.owner)

    def _settle(self, group: Group) -> None:
        group.is_settled = True
        for lane in list(group.lanes):
            self.cancel(lane)

    # -- cancelling --------------------------------------------------------------------------------

    def cancel(self, line: ControlLine) -> None:
        """End the whole line, after the undo of its finished work."""
        line.is_cancelled = True
        self._poke(line)

    def _poke(self, line: ControlLine) -> None:
        """Wake the line if it is cancelled and waits where it can be cancelled."""
        if line.is_over or not line.is_parked or line.due(line.frame) is None:
            return
        if line.place is not None and line.place.is_plain:
            # Python carries out this statement without waiting, so no cancellation interrupts it.
            return
        if line.group is not None:
            self._settle(line.group)
            return
        if line.child is not None:
            self.cancel(line.child)
        if line.place is not None and not line.place.is_closed:
            self.timeline.close(line.place)
            self._ready.append(line)

    # -- scopes ------------------------------------------------------------------------------------

    def enter(self, line: ControlLine, timeout_ms: int | None) -> LineScope:
        """Enter a block. With `timeout_ms` None it is a shield."""
        finals = open_finals(inspect.currentframe())
        scope = LineScope(timeout_ms is None, finals)
        if timeout_ms is not None:

            def expire(_: Over) -> None:
                scope.is_expired = True
                self._poke(line)

            scope.deadline = WaitingPlace(line.path, expire, "silent", timeout_ms=timeout_ms)
            self.timeline.begin(scope.deadline)
        line.scopes.append(scope)
        return scope

    def leave(self, line: ControlLine, scope: LineScope, error: BaseException | None) -> None:
        """Leave a block. Raises BlockTimeout when the line was cancelled because the block's time
        is over, unless more than the block is cancelled. A line that leaves the block before its
        next wait leaves it in time.
        """
        assert line.scopes[-1] is scope
        line.scopes.pop()
        if scope.deadline is not None:
            self.timeline.close(scope.deadline)
        if self.failure is not None:
            return
        if not (scope.is_cut or (scope.is_expired and isinstance(error, Cancelled))):
            return
        outer = line.due(inspect.currentframe())
        if outer is None:
            raise BlockTimeout("")
        if outer != WHOLE:
            line.scopes[outer].is_cut = True
