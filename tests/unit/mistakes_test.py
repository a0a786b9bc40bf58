"""The command line on mistakes: it names what was meant, or refuses by name, and exits as the page
says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import cli
from holdfast.remote import client
from tests.unit import mistake_flows
from tests.unit.client_kit import MemoryStack

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> MemoryStack:
    found = MemoryStack(mistake_flows.__name__)
    monkeypatch.setattr(client, "connect", lambda *_, **__: found.api)
    return found


@pytest.fixture
def command(stack: MemoryStack, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command. Return its exit code, its output and its errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def started(command: Command, workflow: str, name: str, **given: str) -> str:
    code, told, _ = command("start", workflow, "--name", name, "--input", json.dumps(given))
    assert code == 0
    return told.split()[-1]


@pytest.mark.parametrize(
    "words",
    [
        ["start", "aprove", "--input", '{"order_id": "1"}'],
        ["count", "--workflow", "aprove"],
        ["list", "--workflow", "aprove"],
        ["schedule", "create", "s", "aprove", "--every", "6h"],
        ["migrate", "aprove", "--dry-run"],
        ["bulk", "stop", "--workflow", "aprove", "--reason", "why"],
        ["pause", "--workflow", "aprove", "--reason", "why"],
    ],
    ids=lambda words: words[0],
)
def test_the_workflow_that_was_meant_is_named(words: list[str], command: Command) -> None:
    code, _, said = command(*words)
    assert code == (2 if words[0] == "pause" else 1)
    assert "there is no workflow" in said
    assert "did you mean approve? known: approve, deliver, total" in said


def test_a_workflow_that_was_deployed_once_is_counted(command: Command, stack: MemoryStack) -> None:
    started(command, "approve", "a-1", order_id="1")
    cast(dict[str, Any], stack.front.known.workflows).pop("approve")
    code, counted, _ = command("count", "--workflow", "approve")
    assert (code, counted.splitlines()[1].split()) == (0, ["RUNNING", "1"])


def test_events_and_requests_are_named_as_callers_write_them(command: Command) -> None:
    code, _, said = command("event", "bank.setled", "--key", "1", "--data", "1")
    assert code == 1
    assert "no workflow declares an event named 'bank.setled'" in said
    assert "did you mean bank.settled? known: bank.settled\n" in said
    code, _, said = command("request", "totals", "--key", "1", "--data", "1")
    assert code == 1
    assert "no workflow declares a request named 'totals'" in said
    assert "did you mean total? known: total\n" in said


def test_a_wait_for_a_request_is_shown_as_one_and_found_by_it(command: Command) -> None:
    started(command, "total", "t-1", key="k")
    shown = command("show", "t-1")[1]
    assert "request total, key k" in shown
    assert "holdfast request total --key k --data" in shown
    assert "request total" in command("list")[1]
    counted = command("count", "--by", "wait")[1]
    assert "request:total" in counted
    assert "total?" not in counted
    assert "t-1" in command("list", "--waiting-for", "request:total")[1]
    assert "no executions" in command("list", "--waiting-for", "request:other")[1]


def test_a_request_that_is_rejected_is_a_negative_answer(command: Command) -> None:
    started(command, "total", "t-1", key="k")
    request = ["request", "total", "--key", "k", "--data"]
    code, _, said = command(*request, "0")
    assert (code, "error[HF564]" in said) == (1, True)
    code, _, said = command(*request, '"x"')
    assert (code, "the request 'total' does not fit int" in said) == (2, True)


def test_versions_in_use_are_named_to_a_hash_that_is_none(
    command: Command, stack: MemoryStack
) -> None:
    newest = stack.front.known.workflows["deliver"].hash
    code, _, said = command("migrate", "deliver", "--to", "abc", "--dry-run")
    assert code == 1
    assert f"versions in use, the newest first: {newest[:12]}" in said


@pytest.mark.parametrize("given", ['"yes"', "1", "null", '"true"'])
def test_a_bool_is_answered_with_true_or_false_alone(given: str, command: Command) -> None:
    started(command, "approve", "a-1", order_id="1")
    (question,) = json.loads(command("inbox", "--json")[1])
    code, _, said = command("answer", question["question"], "--output", given)
    assert (code, "expected true or false" in said) == (2, True)
    assert command("answer", question["question"], "--output", "false")[0] == 0


def test_a_second_answer_is_told_by_whom_the_first_came(command: Command) -> None:
    started(command, "approve", "a-1", order_id="1")
    (question,) = json.loads(command("inbox", "--json")[1])
    answer = ["answer", question["question"], "--output"]
    assert command(*answer, "true", "--by", "ada")[0] == 0
    code, _, said = command(*answer, "false", "--by", "bob")
    assert code == 1
    assert "error[HF232]: another answer was given before by ada at 2027-01-15T08:00" in said


def test_a_file_that_is_not_there_is_named_without_a_number(command: Command) -> None:
    report = ["deploy-check", "--report", "gone.json", mistake_flows.__name__]
    for words in (["register", "gone.json"], report):
        code, _, said = command(*words)
        assert code == 2
        assert "gone.json cannot be read: No such file or directory" in said


#: Arguments with an empty text, as a variable of the shell that is not set gives it.
EMPTY = [
    *(["show", ""], ["history", ""], ["stop", ""], ["claim", ""], ["doctor", ""], ["backup", ""]),
    *(["init", ""], ["workflows", ""], ["limit", "set", "", "--rate", "5/s", "--reason", "why"]),
    *(["pause", "x", "--reason", ""], ["event", "paid", "--key", ""], ["list", "--stack", ""]),
    *(["delegate", "x:0.1", "--to", ""], ["start", "approve", "--input", ""]),
]


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_argument_is_named_and_refused(
    words: list[str], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command(*words)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "the text is empty: is a variable not set?" in said
    assert "argument COMMAND" not in said


def test_a_default_that_is_empty_is_no_argument(command: Command, tmp_path: Path) -> None:
    code, _, said = command("graph", mistake_flows.__name__, "--output", str(tmp_path))
    assert (code, said) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        *(["show", "../x"], ["stop", "a/b"], ["history", "/"], ["workflows", "a/b"]),
        *(["claim", "a/b"], ["schedule", "show", "a/b"], ["limits", "a/b"]),
    ],
    ids=" ".join,
)
def test_a_name_with_a_slash_is_refused_and_not_taken_for_another_route(
    words: list[str], command: Command
) -> None:
    code, _, said = command(*words)
    assert (code, f"{words[-1]!r} is not a name" in said) == (2, True)
    assert "HF201" in said


@pytest.mark.parametrize(
    "words",
    [
        ["priority", "x", "high", "--reason", "why"],
        ["serve", "--port", "eighty"],
        ["format", "--set", "2.0"],
        ["inbox", "--limit", "all"],
    ],
    ids=lambda words: words[0],
)
def test_what_is_no_whole_number_is_named(
    words: list[str], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command(*words)
    assert " is no whole number: write 5" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(command: Command, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for words in (
        ["workflows", "approve", "--picture", str(missing / "x.svg")],
        ["deploy-check", "--save", str(missing / "x.json")],
    ):
        code, _, said = command(*words)
        assert code == 2
        assert f"error[HF282]: {words[-1]} cannot be written: No such file or directory" in said
        assert "name a file in a folder that exists" in said


def test_a_page_that_is_no_page_is_refused_with_the_way_to_one(command: Command) -> None:
    for words in (["list", "--after", "garbage"], ["inbox", "--after", "garbage"]):
        code, _, said = command(*words)
        assert (code, "error[HF209]" in said, "leave it out for the first page" in said) == (
            2,
            True,
            True,
        )


def test_words_that_are_no_json_are_answered_with_examples(command: Command) -> None:
    code, _, said = command("answer", "q", "--output", "yes")
    assert (code, "--output true, or 17" in said) == (2, True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("reservation=5", "reservation expects str"),
        ('quoted={"pence": true, "notes": []}', "quoted.pence expects int"),
        ('quoted={"pence": 1}', "quoted expects Quote, an object with pence, notes"),
        ('quoted={"pence": 1, "notes": [2]}', "quoted.notes[0] expects str"),
    ],
)
def test_a_fork_refuses_a_value_that_the_variable_cannot_have(
    given: str, expected: str, command: Command
) -> None:
    started(command, "deliver", "d-1", order_id="1")
    command("event", "bank.settled", "--key", "1", "--data", "1")
    fork = ["fork", "d-1", "--at", "ship", "--reason", "why", "--set"]
    code, _, said = command(*fork, given)
    assert code == 2
    assert f"error[HF211]: the value of the variable {given.partition('=')[0]} does not fit" in said
    assert expected in said
    assert command(*fork, 'reservation="r-2"')[0] == 0


def test_show_says_what_a_stop_has_undone(command: Command) -> None:
    started(command, "deliver", "d-1", order_id="1")
    started(command, "approve", "a-1", order_id="1")
    assert command("stop", "d-1")[0] == command("stop", "a-1")[0] == 0
    assert "\nundone     send goods.free, free\n" in command("show", "d-1")[1]
    assert "\nundone     nothing\n" in command("show", "a-1")[1]


def test_one_is_written_in_the_singular(command: Command, tmp_path: Path) -> None:
    started(command, "approve", "a-1", order_id="1")
    stop = ["bulk", "stop", "--workflow", "approve", "--reason", "why"]
    assert "stop would act on 1 execution\n" in command(*stop)[1]
    told = command("export", "--to", str(tmp_path))[1]
    assert told == "exported 1 execution in 1 file\n"
