"""The trace of an execution, computed from its history: spans of steps and attempts.

The execution is the root span. A step is a span from the entry of its state to its exit, and an
attempt of a task is a span inside it. All ids are computed from the ids of the execution and its
steps, so a trace that is exported twice is the same trace. A span that a task has created with
`task_context().traceparent` is inside the attempt's span.

    fulfil_order  ├──────────────────────────────────────────────┤
      charge        ├─────────────────────┤
        charge #1    ├──┤ Declined
        charge #2                    ├───┤
      ship                                   ├───────────────┤
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.trace_ids import attempt_span, execution_span, step_span, trace_id

_ENTERED: Final = "StateEntered"
_EXITED: Final = "StateExited"
_ATTEMPT_ENDS: Final = ("Succeeded", "Failed", "TimedOut")
_INTERNAL: Final = 1
_ERROR: Final = 2

JsonRow = Mapping[str, Any]


@dataclass(slots=True)
class Span:
    """One span. Times are ms since 1970. `depth` is 0 for the execution."""

    span_id: str
    parent_id: str | None
    name: str
    start_ms: int
    depth: int
    end_ms: int | None = None
    error: str | None = None
    cause: str = ""
    traceback: str = ""
    facts: dict[str, str | int] = field(default_factory=dict)


def spans_of(execution: JsonRow, events: Iterable[JsonRow], now: datetime) -> list[Span]:
    """Return the spans, each before those inside it. A span that has not ended lasts until
    `now`.
    """
    trace = _Trace(str(execution["execution"]))
    for event in events:
        trace.read(event)
    if execution["status"] == "RUNNING":
        trace.close_all(_ms(now))
    return _as_tree(trace.spans)


def _as_tree(spans: list[Span]) -> list[Span]:
    inside: dict[str | None, list[Span]] = {}
    for span in spans[1:]:
        inside.setdefault(span.parent_id, []).append(span)

    def below(span: Span) -> Iterator[Span]:
        yield span
        for inner in inside.get(span.span_id, ()):
            yield from below(inner)

    return [found for root in spans[:1] for found in below(root)]


class _Trace:
    def __init__(self, run: str) -> None:
        self._run = run
        self.spans: list[Span] = []
        #: The open step and the open attempt of each line of control, by the id of its frame. The
        #: main line has the id "".
        self._steps: dict[str, Span] = {}
        self._attempts: dict[str, Span] = {}
        #: For each entry number with branches or iterations, the step that started them.
        self._openers: dict[str, Span] = {}

    def read(self, event: JsonRow) -> None:
        kind, at_ms = str(event["type"]), _ms(datetime.fromisoformat(event["timestamp"]))
        own: JsonRow = event.get("holdfast", {})
        details: JsonRow = next((event[key] for key in event if key.endswith("EventDetails")), {})
        frame = str(own.get("frame", ""))
        if kind == "ExecutionStarted":
            self._begin_execution(own, at_ms)
        elif kind.startswith("Execution"):
            self._end_execution(kind, details, at_ms)
        elif kind.endswith(_ENTERED):
            self._close(frame, at_ms)
            self._begin_step(frame, kind, event, details, at_ms)
        elif kind.endswith(_EXITED):
            self._close(frame, at_ms)
        elif kind.endswith("Scheduled"):
            self._begin_attempt(frame, own, at_ms)
        elif kind.endswith(("ParallelStateStarted", "MapStateStarted")) and "entry" in own:
            self._openers[str(own["entry"])] = self._steps[frame]
        elif kind.endswith(_ATTEMPT_ENDS) and frame in self._attempts:
            _end(self._attempts.pop(frame), at_ms, details, own, kind)

    def close_all(self, at_ms: int) -> None:
        for span in self.spans:
            if span.end_ms is None:
                span.end_ms = at_ms
        self._steps.clear()
        self._attempts.clear()

    def _begin_execution(self, own: JsonRow, at_ms: int) -> None:
        parent = own.get("parent")
        outer = None
        if parent is not None:
            outer = attempt_span(f"{parent['run']}.{parent['entry']}", int(parent["attempt"]))
        name = str(own.get("workflow", "execution"))
        span = Span(execution_span(self._run), outer, name, at_ms, 0)
        span.facts = {"holdfast.execution": self._run}
        if own.get("name"):
            span.facts["holdfast.name"] = str(own["name"])
        self.spans.append(span)

    def _end_execution(self, kind: str, details: JsonRow, at_ms: int) -> None:
        root = self.spans[0]
        if kind == "ExecutionRedriven":
            # A retry continues the trace of the execution. So remove the end from its span.
            root.end_ms, root.error, root.cause = None, None, ""
            return
        self.close_all(at_ms)
        _end(root, at_ms, details, {}, kind)

    def _begin_step(
        self, frame: str, kind: str, event: JsonRow, details: JsonRow, at_ms: int
    ) -> None:
        outer = self._openers.get(frame.rpartition(".")[0], self.spans[0])
        span_id = step_span(self._run, int(event["id"]))
        span = Span(span_id, outer.span_id, str(details["name"]), at_ms, outer.depth + 1)
        span.facts = {"holdfast.state.type": kind.removesuffix(_ENTERED)}
        self._steps[frame] = span
        self.spans.append(span)

    def _begin_attempt(self, frame: str, own: JsonRow, at_ms: int) -> None:
        step = self._steps[frame]
        number = int(own.get("attempt", 1))
        span_id = attempt_span(f"{self._run}.{own['entry']}", number)
        # The attempt of a retry begins when its delay has passed, and not when it is scheduled.
        start_ms = max(at_ms, int(own.get("due", 0)))
        span = Span(span_id, step.span_id, f"{step.name} #{number}", start_ms, step.depth + 1)
        span.facts = {"holdfast.attempt": number}
        self._attempts[frame] = span
        self.spans.append(span)

    def _close(self, frame: str, at_ms: int) -> None:
        """End the step of a frame, with its attempt and with the branches that it has opened."""
        attempt, step = self._attempts.pop(frame, None), self._steps.pop(frame, None)
        for span in (attempt, step):
            if span is not None:
                span.end_ms = at_ms
        entries = [entry for entry, opener in self._openers.items() if opener is step]
        for inner in [one for one in self._steps if one.rpartition(".")[0] in entries]:
            self._close(inner, at_ms)


def _end(span: Span, at_ms: int, details: JsonRow, own: JsonRow, kind: str) -> None:
    span.end_ms = at_ms
    if not kind.endswith("Succeeded"):
        default = "States.Timeout" if kind.endswith("TimedOut") else kind
        span.error = str(details.get("error", default))
        span.cause = str(details.get("cause", ""))
        span.traceback = str(own.get("traceback", ""))


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1_000)


# -- OpenTelemetry ---------------------------------------------------------------------------------


def otlp(run: str, spans: Iterable[Span], service: str) -> dict[str, Any]:
    """Return the request of OTLP/HTTP in JSON (opentelemetry-proto, "JSON Protobuf Encoding")."""
    resource = {"attributes": list(_attributes({"service.name": service}))}
    found = [_otlp_span(trace_id(run), span) for span in spans]
    scoped = {"scope": {"name": "holdfast"}, "spans": found}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}


def _otlp_span(trace: str, span: Span) -> dict[str, Any]:
    end_ms = span.start_ms if span.end_ms is None else span.end_ms
    shown: dict[str, Any] = {
        "traceId": trace,
        "spanId": span.span_id,
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start_ms),
        "endTimeUnixNano": _nanoseconds(end_ms),
        "attributes": list(_attributes(span.facts)),
    }
    if span.parent_id is not None:
        shown["parentSpanId"] = span.parent_id
    if span.error is not None:
        shown["status"] = {"code": _ERROR, "message": f"{span.error}: {span.cause}".rstrip(": ")}
        exception = {"exception.type": span.error, "exception.message": span.cause}
        if span.traceback:
            exception["exception.stacktrace"] = span.traceback
        shown["events"] = [
            {
                "name": "exception",
                "timeUnixNano": _nanoseconds(end_ms),
                "attributes": list(_attributes(exception)),
            }
        ]
    return shown


def _attributes(facts: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
    for key, value in facts.items():
        kind = "intValue" if isinstance(value, int) else "stringValue"
        yield {"key": key, "value": {kind: str(value)}}


def _nanoseconds(milliseconds: int) -> str:
    return str(milliseconds * 1_000_000)
