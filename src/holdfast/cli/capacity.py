"""The command `capacity`: which limit binds first at a rate of starts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from holdfast.cli.arguments import rate
from holdfast.cli.console import FINE, NEGATIVE, harmless
from holdfast.errors import RequestError
from holdfast.local import project
from holdfast.resources import WORKER


def add(commands: Any) -> None:
    capacity = commands.add_parser(
        "capacity", help="Say which limit binds first when so many executions start."
    )
    capacity.add_argument("workflow")
    capacity.add_argument("--starts", type=rate, required=True, metavar="N/UNIT", help="50/s")
    capacity.add_argument(
        "--seconds",
        type=_seconds_of_task,
        action="append",
        metavar="TASK=S",
        help="how long an attempt of the task runs, as measured; may be given for each task",
    )
    capacity.add_argument(
        "--workers",
        type=int,
        default=WORKER.reserved_concurrency,
        metavar="N",
        help="default: %(default)s",
    )
    capacity.add_argument("--modules", nargs="+", metavar="MODULE")
    capacity.set_defaults(run=_capacity)


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
        known = ", ".join(sorted(found.name for found in compiled)) or "none"
        message = f"there is no workflow {arguments.workflow!r}"
        raise RequestError("HF205", message, status=404, help=f"known: {known}")
    load = proving.Load(arguments.starts, dict(arguments.seconds or []), arguments.workers)
    for found in proving.capacities_of_modules(modules, chosen, load):
        screen.put(*screen.capacity(found))
    return NEGATIVE if errors else FINE
