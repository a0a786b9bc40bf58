"""The commands by which an operator changes what an execution does next: `skip`."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.arguments import EXECUTION_HELP
from holdfast.cli.console import json_argument, say
from holdfast.cli.remote import client_of, local_user, remote_command


def add(commands: Any) -> None:
    skip_parser = remote_command(
        commands, "skip", skip, "Give an open or failed step its result by hand."
    )
    skip_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    skip_parser.add_argument("step", metavar="STEP", help="as `holdfast show` names its state")
    skip_parser.add_argument(
        "--result", default="null", metavar="JSON", help="or @FILE, or - for stdin"
    )
    _add_words(skip_parser)


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, help="the history keeps it")
    parser.add_argument("--by", help="who asks; default: the user of this machine")


def _words(arguments: argparse.Namespace) -> dict[str, str]:
    return {"reason": arguments.reason, "by": arguments.by or local_user()}


def skip(arguments: argparse.Namespace) -> int:
    result = json_argument(arguments.result, "--result")
    client, step = client_of(arguments), arguments.step
    told = client.skip(arguments.execution, step, result, **_words(arguments))
    return say(arguments, told, f"asked {told['execution']} to go on after {told['step']}")
