"""The cloud of the processes: moto on loopback behind one lock, in a process of its own.

moto is not thread safe; the local cloud answers each request under its one lock. Beside moto's
answers this keeps a journal of accepted writes with their times: for every record of a log, the
writer whose conditional put was accepted. The journal would show it if moto accepted two. It also
has the state of each execution after its newest record, for processes that wait for the ends:
reading that from the tables would keep the cloud busy.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, Final

from holdfast.aws.names import ResourceNames
from holdfast.aws.store import item_of
from tests.process.journal import Journal

LOOPBACK: Final = "127.0.0.1"
JOURNAL_PATH: Final = "/_journal"
STATUSES_PATH: Final = "/_statuses"
ITEMS_PATH: Final = "/_items/"  # and a table's name; -> pickled, for a page of a Scan takes seconds
_HOP_HEADERS: Final = frozenset({"connection", "date", "server", "content-length"})


def serve(ready: Connection) -> None:
    """Never returns. `ready` is sent the URL and the names of the stack's resources."""
    # Only this process needs moto, and the others are forked from one that has not loaded it.
    from holdfast.local.clock import SystemClock
    from holdfast.local.cloud import LocalCloud

    threading.Thread(target=_go_with, args=(os.getppid(),), daemon=True).start()
    with LocalCloud(SystemClock()) as cloud:
        server = _Server(Journal(cloud.names.executions_table))
        url = f"http://{LOOPBACK}:{server.server_address[1]}"
        ready.send((url, _reached_at(url, cloud.names)))
        server.serve_forever()


def _go_with(parent: int) -> None:
    """End with the parent: no other process would end this one."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _reached_at(url: str, names: ResourceNames) -> dict[str, str]:
    """Addresses of queues name the service's own host; here they are to name this one."""
    environment = names.to_environment()
    return {
        variable: f"{url}/{value.split('/', 3)[3]}" if "://" in value else value
        for variable, value in environment.items()
    }


def _items(table: str) -> bytes:
    """Return all items of the table, as moto holds them."""
    from moto.backends import get_backend
    from moto.core import DEFAULT_ACCOUNT_ID

    from holdfast.local import intercept
    from holdfast.local.gateway import REGION

    with intercept.LOCK:
        stored = get_backend("dynamodb")[DEFAULT_ACCOUNT_ID][REGION].tables[table].all_items()
        return pickle.dumps([item_of(item.to_json()["Attributes"]) for item in stored])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        super().__init__((LOOPBACK, 0), _Request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed in the middle of their requests: that is what this is for."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        from holdfast.local import endpoint

        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # Its sender crashed: half a request is not a request
            return
        journal = self.server.journal
        own = {JOURNAL_PATH: journal.to_json, STATUSES_PATH: journal.statuses_json}
        if self.path.startswith(ITEMS_PATH):
            self._answer(200, {}, _items(self.path.removeprefix(ITEMS_PATH)))
            return
        if self.path in own:
            self._answer(200, {}, own[self.path]())
            return
        arrived_at = time.time()
        headers = {name.lower(): value for name, value in self.headers.items()}
        here = f"http://{LOOPBACK}:{self.server.server_address[1]}"
        found = endpoint.answer(self.command, self.path, headers, body, here)
        journal.note(headers.get("x-amz-target", ""), body, found.status, arrived_at)
        self._answer(found.status, dict(found.headers), found.body)

    do_GET = do_POST = do_PUT = do_HEAD = _serve  # noqa: N815

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Tens of thousands of requests a minute."""
