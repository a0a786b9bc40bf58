"""The commands about this machine's own stack: `serve` and `backup`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.errors import HoldfastBug
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local import project
from holdfast.local.console import FINE, say

SIGNAL_SECONDS: Final = 0.5
DATA: Final = Path(".holdfast") / "holdfast.db"


def serve(arguments: argparse.Namespace) -> int:
    from holdfast.local import reload  # noqa: PLC0415

    if arguments.reload and not reload.is_watched():
        return reload.watch(sorted({project.project_root(), Path.cwd()}))
    return _serve(arguments)


def _serve(arguments: argparse.Namespace) -> int:
    from holdfast.local import reload, serve, stack  # noqa: PLC0415

    deployment = stack.deployment_of(project.modules_or_none(arguments.modules))
    root = project.project_root()
    payload_bytes_max = None if arguments.no_payload_limit else PAYLOAD_BYTES_MAX
    data = None if arguments.in_memory else _data_file(arguments.data)
    with serve.serving(deployment, arguments.port, payload_bytes_max, data=data) as served:
        if arguments.clock is not None:
            ahead_ms = arguments.clock // timedelta(milliseconds=1) - served.clock.lead_ms
            served.clock.advance(max(0, ahead_ms))
        announced = project.Serving(served.url, os.getpid())
        project.announce(announced, root)
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, _interrupt)
        _tell(arguments, served, list(deployment.definitions), data)
        try:
            # A wait without a timeout can miss a signal that arrives as it begins.
            while not served.ended.wait(SIGNAL_SECONDS) and not reload.is_orphaned():
                pass
        except KeyboardInterrupt:
            """The signal asks for the end."""
        finally:
            project.withdraw(announced, root)
            is_bug = served.ended.is_set()
    if is_bug:
        raise HoldfastBug("the local cloud stopped by itself; stderr says why")
    if not served.is_drained:
        _leave(data)
    return FINE


def _tell(
    arguments: argparse.Namespace, served: Any, names: Sequence[str], data: Path | None
) -> None:
    kept = "memory, forgotten at the end" if data is None else str(data)
    lead = timedelta(seconds=served.clock.lead_ms // 1_000)
    ahead = f"; its clock is {lead} ahead" if lead else ""
    say(
        arguments,
        {"url": served.url, "workflows": names, "data": None if data is None else str(data)},
        f"serving {', '.join(names) or 'no workflows'} at {served.url}\n"
        f"executions are kept in {kept}{ahead}; Ctrl-C ends it",
    )
    sys.stdout.flush()


def _leave(data: Path | None) -> NoReturn:
    """End the process while tasks run: Python would wait for their threads."""
    again = "are lost" if data is None else "run again at the next start"
    print(f"tasks were still running; they {again}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FINE)


def _data_file(named: Path | None) -> Path:
    return (project.project_root() / DATA if named is None else named).absolute()


def _interrupt(*_: Any) -> NoReturn:
    """The first signal ends `serve` in order; a second one must not cut that order short."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


def backup(arguments: argparse.Namespace) -> int:
    from holdfast.local.sqlite.backup import back_up  # noqa: PLC0415

    source = _data_file(arguments.data)
    size = back_up(source, arguments.target)
    answer = {"source": str(source), "target": str(arguments.target), "bytes": size}
    return say(arguments, answer, f"copied {source} to {arguments.target}: {size:,} bytes")
