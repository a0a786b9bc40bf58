"""One door: workflows seen as state machines by AWS's API, and the other way round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.core.run_ids import uuid_of
from holdfast.core.state import Parent
from holdfast.errors import RequestError
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.commands.lookup import NAMED_OWNERS_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.storage.definitions import Definition
from holdfast.sealed import Sealed
from holdfast.stepfunctions.api import CHANCE_BYTES, StatesApi
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.executions import start_nested
from holdfast.stepfunctions.faults import StatesFault
from holdfast_simulator.invariants import check
from tests.builders import CHANCE, KEYS, AnyTypes, Machine, Shop, add, chain, machine
from tests.unit.states_kit import PASS, PLACE, ROLE

FLOW = PLACE.machine("flow")
NAP = {"nap": {"Type": "Wait", "Seconds": 60, "End": True}}
SECRET = Sealed("k", b"x" * 60, 9).text


class BothApis:
    """One stack, asked through both APIs."""

    def __init__(self, definition: Machine, tasks: Any = add, types: Any = None) -> None:
        self.shop = Shop(definition, tasks)
        self.world = self.shop.world
        self._number = 0
        self.service = self._service({"flow": self.shop.definition}, types)

    def _service(self, workflows: dict[str, Definition], types: Any = None) -> Service:
        limit = PAYLOAD_BYTES_MAX
        programs = self.shop.programs
        return Service(programs, KEYS, "default", PLACE, limit, workflows, types or AnyTypes())

    def undeploy(self) -> None:
        self.service = self._service({})

    def states(self, operation: str, **request: Any) -> Any:
        self._number += 1
        chance = self._number.to_bytes(CHANCE_BYTES, "big")
        return self.world.call(StatesApi(self.service).call(operation, request, chance))

    def refusal(self, operation: str, **request: Any) -> tuple[str, str]:
        with pytest.raises(StatesFault) as caught:
            self.states(operation, **request)
        return caught.value.code, caught.value.message

    def create(self, name: str, text: str = PASS) -> str:
        made = self.states("CreateStateMachine", name=name, definition=text, roleArn=ROLE)
        return str(made["stateMachineArn"])

    def settle(self, seconds: int = 1) -> None:
        until_ms = self.world.now_ms + seconds * 1_000
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms


# -- workflows as state machines -------------------------------------------------------------------


def test_workflows_and_machines_are_listed_together_by_name() -> None:
    found = BothApis(chain(1))
    found.create("zoo")
    found.create("ant")
    listed = found.states("ListStateMachines")["stateMachines"]

    assert [one["name"] for one in listed] == ["ant", "flow", "zoo"]
    assert listed[1] == {
        "stateMachineArn": FLOW,
        "name": "flow",
        "type": "STANDARD",
        "creationDate": 0.0,
    }


def test_a_workflow_is_described_with_its_compiled_definition() -> None:
    found = BothApis(chain(1))
    shown = found.states("DescribeStateMachine", stateMachineArn=FLOW)

    assert json.loads(shown["definition"]) == chain(1)
    assert (shown["status"], shown["type"]) == ("ACTIVE", "STANDARD")
    assert "holdfast-worker" in shown["roleArn"]
    assert found.states("ListStateMachineVersions", stateMachineArn=FLOW) == {
        "stateMachineVersions": []
    }
    assert found.states("ListTagsForResource", resourceArn=FLOW) == {"tags": []}


def test_an_execution_started_by_aws_is_one_of_the_workflow() -> None:
    found = BothApis(chain(2))
    begun = found.states("StartExecution", stateMachineArn=FLOW, name="a1", input='{"n": 1}')
    arn = begun["executionArn"]
    young = found.states("DescribeExecution", executionArn=arn)
    assert (young["status"], young["input"]) == ("RUNNING", '{"n":1}')
    assert [
        row["name"] for row in found.states("ListExecutions", stateMachineArn=FLOW)["executions"]
    ] == ["a1"]
    found.world.run()
    ended = found.states("DescribeExecution", executionArn=arn)

    assert arn == PLACE.execution("flow", "a1")
    assert (ended["status"], ended["output"]) == ("SUCCEEDED", '{"n":3}')
    assert ended["stateMachineArn"] == FLOW
    assert found.shop.describe("a1")["output"] == {"n": 3}
    assert found.shop.describe(arn) == found.shop.describe("flow:a1")
    assert check(found.world) == []


@pytest.mark.parametrize("name", ["order-1", None])
def test_an_execution_started_by_holdfast_is_seen_by_aws(name: str | None) -> None:
    found = BothApis(machine(NAP))
    run = found.shop.start({"a": 1}, name)
    started_ms = found.world.now_ms
    found.settle()
    (row,) = found.states("ListExecutions", stateMachineArn=FLOW)["executions"]
    shown = found.states("DescribeExecution", executionArn=row["executionArn"])

    assert row["status"] == shown["status"] == "RUNNING"
    assert (shown["name"], shown["input"]) == (row["name"], '{"a":1}')
    assert shown["startDate"] * 1_000 == started_ms
    assert name in {None, row["name"]}
    assert found.shop.describe(row["executionArn"])["execution"] == run
    found.states("StopExecution", executionArn=row["executionArn"], error="Enough")
    found.settle()
    assert found.shop.describe(run)["error"] == "Enough"


@pytest.mark.parametrize("name", ["order-1", None])
def test_an_execution_that_no_worker_has_begun_is_described(name: str | None) -> None:
    found = BothApis(machine(NAP))
    run = found.shop.start({"a": 1}, name)
    arn = PLACE.execution("flow", name or uuid_of(run))
    shown = found.states("DescribeExecution", executionArn=arn)
    (event,) = found.states("GetExecutionHistory", executionArn=arn)["events"]

    assert (shown["status"], "input" in shown) == ("RUNNING", False)
    assert shown["startDate"] * 1_000 == found.world.now_ms
    assert event["type"] == "ExecutionStarted"


def test_a_history_is_the_same_through_both() -> None:
    found = BothApis(chain(1))
    run = found.shop.start({"n": 1})
    found.world.run()
    aws = found.states("GetExecutionHistory", executionArn=PLACE.execution("flow", "order-1"))
    own = found.shop.insist(lambda: found.shop.front.history("default", run))

    assert [event["type"] for event in aws["events"]] == [
        event["type"] for event in own["events"] if "id" in event
    ]
    assert "holdfast" not in aws["events"][0]


def test_the_definition_of_an_execution_is_the_one_that_it_started_with() -> None:
    found = BothApis(chain(1))
    found.shop.start({"n": 1})
    found.world.run()
    arn = PLACE.execution("flow", "order-1")
    shown = found.states("DescribeStateMachineForExecution", executionArn=arn)

    assert json.loads(shown["definition"]) == chain(1)
    assert shown["stateMachineArn"] == FLOW


def test_an_execution_of_a_workflow_that_is_deployed_no_more_is_still_found() -> None:
    found = BothApis(chain(1))
    found.shop.start({"n": 1})
    found.world.run()
    found.undeploy()
    arn = PLACE.execution("flow", "order-1")

    assert found.states("DescribeExecution", executionArn=arn)["status"] == "SUCCEEDED"
    assert found.refusal("StartExecution", stateMachineArn=FLOW)[0] == "StateMachineDoesNotExist"


def test_secrets_of_a_workflow_are_hidden_from_aws_too() -> None:
    def tell(_: RunTask) -> TaskSucceeded:
        return TaskSucceeded({"n": 1, "key": SECRET})

    found = BothApis(chain(1), tell)
    found.states(
        "StartExecution", stateMachineArn=FLOW, name="a1", input=json.dumps({"n": 1, "key": SECRET})
    )
    arn = PLACE.execution("flow", "a1")
    for _ in range(2):
        shown = found.states("DescribeExecution", executionArn=arn)
        history = found.states("GetExecutionHistory", executionArn=arn)
        assert SECRET not in json.dumps([shown, history])
        assert "<secret 9 bytes>" in json.dumps([shown, history])
        found.world.run()


def test_a_name_that_is_taken_is_refused_as_by_aws() -> None:
    found = BothApis(machine(NAP))
    request = {"stateMachineArn": FLOW, "name": "a1"}
    first = found.states("StartExecution", **request, input="1")
    assert found.states("StartExecution", **request, input="1") == first
    assert found.refusal("StartExecution", **request, input="2")[0] == "ExecutionAlreadyExists"
    found.world.run()

    assert found.refusal("StartExecution", **request, input="1")[0] == "ExecutionAlreadyExists"


def test_an_input_or_a_name_that_the_workflow_does_not_take_is_refused() -> None:
    class Strict(AnyTypes):
        def normalise_input(self, _tenant: str, _workflow: str, _value: Any) -> Any:
            raise RequestError("HF210", "the input of flow: n is missing")

    found = BothApis(chain(1), types=Strict())
    code, message = found.refusal("StartExecution", stateMachineArn=FLOW, input="{}")

    assert (code, "n is missing" in message) == ("InvalidExecutionInput", True)
    assert found.refusal("StartExecution", stateMachineArn=FLOW, name="caf\u00e9")[0] == (
        "InvalidName"
    )
    assert found.refusal("StartSyncExecution", stateMachineArn=FLOW)[0] == (
        "StateMachineTypeNotSupported"
    )


def test_a_task_of_a_state_machine_does_not_wait_for_the_end_of_a_workflow() -> None:
    found = BothApis(chain(1))
    parent: Parent = {"run": found.shop.start({"n": 1}), "entry": 1, "attempt": 1}
    request = {"stateMachineArn": FLOW, "input": "{}"}
    with pytest.raises(StatesFault) as caught:
        found.world.call(start_nested(found.service, request, bytes(CHANCE_BYTES), parent))

    assert caught.value.code == "StateMachineTypeNotSupported"
    assert "without .sync" in caught.value.message


# -- operations that change nothing ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("UpdateStateMachine", {"stateMachineArn": FLOW, "definition": PASS}),
        ("DeleteStateMachine", {"stateMachineArn": FLOW}),
        ("PublishStateMachineVersion", {"stateMachineArn": FLOW}),
        ("TagResource", {"resourceArn": FLOW, "tags": [{"key": "a", "value": "b"}]}),
        ("UntagResource", {"resourceArn": FLOW, "tagKeys": ["a"]}),
    ],
)
def test_a_workflow_is_changed_in_its_source_alone(operation: str, request_: Any) -> None:
    found = BothApis(chain(1))
    code, message = found.refusal(operation, **request_)

    assert code == "ValidationException"
    assert "change its source" in message


def test_a_machine_cannot_be_given_the_name_of_a_workflow() -> None:
    found = BothApis(chain(1))
    request = {"name": "flow", "definition": PASS, "roleArn": ROLE}
    code, message = found.refusal("CreateStateMachine", **request)

    assert code == "StateMachineAlreadyExists"
    assert "is a workflow" in message


def test_a_workflow_hides_a_machine_of_its_name_until_it_is_gone() -> None:
    found = BothApis(chain(1))
    deployed = found.service
    found.undeploy()
    found.create("flow")
    old = found.states("StartExecution", stateMachineArn=FLOW, name="old")["executionArn"]
    found.world.run()
    found.service = deployed
    shown = found.states("DescribeStateMachine", stateMachineArn=FLOW)
    assert json.loads(shown["definition"]) == chain(1)
    assert len(found.states("ListStateMachines")["stateMachines"]) == 1
    assert found.states("DescribeExecution", executionArn=old)["status"] == "SUCCEEDED"
    found.undeploy()

    assert found.states("DescribeStateMachine", stateMachineArn=FLOW)["definition"] == PASS


# -- executions of machines through the commands of Holdfast ---------------------------------------


def test_an_execution_of_a_machine_is_found_by_id_name_and_arn() -> None:
    found = BothApis(chain(1))
    arn = found.states("StartExecution", stateMachineArn=found.create("m"), name="a1")[
        "executionArn"
    ]
    assert found.shop.describe("a1")["status"] == "RUNNING"
    found.world.run()
    shown = found.shop.describe(arn)

    assert (shown["workflow"], shown["arn"]) == ("stateMachine:m", arn)
    for identifier in (shown["execution"], "a1", "m:a1", "stateMachine:m:a1"):
        assert found.shop.describe(identifier) == shown
        history = found.shop.insist(
            lambda one=identifier: found.shop.front.history("default", one)  # type: ignore[misc]
        )
        assert history["events"][0]["type"] == "ExecutionStarted"


def test_an_execution_without_a_name_is_found_by_the_one_that_aws_gave_it() -> None:
    found = BothApis(chain(1))
    arn = found.states("StartExecution", stateMachineArn=found.create("m"))["executionArn"]
    name = arn.rpartition(":")[2]
    assert found.shop.describe(name)["status"] == "RUNNING"
    found.world.run()

    assert found.shop.describe(name) == found.shop.describe(arn)
    wrong = [arn.replace(":m:", ":n:"), arn.replace("execution", "express"), "arn:aws:s3:::b"]
    for other in [*wrong, name[:-1] + "0"]:
        with pytest.raises(RequestError) as caught:
            found.world.call(found.shop.front.describe("default", other))
        assert caught.value.code == "HF207"


def test_a_bare_name_costs_no_read_for_each_of_very_many_machines() -> None:
    found = BothApis(chain(1))
    for number in range(NAMED_OWNERS_MAX + 1):
        machine_arn = found.create(f"m{number}")
    run = found.states("StartExecution", stateMachineArn=machine_arn, name="a1")
    before = found.world.services.effects.copy()
    with pytest.raises(RequestError) as caught:
        found.world.call(found.shop.front.describe("default", "a1"))

    assert caught.value.code == "HF207"
    assert "WORKFLOW:NAME" in caught.value.help
    assert found.world.services.effects - before == {"Get": 1, "Query": 2}
    shown = found.shop.describe(f"m{NAMED_OWNERS_MAX}:a1")
    assert shown == found.shop.describe(run["executionArn"])


def test_a_name_of_a_workflow_and_of_a_machine_is_ambiguous() -> None:
    found = BothApis(machine(NAP))
    found.shop.start(name="a1")
    found.states("StartExecution", stateMachineArn=found.create("m"), name="a1")
    with pytest.raises(RequestError) as caught:
        found.world.call(found.shop.front.stop("default", "a1", {}, CHANCE))

    assert (caught.value.code, caught.value.status) == ("HF214", 409)


def test_one_list_has_the_executions_of_workflows_and_of_machines() -> None:
    found = BothApis(machine(NAP))
    found.shop.start(name="order-1")
    begun = found.states("StartExecution", stateMachineArn=found.create("m"), name="a1")
    found.settle()

    def listed(**filters: str) -> list[tuple[str, str]]:
        page = found.shop.insist(lambda: found.shop.front.executions("default", filters))
        return sorted((row["workflow"], row["name"]) for row in page["executions"])

    assert listed() == [("flow", "order-1"), ("stateMachine:m", "a1")]
    assert listed(workflow="stateMachine:m") == listed(status="SUCCEEDED")
    assert listed(workflow="stateMachine:m") == [("stateMachine:m", "a1")]
    assert found.shop.describe("a1")["arn"] == begun["executionArn"]


def test_the_list_of_aws_counts_the_retries_of_a_workflow() -> None:
    broken = {"Broken"}

    def fragile(_: RunTask) -> TaskSucceeded | TaskFailed:
        return TaskFailed("Broken", "") if broken else TaskSucceeded({"n": 1})

    found = BothApis(chain(1), fragile)
    run = found.shop.start({"n": 1})
    found.world.run()
    broken.clear()
    found.shop.insist(lambda: found.shop.front.retry("default", run, {}, CHANCE))
    found.world.run()
    request = {"stateMachineArn": FLOW, "redriveFilter": "REDRIVEN"}
    (row,) = found.states("ListExecutions", **request)["executions"]

    assert (row["redriveCount"], row["status"]) == (1, "SUCCEEDED")


def test_an_execution_of_a_machine_is_stopped_and_retried_like_any_other() -> None:
    broken = {"Broken"}

    def fragile(_: RunTask) -> TaskSucceeded | TaskFailed:
        return TaskFailed("Broken", "") if broken else TaskSucceeded({})

    found = BothApis(chain(1), fragile)
    call = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:s3:listBuckets", "End": True}
    call["Parameters"] = {}
    text = json.dumps({"StartAt": "A", "States": {"A": call}})
    arn = found.states("StartExecution", stateMachineArn=found.create("m", text), name="a1")[
        "executionArn"
    ]
    found.world.run()
    assert found.shop.describe("a1")["status"] == "FAILED"
    broken.clear()
    answer = found.shop.insist(lambda: found.shop.front.retry("default", arn, {}, CHANCE))
    found.world.run()

    assert answer["from"] == ["A"]
    shown = found.states("DescribeExecution", executionArn=arn)
    assert (shown["status"], shown["redriveCount"]) == ("SUCCEEDED", 1)
