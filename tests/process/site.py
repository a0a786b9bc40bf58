"""The parts of every process of the stack: names, clients, compiled workflows, a ledger."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from botocore.session import Session

from holdfast.api.surface import Workflow
from holdfast.aws.clients import Clients
from holdfast.aws.host import Host
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.aws.telemetry import Metrics
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import RunTask, TaskResult
from holdfast.runtime.storage.definitions import Programs
from tests.process.ledger import attempt_of

RunsTask = Callable[[RunTask], TaskResult]

MODULE: Final = "tests.process.workflows"
REGION: Final = "us-east-1"
KEYS: Final = SigningKeys("k1", {"k1": b"a secret of the test, 32 bytes.."})


@dataclass(frozen=True, slots=True)
class Site:
    """Made once; every process is a fork of the one that made it, and begins with all of it."""

    deployment: Deployment
    programs: Programs
    clients: Clients
    names: ResourceNames
    folder: Path

    @classmethod
    def at(cls, url: str, environment: dict[str, str], folder: Path) -> Self:
        os.environ["AWS_ENDPOINT_URL"] = url
        os.environ["NO_PROXY"] = "127.0.0.1"
        os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
        session = Session()
        session.set_credentials("test", "test")
        clients = Clients(session, REGION)
        for name in ("store", "store-once", "queues", "blobs", "bus"):
            clients.get(name)  # made before the forks, connected after
        deployment = Deployment.from_modules([MODULE], compiled)
        names = ResourceNames.from_environment(environment)
        return cls(deployment, deployment.programs(), clients, names, folder)

    def host(self, tasks: RunsTask) -> Host:
        metrics = Metrics("process")
        ports = AwsPorts(
            self.clients,
            self.names,
            tasks=tasks,
            clock=lambda: time.time_ns() // 1_000_000,
            metrics=metrics,
        )
        setting = self.deployment.setting(self.programs, lambda: KEYS)
        return Host(ports, setting, lambda: self.deployment.front(self.programs, KEYS), metrics)

    @property
    def ledger(self) -> Path:
        """One line for each task that has begun; see `ledger.Begun`."""
        return self.folder / "ledger"

    def run_task(self, effect: RunTask) -> TaskResult:
        attempt = attempt_of(effect.run, effect.entry, effect.attempt)
        append(self.ledger, f"{attempt} {os.getpid()} {time.time()}")
        return self.deployment.run_task(effect)


def append(path: Path, line: str) -> None:
    """Write one line at once: whole or not at all, in spite of other writers and crashes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def compiled(workflow: Workflow[..., Any]) -> tuple[Any, dict[str, Any]]:
    """Compiled here and now: nothing of the tests is shipped."""
    found = compile_workflow(workflow)
    return found.asl, json.loads(found.map_text)
