"""The commands that pause executions or change their order: `pause`, `resume`, `priority`."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import EXECUTION_HELP, time_or_span, whole
from holdfast.cli.console import FINE, harmless, print_json, say
from holdfast.cli.remote import client_of, local_user, now_of, remote_command
from holdfast.core.state import PAUSE_TIMERS
from holdfast.errors import RequestError

if TYPE_CHECKING:
    from holdfast.remote.client import Client

#: The API counts the rows of a queue up to this number.
_COUNTED_MAX: Final = 1_000


def add(commands: Any) -> None:
    pause_parser = remote_command(
        commands, "pause", pause, "Pause an execution, a task, a workflow or everything."
    )
    _add_subject(pause_parser)
    pause_parser.add_argument(
        "--reason", required=True, help="`show`, `list` and `doctor` print it"
    )
    pause_parser.add_argument("--by", help="who asks; default: the user of this machine")
    pause_parser.add_argument(
        "--timers",
        choices=PAUSE_TIMERS,
        help="of an execution. freeze, the default: the resume moves each due by the paused time; "
        "run: timers and time-outs pass during the pause",
    )
    pause_parser.add_argument(
        "--until",
        type=time_or_span,
        metavar="TIME",
        help="not of one execution; the pause ends by itself: in 90min, 36h, 2d, or at a time",
    )
    resume_parser = remote_command(
        commands, "resume", resume, "Continue a paused execution, task, workflow or everything."
    )
    _add_subject(resume_parser)
    resume_parser.add_argument("--reason", required=True, help="the history keeps it")
    resume_parser.add_argument("--by", help="who asks; default: the user of this machine")
    remote_command(commands, "pauses", pauses, "Show what is paused for all executions.")
    priority_parser = remote_command(
        commands, "priority", priority, "Change the place of an execution in queues."
    )
    priority_parser.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    priority_parser.add_argument("priority", type=whole, metavar="0-9", help="0 goes first, 9 last")
    priority_parser.add_argument("--reason", required=True, help="the history keeps it")
    priority_parser.add_argument("--by", help="who asks; default: the user of this machine")


def _add_subject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("execution", nargs="?", metavar="ID", help=EXECUTION_HELP)
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--task", metavar="NAME", help="in all executions")
    scope.add_argument("--workflow", metavar="NAME", help="all its executions, and new ones")
    scope.add_argument("--all", action="store_true", help="the whole stack")


def _scope_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the fields of the request that say what to pause (a task, a workflow, the stack); None
    for one execution.
    """
    named = {"task": arguments.task, "workflow": arguments.workflow, "all": arguments.all or None}
    scope = {field: value for field, value in named.items() if value is not None}
    if bool(scope) == (arguments.execution is not None):
        raise RequestError(
            "HF282",
            "name one execution, or one of --task, --workflow and --all, and not both",
            help=f"holdfast {'resume' if arguments.run is resume else 'pause'} ID --reason …",
        )
    return scope or None


def pause(arguments: argparse.Namespace) -> int:
    by, scope = arguments.by or local_user(), _scope_of(arguments)
    if scope is not None:
        return _pause_scope(arguments, scope, by)
    if arguments.until is not None:
        raise RequestError("HF282", "--until is for --task, --workflow and --all alone")
    timers = arguments.timers or PAUSE_TIMERS[0]
    told = client_of(arguments).pause(arguments.execution, arguments.reason, by=by, timers=timers)
    if "since" in told:
        return say(arguments, told, f"{told['execution']} is paused since {told['since']}")
    how = "its timers stand still" if timers == "freeze" else "its timers run on"
    return say(arguments, told, f"asked {told['execution']} to pause; {how}")


def _pause_scope(arguments: argparse.Namespace, scope: dict[str, Any], by: str) -> int:
    if arguments.timers is not None:
        raise RequestError("HF282", "--timers is for one execution alone", help="timers run on")
    until = arguments.until
    client = client_of(arguments)
    end = now_of(arguments, client) + until if isinstance(until, timedelta) else until
    told = client.change_pause(arguments.reason, paused=True, by=by, until=end, **scope)
    return say(arguments, told, f"{_sentence(told)}; workers see it within five seconds")


def resume(arguments: argparse.Namespace) -> int:
    by, scope = arguments.by or local_user(), _scope_of(arguments)
    if scope is not None:
        told = client_of(arguments).change_pause(arguments.reason, paused=False, by=by, **scope)
        return say(arguments, told, _sentence(told))
    told = client_of(arguments).resume(arguments.execution, arguments.reason, by=by)
    return say(arguments, told, f"asked {told['execution']} to resume")


def pauses(arguments: argparse.Namespace) -> int:
    rows = client_of(arguments).pauses()
    if arguments.json:
        print_json(rows)
    else:
        lines = [harmless(_sentence(row)) for row in rows]
        print("\n".join(lines or ["nothing is paused for all"]))
    return FINE


def note_pauses(arguments: argparse.Namespace, client: Client) -> None:
    """Print to stderr what is paused for all executions, next to a list of executions."""
    if arguments.json:
        return
    try:
        rows = client.pauses()
    except RequestError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            # The release of the stack is too old to have such pauses.
            return
        raise
    for row in rows:
        print(harmless(_sentence(row)), file=sys.stderr)


def _sentence(row: Any) -> str:
    held = f"{row['waiting']}{' or more' if row['waiting'] >= _COUNTED_MAX else ''}"
    if not row["paused"]:
        return f"{row['scope']} is resumed; {held} wait for their turn"
    by = f" by {row['by']}" if "by" in row else ""
    until = f" until {row['until']}" if "until" in row else ""
    return f"{row['scope']} is paused since {row['since']}{until}{by}: {row['reason']}; {held} wait"


def priority(arguments: argparse.Namespace) -> int:
    by = arguments.by or local_user()
    wanted = arguments.priority
    told = client_of(arguments).change_priority(
        arguments.execution, wanted, arguments.reason, by=by
    )
    return say(arguments, told, f"asked {told['execution']} to go on with priority {wanted}")
