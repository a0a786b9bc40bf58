"""Log lines of tasks: their keys, whatever logger writes them, and what `serve` keeps."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import TaskContext, task_context
from holdfast.api.task_context import running_task
from holdfast.aws.telemetry import log_to_cloudwatch
from holdfast.local import task_lines as kept
from holdfast.task_logs import KEYS, PlainLines

RUN = "01m8796j51x0ddq7zx87hexsag"
KEYS_OF_CHARGE = {
    "execution_id": f"{RUN}.3.1",
    "execution_name": "order-7",
    "workflow": "fulfil",
    "task": "charge",
    "attempt": 2,
    "correlation_id": RUN,
}
LOG = logging.getLogger("shop.payments")


def charging(run: str = f"{RUN}.3.1", attempt: int = 2) -> Any:
    return running_task(TaskContext(run, "order-7", "fulfil", "charge", attempt, f"{run}.4"))


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger as Lambda's runtime leaves it, and as it was after the test."""
    root, factory = logging.root, logging.getLogRecordFactory()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [logging.StreamHandler(io.StringIO())]
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.setLogRecordFactory(factory)


@pytest.fixture
def lines(root: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)

    def read() -> list[Any]:
        return [json.loads(line) for line in output.getvalue().splitlines()]

    log_to_cloudwatch({"HOLDFAST_STACK": "Holdfast"})
    yield read


def test_a_line_of_a_task_in_cloudwatch_has_the_keys_of_its_attempt(lines: Any) -> None:
    with charging():
        LOG.info("charged %d", 5)

    (line,) = lines()
    assert {key: line[key] for key in KEYS} == KEYS_OF_CHARGE
    assert (line["level"], line["message"], line["service"]) == ("INFO", "charged 5", "Holdfast")
    assert line["location"].startswith("test_a_line_of_a_task")


def test_an_exception_that_a_task_logs_is_on_its_line(lines: Any) -> None:
    with charging():
        try:
            KEYS_OF_CHARGE["card"]
        except LookupError:
            LOG.exception("refused")

    (line,) = lines()
    assert line["exception_name"] == "KeyError"
    assert line["exception"].endswith("KeyError: 'card'")


def test_outside_tasks_only_warnings_are_written(lines: Any) -> None:
    LOG.info("a library says hello")
    LOG.warning("a library complains")

    assert [line["message"] for line in lines()] == ["a library complains"]
    assert "execution_id" not in lines()[0]


def test_the_level_is_that_of_powertools(root: logging.Logger) -> None:
    for text, level in (("debug", logging.DEBUG), ("nonsense", logging.INFO)):
        log_to_cloudwatch({"HOLDFAST_STACK": "s", "POWERTOOLS_LOG_LEVEL": text})
        assert root.level == level


def test_a_logger_of_powertools_has_the_keys_too(lines: Any) -> None:
    powertools = pytest.importorskip("aws_lambda_powertools")
    output = io.StringIO()
    logger = powertools.Logger(service="payments", stream=output)

    with charging():
        logger.info("charged")

    line = json.loads(output.getvalue())
    assert {key: line[key] for key in KEYS} == KEYS_OF_CHARGE


def test_a_line_for_a_terminal_can_be_read_and_has_all_keys(root: logging.Logger) -> None:
    with kept.task_lines() as found, charging():
        handler = root.handlers[-1]
        assert isinstance(handler.formatter, PlainLines)
        record = LOG.makeRecord("shop.payments", logging.INFO, "f", 1, "charged %d", (5,), None)
        text = handler.format(record)
        assert found.of(RUN) == []

    assert text[12:].startswith(" INFO    shop.payments: charged 5  execution_id=")
    assert all(f"{key}={value}" in text for key, value in KEYS_OF_CHARGE.items())


def test_serve_keeps_the_lines_of_an_execution_and_of_those_that_it_called(
    root: logging.Logger,
) -> None:
    with kept.task_lines() as found:
        for run in (RUN, f"{RUN}.3.1", f"{RUN}.30.1", "other"):
            with charging(run):
                LOG.info("in %s", run)
        assert [row["message"] for row in found.of(RUN)] == [
            f"in {RUN}",
            f"in {RUN}.3.1",
            f"in {RUN}.30.1",
        ]
        assert [row["message"] for row in found.of(f"{RUN}.3.1")] == [f"in {RUN}.3.1"]


def test_serve_keeps_a_bounded_number_of_lines(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "EXECUTIONS_MAX", 2)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with kept.task_lines() as found:
        for run in ("a", "b", "c"):
            with charging(run):
                for number in range(kept.LINES_MAX + 1):
                    LOG.info("%d", number)
        assert found.of("a") == []
        assert found.of("c")[0]["message"] == "1"
        assert len(found.of("b")) == kept.LINES_MAX


def test_logging_is_as_it_was_after_serve(root: logging.Logger) -> None:
    handlers, level = root.handlers[:], root.level
    factory = logging.getLogRecordFactory()
    with kept.task_lines():
        assert root.handlers != handlers
    assert (root.handlers, root.level) == (handlers, level)
    assert logging.getLogRecordFactory() is factory


def test_the_trace_context_of_an_attempt_is_the_same_wherever_it_runs() -> None:
    found = set()
    for _ in range(2):
        with charging():
            found.add(task_context().traceparent)
    with charging(attempt=3):
        later = task_context().traceparent

    (first,) = found
    version, trace, span, flags = first.split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
    # X-Ray: the first eight digits are the time of the start in seconds.
    assert int(trace[:8], 16) == 1_795_540_863
    assert later.split("-")[1] == trace
    assert later.split("-")[2] != span
