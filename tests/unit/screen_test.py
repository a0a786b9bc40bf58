"""The output of `holdfast show`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.cli.screen import put_execution

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
