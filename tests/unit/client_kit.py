"""A stack in memory for the client: Python workflows, their worker, and the API, also over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from holdfast.api.sealing import LocalVault
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.remote.connecting import Api
from holdfast_simulator.world import SimulatorWorld
from tests.builders import KEYS, Shop
from tests.unit.host_kit import Site

TENANT_CLAIM = {"tenant": "acme"}


def _compile(workflow: Any) -> Any:
    compiled = compile_workflow(workflow)
    return compiled.asl, json.loads(compiled.map_text)


@dataclass
class MemoryStack:
    """Executions on virtual time. The worker does all it can after each request."""

    module: str
    works: bool = True
    others: tuple[str, ...] = ()
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        deployment = Deployment.from_modules([self.module, *self.others], _compile, LocalVault())
        programs = deployment.programs()
        setting = deployment.setting(programs, lambda: KEYS)
        self.world = SimulatorWorld(setting, deployment.run_task)
        self.front = deployment.front(programs, KEYS)
        shop = SimpleNamespace(world=_World(self.world, setting), front=self.front)
        self.site = Site(cast(Shop, shop))

    @property
    def api(self) -> Api:
        return Api(self.carry, "the test")

    def carry(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        return self.answer(method, target, body, None)

    def answer(
        self, method: str, target: str, body: bytes, authorization: str | None
    ) -> tuple[int, bytes]:
        self.requests.append(f"{method} {target}")
        path, _, query = target.partition("?")
        claims = TENANT_CLAIM if (authorization or "").startswith("Bearer ") else None
        asked = dict(parse_qsl(query))
        status, answer = self.site.request(
            *(method, unquote(path), json.loads(body or b"{}")),
            query=asked,
            claims=claims,
            rawQueryString=query,
        )
        if self.works:
            self.world.run(until_ms=self.world.now_ms)
        return status, json.dumps(answer).encode()


@dataclass
class _World:
    world: SimulatorWorld
    setting: Any

    @property
    def services(self) -> Any:
        return self.world.services


@dataclass
class Served:
    """The stack behind HTTP/1.1. `connections` counts those that clients have opened."""

    url: str
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0


@contextmanager
def served(stack: MemoryStack) -> Iterator[Served]:
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            found.connections += 1

        def do_GET(self) -> None:
            self._answer(b"")

        def do_DELETE(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            found.headers.append(dict(self.headers.items()))
            with one_at_a_time:
                status, answer = stack.answer(
                    self.command, self.path, body, self.headers.get("Authorization")
                )
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """The terminal of the tests stays quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Served(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
