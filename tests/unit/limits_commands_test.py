"""The operators' view of limits, and their changes: over HTTP, and from the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl

import pytest

from holdfast import cli
from holdfast.remote import client
from holdfast.remote.connecting import Api
from holdfast.runtime.effects import Delete, Put
from holdfast.runtime.gates import operate
from holdfast.runtime.gates.rules import LimitBook, LimitRule, LimitUse
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator.flow import KEYS, START_MS, FlowWorld, Work, machine
from tests.builders import Shop
from tests.unit.host_kit import Site

BANK = LimitRule("bank", interval_us=500_000, burst=2)
LEDGER = LimitRule("ledger", concurrency=2)
EACH = LimitRule("customer", concurrency=1)
USES = {
    "task0": (LimitUse(BANK),),
    "task1": (LimitUse(LEDGER), LimitUse(EACH, key="customer")),
}
WHY = {"reason": "the bank asked for it", "by": "kim"}
PAUSE = {"paused": True, "reason": "outage", "by": "kim"}


@dataclass
class LimitedStack:
    """Executions of tasks with limits, on virtual time, behind the functions of a stack."""

    world: FlowWorld
    site: Site

    def run(self, *works: Work, seconds: float) -> list[str]:
        for number, work in enumerate(works):
            self.world.start(work, f"o{number}")
        self.world.run(self.world.now_ms + int(seconds * 1_000))
        assert self.world.errors == []
        return list(self.world.works)

    def get(self, path: str) -> Any:
        target, _, query = path.partition("?")
        status, body = self.site.request("GET", target, query=dict(parse_qsl(query)))
        assert status == 200, body
        return body

    def post(self, path: str, body: Any) -> Any:
        status, answer = self.site.request("POST", path, body)
        assert status == 200, answer
        self.world._poll()  # a message may have been sent
        return answer

    def refusal(self, path: str, body: Any) -> tuple[int, str, str]:
        status, answer = self.site.request("POST", path, body)
        return status, answer["error"]["code"], answer["error"]["help"]

    def waiting(self) -> list[Any]:
        """Return what `show` says of each execution that waits for a limit."""
        shown = [self.get(f"/executions/{run}") for run in self.world.open_runs()]
        waits = [wait for one in shown for wait in one["waits"]]
        return [wait for wait in waits if wait["kind"] == "limit"]


def stack(*tasks: str, running: tuple[LimitUse, ...] = ()) -> LimitedStack:
    world = FlowWorld(USES, machine(tasks or ("task0",), 20), seed=1, running=running)
    setting = WorkerConfig(world.programs, lambda *_: True, lambda: KEYS)
    front = replace(world.front, limit_book=world.book)
    shop = SimpleNamespace(world=_Stopped(world, setting), front=front)
    return LimitedStack(world, Site(cast(Shop, shop)))


@dataclass
class _Stopped:
    world: FlowWorld
    setting: WorkerConfig

    @property
    def services(self) -> Any:
        return self.world.services


@pytest.fixture
def limited() -> LimitedStack:
    return stack()


# -- what is seen ----------------------------------------------------------------------------------


def test_a_limit_that_nothing_uses_shows_its_values(limited: LimitedStack) -> None:
    assert limited.get("/limits") == {
        "limits": [
            {"name": "bank", "rate": 2.0, "burst": 2, "waiting": 0},
            {"name": "customer", "concurrency": 1, "key": "customer"},
            {"name": "ledger", "concurrency": 2, "waiting": 0, "in_use": 0},
        ]
    }


def test_a_rate_shows_who_waits_since_when_and_until_when(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 40, seconds=1)
    shown = limited.get("/limits/bank")
    assert 30 <= shown["waiting"] <= 38
    assert shown["seconds"] == -(-shown["waiting"] // 2)
    assert shown["oldest"].startswith("2027-01-15T08:00:00")


def test_a_concurrency_shows_its_permits_in_use_and_no_time() -> None:
    limited = stack("task1")
    works = [Work(0, customer=f"c{number}", seconds=30) for number in range(5)]
    limited.run(*works, seconds=5)
    shown = limited.get("/limits/ledger")
    assert (shown["in_use"], shown["waiting"]) == (2, 3)
    assert "seconds" not in shown


def test_an_execution_says_how_many_are_before_it_and_for_how_long(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 40, seconds=3)
    rows = len(limited.world.stored("~wait#"))
    waits = sorted(limited.waiting(), key=lambda wait: wait["ahead"])
    let_in = len(waits) - rows
    assert [wait["ahead"] for wait in waits] == [*[0] * let_in, *range(rows)]
    assert 0 < let_in < 6  # their messages are on the way
    last = waits[-1]
    assert (last["limit"], last["task"]) == ("bank", "task0")
    assert last["seconds"] == -(-rows // 2)


def test_an_urgent_execution_is_before_the_older_ones(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 20, Work(500, priority=0), seconds=1)
    run = limited.world.open_runs()[-1]
    assert [wait["ahead"] for wait in limited.get(f"/executions/{run}")["waits"]] == [0]


def test_an_execution_that_its_workflow_does_not_let_begin_says_so() -> None:
    limited = stack(running=(LimitUse(LimitRule("onboarding", concurrency=1)),))
    limited.run(*[Work(number * 10, seconds=5) for number in range(4)], seconds=2)
    waits = limited.waiting()
    assert [wait["limit"] for wait in waits] == ["onboarding"] * 3
    assert sorted(wait["ahead"] for wait in waits) == [0, 1, 2]
    shown = limited.get("/limits/onboarding")
    assert (shown["in_use"], shown["waiting"]) == (1, 3)


def test_a_limit_that_the_dependency_has_closed_says_until_when(limited: LimitedStack) -> None:
    limited.run(Work(0, throttled=1), seconds=1)
    shown = limited.get("/limits/bank")
    assert shown["speed"] < 1
    assert shown["closed_until"].startswith("2027-01-15T08:00:02")


# -- what is changed -------------------------------------------------------------------------------


def test_a_change_is_above_the_code_until_it_is_cleared(limited: LimitedStack) -> None:
    shown = limited.post("/limits/bank", {"rate": 0.5, "burst": 4, **WHY})
    assert (shown["rate"], shown["burst"]) == (0.5, 4)
    changed = shown["changed"]
    assert (changed["by"], changed["reason"]) == ("kim", "the bank asked for it")
    assert (changed["rate"], changed["burst"]) == (0.5, 4)
    assert changed["code"] == {"rate": 2.0, "burst": 2}

    shown = limited.post("/limits/bank", {"clear": True, "reason": "over"})
    assert (shown["rate"], shown["burst"]) == (2.0, 2)
    assert "rate" not in shown["changed"]


def test_a_lower_rate_holds_for_those_that_wait_already(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 40, seconds=1)
    limited.post("/limits/bank", {"rate": 0.1, **WHY})
    limited.world.run(limited.world.now_ms + 5_000)
    began = len(limited.world.task_runs)
    limited.world.run(limited.world.now_ms + 60_000)
    assert len(limited.world.task_runs) - began in (5, 6, 7)


def test_a_pause_names_its_operator_and_a_resume_ends_it(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 20, seconds=1)
    limited.post("/limits/bank", PAUSE)
    paused_ms = limited.world.now_ms
    limited.world.run(paused_ms + 10_000)
    began = len(limited.world.task_runs)
    limited.post("/limits/bank", {"rate": 1, "reason": "slower afterwards", "by": "lee"})
    limited.world.run(paused_ms + 60_000)

    assert len(limited.world.task_runs) == began
    for wait in limited.waiting():
        assert wait["paused_by"] == "kim"
        assert wait["paused_since"].startswith("2027-01-15T08:00:0")
    changed = limited.get("/limits/bank")["changed"]
    assert (changed["by"], changed["paused"], changed["rate"]) == ("lee", True, 1.0)

    limited.post("/limits/bank", {"paused": False, "reason": "over"})
    limited.world.run(limited.world.now_ms + 60_000)
    assert limited.world.open_runs() == []


@pytest.mark.parametrize(
    ("name", "body", "helps"),
    [
        ("bank", {}, "send rate, burst, concurrency, paused or clear"),
        ("bank", {"rate": 0}, "a number from 1.15741e-05 to 12800"),
        ("bank", {"rate": "5/s"}, "a number from 1.15741e-05 to 12800"),
        ("bank", {"rate": True}, "a number from 1.15741e-05 to 12800"),
        ("bank", {"rate": 20_000}, "a number from 1.15741e-05 to 12800"),
        ("bank", {"burst": 1.5}, "a whole number from 1 to 12800"),
        ("bank", {"concurrency": 3}, "see `holdfast limits`"),
        ("ledger", {"rate": 3}, "see `holdfast limits`"),
        ("ledger", {"concurrency": 0}, "a number from 1 to 2560"),
        ("ledger", {"paused": "yes"}, "true or false"),
        ("bank", {"clear": True, "rate": 3}, "clear alone, then a second request"),
        ("bank", {"paused": True, "reason": " "}, "say why"),
    ],
)
def test_a_change_that_cannot_be_made_says_what_can(
    limited: LimitedStack, name: str, body: dict[str, Any], helps: str
) -> None:
    status, code, told = limited.refusal(f"/limits/{name}", {"reason": "why", **body})
    assert (status, code) == (400, "HF239")
    assert helps in told
    assert "changed" not in limited.get(f"/limits/{name}")


def test_every_change_is_kept_with_its_author_and_reason(limited: LimitedStack) -> None:
    for number in range(25):
        change = {"rate": number + 1, "reason": f"reason {number}", "by": f"op{number}"}
        limited.post("/limits/bank", change)
    shown = limited.get("/limits/bank")
    assert (shown["changed"]["by"], shown["changed"]["rate"]) == ("op24", 25.0)
    earlier = [(one["by"], one["reason"], round(one["rate"])) for one in shown["changes"]]
    expected = [(f"op{number}", f"reason {number}", number + 1) for number in range(23, 3, -1)]
    assert earlier == expected
    assert "changes" not in limited.get("/limits")["limits"][0]


def test_a_writer_that_crashes_between_its_two_writes_loses_no_change(
    limited: LimitedStack,
) -> None:
    for by in ("ada", "bob"):
        limited.post("/limits/bank", {"rate": 3, "reason": "why", "by": by})
    # The copy of bob's change is written, and the writer is gone.
    crashed = operate.change(BANK, {"interval_us": 7, "reason": "r", "by": "cyd"})
    effect = next(crashed)
    while not isinstance(effect, Put):
        effect = crashed.send(limited.world.services.perform(effect))
    limited.world.services.perform(effect)
    assert [one["by"] for one in limited.get("/limits/bank")["changes"]] == ["bob", "ada"]
    limited.post("/limits/bank", {"rate": 4, "reason": "why", "by": "dan"})
    assert [one["by"] for one in limited.get("/limits/bank")["changes"]] == ["bob", "ada"]


def test_a_limit_that_the_code_no_longer_declares_is_shown_and_can_be_cleared(
    limited: LimitedStack,
) -> None:
    limited.post("/limits/bank", {"rate": 3, "reason": "slow", "by": "kim"})
    later = replace(limited.world.front, limit_book=LimitBook())
    shop = SimpleNamespace(world=limited.site.shop.world, front=later)
    site = Site(cast(Shop, shop))
    [shown] = site.request("GET", "/limits")[1]["limits"]
    assert (shown["name"], shown["declared"], shown["changed"]["by"]) == ("bank", False, "kim")
    assert site.request("POST", "/limits/bank", {"rate": 4, "reason": "no"})[0] == 404
    status, _ = site.request("POST", "/limits/bank", {"clear": True, "reason": "gone"})
    assert status == 200
    assert site.request("GET", "/limits")[1] == {"limits": []}
    assert site.request("POST", "/limits/ledger", {"clear": True, "reason": "gone"})[0] == 404


def test_one_value_of_a_key_shows_its_own_queue() -> None:
    limited = stack("task1")
    works = [Work(0, customer=name, seconds=30) for name in ("ada", "ada", "ada", "bob")]
    limited.run(*works, seconds=5)
    shown = limited.get("/limits/customer?key=ada")
    assert (shown["in_use"], shown["waiting"]) == (1, 2)
    assert limited.site.request("GET", "/limits/ledger", query={"key": "ada"})[0] == 400


def test_a_key_and_the_earlier_changes_are_shown_by_the_command_line(shell: Shell) -> None:
    for rate in ("5/s", "6/s"):
        shell(f"limit set bank --rate {rate} --by kim --reason", "the bank asked")
    shown = shell("limits bank")
    assert "set to 6/s by kim" in shown
    assert "before: set to 5/s by kim just now: the bank asked" in shown
    assert "by customer" not in shell("limits customer --key ada")


def test_a_limit_that_the_code_does_not_know_is_not_found(limited: LimitedStack) -> None:
    known = "declared: bank, customer, ledger"
    assert limited.refusal("/limits/bnak", PAUSE) == (404, "HF238", known)
    assert limited.site.request("GET", "/limits/bnak")[0] == 404


def test_a_tenant_sees_the_limits_and_does_not_change_them(limited: LimitedStack) -> None:
    claims = {"tenant": "acme", "sub": "ann@example.org"}
    status, answer = limited.site.request("POST", "/limits/bank", PAUSE, claims=claims)
    assert (status, answer["error"]["code"]) == (403, "HF252")


# -- the doctor ------------------------------------------------------------------------------------


def lose_messages(limited: LimitedStack) -> None:
    for queue in ("work", "single", "starts"):
        limited.world.services.queue(cast(Any, queue)).messages.clear()


def test_the_doctor_reports_a_queue_that_no_tick_serves_and_repairs_it(
    limited: LimitedStack,
) -> None:
    limited.run(*[Work(0)] * 10, seconds=1)
    lose_messages(limited)
    assert limited.get("/doctor")["findings"] == []
    limited.world.now_ms += 600_000
    found = [one for one in limited.get("/doctor")["findings"] if one["reason"] == "QUEUE_UNSERVED"]
    assert [one["state"] for one in found] == ["0"] * len(limited.waiting())
    limited.post("/doctor", {})
    limited.world.run(limited.world.now_ms + 30_000)
    assert limited.world.open_runs() == []
    assert limited.get("/doctor")["findings"] == []


def test_the_doctor_reports_a_queued_attempt_whose_gate_does_not_know_of_it(
    limited: LimitedStack,
) -> None:
    limited.run(*[Work(0)] * 10, seconds=1)
    lose_messages(limited)
    for item in limited.world.stored("~gate#"):
        limited.world.services.perform(Delete("mail", str(item["pk"]), str(item["sk"])))
    limited.world.now_ms += 600_000
    assert "QUEUE_UNSERVED" in {one["reason"] for one in limited.get("/doctor")["findings"]}


def test_the_doctor_has_nothing_to_say_of_a_queue_that_is_paused(limited: LimitedStack) -> None:
    limited.run(*[Work(0)] * 10, seconds=1)
    limited.post("/limits/bank", PAUSE)
    limited.world.run(limited.world.now_ms + 1_200_000)
    assert limited.waiting()
    assert limited.get("/doctor")["findings"] == []


# -- the command line ------------------------------------------------------------------------------


@dataclass
class Shell:
    capture: pytest.CaptureFixture[str]

    def __call__(self, line: str, *more: str) -> str:
        assert cli.main([*line.split(), *more]) == 0
        return self.capture.readouterr().out


@pytest.fixture
def shell(
    limited: LimitedStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked = dict(parse_qsl(query))
        status, answer = limited.site.request(method, path, json.loads(body or b"{}"), query=asked)
        return status, json.dumps(answer).encode()

    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(client, "connect", lambda *_, **__: Api(carry, "the test"))
    return Shell(capsys)


def test_limits_prints_a_line_for_each_limit(limited: LimitedStack, shell: Shell) -> None:
    limited.run(*[Work(0)] * 40, seconds=1)
    head, bank, customer, ledger = shell("limits").splitlines()
    assert head.split()[:2] == ["limit", "allows"]
    assert bank.split()[:4] == ["bank", "2/s,", "burst", "2"]
    assert "in about " in bank
    assert customer.split()[:5] == ["customer", "1", "at", "once", "by"]
    assert ledger.split() == ["ledger", "2", "at", "once", "0", "0"]
    assert json.loads(shell("limits bank --json"))[0]["name"] == "bank"


def test_limits_prints_until_when_a_limit_is_closed(limited: LimitedStack, shell: Shell) -> None:
    limited.run(Work(0, throttled=1), seconds=1)
    assert "closed until 2027-01-15 08:00:02 UTC" in " ".join(shell("limits bank").split())


def test_limit_set_pause_resume_and_clear(limited: LimitedStack, shell: Shell) -> None:
    why = ("--reason", "the bank asked for it", "--by", "kim")
    assert shell("limit set bank --rate 300/min --burst 10", *why) == "the limit bank is set\n"
    shown = limited.get("/limits/bank")
    assert (shown["rate"], shown["burst"]) == (5.0, 10)
    assert "set to 5/s, burst 10 by kim" in shell("limits")
    assert "set to 5/s, burst 10 by kim" in shell("limits bank")

    assert shell("limit pause bank", *why) == "the limit bank is paused\n"
    assert "paused by kim" in shell("limits bank")
    assert shell("limit resume bank", *why) == "the limit bank is resumed\n"
    told = shell("limit clear bank", *why)
    assert told == "the limit bank has the values of the code again\n"
    assert limited.get("/limits/bank")["rate"] == 2.0


@pytest.mark.parametrize("rate", ["5", "5/day", "fast/s", "nan/s", "-1/s"])
def test_a_rate_is_a_number_and_a_unit(
    shell: Shell, rate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["limit", "set", "bank", f"--rate={rate}", "--reason", "why"])
    assert "write 5/s, 300/min or 1000/h" in capsys.readouterr().err


def test_show_says_what_an_attempt_waits_for(limited: LimitedStack, shell: Shell) -> None:
    limited.run(*[Work(0)] * 40, seconds=1)
    run = limited.world.open_runs()[-1]
    (wait,) = limited.get(f"/executions/{run}")["waits"]
    said = f"limit bank: {wait['ahead']} before it, about {wait['seconds']} s"
    assert said in shell(f"show {run}")
    limited.post("/limits/bank", PAUSE)
    assert "limit bank, paused by kim since " in shell(f"show {run}")


def test_start_takes_a_priority(limited: LimitedStack, shell: Shell) -> None:
    limited.run(*[Work(0)] * 20, seconds=1)
    shell("start flow --name urgent --priority 0")
    limited.world._poll()
    limited.world.run(limited.world.now_ms + 300)
    shown = limited.get("/executions/urgent")
    assert [wait["ahead"] for wait in shown["waits"]] == [0]
    assert limited.world.now_ms > START_MS


def test_a_priority_is_changed_with_a_reason(limited: LimitedStack, shell: Shell) -> None:
    limited.run(*[Work(0)] * 20, seconds=1)
    run = limited.world.open_runs()[-1]
    assert "priority 1" in shell(f"priority {run} 1 --reason sale")
    limited.world._poll()
    limited.world.run(limited.world.now_ms + 300)
    assert [wait["ahead"] for wait in limited.get(f"/executions/{run}")["waits"]] == [0]
    history = limited.get(f"/executions/{run}/history")["events"]
    (changed,) = (event for event in history if event["type"] == "PriorityChanged")
    assert changed["holdfast"]["reason"] == "sale"
    assert changed["holdfast"]["priority"] == 1


def test_a_priority_outside_its_range_and_one_of_an_ended_execution_are_refused(
    limited: LimitedStack,
) -> None:
    (run,) = limited.run(Work(0), seconds=5)
    path = f"/executions/{run}/priority"
    assert limited.refusal(path, {"priority": 10, "reason": "sale"})[:2] == (400, "HF204")
    assert limited.refusal(path, {"priority": 1})[:2] == (400, "HF234")
    assert limited.refusal(path, {"priority": 1, "reason": "sale"})[:2] == (409, "HF237")
