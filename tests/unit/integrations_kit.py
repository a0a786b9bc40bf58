"""Clients that answer from a table, with botocore's own models and nothing behind them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from botocore.session import Session

from holdfast.integrations import Integrations
from holdfast.runtime.effects import RunTask

_SESSION = Session()
_SESSION.set_credentials("nobody", "nothing")


class Clients:
    """A replacement for `ServiceClients`; `answers`: method's name to its answer or error."""

    region = "eu-west-1"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def available(self) -> tuple[str, ...]:
        return tuple(_SESSION.get_available_services())

    def model(self, service: str) -> Any:
        return _SESSION.get_service_model(service)

    def get(self, service: str, role_arn: str | None = None) -> Any:
        client = _SESSION.create_client(service, region_name=self.region)
        for name, answer in self.answers.items():
            if hasattr(client, name):
                setattr(client, name, self._answering(name, answer))
        return client

    def credentials(self, role_arn: str | None = None) -> Any:
        return _SESSION.get_credentials()

    def _answering(self, name: str, answer: Any) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            self.calls.append((name, request))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def effect(name: str, arguments: Any, kind: Any = "service") -> RunTask:
    return RunTask(
        name=name,
        kind=kind,
        arguments=arguments,
        tenant="default",
        run="r",
        run_name=None,
        workflow="w",
        entry=1,
        attempt=1,
        deadline_ms=0,
    )


def perform(task: RunTask, answers: Mapping[str, Any]) -> tuple[Any, Clients]:
    """Return the result, and the clients with the calls that were made."""
    clients = Clients(answers)
    return Integrations(clients, _nobody).perform(task), clients  # type: ignore[arg-type]


def function_answer(payload: bytes, **fields: Any) -> dict[str, Any]:
    return {
        "StatusCode": 200,
        "ExecutedVersion": "$LATEST",
        "Payload": io.BytesIO(payload),
        **fields,
    }


def _nobody(operation: str, request: dict[str, Any], asking: RunTask) -> dict[str, Any]:
    raise AssertionError(operation)
