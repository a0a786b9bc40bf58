"""Retry: an execution that has not succeeded continues from the failed step."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.errors import RequestError
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast_simulator.invariants import check
from tests.builders import CHANCE, KEYS, Machine, Shop, call, chain, machine, wait_for
from tests.unit.core_kit import part
from tests.unit.dsl_kit import loaded
from tests.unit.host_kit import Site
from tests.unit.states_kit import PLACE

CONTRACT = machine(
    {
        "reserve": call("reserve", "charge"),
        "charge": call("charge", "ship"),
        "ship": call("ship"),
    }
)


class Tasks:
    """Tasks that count their calls; those named in `broken` fail."""

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)
        self.calls: Counter[str] = Counter()

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        self.calls[effect.name] += 1
        if effect.name in self.broken:
            return TaskFailed("CardDeclined", "the bank is down")
        return TaskSucceeded({"done": effect.name})


def failed(definition: Machine = CONTRACT) -> tuple[Shop, Tasks, str]:
    tasks = Tasks("charge")
    shop = Shop(definition, tasks)
    run = shop.start({"n": 1}, "contract-7")
    shop.world.run()
    assert shop.describe(run)["status"] == "FAILED"
    return shop, tasks, run


def retry(shop: Shop, identifier: str, by: str | None = None, **request: Any) -> Any:
    return shop.insist(lambda: shop.front.retry(shop.tenant, identifier, request, CHANCE, by))


def refused(shop: Shop, identifier: str) -> RequestError:
    before = [dict(item) for item in shop.world.services.items("mail")]
    with pytest.raises(RequestError) as caught:
        retry(shop, identifier)
    assert (caught.value.code, caught.value.status) == ("HF218", 409)
    assert caught.value.help
    assert [dict(item) for item in shop.world.services.items("mail")] == before
    return caught.value


# -- it goes on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("identifier", ["contract-7", "flow:contract-7", None])
def test_a_retry_continues_from_the_failed_step_with_earlier_results(
    identifier: str | None,
) -> None:
    shop, tasks, run = failed()
    tasks.broken.clear()
    answer = retry(shop, identifier or run)
    shop.world.run()

    assert answer == {"execution": run, "retry": 1, "from": ["charge"]}
    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert shop.describe(run)["retries"] == 1
    assert tasks.calls == {"reserve": 1, "charge": 2, "ship": 1}
    assert check(shop.world) == []


def test_a_hundred_and_thirty_executions_that_failed_in_an_outage_all_end_well() -> None:
    tasks = Tasks("charge")
    shop = Shop(CONTRACT, tasks)
    names = [f"contract-{number}" for number in range(130)]
    for number, name in enumerate(names):
        request = {"workflow": "flow", "input": {"n": number}, "name": name}
        shop.world.call(shop.front.start("default", request, number.to_bytes(8, "big")))
    shop.world.run()
    assert {shop.describe(name)["status"] for name in names} == {"FAILED"}
    tasks.broken.clear()
    for name in names:
        retry(shop, name, reason="the bank is back")
    shop.world.run()

    assert {shop.describe(name)["status"] for name in names} == {"SUCCEEDED"}
    assert tasks.calls == {"reserve": 130, "charge": 260, "ship": 130}
    assert check(shop.world) == []


def test_a_retry_that_fails_again_can_be_retried_again() -> None:
    shop, tasks, run = failed()
    for number in (1, 2):
        assert retry(shop, run)["retry"] == number
        shop.world.run()
        assert shop.describe(run)["status"] == "FAILED"
        shop.world.now_ms += 60_000
    tasks.broken.clear()
    retry(shop, run)
    shop.world.run()

    assert shop.describe(run)["status"] == "SUCCEEDED"
    assert tasks.calls == {"reserve": 1, "charge": 4, "ship": 1}


def test_an_execution_that_timed_out_or_was_stopped_continues() -> None:
    for definition, ends in (
        (machine({"a": call("one", "b"), "b": wait_for("paid")}, TimeoutSeconds=60), "TIMED_OUT"),
        (machine({"a": call("one", "b"), "b": wait_for("paid")}), "ABORTED"),
    ):
        tasks = Tasks()
        shop = Shop(definition, tasks)
        run = shop.start()
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
        if ends == "ABORTED":
            shop.stop(run)
        shop.world.run()
        assert shop.describe(run)["status"] == ends
        assert retry(shop, run)["from"] == ["b"]
        shop.send_event()
        shop.world.run(until_ms=shop.world.now_ms + 10_000)
        assert shop.describe(run)["status"] == "SUCCEEDED"
        assert tasks.calls == {"one": 1}


def test_the_reason_and_the_caller_are_in_the_history() -> None:
    shop, tasks, run = failed()
    tasks.broken.clear()
    retry(shop, run, "arn:aws:iam::111111111111:user/ann", reason="the bank is back")
    shop.world.run()
    events = shop.insist(lambda: shop.front.history("default", run))["events"]
    (event,) = [event for event in events if event["type"] == "ExecutionRedriven"]

    assert event["holdfast"]["reason"] == "the bank is back"
    assert event["holdfast"]["by"] == "arn:aws:iam::111111111111:user/ann"


def test_over_http_the_caller_is_the_verified_identity_and_never_the_body() -> None:
    shop, tasks, run = failed()
    site = Site(shop)
    tasks.broken.clear()
    path = f"/executions/{run}/retry"
    assert site.request("POST", path, {"by": "mallory"})[0] == 400
    http = {"method": "POST", "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    iam = {"iam": {"userArn": "arn:aws:iam::111111111111:user/ann"}}
    context = {"http": http, "stage": "$default", "requestId": "r1", "authorizer": iam}
    status, answer = site.request("POST", path, {"reason": "again"}, requestContext=context)
    shop.world.run()
    events = site.request("GET", f"/executions/{run}/history")[1]["events"]
    (event,) = [event for event in events if event["type"] == "ExecutionRedriven"]

    assert (status, answer["retry"]) == (200, 1)
    assert event["holdfast"]["by"] == iam["iam"]["userArn"]
    assert event["holdfast"]["reason"] == "again"


# -- it is refused ---------------------------------------------------------------------------------


def test_an_execution_that_runs_is_not_retried() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    run = shop.start()
    assert "runs" in refused(shop, run).message
    shop.world.run(until_ms=shop.world.now_ms + 1_000)

    assert "runs" in refused(shop, run).message


def test_an_execution_that_succeeded_is_not_retried() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    shop.world.run()

    assert "SUCCEEDED" in refused(shop, run).message


def test_an_execution_that_was_undone_is_not_retried() -> None:
    states, undo = part("paid")
    tasks = Tasks()
    shop = Shop(machine({**states, "paid": wait_for("paid")}, Holdfast={"Undo": [undo]}), tasks)
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.stop(run)
    shop.world.run()

    assert shop.describe(run)["status"] == "ABORTED"
    assert tasks.calls == {"undo paid": 1}
    error = refused(shop, run)
    assert "has undone" in error.message
    assert "another name" in error.help


TRAVEL = """
from holdfast import compensating, task, workflow

@task
def reserve() -> str: ...
@task
def release() -> None: ...
@task
def charge() -> str: ...

@workflow
def travel() -> str:
    with compensating() as undo:
        reserve()
        undo(release)
        return charge()

@workflow
def careful() -> str:
    try:
        with compensating() as undo:
            reserve()
            undo(release)
            return charge()
    except KeyError:
        return "no such card"
"""


@pytest.mark.parametrize("name", ["travel", "careful"])
def test_an_execution_that_undid_its_steps_after_an_error_is_not_retried(
    name: str, tmp_path: Path
) -> None:
    with loaded(tmp_path, TRAVEL) as module:
        shop, tasks, run = failed(compile_workflow(getattr(module, name)).asl)

    assert tasks.calls == {"reserve": 1, "charge": 1, "release": 1}
    error = refused(shop, run)
    assert "has undone" in error.message
    assert "another name" in error.help


@pytest.mark.parametrize("reason", [5, ["a"], {"a": 1}, True])
def test_a_reason_is_text(reason: Any) -> None:
    shop, _, run = failed()
    with pytest.raises(RequestError) as caught:
        retry(shop, run, reason=reason)

    assert caught.value.code == "HF233"


# -- a start whose name has failed -----------------------------------------------------------------


def test_a_start_with_the_name_of_a_failed_execution_says_so() -> None:
    shop, _, run = failed()
    request = {"workflow": "flow", "input": {"n": 1}, "name": "contract-7"}
    answer = shop.insist(lambda: shop.front.start("default", request, b"another."))

    assert answer == {
        "execution": run,
        "name": "contract-7",
        "workflow": "flow",
        "started": False,
        "status": "FAILED",
        "error": "CardDeclined",
    }
    assert Site(shop).request("POST", "/executions", request) == (200, answer)


def test_a_start_with_the_name_of_one_that_runs_or_has_succeeded_is_that_one() -> None:
    shop, tasks, run = failed()
    tasks.broken.clear()
    retry(shop, run)
    shop.world.run(until_ms=shop.world.now_ms)
    request = {"workflow": "flow", "input": {"n": 1}, "name": "contract-7"}
    same = {"execution": run, "name": "contract-7", "workflow": "flow"}
    shop.world.run()

    assert Site(shop).request("POST", "/executions", request) == (201, same)
    assert tasks.calls["reserve"] == 1


# -- the same through the Step Functions API -------------------------------------------------------


def test_a_failed_workflow_is_redriven_through_the_step_functions_api() -> None:
    shop, tasks, run = failed()
    workflows = {"flow": shop.definition}
    limit = PAYLOAD_BYTES_MAX
    service = Service(
        shop.programs, KEYS, "default", PLACE, limit, workflows, caller="arn:aws:iam::1:user/ann"
    )

    def ask(operation: str, **request: Any) -> Any:
        states = StatesApi(service)
        return shop.world.call(states.call(operation, request, bytes(CHANCE_BYTES)))

    arn = PLACE.execution("flow", "contract-7")
    assert ask("DescribeExecution", executionArn=arn)["redriveStatus"] == "REDRIVABLE"
    tasks.broken.clear()
    ask("RedriveExecution", executionArn=arn)
    shop.world.run()
    found = ask("DescribeExecution", executionArn=arn)

    events = shop.insist(lambda: shop.front.history("default", run))["events"]
    (event,) = [event for event in events if event["type"] == "ExecutionRedriven"]
    assert event["holdfast"]["by"] == "arn:aws:iam::1:user/ann"
    assert (found["status"], found["redriveCount"]) == ("SUCCEEDED", 1)
    assert json.loads(found["output"]) == {"done": "ship"}
    assert tasks.calls == {"reserve": 1, "charge": 2, "ship": 1}
    assert shop.describe(run)["status"] == "SUCCEEDED"
