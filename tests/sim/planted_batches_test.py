"""Bugs of the answer to a batch, which the simulator does not give: caught by the host's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.aws import host
from holdfast.aws.host import Host
from tests.unit.host_test import (
    test_a_batch_runs_its_executions_to_their_ends as everything_is_done,
)
from tests.unit.host_test import test_one_bad_message_comes_back_alone as one_is_bad

Patch = pytest.MonkeyPatch


def _name_no_failure(patch: Patch) -> None:
    patch.setattr(host, "_failed", lambda _: {"batchItemFailures": []})


def _name_all_as_failures(patch: Patch) -> None:
    real = Host.worker

    def worker(self: Host, event: Any, context: Any) -> Any:
        real(self, event, context)
        return host._failed(str(record["messageId"]) for record in event["Records"])

    patch.setattr(Host, "worker", worker)


def _die_of_one_message(patch: Patch) -> None:
    real = host.run  # type: ignore[attr-defined]

    def run(*arguments: Any) -> Any:
        try:
            return real(*arguments)
        except Exception as error:
            raise SystemExit from error

    patch.setattr(host, "run", run)


@pytest.mark.parametrize(
    ("plant", "test"),
    [
        (_name_no_failure, one_is_bad),
        (_name_all_as_failures, everything_is_done),
        (_die_of_one_message, one_is_bad),
    ],
)
def test_a_wrong_answer_to_a_batch_is_caught(
    plant: Callable[[Patch], None], test: Callable[[], None], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    with pytest.raises((Exception, SystemExit)):  # whichever way the test fails
        test()
