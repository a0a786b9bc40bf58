"""One trial: the stack is built, its processes are killed and frozen, what is left is judged."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import pickle
import random
import signal
import time
import urllib.request
from bisect import bisect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from holdfast.runtime.effects import Item
from tests.process import evidence, redrive, roles
from tests.process.chaos import Chaos, Wanted, draw_faults
from tests.process.nursery import Body, Nursery, fork
from tests.process.plan import Planned, make_plan
from tests.process.server import ITEMS_PATH, JOURNAL_PATH, STATUSES_PATH, serve
from tests.process.site import Site

#: After the last fault everything has to end within this time; then it is waited for a while, to
#: tell what is late from what is lost.
END_SECONDS: Final = 60
PATIENCE_SECONDS: Final = 240
#: Executions begin during this part of the time in which faults happen.
STARTS_SHARE: Final = 0.95


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


@dataclass
class Outcome:
    """`violations`: execution, or what else it concerns, and what is wrong."""

    violations: list[tuple[str, str]] = field(default_factory=list)

    def note(self, figures: Mapping[str, Any]) -> None:
        """A long trial shows what it has as soon as it has it."""
        for what, figure in figures.items():
            print(f"{what}: {figure}", flush=True)

    def fail(self, what: str, text: str) -> None:
        self.violations.append((what, text))


@dataclass(frozen=True, slots=True)
class Stack:
    """The processes of a trial. `order` speaks to the nursery."""

    site: Site
    url: str
    server: int
    roles: tuple[str, ...]
    hands: mmap.mmap
    orders: Any

    def order(self, verb: str, role: str, *rest: Any) -> Any:
        self.orders.send((verb, role, *rest))
        return self.orders.recv()

    def asked(self, path: str) -> dict[str, Any]:
        """-> what the cloud knows beside what AWS would tell."""
        with urllib.request.urlopen(self.url + path) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def items(self, table: str) -> list[Item]:
        with urllib.request.urlopen(f"{self.url}{ITEMS_PATH}{table}") as answer:
            found: list[Item] = pickle.load(answer)
        return found

    def of_kind(self, *kinds: str) -> list[str]:
        return [role for role in self.roles if role.partition("-")[0] in kinds]


def run_trial(options: Options, folder: Path) -> Outcome:
    plan = make_plan(options.executions, options.seconds * STARTS_SHARE, options.seed)
    with _stack(options, plan, folder) as (stack, begun_at):
        outcome = Outcome()
        ended_at = _do_harm(stack, options, plan, begun_at, outcome)
        _wait_for_ends(stack, plan, ended_at)
        _judge(stack, plan, ended_at, outcome)
        _redrive(stack, options, outcome)
        if outcome.violations:
            _keep(stack, outcome, folder)
        return outcome


@contextmanager
def _stack(options: Options, plan: list[Planned], folder: Path) -> Iterator[tuple[Stack, float]]:
    ready, readily = multiprocessing.Pipe(duplex=False)
    server = fork(partial(serve, readily), folder / "server.log")
    readily.close()
    try:
        url, environment = ready.recv()
        site = Site.at(url, environment, folder)
        names = _roles(options)
        hands = mmap.mmap(-1, len(names))
        ours, theirs = multiprocessing.Pipe()
        begun_at = time.time() + 1
        nursery = fork(
            partial(_nurse, ours, theirs, partial(_bodies, site, hands, options, plan, begun_at)),
            folder / "nursery.log",
        )
        theirs.close()
        stack = Stack(site, url, server, names, hands, ours)
        for role in names:
            stack.order("up", role)
        try:
            yield stack, begun_at
        finally:
            ours.send(("quit", ""))
            os.waitpid(nursery, 0)
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def _roles(options: Options) -> tuple[str, ...]:
    counts = {"worker": options.workers, "single": options.singles, "caller": options.callers}
    return (*(f"{kind}-{n}" for kind, count in counts.items() for n in range(count)), "sweeper")


def _nurse(ours: Any, theirs: Any, make_bodies: Any) -> None:
    ours.close()
    Nursery(*make_bodies()).serve(theirs)


def _bodies(
    site: Site, hands: mmap.mmap, options: Options, plan: list[Planned], begun_at: float
) -> tuple[dict[str, Body], Path]:
    """Made in the nursery itself, which is the parent that they look out for."""
    bodies: dict[str, Body] = {}
    for slot, role in enumerate(_roles(options)):
        post = roles.Post(site, hands, slot, os.getpid())
        kind, _, number = role.partition("-")
        match kind:
            case "worker":
                bodies[role] = partial(roles.work, post, "work", 10)
            case "single":
                bodies[role] = partial(roles.work, post, "single", 1)
            case "sweeper":
                bodies[role] = partial(roles.sweep, post)
            case _:
                share = plan[int(number) :: options.callers]
                bodies[role] = partial(roles.call, post, share, int(number), begun_at)
    return bodies, site.folder


# -- the harm --------------------------------------------------------------------------------------


def _do_harm(
    stack: Stack, options: Options, plan: list[Planned], begun_at: float, outcome: Outcome
) -> float:
    wanted = Wanted(options.kills, options.freezes, options.stalls, options.seconds)
    draw = random.Random(f"targets {options.seed}")
    planned = sorted(action.at_seconds for one in plan for action in one.actions)

    def is_behind(moment: float) -> bool:
        paths = [roles.answered_path(stack.site, number) for number in range(options.callers)]
        answered = sum(len(path.read_text().split()) for path in paths if path.exists())
        return answered < bisect(planned, moment)

    chaos = Chaos(stack.order, stack.roles, stack.hands, stack.server, draw, is_behind)
    ended_at = chaos.run(draw_faults(wanted, options.seed), begun_at)
    outcome.note(
        {**dict(sorted(chaos.done.items())), "seconds of faults": round(ended_at - begun_at)}
    )
    return ended_at


def _wait_for_ends(stack: Stack, plan: list[Planned], ended_at: float) -> None:
    """Until every execution and every child has ended; or for a long time."""
    while time.time() < ended_at + PATIENCE_SECONDS:
        statuses = stack.asked(STATUSES_PATH)
        # A child's id is its parent's and more.
        begun = [partition for partition in statuses if "." not in partition]
        if len(begun) >= len(plan) and "RUNNING" not in statuses.values():
            return
        time.sleep(1)


# -- the judgement ---------------------------------------------------------------------------------


def _look(stack: Stack) -> tuple[list[Item], evidence.Evidence]:
    names = stack.site.names
    executions = stack.items(names.executions_table)
    return executions, evidence.evidence_of(executions, stack.items(names.mail_table))


def _ledger(stack: Stack) -> list[str]:
    path = stack.site.ledger
    return path.read_text().splitlines() if path.exists() else []


def _judge(stack: Stack, plan: list[Planned], ended_at: float, outcome: Outcome) -> None:
    journal, ledger = stack.asked(JOURNAL_PATH), _ledger(stack)
    _, found = _look(stack)
    outcome.violations += evidence.violations(found, plan, journal["writers"])
    for attempt in evidence.unasked_tasks(found, ledger):
        outcome.fail(attempt.split()[0], f"attempt {attempt} ran, and no log asked for it")
    late = [(log.ended_at - ended_at, log.run) for log in found.logs.values()]
    for seconds, run in late:
        if seconds > END_SECONDS:
            outcome.fail(run, f"it ended {seconds:.0f} s after the last fault")
    for role in stack.roles:
        status = stack.order("ended", role)
        if status is not None and (status != 0 or not role.startswith("caller")):
            outcome.fail(role, f"ended by itself with status {status}: see {role}.log")
    events = [event for log in found.logs.values() for event in log.events]
    asked_workers = [e for e in events if e.type == "TaskScheduled" and "claim" in e.holdfast]
    outcome.note(
        {
            "executions, with children": len(found.logs),
            "records": sum(len(log.records) for log in found.logs.values()),
            "attempts that a record claims": len(asked_workers),
            "tasks begun": len(ledger),
            "of them begun again": len(ledger) - len(set(ledger)),
            "taken over from a lost worker": sum(
                event.holdfast["takeovers"] > 0 for event in events if event.type == "Claimed"
            ),
            "puts refused to another writer": journal["refused_puts"],
            "dead letters revived": journal["requests"].get("DeleteMessage (dead letter)", 0),
            "requests to the cloud": sum(journal["requests"].values()),
            "of them": dict(sorted(journal["requests"].items())),
            "last end, seconds after the last fault": round(max(late)[0], 1) if late else None,
            "ended after the last fault": sum(seconds > 0 for seconds, _ in late),
            "violations before the redrive": len(outcome.violations),
        }
    )


# -- dead letters, long after ----------------------------------------------------------------------


def _redrive(stack: Stack, options: Options, outcome: Outcome) -> None:
    """I19: what a redrive brings back has no effect on an execution that has ended."""
    queues = redrive.Queues.of(stack.site)
    if not queues.settle():
        outcome.fail("queues", f"they hold messages {redrive.SETTLE_SECONDS} s after all ends")
    bodies = stack.asked(JOURNAL_PATH)["messages"][: options.redrives]
    if not bodies:
        return
    before, ran_before = redrive.digests(_look(stack)[0]), len(_ledger(stack))
    servants = stack.of_kind("worker", "single", "sweeper")
    for role in servants:
        stack.order("down", role)
    dead = redrive.let_die(queues, bodies)
    by_hand = redrive.move_back(queues, dead // 2)
    for role in servants:
        stack.order("up", role)
    if not queues.settle():
        outcome.fail("queues", "redriven messages do not come to rest")
    executions, found = _look(stack)
    after = redrive.digests(executions)
    for key in sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k)):
        outcome.fail(key.split()[0].partition("#")[2], f"a redrive changed record {key}")
    if len(_ledger(stack)) != ran_before:
        outcome.fail("ledger", "a redrive ran tasks of executions that had ended")
    for run in evidence.stale_entries(found):
        outcome.fail(run, "it has ended and is still listed as RUNNING")
    for run in found.quarantined:
        outcome.fail(run, "a redriven message was quarantined")
    outcome.note(
        {
            "old messages that became dead letters": dead,
            "of them moved back by hand": by_hand,
            "of them revived by the sweeper": dead - by_hand,
        }
    )


def _keep(stack: Stack, outcome: Outcome, folder: Path) -> None:
    """Leaves the whole log of each execution that a violation names."""
    _, found = _look(stack)
    for what, _ in outcome.violations:
        log = found.logs.get(found.names.get(what, what))
        if log is not None:
            lines = [
                f"{record.sequence} {record.at_ms} {record.nonce} {record.message} {event}"
                for record in log.records
                for event in record.events
            ]
            (folder / f"log-{log.run}").write_text("\n".join(lines))
    lines = [f"{what}: {text}" for what, text in outcome.violations]
    (folder / "violations").write_text("\n".join(lines))
