"""Fork: a new execution begins with the history of another one, up to a step."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast import cli
from holdfast.core.events import Event
from holdfast.core.facts import Forked, Started
from holdfast.core.forking import begin_of
from holdfast.errors import RequestError
from holdfast.remote import client
from holdfast.remote.connecting import Api
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.world import CrashAt, When
from tests.builders import CHANCE, Machine, Shop, call, chain, machine, wait_for
from tests.thorough import some
from tests.unit.host_kit import Site
from tests.unit.migration_kit import TwoVersions, compiled
from tests.unit.pausing_test import settle

WORDS = {"reason": "wrong price", "by": "ann"}
ORDER = machine(
    {
        "reserve": call("reserve", "price", Assign={"order": "{% $states.result.id %}"}),
        "price": call("price", "charge", Assign={"pence": "{% $states.result %}"}),
        "charge": call("charge", Arguments={"id": "{% $order %}", "pence": "{% $pence %}"}),
    }
)


class Calls:
    """Tasks that count their calls. `price` is wrong for the first execution."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        self.calls[effect.name] += 1
        match effect.name:
            case "reserve":
                return TaskSucceeded({"id": "o-7"})
            case "price":
                return TaskSucceeded(1 if self.calls["price"] == 1 else 900)
            case _:
                return TaskSucceeded(effect.arguments)


def done(definition: Machine = ORDER, data: Any = None) -> tuple[Shop, str, Calls]:
    calls = Calls()
    shop = Shop(definition, calls)
    run = shop.start(data)
    settle(shop)
    return shop, run, calls


def fork(shop: Shop, run: str, step: str, **more: Any) -> Any:
    request = {"step": step, **WORDS, **more}
    told = shop.insist(lambda: shop.front.fork("default", run, request, CHANCE[::-1]))
    settle(shop)
    return told


def test_a_fork_has_the_earlier_results_and_runs_the_step_again() -> None:
    shop, run, calls = done()
    told = fork(shop, run, "price")
    assert told["not_taken_back"] == {"tasks": ["price", "charge"]}
    shown = shop.describe(told["execution"])
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", {"id": "o-7", "pence": 900})
    assert calls.calls == {"reserve": 1, "price": 2, "charge": 2}
    assert shop.describe(run)["output"] == {"id": "o-7", "pence": 1}


def test_show_of_each_names_the_other_and_the_history_says_who_and_why() -> None:
    shop, run, _ = done()
    forked = fork(shop, run, "charge")["execution"]
    shown = shop.insist(lambda: shop.front.describe("default", run, with_forks=True))
    assert shown["forks"] == [forked]
    assert shop.describe(forked)["fork_of"] == {"execution": run, "step": "charge"}
    events = shop.insist(lambda: shop.front.history("default", forked))["events"]
    types = [event["type"] for event in events if event["type"] != "Opened"]
    place = types.index("ExecutionForked")
    assert types[place - 1 : place + 2] == ["TaskStateEntered", "ExecutionForked", "TaskScheduled"]
    own = next(event for event in events if event["type"] == "ExecutionForked")["holdfast"]
    assert (own["of"]["run"], own["reason"], own["by"]) == (run, "wrong price", "ann")


def test_variables_and_the_input_can_differ() -> None:
    shop, run, _ = done()
    told = fork(shop, run, "charge", set={"pence": 5})
    assert shop.describe(told["execution"])["output"] == {"id": "o-7", "pence": 5}

    shop, run, _ = done(machine({"echo": call("echo")}), {"n": 1})
    shown = shop.describe(fork(shop, run, "echo", input={"n": 2})["execution"])
    assert (shown["input"], shown["output"]) == ({"n": 2}, {"n": 2})


def test_a_fork_of_a_fork_at_the_same_step_keeps_what_the_first_was_given() -> None:
    shop, run, _ = done()
    first = fork(shop, run, "charge", set={"pence": 5})["execution"]
    second = fork(shop, first, "charge")["execution"]
    assert shop.describe(second)["output"] == {"id": "o-7", "pence": 5}

    shop, run, _ = done(machine({"echo": call("echo", "last"), "last": call("last")}), {"n": 1})
    first = fork(shop, run, "echo", input={"n": 2})["execution"]
    for step in ("echo", "last"):
        assert shop.describe(fork(shop, first, step)["execution"])["input"] == {"n": 2}


def _event(number: int, kind: str, details: Any = None, **own: Any) -> Event:
    return Event(kind, number, 0, 0, details or {}, own)


def test_the_start_of_a_fork_has_the_input_that_an_earlier_fork_was_given() -> None:
    started = Started("r", None, "flow", None, 0)
    events = (
        _event(1, "ExecutionStarted", {"input": 1}),
        _event(0, "ExecutionForked", {"input": 2}),
        _event(0, "ExecutionForked"),
    )
    of: Any = {"run": "o", "event": 3, "step": "a"}
    assert Forked(started, events, of, None, {}, "", "").input == 2
    assert Forked(started, events, of, (3,), {}, "", "").input == 3


def test_a_fork_of_a_fork_keeps_the_deadlines_of_the_blocks_around_its_step() -> None:
    events = [
        _event(1, "ExecutionStarted"),
        _event(0, "TimerSet"),
        _event(2, "TaskStateEntered", {"name": "a"}),
        _event(0, "ExecutionForked", of={"event": 2}),
        _event(0, "DeadlineSet"),
        _event(3, "TaskScheduled"),
        _event(4, "TaskStateEntered", {"name": "b"}),
        _event(0, "DeadlineSet"),
    ]
    assert [begin_of(events, number) for number in (2, 4, 9)] == [4, 6, None]


def test_a_fork_uses_an_event_of_its_own_and_not_that_of_its_origin() -> None:
    shop, run, _ = done(machine({"paid": wait_for("paid", "last"), "last": call("last")}))
    shop.send_event()
    settle(shop)
    told = fork(shop, run, "paid")
    assert told["not_taken_back"] == {"tasks": ["last"], "events": ["e1"]}
    assert shop.describe(told["execution"])["status"] == "RUNNING"
    shop.send_event(event_id="e2")
    settle(shop)
    assert shop.describe(told["execution"])["status"] == "SUCCEEDED"


def test_the_time_of_the_execution_begins_anew() -> None:
    definition = {**ORDER, "TimeoutSeconds": 100}
    definition["States"] = {**ORDER["States"], "nap": {"Type": "Wait", "Seconds": 80, "End": True}}
    definition["States"]["charge"] = call("charge", "nap")
    shop, run, _ = done(definition)
    settle(shop, 70)
    forked = fork(shop, run, "nap")["execution"]
    settle(shop, 60)
    assert shop.describe(forked)["status"] == "RUNNING"
    settle(shop, 30)
    assert shop.describe(forked)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("number", some(range(40)))
def test_a_crash_anywhere_leaves_one_fork_that_ends(number: int) -> None:
    shop, run, _ = done()
    shop.world.hook = CrashAt(number, "after" if number % 2 else "before")
    told = fork(shop, run, "price")
    shop.world.run()
    shown = shop.describe(told["execution"])
    assert (shown["status"], shown["output"]["pence"]) == ("SUCCEEDED", 900)


def test_every_step_of_a_chain_forks_to_the_same_end() -> None:
    shop = Shop(chain(6))
    history = shop.run({"n": 0})
    for number in range(6):
        forked = fork(shop, history.run, f"step {number}")["execution"]
        assert shop.describe(forked)["output"] == {"n": 6}


@pytest.mark.parametrize(
    ("step", "more", "code", "help_"),
    [
        ("ship", {}, "HF216", "a fork may begin at: reserve, price, charge"),
        ("price", {"set": {"colour": 1}}, "HF217", "those that it has: order"),
        ("price", {"input": 1}, "HF217", "give variables instead: --set NAME=JSON"),
        ("price", {"reason": ""}, "HF234", ""),
    ],
)
def test_a_fork_that_cannot_be_is_refused(
    step: str, more: dict[str, Any], code: str, help_: str
) -> None:
    shop, run, _ = done()
    with pytest.raises(RequestError) as caught:
        fork(shop, run, step, **more)
    assert caught.value.code == code
    assert caught.value.help.startswith(help_)


def test_a_step_inside_of_branches_is_refused_and_the_block_is_named() -> None:
    both = {"Type": "Parallel", "End": True, "Branches": [machine({"one": call("one")})]}
    shop, run, _ = done(machine({"first": call("first", "both"), "both": both}))
    with pytest.raises(RequestError, match="entered no step 'one' outside of branches") as caught:
        fork(shop, run, "one")
    assert caught.value.help == "a fork may begin at: first, both"
    assert shop.describe(fork(shop, run, "both")["execution"])["status"] == "SUCCEEDED"


def test_the_command_line_forks_and_says_what_is_not_taken_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop, run, _ = done()
    site = Site(shop)

    def carry(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        status, answer = site.request(method, target, json.loads(body or b"{}"))
        return status, json.dumps(answer).encode()

    monkeypatch.setattr(client, "connect", lambda *_, **__: Api(carry, "here"))
    line = ["fork", run, "--at", "charge", "--set", "pence=5", "--reason", "why", "--json"]
    assert cli.main(line) == 0
    forked = json.loads(capsys.readouterr().out)["execution"]
    settle(shop)
    assert shop.describe(forked)["output"] == {"id": "o-7", "pence": 5}
    assert cli.main(["fork", run, "--at", "price", "--reason", "why"]) == 0
    told = capsys.readouterr().out
    assert told.endswith(f"{run} has done since, not taken back: tasks: price, charge\n")
    assert cli.main(["show", run]) == 0
    assert forked in capsys.readouterr().out


# -- on the newest definition ----------------------------------------------------------------------

SALE = """
@task
def reserve(order: str) -> str: ...
@task
def price(item: str) -> int: ...
@task
def charge(item: str, pence: int) -> int: ...

@workflow
def flow(order: str) -> int:
    item = reserve(order)
    pence = price(item)
    return charge(item, pence)
"""
#: The new version rounds the price and charges in another step.
ROUNDED = SALE.replace("return charge(item, pence)", "return charge(item, pence + 100)")
#: It reads what no earlier step of the origin has computed.
WEIGHED = SALE.replace("item = reserve(order)", "item = reserve(order)\n    kilos = price(order)")
WEIGHED = WEIGHED.replace("charge(item, pence)", "charge(item, pence + kilos)")


def sold(tmp_path: Path, new: str) -> tuple[TwoVersions, str, Counter[str]]:
    calls: Counter[str] = Counter()

    def work(effect: RunTask) -> TaskSucceeded | TaskFailed:
        calls[effect.name] += 1
        results = {"reserve": "o-7", "price": 900}
        return TaskSucceeded(results.get(effect.name, (effect.arguments or {}).get("pence")))

    header = "from holdfast import task, workflow\n"
    old, newest = compiled(tmp_path, SALE, header), compiled(tmp_path, new, header)
    stack = TwoVersions(old, newest, work)
    run = stack.begun({"order": "x"})
    assert stack.describe(run)["output"] == 900
    stack.deploy()
    return stack, run, calls


def step_of(stack: TwoVersions, run: str, task: str) -> str:
    names = (str(event.details.get("name", "")) for event in stack.events(run))
    return next(name for name in names if task in name)


def test_a_fork_on_the_newest_definition_keeps_the_earlier_results(tmp_path: Path) -> None:
    stack, run, calls = sold(tmp_path, ROUNDED)
    step = step_of(stack, run, "charge")
    told = fork(stack, run, step, on="latest")
    shown = stack.describe(told["execution"])
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", 1_000)
    assert shown["definition"] == stack.new.hash
    assert calls == {"reserve": 1, "price": 1, "charge": 2}
    types = [event.type for event in stack.events(told["execution"])]
    assert types[types.index("ExecutionForked") + 1] == "Migrated"
    assert stack.describe(fork(stack, run, step)["execution"])["output"] == 900


def test_a_fork_that_the_newest_definition_would_strand_is_refused_with_the_obligation(
    tmp_path: Path,
) -> None:
    stack, run, _ = sold(tmp_path, WEIGHED)
    step = step_of(stack, run, "charge")
    with pytest.raises(RequestError, match="price") as refused:
        fork(stack, run, step, on="latest")
    assert (refused.value.code, refused.value.status) == ("HF412", 409)
    with pytest.raises(RequestError) as unknown:
        fork(stack, run, step, on="newest")
    assert unknown.value.code == "HF413"
    told = fork(stack, run, step_of(stack, run, "reserve"), on="latest")
    assert stack.describe(told["execution"])["output"] == 1_800


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fork_on_the_newest_definition_survives_a_crash_at_each_effect(
    tmp_path: Path, when: When
) -> None:
    stack, run, _ = sold(tmp_path, ROUNDED)
    step = step_of(stack, run, "charge")
    counted = CrashAt(None, when)
    for number in (None, *some(range(0, 40, 2))):
        crash = counted if number is None else CrashAt(number, when)
        stack.world.now_ms += 60_000
        stack.world.hook = crash
        told = fork(stack, run, step, on="latest")
        stack.world.run()
        assert stack.describe(told["execution"])["output"] == 1_000
        if number is not None and number >= counted.seen:
            break
