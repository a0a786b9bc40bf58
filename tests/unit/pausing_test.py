"""Pause and resume through the front door; workers, sweeper and doctor of a world behind it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import NewerFormatError, RequestError, UnknownKindError
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import Effect, Message, Put, RunTask, Send, TaskSucceeded
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.log import Log
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE, Machine, Shop, ask, call, machine, wait_for
from tests.thorough import some

WHY = "the bank is down"
NAP = machine({"nap": {"Type": "Wait", "Seconds": 3_600, "Next": "ship"}, "ship": call("ship")})
LANES = {
    "nap": {"Type": "Wait", "Seconds": 60, "End": True},
    "paid": wait_for("paid", TimeoutSeconds=3_600),
    "ask": ask(),
    "ship": call("ship"),
}
ALL = machine(
    {
        "all": {
            "Type": "Parallel",
            "Branches": [{"StartAt": name, "States": {name: one}} for name, one in LANES.items()],
            "Next": "last",
        },
        "last": call("last"),
    }
)


def work(_effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded(1)


def settle(shop: Shop, seconds: float = 1) -> None:
    until_ms = shop.world.now_ms + int(seconds * 1_000)
    shop.world.run(until_ms=until_ms)
    shop.world.now_ms = until_ms


def pause(shop: Shop, run: str, reason: str = WHY, **more: Any) -> Any:
    request = {"reason": reason, "by": "ann", **more}
    return shop.insist(lambda: shop.front.pause("default", run, request, CHANCE))


def resume(shop: Shop, run: str) -> Any:
    request = {"reason": "it is up again", "by": "ann"}
    return shop.insist(lambda: shop.front.resume("default", run, request, CHANCE))


def paused(definition: Machine, **more: Any) -> tuple[Shop, str]:
    shop = Shop(definition, work)
    run = shop.start()
    settle(shop)
    pause(shop, run, **more)
    settle(shop)
    return shop, run


def findings(shop: Shop, run: str) -> Any:
    request = {"execution": run}
    return shop.insist(lambda: shop.front.doctor("default", request, is_repairing=False))[
        "findings"
    ]


def listed(shop: Shop) -> Any:
    return shop.insist(lambda: shop.front.executions("default", {}))["executions"]


def test_a_paused_execution_continues_with_the_remaining_time() -> None:
    shop, run = paused(NAP)
    settle(shop, 86_400)
    assert shop.world.task_runs == {}
    assert shop.describe(run)["status"] == "RUNNING"

    resume(shop, run)
    settle(shop, 3_500)
    assert shop.world.task_runs == {}
    settle(shop, 300)

    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert check(shop.world) == []


def test_show_list_and_doctor_say_that_it_is_paused_since_when_and_why() -> None:
    shop, run = paused(NAP)
    shown = shop.describe(run)["paused"]
    assert shown == {
        "since": "2027-01-15T08:00:01.000Z",
        "reason": WHY,
        "timers": "freeze",
        "by": "ann",
    }
    (row,) = listed(shop)
    assert row["paused"] == {"since": shown["since"], "reason": WHY}

    settle(shop, 7_200)
    (found,) = findings(shop, run)
    assert (found["reason"], found["since"]) == ("PAUSED", shown["since"])
    assert "repair" not in found

    resume(shop, run)
    settle(shop)
    assert "paused" not in shop.describe(run)
    assert [("paused" in row, row["status"]) for row in listed(shop)] == [(False, "RUNNING")]
    assert findings(shop, run) == []


def test_the_sweeper_sends_nothing_for_it() -> None:
    """A timer's row from before the pause sends its one wake, which finds nothing to do."""
    sent: list[str] = []

    def hook(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Send) and when == "before":
            sent.extend(message.body["k"] for message in effect.messages)

    shop, _ = paused(ALL)
    settle(shop, 60)
    shop.world.hook = hook
    settle(shop, 86_400)
    assert sent == [messages.WAKE_TIMER]


def test_mail_that_comes_during_the_pause_counts_after_it() -> None:
    shop, run = paused(ALL)
    shop.send_event()
    shop.answer(run, output="yes")
    settle(shop, 7_200)
    assert {wait["state"] for wait in shop.describe(run)["waits"]} == {"nap"}
    resume(shop, run)
    settle(shop, 120)
    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert check(shop.world) == []


def test_with_running_timers_the_time_outs_pass_during_the_pause() -> None:
    shop, run = paused(machine({"paid": wait_for("paid", TimeoutSeconds=60)}), timers="run")
    settle(shop, 120)
    assert shop.describe(run)["error"] == "States.Timeout"


def test_a_stop_works_while_it_is_paused() -> None:
    shop, run = paused(NAP)
    shop.stop(run)
    settle(shop)
    assert shop.describe(run)["status"] == "ABORTED"
    assert [row["status"] for row in listed(shop)] == ["ABORTED"]


def test_a_pause_before_the_first_record_holds_all_that_follows_it() -> None:
    shop = Shop(NAP, work)
    run = shop.start()
    pause(shop, run)
    settle(shop, 7_200)
    assert shop.describe(run)["paused"]["reason"] == WHY
    resume(shop, run)
    settle(shop, 4_000)
    assert shop.describe(run)["status"] == "SUCCEEDED"


# -- refusals --------------------------------------------------------------------------------------


def refused(make: Any) -> tuple[str, int]:
    with pytest.raises(RequestError) as caught:
        make()
    assert caught.value.help or caught.value.code == "HF234"
    return caught.value.code, caught.value.status


def test_an_impossible_pause_or_resume_is_refused_with_the_fix() -> None:
    shop, run = paused(NAP)
    assert pause(shop, run)["since"] == "2027-01-15T08:00:01.000Z"
    assert refused(lambda: pause(shop, run, "another reason")) == ("HF235", 409)
    assert refused(lambda: pause(shop, run, " ")) == ("HF234", 400)
    assert refused(lambda: pause(shop, run, timers="never")) == ("HF234", 400)
    resume(shop, run)
    settle(shop)
    assert refused(lambda: resume(shop, run)) == ("HF236", 409)
    shop.stop(run)
    settle(shop)
    assert refused(lambda: pause(shop, run)) == ("HF237", 409)
    assert refused(lambda: resume(shop, run)) == ("HF237", 409)


def test_an_undo_is_not_paused() -> None:
    states = {
        "ship": call("ship", "rest"),
        "rest": {"Type": "Wait", "Seconds": 60, "End": True},
        "undo": {"Type": "Wait", "Seconds": 60, "Next": "undone"},
        "undone": {"Type": "Fail"},
    }
    undo = {"States": ["rest"], "Begin": "undo", "End": "undone"}
    shop = Shop(machine(states, Holdfast={"Undo": [undo]}), work)
    run = shop.start()
    settle(shop)
    shop.stop(run)
    settle(shop)
    assert refused(lambda: pause(shop, run)) == ("HF237", 409)


# -- releases --------------------------------------------------------------------------------------


def test_code_that_does_not_know_a_pause_touches_neither_its_log_nor_its_message() -> None:
    shop, run = paused(NAP)
    older = Log("default", run, "old", "", Formats(1, 1, 1))
    with pytest.raises(NewerFormatError):
        shop.world.call(older.load())
    (control,) = (
        item for item in shop.world.services.items("mail") if item.get("kind") == inbox.PAUSE
    )
    assert control["f"] == 2


def test_a_control_message_of_a_kind_that_the_code_does_not_know_stops_nothing() -> None:
    shop = Shop(NAP, work)
    run = shop.start()
    settle(shop)
    item = inbox.control_item("default", run, "9" * 27, 0, {"kind": "later"})
    shop.world.call(iter_of(Put(tables.MAIL, item)))
    state = shop.history(run).states[-1]
    with pytest.raises(UnknownKindError, match="'later', which this code does not know"):
        shop.world.call(inbox.control_facts("default", state))
    shop.world.call(iter_of(Send((Message(messages.recover("default", run)),))))
    settle(shop, 300)
    assert shop.describe(run)["status"] == "RUNNING"


def iter_of(effect: Effect) -> Any:
    yield effect


# -- crashes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", some(range(60)))
def test_a_crash_anywhere_during_a_pause_or_a_resume_loses_nothing(step: int) -> None:
    """The `step`th effect after the pause was asked for kills its process, before or after it."""
    left = step // 2
    is_after = step % 2 == 1
    armed = False

    def hook(_world: SimulatorWorld, _effect: Effect, when: When) -> None:
        nonlocal left
        if not armed or when != ("after" if is_after else "before"):
            return
        left -= 1
        if left == -1:
            raise Killed

    shop = Shop(ALL, work, hook)
    run = shop.start()
    settle(shop)
    armed = True
    pause(shop, run)
    settle(shop, 1_000)
    shop.send_event()
    try:
        resume(shop, run)
    except RequestError as error:  # The caller crashed after its resume was stored
        assert error.code == "HF236"
    settle(shop, 60)
    shop.answer(run, output=1)
    settle(shop, 3_600)
    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert check(shop.world) == []
    assert lost(shop.world) == []
