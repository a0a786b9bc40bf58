"""Claims: an event that several executions may use is used by one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Client, seconds
from holdfast.runtime import event_pointers, inbox
from holdfast.runtime.effects import Effect, PutIfAbsent, Query, Update
from holdfast.testing import World
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import CrashAt, Hook, Killed, SimulatorWorld, When, no_faults
from tests.builders import CHANCE, Machine, Shop, machine, wait_for, without_claims_of_senders
from tests.thorough import some
from tests.unit import shared_events_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.skip_test import skip

#: Waits for an event, and ends with its data.
WAITER = machine({"wait": wait_for("paid", TimeoutSeconds=30 * 86_400)})
#: The time after which SQS delivers the message of a crashed worker again.
AGAIN_MS = 200_000


class Waiters:
    """Executions that wait for the event `paid` with one key."""

    def __init__(self, count: int, hook: Hook = no_faults, of: Machine = WAITER) -> None:
        self.shop = Shop(of, hook=hook)
        self.world = self.shop.world
        self.runs: list[str] = []
        for _ in range(count):
            self.begin()

    def begin(self, data: Any = None) -> str:
        run = self.shop.start(data, name=f"waiter-{len(self.runs)}")
        self.runs.append(run)
        self.rest()
        return run

    def rest(self, milliseconds: int = 1_000) -> None:
        until_ms = self.world.now_ms + milliseconds
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def send(self, data: Any = "first", event_id: str = "e1") -> None:
        self.shop.send_event(data=data, event_id=event_id)
        self.rest()

    def outcomes(self) -> list[Any]:
        states = [self.shop.history(run).state for run in self.runs]
        return [one.output if one.status == "SUCCEEDED" else one.status for one in states]

    def stop(self, run: str) -> None:
        self.shop.stop(run)
        self.rest()

    def problems(self) -> list[Any]:
        return [*check(self.world), *lost(self.world)]


def claims(effect: Effect) -> bool:
    return isinstance(effect, Update) and inbox.CLAIMED in effect.put


def frees(effect: Effect) -> bool:
    return isinstance(effect, Update) and inbox.CLAIMED in effect.remove


def at_first(is_it: Callable[[Effect], bool], when: When, act: Callable[[str], Any]) -> Hook:
    """Return a hook that acts once, before or after the first such effect, with the execution that
    claims the event.
    """

    def hook(world: SimulatorWorld, effect: Effect, at: When) -> None:
        if at == when and is_it(effect):
            assert isinstance(effect, Update)
            world.hook = no_faults
            act(str(effect.put.get(inbox.ADDRESSEE)))

    return hook


def crash(_run: str) -> None:
    raise Killed


@pytest.fixture
def workers_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker claims the event of the only wait, too."""
    without_claims_of_senders(monkeypatch)


def test_an_event_is_not_used_by_a_second_execution_that_waits_later() -> None:
    waiters = Waiters(1)
    waiters.send()
    waiters.begin()
    assert waiters.outcomes() == ["first", "RUNNING"]
    waiters.send("second", "e2")
    assert waiters.outcomes() == ["first", "second"]
    assert waiters.problems() == []


def test_of_two_executions_that_wait_at_once_one_uses_the_event() -> None:
    waiters = Waiters(2)
    waiters.send()
    assert sorted(waiters.outcomes()) == ["RUNNING", "first"]
    waiters.send("second", "e2")
    assert sorted(waiters.outcomes()) == ["first", "second"]
    assert waiters.problems() == []


def test_two_waits_of_one_execution_use_an_event_each() -> None:
    branch = {"StartAt": "wait", "States": {"wait": wait_for("paid")}}
    both = {"Type": "Parallel", "Branches": [branch, branch], "End": True}
    waiters = Waiters(1, of=machine({"both": both}))
    waiters.send(1, "e1")
    waiters.send(2, "e2")
    assert sorted(waiters.outcomes()[0]) == [1, 2]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_effect_loses_no_event_and_gives_none_to_two(when: When) -> None:
    def story(hook: Hook) -> list[Any]:
        waiters = Waiters(2, hook)
        waiters.send()
        waiters.rest(AGAIN_MS)
        waiters.begin()
        waiters.send("second", "e2")
        waiters.send("third", "e3")
        # A wake that crashed is repeated by the sweeper's check, after an hour.
        waiters.rest(2 * 3_600_000)
        assert waiters.problems() == []
        return sorted(waiters.outcomes())

    counting = CrashAt(None, when)
    assert story(counting) == ["first", "second", "third"]
    for number in some(counting.numbers):
        assert story(CrashAt(number, when)) == ["first", "second", "third"], number


# -- claims without use ----------------------------------------------------------------------------


def test_an_execution_that_is_stopped_at_its_claim_gives_the_event_back() -> None:
    """Another worker stops the execution between claim and commit."""
    waiters = Waiters(2)
    waiters.world.hook = at_first(claims, "after", waiters.stop)
    waiters.send()
    assert sorted(waiters.outcomes()) == ["ABORTED", "first"]
    assert waiters.problems() == []


@pytest.mark.usefixtures("workers_claim")
def test_an_event_that_no_execution_waits_for_when_it_is_given_back_is_listed() -> None:
    waiters = Waiters(1)
    waiters.world.hook = at_first(claims, "after", waiters.stop)
    waiters.send()
    front = waiters.shop.front
    [kept] = waiters.world.call(front.events("default", {}))["events"]
    assert kept["event"] == "e1"
    assert "execution" not in kept
    waiters.begin()
    assert waiters.outcomes() == ["ABORTED", "first"]


def test_the_recovery_of_a_crashed_worker_frees_the_event_of_a_stopped_execution() -> None:
    """The worker crashes after the claim, and the execution is stopped before SQS delivers the
    message again.
    """
    waiters = Waiters(2)
    claimants: list[str] = []

    def fall(run: str) -> None:
        claimants.append(run)
        raise Killed

    waiters.world.hook = at_first(claims, "after", fall)
    waiters.send()
    waiters.stop(claimants[0])
    assert sorted(waiters.outcomes()) == ["ABORTED", "RUNNING"]
    waiters.rest(AGAIN_MS)
    assert sorted(waiters.outcomes()) == ["ABORTED", "first"]
    assert waiters.problems() == []


@pytest.mark.usefixtures("workers_claim")
def test_a_later_wait_frees_the_event_of_an_execution_that_has_ended_without_it() -> None:
    waiters = Waiters(1)
    waiters.world.hook = at_first(claims, "after", crash)
    waiters.send()
    waiters.stop(waiters.runs[0])
    waiters.begin()
    assert waiters.outcomes() == ["ABORTED", "first"]
    assert waiters.problems() == []


@pytest.mark.usefixtures("workers_claim")
def test_a_crashed_execution_that_runs_keeps_its_event() -> None:
    waiters = Waiters(1)
    waiters.world.hook = at_first(claims, "after", crash)
    waiters.send()
    waiters.begin()
    assert waiters.outcomes() == ["RUNNING", "RUNNING"]
    waiters.rest(AGAIN_MS)
    assert waiters.outcomes() == ["first", "RUNNING"]
    waiters.send("second", "e2")
    assert waiters.outcomes() == ["first", "second"]
    assert waiters.problems() == []


@pytest.mark.usefixtures("workers_claim")
def test_a_retry_that_uses_its_event_keeps_it_from_an_execution_that_frees_it() -> None:
    """The second execution has read the log of the first one: ended without the event. Then the
    first one is retried, and uses its event.
    """
    waiters = Waiters(1)
    shop = waiters.shop
    waiters.world.hook = at_first(claims, "after", crash)
    waiters.send()
    waiters.stop(waiters.runs[0])

    def retry(_run: str) -> None:
        front = shop.front
        shop.insist(lambda: front.retry("default", waiters.runs[0], {"reason": "again"}, CHANCE))
        waiters.rest()

    waiters.world.hook = at_first(frees, "before", retry)
    waiters.begin()
    assert waiters.outcomes() == ["first", "RUNNING"]
    waiters.send("second", "e2")
    assert waiters.outcomes() == ["first", "second"]
    assert waiters.problems() == []


@pytest.mark.usefixtures("workers_claim")
def test_each_claim_of_one_delivery_has_a_value_of_its_own() -> None:
    """The commit after the first claim is refused, because the other branch has gone on."""
    nap = {"Type": "Wait", "Seconds": 100, "Next": "rest"}
    rest = {"Type": "Wait", "Seconds": 500, "End": True}
    branches = [
        {"StartAt": "wait", "States": {"wait": wait_for("paid")}},
        {"StartAt": "nap", "States": {"nap": nap, "rest": rest}},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    waiters = Waiters(1, of=machine({"both": both}))
    values: list[str] = []

    def hook(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and claims(effect):
            assert isinstance(effect, Update)
            values.append(str(effect.put[inbox.CLAIMED]))
            if len(values) == 1:
                waiters.rest(105_000)

    waiters.world.hook = hook
    waiters.send()
    assert len(values) == len(set(values)) == 2


#: Waits for an event, gives the wait up after the seconds of its input, and runs on.
IMPATIENT = machine(
    {
        "both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "wait", "States": {"wait": wait_for("paid")}},
                {
                    "StartAt": "nap",
                    "States": {
                        "nap": {
                            "Type": "Wait",
                            "Seconds": "{% $states.input %}",
                            "Next": "over",
                        },
                        "over": {"Type": "Fail", "Error": "Over"},
                    },
                },
            ],
            "Catch": [{"ErrorEquals": ["Over"], "Next": "long"}],
            "Next": "long",
        },
        "long": {"Type": "Wait", "Seconds": 30 * 86_400, "End": True},
    }
)


def give_up_at_claim(waiters: Waiters) -> None:
    """Let the first execution give up its wait between the claim and the crash of its worker."""

    def give_up(run: str) -> None:
        assert run == waiters.runs[0]
        waiters.rest(60_000)
        raise Killed

    waiters.world.hook = at_first(claims, "after", give_up)
    waiters.send()


def uses(waiters: Waiters) -> list[list[str]]:
    return [[*waiters.shop.history(run).state.used_events] for run in waiters.runs]


@pytest.mark.usefixtures("workers_claim")
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_recovery_frees_the_event_of_a_wait_that_was_given_up(is_stopped: bool) -> None:
    waiters = Waiters(0, of=IMPATIENT)
    waiters.begin(50)
    waiters.begin(10_000)
    give_up_at_claim(waiters)
    if is_stopped:
        waiters.stop(waiters.runs[0])
    assert uses(waiters) == [[], []]
    waiters.rest(AGAIN_MS)
    assert uses(waiters) == [[], ["e1"]]
    assert [*check(waiters.world)] == []


@pytest.mark.usefixtures("workers_claim")
def test_a_later_wait_frees_the_event_of_a_wait_that_was_given_up() -> None:
    waiters = Waiters(0, of=IMPATIENT)
    waiters.begin(50)
    give_up_at_claim(waiters)
    waiters.begin(10_000)
    assert uses(waiters) == [[], ["e1"]]
    assert [*check(waiters.world)] == []


def test_the_log_of_an_ended_execution_is_read_by_one_later_wait() -> None:
    waiters = Waiters(1)
    waiters.send()
    first = f"default#{waiters.runs[0]}"
    reads: list[str] = []

    def note(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, Query) and effect.pk == first:
            reads.append(first)

    waiters.world.hook = note
    waiters.begin()
    assert reads == [first]
    waiters.begin()
    assert reads == [first]


# -- claims by the sender --------------------------------------------------------------------------


def at_put(when: When, act: Callable[[], Any]) -> Hook:
    """Return a hook that acts once, before or after the sender stores an event with a claim."""

    def hook(world: SimulatorWorld, effect: Effect, at: When) -> None:
        if at == when and isinstance(effect, PutIfAbsent) and inbox.CLAIMED in effect.item:
            world.hook = no_faults
            act()

    return hook


def test_the_only_wait_uses_an_event_without_a_claim_of_its_own() -> None:
    written: list[Effect] = []

    def note(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and claims(effect):
            written.append(effect)

    waiters = Waiters(1, note)
    waiters.send()
    assert waiters.outcomes() == ["first"]
    assert written == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_effect_loses_no_event_of_the_only_wait(when: When) -> None:
    def story(hook: Hook) -> list[Any]:
        waiters = Waiters(1, hook)
        waiters.send()
        waiters.begin()
        waiters.rest(AGAIN_MS)
        waiters.send("second", "e2")
        waiters.rest(2 * 3_600_000)
        assert waiters.problems() == []
        return sorted(waiters.outcomes())

    counting = CrashAt(None, when)
    assert story(counting) == ["first", "second"]
    for number in some(counting.numbers):
        assert story(CrashAt(number, when)) == ["first", "second"], number


def test_a_wait_that_begins_before_the_event_is_stored_gets_it_when_the_only_one_ends() -> None:
    """The sender has read the registrations: the first execution waits alone. Then the second one
    begins to wait, and the first one gives up.
    """
    waiters = Waiters(0, of=IMPATIENT)
    waiters.begin(50)

    def go_on() -> None:
        waiters.begin(10_000)
        waiters.rest(60_000)

    waiters.world.hook = at_put("before", go_on)
    waiters.send()
    assert uses(waiters) == [[], ["e1"]]
    assert [*check(waiters.world)] == []


def test_a_later_wait_gets_an_event_of_the_only_wait_that_has_ended_without_it() -> None:
    waiters = Waiters(1)
    waiters.world.hook = at_put("after", lambda: waiters.stop(waiters.runs[0]))
    waiters.send()
    [kept] = waiters.world.call(waiters.shop.front.events("default", {}))["events"]
    assert kept["event"] == "e1"
    assert "execution" not in kept
    waiters.begin()
    assert waiters.outcomes() == ["ABORTED", "first"]
    assert waiters.problems() == []


#: Two waits of one execution. The registration names the second one.
TWO_WAITS = machine(
    {
        "both": {
            "Type": "Parallel",
            "End": True,
            "Branches": [
                {"StartAt": "a", "States": {"a": wait_for("paid", TimeoutSeconds=100)}},
                {"StartAt": "b", "States": {"b": wait_for("paid")}},
            ],
        }
    }
)


def test_an_event_stays_with_the_other_wait_when_the_wait_that_claimed_it_is_skipped() -> None:
    """The worker of the wake and that of the time-out of `a` decide that `a` uses the event. A skip
    of `a` comes before both commits. The worker of the time-out then has to leave the event: the
    other one commits it for `b`, without a claim of its own.
    """
    waiters = Waiters(1, of=TWO_WAITS)
    waiters.rest(94_000)
    world = waiters.world

    def is_commit(effect: Effect, when: When) -> bool:
        return when == "before" and isinstance(effect, PutIfAbsent) and effect.table == "executions"

    def at_commit_of_wake(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if is_commit(effect, when):
            world.hook = at_commit_of_time_out
            waiters.rest(6_000)

    def at_commit_of_time_out(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if is_commit(effect, when):
            world.hook = no_faults
            skip(waiters.shop, waiters.runs[0], "a", result=0)
            waiters.rest(500)
            world.hook = at_first(frees, "after", lambda _run: waiters.begin())

    world.hook = at_commit_of_wake
    waiters.send()
    assert waiters.outcomes() == [[0, "first"]]
    assert waiters.problems() == []


def test_an_execution_that_may_soon_ask_for_pointers_gets_no_claim_of_a_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox, "EVENT_POINTERS_FROM", 4)
    again = machine(
        {"wait": wait_for("paid", "nap"), "nap": {"Type": "Wait", "Seconds": 10, "Next": "wait"}}
    )
    waiters = Waiters(1, of=again)
    stored: list[bool] = []

    def note(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, PutIfAbsent) and effect.table == "mail":
            stored.append(inbox.CLAIMED in effect.item)

    waiters.world.hook = note
    for number in range(4):
        waiters.send(number, f"e{number}")
        waiters.rest(20_000)
    assert stored == [True, True, False, False]


def test_an_event_of_an_execution_without_a_log_goes_to_a_later_wait() -> None:
    """The wait was to take a year, so its registration outlives the log of its execution."""
    waiters = Waiters(1, of=machine({"wait": wait_for("paid", TimeoutSeconds=365 * 86_400)}))
    waiters.stop(waiters.runs[0])
    services = waiters.world.services
    waiters.world.now_ms += 92 * 86_400_000
    for item in services.expired("executions"):
        services.expire("executions", item)
    waiters.send()
    waiters.runs.clear()
    run = waiters.shop.start(None, name="waiter-later")
    waiters.runs.append(run)
    waiters.rest()
    assert waiters.outcomes() == ["first"]


def test_a_wait_of_a_retried_execution_claims_the_event_of_the_sender_anew() -> None:
    """The second execution has read the log of the first one: ended without the event. Then the
    first one is retried: the same wait uses the event, and the second execution may not free it.
    """
    waiters = Waiters(1)
    shop = waiters.shop
    waiters.world.hook = at_put("after", lambda: waiters.stop(waiters.runs[0]))
    waiters.send()

    def retry(_run: str) -> None:
        shop.insist(
            lambda: shop.front.retry("default", waiters.runs[0], {"reason": "again"}, CHANCE)
        )
        waiters.rest()

    waiters.world.hook = at_first(frees, "before", retry)
    waiters.begin()
    assert waiters.outcomes() == ["first", "RUNNING"]
    waiters.send("second", "e2")
    assert waiters.outcomes() == ["first", "second"]
    assert waiters.problems() == []


# -- pointers --------------------------------------------------------------------------------------


def test_two_executions_with_pointers_share_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pointers, "EVENT_POINTERS_FROM", 2)
    got = {"got": "{% $append($got, [$states.result]) %}"}
    again = {"Condition": "{% $count($got) < 6 %}", "Next": "waiting"}
    of = machine(
        {
            "begin": {"Type": "Pass", "Assign": {"got": []}, "Next": "waiting"},
            "waiting": wait_for("paid", "nap", Assign=got),
            "nap": {"Type": "Wait", "Seconds": 10, "Next": "again?"},
            "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
            "done": {"Type": "Succeed", "Output": "{% $got %}"},
        }
    )
    waiters = Waiters(2, of=of)
    for number in range(12):
        waiters.shop.send_event(data=number, event_id=f"e{97 * number % 101:03d}")
        waiters.rest(1_000)
    waiters.rest(600_000)
    one, other = waiters.outcomes()
    assert sorted([*one, *other]) == list(range(12))
    assert waiters.problems() == []


# -- workflows -------------------------------------------------------------------------------------


def test_in_a_world_one_of_two_children_uses_the_event() -> None:
    world = World()
    world.send("word", "first", key="k", at=seconds(5))
    run = world.run(shared_events_flows.listeners, "k")
    assert run.output == ("first", "nothing")


def test_the_next_execution_of_a_key_does_not_get_the_request_of_the_one_before() -> None:
    client = Client.of(MemoryStack(shared_events_flows.__name__).api)
    first = client.start("clerk", {"key": "k"})
    assert client.request("signature", "k", "one", timeout=5) == "signed one"
    assert first.result(timeout=5) == "one"
    second = client.start("clerk", {"key": "k"})
    assert second.describe()["status"] == "RUNNING"
    assert client.request("signature", "k", "two", timeout=5) == "signed two"
    assert second.result(timeout=5) == "two"
