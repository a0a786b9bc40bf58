"""The command `capacity`: which limit is reached first at a rate of starts."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

from holdfast.cli.arguments import rate, whole
from holdfast.cli.console import FINE, NEGATIVE, harmless, print_json
from holdfast.cli.remote import client_of, remote_command
from holdfast.errors import RequestError, known_names
from holdfast.local import project
from holdfast.resources import WORKER

#: With `--measured` the command reads the tasks of this many executions.
_EXECUTIONS: Final = 20


def add(commands: Any) -> None:
    about = "Report which limit binds first at a rate of starts."
    capacity = remote_command(commands, "capacity", _capacity, about)
    capacity.add_argument("workflow")
    capacity.add_argument("--starts", type=rate, required=True, metavar="N/UNIT", help="50/s")
    capacity.add_argument(
        "--seconds",
        type=_seconds_of_task,
        action="append",
        metavar="TASK=S",
        help="how long an attempt of the task runs; may be given for each task",
    )
    capacity.add_argument(
        "--measured",
        action="store_true",
        help=f"take the seconds from the {_EXECUTIONS} newest executions that have ended well",
    )
    capacity.add_argument(
        "--workers",
        type=whole,
        default=WORKER.reserved_concurrency,
        metavar="N",
        help="default: %(default)s",
    )
    capacity.add_argument("--modules", nargs="+", metavar="MODULE")


def _measured(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the mean seconds of each task, read from the histories of recent executions."""
    from holdfast.proofs.capacity import measured_seconds  # noqa: PLC0415

    client = client_of(arguments)
    recent = client.list(workflow=arguments.workflow, status="SUCCEEDED")
    runs = [row["execution"] for row in islice(recent, _EXECUTIONS)]
    return measured_seconds(client.history(run) for run in runs)


def _seconds_of_task(text: str) -> tuple[str, float]:
    task, _, seconds = text.partition("=")
    try:
        return task, float(seconds)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write charge=0.3") from None


def _capacity(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415
    from holdfast.local import build, proving  # noqa: PLC0415

    modules = project.modules_or_default(arguments.modules or [])
    compiled, errors = build.try_modules(modules)
    for error in errors:
        print(harmless(str(error)), file=sys.stderr)
    chosen = [found for found in compiled if found.name == arguments.workflow]
    if not errors and not chosen:
        message = f"there is no workflow {arguments.workflow!r}"
        help_ = known_names(arguments.workflow, (found.name for found in compiled))
        raise RequestError("HF205", message, status=404, help=help_)
    seconds = _measured(arguments) if arguments.measured else {}
    seconds |= dict(arguments.seconds or [])
    load = proving.Load(arguments.starts, seconds, arguments.workers)
    for found in proving.capacities_of_modules(modules, chosen, load):
        if arguments.json:
            print_json(asdict(found))
        else:
            screen.put(*screen.capacity(found))
    return NEGATIVE if errors else FINE
