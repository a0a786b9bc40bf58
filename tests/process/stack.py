"""The processes of a trial: the cloud, the nursery, and by it workers, sweeper and callers."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.runtime.effects import Item
from tests.process import roles
from tests.process.clock import Clock
from tests.process.evidence import Evidence, evidence_of
from tests.process.hands import Hands
from tests.process.ledger import Begun
from tests.process.nursery import Body, Nursery, fork
from tests.process.plan import Planned, calls_of, make_plan
from tests.process.roles import Answer
from tests.process.server import ITEMS_PATH, serve
from tests.process.site import Site


@dataclass(frozen=True, slots=True)
class Options:
    kills: int
    freezes: int
    stalls: int
    executions: int
    seed: int
    seconds: float
    workers: int
    singles: int
    callers: int
    redrives: int


@dataclass(frozen=True, slots=True)
class Stack:
    """The processes of a trial. `order` speaks to the nursery."""

    options: Options
    plan: list[Planned]
    clock: Clock
    site: Site
    url: str
    server: int
    roles: tuple[str, ...]
    hands: Hands
    orders: Any

    def order(self, verb: str, role: str, *rest: Any) -> Any:
        self.orders.send((verb, role, *rest))
        return self.orders.recv()

    def asked(self, path: str) -> dict[str, Any]:
        """Return the facts of the cloud that AWS would not report."""
        with urllib.request.urlopen(self.url + path) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def items(self, table: str) -> list[Item]:
        with urllib.request.urlopen(f"{self.url}{ITEMS_PATH}{table}") as answer:
            found: list[Item] = pickle.load(answer)
        return found

    def answers(self) -> list[Answer]:
        """Return the answers that callers have got so far."""
        numbers = range(self.options.callers)
        return [answer for number in numbers for answer in roles.answers(self.site, number)]

    def ledger(self) -> list[Begun]:
        path = self.site.ledger
        return [Begun.of(line) for line in path.read_text().splitlines()] if path.exists() else []

    def look(self) -> tuple[list[Item], Evidence]:
        """Return all records, and the state of the logs and inboxes."""
        executions = self.items(self.site.names.executions_table)
        return executions, evidence_of(executions, self.items(self.site.names.mail_table))

    def of_kind(self, *kinds: str) -> list[str]:
        return [role for role in self.roles if role.partition("-")[0] in kinds]


@contextmanager
def raised(options: Options, folder: Path) -> Iterator[Stack]:
    """Run a stack whose processes are all up. All of them have ended at its exit."""
    plan = make_plan(options.executions, options.seconds, options.seed)
    ready, readily = multiprocessing.Pipe(duplex=False)
    server = fork(partial(serve, readily), folder / "server.log")
    readily.close()
    try:
        url, environment = ready.recv()
        site = Site.at(url, environment, folder)
        names = _roles(options)
        hands = Hands(names)
        ours, theirs = multiprocessing.Pipe()
        clock = Clock(time.time() + 1)
        nursery = fork(
            partial(_nurse, ours, theirs, partial(_bodies, site, hands, options, plan, clock)),
            folder / "nursery.log",
        )
        theirs.close()
        stack = Stack(options, plan, clock, site, url, server, names, hands, ours)
        for role in names:
            stack.order("up", role)
        try:
            yield stack
        finally:
            ours.send(("quit", ""))
            os.waitpid(nursery, 0)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def _roles(options: Options) -> tuple[str, ...]:
    counts = {"worker": options.workers, "single": options.singles, "caller": options.callers}
    counts["starter"] = max(1, options.workers // 2)
    return (*(f"{kind}-{n}" for kind, count in counts.items() for n in range(count)), "sweeper")


def _nurse(ours: Any, theirs: Any, make_bodies: Any) -> None:
    ours.close()
    Nursery(*make_bodies()).serve(theirs)


def _bodies(
    site: Site, hands: Hands, options: Options, plan: list[Planned], clock: Clock
) -> tuple[dict[str, Body], Path]:
    """Made in the nursery itself, which is the parent that they look out for."""
    bodies: dict[str, Body] = {}
    for role in _roles(options):
        post = roles.Post(site, hands, role, os.getpid())
        kind, _, number = role.partition("-")
        match kind:
            case "worker":
                bodies[role] = partial(roles.work, post, "work", 10)
            case "starter":
                bodies[role] = partial(roles.work, post, "starts", 10)
            case "single":
                bodies[role] = partial(roles.work, post, "single", 1)
            case "sweeper":
                bodies[role] = partial(roles.sweep, post)
            case _:
                # In turn: two callers may start one execution, and know nothing of each other.
                share = calls_of(plan)[int(number) :: options.callers]
                bodies[role] = partial(roles.call, post, share, int(number), clock)
    return bodies, site.folder
