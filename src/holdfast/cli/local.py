"""The commands that run a local cloud in this process: `serve` and `demo`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.cli.arguments import MODULES_HELP, command
from holdfast.cli.console import FINE, NEGATIVE, print_json, say
from holdfast.errors import HoldfastBug
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local import project

PORT_DEFAULT: Final = 8080
SIGNAL_SECONDS: Final = 0.5


def add(commands: Any) -> None:
    demo = command(commands, "demo", _demo, "Run real orders through the local cloud.")
    demo.add_argument("--orders", type=Path, metavar="FILE", help="one JSON order per line")
    demo.add_argument("--json", action="store_true", help="print one line of JSON")
    serve = command(commands, "serve", _serve, "Serve the API and AWS's beside a local cloud.")
    serve.add_argument("--port", type=int, default=PORT_DEFAULT, help="default: %(default)s")
    serve.add_argument("--json", action="store_true", help="print where it listens as JSON")
    serve.add_argument(
        "--no-payload-limit", action="store_true", help="lift the 256 KiB of state machines"
    )
    serve.add_argument(
        "--debug",
        action="store_true",
        help="let time stand still while a debugger has stopped a task: docs/how-to/debug.md",
    )
    serve.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help=MODULES_HELP)


def _demo(arguments: argparse.Namespace) -> int:
    from holdfast.local import demo, report, stack  # noqa: PLC0415

    orders = demo.read_orders(arguments.orders)
    deployment = stack.deployment_of([demo.MODULE])
    with report.progress(len(orders), is_shown=not arguments.json) as measured:
        result = demo.run_demo(deployment, orders, measured)
    if arguments.json:
        print_json(result.to_json())
    else:
        report.put_report(result)
    return FINE if result.is_good else NEGATIVE


def _serve(arguments: argparse.Namespace) -> int:
    from holdfast.local import serve, stack  # noqa: PLC0415

    deployment = stack.deployment_of(project.modules_or_none(arguments.modules))
    root = project.project_root()
    payload_bytes_max = None if arguments.no_payload_limit else PAYLOAD_BYTES_MAX
    with serve.serving(
        deployment, arguments.port, payload_bytes_max, is_debugged=arguments.debug
    ) as served:
        announced = project.Serving(served.url, os.getpid())
        project.announce(announced, root)
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, _interrupt)
        names = list(deployment.definitions)
        say(
            arguments,
            {"url": served.url, "workflows": names},
            f"serving {', '.join(names) or 'no workflows'} at {served.url}; Ctrl-C ends it",
        )
        sys.stdout.flush()
        try:
            # A wait without a timeout can miss a signal that arrives as it begins.
            while not served.ended.wait(SIGNAL_SECONDS):
                pass
        except KeyboardInterrupt:
            return FINE
        finally:
            project.withdraw(announced, root)
    raise HoldfastBug("the local cloud stopped by itself; stderr says why")


def _interrupt(*_: Any) -> NoReturn:
    """The first signal ends `serve` in order; a second one must not cut that order short."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt
