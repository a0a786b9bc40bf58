"""`holdfast schedule`: create, list, show, pause, resume, make up for past times, delete."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.cli.arguments import span, time_or_span
from holdfast.cli.console import FINE, json_argument, print_json, say
from holdfast.cli.remote import client_of, local_user, now_of, remote_command

_OVERLAPS: Final = ("skip", "queue-one", "queue-all", "cancel-other", "allow")


def add(commands: Any) -> None:
    parser = commands.add_parser("schedule", help="Start a workflow by cron, or at an interval.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_create(actions)
    remote_command(actions, "list", show_all, "List the schedules.")
    shown = remote_command(actions, "show", show, "Show one schedule and its next times.")
    shown.add_argument("schedule", metavar="NAME")
    told = {
        "pause": "Start nothing until the resume; a deploy does not change it.",
        "resume": "Go on with the next time after now.",
    }
    for name, about in told.items():
        one = remote_command(actions, name, change, about)
        one.add_argument("schedule", metavar="NAME")
        one.add_argument("--reason", required=True, help="`holdfast schedule show` prints it")
        one.add_argument("--by", help="who asks; default: the user of this machine")
    filled = remote_command(actions, "backfill", backfill, "Start the times of a past range.")
    filled.add_argument("schedule", metavar="NAME")
    filled.add_argument("--since", required=True, type=time_or_span, metavar="TIME")
    filled.add_argument("--until", type=time_or_span, metavar="TIME", help="default: now")
    gone = remote_command(actions, "delete", delete, "Delete a schedule that a command created.")
    gone.add_argument("schedule", metavar="NAME")


def _add_create(actions: Any) -> None:
    one = remote_command(actions, "create", create, "Create a schedule.")
    one.add_argument("schedule", metavar="NAME")
    one.add_argument("workflow", metavar="WORKFLOW")
    when = one.add_mutually_exclusive_group(required=True)
    when.add_argument("--cron", metavar="EXPRESSION", help="'0 9 * * MON-FRI'")
    when.add_argument("--every", type=span, metavar="SPAN", help="30min, 6h or 1d")
    one.add_argument("--zone", default="UTC", help="of --cron; default: %(default)s")
    one.add_argument("--input", metavar="JSON", help="the arguments; or @FILE, or - for stdin")
    one.add_argument("--time-as", metavar="PARAMETER", help="gets the nominal time")
    one.add_argument("--overlap", choices=_OVERLAPS, default="skip", help="default: %(default)s")
    one.add_argument("--missing", choices=("shift", "skip"), default="shift")
    one.add_argument("--repeated", choices=("first", "last"), default="first")
    one.add_argument("--catch-up", type=span, metavar="SPAN", help="default: 365d")
    one.add_argument("--jitter", type=span, metavar="SPAN", help="default: none")
    one.add_argument("--pause-on-failure", action="store_true")


def create(arguments: argparse.Namespace) -> int:
    spans = {"every": arguments.every, "catch_up": arguments.catch_up, "jitter": arguments.jitter}
    request: dict[str, Any] = {
        "name": arguments.schedule,
        "workflow": arguments.workflow,
        "overlap": arguments.overlap,
        "missing": arguments.missing,
        "repeated": arguments.repeated,
        **{name: int(one.total_seconds()) for name, one in spans.items() if one is not None},
    }
    if arguments.cron is not None:
        request |= {"cron": arguments.cron, "zone": arguments.zone}
    if arguments.input is not None:
        request["input"] = json_argument(arguments.input, "--input")
    if arguments.time_as is not None:
        request["time_as"] = arguments.time_as
    if arguments.pause_on_failure:
        request["pause_on_failure"] = True
    told = client_of(arguments).create_schedule(request)
    return say(arguments, told, f"the schedule {told['name']} starts next at {told.get('next')}")


def show_all(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    rows = client_of(arguments).schedules()
    if arguments.json:
        print_json(rows)
    elif rows:
        screen.put(screen.schedules(rows))
    else:
        print("there is no schedule")
    return FINE


def show(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    found = client_of(arguments).schedule(arguments.schedule)
    if arguments.json:
        print_json(found)
    else:
        screen.put(screen.schedules([found]), *screen.schedule_details(found))
    return FINE


def change(arguments: argparse.Namespace) -> int:
    """`holdfast schedule pause` and `resume`."""
    request = {"reason": arguments.reason, "by": arguments.by or local_user()}
    told = client_of(arguments).change_schedule(arguments.schedule, arguments.action, request)
    how = "is paused" if "paused" in told else f"starts next at {told.get('next')}"
    return say(arguments, told, f"the schedule {told['name']} {how}")


def backfill(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    now = now_of(arguments, client)
    since, until = _iso(arguments.since, now), _iso(arguments.until or timedelta(), now)
    request = {"since": since, "until": until}
    told = client.change_schedule(arguments.schedule, "backfill", request)
    reached = told.get("backfill", {}).get("until")
    return say(arguments, told, f"the schedule {told['name']} makes up for times up to {reached}")


def delete(arguments: argparse.Namespace) -> int:
    told = client_of(arguments).delete_schedule(arguments.schedule)
    return say(arguments, told, f"the schedule {told['name']} is deleted; what it started goes on")


def _iso(at: datetime | timedelta, now: datetime) -> str:
    moment = now - at if isinstance(at, timedelta) else at
    return moment.astimezone(UTC).isoformat(timespec="seconds")
