"""The output of the command line about many things: executions, counts, limits, schedules.

`execution_screen` shows one execution. Everything is text that fits a terminal of 80 columns. In a
pipe lines are not broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from holdfast.cli import tables
from holdfast.cli.console import harmless
from holdfast.cli.tables import Shown, Table, Text, plain_table
from holdfast.cli.texts import (
    STYLES,
    JsonRow,
    ago,
    duration,
    moment,
    on_one_line,
    span_between,
    subject_of,
)
from holdfast.proofs.capacity import Capacity

put = tables.put


def executions(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table("name", "status", "workflow", "started", "took", "error", right=("took",))
    for row in map(on_one_line, rows):
        table.add_row(
            row["name"] or row["execution"],
            Text(row["status"], STYLES[row["status"]]),
            row["workflow"],
            ago(row["started"], now),
            duration(span_between(row["started"], row.get("stopped", now))),
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
    return str(harmless(colon.join(subject_of(kind, target))))


def longest_wait(oldest: JsonRow, now: datetime) -> str:
    """Return one line about the execution that has waited longest."""
    waited = duration(span_between(oldest["since"], now))
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
    subject = " ".join(subject_of(first["kind"], first.get("target", ""))).rstrip()
    return f"{subject}{error}, {duration(span_between(first['since'], now))}{more}"


def questions(rows: Sequence[JsonRow], now: datetime) -> Table:
    table = plain_table("question", "title", "assignee", "asked", "until", "claimed by")
    for row in map(on_one_line, rows):
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
    for row in map(on_one_line, rows):
        table.add_row(
            row["name"],
            row["key"],
            row["event"],
            row.get("type", ""),
            ago(row["at"], now),
            duration(span_between(now, row["expires"])),
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
        late = duration(span_between(row["since"], now))
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
    for row in map(on_one_line, rows):
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
    for row in map(on_one_line, rows):
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
    for change in map(on_one_line, changes):
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
