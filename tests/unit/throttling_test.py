"""Errors that say "too often": which are known, and for how long the limits close."""

from __future__ import annotations

import email.message
import urllib.error
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast import (
    Limit,
    Throttled,
    Trip,
    each,
    limit_service,
    per_second,
    seconds,
    task,
    workflow,
)
from holdfast.api.throttling import retry_after
from holdfast.deployment import Deployment
from holdfast.errors import WorkflowError
from holdfast.testing import World, fails


class BankBusyError(Exception):
    pass


class AnswerError(Exception):
    """As the errors of requests and httpx."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(status_code=status, headers=named)


NOW = datetime(2026, 3, 6, 12, tzinfo=UTC)
BANK = Limit("bank", rate=per_second(20), throttled_by=(BankBusyError,))


def _aws(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "PutObject")


def _urllib(status: int) -> urllib.error.HTTPError:
    headers = email.message.Message()
    headers["Retry-After"] = "4"
    return urllib.error.HTTPError("http://bank", status, "later", headers, None)


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (Throttled(retry_after=seconds(7)), 7),
        (BankBusyError(), 1),
        (_aws("SlowDown"), 1),
        (AnswerError(429), 1),
        (AnswerError(503, Retry_After="20"), 20),
        (AnswerError(429, Retry_After="99999999999"), 3_600),
        (AnswerError(429, Retry_After="soon"), 1),
        (AnswerError(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), 1),
        (_urllib(429), 4),
        (_aws("AccessDenied"), None),
        (AnswerError(500), None),
        (ValueError("429"), None),
    ],
    ids=repr,
)
def test_a_limit_knows_the_errors_of_common_clients(error: Any, pause: int | None) -> None:
    assert retry_after(error, [BANK], NOW) == (None if pause is None else timedelta(seconds=pause))


def test_a_date_says_until_when_to_wait() -> None:
    error = AnswerError(429, Retry_After="Fri, 06 Mar 2026 12:05:00 GMT")
    assert retry_after(error, [BANK], NOW) == timedelta(minutes=5)


def test_without_a_limit_these_errors_keep_their_names() -> None:
    assert retry_after(AnswerError(429), [], NOW) is None
    assert retry_after(Throttled(), [], NOW) == seconds(1)


@task(limits=[BANK])
def pay(order: str) -> str:
    return order


@workflow
def pay_all(orders: list[str]) -> list[str]:
    return each(orders, pay, concurrency=40)


def test_an_attempt_that_the_dependency_refused_waits_and_counts_no_retry() -> None:
    world = World({pay: fails(AnswerError(429, Retry_After="9"), then="ok")})
    run = world.run(pay_all, ["a"])
    assert run.result == ["ok"]
    assert run.ended == seconds(9)


def test_limits_of_a_service_are_part_of_the_deployment(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "with_services.py").write_text(
        "from holdfast import Limit, limit_service, per_second\n"
        'table = limit_service("aws-sdk:dynamodb", Limit("table", rate=per_second(9)))\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    book = Deployment.from_modules(["with_services"]).limits
    (use,) = book.uses("aws-sdk:dynamodb:putItem")
    assert use.rule.name == "table"
    assert book.uses("aws-sdk:s3:putObject") == ()


@pytest.mark.parametrize("action", ["", "dynamodb:put Item", "arn:aws:states:::sqs:sendMessage"])
def test_a_service_that_cannot_be_is_refused(action: str) -> None:
    with pytest.raises(WorkflowError, match="HF067"):
        limit_service(action, BANK)


def test_a_service_has_no_circuit_breaker() -> None:
    with pytest.raises(WorkflowError, match="HF067"):
        limit_service("aws-sdk:s3", Limit("s3", rate=per_second(1), trip=Trip()))
