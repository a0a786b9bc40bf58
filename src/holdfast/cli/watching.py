"""The commands that show how an execution ran: `logs` and `trace`."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from holdfast.cli.arguments import EXECUTION_HELP
from holdfast.cli.console import FINE, harmless, print_json
from holdfast.cli.remote import client_of, now_of, remote_command
from holdfast.trace_ids import trace_id

_NO_LINES: Final = (
    "no lines of its tasks are kept: `serve` keeps those since its own start, in memory"
)
_NO_STACK_LINES: Final = "CloudWatch Logs has no lines of its tasks, or keeps them no longer"


def add(commands: Any) -> None:
    logs_parser = remote_command(commands, "logs", logs, "Show what the tasks have logged.")
    logs_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    trace_parser = remote_command(
        commands, "trace", trace, "Show how long each step took, or export it as a trace."
    )
    trace_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    trace_parser.add_argument(
        "--format",
        choices=("table", "otlp"),
        default="table",
        help="otlp: OpenTelemetry's JSON, one trace for the execution; default: %(default)s",
    )
    trace_parser.add_argument(
        "--export",
        metavar="URL",
        help="send it to a collector's OTLP/HTTP address, such as http://localhost:4318/v1/traces",
    )


def logs(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    execution = client.describe(arguments.execution)
    if arguments.stack is not None:
        from holdfast.local.cloud_logs import read_lines  # noqa: PLC0415

        rows = read_lines(arguments.stack, execution)
    else:
        rows = client.logs(execution["execution"])
    if arguments.json:
        print_json(rows)
        return FINE
    for row in rows:
        print(harmless(_line(row)))
    if not rows:
        print(_NO_LINES if arguments.stack is None else _NO_STACK_LINES, file=sys.stderr)
    return FINE


def _line(row: dict[str, Any]) -> str:
    step = f"{row.get('task', '')} {row.get('attempt', '')}"
    line = f"{row.get('timestamp', '')} {row.get('level', ''):<7} {step}: {row.get('message', '')}"
    return f"{line}\n{row['exception']}" if row.get("exception") else line


def trace(arguments: argparse.Namespace) -> int:
    from holdfast.cli import execution_screen, screen  # noqa: PLC0415
    from holdfast.local import traces  # noqa: PLC0415

    client = client_of(arguments)
    execution = client.describe(arguments.execution)
    run = str(execution["execution"])
    spans = traces.spans_of(execution, client.history(run), now_of(arguments, client))
    if arguments.export is not None:
        from holdfast.local.exporting import export_trace  # noqa: PLC0415

        export_trace(arguments.export, traces.otlp(run, spans, arguments.stack or "holdfast"))
        print(f"sent {len(spans)} spans of trace {trace_id(run)}")
    elif arguments.format == "otlp" or arguments.json:
        print_json(traces.otlp(run, spans, arguments.stack or "holdfast"))
    else:
        screen.put(f"trace {trace_id(run)}", execution_screen.spans(spans))
    return FINE
