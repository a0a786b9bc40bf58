"""Requests: a caller asks a running execution, and gets its reply or its error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, ExecutionFailed, ReplyTimeout, RequestRejected, cli, minutes, seconds
from holdfast.api.requests import REQUEST_CANCELLED
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.compiler.source import Source
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.errors import RequestError
from holdfast.runtime.effects import RunTask, TaskSucceeded
from holdfast.testing import Difference, World, never, real
from holdfast_simulator.invariants import check
from holdfast_simulator.world import Killed
from tests.builders import Shop
from tests.thorough import stride as quick_stride
from tests.unit import request_flows
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded
from tests.unit.request_flows import Deposit, Withdraw

GIVEN: dict[str, Any] = {"kind": "deposit", "cents": 500, "note": "salary"}


@pytest.fixture
def client() -> Client:
    return Client.of(MemoryStack(request_flows.__name__).api)


def test_a_caller_gets_the_reply_of_a_running_execution(client: Client) -> None:
    assert client.request("account", "ann", GIVEN) == 500
    asked: dict[str, Any] = {"kind": "withdraw", "cents": 200}
    left = client.request("account", "ann", asked, id="r1")
    assert left == {"left": 300, "id": "r1"}
    assert client.request("account", "ann", asked, id="r1") == left
    assert client.reply("r1") == left


def test_an_error_rejects_the_request_and_the_workflow_goes_on(client: Client) -> None:
    with pytest.raises(RequestRejected, match="only 0 of 1") as rejected:
        client.request("account", "ann", {"kind": "withdraw", "cents": 1})
    assert (rejected.value.error, rejected.value.cause) == ("Overdrawn", "only 0 of 1")
    assert client.request("account", "ann", GIVEN) == 500


def test_a_request_that_does_not_fit_is_refused_and_never_reaches_the_workflow(
    client: Client,
) -> None:
    with pytest.raises(RequestError, match="HF211"):
        client.request("account", "ann", {"kind": "withdraw", "cents": "many"})
    with pytest.raises(RequestError, match="HF563"):
        client.reply("unknown")
    assert list(client.list(workflow="account")) == []


def test_a_request_or_an_event_may_have_no_data(client: Client) -> None:
    run = client.start("gate", {"key": "k"})
    with pytest.raises(RequestRejected, match="Overdrawn: r1"):
        client.request("close", "k", id="r1")
    with pytest.raises(RequestError, match=r"HF211.*None"):
        client.event("gate", "k", 5)
    client.event("gate", "k")
    assert run.result() == 1


def test_in_a_world_a_request_or_an_event_may_have_no_data() -> None:
    world = World()
    world.request("close", key="k", at=seconds(1))
    world.send("gate", key="k", at=seconds(2))
    assert world.run(request_flows.gate, "k").output == 1


def test_a_caller_stops_waiting_and_asks_later() -> None:
    stack = MemoryStack(request_flows.__name__, works=False)
    client = Client.of(stack.api)
    with pytest.raises(ReplyTimeout) as late:
        client.request("account", "ann", GIVEN, timeout=0)
    stack.works = True
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    assert client.reply(late.value.request) == 500


def test_two_requests_cannot_share_an_id(client: Client) -> None:
    assert client.request("account", "ann", GIVEN, id="order-1") == 500
    for name, key, data in (("account", "bob", GIVEN), ("divide", "ann", 2)):
        with pytest.raises(RequestError, match="another name or key") as refused:
            client.request(name, key, data, id="order-1")
        assert refused.value.code == "HF213"
    assert client.reply("order-1") == 500


def test_an_event_cannot_pass_for_a_request(client: Client) -> None:
    with pytest.raises(RequestError, match=r"HF206.*is the name of requests"):
        client.event("account?", "ann", GIVEN)


def test_an_event_of_a_caller_is_taken_by_receive_and_its_reply_stays_unread(
    client: Client,
) -> None:
    client.event("account", "ann", GIVEN, id="e1")
    client.event("account", "ann", GIVEN, id="e1")
    client.event("account", "ann", {"kind": "withdraw", "cents": 900}, id="e2")
    assert client.request("account", "ann", {"kind": "withdraw", "cents": 500})["left"] == 0
    assert client.reply("e1") == 500
    with pytest.raises(RequestRejected, match="only 500 of 900"):
        client.reply("e2")


def test_an_event_that_does_not_fit_a_receive_is_refused(client: Client) -> None:
    with pytest.raises(RequestError, match=r"HF211.*account"):
        client.event("account", "ann", {"kind": "withdraw", "cents": "many"})


def test_an_event_that_a_workflow_sends_is_taken_by_receive() -> None:
    stack = MemoryStack(request_flows.__name__)
    client = Client.of(stack.api)
    client.start("payroll", {"owner": "ann", "cents": 400})
    stack.world.run(until_ms=stack.world.now_ms + 1_000)
    assert client.request("account", "ann", {"kind": "withdraw", "cents": 100})["left"] == 300


def test_an_event_of_the_bus_is_taken_by_receive() -> None:
    stack = MemoryStack(request_flows.__name__)
    sent = {"name": "account", "key": "ann", "data": GIVEN}
    stack.world.call(stack.front.bus_event("default", "b1", sent, b"chance"))
    assert Client.of(stack.api).reply("b1") == 500


def test_a_workflow_asks_another_and_goes_on_with_its_reply_or_its_refusal(
    client: Client,
) -> None:
    client.request("account", "ann", GIVEN)
    assert client.start("buys", {"owner": "ann", "cents": 200}).result() == "left: 300"
    refused = client.start("buys", {"owner": "ann", "cents": 900})
    assert refused.result() == "refused: only 300 of 900"
    assert client.request("account", "ann", {"kind": "withdraw", "cents": 300})["left"] == 0


def test_a_reply_that_does_not_fit_fails_the_workflow_that_asked_and_no_other(
    client: Client,
) -> None:
    asked = client.start("asks_for_text", {"owner": "ann"})
    with pytest.raises(ExecutionFailed, match="InvalidResult: the reply does not fit str"):
        asked.result()
    assert client.request("account", "ann", GIVEN) == 501


def test_a_workflow_waits_for_a_reply_and_shows_for_what() -> None:
    stack = MemoryStack(request_flows.__name__)
    client = Client.of(stack.api)
    late, asked = (client.start("asks_at_most", {"owner": "k"}) for _ in range(2))
    (wait,) = asked.describe()["waits"]
    assert (wait["kind"], wait["request"], wait["key"]) == ("request", "divide", "k")
    (kept, other) = client.events("divide?", "k")
    client.drop_event("divide?", "k", kept["event"], "asked by mistake")
    with pytest.raises(ExecutionFailed, match="RequestDropped: asked by mistake"):
        (late if late.execution in kept["event"] else asked).result()
    assert other["event"] != kept["event"]
    stack.world.run(until_ms=stack.world.now_ms + 301_000)
    assert {late.describe()["error"], asked.describe()["error"]} == {
        "RequestDropped",
        "States.Timeout",
    }


def test_a_test_scripts_the_reply_to_a_request_of_a_workflow() -> None:
    for reply, said in (
        (300, "left: 300"),
        (lambda key, data: {"left": data["cents"], "id": key}, "left: 5"),
        (request_flows.Overdrawn("no money"), "refused: no money"),
    ):
        run = World({"account": reply}).run(request_flows.buys, "ann", 5)
        assert run.output == said
    assert World({"divide": never}).run(request_flows.asks_at_most, "k").error == "States.Timeout"


def test_in_a_world_an_event_that_the_workflow_sends_is_taken_by_receive() -> None:
    run = World().run(request_flows.sends_to_itself, "k")
    assert run.output == 7
    assert list(run.replies.values()) == [{"value": 8}]


@pytest.mark.parametrize("is_ended", [False, True])
def test_the_wait_for_a_request_cannot_be_skipped(client: Client, is_ended: bool) -> None:
    run = client.start("divide", {"key": "k"}).execution
    if is_ended:
        client.stop(run)
    with pytest.raises(RequestError, match=r"HF217.*waits for a request"):
        client.skip(run, "wait for divide?", 5, reason="to try it")


def test_the_testing_kit_sends_requests_and_shows_the_replies() -> None:
    world = World(others=real)
    first = world.request("account", Deposit(cents=900, note=""), key="ann", at=seconds(1))
    second = world.request("account", Withdraw(cents=901), key="ann", at=seconds(2))
    world.request("account", Deposit(cents=100, note=""), key="ann", at=seconds(3))
    run = world.run(request_flows.account, "ann")
    assert run.output == 1_000
    assert run.replies[first] == {"value": 900}
    assert run.replies[second] == {"error": "Overdrawn", "cause": "only 900 of 901"}


def test_a_stop_between_the_request_and_the_reply_rejects_it(client: Client) -> None:
    asker = client.start("audits", {"owner": "ann"})
    with pytest.raises(ReplyTimeout):
        client.request("audit", "ann", 1, id="r1", timeout=0)
    (asked,) = client.list(workflow="audited")
    client.stop(asked["execution"])
    # The execution had the request of the workflow in hand. It leaves that of the caller, for which
    # the next execution of the key starts.
    assert asker.result() == f"cancelled: {REQUEST_CANCELLED}"
    client.event("audit.done", "ann", 5)
    assert client.reply("r1", 0) == 5


def test_a_stop_rejects_the_request_of_a_caller_and_undoes_then(client: Client) -> None:
    with pytest.raises(ReplyTimeout):
        client.request("audit", "ann", 1, id="r1", timeout=0)
    (asked,) = client.list(workflow="audited")
    client.stop(asked["execution"])
    with pytest.raises(RequestRejected) as rejected:
        client.reply("r1", 0)
    assert (rejected.value.error, rejected.value.cause) == ("RequestCancelled", REQUEST_CANCELLED)
    steps = [event["type"] for event in client.history(asked["execution"])]
    assert steps.count("UndoStarted") == 2
    assert client.describe(asked["execution"])["status"] == "ABORTED"


def test_a_stop_at_once_leaves_the_request_without_a_reply(client: Client) -> None:
    with pytest.raises(ReplyTimeout):
        client.request("audit", "ann", 1, id="r1", timeout=0)
    (asked,) = client.list(workflow="audited")
    client.stop(asked["execution"], now=True)
    with pytest.raises(ReplyTimeout):
        client.reply("r1", 0)


def test_a_deadline_around_the_request_rejects_it_and_the_workflow_goes_on() -> None:
    stack = MemoryStack(request_flows.__name__)
    client = Client.of(stack.api)
    with pytest.raises(ReplyTimeout):
        client.request("audit", "ann", 1, id="r1", timeout=0)
    stack.world.run(until_ms=stack.world.now_ms + 601_000)
    with pytest.raises(RequestRejected, match="RequestCancelled"):
        client.reply("r1", 0)
    with pytest.raises(ReplyTimeout):
        client.request("audit", "ann", 1, id="r2", timeout=0)
    client.event("audit.done", "ann", 7)
    assert client.reply("r2", 0) == 7
    assert check(stack.world) == []


def test_a_test_sees_the_rejection_of_a_cancelled_request() -> None:
    world = World(others=real)
    late = world.request("audit", 1, at=seconds(1))
    answered = world.request("audit", 1, at=minutes(11))
    stopped = world.request("audit", 1, at=minutes(20))
    world.send("audit.done", 3, at=minutes(12))
    world.stop(at=minutes(21))
    run = world.run(request_flows.audited, "ann")
    cancelled = {"error": "RequestCancelled", "cause": REQUEST_CANCELLED}
    assert (run.replies[late], run.replies[stopped]) == (cancelled, cancelled)
    assert run.replies[answered] == {"value": 3}
    assert (run.status, run.published) == ("ABORTED", {"late": 0})


def test_an_error_of_an_expression_rejects_too() -> None:
    world = World()
    first = world.request("divide", 1, at=seconds(1))
    second = world.request("divide", 4, at=seconds(2))
    world.request("divide", 0, at=seconds(3))
    run = world.run(request_flows.divide, "k")
    assert run.replies[first]["error"] == "ZeroDivisionError"
    assert run.replies[second] == {"value": 4}


ROWS = """
from holdfast import receive, workflow
from pydantic import BaseModel

class Wanted(BaseModel):
    names: list[str]
    place: int
    by: int

@workflow(key="owner", starts_on="rows")
def rows(owner: str) -> None:
    kept = {"a": [1, 2]}
    while True:
        with receive("rows", Wanted, key=owner) as request:
            found = [kept[name] for name in request.data.names]
            request.reply(found[0][request.data.place] // request.data.by)

@workflow(key="owner", starts_on="most")
def most(owner: str) -> None:
    while True:
        with receive("most", list[int], key=owner) as request:
            request.reply(max(set(request.data)))
"""


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        ({"names": ["b"], "place": 0, "by": 1}, "KeyError", "'b'"),
        ({"names": [], "place": 0, "by": 1}, "IndexError", "list index out of range"),
        ({"names": ["a"], "place": 2, "by": 1}, "IndexError", "list index out of range"),
    ],
)
def test_a_caller_gets_the_name_and_the_text_of_an_expressions_error(
    data: dict[str, Any], error: str, cause: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, ROWS) as module:
        caller = Client.of(MemoryStack(module.__name__).api)
        with pytest.raises(RequestRejected) as rejected:
            caller.request("rows", "ann", data)
        assert (rejected.value.error, rejected.value.cause) == (error, cause)
        assert caller.request("rows", "ann", {"names": ["a"], "place": 1, "by": 2}) == 1


def test_a_test_compares_the_replies_of_both_runs(tmp_path: Path) -> None:
    with loaded(tmp_path, ROWS) as module:
        world = World()
        world.request("most", [], at=seconds(1))
        world.stop(at=seconds(2))
        with pytest.raises(Difference, match=r"States\.QueryEvaluationError"):
            world.run(module.most, "ann")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("stride", [quick_stride(7, 23), pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_anywhere_applies_a_request_once_and_keeps_its_reply(
    when: str, stride: int
) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride
        stack = MemoryStack(request_flows.__name__, works=False)
        client, left = Client.of(stack.api), [number]

        def hook(_process: Any, _effect: Any, at: str, left: list[int] = left) -> None:
            if at == when:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

        stack.world.hook, stack.site.ports.performs = hook, stack.world.perform
        for cents in (200, 300):
            _insist(client, {**GIVEN, "cents": cents}, f"r{cents}")
            stack.world.run(until_ms=stack.world.now_ms + 400_000)
        is_over, left[0] = left[0] > 0, 0
        stack.world.run(until_ms=stack.world.now_ms + 3_600_000)
        assert (client.reply("r200", 0), client.reply("r300", 0)) == (200, 500), number
    assert number > 40


@pytest.mark.parametrize("stride", [120, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_anywhere_asks_once_for_a_workflow_and_brings_its_reply(stride: int) -> None:
    number, is_over = 0, False
    while not is_over:
        number += stride
        stack, left = MemoryStack(request_flows.__name__, works=False), [number]
        client = Client.of(stack.api)
        runs = [client.start("adds", {"name": "k", "amount": amount}) for amount in (1, 2)]

        def hook(_process: Any, _effect: Any, _at: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        stack.world.hook = hook
        stack.world.run(until_ms=stack.world.now_ms + 400_000)
        # The rest of the run, and the request below, have no crash.
        is_over, left[0] = left[0] > 0, 0
        stack.world.run(until_ms=stack.world.now_ms + 3_600_000)
        assert sorted(run.describe()["output"] for run in runs) in ([1, 3], [2, 3]), number
        stack.works = True
        assert client.request("add", "k", 0) == 3, number
    assert number > 40


def _insist(client: Client, data: Any, request_id: str) -> None:
    for _ in range(3):
        try:
            client.request("account", "ann", data, id=request_id, timeout=0)
        except Killed:
            continue
        except ReplyTimeout:
            return


HEADER = """
from holdfast import receive, sleep, seconds, task, workflow

@task
def work(n: int) -> int:
    return n

@workflow
def flow(key: str) -> int:
"""
BLOCK = HEADER + '    with receive("ask", int, key=key) as request:\n'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("work(request.data)", "HF159"),
        ("request.reply(1)\n        work(1)", "HF159"),
        ("if request.data > 1:\n            request.reply(1)", "HF159"),
        ("if request.data > 1:\n            return 1\n        request.reply(1)", "HF159"),
        ("for n in [1, 2]:\n            request.reply(n)", "HF159"),
        ("request.reply()", "HF008"),
        ("request.reply(1, 2)", "HF008"),
    ],
)
def test_a_way_without_a_reply_at_its_end_is_refused(tmp_path: Path, body: str, code: str) -> None:
    source = f"{BLOCK}        {body}\n    return 1\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as refused:
        compile_workflow(module.flow)
    assert code in str(refused.value)


def test_a_reply_may_read_a_duration(tmp_path: Path) -> None:
    source = BLOCK + "        request.reply(int(grace.total_seconds()))\n    return 1\n"
    source = source.replace("key: str", "key: str, grace: timedelta")
    with loaded(tmp_path, "from datetime import timedelta\n" + source) as module:
        world = World()
        asked = world.request("ask", 2, key="k", at=seconds(1))
        assert world.run(module.flow, "k", seconds(90)).replies == {asked: {"value": 90}}


def test_a_with_that_receives_may_begin_more_blocks(tmp_path: Path) -> None:
    body = """
    with receive("ask", int, key=key) as request, compensating() as undo, shielded():
        undo(work, 7)
        work(request.data)
        if request.data == 2:
            raise ValueError("two")
        request.reply(request.data)
    return 1
"""
    header = HEADER.replace(
        "from holdfast import ", "from holdfast import compensating, shielded, "
    )
    with loaded(tmp_path, header + body) as module:
        world = World({module.work: lambda n: n})
        asked = world.request("ask", 2, key="k", at=seconds(1))
        run = world.run(module.flow, "k")
    assert (run.steps, run.output) == (["ask?", "work", "work"], 1)
    assert run.replies == {asked: {"error": "ValueError", "cause": "two"}}


@pytest.mark.parametrize(
    "body",
    [
        '    with receive("ask", int, key=key):\n        pass',
        '    r = receive("ask", int, key=key)',
    ],
)
def test_a_request_is_received_by_a_with_under_a_name(tmp_path: Path, body: str) -> None:
    source = f"{HEADER}{body}\n    return 1\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match="HF160"):
        compile_workflow(module.flow)


@pytest.mark.parametrize(
    "body",
    [
        '    return wait_for_event("ready?", int, key=key)',
        '    send("ready?", 1, key=key)\n    return 1',
        '    with receive("ready?", int, key=key) as r:\n        r.reply(1)\n    return 1',
    ],
)
def test_the_name_of_an_event_cannot_be_that_of_a_request(tmp_path: Path, body: str) -> None:
    source = f"{HEADER}{body}\n".replace("import receive", "import receive, send, wait_for_event")
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match=r"HF053.*requests"):
        compile_workflow(module.flow)


def test_step_functions_cannot_reply(tmp_path: Path) -> None:
    source = f"{BLOCK}        request.reply(1)\n    return 1\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match="cannot reply"):
        to_step_functions(compile_workflow(module.flow), Source.of(module))


def test_step_functions_cannot_ask_another_workflow() -> None:
    with pytest.raises(CompileErrors, match="cannot send a request"):
        to_step_functions(compile_workflow(request_flows.adds), Source.of(request_flows))


SAGA = """
from holdfast import compensating, receive, request, task, workflow

@task
def book(n: int) -> int:
    return n

@workflow
def flow(key: str) -> int:
    with compensating() as undo:
        booked = book(1)
        undo(book, booked)
        with receive("ask", int, key=key) as asked:
            asked.reply(book(asked.data))
        return request("total", None, key=key, returns=int)
"""


def test_check_shows_the_undo_around_a_request_and_names_its_timeout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(tmp_path, SAGA) as module:
        assert cli.main(["check", module.__name__]) == 0
    shown = capsys.readouterr().out
    assert "on failure, stop and time-out, the last first:" in shown
    assert "= help: receive(…, timeout=days(3))" in shown
    assert "= help: request(…, timeout=days(3))" in shown


NAMED_REQUEST = """
from holdfast import task, workflow

@task
def request(name: str) -> str:
    return f"asked {name}"

@workflow
def flow() -> str:
    return request("ann")
"""


def test_a_task_may_be_named_request(tmp_path: Path) -> None:
    asked: list[str] = []

    def run_task(effect: RunTask) -> TaskSucceeded:
        asked.append(effect.name)
        return TaskSucceeded("asked ann")

    with loaded(tmp_path, NAMED_REQUEST) as module:
        assert World({module.request: real}).run(module.flow).output == "asked ann"
        shop = Shop(compile_workflow(module.flow).asl, run_task)
    run = shop.start({})
    shop.world.run()
    assert (shop.describe(run)["output"], asked) == ("asked ann", ["request"])
