"""The output of the command line about one execution: its state, trace and history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Final

from holdfast.cli.console import counted, harmless
from holdfast.cli.tables import Column, Table, Text, plain_table, put
from holdfast.cli.texts import (
    STYLES,
    VALUE_CHARACTERS_MAX,
    JsonRow,
    ago,
    cut,
    duration,
    moment,
    span_between,
    subject_of,
    value_text,
)
from holdfast.local.traces import Span
from holdfast.runtime.gates.scopes import is_scope, scope_of

#: The fields that have a row each, in this order, and the labels of the rows.
_LABELS: Final = {
    "workflow": "workflow",
    "arn": "ARN",
    "retries": "retried",
    "parent": "called by",
    "void_retry": "retry not carried out",
    "archived": "archived",
}


def put_execution(shown: JsonRow, now: datetime) -> None:
    shown = harmless(dict(shown))
    put(_execution(shown, now))
    if "last_failure" in shown:
        # Print the failure below the table, because a table would wrap the lines of source code.
        put(*_failure(shown["last_failure"], now), is_wrapped=False)
    waits = [(wait, line) for wait in shown.get("waits", ()) if (line := _go_on(wait)) is not None]
    for wait, line in waits:
        # If there are several waits, say for each command which of them its id or token answers.
        which = f", for {_waits_for(wait)}" if len(waits) > 1 and "token" in wait else ""
        # Print the command below the table, because a wrapped command cannot be copied.
        put(Text(f"\nto go on{which}, type", "dim"), Text(line, "cyan"), is_wrapped=False)


def _execution(shown: JsonRow, now: datetime) -> Table:
    table = Table([Column(style="dim"), Column(wraps=True)])
    for label, value in _about(shown, now):
        table.add_row(label, value)
    for wait in shown.get("waits", ()):
        table.add_row()
        for label, value in _wait(wait, now):
            table.add_row(label, value)
    table.add_row()
    for label, value in _values(shown):
        table.add_row(label, value)
    return table


def _about(shown: JsonRow, now: datetime) -> Iterable[tuple[str, str | Text]]:
    status = Text(shown["status"], STYLES[shown["status"]])
    title = Text(str(shown.get("name") or shown["execution"]), "bold")
    yield "execution", title + Text("  ") + status
    yield "id", shown["execution"]
    for field, label in _LABELS.items():
        if field in shown:
            value = shown[field]
            yield label, counted(value, "time") if field == "retries" else value
    if "fork_of" in shown:
        yield "fork of", f"{shown['fork_of']['execution']}, at {shown['fork_of']['step']}"
    if "forks" in shown:
        yield "forks", ", ".join(shown["forks"])
    if "started" in shown:
        yield "started", f"{moment(shown['started'])}, {ago(shown['started'], now)}"
    if "undone" in shown:
        yield "undone", ", ".join(shown["undone"]) or "nothing"
    if "stopped" in shown:
        took = duration(span_between(shown["started"], shown["stopped"]))
        yield "ended", f"{moment(shown['stopped'])}, after {took}"
    if "paused" in shown:
        pause = shown["paused"]
        by = f" by {pause['by']}" if "by" in pause else ""
        since = f"{moment(pause['since'])}, {ago(pause['since'], now)}"
        yield "paused", f"since {since}{by}; timers {pause['timers']}"
        yield "because", pause["reason"]


def _values(shown: JsonRow) -> Iterable[tuple[str, str | Text]]:
    for name, value in (shown.get("published") or {}).items():
        yield f"published {name}", value_text(value)
    for name, value in (shown.get("attributes") or {}).items():
        yield f"search {name}", value_text(value)
    for label in ("input", "output", "error", "cause"):
        if shown.get(label) is not None:
            yield label, value_text(shown[label])
    for label in shown.get("omitted", ()):
        yield label, "too large to be shown here"


def _failure(failure: JsonRow, now: datetime) -> Iterable[Text]:
    yield Text(f"\nlast failure of {failure['task']}, {ago(failure['at'], now)}", "dim")
    yield Text(failure["traceback"])
    words = [str(failure[key]) for key in ("error", "cause") if key in failure]
    yield Text(cut(": ".join(words), VALUE_CHARACTERS_MAX), "red")


def _wait(wait: JsonRow, now: datetime) -> Iterable[tuple[str, str | Text]]:
    yield "waits for", Text(_waits_for(wait), "bold")
    if wait.get("assignee"):
        yield "asked", str(wait["assignee"])
    if "details" in wait:
        yield "details", value_text(wait["details"])
    if wait["kind"] == "quarantined":
        yield "reason", str(wait["reason"])
    if "since" in wait:
        yield "since", f"{moment(wait['since'])}, {duration(span_between(wait['since'], now))}"
    if "polled_at" in wait:
        times = "once" if wait["polls"] == 1 else f"{wait['polls']} times"
        yield "polled", f"{times}, last at {moment(wait['polled_at'])}"
    for label in ("begun", "heartbeat"):
        if label in wait:
            yield label, f"{moment(wait[label])}, {ago(wait[label], now)}"
    if "progress" in wait:
        yield "progress", value_text(wait["progress"])
    for label in ("until", "retry_at", "next_poll_at"):
        if label in wait:
            left = duration(span_between(now, wait[label]))
            yield label.replace("_", " "), f"{moment(wait[label])}, {left} from now"
    if "source" in wait:
        source = wait["source"]
        yield "at", f"{source['file']}:{source['line']}"
        yield "", Text(source["text"], "italic")


def _waits_for(wait: JsonRow) -> str:
    match wait["kind"]:
        case "start":
            return "a worker that takes it up"
        case "event":
            return f"{' '.join(subject_of('event', wait['event']))}, key {wait['key']}"
        case "request":
            return f"the reply to request {wait['request']}, key {wait['key']}"
        case "ask":
            return f"an answer: {wait.get('title', '')}"
        case "timer":
            return "the time to pass"
        case "limit":
            return _waits_at_limit(wait)
        case "paused" if "paused_since" in wait:
            by = f" by {wait['paused_by']}" if "paused_by" in wait else ""
            since = moment(wait["paused_since"])
            return f"the resume of {wait['scope']}, paused{by} since {since}: {wait['reason']}"
        case "paused":
            return f"its turn after the pause of {wait['scope']}"
        case "pool":
            where = f"a worker of the pool {wait['pool']}"
            task = f"task {wait['task']}, attempt {wait['attempt']}"
            return f"{task}, on {wait['worker']}" if "worker" in wait else f"{where} for {task}"
        case "container":
            return f"task {wait['task']}, attempt {wait['attempt']}, in a container: {wait['on']}"
        case "task" if "retry_at" in wait:
            return f"attempt {wait['attempt']} of task {wait['task']}"
        case "task":
            return f"task {wait['task']}, attempt {wait['attempt']}"
        case "condition":
            return f"a value from task {wait['task']}"
        case "workflow":
            return f"workflow {wait['workflow']}, execution {wait['execution']}"
        case "execution":
            return f"the end of execution {wait['execution']}"
        case "quarantined":
            return "a person to look: it is quarantined"
        case "unknown_workflow":
            return f"a worker that knows the workflow {wait['workflow']}"
        case "unknown_task":
            return f"a worker that knows the task {wait['task']}"
        case kind:
            return str(kind)


def _waits_at_limit(wait: JsonRow) -> str:
    limit, ahead = f"limit {wait['limit']}", wait["ahead"]
    if "paused_since" in wait:
        by = f" by {wait['paused_by']}" if "paused_by" in wait else ""
        return f"{limit}, paused{by} since {moment(wait['paused_since'])}"
    place = f"{ahead} before it" if ahead < _COUNTED_MAX else f"{ahead} or more before it"
    soon = f", about {duration(timedelta(seconds=wait['seconds']))}" if "seconds" in wait else ""
    return f"{limit}: {place}{soon}"


#: The API counts the rows of a queue up to this number.
_COUNTED_MAX: Final = 1_000


def _go_on(wait: JsonRow) -> str | None:
    """Return the command that ends the wait; None when no command does."""
    if "question" in wait:
        return f"holdfast answer {wait['question']} --output '…'"
    if "token" in wait:
        return f"holdfast answer {wait['token']} --output '…'"
    if wait["kind"] == "event":
        words = " ".join(subject_of("event", wait["event"]))
        return f"holdfast {words} --key {quote(wait['key'])} --data '…'"
    return None


# -- trace ---------------------------------------------------------------------------------------


def spans(found: list[Span]) -> Table:
    table = plain_table("step", "after", "took", "error", right=("after", "took"))
    begin_ms = found[0].start_ms if found else 0
    for span in found:
        end_ms = span.start_ms if span.end_ms is None else span.end_ms
        name = Text(harmless(f"{'  ' * span.depth}{span.name}"), "red" if span.error else "")
        after = timedelta(milliseconds=span.start_ms - begin_ms)
        took = timedelta(milliseconds=end_ms - span.start_ms)
        table.add_row(name, duration(after), duration(took), harmless(span.error or ""))
    return table


# -- the steps of an undo --------------------------------------------------------------------------


def undone(events: Sequence[JsonRow]) -> list[str]:
    """Return the steps that have run since the execution began to undo, in order."""
    begun = [place for place, row in enumerate(events) if row["type"] == "ExecutionRedriven"]
    steps: list[str | None] = []
    is_undoing = False
    for row in events[begun[-1] if begun else 0 :]:
        is_undoing |= row["type"] == "UndoStarted"
        if is_undoing:
            steps.append(_undo_step(row.get("taskScheduledEventDetails", {})))
    return [step for step in dict.fromkeys(steps) if step is not None]


def _undo_step(scheduled: JsonRow) -> str | None:
    """Return the name of a step that may undo, as the report of `check` names it; None for another
    event or step.
    """
    kind, _, target = str(scheduled.get("resource", "")).partition(":")
    match kind:
        case "task":
            return target
        case "workflow":
            return f"workflow {target}"
        case "start" | "start_later":
            return f"start {target}"
        case "send" | "send_later":
            return f"send {json.loads(scheduled['parameters'])['name']}"
        case "stop":
            return "stop execution"
        case _:
            return None


# -- history ---------------------------------------------------------------------------------------


def history(rows: Sequence[JsonRow]) -> Table:
    table = plain_table("id", "after", "event", "what", right=("id", "after"))
    # Let only the last column become narrower on a small terminal.
    table.columns[-1].wraps = True
    for row in map(harmless, _with_last_polls(rows)):
        style = _style(row)
        what = Text(_what(row), style, is_cut=True)
        if "traceback" in row.get("holdfast", {}):
            what += Text(f"\n{row['holdfast']['traceback']}")
        table.add_row(
            str(row.get("id", "")),
            duration(span_between(rows[0]["timestamp"], row["timestamp"])),
            Text(row["type"], style),
            what,
        )
    return table


#: These events of the same step do not end a series of polls. Any other event ends it.
_BETWEEN_POLLS: Final = frozenset({"Opened", "Claimed"})


def _with_last_polls(rows: Sequence[JsonRow]) -> list[JsonRow]:
    """Return the rows with only the last row of each series of polls: that row contains the number
    of polls.
    """
    kept: list[JsonRow] = []
    last: dict[str, int] = {}
    for row in rows:
        line = str(row.get("holdfast", {}).get("frame", ""))
        is_poll = row["type"] == "ConditionUnmet"
        if is_poll and line in last:
            kept[last[line]] = row
            continue
        if row["type"] not in _BETWEEN_POLLS:
            last.pop(line, None)
        if is_poll:
            last[line] = len(kept)
        kept.append(row)
    return kept


#: The events that name the operator who requested them, and the reason.
_BY_HAND: Final = frozenset(
    {"ExecutionRedriven", "Paused", "Resumed", "PriorityChanged", "StepSkipped", "ExecutionForked"}
    | {"AttemptQueued", "ExecutionQueued", "Migrated"}
)


def _style(row: JsonRow) -> str:
    if row["type"].endswith(("Failed", "TimedOut", "Aborted")):
        return "red"
    is_quiet = "id" not in row or row["type"].endswith(("StateExited", "TaskStarted"))
    return "dim" if is_quiet else ""


def _what(row: JsonRow) -> str:
    """Return the state, the task and the error on one line; for a task also its input or output."""
    details: JsonRow = next((row[key] for key in row if key.endswith("EventDetails")), {})
    own = row.get("holdfast", {})
    parts = [str(details[key]) for key in ("name", "resource", "error", "cause") if key in details]
    if "gate" in own:
        gate = own["gate"].partition("#")[0]
        held = f"held by the pause of {scope_of(gate)}" if is_scope(gate) else ""
        parts.append(held or f"waits for limit {gate}")
    if own.get("attempt", 1) > 1:
        parts.append(f"attempt {own['attempt']}")
    if row["type"] == "ConditionUnmet":
        parts.append(f"polled {own['polls']} times" if own["polls"] > 1 else "polled once")
    if row["type"] == "Migrated":
        parts.append(f"from {own['from'][:12]} to {own['to'][:12]}")
    if "cached" in own:
        parts.append(f"from the cache, a result of {own['cached']['execution']}")
    if row["type"] in _BY_HAND:
        words = {"by": own.get("by"), "because": own.get("reason")}
        parts += [f"{word} {text}" for word, text in words.items() if text]
    if "due" in own:
        parts.append(f"due {moment(datetime.fromtimestamp(own['due'] / 1_000, UTC))}")
    if not row["type"].endswith(("StateEntered", "StateExited")):
        values = [str(details[key]) for key in ("output", "parameters", "input") if key in details]
        parts += values[:1]
    return "  ".join(parts).replace("\n", " ")
