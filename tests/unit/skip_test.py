"""Skip: an operator gives the result of an open or failed step."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.facts import SkipRequested, Succeeded
from holdfast.errors import GoneTypeError, RequestError
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.invariants import check
from tests.builders import CHANCE, KEYS, AnyTypes, Machine, Shop, ask, call, machine, wait_for
from tests.unit.core_children_test import FIRST, called, stops
from tests.unit.core_kit import Case
from tests.unit.pausing_test import pause, resume, settle

WORDS = {"reason": "paid by phone", "by": "ann"}
CHARGE_SHIP = {
    "charge": call("charge", "ship", Assign={"receipt": "{% $states.result %}"}),
    "ship": call("ship", Arguments={"receipt": "{% $receipt %}"}),
}


def work(effect: RunTask) -> TaskSucceeded | TaskFailed:
    """`charge` fails; every other task returns its arguments."""
    if effect.name == "charge":
        return TaskFailed("BankDown", "no answer")
    return TaskSucceeded(effect.arguments)


def started(definition: Machine, **options: Any) -> tuple[Shop, str]:
    shop = Shop(definition, work, **options)
    run = shop.start()
    settle(shop)
    return shop, run


def skip(shop: Shop, run: str, step: str, **more: Any) -> Any:
    request = {"step": step, **WORDS, **more}
    return shop.insist(lambda: shop.front.skip("default", run, request, CHANCE))


def refusal(shop: Shop, run: str, step: str, **more: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        skip(shop, run, step, **more)
    return caught.value


def test_a_failed_execution_continues_with_the_result_that_the_operator_gives() -> None:
    shop, run = started(machine(CHARGE_SHIP))
    assert shop.describe(run)["status"] == "FAILED"

    told = skip(shop, run, "charge", result="r-77")
    settle(shop)

    assert told == {"execution": run, "step": "charge", "retries": True}
    shown = shop.describe(run)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", {"receipt": "r-77"})
    assert shop.world.task_runs[run, 0, 1] == 1  # `charge` did not run again
    assert check(shop.world) == []


def test_the_history_has_the_result_by_hand_with_person_and_reason() -> None:
    shop, run = started(machine(CHARGE_SHIP))
    skip(shop, run, "charge", result="r-77")
    settle(shop)

    events = shop.insist(lambda: shop.front.history("default", run))["events"]

    types = [event["type"] for event in events]
    place = types.index("StepSkipped")
    assert types[place - 1 : place + 2] == ["ExecutionRedriven", "StepSkipped", "TaskStateExited"]
    assert events[place]["stepSkippedEventDetails"] == {"name": "charge", "output": '"r-77"'}
    own = events[place]["holdfast"]
    assert (own["reason"], own["by"]) == ("paid by phone", "ann")


@pytest.mark.parametrize(
    ("step", "result"),
    [
        (call("charge", Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 900}]), "r-1"),
        (call("gone"), "r-1"),
        (ask(), {"ok": True}),
        (wait_for("paid", TimeoutSeconds=3_600), {"pence": 5}),
        ({"Type": "Wait", "Seconds": 86_400, "End": True}, None),
    ],
    ids=["retry delay", "unknown task", "question", "event", "timer"],
)
def test_an_open_step_ends_with_the_result(step: Machine, result: Any) -> None:
    definition = machine({"it": {**step, "Next": "last"}, "last": {"Type": "Succeed"}})
    definition["States"]["it"].pop("End")
    shop, run = started(definition, knows=lambda name, _: name != "gone")
    assert shop.describe(run)["status"] == "RUNNING"

    skip(shop, run, "it", result=result)
    settle(shop)

    shown = shop.describe(run)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", result)
    assert check(shop.world) == []


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_child_whose_step_is_skipped_gets_a_stop(is_begun: bool) -> None:
    case = called(is_begun=is_begun)
    frame = case.frame("call")
    case.offer(SkipRequested("5", frame.id, frame.entered_event, "by hand", "why", "ann"))
    assert (case.positions, stops(case)) == (["nap"], [FIRST])


def test_the_result_of_a_running_task_comes_too_late_after_a_skip() -> None:
    case = Case(machine(CHARGE_SHIP)).start()
    frame = case.frame("charge")
    case.offer(SkipRequested("5", frame.id, frame.entered_event, "by hand", "why", "ann"))
    case.offer(Succeeded(0, 1, "from the bank"))
    assert case.frame("ship").variables == {"receipt": "by hand"}


def test_a_skip_counts_for_one_visit_of_the_step_only() -> None:
    """The loop has entered the same state again when the request is applied."""
    loop = {
        "step": call("step", "again"),
        "again": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% false %}", "Next": "end"}],
            "Default": "step",
        },
        "end": {"Type": "Succeed"},
    }
    case = Case(machine(loop)).start()
    seen = case.frame("step")
    case.succeed(1)
    events = len(case.events)
    case.offer(SkipRequested("5", seen.id, seen.entered_event, "by hand", "why", "ann"))
    assert len(case.events) == events


def test_in_a_pause_the_result_is_recorded_and_the_next_step_rests() -> None:
    shop, run = started(machine({"ask": ask("ship"), "ship": call("ship")}))
    pause(shop, run)
    settle(shop)
    skip(shop, run, "ask", result={"ok": True})
    settle(shop, 600)
    assert [wait["kind"] for wait in shop.describe(run)["waits"]] == ["next step"]
    resume(shop, run)
    settle(shop)
    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert check(shop.world) == []


def test_of_several_lines_the_request_names_one() -> None:
    each = machine({"one": call("charge")})
    mapped = {"Type": "Map", "Items": [1, 2], "ItemProcessor": each, "End": True}
    shop, run = started(machine({"all": mapped}))
    refused = refusal(shop, run, "one", result=1)
    assert (refused.code, refused.status) == ("HF216", 409)
    assert refused.help == "name one of them: one@0.0, one@0.1"

    skip(shop, run, "one@0.0", result=1)
    settle(shop)
    skip(shop, run, "one", result=2)
    settle(shop)

    assert shop.describe(run)["output"] == [1, 2]
    assert check(shop.world) == []


def test_a_step_that_is_not_open_cannot_be_skipped() -> None:
    shop, run = started(machine(CHARGE_SHIP))
    refused = refusal(shop, run, "ship", result=1)
    assert refused.code == "HF216"
    assert refused.help == "those that can be skipped: charge"
    assert refusal(shop, run, "charge", reason=" ").code == "HF234"

    skip(shop, run, "charge", result=1)
    settle(shop)
    refused = refusal(shop, run, "charge", result=1)
    assert refused.message == f"execution {run} has SUCCEEDED: none of its steps can be skipped"
    assert (refused.code, refused.status) == ("HF217", 409)


def test_a_timer_takes_no_result() -> None:
    shop, run = started(machine({"nap": {"Type": "Wait", "Seconds": 900, "End": True}}))
    assert refusal(shop, run, "nap", result=5).code == "HF217"


class Typed(AnyTypes):
    """`charge` returns text; no other task is deployed."""

    def normalise_result(self, tenant: str, name: str, value: Any, is_workflow: bool) -> Any:
        if name != "charge":
            raise GoneTypeError(name)
        if not isinstance(value, str):
            raise RequestError("HF211", "the result does not fit what charge returns: …")
        return value.strip()


def test_the_result_is_checked_against_the_type_of_the_task() -> None:
    shop, run = started(machine(CHARGE_SHIP))
    shop.front = Front(shop.programs, {"flow": shop.definition}, Typed(), KEYS)
    assert refusal(shop, run, "charge", result=7).code == "HF211"
    skip(shop, run, "charge", result=" r-7 ")
    settle(shop)
    assert shop.describe(run)["output"] == {"receipt": "r-7"}


def test_without_the_function_a_result_is_accepted_unless_it_may_be_a_secret() -> None:
    shop, run = started(machine({"gone": call("gone")}), knows=lambda *_: False)
    shop.front = Front(shop.programs, {"flow": shop.definition}, Typed(), KEYS)
    shop.definition.source_map["secrets"] = ["event paid"]
    assert refusal(shop, run, "gone", result=7).code == "HF215"
    del shop.definition.source_map["secrets"]
    skip(shop, run, "gone", result=7)
    settle(shop)
    assert shop.describe(run)["output"] == 7
