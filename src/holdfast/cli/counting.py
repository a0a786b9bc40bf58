"""The command `count`: how many executions there are, by workflow, status and wait."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import time_or_span
from holdfast.cli.console import print_json
from holdfast.cli.finding import moment_of
from holdfast.cli.remote import client_of, now_of, remote_command
from holdfast.cli.repeating import add_watch, watched
from holdfast.core.state import STATUSES

if TYPE_CHECKING:
    from holdfast.remote.client import Client

GROUPS: Final = ("workflow", "status", "wait")


def add(commands: Any) -> None:
    parser = remote_command(
        commands, "count", count, "Count executions, and show the one that waits longest."
    )
    parser.add_argument(
        "--by",
        type=_groups,
        default=["status"],
        metavar="NAMES",
        help=f"some of {','.join(GROUPS)}; default: status",
    )
    parser.add_argument("--workflow", metavar="NAME", help="deployed, or once deployed")
    parser.add_argument("--status", choices=STATUSES)
    parser.add_argument("--since", type=time_or_span, metavar="TIME", help="started then or later")
    parser.add_argument("--until", type=time_or_span, metavar="TIME", help="started before")
    add_watch(parser, "Ctrl-C")


def _groups(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(GROUPS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not some of {','.join(GROUPS)}")
    return names


def count(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)

    def look() -> bool:
        _count_once(arguments, client)
        return True

    return watched(arguments, look)


def _count_once(arguments: argparse.Namespace, client: Client) -> None:
    from holdfast.cli import screen  # noqa: PLC0415

    now = now_of(arguments, client)
    found = client.counts(
        by=arguments.by,
        workflow=arguments.workflow,
        status=arguments.status,
        since=moment_of(arguments.since, now),
        until=moment_of(arguments.until, now),
    )
    if arguments.json:
        print_json({"counts": found.rows, "oldest": found.oldest, "at": found.at})
    else:
        screen.put(screen.counts(found.rows, arguments.by))
        if found.oldest is not None:
            screen.put(screen.longest_wait(found.oldest, now))
    if found.after is not None:
        print("there are more executions than one count reads: --since TIME", file=sys.stderr)
