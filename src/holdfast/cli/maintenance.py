"""The commands for the maintenance of a stack: `doctor` and `format`."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.arguments import whole
from holdfast.cli.console import FINE, NEGATIVE, print_json, say
from holdfast.cli.pausing import note_pauses
from holdfast.cli.remote import client_of, now_of, remote_command


def add(commands: Any) -> None:
    formats = remote_command(
        commands,
        "format",
        show_format,
        "Show in which format a stack writes its logs, or ask for a newer one.",
    )
    formats.add_argument(
        "--set",
        dest="number",
        type=whole,
        metavar="N",
        help="from now on; cannot be taken back, nor may code that reads only older ones run again",
    )
    doctor_parser = remote_command(
        commands,
        "doctor",
        doctor,
        "Find executions that do not progress, and the reason. Exit status 1: something was found.",
    )
    doctor_parser.add_argument(
        "execution", nargs="?", metavar="ID", help="or its name; default: all that are running"
    )
    doctor_parser.add_argument(
        "--repair", action="store_true", help="set going again what was found"
    )


def show_format(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    told = client.format() if arguments.number is None else client.ask_format(arguments.number)
    readable = " and ".join(map(str, told["readable"]))
    return say(arguments, told, f"writes format {told['format']}; its code reads {readable}")


def doctor(arguments: argparse.Namespace) -> int:
    """Return 0 when `doctor` finds no problem, 1 when it finds one, repaired or not."""
    from holdfast.cli import screen  # noqa: PLC0415

    client = client_of(arguments)
    found = client.doctor(arguments.execution, repair=arguments.repair)
    note_pauses(arguments, client)
    if arguments.json:
        print_json(found)
    elif found:
        screen.put_findings(found, now_of(arguments, client), is_repaired=arguments.repair)
    else:
        print("everything that should move does")
    return NEGATIVE if found else FINE
