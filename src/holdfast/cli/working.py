"""The commands about pools: `worker`, which a machine of the pool runs, and `pools`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from functools import partial
from typing import Any, Final

from holdfast.asl.resources import CONTAINERS
from holdfast.cli.arguments import MODULES_HELP, slots
from holdfast.cli.console import FINE, NEGATIVE, print_json
from holdfast.cli.remote import client_of, now_of, remote_command
from holdfast.local import project

#: The environment variables of a container. The engine sets the token of the attempt, and the task
#: definition sets the address of the API.
TOKEN_VARIABLE: Final = "HOLDFAST_TOKEN"  # noqa: S105  # the name, no secret
API_VARIABLE: Final = "HOLDFAST_API"


def add(commands: Any) -> None:
    remote_command(
        commands, "pools", show_pools, "List the pools, their workers, and how many tasks wait."
    )
    worker = remote_command(
        commands, "worker", work, "Run the tasks of a pool on this machine, until SIGTERM."
    )
    worker.add_argument(
        "--pool",
        metavar="NAME",
        help="of runs_on=Worker(NAME); a container has none",
    )
    worker.add_argument(
        "--tasks-of",
        metavar="POOL",
        default="",
        help="run the tasks of runs_on=Worker(POOL), where workflows choose --pool at run time",
    )
    worker.add_argument(
        "--slots", type=slots, default=1, metavar="N", help="tasks at once; default: 1"
    )
    worker.add_argument(
        "--once", action="store_true", help="run one task and end; exit status 1: none waits"
    )
    worker.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help=MODULES_HELP)


def show_pools(arguments: argparse.Namespace) -> int:
    from holdfast.cli import screen  # noqa: PLC0415

    client = client_of(arguments)
    found = client.pools()
    if arguments.json:
        print_json(found)
    elif found:
        screen.put(screen.pools(found, now_of(arguments, client)))
    else:
        print("no workflow has a task that runs on a pool")
    return FINE


def work(arguments: argparse.Namespace) -> int:
    from holdfast.local.pool_worker import PoolWorker, tell  # noqa: PLC0415
    from holdfast.local.stack import deployment_of  # noqa: PLC0415
    from holdfast.remote.client import Client  # noqa: PLC0415
    from holdfast.remote.connecting import is_gateway  # noqa: PLC0415

    token = os.environ.get(TOKEN_VARIABLE, "")
    pool = CONTAINERS if token and arguments.pool is None else arguments.pool
    if pool is None:
        arguments.parser.error("--pool NAME is missing")
    deployment = deployment_of(project.modules_or_none(arguments.modules))
    endpoint = arguments.endpoint
    if endpoint is None and arguments.stack is None:
        endpoint = os.environ.get(API_VARIABLE)
    iam = endpoint is not None and is_gateway(endpoint)
    client = Client(endpoint, stack=arguments.stack, iam=iam)
    worker = PoolWorker(
        deployment, client, pool, slots=arguments.slots, tasks_of=arguments.tasks_of
    )
    if pool == CONTAINERS:
        worker.leave = partial(os._exit, NEGATIVE)
        return FINE if worker.run_token(token) else NEGATIVE
    if arguments.once:
        return FINE if worker.run_one() else NEGATIVE

    def drain(*_: Any) -> None:
        if worker.draining.is_set():
            # This is the second signal, so end the process at once. The heartbeats of its attempts
            # stop, and the engine retries the attempts elsewhere.
            os._exit(NEGATIVE)
        tell("no more polls; the tasks in hand are finished. A second signal ends at once")
        worker.draining.set()

    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, drain)
    tell(f"{worker.name} works for the pool {pool}: {', '.join(worker.tasks)}")
    worker.run()
    sys.stdout.flush()
    return FINE
