"""Every member of AWS's model of the API: those of requests are read, those of responses returned.

One tour calls every operation with all of its members, on machines whose executions end in every
way. It notes which members of the requests the product reads, and which members the responses have.
Botocore's model says which ones there are. What is missing stands in the sets of this file; the
reasons are in `docs/reference/compatibility.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.loaders import Loader

from holdfast.runtime.effects import HttpExchange, RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.stepfunctions import shapes
from holdfast.stepfunctions.faults import StatesFault
from tests.unit.states_kit import PLACE, ROLE
from tests.unit.states_world import PASS, WAIT, Office, states

MODEL: Final[Any] = Loader().load_data("stepfunctions/2016-11-23/service-2")
SHAPES: Final[Any] = MODEL["shapes"]
LAMBDA: Final = "arn:aws:lambda:eu-west-1:123456789012:function:f"
INVOKE: Final = "arn:aws:states:::lambda:invoke"
SEND: Final = "arn:aws:states:::sqs:sendMessage"
ROOT: Final = Path(__file__).parents[2]
COMPATIBILITY: Final = ROOT / "docs" / "reference" / "compatibility.md"
SOURCES: Final = ROOT / "src" / "holdfast" / "stepfunctions"

#: Members of requests that are checked and then have no effect.
UNREAD: Final = {"TestState.stateConfiguration.errorCausedByState"}
#: Members of responses that never occur, without those of the events below.
NEVER: Final = {
    "DescribeMapRun.executionCounts.failuresNotRedrivable",
    "DescribeMapRun.itemCounts.failuresNotRedrivable",
    "DescribeStateMachine.label",
    "GetExecutionHistory.events[].activityTimedOutEventDetails.cause",
    "GetExecutionHistory.events[].executionTimedOutEventDetails.cause",
    "GetExecutionHistory.events[].executionTimedOutEventDetails.error",
    "GetExecutionHistory.events[].lambdaFunctionTimedOutEventDetails.cause",
    "GetExecutionHistory.events[].taskTimedOutEventDetails.cause",
}
#: Types of events that never occur.
NO_EVENT: Final = {"LambdaFunctionScheduleFailed", "LambdaFunctionStartFailed", "TaskStartFailed"}
#: Exceptions that are never raised.
NO_EXCEPTION: Final = {
    "ActivityLimitExceeded",
    "ActivityWorkerLimitExceeded",
    "ExecutionLimitExceeded",
    "InvalidTracingConfiguration",
    "KmsAccessDeniedException",
    "KmsInvalidStateException",
    "KmsThrottlingException",
    "StateMachineLimitExceeded",
    "TaskDoesNotExist",
}


# -- the model -------------------------------------------------------------------------------------


def paths(shape_name: str, before: str) -> Iterator[str]:
    """Yield the path of each member below a shape; those of lists have [] after the name."""
    shape = SHAPES[shape_name]
    match shape["type"]:
        case "structure":
            for name, member in shape["members"].items():
                yield f"{before}.{name}"
                yield from paths(member["shape"], f"{before}.{name}")
        case "list":
            yield from paths(shape["member"]["shape"], f"{before}[]")


def paths_of(part: str) -> set[str]:
    return {
        path
        for name, operation in MODEL["operations"].items()
        for path in paths(operation[part]["shape"], name)
    }


def paths_in(value: Any, before: str, shape_name: str) -> Iterator[str]:
    """Yield the paths of a response. A map of the model is one member, whatever its keys."""
    match value:
        case dict() if SHAPES[shape_name]["type"] == "structure":
            for name, member in value.items():
                yield f"{before}.{name}"
                found = SHAPES[shape_name]["members"].get(name)
                if found is not None:
                    yield from paths_in(member, f"{before}.{name}", found["shape"])
        case list():
            for item in value:
                yield from paths_in(item, f"{before}[]", SHAPES[shape_name]["member"]["shape"])


# -- what is read ----------------------------------------------------------------------------------


class Noted(dict[str, Any]):
    """A request that notes each member that is read."""

    def __init__(self, given: Mapping[str, Any], before: str, read: set[str]) -> None:
        super().__init__({key: noted(item, f"{before}.{key}", read) for key, item in given.items()})
        self._before, self._read = before, read

    def _note(self, keys: Iterable[object]) -> None:
        self._read |= {f"{self._before}.{key}" for key in keys}

    def __getitem__(self, key: str) -> Any:
        self._note([key])
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._note([key])
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note([key])
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._note(super().keys())
        return super().__iter__()

    def keys(self) -> Any:
        self._note(super().keys())
        return super().keys()

    def values(self) -> Any:
        self._note(super().keys())
        return super().values()

    def items(self) -> Any:
        self._note(super().keys())
        return super().items()


def noted(value: Any, before: str, read: set[str]) -> Any:
    match value:
        case dict():
            return Noted(value, before, read)
        case list():
            return [noted(item, f"{before}[]", read) for item in value]
        case _:
            return value


# -- the tour --------------------------------------------------------------------------------------


class Tour:
    """Calls the API, and notes the members of requests and responses."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.returned: set[str] = set()
        self.events: set[str] = set()
        self.office = Office(self._perform)

    def _perform(self, task: RunTask) -> TaskResult:
        arguments = task.arguments if isinstance(task.arguments, dict) else {}
        if "describeLogGroups" in task.name:
            return TaskSucceeded({"LogGroups": [{"LogGroupName": "log"}]})
        match arguments.get("MessageBody", arguments.get("do")):
            case "http":
                exchange = HttpExchange("PUT", "https://x/", {}, "sent", 200, {}, "answered")
                return TaskSucceeded({}, exchange=exchange)
            case "fail":
                return TaskFailed("Broken", "a tooth")
            case "late":
                return TaskFailed("States.Timeout", None)
            case _:
                return TaskSucceeded({"StatusCode": 200, "Payload": 1})

    def call(self, operation: str, **request: Any) -> Any:
        answer = self.office.call(operation, **request)
        shape = MODEL["operations"][operation].get("output", {}).get("shape")
        self.returned |= set(paths_in(answer, operation, shape))
        return answer

    def ran(self, machine: str, data: Any = None, **request: Any) -> str:
        given = {} if data is None else {"input": json.dumps(data)}
        execution = self.call("StartExecution", stateMachineArn=machine, **given, **request)
        return str(execution["executionArn"])

    def look(self, execution: str) -> Any:
        """Describe an execution with its history, in all forms."""
        answer = self.call(
            "GetExecutionHistory",
            executionArn=execution,
            maxResults=1000,
            reverseOrder=False,
            includeExecutionData=True,
        )
        self.events |= {event["type"] for event in answer["events"]}
        self.call(
            "DescribeStateMachineForExecution", executionArn=execution, includedData="ALL_DATA"
        )
        return self.call("DescribeExecution", executionArn=execution, includedData="ALL_DATA")


def task(resource: str, **fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": resource, **fields}


def sent(body: str, **fields: Any) -> dict[str, Any]:
    return task(SEND, Arguments={"QueueUrl": "q", "MessageBody": body}, **fields)


_NUMBERS: Final = count()


def branch(state: Mapping[str, Any]) -> dict[str, Any]:
    name = f"In{next(_NUMBERS)}"  # AWS refuses two states of one name, wherever they are
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


def each(state: Mapping[str, Any], mode: str = "INLINE", **fields: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"Mode": mode}
    if mode == "DISTRIBUTED":
        config["ExecutionType"] = "STANDARD"
    processor = {"ProcessorConfig": config, **branch(state)}
    return {"Type": "Map", "Items": "{% [1, 2] %}", "ItemProcessor": processor, **fields}


def failing() -> dict[str, Any]:
    """Return a branch that waits, so that the others have begun, and fails."""
    wait, fail = f"In{next(_NUMBERS)}", f"In{next(_NUMBERS)}"
    waits = {"Type": "Wait", "Seconds": 20, "Next": fail}
    return {"StartAt": wait, "States": {wait: waits, fail: {"Type": "Fail", "Error": "E"}}}


CREDENTIALS: Final = {"RoleArn": ROLE}
#: Machines whose executions end on their own.
ENDING: Final[Mapping[str, Mapping[str, Any]]] = {
    "whole": states(
        Given={"Type": "Pass", "Assign": {"a": 1}},
        Chosen={"Type": "Choice", "Choices": [{"Condition": "{% $a = 1 %}", "Next": "Waited"}]},
        Waited={"Type": "Wait", "Seconds": 1},
        Both={"Type": "Parallel", "Branches": [branch(PASS), branch(PASS)]},
        Each=each(PASS),
        Sent=sent("x", TimeoutSeconds=9, HeartbeatSeconds=5, Credentials=CREDENTIALS),
        Called=task(LAMBDA, Arguments={}, TimeoutSeconds=9, Credentials=CREDENTIALS),
        Done={"Type": "Succeed"},
    ),
    "lambda fails": states(Called=task(LAMBDA, Arguments={"do": "fail"})),
    "lambda late": states(Called=task(LAMBDA, Arguments={"do": "late"}, TimeoutSeconds=5)),
    "task fails": states(Sent=sent("fail")),
    "task late": states(Sent=sent("late", TimeoutSeconds=5)),
    "wrong": states(Sent={"Type": "Pass", "Output": "{% $nothing.x + 'a' %}"}),
    "failed": states(Failed={"Type": "Fail", "Error": "E", "Cause": "c"}),
    "map fails": states(Each=each(sent("fail"))),
    "branch fails": states(
        Both={"Type": "Parallel", "Branches": [branch(sent("fail")), branch(WAIT)]}
    ),
    "nested": states(
        Both={
            "Type": "Parallel",
            "Branches": [
                branch({"Type": "Parallel", "Branches": [branch(WAIT)]}),
                branch(each(WAIT)),
                branch(each(WAIT, "DISTRIBUTED", Label="Deep")),
                failing(),
            ],
        }
    ),
    "item late": states(Each=each(WAIT, MaxConcurrency=1)) | {"TimeoutSeconds": 5},
    "run fails": states(Each=each(sent("fail"), "DISTRIBUTED", Label="Each")),
    "run": states(Each=each(PASS, "DISTRIBUTED", Label="Each")),
}
#: Machines whose executions wait, until they are stopped.
WAITING: Final[Mapping[str, Mapping[str, Any]]] = {
    "wait": states(Waited=WAIT),
    "branch waits": states(Both={"Type": "Parallel", "Branches": [branch(WAIT)]}),
    "map waits": states(Each=each(WAIT)),
    "run waits": states(Each=each(WAIT, "DISTRIBUTED", Label="Each")),
}
NAMES: Final = {name: name.replace(" ", "-") for name in (*ENDING, *WAITING)}
ARN_OF: Final = {name: PLACE.machine(short) for name, short in NAMES.items()}
LOGGING: Final = {
    "level": "ALL",
    "includeExecutionData": True,
    "destinations": [
        {
            "cloudWatchLogsLogGroup": {
                "logGroupArn": "arn:aws:logs:eu-west-1:123456789012:log-group:log:*"
            }
        }
    ],
}
ENCRYPTION: Final = {
    "type": "CUSTOMER_MANAGED_KMS_KEY",
    "kmsKeyId": "key",
    "kmsDataKeyReusePeriodSeconds": 300,
}
TAGS: Final = [{"key": "k", "value": "v"}]


def machines(tour: Tour) -> None:
    for name, machine in {**ENDING, **WAITING}.items():
        tour.call(
            "CreateStateMachine",
            name=NAMES[name],
            definition=json.dumps(machine),
            roleArn=ROLE,
            type="STANDARD",
            loggingConfiguration=LOGGING,
            tags=TAGS,
            tracingConfiguration={"enabled": True},
            publish=True,
            versionDescription="first",
            encryptionConfiguration=ENCRYPTION,
        )
    arn = ARN_OF["whole"]
    whole = {**ENDING["whole"], "Comment": "second"}
    updated = tour.call(
        "UpdateStateMachine",
        stateMachineArn=arn,
        definition=json.dumps(whole),
        roleArn=ROLE,
        loggingConfiguration={**LOGGING, "level": "ERROR"},
        tracingConfiguration={"enabled": False},
        publish=True,
        versionDescription="second",
        encryptionConfiguration={**ENCRYPTION, "kmsKeyId": "other"},
    )
    tour.call(
        "PublishStateMachineVersion",
        stateMachineArn=arn,
        revisionId=updated["revisionId"],
        description="again",
    )
    tour.call("DescribeStateMachine", stateMachineArn=arn, includedData="ALL_DATA")
    version = PLACE.version(NAMES["whole"], 1)
    tour.call("DescribeStateMachine", stateMachineArn=version, includedData="ALL_DATA")
    aliases(tour, arn)
    for operation in ("ListStateMachineVersions", "ListStateMachineAliases"):
        pages(tour, operation, stateMachineArn=arn)
    pages(tour, "ListStateMachines")
    tour.call("TagResource", resourceArn=arn, tags=[{"key": "l", "value": "w"}])
    tour.call("UntagResource", resourceArn=arn, tagKeys=["k"])
    tour.call("ListTagsForResource", resourceArn=arn)
    tour.call(
        "ValidateStateMachineDefinition",
        definition=json.dumps({**ENDING["whole"], "StartAt": "Nowhere"}),
        type="EXPRESS",
        severity="WARNING",
        maxResults=1,
    )


def aliases(tour: Tour, machine: str) -> None:
    name = machine.rpartition(":")[2]
    routes = [
        {"stateMachineVersionArn": PLACE.version(name, number), "weight": 50} for number in (1, 2)
    ]
    for alias in ("live", "next"):
        tour.call(
            "CreateStateMachineAlias", name=alias, description="d", routingConfiguration=routes
        )
    live = PLACE.alias(name, "live")
    tour.call(
        "UpdateStateMachineAlias",
        stateMachineAliasArn=live,
        description="e",
        routingConfiguration=routes[::-1],
    )
    tour.call("DescribeStateMachineAlias", stateMachineAliasArn=live)


def pages(tour: Tour, operation: str, **request: Any) -> None:
    """Read two pages of one row each."""
    first = tour.call(operation, maxResults=1, **request)
    tour.call(operation, maxResults=1, nextToken=first["nextToken"], **request)


def executions(tour: Tour) -> None:
    live = PLACE.alias(NAMES["whole"], "live")
    whole = tour.ran(live, {"x": 1}, name="one", traceHeader="Root=1-5759e988-bd862e3fe1be46a9")
    ended = {name: tour.ran(ARN_OF[name]) for name in ENDING}
    waiting = {name: tour.ran(ARN_OF[name]) for name in WAITING}
    tour.ran(ARN_OF["whole"], name="two")
    tour.office.wait(60)
    for execution in (whole, *ended.values()):
        tour.look(execution)
    pages(tour, "GetExecutionHistory", executionArn=whole)
    map_run = tour.call("ListMapRuns", executionArn=waiting["run waits"])["mapRuns"][0]["mapRunArn"]
    tour.call(
        "UpdateMapRun",
        mapRunArn=map_run,
        maxConcurrency=3,
        toleratedFailureCount=1,
        toleratedFailurePercentage=5.0,
    )
    for execution in waiting.values():
        tour.call("StopExecution", executionArn=execution, error="Halt", cause="enough")
    tour.office.wait(60)
    for execution in waiting.values():
        tour.look(execution)
    pages(tour, "ListExecutions", stateMachineArn=ARN_OF["whole"], statusFilter="SUCCEEDED")
    tour.call("ListExecutions", stateMachineArn=ARN_OF["run waits"], redriveFilter="NOT_REDRIVEN")
    redrives(tour, ended["task fails"], ended["run fails"])


def redrives(tour: Tour, failed: str, run_failed: str) -> None:
    for execution in (failed, run_failed):
        tour.call("RedriveExecution", executionArn=execution, clientToken="once")
    tour.office.wait(60)
    tour.look(failed)
    tour.look(run_failed)
    tour.call(
        "ListExecutions",
        stateMachineArn=ARN_OF["task fails"],
        statusFilter="FAILED",
        redriveFilter="REDRIVEN",
    )
    tour.ran(ARN_OF["run fails"])
    two_runs = {**states(A=each(PASS, "DISTRIBUTED"), B=each(PASS, "DISTRIBUTED"))}
    twice = tour.ran(tour.office.create(two_runs, "twice"))
    tour.office.wait(60)
    pages(tour, "ListMapRuns", executionArn=twice)
    run = tour.call("ListMapRuns", executionArn=run_failed)["mapRuns"][0]["mapRunArn"]
    tour.call("DescribeMapRun", mapRunArn=run)
    children = tour.call("ListExecutions", mapRunArn=run)["executions"]
    tour.look(children[0]["executionArn"])


def activities(tour: Tour) -> None:
    for name in ("pack", "spare"):
        tour.call("CreateActivity", name=name, tags=TAGS, encryptionConfiguration=ENCRYPTION)
    pages(tour, "ListActivities")
    arn = PLACE.activity("pack")
    tour.call("DescribeActivity", activityArn=arn)
    timed = {"TimeoutSeconds": 100, "HeartbeatSeconds": 20}
    machine = tour.office.create(states(Packed=task(arn, Arguments={"n": 1}, **timed)), "packing")
    done, failed, late, gone = [tour.ran(machine) for _ in range(4)]
    tour.office.wait(1)

    def taken() -> str:
        found = tour.call("GetActivityTask", activityArn=arn, workerName="w")
        return str(found["taskToken"])

    tour.call("SendTaskHeartbeat", taskToken=(first := taken()))
    tour.call("SendTaskSuccess", taskToken=first, output="1")
    tour.call("SendTaskFailure", taskToken=taken(), error="E", cause="c")
    taken()
    tour.call("DeleteActivity", activityArn=arn)
    tour.office.wait(200)
    for execution in (done, failed, late, gone):
        tour.look(execution)


def callbacks(tour: Tour) -> None:
    waits = task(f"{SEND}.waitForTaskToken", Arguments={"QueueUrl": "q", "MessageBody": "x"})
    fails = task(f"{SEND}.waitForTaskToken", Arguments={"QueueUrl": "q", "MessageBody": "fail"})
    waits["HeartbeatSeconds"] = 5
    for name, state in (("waits", waits), ("fails", fails)):
        execution = tour.ran(tour.office.create(states(Asked=state), name))
        tour.office.wait(30)
        tour.look(execution)


def express(tour: Tour) -> None:
    machine = tour.office.create(states(A=PASS), "quick", type="EXPRESS")
    fails = tour.office.create(
        states(A=ENDING["failed"]["States"]["Failed"]), "sad", type="EXPRESS"
    )
    for arn in (machine, fails):
        tour.call(
            "StartSyncExecution",
            stateMachineArn=arn,
            name="now",
            input="{}",
            traceHeader="Root=1-5759e988-bd862e3fe1be46a9",
            includedData="ALL_DATA",
        )


READER: Final = {
    "Resource": "arn:aws:states:::s3:getObject",
    "ReaderConfig": {"InputType": "JSON", "ItemsPointer": "/a"},
    "Parameters": {"Bucket": "b", "Key": "k"},
}


def trials(tour: Tour) -> None:
    base: dict[str, Any] = {"inspectionLevel": "TRACE", "roleArn": ROLE}
    base |= {"input": '{"list": [1, 2]}', "variables": '{"v": 1}'}
    retry = [{"ErrorEquals": ["E"], "MaxAttempts": 1}]
    catch = [{"ErrorEquals": ["E"], "Next": "B"}]
    whole = states(A=sent("x", Retry=retry, Catch=catch), B=PASS)
    for retries in (0, 1):
        tour.call(
            "TestState",
            definition=json.dumps(whole),
            stateName="A",
            mock={"errorOutput": {"error": "E", "cause": "c"}, "fieldValidationMode": "NONE"},
            context='{"State": {"Name": "A"}}',
            stateConfiguration={"retrierRetryCount": retries},
            **base,
        )
    http = task("arn:aws:states:::http:invoke", Arguments={"do": "http"}, End=True)
    http["QueryLanguage"] = "JSONata"
    tour.call("TestState", definition=json.dumps(http), revealSecrets=False, **base)
    path = sent(
        "x", End=True, Parameters={"QueueUrl": "q", "MessageBody": "x"}, ResultSelector={"a.$": "$"}
    )
    del path["Arguments"]
    mock = {"result": "{}", "fieldValidationMode": "NONE"}
    tour.call("TestState", definition=json.dumps(path), mock=mock, **base)
    listed = each(PASS, "DISTRIBUTED", End=True, ItemsPath="$.list", ItemSelector={"x": 1})
    del listed["Items"]
    listed |= {"ItemBatcher": {"MaxItemsPerBatch": 1}, "ToleratedFailureCount": 1}
    listed |= {"ToleratedFailurePercentage": 5, "MaxConcurrency": 2}
    for more in ({}, {"ItemReader": READER}):
        state = {name: item for name, item in listed.items() if not (more and name == "ItemsPath")}
        tour.call(
            "TestState",
            definition=json.dumps({**state, **more}),
            mock={"result": "[1]"},
            stateConfiguration={
                "mapIterationFailureCount": 0,
                "errorCausedByState": "In",
                "mapItemReaderData": '{"a": [1]}',
            },
            **base,
        )


def ends(tour: Tour) -> None:
    name = NAMES["whole"]
    for alias in ("live", "next"):
        tour.call("DeleteStateMachineAlias", stateMachineAliasArn=PLACE.alias(name, alias))
    tour.call("DeleteStateMachineVersion", stateMachineVersionArn=PLACE.version(name, 1))
    tour.call("DeleteStateMachine", stateMachineArn=ARN_OF["whole"])


STOPS: Final[tuple[Callable[[Tour], None], ...]] = (
    machines,
    executions,
    activities,
    callbacks,
    express,
    trials,
    ends,
)


@cache
def tour() -> Tour:
    """Return the tour after all of its stops."""
    made = Tour()
    checked = shapes.require_valid

    def noting(operation: str, request: Any, **settings: Any) -> Any:
        return noted(checked(operation, request, **settings), operation, made.read)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "require_valid", noting)
        for stop in STOPS:
            stop(made)
    return made


def test_every_member_of_a_request_is_read() -> None:
    assert paths_of("input") - tour().read == UNREAD


def test_every_member_of_a_response_is_returned_and_no_other() -> None:
    there = paths_of("output")
    assert tour().returned - there == set()
    of_events = tuple(
        f"GetExecutionHistory.events[].{name[0].lower()}{name[1:]}EventDetails" for name in NO_EVENT
    )
    missing = there - tour().returned
    assert {path for path in missing if not path.startswith(of_events)} == NEVER


def test_every_type_of_event_occurs() -> None:
    assert set(SHAPES["HistoryEventType"]["enum"]) - tour().events == NO_EVENT


def test_every_exception_is_raised_somewhere_and_none_has_a_status_of_its_own() -> None:
    sources = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")]
    exceptions = {name: shape for name, shape in SHAPES.items() if shape.get("exception")}
    unnamed = {name for name in exceptions if not any(f'"{name}"' in one for one in sources)}
    assert unnamed == NO_EXCEPTION
    assert not any("httpStatusCode" in shape.get("error", {}) for shape in exceptions.values())


def extra_of(operation: str, **request: Any) -> dict[str, Any]:
    """Return the further members of the exception, without its message."""
    with pytest.raises(StatesFault) as raised:
        tour().office.call(operation, **request)
    assert SHAPES[raised.value.code]["members"].keys() >= raised.value.extra.keys()
    return raised.value.extra


def test_every_reason_of_a_refusal_is_told() -> None:
    machine = ARN_OF["run"]
    ran = tour().office.start(machine)
    tour().office.wait(30)
    [ended] = tour().office.call("ListMapRuns", executionArn=ran)["mapRuns"]
    route = {"stateMachineVersionArn": PLACE.version(NAMES["run"], 1), "weight": 99}
    told = [
        extra_of("DescribeStateMachine", stateMachineArn=f"{machine}/Each"),
        extra_of("StartExecution", stateMachineArn=f"{machine}/Each"),
        extra_of("UpdateMapRun", mapRunArn=ended["mapRunArn"]),
        extra_of("ListExecutions"),
        extra_of("UpdateStateMachineAlias", stateMachineAliasArn=f"{machine}:live"),
        extra_of("UpdateMapRun", mapRunArn=ended["mapRunArn"], maxConcurrency=1),
        extra_of("CreateStateMachineAlias", name="live", routingConfiguration=[route]),
    ]
    assert [one["reason"] for one in told] == [
        "API_DOES_NOT_SUPPORT_LABELED_ARNS",
        "API_DOES_NOT_SUPPORT_LABELED_ARNS",
        "MISSING_REQUIRED_PARAMETER",
        "MISSING_REQUIRED_PARAMETER",
        "MISSING_REQUIRED_PARAMETER",
        "CANNOT_UPDATE_COMPLETED_MAP_RUN",
        "INVALID_ROUTING_CONFIGURATION",
    ]
    assert {one["reason"] for one in told} == {*SHAPES["ValidationExceptionReason"]["enum"]}


def test_an_exception_names_its_resource() -> None:
    many = [{"key": f"k{number}", "value": ""} for number in range(51)]
    machine, gone = ARN_OF["run"], PLACE.machine("gone")
    assert extra_of("TagResource", resourceArn=machine, tags=many) == {"resourceName": machine}
    created = extra_of("CreateActivity", name="a", tags=many)
    assert created == {"resourceName": PLACE.activity("a")}
    assert extra_of("TagResource", resourceArn=gone, tags=TAGS) == {"resourceName": gone}


@pytest.mark.parametrize("name", sorted(UNREAD | NEVER | NO_EVENT | NO_EXCEPTION))
def test_what_never_occurs_is_in_the_documentation(name: str) -> None:
    page = COMPATIBILITY.read_text(encoding="utf-8")
    section = page.partition("## What never occurs")[2].partition("\n## ")[0]
    last, _, member = name.removesuffix(".cause").removesuffix(".error").rpartition(".")
    event = re.fullmatch(r"(.)(.*)EventDetails", member)
    assert f"`{event[1].upper()}{event[2]}`" in section if event else f"`{member}`" in section, last
