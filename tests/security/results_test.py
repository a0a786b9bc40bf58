"""Unusable results and errors of tasks: they fail the attempt, never the worker."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import threading
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from holdfast import task
from holdfast.api.registry import Registry
from holdfast.deployment import Deployment
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX, PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.runtime.storage import json_values
from holdfast.runtime.storage.json_values import plain_text
from holdfast_simulator.invariants import check
from tests.builders import Shop, call, machine
from tests.security.cases import Case, Outcome, each, generator, run_generated
from tests.unit.bad_input import WORDS, deep, junk
from tests.unit.states_world import Office

_DOES: list[Callable[[], Any]] = []


@task
def odd(kind: int) -> object:
    return _DOES[kind]()


DEPLOYMENT: Final = Deployment(Registry({"odd": odd}, {}), {})


def performed(does: Callable[[], Any]) -> TaskResult:
    """Return the engine's view of a task whose body is `does`."""
    _DOES[:] = [does]
    return DEPLOYMENT.run_task(asked({"kind": 0}))


def asked(arguments: Any) -> RunTask:
    return RunTask("odd", "task", arguments, "default", "0" * 26, None, "flow", 1, 1, 0)


def raises(error: BaseException | type[BaseException]) -> Callable[[], Any]:
    def does() -> Any:
        raise error

    return does


# -- returned values -------------------------------------------------------------------------------


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


class Colour(enum.Enum):
    RED = object()


class Reluctant:
    def __repr__(self) -> str:
        raise ValueError


def endless() -> Any:
    while True:
        yield 1


RETURNED = [
    Case("NaN", lambda: float("nan"), "InvalidResult"),
    Case("infinity", lambda: float("inf"), "InvalidResult"),
    Case("infinity inside", lambda: {"a": [1, -float("inf")]}, "InvalidResult"),
    Case("a lone surrogate", lambda: "\ud800", "InvalidResult"),
    Case("a key that is a lone surrogate", lambda: {"\udfff": 1}, "InvalidResult"),
    Case("65 levels", lambda: deep(65), "InvalidResult"),
    Case("900 levels", lambda: deep(900), "InvalidResult"),
    Case("a list in itself", cyclic, "InvalidResult"),
    Case("a number of 5,000 digits", lambda: 10**5_000, "InvalidResult"),
    Case("65 MB of text", lambda: "x" * 65_000_000, "InvalidResult"),
    Case("an object", object, "InvalidResult"),
    Case("an object that has no text", Reluctant, "InvalidResult"),
    Case("a function", lambda: print, "InvalidResult"),
    Case("a lock", threading.Lock, "InvalidResult"),
    Case("bytes that are no text", lambda: b"\xff\xfe", "InvalidResult"),
    Case("an enumeration of objects", lambda: Colour.RED, "InvalidResult"),
]
#: A value with a plain form is accepted in that form.
KEPT = [
    Case("a decimal", lambda: decimal.Decimal("1.50"), "1.50"),
    Case("a complex number", lambda: 1j, "1j"),
    Case("a day", lambda: dt.date(2026, 1, 2), "2026-01-02"),
    Case("a set", lambda: {1}, [1]),  # type: ignore[arg-type]
    Case("a tuple", lambda: (1, "a"), [1, "a"]),  # type: ignore[arg-type]
    Case("64 levels", lambda: deep(63), deep(63)),
    Case("an object with a control character", lambda: {"a": "\x00"}, {"a": "\x00"}),  # type: ignore[arg-type]
]


@each(*RETURNED)
def test_a_result_that_cannot_be_stored_fails_the_attempt(case: Case) -> None:
    found = performed(case.given)

    assert isinstance(found, TaskFailed)
    assert found.error == case.code
    assert found.cause
    assert len(found.cause) < 500


@each(*KEPT)
def test_a_result_with_a_plain_form_is_taken_in_it(case: Case) -> None:
    assert performed(case.given) == TaskSucceeded(case.code)


# -- raised errors ---------------------------------------------------------------------------------


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class LeavingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class RecursiveError(Exception):
    def __str__(self) -> str:
        return str(self)


class ShyText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise ValueError

    def __getitem__(self, _: Any) -> str:
        raise ValueError


class ShyError(Exception):
    def __str__(self) -> str:
        return ShyText("shy")


class NamelessType(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise AttributeError("no name")


class NamelessError(Exception, metaclass=NamelessType):
    pass


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("kept", threading.Lock())

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle")


def named(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


RAISED = [
    Case("no text", raises(UnprintableError), "UnprintableError"),
    Case("text that leaves", raises(LeavingError), "LeavingError"),
    Case("text that never ends", raises(RecursiveError), "RecursiveError"),
    Case("text that will not be cut", raises(ShyError), "ShyError"),
    Case("no name", raises(NamelessError), "NamelessError"),
    Case("no pickle", raises(UnpicklableError()), "UnpicklableError"),
    Case("text that is no Unicode", raises(ValueError("\ud800")), "ValueError"),
    Case("text of 10 MB", raises(ValueError("x" * 10_000_000)), "ValueError"),
    Case("text of control characters", raises(ValueError("\x1b[2J\r\n\x00")), "ValueError"),
    Case("an argument that is no text", raises(ValueError(object())), "ValueError"),
    Case("a name of 10 KB", raises(named("E" * 10_240)), "E" * ERROR_CHARACTERS_MAX),
    Case("a name with a newline", raises(named("A\nB")), "A\nB"),
    Case("an empty name", raises(named("")), ""),
    Case(
        "a name in another script",
        raises(named("Fehler\u00e4\U0001f600")),
        "Fehler\u00e4\U0001f600",
    ),
    Case("a reserved name", raises(named("States.Runtime")), "States.Runtime"),
    Case("the name of a time-out", raises(named("States.Timeout")), "States.Timeout"),
    Case("the name of all", raises(named("States.ALL")), "States.ALL"),
    Case("a name of ours", raises(named("Holdfast.WorkerLost")), "Holdfast.WorkerLost"),
    Case("out of memory", raises(MemoryError), "MemoryError"),
    Case("too deep", raises(RecursionError), "RecursionError"),
    Case("the end of the process", raises(SystemExit(3)), "SystemExit"),
    Case("the end of a generator", raises(GeneratorExit), "GeneratorExit"),
    Case("a task cancelled", raises(asyncio.CancelledError), "CancelledError"),
    Case("an end of iteration", raises(StopIteration(5)), "StopIteration"),
    Case(
        "a group of what is no exception",
        raises(BaseExceptionGroup("group", [GeneratorExit()])),
        "BaseExceptionGroup",
    ),
    Case("a class of its own below all", raises(type("Below", (BaseException,), {})), "Below"),
    Case("what is no exception", raises("text"), "TypeError"),  # type: ignore[arg-type]
]


@each(*RAISED)
def test_whatever_is_raised_is_the_error_of_the_attempt(case: Case) -> None:
    found = performed(case.given)

    assert isinstance(found, TaskFailed)
    assert found.error == case.code
    assert found.cause is not None
    assert len(found.cause) <= CAUSE_CHARACTERS_MAX
    plain_text([found.error, found.cause], "the failure")


def test_an_interrupt_from_the_keyboard_works() -> None:
    with pytest.raises(KeyboardInterrupt):
        performed(raises(KeyboardInterrupt))


# -- the engine's results --------------------------------------------------------------------------

CATCH_ALL = {"ErrorEquals": ["States.ALL"], "Next": "caught"}
RETRY_NONE = {"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1, "IntervalSeconds": 1}
ENDINGS = [
    Case("a reserved name is caught by ALL", "States.Permissions", "SUCCEEDED"),
    Case("a time-out that a task says is one", "States.Timeout", "SUCCEEDED"),
    Case("ALL itself", "States.ALL", "SUCCEEDED"),
    Case("an error that cannot be caught", "States.Runtime", "FAILED"),
    Case("no name", "", "SUCCEEDED"),
    Case("a name of 10 KB", "E" * 10_240, "SUCCEEDED"),
    Case("a name that is an expression", "{% 1/0 %}", "SUCCEEDED"),
    Case("a name that is a path", "$.a", "SUCCEEDED"),
    Case("a name with the list's separator", "a#b#c", "SUCCEEDED"),
    Case("a name of ours", "Holdfast.WorkerLost", "SUCCEEDED"),
]


@each(*ENDINGS)
def test_an_error_of_any_name_ends_in_a_state_that_can_be_read(case: Case) -> None:
    states = {
        "it": call("odd", Retry=[RETRY_NONE], Catch=[CATCH_ALL]),
        "caught": {"Type": "Pass", "Output": "{% $states.input %}", "End": True},
    }
    shop = Shop(machine(states), tasks=lambda _: TaskFailed(case.given, "c" * 40_000))
    state = shop.run().state

    assert state.status == case.code
    assert check(shop.world) == []
    if state.status == "SUCCEEDED":
        assert state.output["Error"] == case.given[:ERROR_CHARACTERS_MAX]  # type: ignore[call-overload,index]
        assert len(state.output["Cause"]) == CAUSE_CHARACTERS_MAX  # type: ignore[call-overload,index]


@pytest.mark.parametrize("length", [PAYLOAD_BYTES_MAX - 2, PAYLOAD_BYTES_MAX - 1, 5_000_000])
def test_a_result_over_the_limit_of_state_machines_is_an_error_of_its_own(length: int) -> None:
    office = Office(tasks=lambda _: TaskSucceeded("x" * length))
    resource = "arn:aws:lambda:eu-west-1:123456789012:function:f"
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "it",
        "States": {"it": {"Type": "Task", "Resource": resource, "End": True}},
    }
    arn = office.create(definition)
    started = office.call("StartExecution", stateMachineArn=arn)
    office.world.run()
    shown = office.call("DescribeExecution", executionArn=started["executionArn"])

    if length + 2 <= PAYLOAD_BYTES_MAX:
        assert shown["status"] == "SUCCEEDED"
    else:
        assert (shown["status"], shown["error"]) == ("FAILED", "States.DataLimitExceeded")


# -- generated -------------------------------------------------------------------------------------


@generator("task results", full=5_000)
def result(draw: Random) -> Outcome:
    """A result or an error of any kind, through the boundary and then through the engine."""
    does = draw.choice([*(case.given for case in RETURNED + RAISED), *[None] * 60])
    if does is None or does in {RETURNED[9].given, RAISED[7].given}:
        value, name = junk(draw, 4), str(draw.choice(WORDS))
        error = named(name.replace("\x00", "").replace("\ud800", ""))
        does = draw.choice([lambda: value, raises(error(value))])
    found = performed(does)
    assert isinstance(found, TaskSucceeded | TaskFailed)
    plain_text(found.output if isinstance(found, TaskSucceeded) else found.cause, "it")
    shop = Shop(machine({"it": call("odd", Catch=[CATCH_ALL]), "caught": {"Type": "Succeed"}}))
    shop.world.tasks = lambda _: found
    state = shop.run().state
    assert state.is_ended
    assert check(shop.world) == []
    return "accepted" if isinstance(found, TaskSucceeded) else "refused"


def test_no_generated_result_breaks_anything() -> None:
    tally = run_generated("task results", 100, seed=1)

    assert min(tally.refused, tally.accepted) > 10


def test_the_largest_value_that_is_kept_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "VALUE_BYTES_MAX", 1_002)

    assert isinstance(performed(lambda: "x" * 1_000), TaskSucceeded)
    assert isinstance(performed(lambda: "x" * 1_001), TaskFailed)
    assert isinstance(performed(lambda: "\u00e9" * 501), TaskFailed)
