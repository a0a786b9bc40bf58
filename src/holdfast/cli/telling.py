"""The commands that send events and answers to waiting executions: `event` and `answer`."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.arguments import AT_HELP, future, wait_seconds
from holdfast.cli.console import json_argument, print_json, say
from holdfast.cli.remote import client_of, local_user, remote_command
from holdfast.errors import RequestError


def add(commands: Any) -> None:
    event_parser = remote_command(
        commands, "event", event, "Send an event to the executions that wait for it."
    )
    event_parser.add_argument("name")
    event_parser.add_argument("--key", required=True, help="the business key that they wait with")
    what = event_parser.add_mutually_exclusive_group()
    what.add_argument(
        *("--data", "--output"),
        default="null",
        metavar="JSON",
        help="or @FILE, or - for stdin; default: null, for an event without data",
    )
    what.add_argument("--error", metavar="NAME", help="fail the wait with this error")
    event_parser.add_argument("--cause", metavar="TEXT", help="of the error")
    event_parser.add_argument("--id", help="an event that is sent twice with one id counts once")
    event_parser.add_argument("--to", metavar="EXECUTION", help="only this execution may use it")
    event_parser.add_argument("--at", type=future, metavar="TIME", help=AT_HELP)
    drop_parser = remote_command(
        commands, "drop", drop, "Drop a kept event, or reject a kept request."
    )
    drop_parser.add_argument("name", help="as `holdfast list --events` shows it")
    drop_parser.add_argument("--key", required=True, help="its business key")
    drop_parser.add_argument("--id", required=True, help="the id of the event")
    drop_parser.add_argument("--reason", required=True, metavar="TEXT", help="kept with the event")
    drop_parser.add_argument("--by", help="your name; default: the user of this machine")
    request_parser = remote_command(
        commands, "request", request, "Ask an execution, and print its reply."
    )
    request_parser.add_argument("name")
    request_parser.add_argument("--key", required=True, help="the business key that it waits with")
    request_parser.add_argument(
        "--data",
        default="null",
        metavar="JSON",
        help="or @FILE, or - for stdin; default: null, for a request without data",
    )
    request_parser.add_argument("--id", help="a request that is sent twice with one id counts once")
    request_parser.add_argument(
        "--timeout",
        type=wait_seconds,
        default=60.0,
        metavar="SECONDS",
        help="wait no longer; default: 60",
    )
    answer_parser = remote_command(commands, "answer", answer, "Answer a question of an execution.")
    answer_parser.add_argument(
        "token",
        metavar="QUESTION|TOKEN",
        help="or the id of a question, as `holdfast inbox` prints it",
    )
    answer_parser.add_argument("--by", help="your name; default: the user of this machine")
    how = answer_parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--output", "--data", metavar="JSON", help="or @FILE, or - for stdin")
    how.add_argument("--error", metavar="NAME", help="fail the wait with this error")
    answer_parser.add_argument("--cause", metavar="TEXT", help="of the error")


def event(arguments: argparse.Namespace) -> int:
    data = json_argument(arguments.data, "--data")
    client = client_of(arguments)
    told = client.event(
        *(arguments.name, arguments.key, data),
        id=arguments.id,
        execution=arguments.to,
        at=arguments.at,
        error=arguments.error,
        cause=arguments.cause,
    )
    return say(arguments, told, f"event {told['event']} {_fate(told)}")


def _fate(told: Any) -> str:
    if "later" in told:
        return f"is sent later, by {told['later']}: `holdfast stop {told['later']}` cancels it"
    if told.get("dropped"):
        return "was dropped before: no execution uses it"
    if told["waiting"] == 0:
        return "is kept until an execution waits for it"
    return f"has woken {told['waiting']}"


def drop(arguments: argparse.Namespace) -> int:
    by = arguments.by or local_user()
    told = client_of(arguments).drop_event(
        arguments.name, arguments.key, arguments.id, arguments.reason, by=by
    )
    used = f"; used before by {', '.join(told['used_by'])}" if told["used_by"] else ""
    return say(arguments, told, f"event {told['event']} is dropped{used}")


def request(arguments: argparse.Namespace) -> int:
    data = json_argument(arguments.data, "--data")
    name, key, timeout = arguments.name, arguments.key, arguments.timeout
    found = client_of(arguments).request(name, key, data, id=arguments.id, timeout=timeout)
    print_json(found)
    return 0


def answer(arguments: argparse.Namespace) -> int:
    if arguments.error is None and arguments.cause is not None:
        raise RequestError("HF282", "--cause belongs to --error")
    by = arguments.by or local_user()
    if arguments.error is None:
        output = json_argument(arguments.output, "--output")
        told = client_of(arguments).answer(arguments.token, output, by=by)
    else:
        error, cause = arguments.error, arguments.cause
        told = client_of(arguments).answer(arguments.token, error=error, cause=cause, by=by)
    return say(arguments, told, f"answered {told['execution']}")
