"""The commands that start an execution, stop it and continue it: `start`, `stop`, `retry`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from holdfast.cli.arguments import AT_HELP, EXECUTION_HELP, future, wait_seconds, whole
from holdfast.cli.console import FINE, NEGATIVE, json_argument, say
from holdfast.cli.remote import client_of, remote_command
from holdfast.cli.watching import wait_for_end


def add(commands: Any) -> None:
    start_parser = remote_command(commands, "start", start, "Start an execution.")
    start_parser.add_argument("workflow")
    start_parser.add_argument("--name", help="its business key; the same name and input start once")
    start_parser.add_argument(
        "--input", default="{}", metavar="JSON", help="or @FILE, or - for stdin"
    )
    start_parser.add_argument("--wait", type=wait_seconds, metavar="SECONDS", help="for its end")
    start_parser.add_argument(
        "--priority",
        type=whole,
        metavar="N",
        help="its place before limits: 0, the first, to 9; without it 5",
    )
    start_parser.add_argument("--at", type=future, metavar="TIME", help=AT_HELP)
    stop_parser = remote_command(
        commands, "stop", stop, "End an execution as ABORTED, after undoing."
    )
    stop_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    stop_parser.add_argument("--error")
    stop_parser.add_argument("--cause", "--reason", metavar="TEXT", help="the history keeps it")
    stop_parser.add_argument(
        "--now", action="store_true", help="end it at once: what is not undone yet stays as it is"
    )

    retry_parser = remote_command(
        commands,
        "retry",
        retry,
        "Let an execution that FAILED, TIMED_OUT or was ABORTED go on from the failed step.",
    )
    retry_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    retry_parser.add_argument("--reason", metavar="TEXT", help="why, for the history")


def start(arguments: argparse.Namespace) -> int:
    data = json_argument(arguments.input, "--input")
    client = client_of(arguments)
    handle = client.start(
        *(arguments.workflow, data),
        name=arguments.name,
        priority=arguments.priority,
        at=arguments.at,
    )
    assert handle.started is not None
    started = handle.started
    is_new = started.get("started", True)
    if arguments.wait is None:
        text = f"started {started['execution']}" if is_new else _exists(started)
        say(arguments, started, text)
        return FINE if is_new else NEGATIVE
    if not is_new:
        print(_exists(started), file=sys.stderr)
    return wait_for_end(arguments, client, handle.execution, arguments.wait)


def _exists(started: Any) -> str:
    """Return a line about the execution that already has the name and has not succeeded."""
    name, status = started["name"], started["status"]
    error = f" ({started['error']})" if "error" in started else ""
    ended = f"is {status}" if status == "ABORTED" else f"has {status}"
    if started.get("undone"):
        fix = "it has undone what it did: start another one under another name"
    else:
        fix = f"`holdfast retry {name}` goes on from the failed step"
    return f"{name} exists and {ended}{error}; {fix}"


def stop(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    is_now = arguments.now
    told = client.stop(arguments.execution, arguments.error, arguments.cause, now=is_now)
    how = "at once, undoing nothing more" if told.get("now") else "after undoing"
    if is_now and not told.get("now"):
        how += ", because the deployed code has no --now yet; deploy it again"
    return say(arguments, told, f"asked {told['execution']} to stop {how}")


def retry(arguments: argparse.Namespace) -> int:
    answer = client_of(arguments).retry(arguments.execution, arguments.reason)
    steps = ", ".join(answer["from"]) or "its start"
    return say(arguments, answer, f"asked {answer['execution']} to go on from {steps}")
