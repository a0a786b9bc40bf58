"""Keyed workflows: one execution for each key, started by the first event, which is used once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.api.registry import require_one_receiver
from holdfast.compiler.compile import compile_module, compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.errors import RequestError, WorkflowError
from holdfast.limits import KEYED_EXECUTIONS_MAX
from holdfast.runtime.effects import PutIfAbsent
from holdfast_simulator.world import Killed, SimulatorWorld
from tests.builders import CHANCE
from tests.thorough import stride
from tests.unit import keyed_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

ADD: dict[str, Any] = {"kind": "add", "sku": "tea"}
CHECKOUT: dict[str, Any] = {"kind": "checkout"}


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack(keyed_flows.__name__)


@pytest.fixture
def client(stack: MemoryStack) -> Client:
    return Client.of(stack.api)


def executions(client: Client, workflow: str) -> list[Any]:
    found: list[Any] = [client.describe(one["execution"]) for one in client.list(workflow=workflow)]
    return sorted(found, key=lambda one: str(one["execution"]))


def test_the_first_event_starts_the_execution_and_the_rest_go_to_it(client: Client) -> None:
    told = [client.event("cart", "c1", one) for one in (ADD, ADD | {"sku": "jam"}, CHECKOUT)]
    assert len({one["execution"] for one in told}) == 1
    (found,) = executions(client, "cart")
    assert (found["status"], found["output"]) == ("SUCCEEDED", ["tea", "jam"])
    later = client.event("cart", "c1", CHECKOUT)["execution"]
    assert client.describe(later)["output"] == []  # no event of the first execution is used again


def test_each_key_has_an_execution_of_its_own(client: Client) -> None:
    runs = {client.event("cart", key, ADD)["execution"] for key in ("c1", "c2")}
    assert len(runs) == 2


def test_events_that_come_before_a_worker_reads_them_keep_their_order(stack: MemoryStack) -> None:
    client, stack.works = Client.of(stack.api), False
    for sku in "abc":
        client.event("cart", "c1", ADD | {"sku": sku})
        stack.world.now_ms += 1
    stack.works = True
    client.event("cart", "c1", CHECKOUT)
    (found,) = executions(client, "cart")
    assert found["output"] == ["a", "b", "c"]


def test_an_event_with_one_id_counts_once_even_after_the_end(client: Client) -> None:
    first = client.event("cart", "c1", CHECKOUT, id="e1")["execution"]
    assert client.event("cart", "c1", CHECKOUT, id="e1")["execution"] == first
    assert len(executions(client, "cart")) == 1


def test_a_start_meets_the_execution_that_runs(client: Client) -> None:
    run = client.event("cart", "c1", ADD)["execution"]
    assert client.start("cart", {"cart_id": "c1"}).execution == run
    with pytest.raises(RequestError, match=run) as refused:
        client.start("cart", {"cart_id": "c1", "skus": ["jam"]})
    assert refused.value.code == "HF560"
    client.event("cart", "c1", CHECKOUT)
    assert client.start("cart", {"cart_id": "c1", "skus": ["jam"]}).execution != run


@pytest.mark.parametrize(("event", "ends"), [("cart", [["a"], ["b"]]), ("once", [1])])
def test_events_that_an_ended_execution_has_not_used_go_where_the_workflow_says(
    stack: MemoryStack, event: str, ends: list[Any]
) -> None:
    client, stack.works = Client.of(stack.api), False
    given: dict[str, list[Any]] = {
        "cart": [ADD | {"sku": "a"}, CHECKOUT, ADD | {"sku": "b"}, CHECKOUT],
        "once": [1, 2, 3],
    }
    for one in given[event]:
        client.event(event, "k", one)
        stack.world.now_ms += 1
    stack.works = True
    client.event("go", "k", True)
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    assert [one["output"] for one in executions(client, event)] == ends


def test_an_event_of_a_workflow_starts_a_keyed_one(client: Client) -> None:
    client.start("shopper", {"cart_id": "c1"}).result(timeout=5)
    run = client.event("cart", "c1", CHECKOUT)["execution"]
    assert client.describe(run)["output"] == ["tea"]


def test_an_event_starts_each_workflow_that_starts_on_it(client: Client) -> None:
    told = client.event("placed", "o1", 1, id="e1")
    packing, billing = told["executions"]["packing"], told["executions"]["billing"]
    assert client.describe(packing)["output"] == "packed 1"
    assert client.event("placed", "o1", 1, id="e1")["executions"] == told["executions"]
    assert client.describe(billing)["status"] == "RUNNING"
    assert len(executions(client, "packing")) == 1
    second = client.event("placed", "o1", 2)["executions"]
    assert (second["billing"], second["packing"] == packing) == (billing, False)
    assert client.describe(billing)["output"] == "billed 1 2"


def test_a_workflow_sends_one_event_that_starts_several(client: Client) -> None:
    client.start("seller", {"order": "o1"}).result(timeout=5)
    assert [len(executions(client, one)) for one in ("packing", "billing")] == [1, 1]


def test_an_event_for_one_execution_starts_no_other(client: Client) -> None:
    billing = client.start("billing", {"order": "o1"}).execution
    client.event("placed", "o1", 1, execution=billing)
    assert executions(client, "packing") == []
    assert client.event("placed", "o1", 2)["executions"]["billing"] == billing
    assert client.describe(billing)["output"] == "billed 1 2"


def test_each_copy_of_an_event_is_dropped_by_its_own_id(stack: MemoryStack) -> None:
    client, stack.works = Client.of(stack.api), False
    client.event("placed", "o1", 1, id="e1")
    for workflow in ("packing", "billing"):
        client.drop_event("placed", "o1", f"e1.{workflow}", "sent by mistake")
        told = client.event("placed", "o1", 1, id="e1")
        assert told.get("dropped", False) == (workflow == "billing")


def test_an_event_that_was_sent_for_one_workflow_stays_with_it(stack: MemoryStack) -> None:
    client = Client.of(stack.api)
    deployed: Any = stack.front.workflows
    billing = deployed.pop("billing")
    first = client.event("placed", "o1", 1, id="e1")["execution"]
    deployed["billing"] = billing
    assert client.event("placed", "o1", 1, id="e1")["execution"] == first
    assert executions(client, "billing") == []


@pytest.mark.parametrize("other", ["wait_for_event('ask', int, key=n)", "RECEIVE"])
def test_a_request_starts_one_workflow_alone(tmp_path: Path, other: str) -> None:
    receive = "with receive('ask', int, key=n) as one:\n        one.reply(1)"
    body = other.replace("RECEIVE", receive)
    flow = '@workflow(key="n", starts_on="ask")\ndef {}(n: str) -> None:\n    {}\n'
    source = "from holdfast import receive, wait_for_event, workflow\n"
    source += flow.format("a", receive) + flow.format("b", body)
    with loaded(tmp_path, source) as found:
        starts = {one.name: one.keyed.starts_on for one in compile_module(found) if one.keyed}
    with pytest.raises(WorkflowError, match="HF158"):
        require_one_receiver({name: str(event) for name, event in starts.items()})


def test_a_keyed_workflow_may_run_for_ever(client: Client) -> None:
    run = client.start("door", {"name": "d"}).execution
    for floor in (3, 7):
        client.event("floor", "d", floor)
        assert client.describe(run)["published"] == {"floor": floor}
    assert client.describe(run)["status"] == "RUNNING"


def test_a_stopped_execution_frees_its_key_and_cannot_be_retried_beside_the_next(
    client: Client,
) -> None:
    run = client.start("door", {"name": "d"}).execution
    client.stop(run)
    other = client.start("door", {"name": "d"}).execution
    assert other != run
    with pytest.raises(RequestError, match=other) as refused:
        client.retry(run)
    assert refused.value.code == "HF561"
    client.stop(other)
    client.retry(run)
    assert client.describe(run)["status"] == "RUNNING"
    with pytest.raises(RequestError, match=run):
        client.start("door", {"name": "d"})
    with pytest.raises(RequestError, match="HF217"):
        client.fork(run, "wait for floor", reason="to try it")


def test_an_event_that_no_execution_uses_starts_five_and_a_retry_of_the_last_uses_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed_flows, "is_broken", True)
    first = client.event("hatch", "h", 7)["execution"]
    found = executions(client, "hatch")
    assert [one["status"] for one in found] == ["FAILED"] * KEYED_EXECUTIONS_MAX
    (kept,) = client.events("hatch", "h")
    last = str(kept["execution"])
    assert last != first
    monkeypatch.setattr(keyed_flows, "is_broken", False)
    client.retry(last)
    assert client.describe(last)["output"] == 7


def test_each_of_many_events_at_once_is_used_by_an_execution_of_its_own(stack: MemoryStack) -> None:
    client, stack.works = Client.of(stack.api), False
    numbers = range(2 * KEYED_EXECUTIONS_MAX)
    for number in numbers:
        client.event("placed", "k", number)
        stack.world.now_ms += 1
    stack.works = True
    client.event("go", "k", True)
    stack.world.run(until_ms=stack.world.now_ms + 10_000)
    found = sorted(str(one["output"]) for one in executions(client, "packing"))
    assert found == [f"packed {number}" for number in numbers]


def test_an_event_may_be_for_one_execution_alone(client: Client) -> None:
    first, other = (client.start("door", {"name": key}).execution for key in ("d", "e"))
    assert client.event("floor", "d", 5, execution=other)["waiting"] == 0
    assert "published" not in client.describe(first) or not client.describe(first)["published"]
    assert client.event("floor", "d", 5, execution=first)["waiting"] == 1


#: Each list is what a sender sends, one event after another. In the second, executions end while
#: several events of the key are unused.
SENT: dict[str, list[dict[str, Any]]] = {
    "in turn": [ADD, CHECKOUT, ADD, CHECKOUT],
    "at once": [CHECKOUT, CHECKOUT, ADD, ADD | {"sku": "jam"}, CHECKOUT],
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_anywhere_loses_no_event_and_gives_none_twice(
    when: str, sent: str, stride: int
) -> None:
    """The API and the worker are killed at each effect in turn; the sender insists."""

    def kill(_world: SimulatorWorld) -> None:
        raise Killed

    _at_each_effect(when, sent, stride, kill)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_another_worker_between_any_two_effects_loses_no_event_and_gives_none_twice(
    when: str, sent: str, stride: int
) -> None:
    def work(world: SimulatorWorld) -> None:
        while world._deliver_visible():
            pass

    _at_each_effect(when, sent, stride, work)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_anywhere_gives_each_workflow_the_event_once(when: str) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride(3, 17)
        stack = MemoryStack(keyed_flows.__name__)
        left = [number]

        def hook(_world: Any, _effect: Any, at: str, left: list[int] = left) -> None:
            if at == when:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

        stack.works, stack.world.hook = False, hook
        stack.site.ports.performs = stack.world.perform
        client = Client.of(stack.api)
        _insist(client, 1, "e1", "placed")
        stack.world.run(until_ms=stack.world.now_ms + 3_600_000)
        is_over, left[0] = left[0] > 0, 0
        (packing,), (billing,) = (executions(client, one) for one in ("packing", "billing"))
        assert packing["output"] == "packed 1", number
        assert billing["waits"][0]["kind"] == "event", number
        client.event("placed", "c1", 2)
        stack.world.run(until_ms=stack.world.now_ms + 1_000)
        assert client.describe(billing["execution"])["output"] == "billed 1 2", number
    assert number > 30


def _at_each_effect(
    when: str, sent: str, stride: int, intrude: Callable[[SimulatorWorld], None]
) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride
        stack = MemoryStack(keyed_flows.__name__)
        left = [number]

        def hook(world: Any, _effect: Any, at: str, left: list[int] = left) -> None:
            if at == when:
                left[0] -= 1
                if left[0] == 0:
                    intrude(world)

        stack.works, stack.world.hook = False, hook
        stack.site.ports.performs = stack.world.perform
        _send_all(stack, SENT[sent], between_ms=400_000 if sent == "in turn" else 0)
        stack.world.run(until_ms=stack.world.now_ms + 3_600_000)
        is_over, left[0] = left[0] > 0, 0
        outputs = [one.get("output", []) for one in executions(Client.of(stack.api), "cart")]
        skus = [one["sku"] for one in SENT[sent] if "sku" in one]
        ends = SENT[sent].count(CHECKOUT)
        assert [sku for output in outputs for sku in output] == skus, (number, outputs)
        assert len(outputs) == ends, (number, outputs)
    print(f"{number} effects")
    assert number > 40


def test_an_event_that_is_stored_just_after_the_end_starts_the_next_execution() -> None:
    """The execution ends between the two looks of the API: no worker reads the event for it."""
    stack = MemoryStack(keyed_flows.__name__)
    client = Client.of(stack.api)
    first = client.event("cart", "c1", ADD)["execution"]
    ended: list[str] = []

    def hook(_process: Any, effect: Any, at: str) -> None:
        is_it = isinstance(effect, PutIfAbsent) and effect.item["sk"] == "e#late"
        if is_it and at == "before" and not ended:
            ended.append(first)
            client.stop(first)
            stack.world.run(until_ms=stack.world.now_ms)

    stack.world.hook = hook
    late = {"name": "cart", "key": "c1", "data": CHECKOUT, "id": "late"}
    told = stack.world.call(stack.front.event("default", late, CHANCE))
    stack.world.run(until_ms=stack.world.now_ms)
    assert ended and told["execution"] != first
    assert client.describe(told["execution"])["output"] == []


def _send_all(stack: MemoryStack, sent: list[dict[str, Any]], between_ms: int) -> None:
    client = Client.of(stack.api)
    for place, one in enumerate(sent):
        _insist(client, one, f"e{place}")
        stack.world.now_ms += 1
        if between_ms:
            stack.world.run(until_ms=stack.world.now_ms + (place % 2) * between_ms)


def _insist(client: Client, data: Any, event_id: str, name: str = "cart") -> None:
    for _ in range(3):
        try:
            client.event(name, "c1", data, id=event_id)
        except Killed:
            continue
        return


_CALLS = """
@workflow(key="n")
def one(n: str) -> int:
    return 1

@workflow
def flow(n: str) -> int:
    return one(n)
"""
_OTHER_KEY = """
@workflow(key="n", starts_on="x")
def flow(n: str) -> int:
    return wait_for_event("x", int, key="other")
"""


def test_a_refused_wait_is_not_reported_as_missing_too(tmp_path: Path) -> None:
    declared = _OTHER_KEY.replace('int, key="other"', "dict, key=n")
    source = f"from holdfast import wait_for_event, workflow\n{declared}\n"
    with pytest.raises(CompileErrors) as refused, loaded(tmp_path, source) as found:
        compile_workflow(found.flow)
    assert [one.code for one in refused.value.diagnostics] == ["HF053"]


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ('@workflow(key="id")\ndef flow(n: str) -> None: ...', "HF155"),
        ('@workflow(starts_on="x")\ndef flow(n: str) -> None: ...', "HF155"),
        ('@workflow(key="n", starts_on="x")\ndef flow(n: str, m: int) -> None: ...', "HF155"),
        ('@workflow(key="n", starts_on="x?")\ndef flow(n: str) -> None: ...', "HF155"),
        ('@workflow(key="n", unread="keep")\ndef flow(n: str) -> None: ...', "HF155"),
        ('@workflow(key="n")\ndef flow(n: int) -> None:\n    return None', "HF156"),
        (_OTHER_KEY, "HF156"),
        (_CALLS, "HF157"),
    ],
)
def test_a_wrong_key_is_refused(tmp_path: Path, declared: str, code: str) -> None:
    source = f"from holdfast import wait_for_event, workflow\n{declared}\n"
    errors = (CompileErrors, WorkflowError)
    with pytest.raises(errors) as refused, loaded(tmp_path, source) as found:
        compile_workflow(found.flow)
    assert code in str(refused.value)
