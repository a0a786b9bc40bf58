"""The API: accepted, refused, stored and shown values. A real world runs behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.api.registry import Registry
from holdfast.deployment import Deployment
from holdfast.errors import NewerFormatError, RequestError
from holdfast.limits import EVENT_BYTES_MAX, EVENT_RETENTION_SECONDS
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import SigningKeys, Token, make_token
from holdfast.runtime.effects import Delete, Put, RunTask, TaskSucceeded
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.keys import execution
from holdfast.sealed import Sealed
from holdfast_simulator.invariants import check
from holdfast_simulator.world import SimulatorWorld
from tests.builders import CHANCE, KEYS, AnyTypes, Shop, ask, call, chain, machine, wait_for
from tests.unit.stack_kit import Stack

DAY = 86_400
CALLBACK = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Arguments": {"FunctionName": "f", "Payload": {"token": "{% $states.context.Task.Token %}"}},
    "End": True,
}
NAP = {"nap": {"Type": "Wait", "Seconds": 30 * DAY, "End": True}}


class Strict(AnyTypes):
    """Payloads are objects with an amount."""

    def schema_of(self, reference: str) -> dict[str, Any]:
        return {"title": reference}

    def normalise_payload(self, tenant: str, reference: str, value: Any, what: str) -> Any:
        if not isinstance(value, dict) or "pence" not in value:
            raise RequestError("HF211", f"the {what} does not fit {reference}: pence is missing")
        return {"currency": "GBP", **value}


def strict(definition: Any) -> Shop:
    shop = Shop(definition)
    shop.definition.source_map["answers"] = {"ask": "m:Answer"}
    shop.front = Front(shop.programs, {"flow": shop.definition}, Strict(), KEYS)
    return shop


def begun(definition: Any, data: Any = None) -> tuple[Shop, str]:
    """A world whose one execution has come to its first wait."""
    shop = Shop(definition)
    run = shop.start(data)
    settle(shop)
    return shop, run


def settle(shop: Shop, seconds: float = 1) -> None:
    until_ms = shop.world.now_ms + int(seconds * 1_000)
    shop.world.run(until_ms=until_ms)
    shop.world.now_ms = until_ms


def mail(shop: Shop) -> list[Any]:
    return [dict(item) for item in shop.world.services.items("mail")]


def refused(shop: Shop, make: Any, code: str, status: int) -> RequestError:
    """The request is refused, and nothing that was stored has changed."""
    before = mail(shop), shop.world.services.depth("work")
    with pytest.raises(RequestError) as caught:
        shop.world.call(make)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert (mail(shop), shop.world.services.depth("work")) == before
    return caught.value


# -- start -----------------------------------------------------------------------------------------


def test_the_same_name_and_input_are_the_same_execution() -> None:
    shop = Shop(chain(1))
    first = shop.start({"n": 0})
    shop.world.now_ms += 5_000

    assert shop.start({"n": 0}) == first
    shop.world.run()
    assert shop.start({"n": 0}) == first
    shop.world.run()
    assert shop.history(first).state.output == {"n": 1}
    assert check(shop.world) == []


def test_the_same_name_with_another_input_is_refused() -> None:
    shop = Shop(chain(1))
    shop.start({"n": 0})
    request = {"workflow": "flow", "input": {"n": 1}, "name": "order-1"}
    error = refused(shop, shop.front.start("default", request, b"another."), "HF212", 409)

    assert "order-1" in error.message


def test_the_order_of_keys_makes_no_other_input() -> None:
    shop = Shop(chain(1))

    assert shop.start({"n": 0, "m": 1}) == shop.start({"m": 1, "n": 0})


def test_without_a_name_every_start_is_an_execution_of_its_own() -> None:
    shop = Shop(chain(1))
    request = {"workflow": "flow", "input": {"n": 0}}
    runs = {
        shop.world.call(shop.front.start("default", request, bytes([number] * 8)))["execution"]
        for number in range(3)
    }

    assert len(runs) == 3


@pytest.mark.parametrize("workflow", [None, "other", 5, ["flow"], {"a": 1}])
def test_a_workflow_that_is_not_there_is_404_and_says_which_are(workflow: Any) -> None:
    shop = Shop(chain(1))
    request = {"workflow": workflow}
    error = refused(shop, shop.front.start("default", request, CHANCE), "HF205", 404)

    assert error.help == "known: flow; `holdfast workflows` lists registered graphs, too"


@pytest.mark.parametrize("name", ["", "a b", "a#b", "x" * 81, 5, ["a"], "\u202etxt", "0" * 26])
def test_an_execution_is_named_within_the_grammar(name: Any) -> None:
    shop = Shop(chain(1))
    shop.world.call(shop.programs.store("default", shop.definition))
    request = {"workflow": "flow", "name": name}

    refused(shop, shop.front.start("default", request, CHANCE), "HF201", 400)


def test_an_input_too_large_for_a_message_travels_through_a_blob() -> None:
    flow = machine({"it": {"Type": "Succeed", "Output": "{% $length($states.input) %}"}})

    assert Shop(flow).run("x" * 300_000).state.output == 300_000


# -- describe and history --------------------------------------------------------------------------


def test_an_execution_is_found_by_its_id_and_by_its_name() -> None:
    shop, run = begun(machine(NAP), {"a": 1})
    found = shop.describe(run)

    assert shop.describe("order-1") == found
    assert (found["status"], found["name"], found["input"]) == ("RUNNING", "order-1", {"a": 1})


def test_an_input_too_large_for_one_answer_is_omitted_and_the_waits_are_not() -> None:
    shop, run = begun(machine({"it": ask()}), "x" * 2_000_000)
    found = shop.describe(run)

    assert (found["input"], found["omitted"]) == (None, ["input"])
    assert "token" in found["waits"][0]


def test_a_quarantined_start_is_shown_and_stopped_by_its_id() -> None:
    """However old the id is: its start message has been kept."""
    shop = Shop(machine(NAP))
    run = shop.start(name=None)
    (start,) = shop.world.services.receive("starts")
    shop.world.services.delete(start.receipt)
    shop.world.call(quarantine.put(start.body, ("a", "b", "c"), shop.world.now_ms))
    shop.world.now_ms += 20 * DAY * 1_000
    assert shop.describe(run)["waits"][0]["kind"] == "quarantined"

    shop.stop(run)
    settle(shop)
    assert shop.describe(run)["status"] == "ABORTED"


@pytest.mark.parametrize("again_ms", [1, 3_600_000])
def test_an_accepted_execution_shows_the_same_before_its_first_record(again_ms: int) -> None:
    shop = Shop(machine(NAP))
    run = shop.start()
    before = shop.describe("order-1")
    shop.world.now_ms += again_ms
    assert shop.start() == run
    assert shop.describe("order-1") == before
    assert before["waits"] == [{"kind": "start"}]
    settle(shop)
    after = shop.describe("order-1")
    assert {**after, "waits": before["waits"]} == before


def test_without_the_row_of_its_start_an_execution_shows_its_status() -> None:
    shop = Shop(machine(NAP))
    run = shop.start(name=None)
    items = shop.world.services.items(tables.MAIL)
    [row] = [item for item in items if str(item["pk"]).startswith("~start#")]
    shop.world.perform(Delete(tables.MAIL, str(row["pk"]), str(row["sk"])))
    waits = [{"kind": "start"}]
    assert shop.describe(run) == {"execution": run, "status": "RUNNING", "waits": waits}


@pytest.mark.parametrize("identifier", ["nobody", "0" * 26, "x" * 80])
def test_a_missing_execution_is_404(identifier: str) -> None:
    shop = Shop(machine(NAP))

    refused(shop, shop.front.describe("default", identifier), "HF207", 404)
    refused(shop, shop.front.history("default", identifier), "HF207", 404)
    refused(shop, shop.front.stop("default", identifier, {}, CHANCE), "HF207", 404)


def test_every_wait_is_shown_with_its_subject_start_and_line() -> None:
    branches = [
        {"StartAt": "ship", "States": {"ship": call("ship", Retry=[{"ErrorEquals": ["Busy"]}])}},
        {"StartAt": "nap", "States": NAP},
        {"StartAt": "paid", "States": {"paid": wait_for("paid", TimeoutSeconds=60)}},
        {"StartAt": "ask", "States": {"ask": ask()}},
    ]
    flow = machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}})
    shop = Shop(flow, knows=lambda name, is_pure: False)
    shop.definition.source_map["sources"] = {"nap": "flows.py:12"}
    run = shop.start()
    settle(shop)
    waits = {wait["state"]: wait for wait in shop.describe(run)["waits"]}

    assert waits["ship"]["kind"] == "unknown_task"
    assert waits["nap"] == {
        "kind": "timer",
        "state": "nap",
        "since": "2027-01-15T08:00:00.000Z",
        "until": "2027-02-14T08:00:00.000Z",
        "source": "flows.py:12",
    }
    assert waits["paid"] | {"since": ""} == {
        "kind": "event",
        "event": "paid",
        "key": "k1",
        "state": "paid",
        "since": "",
        "until": "2027-01-15T08:01:00.000Z",
    }
    assert waits["ask"]["title"] == "Approve?"
    assert waits["ask"]["token"]


def test_a_wait_in_a_block_with_a_deadline_ends_with_the_block() -> None:
    waits = {
        "nap": NAP["nap"],
        "paid": wait_for("paid", TimeoutSeconds=60),
        "ask": ask(),
        "bounded": {**NAP["nap"], "Seconds": DAY},
    }
    branches = [{"StartAt": name, "States": {name: state}} for name, state in waits.items()]
    states = {
        "begin": {"Type": "Pass", "Next": "all"},
        "all": {"Type": "Parallel", "Branches": branches, "End": True},
    }
    block = {"Begin": "begin", "Seconds": 2 * DAY, "States": ["all"]}
    shop, run = begun(machine(states, Holdfast={"Deadlines": [block]}))

    until = {wait["state"]: wait["until"] for wait in shop.describe(run)["waits"]}
    assert until == {
        "nap": "2027-01-17T08:00:00.000Z",
        "paid": "2027-01-15T08:01:00.000Z",
        "ask": "2027-01-17T08:00:00.000Z",
        "bounded": "2027-01-16T08:00:00.000Z",
    }


def test_a_frame_in_its_undo_has_no_deadline() -> None:
    states = {
        "begin": {"Type": "Pass", "Next": "ask"},
        "ask": ask("end"),
        "end": {"Type": "Succeed"},
        "undo": ask("undone"),
        "undone": {"Type": "Fail", "Error": "Undone"},
    }
    block = {"Begin": "begin", "Seconds": 60, "States": ["ask", "undo", "undone"]}
    undo = {"States": ["ask"], "Begin": "undo", "End": "undone"}
    shop, run = begun(machine(states, Holdfast={"Deadlines": [block], "Undo": [undo]}))
    settle(shop, 120)

    (wait,) = shop.describe(run)["waits"]
    assert (wait["state"], "until" in wait) == ("undo", False)


def test_a_task_in_hand_and_a_retry_to_come_are_shown_with_their_attempt() -> None:
    from holdfast.runtime.effects import TaskFailed

    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 60}]
    shop = Shop(
        machine({"it": call("ship", Retry=retry)}), tasks=lambda effect: TaskFailed("Busy", "")
    )
    run = shop.start()
    settle(shop)

    assert shop.describe(run)["waits"] == [
        {
            "kind": "task",
            "task": "ship",
            "attempt": 2,
            "retry_at": "2027-01-15T08:01:00.000Z",
            "state": "it",
            "since": "2027-01-15T08:00:00.000Z",
        }
    ]


def test_an_ended_execution_shows_its_end() -> None:
    fail = machine({"it": {"Type": "Fail", "Error": "Broken", "Cause": "why"}})
    shop = Shop(fail)
    run = shop.start()
    shop.world.run()
    found = shop.describe(run)

    assert (found["status"], found["error"], found["cause"]) == ("FAILED", "Broken", "why")
    assert found["waits"] == []
    assert "output" not in found
    assert found["stopped"] == "2027-01-15T08:00:00.000Z"


def test_a_history_is_in_the_form_of_aws_with_ours_apart() -> None:
    flow = machine({"it": {"Type": "Pass", "Assign": {"x": {"a": 1}}, "End": True}})
    shop = Shop(flow)
    run = shop.start({"n": 0})
    shop.world.run()
    started, entered, exited, ended = shop.insist(lambda: shop.front.history("default", run))[
        "events"
    ]

    assert started["executionStartedEventDetails"] == {"input": '{"n":0}'}
    assert started["holdfast"]["workflow"] == "flow"
    assert entered["stateEnteredEventDetails"] == {"name": "it", "input": '{"n":0}'}
    assert exited["stateExitedEventDetails"]["assignedVariables"] == {"x": '{"a":1}'}
    assert (ended["id"], ended["previousEventId"], ended["type"]) == (4, 3, "ExecutionSucceeded")
    assert "holdfast" not in ended


# -- shared names, and removed workflows -----------------------------------------------------------


def deploy(shop: Shop, *workflows: str) -> None:
    """The same definition, by other names."""
    deployed = dict.fromkeys(workflows, shop.definition)
    shop.front = Front(shop.programs, deployed, AnyTypes(), KEYS)


def two_of_one_name() -> tuple[Shop, dict[str, str]]:
    """Return executions of two workflows, both named order-7."""
    shop = Shop(machine(NAP))
    deploy(shop, "billing", "flow")
    runs: dict[str, str] = {}
    for workflow, chance in (("billing", b"chance 1"), ("flow", b"chance 2")):
        request = {"workflow": workflow, "name": "order-7"}
        begun = shop.world.call(shop.front.start("default", request, chance))
        runs[workflow] = begun["execution"]
    settle(shop)
    return shop, runs


def test_a_name_that_two_workflows_share_is_refused_and_no_execution_is_stopped() -> None:
    shop, runs = two_of_one_name()
    error = refused(shop, shop.front.stop("default", "order-7", {}, CHANCE), "HF214", 409)
    refused(shop, shop.front.describe("default", "order-7"), "HF214", 409)
    refused(shop, shop.front.history("default", "order-7"), "HF214", 409)
    request = {"execution": "order-7"}
    refused(shop, shop.front.doctor("default", request, is_repairing=True), "HF214", 409)

    for workflow, run in runs.items():
        assert f"{workflow} {run}" in error.message
    assert "give the id" in error.help
    assert "billing:order-7" in error.help


def test_of_two_of_one_name_the_workflow_says_which_is_stopped() -> None:
    shop, runs = two_of_one_name()
    shop.stop("flow:order-7")
    settle(shop)

    assert shop.describe(runs["flow"])["status"] == "ABORTED"
    assert shop.describe("billing:order-7")["status"] == "RUNNING"
    assert shop.describe("billing:order-7")["execution"] == runs["billing"]


def test_an_execution_of_a_removed_workflow_is_found_by_its_workflow_and_its_name() -> None:
    shop, run = begun(machine(NAP))
    deploy(shop, "other")
    refused(shop, shop.front.describe("default", "order-1"), "HF207", 404)
    refused(shop, shop.front.describe("default", "other:order-1"), "HF207", 404)
    for wrong in (":order-1", "flow:", "a#b:order-1", "flow:order-1#"):
        refused(shop, shop.front.describe("default", wrong), "HF201", 400)

    assert shop.describe("flow:order-1")["execution"] == run


def test_executions_of_a_removed_workflow_are_listed_by_its_name() -> None:
    shop, run = begun(machine(NAP))
    deploy(shop, "other")

    def listed(**filters: str) -> list[str]:
        answer = shop.insist(lambda: shop.front.executions("default", filters))
        return [row["execution"] for row in answer["executions"]]

    assert listed(workflow="flow") == listed(workflow="flow", status="RUNNING") == [run]
    assert listed(workflow="flow", status="FAILED") == []
    assert listed() == [run]  # every execution is listed, deployed or not
    for unknown in ("folw", "flow#RUNNING", "x" * 5_000):
        refused(
            shop,
            shop.front.executions("default", {"workflow": unknown, "status": "RUNNING"}),
            "HF205",
            404,
        )
    shop.stop(run)
    settle(shop)
    assert listed(workflow="flow", status="RUNNING") == []


def test_an_event_that_only_an_open_execution_still_waits_for_reaches_it() -> None:
    """The deployed code no longer declares the event; another execution that waits elsewhere has
    continued.
    """
    shop, run = begun(machine({"it": wait_for("paid")}))
    shop.front = Front(shop.programs, {}, Strict(), KEYS)
    request = {"name": "paid", "key": "k1", "data": {"pence": 5}}
    unfit = {**request, "data": {}}
    refused(shop, shop.front.event("default", unfit, CHANCE), "HF211", 400)
    for nobodys in ({"key": "k2"}, {"name": "signed"}):
        other = {**request, **nobodys}
        refused(shop, shop.front.event("default", other, CHANCE), "HF206", 404)
    for odd in ("x" * 1_948, "\udc80", ["paid"], None):
        # No key of DynamoDB can hold it, so no query is made.
        with pytest.raises(RequestError, match="no workflow declares"):
            next(shop.front.event("default", {**request, "name": odd}, CHANCE))
    refused(shop, shop.front.event("elsewhere", request, CHANCE), "HF206", 404)

    told = shop.world.call(shop.front.bus_event("default", "e1", request, CHANCE))
    assert told == {"event": "e1", "waiting": 1}
    settle(shop)
    assert shop.history(run).state.output == {"currency": "GBP", "pence": 5}


def test_an_unreadable_waiting_execution_neither_hides_another_nor_loses_its_event() -> None:
    shop, _ = begun(machine({"it": wait_for("paid")}))
    deployed = shop.front
    newest = shop.world.services.items("executions")[-1]
    shop.world.services.perform(Put("executions", {**newest, "f": 99}))
    shop.front = Front(shop.programs, {}, AnyTypes(), KEYS)
    request = {"name": "paid", "key": "k1", "data": 5}
    with pytest.raises(NewerFormatError):
        shop.world.call(shop.front.bus_event("default", "e1", request, CHANCE))
    assert shop.insist(lambda: shop.front.events("default", {}))["events"] == []

    shop.front = deployed
    shop.world.now_ms += 1_000
    shop.start(name="order-2")  # its registration comes behind the other: the older id is first
    settle(shop)
    shop.front = Front(shop.programs, {}, AnyTypes(), KEYS)
    told = shop.world.call(shop.front.bus_event("default", "e1", request, CHANCE))
    assert told == {"event": "e1", "waiting": 2}


def test_an_undeclared_event_is_refused_once_its_execution_has_continued() -> None:
    states = {"it": wait_for("paid", "nap"), "nap": NAP["nap"]}
    shop, _ = begun(machine(states))
    shop.send_event()
    settle(shop)
    deploy(shop)
    request = {"name": "paid", "key": "k1", "data": None}

    refused(shop, shop.front.event("default", request, CHANCE), "HF206", 404)


def without_the_type(shop: Shop, **more: Any) -> None:
    """The open execution's definition names a class that the deployed code does not have."""
    source_map = {"events": {"paid": "gone:Paid"}, "answers": {"ask": "list[gone:Answer]"}, **more}
    shop.definition.source_map.update(source_map)
    shop.front = Front(shop.programs, {}, Deployment(Registry({}, {}), {}), KEYS)


def test_an_answer_of_a_type_that_the_code_has_no_more_is_taken_as_it_is() -> None:
    flow = machine({"ask": ask("it"), "it": wait_for("paid")})
    shop, run = begun(flow)
    without_the_type(shop)
    shop.answer(run, output=[{"ok": True}])
    settle(shop)
    shop.send_event(data={"pence": 5})
    settle(shop)

    state = shop.history(run).state
    assert (state.status, state.output) == ("SUCCEEDED", {"pence": 5})


def test_a_secret_is_not_taken_in_clear_because_its_type_is_gone() -> None:
    shop, run = begun(machine({"ask": ask("it"), "it": wait_for("paid")}))
    without_the_type(shop, secrets=["answer list[Answer]", "event paid"])
    token = token_of(shop, run)
    request = {"token": token, "output": [{"pin": "1234"}]}
    error = refused(shop, shop.front.answer("default", request), "HF215", 409)
    assert "answer to ask" in error.message
    assert "list[gone:Answer]" in error.message
    assert "1234" not in str(error)

    # A caller without the right to give an answer can still refuse.
    shop.world.call(shop.front.answer("default", {"token": token, "error": "Refused"}))
    settle(shop)
    assert shop.history(run).state.error == "Refused"


# -- list ------------------------------------------------------------------------------------------


def test_executions_are_listed_newest_first_by_workflow_and_status() -> None:
    shop = Shop(machine(NAP))
    for number in range(3):
        shop.world.now_ms += 1_000
        shop.start(number, name=f"order-{number}")
        settle(shop)
    shop.stop("order-1")
    settle(shop)

    def names(**filters: str) -> list[str]:
        answer = shop.insist(lambda: shop.front.executions("default", filters))
        return [row["name"] for row in answer["executions"]]

    assert names() == ["order-2", "order-1", "order-0"]
    assert names(workflow="flow", status="RUNNING") == ["order-2", "order-0"]
    assert names(status="ABORTED") == ["order-1"]
    refused(shop, shop.front.executions("default", {"status": "DEAD"}), "HF204", 400)
    refused(shop, shop.front.executions("default", {"workflow": "other"}), "HF205", 404)


def test_a_failed_execution_is_listed_with_its_error() -> None:
    shop = Shop(machine({"it": {"Type": "Fail", "Error": "Broken"}}))
    shop.start()
    shop.world.run()
    (row,) = shop.insist(lambda: shop.front.executions("default", {}))["executions"]

    assert (row["status"], row["error"], row["stopped"]) == (
        "FAILED",
        "Broken",
        "2027-01-15T08:00:00.000Z",
    )


# -- events ----------------------------------------------------------------------------------------


def test_an_event_that_no_workflow_declares_is_404() -> None:
    shop = Shop(chain(1))
    for name in ["unknown", None, 5, ["paid"]]:
        request = {"name": name, "key": "k1", "data": 1}
        found = refused(shop, shop.front.event("default", request, CHANCE), "HF206", 404)
        assert found.help == "known: paid, signed"


@pytest.mark.parametrize("key", ["", None, 5, "k" * 1_025])
def test_an_event_needs_a_key(key: Any) -> None:
    shop = Shop(chain(1))
    request = {"name": "paid", "key": key, "data": 1}

    refused(shop, shop.front.event("default", request, CHANCE), "HF202", 400)


def test_an_event_that_does_not_fit_its_type_is_refused_at_the_door() -> None:
    shop = strict(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    request = {"name": "paid", "key": "k1", "data": {"pounds": 5}}
    refused(shop, shop.front.event("default", request, CHANCE), "HF211", 400)
    shop.send_event(data={"pence": 5})
    shop.world.run()

    assert shop.history(run).state.output == {"currency": "GBP", "pence": 5}


def test_over_the_bus_it_is_parked_with_its_reason_and_shown() -> None:
    shop = strict(machine({"it": wait_for("paid")}))
    run = shop.start()
    settle(shop)
    for number, detail in enumerate(
        [{"name": "paid", "key": "k1", "data": {}}, {"name": "odd", "key": "k1"}, "text", None]
    ):
        shop.world.call(shop.front.bus_event("default", f"b{number}", detail, CHANCE))
    settle(shop)
    parked = shop.insist(lambda: shop.front.events("default", {}))["events"]

    assert [row["refused"].partition(":")[0] for row in parked] == ["HF202"] * 2 + [
        "HF206",
        "HF211",
    ]
    assert "pence is missing" in parked[-1]["refused"]
    assert shop.history(run).state.status == "RUNNING"


def test_an_event_too_large_is_refused() -> None:
    shop = Shop(chain(1))
    request = {"name": "paid", "key": "k1", "data": "x" * EVENT_BYTES_MAX}

    refused(shop, shop.front.event("default", request, CHANCE), "HF203", 413)


def test_an_early_event_is_listed_until_an_execution_waits_and_then_used() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    shop.send_event(data={"pence": 5})
    (listed,) = shop.insist(lambda: shop.front.events("default", {}))["events"]
    assert (listed["name"], listed["key"], listed["event"]) == ("paid", "k1", "e1")
    shop.world.now_ms += (EVENT_RETENTION_SECONDS - 60) * 1_000
    run = shop.start()
    settle(shop)

    assert shop.history(run).state.output == {"pence": 5}
    assert shop.insist(lambda: shop.front.events("default", {}))["events"] == []


def test_an_event_that_has_expired_is_not_used_and_not_listed() -> None:
    shop = Shop(machine({"it": wait_for("paid", TimeoutSeconds=60)}))
    shop.send_event()
    shop.world.now_ms += EVENT_RETENTION_SECONDS * 1_000
    history = shop.run()

    assert history.state.error == "States.Timeout"
    assert shop.insist(lambda: shop.front.events("default", {}))["events"] == []


def test_the_same_event_twice_is_one_and_with_other_data_is_refused() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    assert shop.send_event(data=1) == shop.send_event(data=1)
    request = {"name": "paid", "key": "k1", "data": 2, "id": "e1"}

    refused(shop, shop.front.event("default", request, CHANCE), "HF213", 409)


def test_an_event_wakes_every_execution_that_waits_for_its_key_and_one_uses_it() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    runs = []
    for number in range(12):
        runs.append(shop.start(number, name=f"order-{number}"))
        settle(shop)
    assert shop.send_event(data="all")["waiting"] == 12
    shop.world.run()

    outputs = [shop.history(run).state.output for run in runs]
    assert sorted(outputs, key=str) == [None] * 11 + ["all"]


def test_an_event_is_named_by_its_sender_or_by_chance() -> None:
    shop = Shop(chain(1))
    request = {"name": "paid", "key": "k1", "data": 1, "id": "a b"}
    refused(shop, shop.front.event("default", request, CHANCE), "HF201", 400)
    del request["id"]

    assert shop.world.call(shop.front.event("default", request, CHANCE))["event"] == CHANCE.hex()


# -- answers ---------------------------------------------------------------------------------------


def token_of(shop: Shop, run: str) -> str:
    return str(next(w["token"] for w in shop.describe(run)["waits"] if "token" in w))


def test_an_answer_twice_is_one_and_another_answer_is_refused() -> None:
    shop, run = begun(machine({"it": ask()}))
    token = token_of(shop, run)
    request = {"token": token, "output": {"approved": True}}
    for _ in range(2):
        assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}
    other = {"token": token, "output": {"approved": False}}
    refused(shop, shop.front.answer("default", other), "HF231", 409)
    shop.world.run()

    assert shop.history(run).state.output == {"approved": True}


def test_an_answer_after_the_end_is_refused() -> None:
    shop, run = begun(machine({"it": ask(TimeoutSeconds=60)}))
    token = token_of(shop, run)
    shop.stop(run)
    shop.world.run(until_ms=shop.world.now_ms + 5_000)

    refused(shop, shop.front.answer("default", {"token": token, "output": 1}), "HF232", 409)


@pytest.mark.parametrize("given", [{"output": {"ok": True}}, {"error": "Refused", "cause": "no"}])
def test_a_repeated_answer_that_ended_the_wait_is_accepted_again(given: Any) -> None:
    shop, run = begun(machine({"it": ask()}))
    request = {"token": token_of(shop, run), **given}
    shop.world.call(shop.front.answer("default", request))
    settle(shop)
    assert shop.history(run).state.is_ended
    assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}

    for other in ({**request, "output": 7}, {**request, "error": "Other"}):
        with pytest.raises(RequestError) as caught:
            shop.world.call(shop.front.answer("default", other))
        assert caught.value.code in {"HF232", "HF233"}


@pytest.mark.parametrize("given", [{"output": {"ok": True}}, {"error": "Refused", "cause": "no"}])
def test_a_repeated_answer_from_another_api_is_accepted_by_its_value(
    given: Any,
) -> None:
    """As SendTaskSuccess and SendTaskFailure store it: how it was sent is not known."""
    shop, run = begun(machine({"it": ask()}))
    request = {"token": token_of(shop, run), **given}
    shop.world.call(shop.front.answer("default", request))
    (stored,) = [item for item in shop.world.services.items("mail") if "ah" in item]
    bare = {name: value for name, value in stored.items() if name != "ah"}
    shop.world.services.perform(Put("mail", bare))
    settle(shop)
    assert shop.history(run).state.is_ended

    assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}
    token = {"token": request["token"]}
    for other in ({"output": 7}, {"error": "Other"}, {}):
        refused(shop, shop.front.answer("default", {**token, **other}), "HF232", 409)


class Sealing(AnyTypes):
    """Every payload has a pin, which is sealed in another way each time."""

    def __init__(self) -> None:
        self.times = 0

    def schema_of(self, reference: str) -> dict[str, Any]:
        return {"title": reference}

    def normalise_payload(self, tenant: str, reference: str, value: Any, what: str) -> Any:
        self.times += 1
        return {**value, "pin": Sealed("k1", bytes([self.times]), 4).text}


@pytest.mark.parametrize(
    ("types", "output"), [(Strict(), {"pence": 5}), (Sealing(), {"pin": "1234", "ok": True})]
)
def test_a_repeated_answer_with_a_type_is_accepted_whether_it_was_applied_or_not(
    types: AnyTypes, output: Any
) -> None:
    shop = strict(machine({"ask": ask()}))
    shop.front = Front(shop.programs, {"flow": shop.definition}, types, KEYS)
    run = shop.start()
    settle(shop)
    request = {"token": token_of(shop, run), "output": output}
    for _ in range(2):
        assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}
    settle(shop)
    assert shop.history(run).state.is_ended
    assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}
    (stored,) = [item for item in mail(shop) if str(item["sk"]).startswith("t#")]
    assert "1234" not in str(stored)

    other = {**request, "output": {**output, "more": 1}}
    refused(shop, shop.front.answer("default", other), "HF232", 409)
    newer = SigningKeys("k2", {**KEYS.secrets, "k2": b"another secret, of 32 bytes too.."})
    shop.front = Front(shop.programs, {"flow": shop.definition}, types, newer)
    assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"output": 1, "error": "Refused"}, "this is both"),
        ({"error": 5}, "`error` has to be text"),
        ({"error": "Refused", "cause": ["no"]}, "`cause` has to be text"),
    ],
)
def test_an_answer_of_another_form_is_refused_with_the_reason(given: Any, said: str) -> None:
    shop, run = begun(machine({"it": ask()}))
    request = {"token": token_of(shop, run), **given}

    assert said in refused(shop, shop.front.answer("default", request), "HF233", 400).message


def test_a_token_of_a_task_without_an_answer_is_refused() -> None:
    shop, run = begun(machine(NAP))
    token = make_token(Token("default", run, 0, 1, shop.world.now_ms + 1_000), KEYS)

    refused(shop, shop.front.answer("default", {"token": token, "output": 1}), "HF232", 409)


def called_back(world: SimulatorWorld, answer: Any) -> list[tuple[str, bool]]:
    """Return of each function that hands its token on at once: whom the door took the answer for,
    and whether that one had a record.
    """
    door = Front(world.setting.programs, {}, AnyTypes(), KEYS)
    told: list[tuple[str, bool]] = []

    def notify(task: RunTask) -> TaskSucceeded:
        begun = {str(item["pk"]) for item in world.services.items("executions")}
        request = {"token": task.arguments["Payload"]["token"], **answer}
        run = world.call(door.answer("default", request))["execution"]
        told.append((run, execution("default", run) in begun))
        return TaskSucceeded(None)

    world.tasks = notify
    return told


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ({"output": "back"}, ("SUCCEEDED", "back", None)),
        ({"error": "No", "cause": "too late"}, ("FAILED", None, "No")),
    ],
)
def test_a_function_that_runs_before_the_first_record_is_answered_at_once(
    answer: Any, end: Any
) -> None:
    shop = Shop(machine({"it": CALLBACK}))
    told = called_back(shop.world, answer)
    run = shop.start()
    shop.world.run()
    state = shop.history(run).state

    assert told == [(run, False)]
    assert (state.status, state.output, state.error) == end


def test_a_child_of_a_map_is_answered_before_its_first_record() -> None:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "it",
        "States": {"it": CALLBACK},
    }
    items = {"Type": "Map", "Items": [1, 2], "ItemProcessor": processor, "End": True}
    stack = Stack(json.dumps(machine({"all": items})), lambda _: TaskSucceeded(None))
    told = called_back(stack.world, {"output": "back"})

    assert stack.run(None) == ["back", "back"]
    assert [had_record for _, had_record in told] == [False, False]


def test_an_answer_before_the_first_record_is_one_and_another_answer_is_refused() -> None:
    shop = Shop(machine({"it": CALLBACK}))
    run = shop.start()
    token = make_token(Token("default", run, 0, 1, shop.world.now_ms + 1_000), KEYS)
    request = {"token": token, "output": 1}
    for _ in range(2):
        assert shop.world.call(shop.front.answer("default", request)) == {"execution": run}

    refused(shop, shop.front.answer("default", {**request, "output": 2}), "HF231", 409)


def test_a_start_that_could_have_begun_and_has_not_is_not_answered() -> None:
    """Its start message is gone, or its parent waits for another child."""
    shop, parent = begun(machine({"it": ask()}))
    old = shop.start(name="order-2")
    shop.world.now_ms += 14 * DAY * 1_000
    for run in (old, f"{parent}.7.0"):
        token = make_token(Token("default", run, 0, 1, shop.world.now_ms + 1_000), KEYS)
        refused(shop, shop.front.answer("default", {"token": token, "output": 1}), "HF232", 409)


def test_an_answer_that_does_not_fit_its_type_is_refused_at_the_door() -> None:
    shop = strict(machine({"ask": ask()}))
    run = shop.start()
    settle(shop)
    token = token_of(shop, run)
    refused(shop, shop.front.answer("default", {"token": token, "output": {}}), "HF211", 400)
    shop.answer(run, output={"pence": 5})
    shop.world.run()

    assert shop.history(run).state.output == {"currency": "GBP", "pence": 5}


def test_an_answer_may_be_a_failure() -> None:
    shop, run = begun(machine({"it": ask()}))
    shop.answer(run, error="Refused", cause="too dear")
    shop.world.run()

    assert (shop.history(run).state.error, shop.history(run).state.cause) == ("Refused", "too dear")


def test_a_failure_without_words_fails_without_words() -> None:
    shop, run = begun(machine({"it": ask()}))
    shop.answer(run, error=None)
    shop.world.run()

    assert (shop.history(run).state.status, shop.history(run).state.error) == ("FAILED", None)


@pytest.mark.parametrize("token", ["", "forged", None, 5, {"a": 1}])
def test_a_forged_token_is_403_and_stores_nothing(token: Any) -> None:
    shop, _ = begun(machine({"it": ask()}))

    refused(shop, shop.front.answer("default", {"token": token, "output": 1}), "HF230", 403)


def test_a_token_of_an_execution_that_is_gone_is_refused() -> None:
    shop = Shop(machine({"it": ask()}))
    token = Token("default", "0" * 26, 0, 1, shop.world.now_ms + 1_000)
    request = {"token": make_token(token, KEYS), "output": 1}

    refused(shop, shop.front.answer("default", request), "HF232", 409)


def test_an_answer_too_large_for_an_item_travels_through_a_blob() -> None:
    shop, run = begun(machine({"it": ask(Output="{% $length($states.result) %}")}))
    shop.answer(run, output="x" * 300_000)
    shop.world.run()

    assert shop.history(run).state.output == 300_000


# -- tenants ---------------------------------------------------------------------------------------


def test_nothing_of_one_tenant_is_reachable_as_another() -> None:
    branches = [
        {"StartAt": "ask", "States": {"ask": ask()}},
        {"StartAt": "paid", "States": {"paid": wait_for("paid")}},
    ]
    flow = machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}})
    shop, run = begun(flow)
    token = token_of(shop, run)
    for identifier in (run, "order-1"):
        refused(shop, shop.front.describe("other", identifier), "HF207", 404)
        refused(shop, shop.front.history("other", identifier), "HF207", 404)
        refused(shop, shop.front.stop("other", identifier, {}, CHANCE), "HF207", 404)
    refused(shop, shop.front.answer("other", {"token": token, "output": 1}), "HF230", 403)
    assert shop.insist(lambda: shop.front.executions("other", {}))["executions"] == []
    request = {"name": "paid", "key": "k1", "data": 1, "id": "e1"}
    sent = shop.insist(lambda: shop.front.event("other", request, CHANCE))
    settle(shop)

    assert sent["waiting"] == 0
    assert shop.insist(lambda: shop.front.events("default", {}))["events"] == []
    assert len(shop.describe(run)["waits"]) == 2


def test_two_tenants_may_use_the_same_name_and_the_same_key() -> None:
    shop = Shop(machine({"it": wait_for("paid")}))
    runs = {}
    for tenant in ("a", "b"):
        shop.tenant = tenant
        runs[tenant] = shop.start(tenant)
    settle(shop)
    shop.send_event(data="for b")
    settle(shop)

    assert shop.describe(runs["b"])["output"] == "for b"
    shop.tenant = "a"
    assert shop.describe("order-1")["status"] == "RUNNING"


def test_every_item_but_the_sweepers_begins_with_its_tenant() -> None:
    branches = [
        {"StartAt": "ask", "States": {"ask": ask()}},
        {"StartAt": "paid", "States": {"paid": wait_for("paid")}},
        {"StartAt": "nap", "States": NAP},
    ]
    shop = Shop(machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}}))
    shop.tenant = "acme"
    run = shop.start("x" * 300_000)
    settle(shop)
    shop.send_event()
    shop.answer(run, output=json.loads("1"))
    shop.stop(run)
    settle(shop)
    items = [*shop.world.services.items("executions"), *shop.world.services.items("mail")]
    partitions = {str(item["pk"]) for item in items}

    assert all(key.startswith(("acme#", "~due#", "~start")) for key in partitions)
    assert all(str(item["lp"]).startswith("acme#") for item in items if "lp" in item)
    assert all(key.startswith("acme/") for key in shop.world.services.blobs())
