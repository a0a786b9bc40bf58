"""Tasks of groups: docs/how-to/groups.md. What crosses, and what becomes of a call that fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from holdfast import Lambda, task
from holdfast.api.sealing import LocalVault, Seals
from holdfast.aws import group_function, group_tasks
from holdfast.aws.group_function import runs_attempt
from holdfast.aws.group_tasks import GroupTasks, lambda_call
from holdfast.deployment import Deployment
from holdfast.errors import HoldfastError, WorkflowError
from holdfast.limits import CAUSE_CHARACTERS_MAX, GROUP_PAYLOAD_BYTES_MAX
from holdfast.local.group_calls import local_call
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded, TaskThrottled
from tests.unit.client_kit import _compile
from tests.unit.dsl_kit import loaded

SHOP = """
from __future__ import annotations

from datetime import timedelta

from pydantic import SecretStr

from holdfast import Batch, TaskError, Throttled, heartbeat, seconds, task, task_context, workflow


class Declined(TaskError): ...


@task(group="payments")
def charge(order: str, cents: int = 5) -> str:
    here = task_context()
    return f"{order} {cents} {here.workflow} {here.attempt} {here.idempotency_key}"


@task(group="payments")
def decline(order: str) -> None:
    raise Declined(f"no money for {order}")


@task(group="payments")
def slow_down(order: str) -> None:
    raise Throttled(timedelta(seconds=2))


@task(group="payments")
def renew(token: SecretStr) -> list[SecretStr]:
    return [token, SecretStr("new " + token.get_secret_value())]


@task(group="payments")
def leak(token: SecretStr) -> None:
    raise Declined(f"the token {token.get_secret_value()} is refused")


@task(group="payments")
def grow(times: int) -> str:
    return "x" * times


@task(group="payments", heartbeat=seconds(30))
def breathe() -> bool:
    heartbeat()
    return True


@task(group="mail", batch=Batch(max=10))
def post(letters: list[str]) -> list[str | TaskError]:
    return [Declined(one) if one == "bad" else one.upper() for one in letters]


@task
def here(order: str) -> str:
    return f"inline {order}"


@workflow
def shop(order: str) -> str:
    return charge(order)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("groups"), SHOP) as found:
        yield found


@pytest.fixture
def deployment(module: ModuleType) -> Deployment:
    return Deployment.from_modules([module.__name__], _compile, LocalVault())


def asked(name: str, arguments: Any, **more: Any) -> RunTask:
    effect = RunTask(
        name=name,
        kind="task",
        arguments=arguments,
        tenant="default",
        run="r1",
        run_name="o1",
        workflow="shop",
        entry=3,
        attempt=2,
        deadline_ms=60_000,
    )
    return replace(effect, **more)


class Function:
    """The function of each group: its answers are scripted, or those of the real one."""

    def __init__(self, deployment: Deployment, *script: Exception | tuple[bool, bytes]) -> None:
        self._real = local_call(deployment)
        self._script = list(script)
        self.calls: list[tuple[str, bytes]] = []
        self.answers: list[bytes] = []
        self.pauses: list[float] = []

    def __call__(self, group: str, payload: bytes) -> tuple[bool, bytes]:
        self.calls.append((group, payload))
        if self._script:
            answer = self._script.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        is_error, body = self._real(group, payload)
        self.answers.append(body)
        return is_error, body

    def tasks(self, deployment: Deployment) -> GroupTasks:
        return GroupTasks(deployment, self, self.pauses.append, lambda: sum(self.pauses))


def perform(deployment: Deployment, effect: RunTask) -> TaskResult:
    return Function(deployment).tasks(deployment).perform(effect)


def throttled() -> ClientError:
    answer: Any = {
        "Error": {"Code": "TooManyRequestsException", "Message": "Rate exceeded"},
        "ResponseMetadata": {"HTTPStatusCode": 429},
    }
    return ClientError(answer, "Invoke")


def refused() -> ClientError:
    answer: Any = {
        "Error": {"Code": "AccessDeniedException", "Message": "not authorized"},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }
    return ClientError(answer, "Invoke")


def lost() -> ReadTimeoutError:
    return ReadTimeoutError(endpoint_url="https://lambda.eu-west-1.amazonaws.com")


# -- what crosses ----------------------------------------------------------------------------------


def test_a_task_runs_in_the_function_of_its_group_with_its_context(deployment: Deployment) -> None:
    function = Function(deployment)
    result = function.tasks(deployment).perform(asked("charge", {"order": "ö1"}))
    assert result == TaskSucceeded("ö1 5 shop 2 r1.3")
    [(group, payload)] = function.calls
    assert group == "payments"
    # Compact and in UTF-8, since Lambda bounds the bytes.
    assert json.dumps(json.loads(payload), separators=(",", ":"), ensure_ascii=False) == (
        payload.decode()
    )


def test_a_task_without_a_group_stays_in_the_worker(deployment: Deployment) -> None:
    function = Function(deployment)
    result = function.tasks(deployment).perform(asked("here", {"order": "o1"}))
    assert result == TaskSucceeded("inline o1")
    assert function.calls == []


def test_an_error_keeps_its_name_its_text_and_its_frames(deployment: Deployment) -> None:
    result = perform(deployment, asked("decline", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert (result.error, result.cause) == ("Declined", "no money for o1")
    assert result.traceback is not None
    assert "decline" in result.traceback


def test_a_heartbeat_a_throttle_and_a_batch_cross_as_well(deployment: Deployment) -> None:
    assert perform(deployment, asked("breathe", {}, heartbeat_seconds=30)) == TaskSucceeded(True)
    assert isinstance(perform(deployment, asked("slow_down", {"order": "o"})), TaskThrottled)
    letters = [{"letters": "a"}, {"letters": "bad"}]
    batch = perform(deployment, asked("post", letters, is_batch=True))
    assert batch == TaskSucceeded([{"output": "A"}, {"error": "Declined", "cause": "bad"}])


# -- secrets ---------------------------------------------------------------------------------------


def test_the_engine_opens_secrets_for_the_group_and_seals_those_of_its_result(
    deployment: Deployment,
) -> None:
    sealed = Seals(LocalVault(), "default").seal("hunter22")
    function = Function(deployment)
    result = function.tasks(deployment).perform(asked("renew", {"token": sealed}))
    assert isinstance(result, TaskSucceeded)
    same, new = result.output
    assert same == sealed
    assert new == LocalVault().seal("default", "new hunter22")
    sent = json.loads(function.calls[0][1])
    assert sent["arguments"] == {"token": sealed}
    assert sent["secrets"] == {sealed: "hunter22"}


def test_the_text_of_an_error_holds_no_secret(deployment: Deployment) -> None:
    sealed = Seals(LocalVault(), "default").seal("hunter22")
    result = perform(deployment, asked("leak", {"token": sealed}))
    assert isinstance(result, TaskFailed)
    assert "hunter22" not in repr(result)
    assert result.cause == "the token <secret 8 bytes> is refused"


def test_only_the_secrets_of_declared_parameters_are_opened(deployment: Deployment) -> None:
    sealed = Seals(LocalVault(), "default").seal("hunter22")
    function = Function(deployment)
    function.tasks(deployment).perform(asked("charge", {"order": sealed}))
    assert json.loads(function.calls[0][1])["secrets"] == {}


def test_a_worker_does_not_read_the_types_of_a_task_that_gets_no_secret(
    deployment: Deployment,
) -> None:
    answer = False, b'{"f": 1, "output": "paid"}'
    charge = deployment.registry.tasks["charge"]
    vars(charge).pop("boundary", None)
    function = Function(deployment, answer)
    assert function.tasks(deployment).perform(asked("charge", {"order": "o1"})) == TaskSucceeded(
        "paid"
    )
    assert "boundary" not in vars(charge), "a cold start imports pydantic"


# -- time-outs ---


def test_the_function_is_told_how_long_the_engine_waits_and_nothing_without_a_time_out(
    deployment: Deployment,
) -> None:
    function = Function(deployment, throttled())
    tasks = function.tasks(deployment)
    tasks.perform(asked("charge", {"order": "o1"}, is_timed=True))
    tasks.perform(asked("charge", {"order": "o1"}))
    assert [json.loads(sent)["seconds_left"] for _, sent in function.calls] == [60, 59, None]


def test_an_attempt_that_hangs_ends_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_function, "_GRACE_SECONDS", 0)
    ended = threading.Event()
    with group_function.ended_in_time(-1, ended.set):
        assert ended.wait(10)


def test_an_attempt_in_time_leaves_its_process_alone() -> None:
    ends: list[None] = []
    before = threading.active_count()
    with group_function.ended_in_time(600, lambda: ends.append(None)):
        assert threading.active_count() == before + 1
        [timer] = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    timer.join(10)
    assert ends == []
    with group_function.ended_in_time(None, lambda: ends.append(None)):
        assert threading.active_count() == before


# -- calls that fail -------------------------------------------------------------------------------


def test_a_lost_answer_is_asked_for_again_with_the_same_idempotency_key(
    deployment: Deployment,
) -> None:
    function = Function(deployment, lost(), lost())
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert result == TaskSucceeded("o1 5 shop 2 r1.3")
    assert len({payload for _, payload in function.calls}) == 1
    assert len(function.calls) == 3


def test_answers_that_stay_lost_fail_the_attempt(deployment: Deployment) -> None:
    function = Function(deployment, *(lost() for _ in range(9)))
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"
    assert len(function.calls) == group_tasks.LOST_MAX


def test_an_attempt_waits_while_the_function_has_no_place_for_it(deployment: Deployment) -> None:
    function = Function(deployment, *(throttled() for _ in range(20)))
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskSucceeded)
    assert sum(function.pauses) == 20


def test_the_wait_for_a_place_ends_with_the_time_out_of_the_attempt(
    deployment: Deployment,
) -> None:
    function = Function(deployment, *(throttled() for _ in range(99)))
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"
    assert "throttled" in str(result.cause)
    assert sum(function.pauses) < 60


@pytest.mark.parametrize(
    ("body", "error", "cause"),
    [
        (
            {"errorType": "Runtime.ExitError", "errorMessage": "Runtime exited: signal: killed"},
            "GroupFailed",
            "Runtime.ExitError: Runtime exited: signal: killed",
        ),
        (
            {"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 3.00 seconds"},
            "States.Timeout",
            "Task timed out after 3.00 seconds",
        ),
        (
            {"errorMessage": "2026-01-01 x Task timed out after 3.00 seconds"},
            "States.Timeout",
            "Task timed out after 3.00 seconds",
        ),
        (
            {"errorType": "Runtime.ExitError"},
            "GroupFailed",
            "the function of the group payments: Runtime.ExitError: ",
        ),
        ({}, "GroupFailed", "the function of the group payments: Lambda gave no error type: "),
    ],
)
def test_a_function_that_crashes_fails_the_attempt_by_its_name(
    deployment: Deployment, body: object, error: str, cause: str
) -> None:
    function = Function(deployment, (True, json.dumps(body).encode()))
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == error
    assert str(result.cause).endswith(cause)
    assert "the function of the group payments: " in str(result.cause)
    assert len(function.calls) == 1


_DEEP = pytest.param(b"[" * 200_000, id="deep")
_SURROGATE = pytest.param(b'{"errorMessage": "\\ud800"}', id="lone surrogate")
_LONG = pytest.param(json.dumps({"errorMessage": "x" * 99_999}).encode(), id="long")


@pytest.mark.parametrize("body", [_DEEP, _SURROGATE, _LONG])
def test_the_log_can_store_the_error_of_a_crash(deployment: Deployment, body: bytes) -> None:
    function = Function(deployment, (True, body))
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"
    assert 0 < len(str(result.cause).encode()) <= CAUSE_CHARACTERS_MAX


@pytest.mark.parametrize("body", [b"", b"null", b'{"f": 1}', b'{"f": 99, "output": 1}', _DEEP])
def test_an_answer_that_is_no_result_fails_the_attempt(deployment: Deployment, body: bytes) -> None:
    result = (
        Function(deployment, (False, body))
        .tasks(deployment)
        .perform(asked("charge", {"order": "o1"}))
    )
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"


def test_a_call_that_aws_refuses_is_not_repeated(deployment: Deployment) -> None:
    function = Function(deployment, refused())
    result = function.tasks(deployment).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert "AccessDenied" in str(result.cause)
    call = (
        "charge: the function of the group payments: the call of the group payments was refused: "
    )
    assert str(result.cause).startswith(call)
    assert len(function.calls) == 1


def test_a_payload_too_large_for_a_call_is_named_with_its_task(deployment: Deployment) -> None:
    function = Function(deployment)
    large = "x" * GROUP_PAYLOAD_BYTES_MAX
    sent = function.tasks(deployment).perform(asked("charge", {"order": large}))
    assert isinstance(sent, TaskFailed)
    assert sent.error == "InvalidArguments"
    most = f"takes {GROUP_PAYLOAD_BYTES_MAX}: pass the name of an object in S3"
    assert str(sent.cause).endswith(f"bytes as JSON, and the function of a group {most}")
    assert function.calls == []
    got = perform(deployment, asked("grow", {"times": GROUP_PAYLOAD_BYTES_MAX}))
    assert isinstance(got, TaskFailed)
    assert got.error == "InvalidResult"
    assert "the result of grow has" in str(got.cause)


def test_a_group_without_a_function_is_named(deployment: Deployment) -> None:
    call = lambda_call(None, "mail=arn:mail")  # type: ignore[arg-type]
    with pytest.raises(HoldfastError) as found:
        call("payments", b"")
    assert found.value.code == "HF422"
    result = GroupTasks(deployment, call).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"


def test_a_task_that_the_function_does_not_have_fails_the_attempt(deployment: Deployment) -> None:
    function = runs_attempt(deployment.registry)
    sent: dict[str, Any] = {}

    def call(_: str, payload: bytes) -> tuple[bool, bytes]:
        sent.update(json.loads(payload), task="gone", module="elsewhere")
        return False, json.dumps(function(sent)).encode()

    result = GroupTasks(deployment, call).perform(asked("charge", {"order": "o1"}))
    assert isinstance(result, TaskFailed)
    assert result.error == "GroupFailed"


def test_a_group_is_no_part_of_a_definition(deployment: Deployment, tmp_path: Path) -> None:
    """So that running executions use the function of the group from their next attempt on."""
    inline = SHOP.replace('@task(group="payments")', "@task")
    with loaded(tmp_path, inline) as module:
        other = Deployment.from_modules([module.__name__], _compile)
        assert "shop" in other.definitions
        assert other.in_group(asked("charge", {"order": "o1"})) is None
        assert other.definitions["shop"].hash == deployment.definitions["shop"].hash


# -- declarations ----------------------------------------------------------------------------------


def test_the_groups_of_a_deployment_name_the_modules_of_their_tasks(
    deployment: Deployment, module: ModuleType
) -> None:
    assert deployment.registry.modules_of_groups() == {
        "mail": (module.__name__,),
        "payments": (module.__name__,),
    }


@pytest.mark.parametrize(
    "name", ["", "Payments", "9", "a_b", "a" * 21, "a,b", "a=b", "a-", "a--b", "a-1"]
)
def test_a_name_that_no_group_can_have_is_refused(name: str) -> None:
    def nothing() -> None: ...

    make: Callable[..., Any] = task
    with pytest.raises(WorkflowError) as found:
        make(group=name)(nothing)
    assert found.value.code == "HF421"


def test_a_task_on_an_existing_function_has_no_group() -> None:
    def nothing() -> None: ...

    make: Callable[..., Any] = task
    with pytest.raises(WorkflowError) as found:
        make(group="a", runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:x"))(nothing)
    assert found.value.code == "HF423"
