"""Bulk operations: a command for each execution that a filter selects, over HTTP and by command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from holdfast import cli
from holdfast.cli import bulk as bulk_command
from holdfast.remote import client
from holdfast.remote.answers import Filters
from holdfast.remote.client import Client
from holdfast.remote.connecting import Api
from holdfast.runtime.effects import (
    Effect,
    Put,
    PutIfAbsent,
    RunTask,
    Send,
    TaskFailed,
    TaskSucceeded,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.worker import bulk_pages
from holdfast_simulator.world import Killed, SimulatorWorld, When, no_faults
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.unit.child_kit import Family, call_of
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded
from tests.unit.host_kit import Site
from tests.unit.pausing_test import settle

WORDS = {"reason": "the bank is back", "by": "kim"}
KEY = {"event": "paid", "key": "{% $states.input.key %}"}
ORDER = machine(
    {
        "paid": wait_for("paid", "charge", Arguments=KEY),
        "charge": call("charge", "ship"),
        "ship": call("ship"),
    }
)
PAYS = machine({"charge": call("charge", "ship"), "ship": call("ship")})


class Stack:
    """Executions of one definition, and the API in front of them. The bank is down at first."""

    def __init__(self, definition: Machine, executions: int = 3) -> None:
        self.shop = Shop(definition, self.work)
        self.site = Site(self.shop)
        self.is_down = True
        self.runs = [self.start(f"o{number}") for number in range(executions)]

    def work(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        if self.is_down and effect.name == "charge":
            return TaskFailed("BankDown", "no answer")
        return TaskSucceeded(effect.name)

    def start(self, name: str) -> str:
        body = {"workflow": "flow", "input": {"key": name}, "name": name}
        status, told = self.site.request("POST", "/executions", body)
        assert status == 201
        settle(self.shop)
        return str(told["execution"])

    def bulk(self, operation: str, *, seconds: int = 30, **more: Any) -> Any:
        """Run a bulk operation; return its description."""
        run = self.post({"operation": operation, **WORDS, **more})["execution"]
        settle(self.shop, seconds)
        return self.shop.describe(run)

    def post(self, body: Any, path: str = "/bulk") -> Any:
        status, told = self.site.request("POST", path, body)
        assert status == 200, told
        return told

    def refusal(self, **body: Any) -> tuple[int, str]:
        status, told = self.site.request("POST", "/bulk", body)
        return status, told["error"]["code"]

    def statuses(self) -> list[str]:
        return [self.shop.describe(run)["status"] for run in self.runs]

    def outcomes(self, run: str) -> dict[str, str]:
        events = self.shop.insist(lambda: self.shop.front.history("default", run))["events"]
        found: dict[str, str] = {}
        for event in events:
            details = event.get("taskSucceededEventDetails", {})
            if details.get("resource") == "bulk:act":
                found |= json.loads(details["output"])["outcomes"]
        return found


@pytest.fixture
def waiting() -> Stack:
    return Stack(ORDER)


@pytest.fixture
def failed() -> Stack:
    return Stack(PAYS)


FLOW = {"workflow": "flow"}
DONE = {"done": 3, "refused": 0}


# -- the operations --------------------------------------------------------------------------------


def test_a_retry_lets_the_failed_go_on(failed: Stack) -> None:
    failed.is_down = False
    told = failed.bulk("retry", filters={"error": "BankDown"})
    assert (told["output"], failed.statuses()) == (DONE, ["SUCCEEDED"] * 3)
    (redriven,) = (
        event
        for event in failed.shop.history(failed.runs[0]).events
        if event.type == "ExecutionRedriven"
    )
    assert (redriven.holdfast["reason"], redriven.holdfast["by"]) == ("the bank is back", "kim")


def test_a_pause_holds_and_a_resume_releases(waiting: Stack) -> None:
    told = waiting.bulk("pause", filters=FLOW, fields={"timers": "run"})
    assert told["output"] == DONE
    paused = waiting.shop.describe(waiting.runs[0])["paused"]
    assert (paused["reason"], paused["by"], paused["timers"]) == (*WORDS.values(), "run")
    assert waiting.bulk("resume", filters={"paused": "true"})["output"] == DONE
    assert "paused" not in waiting.shop.describe(waiting.runs[0])


def test_a_stop_ends_the_running_with_the_reason_as_cause(waiting: Stack) -> None:
    assert waiting.bulk("stop", filters=FLOW, fields={"now": True})["output"] == DONE
    shown = waiting.shop.describe(waiting.runs[0])
    assert (shown["status"], shown["cause"]) == ("ABORTED", "the bank is back")


def test_a_skip_gives_the_step_of_each_its_result(failed: Stack) -> None:
    told = failed.bulk("skip", filters=FLOW, fields={"step": "charge", "result": 7})
    assert (told["output"], failed.statuses()) == (DONE, ["SUCCEEDED"] * 3)


def test_a_fork_starts_one_copy_of_each(failed: Stack) -> None:
    failed.is_down = False
    told = failed.bulk("fork", filters=FLOW, fields={"step": "charge"})
    assert told["output"] == DONE
    (row,) = failed.shop.insist(
        lambda: failed.shop.front.describe("default", failed.runs[0], with_forks=True)
    )["forks"]
    assert failed.shop.describe(row)["status"] == "SUCCEEDED"
    assert failed.statuses() == ["FAILED"] * 3


def test_an_event_reaches_each_with_the_key_that_it_waits_with(waiting: Stack) -> None:
    waiting.is_down = False
    fields = {"name": "paid", "data": {"cents": 5}}
    told = waiting.bulk("event", filters={"waiting_for": "event:paid"}, fields=fields)
    assert (told["output"], waiting.statuses()) == (DONE, ["SUCCEEDED"] * 3)


def test_executions_that_wait_with_one_key_get_the_event_once_each() -> None:
    again = {"event": "paid", "key": "all"}
    twice = {
        "one": wait_for("paid", "two", Arguments=again),
        "two": wait_for("paid", Arguments=again),
    }
    stack = Stack(machine(twice), 2)
    fields = {"name": "paid", "data": 1}
    assert stack.bulk("event", filters=FLOW, fields=fields)["output"]["done"] == 2
    assert [stack.shop.describe(run)["waits"][0]["state"] for run in stack.runs] == ["two", "two"]


def test_after_a_crash_an_execution_that_has_used_its_event_gets_no_second_one() -> None:
    """The worker of the bulk crashes when its event has reached the execution, which then waits
    for the same event with another key.
    """
    first, second = ({"event": "paid", "key": key} for key in "ab")
    twice = {"one": wait_for("paid", "two", Arguments=first)}
    stack = Stack(machine(twice | {"two": wait_for("paid", Arguments=second)}), 1)
    settle(stack.shop, 5)

    def crash(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if (
            when == "after"
            and isinstance(effect, Send)
            and any(message.body["k"] == "wake.mail" for message in effect.messages)
        ):
            world.hook = no_faults
            raise Killed

    run = stack.post(
        {
            "operation": "event",
            "filters": FLOW,
            "fields": {"name": "paid", "data": 1},
            **WORDS,
        }
    )["execution"]
    stack.shop.world.hook = crash
    settle(stack.shop, 600)
    assert stack.shop.world.hook is no_faults
    assert stack.shop.describe(run)["output"] == {"done": 1, "refused": 0}
    (wait,) = stack.shop.describe(stack.runs[0])["waits"]
    assert wait["state"] == "two"


@pytest.mark.parametrize("operation", ["retry", "stop", "pause", "fork", "skip"])
def test_a_command_that_is_given_again_later_has_the_same_id(operation: str) -> None:
    """The worker crashes before it stores the control message, or when it has stored the fork."""
    stack = Stack(ORDER if operation in {"stop", "pause"} else PAYS, 1)
    settle(stack.shop, 5)

    def crash(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == crash_when and isinstance(effect, Put | PutIfAbsent) and is_command(effect.item):
            world.hook = no_faults
            raise Killed

    def is_command(item: Any) -> bool:
        return str(item["sk"]).startswith((keys.CONTROL_PREFIX, keys.FORK_PREFIX))

    crash_when = "after" if operation == "fork" else "before"
    fields = {"step": "charge"} if operation in {"fork", "skip"} else {}
    asked = {"operation": operation, "filters": FLOW, "fields": fields, **WORDS}
    told = stack.post(asked)["execution"]
    stack.shop.world.hook, sent_ms = crash, stack.shop.world.now_ms
    settle(stack.shop, 600)
    assert stack.shop.world.hook is no_faults
    assert stack.shop.describe(told)["output"] == {"done": 1, "refused": 0}
    items = stack.shop.world.services.items(tables.MAIL)
    (command,) = (item for item in items if is_command(item))
    if operation == "fork":  # the sweeper reads the row of the start where the present time is
        fork = str(command["sk"]).removeprefix(keys.FORK_PREFIX)
        (row,) = (one for one in items if "~start" in str(one["pk"]) and one["run"] == fork)
        assert int(str(row["sk"])[:15]) > sent_ms + 60_000


def test_events_that_start_keyed_executions_start_one_for_each_key(tmp_path: Path) -> None:
    source = """
from holdfast import days, sleep, wait_for_event, workflow

@workflow
def shelf(key: str) -> int:
    return wait_for_event("asked", int, key=key)

@workflow(key="key", starts_on="asked")
def asked(key: str) -> str:
    wait_for_event("asked", int, key=key)
    sleep(days(1))
    return key
"""
    with loaded(tmp_path, source) as module:
        stack = MemoryStack(module.__name__)
        client = Client.of(stack.api)
        for key in ("a", "b"):
            client.start("shelf", {"key": key})
        fields: Any = {"name": "asked", "data": 1}
        client.bulk("event", {"workflow": "shelf"}, "r", fields=fields)
        stack.world.run(until_ms=stack.world.now_ms + 10_000)
        found = [client.describe(one["execution"]) for one in client.list(workflow="asked")]
        inputs: list[Any] = [one["input"] for one in found]
        assert sorted(one["key"] for one in inputs) == ["a", "b"]


def test_a_refused_command_is_in_the_report_with_the_reason(waiting: Stack) -> None:
    told = waiting.bulk("event", filters=FLOW, fields={"name": "signed", "data": 1})
    assert told["output"] == {"done": 0, "refused": 3}
    for run, outcome in waiting.outcomes(told["execution"]).items():
        assert outcome == f"HF507: execution {run} does not wait for the event signed"


# -- the selection ---------------------------------------------------------------------------------


def test_a_dry_run_counts_and_changes_nothing(failed: Stack) -> None:
    asked = {"operation": "retry", "filters": FLOW, **WORDS}
    found = failed.post({**asked, "dry_run": True})
    assert (found["matching"], len(found["sample"])) == (3, 3)
    assert failed.post({**asked, "filters": {"name": "o1"}, "dry_run": True})["matching"] == 1
    settle(failed.shop, 60)
    assert failed.statuses() == ["FAILED"] * 3


def test_a_retry_leaves_what_a_person_has_stopped_unless_it_is_asked_for(waiting: Stack) -> None:
    waiting.shop.stop(waiting.runs[0])
    settle(waiting.shop)
    assert waiting.bulk("retry", filters=FLOW)["output"] == {"done": 0, "refused": 0}
    told = waiting.bulk("retry", filters={**FLOW, "status": "ABORTED"})
    assert told["output"] == {"done": 1, "refused": 0}


def test_a_retry_leaves_called_executions_to_their_callers() -> None:
    family = Family(
        {"outer": machine({"call": call_of("inner")}), "inner": PAYS},
        lambda _: TaskFailed("BankDown", "no answer"),
    )
    family.start()
    family.settle(60)
    filters = {"error": "BankDown"}
    listed = family.insist(lambda: family.front.executions("default", filters))["executions"]
    assert sorted(row["workflow"] for row in listed) == ["inner", "outer"]
    asked = {"operation": "retry", "filters": filters, "dry_run": True, **WORDS}
    told = family.insist(lambda: family.front.bulk("default", asked, b""))
    assert [row["workflow"] for row in told["sample"]] == ["outer"]


def test_executions_that_start_after_the_bulk_are_not_selected(waiting: Stack) -> None:
    run = waiting.post({"operation": "stop", "filters": FLOW, "rate": 0.2, **WORDS})["execution"]
    settle(waiting.shop, 2)
    waiting.runs.append(waiting.start("late"))
    settle(waiting.shop, 60)
    assert waiting.shop.describe(run)["output"] == DONE
    assert waiting.statuses() == ["ABORTED"] * 3 + ["RUNNING"]


def test_a_bulk_acts_on_no_bulk(waiting: Stack) -> None:
    slow = waiting.post({"operation": "pause", "filters": FLOW, "rate": 0.2, **WORDS})["execution"]
    settle(waiting.shop, 1)
    found = waiting.post(
        {"operation": "stop", "filters": {"status": "RUNNING"}, "dry_run": True, **WORDS}
    )
    assert found["matching"] == 3
    assert waiting.shop.describe(slow)["status"] == "RUNNING"


def test_a_search_attribute_selects(tmp_path: Path) -> None:
    source = """
from holdfast import wait_for_event, workflow

@workflow(search={"customer": "customer"})
def hold(customer: str) -> int:
    return wait_for_event("paid", int, key=customer)
"""
    with loaded(tmp_path, source) as module:
        stack = MemoryStack(module.__name__)
        shop = Client.of(stack.api)
        runs = [shop.start("hold", {"customer": one}).execution for one in ("ada", "bob")]
        filters: Filters = {"where": ["customer=ada"]}
        assert shop.bulk_dry_run("stop", filters, "r")["matching"] == 1
        bulk = shop.bulk("stop", filters, "gone", fields={"now": True})["execution"]
        stack.world.run(until_ms=stack.world.now_ms + 10_000)
        assert shop.bulk_report(bulk) == {runs[0]: "done"}
        assert [shop.describe(run)["status"] for run in runs] == ["ABORTED", "RUNNING"]


# -- rate, pause, end ------------------------------------------------------------------------------


def test_the_rate_bounds_the_commands_and_a_stop_ends_the_bulk_after_its_page() -> None:
    stack = Stack(ORDER, 6)
    run = stack.post({"operation": "pause", "filters": FLOW, "rate": 0.1, **WORDS})["execution"]
    settle(stack.shop, 25)
    assert stack.shop.describe(run)["published"]["progress"] == {"done": 3, "refused": 0}
    stack.shop.stop(run)
    settle(stack.shop, 120)
    shown = stack.shop.describe(run)
    assert (shown["status"], shown["published"]["progress"]["done"]) == ("ABORTED", 3)


def test_a_paused_bulk_goes_on_after_its_resume() -> None:
    stack = Stack(ORDER, 4)
    run = stack.post({"operation": "pause", "filters": FLOW, "rate": 0.1, **WORDS})["execution"]
    stack.post(WORDS, f"/executions/{run}/pause")
    settle(stack.shop, 100)
    assert stack.shop.describe(run)["status"] == "RUNNING"
    stack.post(WORDS, f"/executions/{run}/resume")
    settle(stack.shop, 100)
    assert stack.shop.describe(run)["output"] == {"done": 4, "refused": 0}


def test_an_execution_that_someone_has_changed_since_it_was_selected_is_left(
    waiting: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:

    act = bulk_pages._act

    def later(known: Any, place: tuple[str, str, int], given: Any) -> Any:
        return act(known, (*place[:2], place[2] - 60_000), given)

    waiting.post({"priority": 1, **WORDS}, f"/executions/{waiting.runs[1]}/priority")
    settle(waiting.shop)
    monkeypatch.setattr(bulk_pages, "_act", later)
    told = waiting.bulk("pause", filters=FLOW)
    assert told["output"] == {"done": 2, "refused": 1}
    assert waiting.outcomes(told["execution"])[waiting.runs[1]].startswith("HF505")


def test_the_same_name_starts_one_bulk(waiting: Stack) -> None:
    asked = {"operation": "pause", "filters": FLOW, "name": "outage-7", **WORDS}
    assert waiting.post(asked)["execution"] == waiting.post(asked)["execution"]
    assert waiting.refusal(**{**asked, "operation": "stop"}) == (409, "HF212")


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"operation": "retry"}, "HF500"),
        ({"operation": "retry", "filters": {}}, "HF500"),
        ({"operation": "retyr", "filters": FLOW}, "HF501"),
        ({"operation": "retry", "filters": FLOW, "fields": {"timers": "run"}}, "HF501"),
        ({"operation": "skip", "filters": FLOW}, "HF501"),
        ({"operation": "pause", "filters": FLOW, "fields": []}, "HF501"),
        ({"operation": "pause", "filters": FLOW, "rate": 1_000}, "HF501"),
        ({"operation": "pause", "filters": FLOW, "rate": True}, "HF501"),
        ({"operation": "pause", "filters": {"status": "FAILED"}}, "HF502"),
        ({"operation": "retry", "filters": {"last_error": "BankDown"}}, "HF502"),
        ({"operation": "pause", "filters": {"status": "RUNING"}}, "HF204"),
        ({"operation": "pause", "filters": {"stauts": "RUNNING"}}, "HF219"),
        ({"operation": "pause", "filters": {**FLOW, "limit": "3"}}, "HF219"),
        ({"operation": "pause", "filters": FLOW, "fields": {"timers": "x"}}, "HF234"),
        ({"operation": "pause", "filters": FLOW, "reason": " "}, "HF234"),
        ({"operation": "skip", "filters": {"error": "E"}, "fields": {"step": "a", "result": 1}},
         "HF504"),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_is_refused(waiting: Stack, body: Any, code: str) -> None:
    assert waiting.refusal(**{**WORDS, **body}) == (400, code)


def test_a_step_of_a_bulk_in_a_machine_of_a_caller_does_nothing() -> None:
    act = {"Type": "Task", "Resource": "holdfast:bulk:act", "Arguments": {}, "End": True}
    stack = Stack(machine({"act": act}), 1)
    shown = stack.shop.describe(stack.runs[0])
    assert (shown["status"], shown["error"]) == ("FAILED", "InvalidArguments")


# -- the command line ------------------------------------------------------------------------------

Say = Callable[..., str]


@pytest.fixture
def say(failed: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked, sent = dict(parse_qsl(query)), json.loads(body or b"{}")
        status, answer = failed.site.request(method, path, sent, query=asked)
        return status, json.dumps(answer).encode()

    monkeypatch.setattr(client, "connect", lambda *_, **__: Api(carry, "here"))
    monkeypatch.setattr("holdfast.cli.bulk.time.sleep", lambda _: settle(failed.shop, 5))

    def line(*words: str, status: int = 0) -> str:
        assert cli.main(words) == status
        printed = capsys.readouterr()
        return printed.out + printed.err

    return line


def test_the_command_counts_then_acts_then_reports(say: Say, failed: Stack) -> None:
    failed.is_down = False
    asked = ("bulk", "retry", "--error", "BankDown", "--reason", "it is back", "--by", "kim")
    assert "retry would act on 3 executions" in say(*asked)
    assert failed.statuses() == ["FAILED"] * 3

    told = say(*asked, "--yes")
    assert "bulk retry of error BankDown: it is back" in told
    assert "SUCCEEDED: 3 done, 0 refused, 3 when it was started" in told
    assert failed.statuses() == ["SUCCEEDED"] * 3
    (bulk,) = json.loads(say("list", "--workflow", "holdfast.bulk", "--json"))
    report = say("bulk", "report", bulk["execution"])
    assert report.count("done") == 4
    assert "3 done" in report
    assert json.loads(say("bulk", "report", bulk["execution"], "--json")) == dict.fromkeys(
        failed.runs, "done"
    )
    assert "3 done" in say("bulk", "show", bulk["execution"])


def test_a_detached_command_does_not_wait(say: Say, failed: Stack) -> None:
    asked = ("bulk", "skip", "--workflow", "flow", "--step", "charge", "--result", "7")
    told = json.loads(say(*asked, "--reason", "r", "--yes", "--detach", "--json"))
    assert failed.statuses() == ["FAILED"] * 3
    settle(failed.shop, 10)
    assert "3 done" in say("bulk", "show", told["execution"])


@pytest.mark.parametrize(
    "words",
    [
        ("stop", "--now", "--cause", "c"),
        ("pause", "--timers", "run"),
        ("resume",),
        ("event", "paid", "--data", "{}"),
        ("fork", "--at", "charge", "--input", "{}"),
    ],
)
def test_each_operation_has_a_command(say: Say, words: tuple[str, ...]) -> None:
    told = say("bulk", *words, "--workflow", "flow", "--reason", "r", "--json")
    assert json.loads(told)["operation"] == words[0]


def test_ctrl_c_leaves_the_bulk_running(
    say: Say, failed: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.bulk.time.sleep", interrupt)
    told = say("bulk", "retry", "--workflow", "flow", "--reason", "r", "--yes", status=130)
    assert "it goes on in the stack: holdfast bulk show" in told


def test_a_bar_shows_how_far_it_is() -> None:
    shown = {"input": {"expected": 300}, "published": {"progress": {"done": 149, "refused": 1}}}
    assert bulk_command._bar(shown) == f"[{'#' * 15}{'-' * 15}] 150/300, 1 refused"
    assert bulk_command._bar({"input": {}}) == "0 done, 0 refused"
