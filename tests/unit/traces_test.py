"""Traces made from histories: spans, their order, their ids, and OpenTelemetry's form."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from holdfast.errors import RequestError
from holdfast.local.exporting import export_trace
from holdfast.local.traces import Span, otlp, spans_of
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.trace_ids import attempt_span, execution_span, trace_id, traceparent
from tests.builders import Shop, call, chain, machine, wait_for

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RETRY = [{"ErrorEquals": ["Declined"], "MaxAttempts": 2, "IntervalSeconds": 5}]
TRACEBACK = '  File "shop/bank.py", line 3, in pay'


def flaky(effect: RunTask) -> TaskSucceeded | TaskFailed:
    if effect.attempt == 1 and effect.arguments["n"] == 1:
        return TaskFailed("Declined", "no money", TRACEBACK)
    return TaskSucceeded(effect.arguments)


def branch(name: str, n: int) -> dict[str, Any]:
    return {"StartAt": name, "States": {name: call("add", Arguments={"n": n}, Retry=RETRY)}}


BOTH = {"both": {"Type": "Parallel", "Branches": [branch("a", 0), branch("b", 1)], "End": True}}


def traced(definition: Any, **options: Any) -> tuple[str, list[Span]]:
    shop = Shop(definition, **options)
    run = shop.start({"n": 0})
    shop.world.run(until_ms=shop.world.now_ms + 60_000)
    events = shop.insist(lambda: shop.front.history(shop.tenant, run))["events"]
    return run, spans_of(shop.describe(run), events, NOW)


def test_the_steps_of_branches_are_inside_their_block_and_attempts_inside_their_step() -> None:
    _, spans = traced(machine(BOTH), tasks=flaky)
    by_id = {span.span_id: span.name for span in spans}

    assert [(span.depth, span.name, by_id.get(span.parent_id or "")) for span in spans] == [
        (0, "flow", None),
        (1, "both", "flow"),
        (2, "a", "both"),
        (3, "a #1", "a"),
        (2, "b", "both"),
        (3, "b #1", "b"),
        (3, "b #2", "b"),
    ]
    assert len(by_id) == len(spans)


def test_a_retry_begins_after_its_delay_and_only_the_failed_attempt_has_an_error() -> None:
    _, spans = traced(machine(BOTH), tasks=flaky)
    first, second = (span for span in spans if span.name.startswith("b #"))

    assert (first.error, first.cause, first.traceback) == ("Declined", "no money", TRACEBACK)
    assert first.end_ms is not None
    assert second.start_ms - first.end_ms >= 5_000
    assert [span.name for span in spans if span.error] == ["b #1"]
    assert all(span.end_ms is not None and span.end_ms >= span.start_ms for span in spans)


def test_a_failed_execution_is_an_error_and_all_its_spans_end() -> None:
    _, spans = traced(chain(2), tasks=lambda _: TaskFailed("Declined", None))

    assert spans[0].error == "Declined"
    assert None not in {span.end_ms for span in spans}


def test_a_step_that_still_waits_lasts_until_now() -> None:
    _, spans = traced(machine({"paid": wait_for("paid")}))

    assert spans[-1].end_ms == int(NOW.timestamp() * 1_000)


def test_the_ids_are_those_that_the_task_got() -> None:
    parents: list[str] = []

    def note(effect: RunTask) -> TaskSucceeded:
        step = f"{effect.run}.{effect.entry}"
        parents.append(traceparent(effect.run, attempt_span(step, effect.attempt)))
        return TaskSucceeded({"n": 1})

    run, spans = traced(chain(1), tasks=note)
    assert parents == [f"00-{trace_id(run)}-{spans[-1].span_id}-01"]


def test_a_child_execution_is_in_the_trace_of_its_parent_inside_the_attempt_that_called_it() -> (
    None
):
    run = "01m8796j51x0ddq7zx87hexsag"
    parent = {"run": run, "entry": 3, "attempt": 1}
    started = {
        "type": "ExecutionStarted",
        "timestamp": "2030-01-01T00:00:00Z",
        "holdfast": {"workflow": "ship", "parent": parent},
    }
    child = {"execution": f"{run}.3.1", "status": "RUNNING"}
    (span,) = spans_of(child, [started], NOW)

    assert span.parent_id == attempt_span(f"{run}.3", 1)
    assert trace_id(f"{run}.3.1") == trace_id(run)
    assert execution_span(f"{run}.3.1") != execution_span(run)


def test_the_form_of_opentelemetry() -> None:
    run, spans = traced(machine(BOTH), tasks=flaky)
    (resource,) = otlp(run, spans, "Holdfast")["resourceSpans"]
    service = {"key": "service.name", "value": {"stringValue": "Holdfast"}}
    (scope,) = resource["scopeSpans"]
    failed = next(span for span in scope["spans"] if span["name"] == "b #1")

    assert resource["resource"]["attributes"] == [service]
    assert {span["traceId"] for span in scope["spans"]} == {trace_id(run)}
    assert failed["status"] == {"code": 2, "message": "Declined: no money"}
    assert int(failed["endTimeUnixNano"]) >= int(failed["startTimeUnixNano"])
    (event,) = failed["events"]
    values = {one["key"]: one["value"]["stringValue"] for one in event["attributes"]}
    assert values["exception.stacktrace"] == TRACEBACK


@contextmanager
def collector(status: int) -> Iterator[tuple[str, list[Any]]]:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_trace_is_sent_to_a_collector() -> None:
    with collector(200) as (url, got):
        export_trace(url, {"resourceSpans": []})

    assert got == [{"resourceSpans": []}]


def test_a_collector_that_refuses_a_trace_is_named() -> None:
    with collector(401) as (url, _), pytest.raises(RequestError) as caught:
        export_trace(url, {})

    assert caught.value.code == "HF294"
    assert url in caught.value.message
    with pytest.raises(RequestError, match="not an HTTP URL"):
        export_trace("file:///etc/passwd", {})
