"""The report of the demo, and its progress while it runs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast.cli.tables import Column, Table, Text, plain_table, put
from holdfast.cli.texts import duration
from holdfast.cost import (
    COMMIT_MEMORY_MB,
    COMMIT_MS,
    STEP_FUNCTIONS_USD_PER_MILLION_TRANSITIONS,
    CostLine,
    step_functions_usd,
)
from holdfast.local.demo import DemoReport, EndedExecution
from holdfast.runtime.effects import Measure

BAR_CHARACTERS: Final = 24
EXAMPLES_MAX: Final = 2
NAMES_MAX: Final = 10
FOOTNOTE: Final = (
    "A durable step is a committed result, failure or timeout of a task or a wait,\n"
    "or a timer that fired. An order has few; in a long chain each costs less.\n"
    f"Assumed: {COMMIT_MS} ms at {COMMIT_MEMORY_MB} MB for each commit. "
    "On neither bill: the tasks' own time."
)
NEXT: Final = "next: ./holdfast serve"
_STYLES: Final = {"shipped": "green", "charged": "green", "refused": "yellow", "failed": "yellow"}


@contextmanager
def progress(orders: int, *, is_shown: bool) -> Iterator[Callable[[Measure], None]]:
    """Yield a function for the stack's measurements. On a terminal they move a progress bar on
    stderr.
    """
    if not (is_shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    bar = Progress(
        TextColumn("orders"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[steps]:,} durable steps", style="dim"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("orders", total=orders, steps=0)

        def measured(measure: Measure) -> None:
            if measure.name == "ExecutionsEnded":
                bar.advance(task, measure.value)
            elif measure.name == "DurableSteps":
                steps = bar.tasks[0].fields["steps"] + int(measure.value)
                bar.update(task, steps=steps)

        yield measured


def put_report(report: DemoReport) -> None:
    put(_outcomes(report), "", _figures(report), "", _receipt(report), "", Text(FOOTNOTE, "dim"))
    bad = [execution for execution in report.executions if execution.outcome is None]
    if bad or report.lost:
        names = ", ".join(execution.name for execution in bad[:NAMES_MAX])
        put(Text(f"\n{len(bad)} without an outcome, {report.lost} lost: {names}", "red"))
    put("", Text(NEXT, "dim"))


def _outcomes(report: DemoReport) -> Table:
    groups: dict[tuple[str, str], list[EndedExecution]] = defaultdict(list)
    for execution in report.executions:
        groups[execution.outcome or (execution.status, execution.reason)].append(execution)
    table = plain_table("outcome", "reason", "orders", "", "for example", right=("orders",))
    largest = max(map(len, groups.values()), default=1)
    for (status, reason), members in sorted(groups.items(), key=lambda group: -len(group[1])):
        style = _STYLES.get(status, "red")
        examples = ", ".join(member.name for member in members[:EXAMPLES_MAX])
        table.add_row(
            Text(status, style),
            reason,
            str(len(members)),
            Text("━" * max(1, round(len(members) / largest * BAR_CHARACTERS)), style),
            Text(examples, "dim"),
        )
    return table


def _figures(report: DemoReport) -> Table:
    table = Table([Column(style="dim"), Column(is_right=True), Column(style="dim")])
    count = report.events
    table.add_row(
        "orders ended", f"{report.ended:,}", f"of {report.accepted:,}; {report.lost} lost"
    )
    table.add_row(
        "durable steps",
        f"{report.durable_steps:,}",
        f"{count['TaskSucceeded']:,} results, {count['TaskFailed']:,} failures, "
        f"{count['TaskTimedOut']:,} timeouts, {count['WaitStateExited']:,} timers",
    )
    table.add_row("retries", f"{report.retries:,}", "not durable steps by themselves")
    table.add_row(
        "time in the shop",
        duration(timedelta(seconds=report.virtual_seconds)),
        "on a virtual clock",
    )
    table.add_row("time here", f"{report.wall_seconds:.1f} s", "on this machine")
    return table


def _receipt(report: DemoReport) -> Table:
    table = plain_table(
        "at list price", "", "count", "$ per million", "$", right=("count", "$ per million", "$")
    )
    for line in report.receipt.lines:
        _line(table, line)
    _total(table, report, "Holdfast", report.receipt.total_usd, "green")
    table.add_row()
    _line(table, _transitions(report))
    for line in report.task_requests.lines:
        _line(table, line)
    _total(table, report, "Step Functions (Standard)", report.step_functions_usd, "yellow")
    if report.receipt.apart:
        table.add_row()
        table.add_row(Text("on neither bill", "dim"), Text("the same on both", "dim"))
    for line in report.receipt.apart:
        _line(table, line)
    return table


def _transitions(report: DemoReport) -> CostLine:
    return CostLine(
        service="Step Functions",
        what="transitions",
        count=report.transitions,
        usd_per_million=STEP_FUNCTIONS_USD_PER_MILLION_TRANSITIONS,
        usd=step_functions_usd(report.transitions),
    )


def _line(table: Table, line: CostLine) -> None:
    table.add_row(
        line.service,
        line.what,
        _count(line.count),
        f"{line.usd_per_million:.3f}",
        f"{line.usd:.6f}",
    )


def _count(count: float) -> str:
    return f"{count:,.0f}" if count >= 10 or count == int(count) else f"{count:.2f}"


def _total(table: Table, report: DemoReport, name: str, usd: float, style: str) -> None:
    per_million = report.per_million_steps(usd)
    table.add_row(
        Text(name, f"bold {style}"),
        "durable steps",
        f"{report.durable_steps:,}",
        Text(f"{per_million:.2f}", f"bold {style}"),
        Text(f"{usd:.6f}", f"bold {style}"),
    )
