"""The commands that wait for an execution, and show how it ran: `wait`, `logs` and `trace`."""

from __future__ import annotations

import argparse
import operator
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import EXECUTION_HELP, wait_seconds
from holdfast.cli.console import FINE, NEGATIVE, harmless, json_argument, print_json
from holdfast.cli.finding import show_execution
from holdfast.cli.remote import client_of, now_of, remote_command
from holdfast.errors import RequestError
from holdfast.trace_ids import trace_id

if TYPE_CHECKING:
    from holdfast.remote.client import Client

_NO_LINES: Final = (
    "no lines of its tasks are kept: `serve` keeps those since its own start, in memory"
)
_NO_STACK_LINES: Final = "CloudWatch Logs has no lines of its tasks, or keeps them no longer"


def add(commands: Any) -> None:
    wait_parser = remote_command(
        commands, "wait", wait, "Wait for the end of an execution, or for a published value."
    )
    wait_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    wait_parser.add_argument("--published", metavar="NAME", help="the name of the value")
    wait_parser.add_argument(
        "--value", metavar="JSON", help="wait until the published value equals this one"
    )
    wait_parser.add_argument(
        "--timeout", type=wait_seconds, metavar="SECONDS", help="wait no longer"
    )
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


def wait(arguments: argparse.Namespace) -> int:
    if arguments.published is None:
        if arguments.value is not None:
            raise RequestError("HF282", "--value belongs to --published")
        return wait_for_end(arguments, client_of(arguments), arguments.execution, arguments.timeout)
    until = None
    if arguments.value is not None:
        until = partial(operator.eq, json_argument(arguments.value, "--value"))
    found = client_of(arguments).wait_for_published(
        arguments.execution, arguments.published, until, arguments.timeout
    )
    print_json(found)
    return FINE


def wait_for_end(
    arguments: argparse.Namespace, client: Client, execution: str, seconds: float | None
) -> int:
    """Wait for the end of the execution, show it, and return the exit code."""
    ended = client.wait(execution, seconds)
    show_execution(arguments, client, ended)
    if ended["status"] == "RUNNING":
        print(f"still running after {seconds:g} s", file=sys.stderr)
    return FINE if ended["status"] == "SUCCEEDED" else NEGATIVE


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
