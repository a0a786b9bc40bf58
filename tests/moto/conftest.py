"""A running `serve` of the example workflows, and the command line pointed at it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of

MODULES = [
    "statemachines.order_fulfilment",
    "statemachines.loan_approval",
    "statemachines.document_signing",
]
PATIENCE_SECONDS = 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(deployment_of(MODULES), port=0) as served:
        yield served.url


@dataclass
class Shell:
    """Types commands at the endpoint and reads what they print."""

    url: str
    capture: pytest.CaptureFixture[str]
    printed: str = ""
    complaints: str = ""

    def __call__(self, *arguments: str) -> int:
        # `holdfast schedule list` has its options after the action.
        command = 2 if arguments[0] == "schedule" else 1
        status = main([*arguments[:command], "--endpoint", self.url, *arguments[command:]])
        self.printed, self.complaints = self.capture.readouterr()
        assert "Traceback" not in self.printed + self.complaints
        return status

    def json(self, *arguments: str) -> Any:
        """Return the one line of JSON that a command prints."""
        assert self(*arguments, "--json") == 0, self.complaints
        assert self.printed.count("\n") == 1
        return json.loads(self.printed)

    def until(self, holds: Callable[[Any], bool], *arguments: str) -> Any:
        """Repeat the command until the condition holds, and return its output: the stack runs on
        the real clock.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds(found := self.json(*arguments)):
            assert time.monotonic() < deadline, found
        return found


@pytest.fixture
def shell(url: str, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(url, capsys)
