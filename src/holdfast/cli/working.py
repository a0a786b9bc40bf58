"""The command of a machine that works for a pool: `worker`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

from holdfast.cli.arguments import MODULES_HELP, slots
from holdfast.cli.console import FINE, NEGATIVE
from holdfast.cli.remote import remote_command
from holdfast.local import project


def add(commands: Any) -> None:
    worker = remote_command(
        commands, "worker", work, "Run the tasks of a pool on this machine, until SIGTERM."
    )
    worker.add_argument("--pool", required=True, metavar="NAME", help="of runs_on=Worker(NAME)")
    worker.add_argument(
        "--slots", type=slots, default=1, metavar="N", help="tasks at once; default: 1"
    )
    worker.add_argument(
        "--once", action="store_true", help="run one task and end; exit status 1: none waits"
    )
    worker.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help=MODULES_HELP)


def work(arguments: argparse.Namespace) -> int:
    from holdfast.local.pool_worker import PoolWorker, tell  # noqa: PLC0415
    from holdfast.local.stack import deployment_of  # noqa: PLC0415
    from holdfast.remote.client import Client  # noqa: PLC0415
    from holdfast.remote.connecting import is_gateway  # noqa: PLC0415

    deployment = deployment_of(project.modules_or_none(arguments.modules))
    endpoint = arguments.endpoint
    iam = endpoint is not None and is_gateway(endpoint)
    client = Client(endpoint, stack=arguments.stack, iam=iam)
    worker = PoolWorker(deployment, client, arguments.pool, slots=arguments.slots)
    if arguments.once:
        return FINE if worker.run_one() else NEGATIVE

    def drain(*_: Any) -> None:
        if worker.draining.is_set():
            # A second signal: the heartbeats end with the process, and the attempts are retried.
            os._exit(NEGATIVE)
        tell("no more polls; the tasks in hand are finished. A second signal ends at once")
        worker.draining.set()

    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, drain)
    tell(f"{worker.name} works for the pool {arguments.pool}: {', '.join(worker.tasks)}")
    worker.run()
    sys.stdout.flush()
    return FINE
