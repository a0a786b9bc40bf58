"""`holdfast bulk`: the stack gives one command to each execution that a filter selects.

Without `--yes` nothing changes: the number of executions and a sample of them are printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import EXECUTION_HELP, rate
from holdfast.cli.console import FINE, NEGATIVE, counted, harmless, json_argument, print_json
from holdfast.cli.finding import add_filters, filters_of
from holdfast.cli.remote import client_of, local_user, now_of, remote_command
from holdfast.core.state import PAUSE_TIMERS

if TYPE_CHECKING:
    from holdfast.remote.client import Client

_ABOUT: Final = {
    "retry": "Let the failed executions that the filters select go on from their failed steps.",
    "pause": "Pause the executions that the filters select.",
    "resume": "Resume the paused executions that the filters select.",
    "migrate": "Move the executions that the filters select to another version, if they may.",
    "stop": "Stop the executions that the filters select.",
    "skip": "Give one open or failed step of each selected execution its result by hand.",
    "fork": "Start a copy of each selected execution, which goes on from one of its steps.",
    "event": "Send an event to each selected execution, with the key that it waits with.",
}
_LOOK_SECONDS: Final = 1.0
_BAR_CHARACTERS: Final = 30


def add(commands: Any) -> None:
    about = "Give one command to each execution that filters select; the stack does it."
    parser = commands.add_parser("bulk", help=about, description=about)
    actions = parser.add_subparsers(dest="action", required=True, metavar="OPERATION")
    operations = {name: _add_operation(actions, name, text) for name, text in _ABOUT.items()}
    operations["pause"].add_argument("--timers", choices=PAUSE_TIMERS, help="default: freeze")
    operations["stop"].add_argument("--cause", metavar="TEXT", help="default: the reason")
    operations["stop"].add_argument("--now", action="store_true", help="without undo steps")
    operations["migrate"].add_argument("--to", metavar="HASH", help="or back; default: newest")
    for name in ("skip", "fork"):
        option = "--step" if name == "skip" else "--at"
        operations[name].add_argument(option, dest="step", required=True, metavar="STEP")
    operations["skip"].add_argument("--result", metavar="JSON", help="default: null")
    operations["fork"].add_argument("--on", choices=["latest"], help="as `holdfast fork` has it")
    operations["fork"].add_argument("--input", metavar="JSON", help="of the first step")
    operations["event"].add_argument("event", metavar="EVENT")
    operations["event"].add_argument("--data", default="null", metavar="JSON")
    shown = remote_command(actions, "show", show, "Show how far a bulk operation is.")
    shown.add_argument("execution", metavar="ID", help=EXECUTION_HELP)
    told = remote_command(actions, "report", report, "Show what became of each execution.")
    told.add_argument("execution", metavar="ID", help=EXECUTION_HELP)


def _add_operation(actions: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser = remote_command(actions, name, give, about)
    add_filters(parser)
    parser.add_argument("--reason", required=True, help="each history keeps it")
    parser.add_argument("--by", help="who asks; default: the user of this machine")
    parser.add_argument("--rate", type=rate, metavar="N/s", help="commands a second; default: 20/s")
    parser.add_argument("--yes", action="store_true", help="do it; without: count, and show some")
    parser.add_argument("--detach", action="store_true", help="do not wait for the end")
    return parser


def give(arguments: argparse.Namespace) -> int:
    """Count the executions, and with `--yes` act on them."""
    client, operation = client_of(arguments), arguments.action
    now = now_of(arguments, client)
    filters, fields = filters_of(arguments, now), _fields(arguments)
    if operation == "event" and filters.get("waiting_for") is None:
        filters["waiting_for"] = f"event:{arguments.event}"
    asked: Any = (operation, filters, arguments.reason)
    by = arguments.by or local_user()
    found = client.bulk_dry_run(*asked, by=by, fields=fields)
    if not arguments.yes:
        return _put_dry_run(arguments, found, now)
    expected = None if "next" in found else found["matching"]
    told = client.bulk(*asked, by=by, fields=fields, rate=arguments.rate, expected=expected)
    run = told["execution"]
    if arguments.detach:
        print_json(told) if arguments.json else print(f"started {run}: holdfast bulk show {run}")
        return FINE
    return _follow(arguments, client, run)


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    match arguments.action:
        case "pause" if arguments.timers is not None:
            return {"timers": arguments.timers}
        case "stop":
            cause = {} if arguments.cause is None else {"cause": arguments.cause}
            return {**cause, **({"now": True} if arguments.now else {})}
        case "migrate" if arguments.to is not None:
            return {"to": arguments.to}
        case "skip" if arguments.result is not None:
            result = json_argument(arguments.result, "--result")
            return {"step": arguments.step, "result": result}
        case "fork":
            own = {"step": arguments.step}
            if arguments.input is not None:
                own["input"] = json_argument(arguments.input, "--input")
            return own if arguments.on is None else {**own, "on": arguments.on}
        case "skip":
            return {"step": arguments.step}
        case "event":
            return {"name": arguments.event, "data": json_argument(arguments.data, "--data")}
        case _:
            return {}


def _put_dry_run(arguments: argparse.Namespace, found: Any, now: datetime) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    if arguments.json:
        print_json(found)
        return FINE
    matching = counted(found["matching"], "execution")
    if "next" in found:
        matching = f"{found['matching']} or more executions"
    print(f"{arguments.action} would act on {matching}")
    if found["sample"]:
        screen.put(screen.executions(found["sample"], now))
        print("nothing is changed; add --yes to do it", file=sys.stderr)
    return FINE


def _follow(arguments: argparse.Namespace, client: Client, run: str) -> int:
    """Show the progress until the operation has ended. Ctrl-C ends this command, not the bulk
    operation.
    """
    print(f"bulk {run}; holdfast stop {run} ends it after its page", file=sys.stderr)
    try:
        while (found := client.describe(run))["status"] == "RUNNING":
            if sys.stderr.isatty():
                print(f"\r{_bar(found)}", end="", file=sys.stderr, flush=True)
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        print(f"\nit goes on in the stack: holdfast bulk show {run}", file=sys.stderr)
        raise
    if sys.stderr.isatty():
        print(f"\r{_bar(found)}", file=sys.stderr)
    return _put(arguments, found)


def show(arguments: argparse.Namespace) -> int:
    found = client_of(arguments).describe(arguments.execution)
    return _put(arguments, found)


def report(arguments: argparse.Namespace) -> int:
    outcomes = client_of(arguments).bulk_report(arguments.execution)
    if arguments.json:
        print_json(outcomes)
        return FINE
    for run, outcome in outcomes.items():
        print(harmless(f"{run}  {outcome}"))
    counted = Counter(outcome.partition(":")[0] for outcome in outcomes.values())
    print(", ".join(f"{count} {what}" for what, count in counted.most_common()), file=sys.stderr)
    return FINE


def _put(arguments: argparse.Namespace, found: Any) -> int:
    is_over = found["status"] in {"RUNNING", "SUCCEEDED"}
    if arguments.json:
        print_json(found)
        return FINE if is_over else NEGATIVE
    asked = found["input"]
    chosen = ", ".join(f"{name} {value}" for name, value in asked["filters"].items())
    done, refused = _progress(found)
    print(harmless(f"bulk {asked['operation']} of {chosen}: {asked['reason']}"))
    paused = " (paused)" if "paused" in found else ""
    print(f"{found['status']}{paused}: {done} done, {refused} refused{_expected(asked)}")
    if refused:
        print(f"why: holdfast bulk report {found['execution']}", file=sys.stderr)
    return FINE if is_over else NEGATIVE


def _expected(asked: Any) -> str:
    return f", {asked['expected']} when it was started" if "expected" in asked else ""


def _progress(found: Any) -> tuple[int, int]:
    counted = found.get("published", {}).get("progress", {"done": 0, "refused": 0})
    return counted["done"], counted["refused"]


def _bar(found: Any) -> str:
    done, refused = _progress(found)
    expected = found["input"].get("expected")
    if not expected:
        return f"{done} done, {refused} refused"
    filled = min(_BAR_CHARACTERS, _BAR_CHARACTERS * (done + refused) // expected)
    bar = "#" * filled + "-" * (_BAR_CHARACTERS - filled)
    return f"[{bar}] {done + refused}/{expected}, {refused} refused"
