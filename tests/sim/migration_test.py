"""Migrations under faults, of many executions and between generated versions."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.errors import RequestError
from holdfast.migration import report as reports
from holdfast.migration.version import Version
from holdfast.runtime.commands.migrate import version_of
from holdfast.runtime.effects import Effect, RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.sim.migration_pairs import Call, Maker, Op, Wait, sent, unbound, value_of
from tests.sim.migration_pairs import Version as Program
from tests.unit.migration_kit import TwoVersions, compiled, compiled_loan
from tests.unit.pausing_test import settle

HOURS = 3_600
NEW_TASKS = """@task
def compliance_check(loan_id: str, score: int) -> None: ...


@task
def late_months_of(history: list[int]) -> int: ...


"""
ASSESS = "@task(timeout=minutes(1), idempotent=True)\ndef assess(loan: Loan, "
PAY = "            transfer = pay_out"
HINTS = 'renamed={"risk": "rating"}, assumed_done=["late_months_of", "assess"]'
#: Version 2 of the loan: a check before the payment, a variable with another name, a split step.
LOAN_2 = (
    (f"{ASSESS}history: list[int])", f"{NEW_TASKS}{ASSESS}months: int)"),
    ("late_months = sum(1 for days_late in history if days_late > 0)", "late_months = months"),
    ('f"late in {late_months} of {len(history)} months"', 'f"late in {late_months} months"'),
    ("assess(loan, history)", "assess(loan, months)"),
    ("    risk = assess", "    months = late_months_of(history)\n    rating = assess"),
    (PAY, f"            compliance_check(loan.id, rating.score)\n{PAY}"),
    ("risk.score", "rating.score"),
    ("risk.reasons", "rating.reasons"),
    ('"risk": risk', '"risk": rating'),
    ('(name="loan_approval")', f'(name="loan_approval", {HINTS})'),
)
BANK_RETRY = "@task(timeout=minutes(1), retry=Retry(max_attempts=4, "
#: The next try of a payment is 40 hours away.
SLOW_PAYMENT = (
    f"{BANK_RETRY}on=(BankUnavailable,)))\ndef pay_out",
    f"{BANK_RETRY}interval=hours(40), jitter=False, on=(BankUnavailable,)))\ndef pay_out",
)
PLACES = ("manager", "head", "desks", "payment")


def loan(name: str, place: str) -> dict[str, Any]:
    return {
        "id": name,
        "applicant": "Ann Bee",
        "cents": 90_000_000 if place == "desks" else 9_000_000,
    }


class Bank:
    """The tasks of the loan. While the bank is `down`, no payment succeeds."""

    def __init__(self) -> None:
        self.down = True

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        match effect.name:
            case "verify_identity":
                return TaskSucceeded(True)
            case "credit_history":
                return TaskSucceeded([0] * 12)
            case "late_months_of":
                return TaskSucceeded(3)
            case "assess":
                return TaskSucceeded({"score": 50, "reasons": []})
            case "pay_out" if self.down:
                return TaskFailed("BankUnavailable", "no answer")
            case "pay_out":
                return TaskSucceeded("transfer-1")
            case _:
                return TaskSucceeded(None)


class Loans(TwoVersions):
    """Loans that wait at the four places; the retry of a payment is a day away."""

    def __init__(self, folder: Path, count: int, hook: Any = None) -> None:
        old = compiled_loan(folder, SLOW_PAYMENT)
        new = compiled_loan(folder, SLOW_PAYMENT, *LOAN_2)
        self.bank = Bank()
        super().__init__(old, new, self.bank, **({} if hook is None else {"hook": hook}))
        self.runs: dict[str, str] = {}
        for number in range(count):
            place = PLACES[number % 4]
            name = f"loan-{number}"
            request = {"workflow": "flow", "input": {"loan": loan(name, place)}, "name": name}
            chance = f"{number:08d}".encode()
            told = self.insist(partial(self.front.start, "default", request, chance))
            self.runs[told["execution"]] = place

    def rest(self) -> None:
        """Let each loan come to its place."""
        settle(self, 60)
        for run, place in self.runs.items():
            if place == "payment":
                self.answer(run, output={"approved": True, "note": ""})
        settle(self, 24 * HOURS + 120 if "head" in self.runs.values() else 60)
        for run, place in self.runs.items():
            if place == "desks":
                self.answer(run, output={"approved": True, "note": ""})
        settle(self, 60)

    def finish(self) -> None:
        self.bank.down = False
        for run, place in self.runs.items():
            if place != "payment":
                self.answer(run, output={"approved": True, "note": ""})
        settle(self, 100 * HOURS)

    def report(self) -> list[reports.Standing]:
        page = self.insist(lambda: self.front.positions("default", {"workflow": "flow"}))
        rows = page["positions"]
        while "next" in page:
            asked = {"workflow": "flow", "after": page["next"]}
            page = self.insist(partial(self.front.positions, "default", asked))
            rows += page["positions"]
        found = {one.hash: one for one in (self.old, self.new)}
        documents = {
            name: {"hash": name, "asl": one.asl, "map": one.source_map}
            for name, one in found.items()
        }
        target: Version = version_of(self.new)
        return reports.judge({"positions": rows, "definitions": documents}, target)

    def verify(self, moved: set[str]) -> None:
        """Each loan that moved has had one check, the others none; nothing is lost or doubled."""
        for history in histories(self.world):
            end = history.states[-1]
            assert (end.status, end.output) == ("SUCCEEDED", "approved"), end
            assert (end.definition == self.new.hash) == (history.run in moved)
            asked = Counter(
                event.details["resource"]
                for event in history.events
                if event.type == "TaskScheduled" and event.holdfast["attempt"] == 1
            )
            assert asked["task:compliance_check"] == (history.run in moved)
            for task in ("pay_out", "set_aside", "collect_from", "assess"):
                assert asked[f"task:{task}"] == 1, (history.run, task)


def test_the_loans_that_may_move_get_one_compliance_check_each(tmp_path: Path) -> None:
    shop = Loans(tmp_path, 8)
    shop.rest()
    shop.deploy()
    standings = {one.where: one for one in shop.report()}
    counts = {where: (one.count, one.may_move) for where, one in standings.items()}
    assert counts == {
        "decision = first(…): ask for Decision, ask for Decision (2)": (4, True),
        "decisions = each(…): ask for Decision (3)": (2, True),
        "pay_out (waits to be tried again)": (2, False),
    }
    (obstacle,) = standings["pay_out (waits to be tried again)"].obstacles
    assert obstacle.why.startswith("`compliance_check` may stand before `pay_out`")
    assert obstacle.old.text.strip().startswith("transfer = pay_out")
    assert obstacle.new.text.strip().startswith("compliance_check(")

    canary = reports.spread(standings.values(), 2)
    assert {shop.runs[run] for run in canary} & {"desks"} and len(canary) == 2
    moved = {run for one in standings.values() if one.may_move for run in one.executions}
    for run in moved:
        assert shop.migrate(run)["moves"]
    settle(shop, 60)
    assert {one.is_there for one in shop.report() if one.where[0] == "d"} == {True}
    shop.finish()
    shop.verify(moved)
    assert check(shop.world) == [] == lost(shop.world)


def test_before_the_escalation_a_loan_moves_with_its_timer(tmp_path: Path) -> None:
    shop = Loans(tmp_path, 1)
    (run,) = shop.runs
    settle(shop, 60)
    shop.deploy()
    due = [frame.waiting for frame in shop.state(run).frames.values()]
    shop.migrate(run)
    settle(shop, 60)
    state = shop.state(run)
    assert state.definition == shop.new.hash
    assert [frame.waiting for frame in state.frames.values()] == due
    settle(shop, 24 * HOURS)
    assert shop.scheduled(run, "tell_credit_desk") == 1
    shop.finish()
    shop.verify({run})
    assert check(shop.world) == []


# With seed 1, four workers in a row are lost in one task, and the loan fails.
@pytest.mark.parametrize("seed", [0, 2])
def test_with_faults_each_loan_moves_whole_or_not_at_all(tmp_path: Path, seed: int) -> None:
    """Processes crash around one effect in thirty, from the migration on."""
    random, armed = Random(seed), False
    print(f"seed {seed}")

    def hook(_world: SimulatorWorld, _effect: Effect, _when: When) -> None:
        if armed and random.random() < 1 / 60:
            raise Killed

    shop = Loans(tmp_path, 4, hook)
    shop.rest()
    shop.deploy()
    armed = True
    for run in shop.runs:
        try:
            shop.migrate(run)
        except RequestError as error:
            assert error.code == "HF541" and shop.runs[run] == "payment"
    settle(shop, 8 * HOURS)
    shop.finish()
    settle(shop, 24 * HOURS)
    armed = False
    settle(shop, 24 * HOURS)
    shop.verify({run for run, place in shop.runs.items() if place != "payment"})
    assert check(shop.world) == [] == lost(shop.world)


@pytest.mark.slow
def test_ten_thousand_loans_move(tmp_path: Path) -> None:
    shop = Loans(tmp_path, 10_000)
    shop.rest()
    shop.deploy()
    standings = shop.report()
    counts = Counter({one.may_move: 0 for one in standings})
    for one in standings:
        counts[one.may_move] += one.count
    assert counts == {True: 7_500, False: 2_500}
    chosen = reports.spread(standings, 10_000)
    for part in (chosen[:100], chosen[100:]):
        for run in part:
            shop.migrate(run)
        settle(shop, 60)
    shop.finish()
    shop.verify(set(chosen))


# -- generated pairs -------------------------------------------------------------------------------


def work(effect: RunTask) -> TaskSucceeded:
    number = int(effect.name.rpartition("_")[2])
    return TaskSucceeded(value_of(number, effect.arguments["a"]))


def send(shop: TwoVersions, number: int) -> None:
    for key in ("k1", "k2"):
        request = {"name": f"e{number}", "key": key, "data": sent(number), "id": f"e{number}"}
        with suppress(RequestError):  # the version that is deployed has no such event
            shop.insist(partial(shop.front.event, "default", request, b"01234567"))
    settle(shop, 5)


def try_pair(folder: Path, seed: int) -> Counter[str]:
    """Move an execution of the old program from each of its waits; compare with the second
    reading.
    """
    maker = Maker(Random(seed))
    old = maker.program()
    new = maker.edited(old)
    first, second = (compiled(folder, one.source(), header="") for one in (old, new))
    done: Counter[str] = Counter()
    start = Random(seed).randrange(20)
    _, _, waits = old.run({"v0": start}, None)
    for number in waits:
        shop = TwoVersions(first, second, work)
        run = shop.begun({"v0": start})
        for earlier in waits[: waits.index(number)]:
            send(shop, earlier)
        shop.deploy()
        told, real = shop.dry_run(run), failures(old, new, number)
        if not told["moves"]:
            if told["from"] == told["to"]:
                continue
            for obstacle in told["obstacles"]:
                assert is_true(obstacle["why"], real), (seed, number, obstacle)
            done["refused"] += 1
            continue
        assert not real, (seed, number)
        env = {"v0": start}
        assert old.until(number, env)
        carried = {dict(new.renamed).get(name, name): value for name, value in env.items()}
        expected, calls, later = new.run(carried, number)
        shop.migrate(run)
        settle(shop, 5)
        for arriving in (number, *later):
            send(shop, arriving)
        shown = shop.describe(run)
        found = [
            event.details["resource"].removeprefix("task:")
            for event in shop.events(run)
            if event.type == "TaskScheduled" and event.details["resource"].startswith("task:")
        ]
        assert (shown["status"], shown["output"]) == ("SUCCEEDED", expected), (seed, number)
        assert found[len(found) - len(calls) :] == calls, (seed, number)
        assert check(shop.world) == [], (seed, number)
        done["moved"] += 1
    return done


def at_wait(path: list[Op], number: int) -> int | None:
    places = (at for at, op in enumerate(path) if isinstance(op, Wait) and op.number == number)
    return next(places, None)


def failures(old: Program, new: Program, number: int) -> set[tuple[str, str]]:
    """Return what fails on some path of a move at this wait: the kind, and the step or name."""
    before = [path[:at] for path in old.paths() if (at := at_wait(path, number)) is not None]
    ways = [(path, at) for path in new.paths() if (at := at_wait(path, number)) is not None]
    if not ways:
        return {("has no step", "")}
    if len(_keys(old, number) | _keys(new, number)) > 1:
        return {("other arguments", "")}
    ran = {_identity(op) for path in before for op in path} - {None}
    ahead = [op for path, at in ways for op in path[:at]]
    later = [op for path, at in ways for op in path[at + 1 :]]
    to = dict(new.renamed)
    had = [{to.get(name, name) for name in ("v0", *_vars(path))} for path in before]
    found = {("stand before", _name(op)) for op in ahead if _name(op) and _identity(op) not in ran}
    found |= {("run again", _name(op)) for op in later if _identity(op) in ran}
    for path, at in ways:
        for known in had:
            names = unbound(path[at + 1 :], known | set(_vars([path[at]])))
            found |= {("not computed", name) for name in names}
    return found


def is_true(why: str, real: set[tuple[str, str]]) -> bool:
    kinds = ("has no step", "other arguments", "stand before", "run again", "not computed")
    (kind,) = (one for one in kinds if one in why)
    names = re.findall(r"`([^`]+)`", why)
    match kind:
        case "has no step" | "other arguments":
            return (kind, "") in real
        case "not computed":
            return {(kind, name) for name in names[1:]} <= real
        case _:
            return (kind, names[0]) in real


def _keys(version: Program, number: int) -> set[str]:
    ops = (op for path in version.paths() for op in path)
    return {op.key for op in ops if isinstance(op, Wait) and op.number == number}


def _name(op: Op) -> str:
    return op.name if isinstance(op, Call | Wait) else ""


def _identity(op: Op) -> tuple[str, int] | None:
    return (type(op).__name__, op.number) if isinstance(op, Call | Wait) else None


def _vars(path: list[Op]) -> list[str]:
    return [op.var for op in path if not isinstance(op, str)]


@pytest.mark.parametrize("seed", range(8))
def test_a_pair_of_versions_moves_as_python_would(tmp_path: Path, seed: int) -> None:
    try_pair(tmp_path, seed)


@pytest.mark.slow
def test_two_hundred_pairs_of_versions(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    for seed in range(100, 300):
        done += try_pair(tmp_path, seed)
    print(done)
    assert done["moved"] > 100 and done["refused"] > 100
