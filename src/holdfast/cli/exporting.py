"""`holdfast export`: executions with their histories, as lines of JSON in a folder or in S3."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import Any

from holdfast.cli.console import FINE, NEGATIVE, counted, harmless, say
from holdfast.cli.finding import add_filters, filters_of
from holdfast.cli.remote import client_of, remote_command
from holdfast.errors import HoldfastError


def add(commands: Any) -> None:
    parser = remote_command(
        commands, "export", export, "Write executions and their histories as lines of JSON."
    )
    add_filters(parser)
    parser.add_argument(
        "--to", required=True, metavar="FOLDER", help="or s3://BUCKET/PREFIX, for Athena"
    )


def export(arguments: argparse.Namespace) -> int:
    from holdfast.local.execution_export import export as write  # noqa: PLC0415

    client, now = client_of(arguments), datetime.now(UTC)
    rows = client.list(**filters_of(arguments, now))
    files, executions, oldest = 0, 0, None
    unread: list[str] = []

    def tell(execution: str, error: HoldfastError) -> None:
        unread.append(execution)
        print(harmless(f"{execution} is not exported: {error}"), file=sys.stderr)

    try:
        for one in write(client, rows, arguments.to, now, tell):
            files, executions, oldest = files + 1, executions + one.executions, one.oldest
            print(harmless(f"{one.file}: {one.executions}"), file=sys.stderr)
    except HoldfastError:
        if oldest is not None:
            print(f"exported {executions}; go on with --until {oldest}", file=sys.stderr)
        raise
    told = {"executions": executions, "files": files, "unread": unread}
    were = "was" if len(unread) == 1 else "were"
    missing = f", {len(unread)} {were} not read" if unread else ""
    wrote = f"{counted(executions, 'execution')} in {counted(files, 'file')}"
    say(arguments, told, f"exported {wrote}{missing}")
    return NEGATIVE if unread else FINE
