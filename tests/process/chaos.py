"""When which process is killed, frozen or kept waiting: drawn from a seed, carried out in time."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Literal

from tests.process.pace import SECONDS

Kind = Literal["kill", "freeze", "stall"]
Order = Callable[..., Any]

FREEZE_SECONDS: Final = (2.0, 30.0)  # past a visibility of ten seconds, and not
STALL_SECONDS: Final = (0.5, 9.0)  # past the five seconds that a client waits for an answer
SHARE_MAX: Final = 0.4  # of the whole time, for one freeze or stall: a short run has short ones
#: A kill waits so long for a process that has something in hand.
LOOKING_SECONDS: Final = 0.4
LAG_SECONDS: Final = 20.0
#: Of ten faults so many hit a process of this kind.
WEIGHTS: Final = {"worker": 7, "single": 1, "sweeper": 1, "caller": 1}


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    at_seconds: float
    kind: Kind
    target: str
    seconds: float = 0.0


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
    faults: list[Fault] = []

    def add(number: int, kind: Kind, shortest: float, longest: float) -> None:
        for _ in range(number):
            seconds = min(draw.uniform(shortest, longest), wanted.seconds * SHARE_MAX)
            at_seconds = draw.uniform(0, wanted.seconds - seconds)
            faults.append(Fault(at_seconds, kind, draw.choice(kinds), seconds))

    add(wanted.kills, "kill", 0, 0)
    add(wanted.freezes, "freeze", *FREEZE_SECONDS)
    add(wanted.stalls, "stall", *STALL_SECONDS)
    return sorted(faults)


@dataclass
class Chaos:
    """Carries faults out. `order` speaks to the nursery; `hands` shows who has work in hand."""

    order: Order
    roles: tuple[str, ...]
    hands: mmap.mmap
    server: int
    draw: random.Random
    is_behind: Callable[[float], bool]
    """Whether callers have yet to do what was planned for before that time."""
    done: Counter[str] = field(default_factory=Counter)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _frozen: dict[str, int] = field(default_factory=dict)
    _stalls: int = 0

    def run(self, faults: list[Fault], begun_at: float) -> float:
        """-> when the last fault was over.

        On a busy machine callers fall behind, and the faults are put off with them: or the last
        executions would be begun after the last fault.
        """
        put_off = 0.0
        for fault in faults:
            self._pass_until(begun_at + put_off + fault.at_seconds)
            while self.is_behind(fault.at_seconds - LAG_SECONDS):
                self._pass_until(time.time() + LOOKING_SECONDS)
                put_off += LOOKING_SECONDS
            self._begin(fault)
        while self._due:
            self._pass_until(self._due[0][0])
        self.done["seconds that faults were put off"] = round(put_off)
        return time.time()

    def _pass_until(self, moment: float) -> None:
        """Lets time pass; what was frozen meanwhile thaws when its time has come."""
        while self._due and self._due[0][0] <= moment:
            at, _, happen = heappop(self._due)
            time.sleep(max(0.0, at - time.time()))
            happen()
        time.sleep(max(0.0, moment - time.time()))

    def _at(self, moment: float, happen: Callable[[], None]) -> None:
        heappush(self._due, (moment, next(self._numbers), happen))

    def _begin(self, fault: Fault) -> None:
        match fault.kind:
            case "kill":
                self._kill(fault.target)
            case "freeze":
                self._freeze(fault)
            case "stall":
                self.done["stall"] += 1
                self._stalls += 1
                os.kill(self.server, signal.SIGSTOP)
                self._at(time.time() + fault.seconds, self._go_on)

    def _freeze(self, fault: Fault) -> None:
        role = self._chosen(fault.target)
        if role in self._frozen:  # the only one of its kind, and it is frozen: a worker instead
            role = self._chosen("worker")
        pid = self.order("signal", role, signal.SIGSTOP)
        self._count("freeze", role)
        self.done["freeze past the visibility"] += fault.seconds > SECONDS
        self._frozen[role] = pid
        self._at(time.time() + fault.seconds, partial(self._thaw, role, pid))

    def _kill(self, kind: str) -> None:
        until = time.monotonic() + LOOKING_SECONDS
        role = self._chosen(kind)
        while not self._has_work(role) and time.monotonic() < until:
            time.sleep(0.01)
            role = self._chosen(kind)
        self._count("kill", role)
        if role in self._frozen:
            self.done["kill of a frozen one"] += 1
            del self._frozen[role]
        self.order("kill", role)
        self.hands[self.roles.index(role)] = 0

    def _thaw(self, role: str, pid: int) -> None:
        if self._frozen.get(role) == pid:  # else it was killed meanwhile
            del self._frozen[role]
            self.order("signal", role, signal.SIGCONT)

    def _go_on(self) -> None:
        self._stalls -= 1
        if not self._stalls:
            os.kill(self.server, signal.SIGCONT)

    def _count(self, what: str, role: str) -> None:
        self.done[what] += 1
        self.done[f"{what} with work in hand"] += self._has_work(role)
        self.done[f"{what} of a {role.partition('-')[0]}"] += 1

    def _has_work(self, role: str) -> bool:
        return bool(self.hands[self.roles.index(role)])

    def _chosen(self, kind: str) -> str:
        """-> one of the kind: with work in hand if there is one, not frozen if there is one."""
        roles = [role for role in self.roles if role.partition("-")[0] == kind]
        self.draw.shuffle(roles)
        return max(roles, key=lambda r: (r not in self._frozen, self._has_work(r)))
