"""The traceback of a task's exception: the author's frames, bounded, without a secret."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.sealing import LocalVault, Seals
from holdfast.api.tracebacks import traceback_of
from holdfast.deployment import Deployment
from holdfast.limits import TRACEBACK_CHARACTERS_MAX
from holdfast.runtime.effects import RunTask, TaskFailed

PAYMENTS = """
import json

from pydantic import SecretStr

from holdfast import task

from debugged.bank import transfer


class Declined(Exception):
    pass


@task
def charge(pence: int) -> str:
    return transfer(pence)


@task
def read(text: str) -> object:
    return json.loads(text)


@task
def sign(key: SecretStr) -> str:
    raise Declined(f"the key {key.get_secret_value()} is refused")


@task
def log_in(user: str) -> str:
    password = SecretStr(user[::-1])
    raise Declined(f"{user} with {password.get_secret_value()}")


@task
def wrap(pence: int) -> str:
    try:
        return transfer(pence)
    except ValueError as error:
        declined = Declined("the bank says no")
        declined.add_note("ask the bank")
        raise declined from error


@task
def gather(pence: int) -> str:
    raise ExceptionGroup("both", [ValueError("one"), caught(pence)])


def caught(pence):
    try:
        transfer(pence)
    except ValueError as error:
        return error


@task
def endless(depth: int) -> int:
    return deeper(depth)


def deeper(depth):
    return deeper(depth + 1)


@task
def chained(count: int) -> str:
    try:
        raise ValueError("x" * 2_000)
    except ValueError:
        if count:
            chained(count - 1)
        raise Declined("y" * 2_000)


@task
def nothing(pence: int) -> str:
    return "fine"
"""
BANK = """
def transfer(pence):
    raise ValueError(f"{pence} pence are not enough")
"""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("project") / "debugged"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "payments.py").write_text(textwrap.dedent(PAYMENTS))
    (folder / "bank.py").write_text(textwrap.dedent(BANK))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder.parent))
        yield Deployment.from_modules(["debugged.payments"], vault=LocalVault())
        for name in [name for name in sys.modules if name.partition(".")[0] == "debugged"]:
            del sys.modules[name]


Fail = Callable[..., TaskFailed]


@pytest.fixture
def fail(deployment: Deployment) -> Fail:
    def run(name: str, **arguments: Any) -> TaskFailed:
        task = RunTask(
            name=name,
            kind="task",
            arguments=arguments,
            tenant="default",
            run="r1",
            run_name="order-1",
            workflow="shopping",
            entry=3,
            attempt=1,
            deadline_ms=0,
        )
        result = deployment.run_task(task)
        assert isinstance(result, TaskFailed)
        return result

    return run


def test_it_shows_the_frames_of_the_authors_modules_and_none_of_ours(fail: Fail) -> None:
    assert str(fail("charge", pence=5).traceback).splitlines() == [
        '  File "debugged/payments.py", line 17, in charge',
        "    return transfer(pence)",
        '  File "debugged/bank.py", line 3, in transfer',
        '    raise ValueError(f"{pence} pence are not enough")',
    ]


def test_frames_of_libraries_are_one_line(fail: Fail) -> None:
    lines = str(fail("read", text="{").traceback).splitlines()

    assert lines[:2] == [
        '  File "debugged/payments.py", line 22, in read',
        "    return json.loads(text)",
    ]
    assert len(lines) == 3
    assert lines[2].startswith(
        "  ... 3 frames outside the project, the last in json/decoder.py, line "
    )


def test_an_exception_of_holdfast_has_no_traceback(fail: Fail) -> None:
    assert fail("charge", pence="many").error == "InvalidArguments"
    assert fail("charge", pence="many").traceback is None


def test_a_cause_is_shown_with_its_frames_and_its_text(fail: Fail) -> None:
    text = str(fail("wrap", pence=5).traceback)

    first, joint, last = text.split("\n\n")
    assert first.endswith("\nValueError: 5 pence are not enough")
    assert joint == "The above exception was the direct cause of the following exception:"
    assert last.splitlines()[-2:] == ["    raise declined from error", "ask the bank"]


def test_the_exceptions_of_a_group_are_shown(fail: Fail) -> None:
    text = str(fail("gather", pence=5).traceback)

    assert "One exception of the group: ValueError: one" in text
    assert 'File "debugged/bank.py", line 3, in transfer' in text


def test_a_recursion_without_end_and_a_long_chain_stay_small(fail: Fail) -> None:
    endless, chained = fail("endless", depth=0).traceback, fail("chained", count=30).traceback

    assert "earlier frames" in str(endless)
    assert str(endless).endswith("return deeper(depth + 1)")
    assert len(str(endless)) < 1_500
    assert len(str(chained)) <= TRACEBACK_CHARACTERS_MAX


def test_a_secret_of_the_call_is_in_neither_the_cause_nor_the_traceback(fail: Fail) -> None:
    sealed = Seals(LocalVault(), "default").seal("k-4711-secret")
    failed = fail("sign", key=sealed)

    assert failed.cause == "the key <secret 13 bytes> is refused"
    assert "4711" not in str(failed.traceback)


def test_a_secret_that_the_task_has_made_itself_is_hidden_too(fail: Fail) -> None:
    failed = fail("log_in", user="drowssap")

    assert failed.cause == "drowssap with <secret 8 bytes>"


def test_a_module_with_a_strange_name_is_shown_by_its_file() -> None:
    variables = {"__name__": 7}
    exec(compile("def strange():\n    raise KeyError(1)", "strange.py", "exec"), variables)
    strange: Any = variables["strange"]
    with pytest.raises(KeyError) as caught:
        strange()

    assert traceback_of(caught.value, {"debugged"}) is None
    text = traceback_of(caught.value, {__name__.partition(".")[0]})
    assert text is not None
    assert text.endswith("... 1 frame outside the project, the last in strange.py, line 2")


def test_paths_do_not_depend_on_the_machine(fail: Fail, tmp_path: Path) -> None:
    assert str(tmp_path.parts[1]) not in str(fail("wrap", pence=5).traceback).split("/")[0]
