"""The command line itself: hints, completion and `--watch`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import cli
from holdfast.cli import repeating
from holdfast.remote import Client, client
from tests.unit.client_flows import guided, settle
from tests.unit.client_kit import MemoryStack


def commands() -> set[str]:
    (found,) = (
        action.choices
        for action in cli.parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return set(found)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["lsit"], "list"),
        (["histroy", "1"], "history"),
        (["list", "--stauts", "FAILED"], "--status"),
        (["list", "--workflwo=fulfil"], "--workflow"),
        (["list", "--status", "FALED"], "FAILED"),
        (["limit", "resmue", "bank"], "resume"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"\n  = help: did you mean {meant}?\n")


def test_a_word_like_none_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["list", "--xyzzy"])
    assert "did you mean" not in capsys.readouterr().err


def test_bash_completes_commands_and_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out

    def completed(*words: str) -> list[str]:
        typed = " ".join(f"'{word}'" for word in words)
        asked = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _holdfast"
        program = f'{script}\n{asked}; echo "${{COMPREPLY[@]}}"'
        bash = ["bash", "--norc", "-c", program]
        return subprocess.run(bash, capture_output=True, text=True, check=True).stdout.split()

    assert completed("holdfast", "hi") == ["history"]
    assert completed("holdfast", "list", "--sta") == ["--stack", "--status"]
    assert set(completed("holdfast", "")) == commands()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_name_each_command(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert {name for name in commands() if name not in script} == set()
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> MemoryStack:
    found = MemoryStack("tests.unit.client_flows")
    monkeypatch.setattr(client, "connect", lambda *_, **__: found.api)
    return found


def test_show_watches_an_execution_until_it_has_ended(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = Client.of(stack.api).start(settle, "17", name="settle-17")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            handle.stop()

    monkeypatch.setattr("holdfast.cli.repeating.time.sleep", sleep)
    assert cli.main(["show", "settle-17", "--watch", "5", "--json"]) == 0
    assert slept == [5.0, 5.0]
    shown = [line.count('"ABORTED"') for line in capsys.readouterr().out.splitlines()]
    assert shown == [0, 0, 1]


def test_wait_prints_the_published_value_or_shows_the_end(
    stack: MemoryStack, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = Client.of(stack.api).start(guided, "17", name="guided-17")
    wanted = ["wait", "guided-17", "--published", "place"]
    assert cli.main([*wanted, "--value", '"shop"', "--timeout", "0"]) == 0
    assert capsys.readouterr().out == '"shop"\n'
    assert cli.main([*wanted, "--value", '"home"', "--timeout", "0"]) == 1
    assert "error[HF567]" in capsys.readouterr().err
    assert cli.main(["wait", "guided-17", "--timeout", "0"]) == 1
    assert "still running after 0 s" in capsys.readouterr().err
    handle.stop()
    assert cli.main([*wanted, "--value", '"home"']) == 1
    assert "error[HF566]" in capsys.readouterr().err
    assert cli.main(["wait", "guided-17"]) == 1
    assert "ABORTED" in capsys.readouterr().out
    assert cli.main(["wait", "guided-17", "--value", "1"]) == 2
    assert "--value belongs to --published" in capsys.readouterr().err


def test_list_watches_until_it_is_interrupted(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.repeating.time.sleep", sleep)
    assert cli.main(["list", "--watch"]) == 130
    assert looks == [repeating.WATCH_SECONDS] * 3
    assert capsys.readouterr().out == "no executions\n" * 3


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "order-17"])
def test_a_watch_has_an_interval(seconds: str, capsys: pytest.CaptureFixture[Any]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["list", f"--watch={seconds}"])
    assert "is no number from 0.5 up" in capsys.readouterr().err
