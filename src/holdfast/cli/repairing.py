"""The commands by which an operator changes what an execution does next: `skip`, `fork`."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.arguments import EXECUTION_HELP, assignment
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
    fork_parser = remote_command(
        commands, "fork", fork, "Start a copy of an execution that goes on from one of its steps."
    )
    fork_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    fork_parser.add_argument(
        "--at",
        required=True,
        metavar="STEP",
        help="the state that runs again; the last time it did",
    )
    fork_parser.add_argument("--input", metavar="JSON", help="of the first step; or @FILE, or -")
    fork_parser.add_argument(
        "--set",
        type=assignment,
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="another value of a variable",
    )
    fork_parser.add_argument(
        "--on", choices=["latest"], help="go on with the newest definition, if a proof allows it"
    )
    _add_words(fork_parser)


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


def fork(arguments: argparse.Namespace) -> int:
    changes: dict[str, Any] = {}
    if arguments.input is not None:
        changes["input"] = json_argument(arguments.input, "--input")
    if arguments.set:
        changes["set"] = {
            name: json_argument(value, f"--set {name}") for name, value in arguments.set
        }
    if arguments.on is not None:
        changes["on"] = arguments.on
    client, words = client_of(arguments), _words(arguments)
    told = client.fork(arguments.execution, arguments.at, **words, changes=changes)
    kept = told["not_taken_back"]
    texts = [f"{name}: {', '.join(values)}" for name, values in kept.items()]
    more = f"; {told['fork_of']} has done since, not taken back: {'; '.join(texts)}" if kept else ""
    return say(arguments, told, f"started {told['execution']} at {told['step']}{more}")
