"""Canaries wherever a secret may stand; then every line that is logged, measured or refused."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from botocore.exceptions import ParamValidationError

from holdfast.aws import telemetry
from holdfast.aws.faults import fault
from holdfast.cli import main
from holdfast.errors import ServiceFault
from holdfast.runtime import messages
from holdfast.runtime.effects import Effect, PutIfAbsent, RunTask, TaskFailed, TaskSucceeded
from tests.builders import ask, call, machine, wait_for
from tests.security.worker_kit import Belt, as_text

CANARY: Final = "canary-7c1e5a"
LONG: Final = CANARY * 400


def spill(effect: RunTask) -> TaskSucceeded | TaskFailed:
    """A task that gives the canary back, and fails with it the first time."""
    if effect.attempt == 1:
        return TaskFailed(f"Error{CANARY}", f"cause {CANARY}")
    return TaskSucceeded({"secret": CANARY, "got": effect.arguments})


class Watched(Belt):
    """A stack whose logs and metrics are kept as they are written."""

    def __init__(self) -> None:
        retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1}]
        states = {"it": call("it", "event", Retry=retry), "event": wait_for("paid", "ask")}
        super().__init__(machine({**states, "ask": ask()}), tasks=spill)
        self.lines: list[str] = []
        host: Any = self.site.host
        host.log_fault = functools.partial(telemetry.log_fault, write=self.lines.append)
        host.metrics.flush = functools.partial(host.metrics.flush, write=self.lines.append)

    def waiting(self) -> str:
        run = self.shop.start({"secret": CANARY}, "order-1")
        self.shop.world.run(until_ms=self.shop.world.now_ms + 60_000)
        assert CANARY in str(self.shop.describe(run))
        return run

    def require_silence(self) -> None:
        assert CANARY not in "".join(self.lines)


BODIES: Final[dict[str, Any]] = {
    "no JSON": f'{{"secret": "{CANARY}"',
    "another message": {"secret": CANARY},
    "the kind": {**messages.recover("default", "0" * 26), "k": CANARY},
    "the tenant": {**messages.recover("default", "0" * 26), "t": f"#{CANARY}"},
    "the run": {**messages.recover("default", "0" * 26), "run": CANARY},
    "the format": {**messages.recover("default", "0" * 26), "f": CANARY},
    "a newer format": {**messages.recover("default", "0" * 26), "f": 2, "x": CANARY},
    "the hint": {**messages.recover("default", "0" * 26), "hint": [CANARY]},
    "the letters": {**messages.recover("default", "0" * 26), "of": CANARY},
    "the input": messages.start("default", "0" * 26, input={"v": f"{{{CANARY}"}, workflow="flow"),
    "the definition": messages.start(
        "default", "0" * 26, input={"v": "1"}, workflow="flow", t0=1, definition=CANARY
    ),
    "a key of mail": {**messages.wake_mail("default", "0" * 26, "e"), "key": {CANARY: 1}},
}


@pytest.mark.parametrize("name", BODIES)
def test_the_log_never_quotes_a_message(name: str) -> None:
    watched = Watched()
    body = BODIES[name]
    watched.deliver(body if isinstance(body, str) else as_text(body))

    assert watched.lines or name == "a newer format"
    if name == "the definition":  # its hash is an id, and says which one is missing
        return
    watched.require_silence()


def test_a_whole_execution_logs_and_measures_no_value() -> None:
    watched = Watched()
    watched.waiting()
    watched.shop.send_event(data={"secret": CANARY})
    watched.shop.world.run(until_ms=watched.shop.world.now_ms + 60_000)
    for received in watched.services.receive("work"):
        watched.deliver(as_text(received.body))
    watched.sweep()

    assert watched.services.metrics
    assert CANARY not in str(watched.services.metrics)
    watched.require_silence()


DAMAGES: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "events": lambda item: {**item, "ev": f'["{CANARY}"'},
    "an event": lambda item: {**item, "ev": f'[["{CANARY}",0,0,{{}},{{}}]]'},
    "a format": lambda item: {**item, "f": CANARY},
    "a time": lambda item: {**item, "at": CANARY},
    "a snapshot's number": lambda item: {**item, "sn": CANARY},
    "a life": lambda item: {**item, "ttl": CANARY},
    "a blob's name": lambda item: {**item, "bl": CANARY},
    "a reference": lambda item: {**item, "ev": f'[["Opened",0,0,{{"@":["{CANARY}",1]}},{{}}]]'},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_log_never_quotes_a_damaged_item(name: str) -> None:
    watched = Watched()
    run = watched.waiting()
    newest = watched.services.items("executions")[-1]
    watched.put("executions", DAMAGES[name](dict(newest)))
    watched.deliver(as_text(messages.recover("default", run)))
    watched.site.request("GET", f"/executions/{run}")
    watched.shop.world.now_ms += 200 * 60_000
    watched.sweep()

    assert watched.lines
    if name == "a blob's name":  # A hash, useful only to a caller that knows which one it is
        return
    watched.require_silence()


REQUESTS: Final[dict[str, tuple[str, str, Any, dict[str, Any]]]] = {
    "a body that is no JSON": ("POST", "/executions", f'{{"x": "{CANARY}"', {}),
    "an unknown workflow": ("POST", "/executions", {"workflow": CANARY, "input": 1}, {}),
    "an input": ("POST", "/executions", {"workflow": "flow", "input": CANARY}, {}),
    "a name": ("POST", "/executions", {"workflow": "flow", "name": f"#{CANARY}"}, {}),
    "a path": ("GET", f"/executions/{CANARY}", None, {}),
    "an unknown path": ("GET", f"/{CANARY}", None, {}),
    "a token": ("POST", "/answers", {"token": CANARY, "output": 1}, {}),
    "a long token": ("POST", "/answers", {"token": LONG, "output": 1}, {}),
    "an answer": ("POST", "/answers", {"token": "x", "output": CANARY}, {}),
    "an event": ("POST", "/events", {"name": CANARY, "key": "k", "data": 1}, {}),
    "an event's data": ("POST", "/events", {"name": "paid", "key": "k", "data": CANARY}, {}),
    "a key": ("POST", "/events", {"name": "paid", "key": LONG, "data": 1}, {}),
    "a header": ("GET", "/executions", None, {"headers": {"authorization": f"Bearer {CANARY}"}}),
    "a cookie": ("GET", "/executions", None, {"cookies": [f"s={CANARY}"]}),
    "a query": ("GET", "/executions", None, {"query": {"status": CANARY}}),
    "a claim": ("GET", "/executions", None, {"claims": {"tenant": f"#{CANARY}"}}),
    "an error": ("POST", "/executions/x/stop", {"error": CANARY, "cause": CANARY}, {}),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("is_down", [False, True], ids=["up", "down"])
def test_the_log_never_quotes_a_request(name: str, is_down: bool) -> None:
    watched = Watched()
    if is_down:
        ports: Any = watched.site.ports
        ports.perform = _throttled
    method, path, body, fields = REQUESTS[name]
    status, answer = watched.site.request(method, path, body, **fields)

    watched.require_silence()
    assert status < 500 or is_down
    if "token" in name or name in {"a header", "a cookie", "an input", "an answer"}:
        assert CANARY not in json.dumps(answer)


def _throttled(effect: Effect) -> Any:
    raise ServiceFault("HF321", f"{type(effect).__name__} was throttled")


def test_a_token_is_stored_nowhere_and_logged_nowhere() -> None:
    watched = Watched()
    run = watched.waiting()
    watched.shop.send_event(data={})
    watched.shop.world.run(until_ms=watched.shop.world.now_ms + 60_000)
    (token,) = [wait["token"] for wait in watched.shop.describe(run)["waits"]]
    for _ in range(2):
        watched.site.request("POST", "/answers", {"token": token, "output": 1})
    watched.site.request("POST", "/answers", {"token": token[:-1] + "A", "output": 1})
    watched.sweep()
    history = watched.shop.insist(lambda: watched.shop.front.history("default", run))

    assert token not in str(watched.stored()) + json.dumps(history) + "".join(watched.lines)


def test_botocores_message_about_a_request_is_not_shown() -> None:
    report = f"Invalid type for parameter Item.ev, value: {CANARY}, type: <class 'int'>"
    errors = [
        ParamValidationError(report=report),
        TypeError(CANARY),
        ValueError(CANARY),
        KeyError(CANARY),
    ]
    for error in errors:
        assert CANARY not in str(fault("put_item", error))


def test_an_unexpected_exception_is_logged_by_its_kind_and_a_code() -> None:
    lines: list[str] = []
    telemetry.log_fault("it failed", ValueError(CANARY), lines.append, message_id="m1")

    assert json.loads(lines[0]) == {
        "level": "ERROR",
        "what": "it failed",
        "error": "ValueError",
        "code": "HF900",
        "message_id": "m1",
    }


def test_a_task_that_refuses_its_arguments_logs_none_of_them() -> None:
    watched = Watched()

    def broken(effect: Effect) -> Any:
        if isinstance(effect, PutIfAbsent):
            raise RuntimeError(CANARY)  # noqa: TRY004
        return watched.services.perform(effect)

    watched.shop.start({"secret": CANARY})
    (body,) = [received.body for received in watched.services.receive("starts")]
    ports: Any = watched.site.ports
    ports.perform = broken
    watched.deliver(as_text(body))

    assert len(watched.lines) == 1
    watched.require_silence()


@pytest.mark.parametrize("option", ["--input", "--data", "--output"])
def test_the_command_line_does_not_quote_unreadable_input(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = {
        "--input": ["start", "flow", "--input", f'{{"x": "{CANARY}"'],
        "--data": ["event", "paid", "--key", "k", "--data", f"[{CANARY}"],
        "--output": ["answer", CANARY, "--output", f"{{{CANARY}"],
    }
    status = main(commands[option])
    told = capsys.readouterr()

    assert status == 2
    assert CANARY not in told.out + told.err
