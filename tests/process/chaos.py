"""When which process is killed, frozen or kept waiting: drawn from a seed, carried out in time.

Most faults are drawn evenly. The last ones are not: whatever the seed, workers are frozen, the
cloud stands still and all of it ends at once with the last kills, so that what is open at that
moment has been through every kind of fault.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Literal

from tests.process.clock import Clock
from tests.process.hands import Hands
from tests.process.pace import SECONDS

Kind = Literal["kill", "freeze", "stall"]
Order = Callable[..., Any]

FREEZE_SECONDS: Final = (2.0, 30.0)  # past a visibility of ten seconds, and not
STALL_SECONDS: Final = (0.5, 9.0)  # past the five seconds that a client waits for an answer
SHARE_MAX: Final = 0.4  # of the whole time, for one freeze or stall: a short run has short ones
#: A fault waits so long for a process that has something in hand; the last ones for a worker that
#: is in the middle of a task, longer than a stall that was drawn.
LOOKING_SECONDS: Final = 0.4
TASK_SECONDS: Final = 12.0
#: So far callers may be behind while faults go on.
LAG_SECONDS: Final = 20.0
#: Callers that do not catch up in this time never will; then the end reports the losses.
CATCH_UP_SECONDS: Final = 180.0
#: The duration of the last faults. The visibility of the first frozen worker has ended when it
#: continues. Others are frozen, and one is killed, shortly before the cloud stands still: no other
#: worker gets their messages until the end.
LAST_SECONDS: Final = 13.0
_LAST_FREEZES: Final = ((LAST_SECONDS, "worker"), (7.0, "worker"), (7.0, "worker"), (7.0, "single"))
_LAST_STALLS: Final = (6.0,)
_LAST_KILLS: Final = (
    (6.2, "worker"), (0.0, "worker"), (0.0, "sweeper"), (0.0, "single"), (0.0, "caller")
)  # fmt: skip
#: Of ten faults so many hit a process of this kind.
WEIGHTS: Final = {"worker": 7, "single": 1, "sweeper": 1, "caller": 1}


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    at_seconds: float
    kind: Kind
    target: str
    seconds: float = 0.0
    is_last: bool = False
    """It hits a worker in the middle of a task, and lasts until no more faults come."""


@dataclass(frozen=True, slots=True)
class Harm:
    """A fault that was done: to whom, and from when to when."""

    kind: Kind
    role: str
    pid: int
    begun_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Wanted:
    kills: int
    freezes: int
    stalls: int
    seconds: float


def draw_faults(wanted: Wanted, seed: int) -> list[Fault]:
    """`target` is a kind of process: which of them is seen when the time has come."""
    draw = random.Random(f"faults {seed}")
    kinds = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]
    faults = _last_faults(wanted)
    of_last = Counter(fault.kind for fault in faults)

    def add(number: int, kind: Kind, shortest: float, longest: float) -> None:
        for _ in range(number - of_last[kind]):
            seconds = min(draw.uniform(shortest, longest), wanted.seconds * SHARE_MAX)
            at_seconds = draw.uniform(0, wanted.seconds - seconds)
            faults.append(Fault(at_seconds, kind, draw.choice(kinds), seconds))

    add(wanted.kills, "kill", 0, 0)
    add(wanted.freezes, "freeze", *FREEZE_SECONDS)
    add(wanted.stalls, "stall", *STALL_SECONDS)
    return sorted(faults)


def _last_faults(wanted: Wanted) -> list[Fault]:
    """Of each kind some, as far as they are wanted. They end together."""
    end = wanted.seconds
    freezes, stalls, kills = (
        _LAST_FREEZES[: wanted.freezes],
        _LAST_STALLS[: wanted.stalls],
        _LAST_KILLS[: wanted.kills],
    )
    return [
        *(Fault(end - s, "freeze", role, s, is_last=True) for s, role in freezes),
        *(Fault(end - s, "stall", "", s, is_last=True) for s in stalls),
        # Those at the very end come while the cloud stands still, and no task runs.
        *(Fault(end - s, "kill", role, is_last=s > 0) for s, role in kills),
    ]


@dataclass
class Chaos:
    """Carries faults out. `order` speaks to the nursery."""

    order: Order
    roles: tuple[str, ...]
    hands: Hands
    server: int
    draw: random.Random
    clock: Clock
    is_behind: Callable[[float], bool]
    """Whether callers have yet to begin what was planned for before that time."""
    done: Counter[str] = field(default_factory=Counter)
    harms: list[Harm] = field(default_factory=list)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _at_the_end: list[Callable[[], None]] = field(default_factory=list)
    _frozen: dict[str, Harm] = field(default_factory=dict)
    _stalls: int = 0

    def run(self, faults: list[Fault], seconds: float) -> float:
        """Return when the last fault was over.

        On a busy machine callers fall behind. Then all that is still to come is put off, faults
        and calls: or what is to be open at the last fault would not have begun by then.
        """
        last_from = seconds - LAST_SECONDS
        for fault in faults:
            is_last = fault.at_seconds >= last_from
            self._let_catch_up(last_from - 1 if is_last else fault.at_seconds - LAG_SECONDS)
            self._pass_until(self.clock.wall(fault.at_seconds))
            self._begin(fault)
        for happen in self._at_the_end:
            happen()
        while self._due:
            self._pass_until(self._due[0][0])
        self.done["seconds that faults were put off"] = round(self.clock.put_off_seconds)
        return time.time()

    def _let_catch_up(self, moment: float) -> None:
        end = time.monotonic() + CATCH_UP_SECONDS
        self._pass_until(self.clock.wall(moment))
        while self.is_behind(moment) and time.monotonic() < end:
            self._pass_until(time.time() + LOOKING_SECONDS)
            self.clock.put_off(LOOKING_SECONDS)

    def _pass_until(self, moment: float) -> None:
        """Lets time pass; what was frozen meanwhile thaws when its time has come."""
        while self._due and self._due[0][0] <= moment:
            at, _, happen = heappop(self._due)
            time.sleep(max(0.0, at - time.time()))
            happen()
        time.sleep(max(0.0, moment - time.time()))

    def _after(self, fault: Fault, happen: Callable[[], None]) -> None:
        if fault.is_last:
            self._at_the_end.append(happen)
        else:
            heappush(self._due, (time.time() + fault.seconds, next(self._numbers), happen))

    def _begin(self, fault: Fault) -> None:
        match fault.kind:
            case "kill":
                self._kill(fault)
            case "freeze":
                self._freeze(fault)
            case "stall":
                self.done["stall"] += 1
                self._stalls += 1
                os.kill(self.server, signal.SIGSTOP)
                harm = Harm("stall", "server", self.server, time.time(), 0.0)
                self._after(fault, partial(self._go_on, harm))

    def _freeze(self, fault: Fault) -> None:
        role = self._at_work(fault, fault.target)
        if role in self._frozen:  # the only one of its kind, and it is frozen: a worker instead
            role = self._at_work(fault, "worker")
        pid = self.order("signal", role, signal.SIGSTOP)
        self._count("freeze", role)
        self.done["freeze past the visibility"] += fault.seconds > SECONDS
        harm = self._frozen[role] = Harm("freeze", role, pid, time.time(), 0.0)
        self._after(fault, partial(self._thaw, harm))

    def _kill(self, fault: Fault) -> None:
        role = self._at_work(fault, fault.target)
        self._count("kill", role)
        if role in self._frozen:
            self.done["kill of a frozen one"] += 1
            self._is_over(self._frozen.pop(role))
        pid = self.order("kill", role)
        if pid is not None:  # else it had ended by itself, and the nursery knows
            self._is_over(Harm("kill", role, pid, time.time(), 0.0))

    def _thaw(self, harm: Harm) -> None:
        if self._frozen.get(harm.role) == harm:  # else it was killed meanwhile
            del self._frozen[harm.role]
            self.order("signal", harm.role, signal.SIGCONT)
            self._is_over(harm)

    def _go_on(self, harm: Harm) -> None:
        self._stalls -= 1
        if not self._stalls:
            os.kill(self.server, signal.SIGCONT)
        self._is_over(harm)

    def _is_over(self, harm: Harm) -> None:
        self.harms.append(replace(harm, ended_at=time.time()))

    def _count(self, what: str, role: str) -> None:
        self.done[what] += 1
        self.done[f"{what} with work in hand"] += self.hands.has_work(role)
        self.done[f"{what} in the middle of a task"] += self.hands.runs_task(role)
        self.done[f"{what} of a {role.partition('-')[0]}"] += 1

    def _at_work(self, fault: Fault, kind: str) -> str:
        """Return one of the kind, after a while in which it may have got work, or begun a task.

        The clock stands still while the last faults look for whom to hit: they are to be over
        together.
        """
        wants_task = fault.is_last and kind == "worker"
        is_busy = self.hands.runs_task if wants_task else self.hands.has_work
        until = time.time() + (TASK_SECONDS if wants_task else LOOKING_SECONDS)
        role = self._chosen(kind, is_busy)
        while not is_busy(role) and (now := time.time()) < until:
            self._pass_until(now + 0.01)
            if fault.is_last:
                self.clock.put_off(time.time() - now)
            role = self._chosen(kind, is_busy)
        return role

    def _chosen(self, kind: str, is_busy: Callable[[str], bool]) -> str:
        """Return one that is busy if there is one, not frozen if there is one."""
        roles = [role for role in self.roles if role.partition("-")[0] == kind]
        self.draw.shuffle(roles)
        return max(roles, key=lambda role: (role not in self._frozen, is_busy(role)))
