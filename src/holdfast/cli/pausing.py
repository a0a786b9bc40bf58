"""The commands that hold an execution back or move it forward: `pause`, `resume`, `priority`."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.arguments import EXECUTION_HELP
from holdfast.cli.console import say
from holdfast.cli.remote import client_of, local_user, remote_command
from holdfast.core.state import PAUSE_TIMERS


def add(commands: Any) -> None:
    pause_parser = remote_command(
        commands, "pause", pause, "Pause an execution: nothing new begins."
    )
    pause_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    pause_parser.add_argument(
        "--reason", required=True, help="`show`, `list` and `doctor` print it"
    )
    pause_parser.add_argument("--by", help="who asks; default: the user of this machine")
    pause_parser.add_argument(
        "--timers",
        choices=PAUSE_TIMERS,
        default=PAUSE_TIMERS[0],
        help="freeze: the resume moves each due by the paused time; run: timers and time-outs "
        "pass during the pause; default: %(default)s",
    )
    resume_parser = remote_command(commands, "resume", resume, "Continue a paused execution.")
    resume_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    resume_parser.add_argument("--reason", required=True, help="the history keeps it")
    resume_parser.add_argument("--by", help="who asks; default: the user of this machine")
    priority_parser = remote_command(
        commands, "priority", priority, "Change the place of an execution in queues."
    )
    priority_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    priority_parser.add_argument("priority", type=int, metavar="0-9", help="0 goes first, 9 last")
    priority_parser.add_argument("--reason", required=True, help="the history keeps it")
    priority_parser.add_argument("--by", help="who asks; default: the user of this machine")


def pause(arguments: argparse.Namespace) -> int:
    timers, by = arguments.timers, arguments.by or local_user()
    told = client_of(arguments).pause(arguments.execution, arguments.reason, by, timers)
    if "since" in told:
        return say(arguments, told, f"{told['execution']} is paused since {told['since']}")
    how = "its timers stand still" if timers == "freeze" else "its timers run on"
    return say(arguments, told, f"asked {told['execution']} to pause; {how}")


def resume(arguments: argparse.Namespace) -> int:
    by = arguments.by or local_user()
    told = client_of(arguments).resume(arguments.execution, arguments.reason, by)
    return say(arguments, told, f"asked {told['execution']} to resume")


def priority(arguments: argparse.Namespace) -> int:
    by = arguments.by or local_user()
    wanted = arguments.priority
    told = client_of(arguments).change_priority(arguments.execution, wanted, arguments.reason, by)
    return say(arguments, told, f"asked {told['execution']} to go on with priority {wanted}")
