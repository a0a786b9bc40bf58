"""The commands about a stack on this machine: `serve`, `advance`, `backup` and `demo`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from holdfast.cli.arguments import MODULES_HELP, command, lead, whole
from holdfast.cli.console import FINE, NEGATIVE, print_json, say
from holdfast.cli.remote import client_of, remote_command
from holdfast.errors import HoldfastBug, RequestError
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local import project

if TYPE_CHECKING:
    from holdfast.local.serve import Served

PORT_DEFAULT: Final = 8080
SIGNAL_SECONDS: Final = 0.5
DATA: Final = Path(".holdfast") / "holdfast.db"
_DATA_HELP: Final = f"the file of the executions; default: {DATA} of the project"


def add(commands: Any) -> None:
    demo = command(commands, "demo", _demo, "Run real orders through the local cloud.")
    demo.add_argument("--orders", type=Path, metavar="FILE", help="one JSON order per line")
    demo.add_argument("--json", action="store_true", help="print one line of JSON")
    _add_serve(commands)
    advance = remote_command(commands, "advance", _advance, "Move the clock of a `serve` on.")
    advance.add_argument("span", type=lead, metavar="SPAN", help="90min, 36h, 3d")
    backup = command(commands, "backup", _backup, "Copy the file of `serve` while it runs.")
    backup.add_argument("target", type=Path, metavar="PATH", help="a file that does not exist yet")
    backup.add_argument("--data", type=Path, metavar="PATH", help=_DATA_HELP)
    backup.add_argument("--json", action="store_true", help="print one line of JSON")


def _add_serve(commands: Any) -> None:
    serve = command(
        commands, "serve", _serve, "Run workflows on this machine, with the API and AWS's."
    )
    serve.add_argument("--port", type=whole, default=PORT_DEFAULT, help="default: %(default)s")
    serve.add_argument("--json", action="store_true", help="print where it listens as JSON")
    serve.add_argument(
        "--no-payload-limit", action="store_true", help="lift the 256 KiB of state machines"
    )
    serve.add_argument(
        "--history-limit", action="store_true", help="end state machines at 25,000 events, as AWS"
    )
    serve.add_argument(
        "--debug",
        action="store_true",
        help="let time stand still while a debugger has stopped a task: docs/how-to/debug.md",
    )
    serve.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help=MODULES_HELP)
    where = serve.add_mutually_exclusive_group()
    where.add_argument("--data", type=Path, metavar="PATH", help=_DATA_HELP)
    where.add_argument("--in-memory", action="store_true", help="forget everything at the end")
    serve.add_argument(
        "--archive", type=Path, metavar="FOLDER", help="store executions there that have ended"
    )
    serve.add_argument(
        "--clock", type=lead, metavar="+SPAN", help="run the clock ahead: +90min, +36h, +3d"
    )
    serve.add_argument(
        "--reload", action="store_true", help="start again when a source file changes"
    )


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
    from holdfast.local import reload  # noqa: PLC0415

    if arguments.reload and not reload.is_watched():
        return reload.watch(sorted({project.project_root(), Path.cwd()}))
    return _serve_here(arguments)


def _serve_here(arguments: argparse.Namespace) -> int:
    from holdfast.local import reload, serve, stack  # noqa: PLC0415

    deployment = stack.deployment_of(project.modules_or_none(arguments.modules))
    root = project.project_root()
    payload_bytes_max = None if arguments.no_payload_limit else PAYLOAD_BYTES_MAX
    data = None if arguments.in_memory else _data_file(arguments.data)
    with serve.serving(
        deployment,
        arguments.port,
        payload_bytes_max,
        data=data,
        archive=_archive(arguments),
        is_debugged=arguments.debug,
        has_history_limit=arguments.history_limit,
    ) as served:
        if arguments.clock is not None:
            ahead_ms = arguments.clock // timedelta(milliseconds=1) - served.clock.lead_ms
            served.clock.advance(max(0, ahead_ms))
        announced = project.Serving(served.url, os.getpid())
        project.announce(announced, root)
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, _interrupt)
        _tell(arguments, served, list(deployment.definitions), data)
        try:
            # Wait with a time-out, again and again. A signal that arrives just as the wait begins
            # would otherwise be noticed only at its end.
            while not served.ended.wait(SIGNAL_SECONDS) and not reload.is_orphaned():
                pass
        except KeyboardInterrupt:
            """Ctrl-C only ends the wait. The statements below stop the server"""
        finally:
            project.withdraw(announced, root)
            is_bug = served.ended.is_set()
    if is_bug:
        raise HoldfastBug("the local cloud stopped by itself; stderr says why")
    if not served.is_drained:
        _leave(data)
    return FINE


def _tell(
    arguments: argparse.Namespace, served: Served, names: Sequence[str], data: Path | None
) -> None:
    kept = "memory, forgotten at the end" if data is None else str(data)
    ahead = timedelta(seconds=served.clock.lead_ms // 1_000)
    note = f"; its clock is {ahead} ahead" if ahead else ""
    say(
        arguments,
        {"url": served.url, "workflows": names, "data": None if data is None else str(data)},
        f"serving {', '.join(names) or 'no workflows'} at {served.url}; "
        f"executions are kept in {kept}{note}; Ctrl-C ends it",
    )
    sys.stdout.flush()


def _leave(data: Path | None) -> NoReturn:
    """End the process even while tasks run: Python would wait for their threads."""
    again = "are lost" if data is None else "run again at the next start"
    print(f"tasks were still running; they {again}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FINE)


def _data_file(named: Path | None) -> Path:
    return (project.project_root() / DATA if named is None else named).absolute()


def _archive(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of the archive. Raises RequestError HF331; HF282 for a folder that cannot
    be made, which would otherwise show an hour after the first execution has ended.
    """
    if arguments.archive is not None and arguments.in_memory:
        raise RequestError(
            "HF331",
            "--archive was given with --in-memory, which keeps nothing that could expire",
            help="leave one of the two out",
        )
    if arguments.archive is None:
        return None
    folder: Path = arguments.archive.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            "HF282",
            f"the folder {folder} of --archive cannot be made: {error.strerror}",
            help="name another folder",
        ) from None
    return folder


def _interrupt(*_: Any) -> NoReturn:
    """Stop `serve` at the first signal. A second one is ignored, so that running handlers can
    finish.
    """
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


def _advance(arguments: argparse.Namespace) -> int:
    answer = client_of(arguments).advance(arguments.span // timedelta(milliseconds=1))
    ahead = timedelta(seconds=answer["clock_lead_seconds"])
    return say(arguments, answer, f"the clock of `serve` is {ahead} ahead")


def _backup(arguments: argparse.Namespace) -> int:
    from holdfast.local.sqlite.backup import back_up  # noqa: PLC0415

    source = _data_file(arguments.data)
    size = back_up(source, arguments.target)
    answer = {"source": str(source), "target": str(arguments.target), "bytes": size}
    return say(arguments, answer, f"copied {source} to {arguments.target}: {size:,} bytes")
