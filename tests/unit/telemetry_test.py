"""The lines of the functions: embedded metrics of CloudWatch, faults, and the logs of tasks."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import resources
from holdfast.aws import group_function, telemetry
from holdfast.aws.faults import fault
from holdfast.aws.telemetry import Metrics, log_fault, log_to_cloudwatch
from holdfast.aws.vault import KmsVault
from holdfast.errors import HoldfastError, VaultFault
from holdfast.runtime.effects import Labels, Measure
from holdfast.sealed import parse_sealed
from tests.contract.scripted import Scripted, answered


def lines_of(*measures: Measure) -> list[Any]:
    metrics, written = Metrics("Shop"), list[str]()
    for measure in measures:
        metrics(measure)
    metrics.flush(1_750_000_000_123, written.append)
    metrics.flush(1_750_000_000_124, written.append)  # nothing is left
    assert all(line.endswith("\n") for line in written)
    return [json.loads(line) for line in written]


def test_counts_are_added_and_of_durations_the_longest_is_kept() -> None:
    [line] = lines_of(
        *(Measure(resources.METRIC_EXECUTIONS_ENDED, 1, labels=Labels("order")),) * 3,
        *(
            Measure(resources.METRIC_SCHEDULER_LAG, seconds, "Seconds", Labels("order"))
            for seconds in (2.5, 7.0, 3.0)
        ),
    )
    assert line == {
        "_aws": {
            "Timestamp": 1_750_000_000_123,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Holdfast",
                    "Dimensions": [["Stack"]],
                    "Metrics": [
                        {"Name": "ExecutionsEnded", "Unit": "Count"},
                        {"Name": "SchedulerLagSeconds", "Unit": "Seconds"},
                    ],
                },
                {
                    "Namespace": "Holdfast",
                    "Dimensions": [["Stack", "Workflow"]],
                    "Metrics": [{"Name": "ExecutionsEnded", "Unit": "Count"}],
                },
            ],
        },
        "Stack": "Shop",
        "Workflow": "order",
        "ExecutionsEnded": 3.0,
        "SchedulerLagSeconds": 7.0,
    }


def test_each_label_has_its_field_and_each_combination_its_line() -> None:
    labels = Labels(*(f"a {name}" for name in Labels._fields))
    machine, plain = lines_of(
        Measure(resources.METRIC_DURABLE_STEPS, 1, "Bytes", labels),
        Measure(resources.METRIC_DURABLE_STEPS, 2, labels=Labels(task="pack", error="Late")),
    )
    assert {name: value for name, value in machine.items() if name != "_aws"} == {
        "Stack": "Shop",
        # Callers name state machines, and CloudWatch would bill each name.
        "Workflow": "(state machines)",
        "StateMachine": "a state_machine",
        "Task": "a task",
        "Error": "a error",
        "Wait": "a wait",
        "Target": "a target",
        "Limit": "a limit",
        "Action": "a action",
        "DurableSteps": 1,
    }
    [directive] = machine["_aws"]["CloudWatchMetrics"]
    assert directive["Metrics"] == [{"Name": "DurableSteps", "Unit": "Bytes"}]
    assert (plain["Task"], plain["Error"], plain["DurableSteps"]) == ("pack", "Late", 2)
    assert "Workflow" not in plain


def test_a_value_for_the_log_alone_is_no_metric() -> None:
    [line] = lines_of(Measure(resources.METRIC_POOL_WAITING, 4))
    assert line == {"Stack": "Shop", "PoolWaiting": 4}


def test_a_fault_is_one_line_with_its_code_and_nothing_of_others_texts() -> None:
    written: list[str] = []
    log_fault("it failed", HoldfastError("HF321", "x" * 600), written.append, shard="3")
    log_fault("it failed", ValueError("card 4111"), written.append)
    assert [json.loads(line) for line in written] == [
        {
            "level": "ERROR",
            "what": "it failed",
            "error": "HoldfastError",
            "shard": "3",
            "code": "HF321",
            "message": "x" * 500,
        },
        {"level": "ERROR", "what": "it failed", "error": "ValueError", "code": "HF900"},
    ]
    assert all(line.endswith("\n") for line in written)


@pytest.fixture
def _root() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:], logging.root.level = handlers, level


@pytest.mark.usefixtures("_root")
def test_the_log_has_the_lines_of_tasks_and_warnings_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_cloudwatch({resources.ENV_STACK: "Shop", "POWERTOOLS_SERVICE_NAME": "desk"})
    [handler] = logging.root.handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is sys.stdout
    assert logging.root.level == logging.INFO
    log = logging.getLogger("another library")
    log.info("chatter")
    log.warning("trouble")
    log.info("of a task", extra={"execution_id": "r1"})
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["message"], line["service"]) for line in told] == [
        ("trouble", "desk"),
        ("of a task", "desk"),
    ]
    log_to_cloudwatch({resources.ENV_STACK: "Shop", "POWERTOOLS_LOG_LEVEL": "error"})
    assert logging.root.level == logging.ERROR
    logging.getLogger("another library").error("late")
    assert json.loads(capsys.readouterr().out)["service"] == "Shop"


def test_the_function_of_a_group_writes_the_lines_of_its_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(telemetry, "log_to_cloudwatch", told.append)
    monkeypatch.setenv(resources.ENV_MODULES, "tests.order_shop")
    group_function._runs_attempt.cache_clear()
    group_function._runs_attempt()
    group_function._runs_attempt.cache_clear()
    assert told == [os.environ]


def test_an_attempt_that_runs_on_ends_its_process_with_its_keys(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    group_function._end_process({"execution": "r1", "task": "charge"})
    assert ended == [1]
    [record] = caplog.records
    assert (record.name, record.levelname) == ("holdfast.tasks", "ERROR")
    assert vars(record)["execution_id"] == "r1"
    assert vars(record)["task"] == "charge"
    assert "runs on after its time-out" in record.getMessage()


def test_a_process_ends_a_second_after_the_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[float, Any]] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, end: Any) -> None:
            made.append((seconds, end))

        def start(self) -> None:
            assert self.daemon
            made.append((0, "started"))

        def cancel(self) -> None:
            made.append((0, "cancelled"))

    monkeypatch.setattr("holdfast.aws.group_function.threading.Timer", Timer)
    for seconds, waits in ((5.5, 6.5), (-3.0, 1.0)):
        made.clear()
        with group_function.ended_in_time(seconds, print):
            assert made == [(waits, print), (0, "started")]
        assert made[-1] == (0, "cancelled")


# -- the vault -------------------------------------------------------------------------------------


def test_a_secret_is_sealed_with_its_tenant_and_measured_in_bytes() -> None:
    clients = Scripted({"CiphertextBlob": b"sealed"}, {"Plaintext": "gehört".encode()})
    vault = KmsVault(clients, "arn:aws:kms:eu-west-1:1:key/k1")
    text = vault.seal("acme", "gehört")
    sealed = parse_sealed(text)
    assert sealed is not None
    assert (sealed.key, sealed.data, sealed.size) == ("k1", b"sealed", 7)
    assert vault.open("acme", sealed) == "gehört"
    arn = "arn:aws:kms:eu-west-1:1:key/k1"
    context = {"tenant": "acme"}
    assert clients.asked == [
        (
            "keys",
            "encrypt",
            {"KeyId": arn, "Plaintext": "gehört".encode(), "EncryptionContext": context},
        ),
        (
            "keys",
            "decrypt",
            {"KeyId": arn, "CiphertextBlob": b"sealed", "EncryptionContext": context},
        ),
    ]


def test_a_fault_of_the_key_quotes_nothing_and_keeps_its_retry() -> None:
    vault = KmsVault(Scripted(answered(400, "ThrottlingException")), "arn:x/k1")
    with pytest.raises(VaultFault) as found:
        vault.seal("acme", "secret")
    assert (found.value.code, found.value.retry) == ("HF321", "later")
    assert found.value.__cause__ is None
    assert "secret" not in str(found.value)


# -- faults ----------------------------------------------------------------------------------------


def test_a_fault_names_the_operation_and_the_code_and_cuts_the_text() -> None:
    throttled = fault("put_item", answered(400, "ThrottlingException"))
    assert throttled.message == "put_item was throttled: ThrottlingException"
    down = fault("put_item", answered(500, "InternalServerError"))
    assert down.message == "put_item answered 500 InternalServerError"
    refused = fault("put_item", answered(499, "ValidationException"))
    assert refused.message == "put_item was refused: ValidationException: " + ("said " * 100)[:200]
    assert (refused.code, refused.retry) == ("HF323", "never")
    expired = fault("put_item", answered(400, "ExpiredToken"))
    assert (expired.code, expired.retry, expired.message) == (
        "HF322",
        "later",
        "put_item: ExpiredToken",
    )
    gone = fault("get_object", answered(404, "NoSuchKey"))
    assert (gone.code, gone.retry, gone.message) == (
        "HF324",
        "never",
        "get_object: no such object",
    )
    assert fault("put_item", OSError("x")).message == "put_item: OSError"
    odd = fault("put_item", ValueError("card 4111"))
    assert (odd.code, odd.message, odd.retry) == ("HF323", "put_item: ValueError", "never")
