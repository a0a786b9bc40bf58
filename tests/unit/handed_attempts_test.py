"""The messages between the engine and a process that runs a task for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import HoldfastError, NewerFormatError, RequestError
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX, TRACEBACK_CHARACTERS_MAX
from holdfast.runtime.effects import OwnResult, RunTask, TaskFailed, TaskSucceeded, TaskThrottled
from holdfast.runtime.handed_attempts import (
    HandedAttempt,
    attempt_message,
    read_attempt,
    read_result,
    result_message,
)

ATTEMPT = HandedAttempt(
    RunTask(
        name="charge",
        kind="task",
        arguments={"order": {"id": "o1", "names": ["ä", None, 1.5]}},
        tenant="default",
        run="r1",
        run_name="order-1",
        workflow="shop",
        entry=7,
        attempt=2,
        deadline_ms=1_000,
        heartbeat_seconds=30,
    ),
    "shop.tasks",
    {"holdfast.secret.1.k.eA.1": "x"},
    seconds_left=2.5,
)


def through_json(message: dict[str, Any]) -> Any:
    return json.loads(json.dumps(message))


def test_an_attempt_arrives_as_it_was_sent() -> None:
    assert read_attempt(through_json(attempt_message(ATTEMPT))) == ATTEMPT
    assert '"x"' not in repr(ATTEMPT), "the secrets are in the text of an attempt"


@pytest.mark.parametrize(
    "result",
    [
        TaskSucceeded(None),
        TaskSucceeded({"failed": {"error": "E"}}),
        TaskFailed("Declined", "no money", "  File ..."),
        TaskFailed(None, None),
        TaskThrottled(1_500, "slow down"),
    ],
)
def test_a_result_arrives_as_it_was_sent(result: OwnResult) -> None:
    assert read_result(through_json(result_message(result)), "charge") == result


def test_the_texts_of_a_result_are_cut_to_what_the_log_takes() -> None:
    long = "x" * 100_000
    assert read_result(result_message(TaskFailed(long, long, long)), "charge") == TaskFailed(
        "x" * ERROR_CHARACTERS_MAX, "x" * CAUSE_CHARACTERS_MAX, "x" * TRACEBACK_CHARACTERS_MAX
    )


@pytest.mark.parametrize("answer", [None, [], "ok", {}, {"f": 1}, {"f": 1, "failed": "no"}])
def test_another_value_is_no_result_and_no_attempt(answer: object) -> None:
    for read in (lambda: read_result(answer, "charge"), lambda: read_attempt(answer)):
        with pytest.raises(HoldfastError) as refused:
            read()
        assert refused.value.code == "HF420"


def test_an_output_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        read_result({"f": 1, "output": float("nan")}, "charge")
    assert refused.value.code == "HF243"


def test_the_message_of_newer_code_is_refused_as_such() -> None:
    newer = {**attempt_message(ATTEMPT), "f": 2}
    with pytest.raises(NewerFormatError):
        read_attempt(newer)
    with pytest.raises(NewerFormatError):
        read_result({"f": 2, "output": 1}, "charge")
