"""SendTaskSuccess, SendTaskFailure and SendTaskHeartbeat: the holder of a token answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.limits import HEARTBEAT_RACES_MAX
from holdfast.runtime.commands.tokens import Token, make_token
from holdfast.runtime.effects import (
    Effect,
    Get,
    Put,
    PutIfAbsent,
    Replace,
    RunTask,
    TaskFailed,
    TaskSucceeded,
)
from holdfast.runtime.storage.keys import heartbeat, inbox
from holdfast_simulator.world import SimulatorWorld, When
from tests.builders import KEYS
from tests.unit.states_world import Office, states

TIMED_OUT = ("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
INVALID = ("InvalidToken", "Invalid Token: 'Invalid token'")


def flow(**fields: Any) -> dict[str, Any]:
    return states(
        Ask={
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Arguments": {"QueueUrl": "q", "MessageBody": "{% $states.context.Task.Token %}"},
            **fields,
        }
    )


class Clerk:
    """Takes the message that holds the token."""

    def __init__(self, **fields: Any) -> None:
        self.token = ""
        self.office = Office(self._call)
        self.execution = self.office.start(self.office.create(flow(**fields)))

    def _call(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        self.token = effect.arguments["MessageBody"]
        return TaskSucceeded({"MessageId": "m1"})

    def send(self, operation: str, **request: Any) -> Any:
        return self.office.call(operation, taskToken=self.token, **request)

    def refusal(self, operation: str, **request: Any) -> tuple[str, str]:
        return self.office.refusal(operation, taskToken=self.token, **request)

    def ended(self) -> Any:
        self.office.wait()
        return self.office.describe(self.execution)


def test_a_success_continues_with_the_output() -> None:
    clerk = Clerk()
    clerk.office.wait(1)
    assert clerk.send("SendTaskSuccess", output='{"n": 1}') == {}
    assert json.loads(clerk.ended()["output"]) == {"n": 1}
    assert clerk.office.types(clerk.execution)[2:6] == [
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
    ]


@pytest.mark.parametrize(
    "given", [{}, {"error": "E"}, {"cause": "c"}, {"error": "E", "cause": "c"}]
)
def test_a_failure_has_the_given_error_and_cause(given: dict[str, str]) -> None:
    clerk = Clerk()
    clerk.office.wait(1)
    clerk.send("SendTaskFailure", **given)
    found = clerk.ended()
    assert found["status"] == "FAILED"
    assert {key: found[key] for key in ("error", "cause") if key in found} == given


def test_a_task_is_answered_once() -> None:
    clerk = Clerk()
    clerk.office.wait(1)
    clerk.send("SendTaskSuccess", output="1")
    assert clerk.refusal("SendTaskSuccess", output="2") == TIMED_OUT
    assert clerk.send("SendTaskSuccess", output="1") == {}  # A caller without an answer asks again
    assert clerk.ended()["output"] == "1"
    for operation, request in (
        ("SendTaskSuccess", {"output": "1"}),
        ("SendTaskFailure", {}),
        ("SendTaskHeartbeat", {}),
    ):
        assert clerk.refusal(operation, **request) == TIMED_OUT


def test_a_task_of_an_execution_that_was_stopped_has_timed_out() -> None:
    clerk = Clerk()
    clerk.office.wait(1)
    clerk.office.call("StopExecution", executionArn=clerk.execution)
    clerk.office.wait(1)
    assert clerk.refusal("SendTaskSuccess", output="1") == TIMED_OUT


def test_an_output_that_is_no_json() -> None:
    clerk = Clerk()
    clerk.office.wait(1)
    code, message = clerk.refusal("SendTaskSuccess", output="{")
    assert code == "InvalidOutput"
    assert message.startswith("Invalid Output: 'com.fasterxml.jackson.core.io.JsonEOFException: ")


@pytest.mark.parametrize("token", ["nonsense", "AAAA", " "])
def test_an_invalid_token_is_refused(token: str) -> None:
    assert Office().refusal("SendTaskHeartbeat", taskToken=token) == INVALID


def test_a_token_of_another_tenant_is_invalid() -> None:
    token = make_token(Token("other", "r1", 0, 1, 2_000_000_000_000), KEYS)
    assert Office().refusal("SendTaskSuccess", taskToken=token, output="1") == INVALID


def test_an_expired_token_has_timed_out() -> None:
    token = make_token(Token("default", "r1", 0, 1, 1_000), KEYS)
    assert Office().refusal("SendTaskSuccess", taskToken=token, output="1") == TIMED_OUT


def test_heartbeats_keep_a_task_alive() -> None:
    clerk = Clerk(HeartbeatSeconds=30)
    for _ in range(5):
        clerk.office.wait(20)
        clerk.send("SendTaskHeartbeat")
    assert clerk.office.describe(clerk.execution)["status"] == "RUNNING"
    clerk.office.wait(60)
    found = clerk.office.describe(clerk.execution)
    assert (found["status"], found["error"]) == ("FAILED", "States.Timeout")
    assert clerk.refusal("SendTaskHeartbeat") == TIMED_OUT


@pytest.mark.parametrize("beats", [0, 1, 3])
def test_a_heartbeat_that_lands_after_a_newer_one_takes_nothing_back(beats: int) -> None:
    """Its write is under way for long, and another comes meanwhile."""
    clerk = Clerk(HeartbeatSeconds=30)
    clerk.office.wait(1)
    for _ in range(beats):
        clerk.send("SendTaskHeartbeat")
        clerk.office.wait(1)
    world = clerk.office.world
    late = clerk.office.api.call("SendTaskHeartbeat", {"taskToken": clerk.token}, b"")
    effect = next(late)
    while not isinstance(effect, PutIfAbsent | Replace):
        effect = late.send(world.perform(effect))
    clerk.office.wait(10)
    clerk.send("SendTaskHeartbeat")
    with pytest.raises(StopIteration):
        while True:
            effect = late.send(world.perform(effect))
    (beat,) = [item for item in world.services.items("mail") if item["sk"] == heartbeat(0)]

    assert beat["at"] == world.now_ms


def test_a_heartbeat_that_always_loses_to_others_gives_up() -> None:
    clerk = Clerk(HeartbeatSeconds=30)
    clerk.office.wait(1)
    clerk.send("SendTaskHeartbeat")
    clerk.office.wait(1)
    races: list[int] = []

    def be_faster(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, Replace):
            races.append(effect.seen)
            assert len(races) < 100
            older = {**effect.item, "rv": effect.seen + 1, "at": int(effect.item["at"]) - 1}
            world.services.perform(Put("mail", older))

    clerk.office.world.hook = be_faster
    assert clerk.refusal("SendTaskHeartbeat")[0] == "ThrottlingException"
    assert len(races) == HEARTBEAT_RACES_MAX


def test_a_heartbeat_of_older_code_is_put_over() -> None:
    clerk = Clerk(HeartbeatSeconds=30)
    clerk.office.wait(1)
    world = clerk.office.world
    (log,) = {str(item["pk"]) for item in world.services.items("executions")}
    place = {"pk": inbox("default", log.partition("#")[2]), "sk": heartbeat(0)}
    world.perform(Put("mail", {**place, "f": 1, "at": world.now_ms - 20_000, "ttl": 1}))
    for rv in (1, 2):
        clerk.office.wait(1)
        clerk.send("SendTaskHeartbeat")
        found = world.perform(Get("mail", **place))
        assert (found["at"], found["rv"]) == (world.now_ms, rv)


def test_an_answer_may_be_faster_than_the_record_of_the_call() -> None:
    """The called service answers before the call returns."""
    answered: list[str] = []

    def call(effect: RunTask) -> TaskSucceeded | TaskFailed:
        token = effect.arguments["MessageBody"]
        answered.append(token)
        office.call("SendTaskSuccess", taskToken=token, output='"soon"')
        return TaskSucceeded({"MessageId": "m1"})

    office = Office(call)
    execution = office.start(office.create(flow()))
    office.wait(5)
    assert office.describe(execution)["output"] == '"soon"'
    assert len(answered) == 1
    assert "TaskSubmitted" in office.types(execution)
