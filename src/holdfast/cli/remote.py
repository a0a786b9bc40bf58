"""The part that all commands which call an API have in common: its address, and the client.

The API is this project's running `serve`, another address, or a deployed stack.
"""

from __future__ import annotations

import argparse
import getpass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from holdfast.cli.arguments import Run, command

if TYPE_CHECKING:
    from holdfast.remote.client import Client


def remote_command(commands: Any, name: str, run: Run, about: str) -> argparse.ArgumentParser:
    parser = command(commands, name, run, about)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--endpoint", metavar="URL", help="default: this project's running `serve`")
    where.add_argument(
        "--stack", metavar="NAME", help="a deployed stack, with your AWS credentials"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def client_of(arguments: argparse.Namespace) -> Client:
    from holdfast.remote.client import Client  # noqa: PLC0415

    return Client(arguments.endpoint, stack=arguments.stack)


def now_of(arguments: argparse.Namespace, client: Client) -> datetime:
    """Return the time of the API's clock. The clock of a `serve` may have been moved forward."""
    lead = 0 if arguments.stack is not None else client.clock_lead()
    return datetime.now(UTC) + timedelta(seconds=lead)


def local_user() -> str:
    """Return the user of this machine; "" in a container whose user has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
