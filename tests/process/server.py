"""The cloud of the processes: moto on loopback behind one lock, in a process of its own.

moto is not thread safe; the local cloud answers each request under its one lock. Beside moto's
answers this keeps a journal of its own of who was let in: for every record of a log the writer
whose conditional put was accepted. moto cannot accept two without the journal knowing. How each
execution stands by its newest record is there for whoever waits for the ends: reading that from
the tables would keep the cloud busy.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, Final

from holdfast.aws.names import Names
from holdfast.aws.store import item_of

LOOPBACK: Final = "127.0.0.1"
JOURNAL_PATH: Final = "/_journal"
STATUSES_PATH: Final = "/_statuses"
ITEMS_PATH: Final = "/_items/"  # and a table's name; -> pickled, for a page of a Scan takes seconds
SAMPLES_MAX: Final = 400
_HOP_HEADERS: Final = frozenset({"connection", "date", "server", "content-length"})


@dataclass
class Journal:
    """What was asked of the cloud. `writers`: partition and sequence to the accepted nonces."""

    executions_table: str
    requests: Counter[str] = field(default_factory=Counter)
    refused_puts: int = 0
    writers: dict[str, list[str]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def note(self, target: str, body: bytes, status: int) -> None:
        operation = target.rpartition(".")[2]
        with self._lock:
            match operation:
                case "PutItem":
                    self._put(json.loads(body), status)
                case "SendMessageBatch":
                    self._sent(json.loads(body))
                case "DeleteMessage" if b"-dlq" in body:
                    operation = "DeleteMessage (dead letter)"
            self.requests[operation] += 1

    def _put(self, request: dict[str, Any], status: int) -> None:
        if request["TableName"] != self.executions_table:
            return
        item = request["Item"]
        if status == 200:
            key = f"{item['pk']['S']} {item['sk']['N']}"
            self.writers.setdefault(key, []).append(item["w"]["S"])
            self.statuses[item["pk"]["S"]] = item["st"]["S"]
        else:
            self.refused_puts += 1

    def _sent(self, request: dict[str, Any]) -> None:
        """An even sample of all messages that ever were: they come back long after."""
        for entry in request["Entries"]:
            self._seen += 1
            if len(self.messages) < SAMPLES_MAX:
                self.messages.append(entry["MessageBody"])
            elif (place := self._draw.randrange(self._seen)) < SAMPLES_MAX:
                self.messages[place] = entry["MessageBody"]

    def statuses_json(self) -> bytes:
        with self._lock:
            return json.dumps(self.statuses).encode()

    def to_json(self) -> bytes:
        with self._lock:
            shown = {
                "requests": self.requests,
                "refused_puts": self.refused_puts,
                "writers": self.writers,
                "messages": self.messages,
            }
            return json.dumps(shown).encode()


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
    """Nobody else would end this process."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _reached_at(url: str, names: Names) -> dict[str, str]:
    """Addresses of queues name the service's own host; here they are to name this one."""
    environment = names.to_environment()
    return {
        variable: f"{url}/{value.split('/', 3)[3]}" if "://" in value else value
        for variable, value in environment.items()
    }


def _items(table: str) -> bytes:
    """-> all items of the table, as moto holds them."""
    from moto.backends import get_backend
    from moto.core import DEFAULT_ACCOUNT_ID

    from holdfast.local import intercept
    from holdfast.local.cloud import REGION

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
            self.close_connection = True  # its sender died: half a request is none
            return
        journal = self.server.journal
        own = {JOURNAL_PATH: journal.to_json, STATUSES_PATH: journal.statuses_json}
        if self.path.startswith(ITEMS_PATH):
            self._answer(200, {}, _items(self.path.removeprefix(ITEMS_PATH)))
            return
        if self.path in own:
            self._answer(200, {}, own[self.path]())
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        here = f"http://{LOOPBACK}:{self.server.server_address[1]}"
        found = endpoint.answer(self.command, self.path, headers, body, here)
        journal.note(headers.get("x-amz-target", ""), body, found.status)
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
