"""The commands on limits: `limits` shows them, `limit` changes one of them without a deploy."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from holdfast.cli.arguments import rate, whole
from holdfast.cli.console import FINE, print_json, say
from holdfast.cli.remote import client_of, local_user, now_of, remote_command
from holdfast.errors import RequestError


def add(commands: Any) -> None:
    shown = remote_command(commands, "limits", limits, "Show the limits of tasks and their queues.")
    shown.add_argument("limit", nargs="?", metavar="NAME", help="only this one, and its changes")
    shown.add_argument("--key", metavar="VALUE", help="the queue of one value of its key")
    change = commands.add_parser("limit", help="Change, pause or resume a limit without a deploy.")
    changes = change.add_subparsers(dest="change", required=True, metavar="CHANGE")
    told = {
        "set": "Let a limit differ from the code, until it is cleared.",
        "pause": "Let nothing begin that the limit covers.",
        "resume": "Let a paused limit go on.",
        "clear": "Give a limit the values of the code again.",
    }
    for name, about in told.items():
        one = remote_command(changes, name, change_limit, about)
        one.add_argument("limit", metavar="NAME", help="as `holdfast limits` shows it")
        one.add_argument("--reason", required=True, help="`holdfast limits` and `show` print it")
        one.add_argument("--by", help="who asks; default: the user of this machine")
        if name == "set":
            one.add_argument("--rate", type=rate, metavar="N/UNIT", help="5/s, 300/min or 1000/h")
            one.add_argument(
                "--burst", type=whole, metavar="N", help="starts at once after a pause"
            )
            one.add_argument("--concurrency", type=whole, metavar="N", help="attempts at once")


def limits(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    client, name = client_of(arguments), arguments.limit
    if name is None and arguments.key is not None:
        raise RequestError(
            "HF239", "--key is given without a limit", help="holdfast limits NAME --key VALUE"
        )
    rows = client.limits() if name is None else [client.limit(name, key=arguments.key)]
    if arguments.json:
        print_json(rows)
    elif rows:
        now = now_of(arguments, client)
        earlier = [change for row in rows for change in row.get("changes", ())]
        screen.put(screen.limits(rows, now), *screen.limit_changes(earlier, now))
    else:
        print("no task has a limit")
    return FINE


def change_limit(arguments: argparse.Namespace) -> int:
    """`holdfast limit set`, `pause`, `resume` and `clear`."""
    change = partial(
        client_of(arguments).change_limit,
        arguments.limit,
        arguments.reason,
        by=arguments.by or local_user(),
    )
    match arguments.change:
        case "set":
            told = change(
                rate=arguments.rate, burst=arguments.burst, concurrency=arguments.concurrency
            )
        case "clear":
            told = change(clear=True)
        case kind:
            told = change(paused=kind == "pause")
    done = {"set": "is set", "clear": "has the values of the code again"}
    text = done.get(arguments.change, f"is {arguments.change.removesuffix('e')}ed")
    return say(arguments, told, f"the limit {told['name']} {text}")
