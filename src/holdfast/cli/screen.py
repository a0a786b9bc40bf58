"""The output of the command line: executions, one execution, its history, the report of the demo.

Everything is text that fits a terminal of 80 columns. In a pipe lines are not broken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Any, Final

from holdfast.cli import tables
from holdfast.cli.console import counted, harmless
from holdfast.cli.tables import Column, Shown, Table, Text, plain_table
from holdfast.limits import REQUEST_SUFFIX
from holdfast.local.traces import Span
from holdfast.proofs.capacity import Capacity
from holdfast.runtime.gates.scopes import is_scope, scope_of

VALUE_CHARACTERS_MAX: Final = 400
STYLES: Final = {
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "ABORTED": "yellow",
}

JsonRow = Mapping[str, Any]

put = tables.put


# -- lists -----------------------------------------------------------------------------------------


def executions(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table("name", "status", "workflow", "started", "took", "error", right=("took",))
    for row in map(_on_one_line, rows):
        table.add_row(
            row["name"] or row["execution"],
            Text(row["status"], STYLES[row["status"]]),
            row["workflow"],
            ago(row["started"], now),
            duration(_span(row["started"], row.get("stopped", now))),
            row.get("waits_for", row.get("error", _paused(row) or _waits(row, now))),
        )
    return table


def counts(rows: Sequence[JsonRow], groups: Sequence[str]) -> Table:
    table = plain_table(*groups, "executions", right=("executions",))
    for row in rows:
        table.add_row(*(_label(row[group], group) for group in groups), f"{row['count']:,}")
    if len(rows) > 1:
        total = sum(row["count"] for row in rows)
        table.add_row("all", *("" for _ in groups[1:]), f"{total:,}")
    return table


def _label(value: str, group: str) -> Text:
    if group == "wait":
        return Text(_wait_label(value))
    return Text(harmless(value), STYLES.get(value, "") if group == "status" else "")


def _wait_label(wait: str) -> str:
    kind, colon, target = wait.partition(":")
    return str(harmless(colon.join(_subject(kind, target))))


def _subject(kind: str, target: str) -> tuple[str, str]:
    """Return kind and target of a wait in the words of the command line. A wait for a request is
    stored as a wait for an event whose name ends with a mark.
    """
    if kind == "event" and target.endswith(REQUEST_SUFFIX):
        return "request", target.removesuffix(REQUEST_SUFFIX)
    return kind, target


def longest_wait(oldest: JsonRow, now: datetime) -> str:
    """Return one line about the execution that has waited longest."""
    waited = duration(_span(oldest["since"], now))
    name = harmless(oldest["name"] or oldest["execution"])
    wait = _wait_label(oldest["wait"])
    return f"longest wait: {name} ({oldest['workflow']}) for {wait}, {waited}"


def _paused(row: JsonRow) -> str:
    pause = row.get("paused")
    return "" if pause is None else f"paused {moment(pause['since'])}: {pause['reason']}"


def _waits(row: JsonRow, now: datetime) -> str:
    """Return the longest wait of a running execution, and how many other waits it has."""
    if not row.get("waits"):
        return ""
    first, *others = row["waits"]
    error = f" after {first['error']}" if "error" in first else ""
    more = f" +{len(others)}" if others else ""
    subject = " ".join(_subject(first["kind"], first.get("target", ""))).rstrip()
    return f"{subject}{error}, {duration(_span(first['since'], now))}{more}"


def questions(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table("question", "title", "assignee", "asked", "until", "claimed by")
    for row in map(_on_one_line, rows):
        table.add_row(
            row["question"],
            row["title"],
            row["assignee"],
            ago(row["since"], now),
            moment(row["until"]) if "until" in row else "",
            row.get("claimed_by", ""),
        )
    return table


def events(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table("event", "key", "id", "type", "sent", "kept for", "for", "refused")
    for row in map(_on_one_line, rows):
        table.add_row(
            row["name"],
            row["key"],
            row["event"],
            row.get("type", ""),
            ago(row["at"], now),
            duration(_span(now, row["expires"])),
            row.get("execution", "any"),
            row.get("refused", ""),
        )
    return table


def put_findings(rows: Sequence[JsonRow], now: datetime, *, is_repaired: bool) -> None:
    """Print one paragraph for each finding: the finding, its age, and the repair that is possible
    or done.
    """
    for row in map(harmless, rows):
        named = row.get("name") or row.get("execution") or "a dead letter"
        title = Text(str(named), "bold") + Text(f"  {row['reason']}", "red")
        late = duration(_span(row["since"], now))
        lines = [row["says"], f"since {moment(row['since'])}, {late}"]
        if row.get("state"):
            lines.append(f"in state {row['state']}")
        if row.get("name"):
            lines.append(f"execution {row['execution']}")
        if row.get("repair"):
            lines.append(f"{'repaired' if is_repaired else '--repair'}: {row['repair']}")
        if row.get("advice"):
            lines.append(f"help: {row['advice']}")
        put(title, *(Text(f"  {line}") for line in lines), Text(""), is_wrapped=False)


def pools(rows: Sequence[JsonRow], now: datetime) -> Table:
    """One line for each worker, and one for a pool without workers."""
    table = plain_table(
        "pool", "waiting", "oldest", "worker", "busy", "seen", "since", right=("waiting", "busy")
    )
    for row in map(harmless, rows):
        oldest = ago(row["oldest"], now) if "oldest" in row else ""
        pool = (row["pool"], str(row["waiting"]), oldest)
        for worker in row["workers"]:
            busy = f"{worker['busy']} of {worker['slots']}"
            times = ago(worker["seen"], now), ago(worker["since"], now)
            table.add_row(*pool, worker["worker"], busy, *times)
            pool = ("", "", "")
        if not row["workers"]:
            table.add_row(*pool, Text("none is there", "red"), "", "", "")
    return table


def limits(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table(
        "limit",
        "allows",
        "in use",
        "waiting",
        "oldest",
        "the last begins",
        "changed",
        right=("in use", "waiting"),
    )
    for row in map(_on_one_line, rows):
        last = row.get("seconds")
        table.add_row(
            row["name"],
            _allows(row),
            str(row.get("in_use", "")),
            str(row.get("waiting", f"by {row['key']}" if "key" in row else "")),
            ago(row["oldest"], now) if "oldest" in row else "",
            "" if last is None else f"in about {duration(timedelta(seconds=last))}",
            _limit_change(row, now),
        )
    return table


def schedules(rows: Sequence[JsonRow]) -> Table:
    table = plain_table("schedule", "workflow", "when", "next", "overlap", "started", "skipped")
    for row in map(_on_one_line, rows):
        when = f"{row['cron']} {row['zone']}" if "cron" in row else f"every {_every(row)}"
        coming = "paused" if "paused" in row else row.get("next", "never")
        counts = (str(row["started"]), str(row["skipped"]))
        table.add_row(row["name"], row["workflow"], when, coming, row["overlap"], *counts)
    return table


def schedule_details(found: JsonRow) -> Iterable[Shown]:
    """Yield the details of a schedule for which the table has no column."""
    lines = [f"declared {found['declared']}"]
    if "paused" in found:
        paused = found["paused"]
        lines.append(f"paused since {paused['since']} by {paused['by']}: {paused['reason']}")
    if found.get("times"):
        lines.append(f"next times: {', '.join(found['times'])}")
    lines.append(f"late: {found['late']}, missed as too old: {found['missed']}")
    if found["running"]:
        lines.append(f"running: {', '.join(found['running'])}")
    if "queued" in found:
        lines.append(f"waiting for a running execution: {found['queued']}")
    if "backfill" in found:
        filled = found["backfill"]
        lines.append(f"backfill: reached {filled['reached']} of {filled['until']}")
    if "refused" in found:
        lines.append(f"not started: {found['refused']}, the last one {found['fault']}")
    return [Text(harmless(line).replace("\n", " ")) for line in lines]


def _every(row: JsonRow) -> str:
    return duration(timedelta(seconds=row["every"]))


def capacity(found: Capacity) -> Iterable[Shown]:
    """Yield the limits and the workers, the one that is reached first at the beginning."""
    table = plain_table("what", "allows", "used", "makes room", right=("used",))
    for use in found.uses:
        style = "red" if use.part > 1 else ""
        table.add_row(use.name, use.allows, Text(f"{use.part:.0%}", style), use.change)
    yield f"{found.workflow} at {found.starts_per_second:g} starts a second"
    yield table
    if found.highest is not None:
        first = found.uses[0].name
        yield f"{first} binds first, at {found.highest:.3g} starts a second"
    if found.unknown:
        tasks = ", ".join(found.unknown)
        yield f"run times not given: {tasks}; add --seconds {found.unknown[0]}=0.3"
    yield "counted: one call for each state; rounds, items of lists and retries come on top"


def limit_changes(changes: list[JsonRow], now: datetime) -> Iterable[Shown]:
    """Yield the older changes of one limit, which later changes have replaced, newest first."""
    for change in map(_on_one_line, changes):
        yield f"before: {_limit_change({'changed': change}, now)}"


def _allows(row: JsonRow) -> str:
    if not row.get("declared", True):
        return "the code no longer declares it"
    closed = f", closed until {moment(row['closed_until'])}" if "closed_until" in row else ""
    if "concurrency" in row:
        return f"{row['concurrency']} at once{closed}"
    slowed = f", slowed to {row['speed']:.0%}" if "speed" in row else ""
    return f"{row['rate']:g}/s, burst {row['burst']}{slowed}{closed}"


def _limit_change(row: JsonRow, now: datetime) -> str:
    change = row.get("changed")
    if change is None:
        return ""
    what = "paused" if change.get("paused") else _set_values(change)
    by = f" by {change['by']}" if "by" in change else ""
    return f"{what}{by} {ago(change['at'], now)}: {change['reason']}"


def _set_values(change: JsonRow) -> str:
    values = {"rate": "{:g}/s", "burst": "burst {}", "concurrency": "{} at once"}
    shown = [form.format(change[name]) for name, form in values.items() if name in change]
    return f"set to {', '.join(shown)}" if shown else "cleared"


# -- one execution ---------------------------------------------------------------------------------


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
    status = Text(shown["status"], STYLES[shown["status"]])
    title = Text(str(shown.get("name") or shown["execution"]), "bold")
    table.add_row("execution", title + Text("  ") + status)
    table.add_row("id", shown["execution"])
    if "workflow" in shown:
        table.add_row("workflow", shown["workflow"])
    if "arn" in shown:
        table.add_row("ARN", shown["arn"])
    if "retries" in shown:
        table.add_row("retried", counted(shown["retries"], "time"))
    if "parent" in shown:
        table.add_row("called by", shown["parent"])
    if "void_retry" in shown:
        table.add_row("retry not carried out", shown["void_retry"])
    if "archived" in shown:
        table.add_row("archived", shown["archived"])
    if "fork_of" in shown:
        table.add_row("fork of", f"{shown['fork_of']['execution']}, at {shown['fork_of']['step']}")
    if "forks" in shown:
        table.add_row("forks", ", ".join(shown["forks"]))
    if "started" in shown:
        table.add_row("started", f"{moment(shown['started'])}, {ago(shown['started'], now)}")
    if "undone" in shown:
        table.add_row("undone", ", ".join(shown["undone"]) or "nothing")
    if "stopped" in shown:
        took = duration(_span(shown["started"], shown["stopped"]))
        table.add_row("ended", f"{moment(shown['stopped'])}, after {took}")
    if "paused" in shown:
        pause = shown["paused"]
        by = f" by {pause['by']}" if "by" in pause else ""
        since = f"{moment(pause['since'])}, {ago(pause['since'], now)}"
        table.add_row("paused", f"since {since}{by}; timers {pause['timers']}")
        table.add_row("because", pause["reason"])
    for wait in shown.get("waits", ()):
        table.add_row()
        for label, value in _wait(wait, now):
            table.add_row(label, value)
    table.add_row()
    for name, value in (shown.get("published") or {}).items():
        table.add_row(f"published {name}", value_text(value))
    for name, value in (shown.get("attributes") or {}).items():
        table.add_row(f"search {name}", value_text(value))
    for label in ("input", "output", "error", "cause"):
        if shown.get(label) is not None:
            table.add_row(label, value_text(shown[label]))
    for label in shown.get("omitted", ()):
        table.add_row(label, "too large to be shown here")
    return table


def _failure(failure: JsonRow, now: datetime) -> Iterable[Text]:
    yield Text(f"\nlast failure of {failure['task']}, {ago(failure['at'], now)}", "dim")
    yield Text(failure["traceback"])
    words = [str(failure[key]) for key in ("error", "cause") if key in failure]
    yield Text(_cut(": ".join(words), VALUE_CHARACTERS_MAX), "red")


def _wait(wait: JsonRow, now: datetime) -> Iterable[tuple[str, str | Text]]:
    yield "waits for", Text(_waits_for(wait), "bold")
    if wait.get("assignee"):
        yield "asked", str(wait["assignee"])
    if "details" in wait:
        yield "details", value_text(wait["details"])
    if wait["kind"] == "quarantined":
        yield "reason", str(wait["reason"])
    if "since" in wait:
        yield "since", f"{moment(wait['since'])}, {duration(_span(wait['since'], now))}"
    if "polled_at" in wait:
        times = "once" if wait["polls"] == 1 else f"{wait['polls']} times"
        yield "polled", f"{times}, last at {moment(wait['polled_at'])}"
    for label in ("begun", "heartbeat"):
        if label in wait:
            yield label, f"{moment(wait[label])}, {ago(wait[label], now)}"
    for label in ("until", "retry_at", "next_poll_at"):
        if label in wait:
            left = duration(_span(now, wait[label]))
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
            return f"{' '.join(_subject('event', wait['event']))}, key {wait['key']}"
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
        words = " ".join(_subject("event", wait["event"]))
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


# -- the tasks of an undo --------------------------------------------------------------------------


def undone(events: Sequence[JsonRow]) -> list[str]:
    """Return the tasks that have run since the execution began to undo, in order."""
    begun = [place for place, row in enumerate(events) if row["type"] == "ExecutionRedriven"]
    tasks: list[str] = []
    is_undoing = False
    for row in events[begun[-1] if begun else 0 :]:
        is_undoing |= row["type"] == "UndoStarted"
        resource = row.get("taskScheduledEventDetails", {}).get("resource", "")
        if is_undoing and resource.startswith("task:"):
            tasks.append(resource.removeprefix("task:"))
    return list(dict.fromkeys(tasks))


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
            duration(_span(rows[0]["timestamp"], row["timestamp"])),
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
    if row["type"] in _BY_HAND:
        words = {"by": own.get("by"), "because": own.get("reason")}
        parts += [f"{word} {text}" for word, text in words.items() if text]
    if "due" in own:
        parts.append(f"due {moment(datetime.fromtimestamp(own['due'] / 1_000, UTC))}")
    if not row["type"].endswith(("StateEntered", "StateExited")):
        values = [str(details[key]) for key in ("output", "parameters", "input") if key in details]
        parts += values[:1]
    return "  ".join(parts).replace("\n", " ")


def _on_one_line(row: JsonRow) -> JsonRow:
    """Return the row with each text on one line. A text with line feeds would look like several
    rows.
    """
    shown = harmless(dict(row))
    return {
        key: text.replace("\n", " ") if isinstance(text, str) else text
        for key, text in shown.items()
    }


# -- texts -----------------------------------------------------------------------------------------


def value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(text, VALUE_CHARACTERS_MAX)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def when(time: str | datetime) -> datetime:
    return time if isinstance(time, datetime) else datetime.fromisoformat(time)


def moment(time: str | datetime) -> str:
    return when(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _span(start: str | datetime, end: str | datetime) -> timedelta:
    return max(when(end) - when(start), timedelta(0))


def ago(time: str | datetime, now: datetime) -> str:
    seconds = round(_span(time, now).total_seconds())
    return f"{duration(timedelta(seconds=seconds))} ago" if seconds else "just now"


def duration(span: timedelta) -> str:
    """Return the duration in its two greatest units: "3 d 6 h", "4 min 10 s", "1.2 s", "15 ms"."""
    seconds = span.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1_000)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    left = round(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)
