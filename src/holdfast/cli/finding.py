"""The commands that only read executions: `list`, `show` and `history`."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import EXECUTION_HELP, listed_count, time_or_span
from holdfast.cli.console import FINE, print_json
from holdfast.cli.pausing import note_pauses
from holdfast.cli.remote import client_of, now_of, remote_command
from holdfast.cli.repeating import add_watch, watched
from holdfast.core.state import STATUSES
from holdfast.errors import RequestError
from holdfast.remote.answers import Filters

if TYPE_CHECKING:
    from holdfast.remote.client import Client

_LIST_TIMES: Final = {
    "--since": "started then or later: 90min, 36h, 2d ago, or 2027-01-15T08:00Z",
    "--until": "started before",
    "--ended-since": "ended then or later",
    "--ended-until": "ended before",
    "--older-than": "waiting since then or longer: 90min, 2d",
}

#: The statuses of executions whose finished work may have been undone without a line for it in the
#: workflow's code.
_STOPPED: Final = frozenset({"ABORTED", "TIMED_OUT"})


def add(commands: Any) -> None:
    list_parser = remote_command(commands, "list", list_executions, "List the newest executions.")
    add_filters(list_parser)
    list_parser.add_argument(
        "--limit",
        type=listed_count,
        default=100,
        metavar="N",
        help="how many, 1 to 5,000 (default 100)",
    )
    list_parser.add_argument(
        "--after", metavar="KEY", help="only older ones: what a list ended with"
    )
    list_parser.add_argument("--events", action="store_true", help="events that are kept")
    list_parser.add_argument(
        "--key", metavar="KEY", help="with --events and --name: all kept events of the two"
    )
    add_watch(list_parser, "Ctrl-C")
    show_parser = remote_command(commands, "show", show, "Show an execution and what it waits for.")
    show_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    add_watch(show_parser, "it has ended")
    history_parser = remote_command(
        commands, "history", history, "Show the history of an execution."
    )
    history_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that select executions. `filters_of` reads them."""
    parser.add_argument("--workflow", metavar="NAME", help="deployed, or once deployed")
    parser.add_argument("--status", choices=STATUSES)
    parser.add_argument("--error", metavar="NAME", help="those that failed with this error")
    parser.add_argument("--name", metavar="NAME", help="a name, or its beginning: 'order-17*'")
    parser.add_argument("--paused", action="store_true", help="those that an operator has paused")
    parser.add_argument(
        "--waiting-for",
        metavar="KIND[:TARGET]",
        help="event:paid, ask:role:clerk, task:ship, retry, limit:bank, child, timer …",
    )
    parser.add_argument(
        "--last-error", metavar="NAME", help="those that are tried again after this error"
    )
    parser.add_argument(
        "--where",
        action="append",
        metavar="CONDITION",
        help="by a search attribute: customer=C-17, 'total>100'; all of several",
    )
    parser.add_argument("--parent", metavar="ID", help="those that this execution has started")
    parser.add_argument(
        "--definition", metavar="HASH", help="those of this version: its hash or the beginning"
    )
    for option, about in _LIST_TIMES.items():
        parser.add_argument(option, type=time_or_span, metavar="TIME", help=about)


def list_executions(arguments: argparse.Namespace) -> int:
    if arguments.events:
        return _list_events(arguments)
    if arguments.key is not None:
        raise RequestError("HF282", "--key belongs to --events")
    client = client_of(arguments)

    def look() -> bool:
        _list_once(arguments, client)
        return True

    return watched(arguments, look)


def _list_once(arguments: argparse.Namespace, client: Client) -> None:
    from holdfast.cli import screen  # noqa: PLC0415

    now = now_of(arguments, client)
    filters = filters_of(arguments, now)
    rows, after = client.page(limit=arguments.limit, after=arguments.after, **filters)
    note_pauses(arguments, client)
    if arguments.json:
        print_json(rows)
    elif rows:
        screen.put(screen.executions(rows, now))
    else:
        print("no executions")
    if after is not None:
        print(f"older ones: --after {after}", file=sys.stderr)


def _list_events(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    client = client_of(arguments)
    rows = client.events(arguments.name, arguments.key)
    if arguments.json:
        print_json(rows)
    elif rows:
        screen.put(screen.events(rows, now_of(arguments, client)))
    else:
        print("no event is kept")
    return FINE


def filters_of(arguments: argparse.Namespace, now: datetime) -> Filters:
    return {
        "workflow": arguments.workflow,
        "status": arguments.status,
        "error": arguments.error,
        "name": arguments.name,
        "paused": arguments.paused,
        "since": moment_of(arguments.since, now),
        "until": moment_of(arguments.until, now),
        "ended_since": moment_of(arguments.ended_since, now),
        "ended_until": moment_of(arguments.ended_until, now),
        "waiting_for": arguments.waiting_for,
        "waiting_since": moment_of(arguments.older_than, now),
        "last_error": arguments.last_error,
        "parent": arguments.parent,
        "definition": arguments.definition,
        "where": arguments.where,
    }


def moment_of(given: datetime | timedelta | None, now: datetime) -> datetime | None:
    """Return the time; for a span the time that long before `now`."""
    return now - given if isinstance(given, timedelta) else given


def show(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)

    def look() -> bool:
        execution = client.describe(arguments.execution)
        show_execution(arguments, client, execution)
        return execution["status"] == "RUNNING"

    return watched(arguments, look)


def show_execution(arguments: argparse.Namespace, client: Client, execution: Any) -> None:
    from holdfast.cli import execution_screen  # noqa: PLC0415

    if arguments.json:
        print_json(execution)
        return
    if execution["status"] in _STOPPED:
        events = client.history(execution["execution"])
        execution = {**execution, "undone": execution_screen.undone(events)}
    execution_screen.put_execution(execution, now_of(arguments, client))


def history(arguments: argparse.Namespace) -> int:
    from holdfast.cli import execution_screen, screen  # noqa: PLC0415

    events = client_of(arguments).history(arguments.execution)
    if arguments.json:
        print_json(events)
    else:
        screen.put(execution_screen.history(events))
    return FINE
