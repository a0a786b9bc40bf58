"""AWS's clients with a script of answers, for what neither moto nor the models do: faults, and the
exact requests.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from holdfast.aws.clients import Clients
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.runtime.effects import TaskFailed

QUEUES = ("https://sqs/work", "https://sqs/single", "https://sqs/starts")
NAMES = ResourceNames("executions", "mail", "blobs", *QUEUES)


class Scripted(Clients):
    """Clients whose operations answer or raise in the order of a script."""

    def __init__(self, *script: Any) -> None:
        super().__init__()
        self.script = list(script)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def get(self, name: Any) -> Any:
        return _Client(self, name)


class _Client:
    def __init__(self, clients: Scripted, name: str) -> None:
        self._clients = clients
        self._name = name

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            self._clients.asked.append((self._name, operation, request))
            answer = self._clients.script.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def answered(status: int, code: str, **more: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "said " * 100},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return ClientError(response, "PutItem")


def ports(clients: Clients, names: ResourceNames = NAMES, *, has_threads: bool = False) -> AwsPorts:
    return AwsPorts(
        clients,
        names,
        tasks=lambda _: TaskFailed("x", ""),
        clock=lambda: 0,
        metrics=lambda _: None,
        has_threads=has_threads,
    )
