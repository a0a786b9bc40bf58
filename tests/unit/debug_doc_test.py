"""The page on debugging: its programs run, and its figures are the code's."""

from __future__ import annotations

import logging
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from holdfast import TaskContext
from holdfast.api.task_context import running_task
from holdfast.limits import TRACEBACK_CHARACTERS_MAX
from holdfast.local import cloud_logs, debugging, task_lines
from holdfast.task_logs import KEYS
from tests.unit.dsl_kit import loaded

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "debug.md").read_text(encoding="utf-8")
LOGGING, NOTIFYING = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
CONTEXT = TaskContext("run", "order-17", "order", "charge", 1, "run.1")


def test_the_task_that_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), loaded(tmp_path, LOGGING) as program:
        assert program.charge("o1", 5) == "paid o1"

    assert caplog.messages == ["charging 5 pence"]


def test_the_task_that_passes_the_trace_context_on(tmp_path: Path) -> None:
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers["traceparent"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with loaded(tmp_path, NOTIFYING) as program, running_task(CONTEXT):
            assert program.notify(f"http://127.0.0.1:{server.server_port}/") == 204
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert got == [CONTEXT.traceparent]


def test_the_figures_and_keys_are_those_of_the_code() -> None:
    figures = (
        f"at most {TRACEBACK_CHARACTERS_MAX:,} characters",
        f"the last {task_lines.LINES_MAX} lines of each of the last {task_lines.EXECUTIONS_MAX}\n",
        f"at most {cloud_logs.LINES_MAX:,} lines",
        f"every gap of over {debugging.GAP_MS // 1_000} s",
    )
    assert [figure for figure in figures if figure not in PAGE] == []
    assert [key for key in KEYS if f"`{key}`" not in PAGE] == []
