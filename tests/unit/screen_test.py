"""The output of `holdfast show`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.cli.execution_screen import history, put_execution, undone
from holdfast.cli.tables import put

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def question(title: str, token: str) -> dict[str, Any]:
    return {"kind": "ask", "title": title, "token": token, "state": "ask"}


def shown(capsys: pytest.CaptureFixture[str], *waits: dict[str, Any]) -> list[str]:
    put_execution({"execution": "1", "status": "RUNNING", "waits": list(waits)}, NOW)
    lines = capsys.readouterr().out.splitlines()
    return [line.strip() for line in lines if line.strip()]


def test_of_several_questions_each_line_says_which_one_its_token_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    event = {"kind": "event", "event": "paid", "key": "k"}
    lines = shown(capsys, question("Ship it?", "t1"), question("Pay?", "t2"), event)
    text = "\n".join(lines)
    assert "to go on, for an answer: Ship it?, type" in text
    assert text.index("for an answer: Ship it?") < text.index("answer t1")
    assert text.index("answer t1") < text.index("for an answer: Pay?") < text.index("answer t2")
    assert "to go on, type" in text.split("answer t2")[1]


def test_a_question_alone_needs_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(capsys, question("Ship it?", "t1")))
    assert "to go on, type" in text
    assert "holdfast answer t1 --output" in text


def test_a_question_with_an_id_is_answered_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {**question("Ship it?", "t1"), "question": "01m:3.1"}
    text = "\n".join(shown(capsys, asked))
    assert "holdfast answer 01m:3.1 --output" in text
    assert "t1" not in text


def test_published_values_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    published = {"status": "packing", "progress": {"done": 3}}
    put_execution({"execution": "1", "status": "RUNNING", "published": published}, NOW)
    text = capsys.readouterr().out
    assert "published status    packing" in text
    assert "published progress" in text
    assert '"done": 3' in text


TRACEBACK = '  File "shop/bank.py", line 3, in pay\n    raise Declined(account)'


def test_a_failed_execution_shows_the_traceback_with_its_error_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failure = {
        "task": "charge",
        "at": "2026-03-02T00:00:00Z",
        "error": "Declined",
        "cause": "no money",
        "traceback": TRACEBACK,
    }
    put_execution({"execution": "1", "status": "FAILED", "last_failure": failure}, NOW)

    text = capsys.readouterr().out
    assert f"last failure of charge, just now\n{TRACEBACK}\nDeclined: no money\n" in text


def test_the_history_shows_a_traceback_below_its_event(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "id": 5,
        "timestamp": "2026-03-02T00:00:00Z",
        "type": "TaskFailed",
        "taskFailedEventDetails": {"resource": "task:charge", "error": "Declined"},
        "holdfast": {"traceback": TRACEBACK},
    }
    put(history([row]))

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1].endswith("task:charge  Declined")
    assert lines[2:] == [line.strip() for line in TRACEBACK.splitlines()]


def test_the_steps_of_an_undo_have_the_names_that_check_gives_them() -> None:
    resources = ("task:book", "task:free", "workflow:give_back", "start:ship", "stop", "pure:add")
    rows = [
        {"type": "TaskScheduled", "taskScheduledEventDetails": {"resource": resource}}
        for resource in resources
    ]
    rows.insert(1, {"type": "UndoStarted"})
    assert undone(rows) == ["free", "workflow give_back", "start ship", "stop execution"]
