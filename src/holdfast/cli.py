"""The command line. Exit codes: 0 fine, 1 a negative answer, 2 wrong usage or no API reached.

`local/remote.py` has the commands that call an API.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

from holdfast.core.state import PAUSE_TIMERS, STATUSES
from holdfast.errors import HoldfastBug, HoldfastError, RequestError, WorkflowError
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.local import project, remote
from holdfast.local.client import LISTED_MAX
from holdfast.local.console import (
    FINE,
    INTERRUPTED,
    NEGATIVE,
    WRONG_USAGE,
    harmless,
    print_json,
    say,
)
from holdfast.resources import WORKER

#: HTTP statuses by which the API says no to a request that was well formed.
NEGATIVE_STATUSES: Final = frozenset({403, 404, 409})
PORT_DEFAULT: Final = 8080
SIGNAL_SECONDS: Final = 0.5
TARGETS: Final = ("holdfast", "stepfunctions")


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows no Unicode gets escapes, not a failure.
            stream.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        project.make_importable()
        status = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does. The interpreter must not flush to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KeyboardInterrupt:
        return INTERRUPTED
    except HoldfastError as error:
        return _fail(error)
    except Exception as error:  # noqa: BLE001  # no traceback ever reaches a user
        return _fail(_of_other(error))
    return status


def _fail(error: HoldfastError) -> int:
    print(harmless(str(error)), file=sys.stderr)
    match error:
        case WorkflowError():
            return NEGATIVE
        case RequestError(status=status) if status in NEGATIVE_STATUSES:
            return NEGATIVE
        case _:
            return WRONG_USAGE


def _of_other(error: Exception) -> HoldfastError:
    if isinstance(error, ModuleNotFoundError) and error.name in {"moto", "rich"}:
        return RequestError(
            "HF281",
            f"this command needs the package {error.name}",
            help="install `holdfast[local]`",
        )
    return HoldfastBug(f"{type(error).__name__}: {error}")


# -- arguments -------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Durable workflows for AWS, written as plain typed Python."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_authoring(commands)
    _add_local(commands)
    _add_starting(commands)
    _add_pausing(commands)
    _add_limits(commands)
    _add_capacity(commands)
    _add_seeing(commands)
    _add_telling(commands)
    _add_repairing(commands)
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], about: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(run=run)
    return parser


def _remote(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], about: str
) -> argparse.ArgumentParser:
    parser = _command(commands, name, run, about)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--endpoint", metavar="URL", help="default: this project's running `serve`")
    where.add_argument(
        "--stack", metavar="NAME", help="a deployed stack, with your AWS credentials"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def _add_authoring(commands: Any) -> None:
    compiling = _command(commands, "compile", _compile, "Write the state machines of modules.")
    compiling.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold graphs of the modules' tasks: docs/reference/dag.md; " + _MODULES_HELP,
    )
    compiling.add_argument(
        "--check", action="store_true", help="only say whether the files are up to date"
    )
    compiling.add_argument(
        "--target",
        choices=TARGETS,
        default=TARGETS[0],
        help="who runs them; default: %(default)s",
    )
    checking = _command(
        commands, "check", _check, "Say all that is wrong with workflows or state machines."
    )
    checking.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold definitions in Amazon States Language; " + _MODULES_HELP,
    )
    checking.add_argument("--json", action="store_true", help="print one line of JSON")
    checking.add_argument("--strict", action="store_true", help="exit 1 for warnings, too")
    drawing = _command(commands, "graph", _graph, "Draw workflows or state machines.")
    drawing.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold definitions in Amazon States Language; " + _MODULES_HELP,
    )
    drawing.add_argument(
        "--format", choices=("svg", "mermaid"), default="svg", help="default: %(default)s"
    )
    drawing.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="a file (.svg, .mmd) for one picture, or a folder for <workflow>.svg of each; "
        "default: one picture is printed",
    )
    drawing.add_argument(
        "--link",
        default="",
        metavar="PREFIX",
        help="of an address that FILE#Lline is appended to: lines in the SVG become links",
    )


def _add_local(commands: Any) -> None:
    demo = _command(commands, "demo", _demo, "Run real orders through the local cloud.")
    demo.add_argument("--orders", type=Path, metavar="FILE", help="one JSON order per line")
    demo.add_argument("--json", action="store_true", help="print one line of JSON")
    serve = _command(commands, "serve", _serve, "Serve the API and AWS's beside a local cloud.")
    serve.add_argument("--port", type=int, default=PORT_DEFAULT, help="default: %(default)s")
    serve.add_argument("--json", action="store_true", help="print where it listens as JSON")
    serve.add_argument(
        "--no-payload-limit", action="store_true", help="lift the 256 KiB of state machines"
    )
    serve.add_argument("--modules", nargs="+", default=[], metavar="MODULE", help=_MODULES_HELP)


def _add_starting(commands: Any) -> None:
    start = _remote(commands, "start", remote.start, "Start an execution.")
    start.add_argument("workflow")
    start.add_argument("--name", help="its business key; the same name and input start once")
    start.add_argument("--input", default="{}", metavar="JSON", help="or @FILE, or - for stdin")
    start.add_argument("--wait", type=float, metavar="SECONDS", help="for its end")
    start.add_argument(
        "--priority",
        type=int,
        metavar="N",
        help="its place before limits: 0, the first, to 9; without it 5",
    )
    stop = _remote(commands, "stop", remote.stop, "End an execution as ABORTED, after undoing.")
    stop.add_argument("execution", metavar="ID", help=_NAMED)
    stop.add_argument("--error")
    stop.add_argument("--cause")
    stop.add_argument(
        "--now", action="store_true", help="end it at once: what is not undone yet stays as it is"
    )

    retry = _remote(
        commands,
        "retry",
        remote.retry,
        "Let an execution that FAILED, TIMED_OUT or was ABORTED go on from the failed step.",
    )
    retry.add_argument("execution", metavar="ID", help=_NAMED)
    retry.add_argument("--reason", metavar="TEXT", help="why, for the history")


def _add_pausing(commands: Any) -> None:
    pause = _remote(commands, "pause", remote.pause, "Pause an execution: nothing new begins.")
    pause.add_argument("execution", metavar="ID", help=_NAMED)
    pause.add_argument("--reason", required=True, help="`show`, `list` and `doctor` print it")
    pause.add_argument("--by", help="who asks; default: the user of this machine")
    pause.add_argument(
        "--timers",
        choices=PAUSE_TIMERS,
        default=PAUSE_TIMERS[0],
        help="freeze: the resume moves each due by the paused time; run: timers and time-outs "
        "pass during the pause; default: %(default)s",
    )
    resume = _remote(commands, "resume", remote.resume, "Continue a paused execution.")
    resume.add_argument("execution", metavar="ID", help=_NAMED)
    resume.add_argument("--reason", required=True, help="the history keeps it")
    resume.add_argument("--by", help="who asks; default: the user of this machine")
    priority = _remote(
        commands, "priority", remote.priority, "Change the place of an execution in queues."
    )
    priority.add_argument("execution", metavar="ID", help=_NAMED)
    priority.add_argument("priority", type=int, metavar="0-9", help="0 goes first, 9 last")
    priority.add_argument("--reason", required=True, help="the history keeps it")
    priority.add_argument("--by", help="who asks; default: the user of this machine")


def _add_limits(commands: Any) -> None:
    shown = _remote(commands, "limits", remote.limits, "Show the limits of tasks and their queues.")
    shown.add_argument("limit", nargs="?", metavar="NAME", help="only this one, and its changes")
    shown.add_argument("--key", metavar="VALUE", help="the queue of one value of its key")
    change = commands.add_parser("limit", help="Change, pause or resume a limit without a deploy.")
    changes = change.add_subparsers(dest="change", required=True, metavar="CHANGE")
    told = {
        "set": "Let a limit differ from the code, until it is cleared.",
        "pause": "Let nothing begin that the limit covers.",
        "resume": "Let a paused limit go on.",
        "clear": "Give a limit the values of the code again.",
    }
    for name, about in told.items():
        one = _remote(changes, name, remote.change_limit, about)
        one.add_argument("limit", metavar="NAME", help="as `holdfast limits` shows it")
        one.add_argument("--reason", required=True, help="`holdfast limits` and `show` print it")
        one.add_argument("--by", help="who asks; default: the user of this machine")
        if name == "set":
            one.add_argument("--rate", type=_rate, metavar="N/UNIT", help="5/s, 300/min or 1000/h")
            one.add_argument("--burst", type=int, metavar="N", help="starts at once after a pause")
            one.add_argument("--concurrency", type=int, metavar="N", help="attempts at once")


def _add_capacity(commands: Any) -> None:
    capacity = commands.add_parser(
        "capacity", help="Say which limit binds first when so many executions start."
    )
    capacity.add_argument("workflow")
    capacity.add_argument("--starts", type=_rate, required=True, metavar="N/UNIT", help="50/s")
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


def _rate(text: str) -> float:
    """Return the starts per second."""
    seconds = {"s": 1, "min": 60, "h": 3_600}
    count, _, unit = text.partition("/")
    if unit not in seconds or not _NUMBER.fullmatch(count):
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate: write 5/s, 300/min or 1000/h")
    return float(count) / seconds[unit]


_LIST_TIMES: Final = {
    "--since": "started then or later: 90min, 36h, 2d ago, or 2027-01-15T08:00Z",
    "--until": "started before",
    "--ended-since": "ended then or later",
    "--ended-until": "ended before",
    "--older-than": "waiting since then or longer: 90min, 2d",
}
_SPAN: Final = re.compile(r"([0-9]{1,6})(s|min|h|d)")
_SPAN_SECONDS: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def _time(text: str) -> datetime | timedelta:
    """Return a span before now, or a moment; one without a zone is in the local zone."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        return timedelta(seconds=int(span[1]) * _SPAN_SECONDS[span[2]])
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        expected = "write 90min, 36h, 2d or 2027-01-15T08:00Z"
        raise argparse.ArgumentTypeError(f"{text!r} is no time: {expected}") from None


def _add_seeing(commands: Any) -> None:
    listing = _remote(commands, "list", remote.list_executions, "List the newest executions.")
    listing.add_argument("--workflow", metavar="NAME", help="deployed, or once deployed")
    listing.add_argument("--status", choices=STATUSES)
    listing.add_argument("--error", metavar="NAME", help="those that failed with this error")
    listing.add_argument("--name", metavar="NAME", help="a name, or its beginning: 'order-17*'")
    listing.add_argument("--paused", action="store_true", help="those that an operator has paused")
    listing.add_argument(
        "--waiting-for",
        metavar="KIND[:TARGET]",
        help="event:paid, ask:role:clerk, task:ship, retry, limit:bank, child, timer …",
    )
    listing.add_argument("--last-error", metavar="NAME", help="those that are tried again after it")
    listing.add_argument("--parent", metavar="ID", help="the children of this execution")
    listing.add_argument("--definition", metavar="HASH", help="of this version, or its beginning")
    for option, about in _LIST_TIMES.items():
        listing.add_argument(option, type=_time, metavar="TIME", help=about)
    listing.add_argument(
        "--limit", type=_limit, default=100, metavar="N", help="how many, 1 to 5,000 (default 100)"
    )
    listing.add_argument("--after", metavar="KEY", help="only older ones: what a list ended with")
    listing.add_argument("--events", action="store_true", help="events that nobody awaits yet")
    show = _remote(commands, "show", remote.show, "Show an execution and what it waits for.")
    show.add_argument("execution", metavar="ID", help=_NAMED)
    history = _remote(
        commands, "history", remote.history, "Show all that happened in an execution."
    )
    history.add_argument("execution", metavar="ID", help=_NAMED)


def _add_repairing(commands: Any) -> None:
    formats = _remote(
        commands,
        "format",
        remote.show_format,
        "Show in which format a stack writes its logs, or ask for a newer one.",
    )
    formats.add_argument(
        "--set",
        dest="number",
        type=int,
        metavar="N",
        help="from now on; cannot be taken back, nor may code that reads only older ones run again",
    )
    doctor = _remote(
        commands,
        "doctor",
        remote.doctor,
        "Find what should move and does not, and say why. Exit status 1: something was found.",
    )
    doctor.add_argument(
        "execution", nargs="?", metavar="ID", help="or its name; default: all that are running"
    )
    doctor.add_argument("--repair", action="store_true", help="set going again what was found")


def _add_telling(commands: Any) -> None:
    event = _remote(commands, "event", remote.event, "Tell those who wait that something happened.")
    event.add_argument("name")
    event.add_argument("--key", required=True, help="the business key that they wait with")
    event.add_argument("--data", required=True, metavar="JSON", help="or @FILE, or - for stdin")
    event.add_argument("--id", help="an event that is sent twice with one id counts once")
    answer = _remote(commands, "answer", remote.answer, "Answer a question of an execution.")
    answer.add_argument("token", help="`holdfast show` prints it")
    how = answer.add_mutually_exclusive_group(required=True)
    how.add_argument("--output", metavar="JSON", help="or @FILE, or - for stdin")
    how.add_argument("--error", metavar="NAME", help="fail the wait with this error")
    answer.add_argument("--cause", metavar="TEXT", help="of the error")


_NAMED: Final = "or the name that it was started with, or WORKFLOW:NAME, or its ARN"
#: A number as `--rate` takes it.
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_MODULES_HELP: Final = "default: tool.holdfast.modules in pyproject.toml"


# -- authoring -------------------------------------------------------------------------------------


def _compile(arguments: argparse.Namespace) -> int:
    from holdfast.local import build, graph_files  # noqa: PLC0415

    files = [Path(target) for target in arguments.targets if target.endswith(".json")]
    modules = [target for target in arguments.targets if not target.endswith(".json")]
    modules = project.modules_or_default(modules)
    notes: list[str] = []
    match arguments.target:
        case "stepfunctions" if files:
            outputs, notes = graph_files.export_files(files, modules)
        case "stepfunctions":
            outputs, notes = build.export_modules(modules)
        case _ if files:
            outputs = graph_files.compile_files(files, modules)
        case _:
            outputs = build.compile_modules(modules)
    if not outputs:
        print(_without_workflows(modules))
    stale = [output for output in outputs if not output.is_current()]
    if arguments.check:
        for output in stale:
            print(f"{output.path} is not what its source compiles to", file=sys.stderr)
        return NEGATIVE if stale else FINE
    for output in outputs:
        print(f"{'written' if output in stale else 'current'}  {output.path}")
        if output in stale:
            output.write()
    for note in notes:
        print(note)
    return FINE


def _without_workflows(modules: Sequence[str]) -> str:
    return f"no workflows in {', '.join(modules)}"


def _check(arguments: argparse.Namespace) -> int:
    from holdfast.local import build, check, proving  # noqa: PLC0415

    files = [target for target in arguments.targets if target.endswith(".json")]
    modules = [target for target in arguments.targets if target not in files]
    found = {file: check.check_file(Path(file)) for file in files}
    wanted = [] if files and not modules else project.modules_or_default(modules)
    compiled, errors = build.try_modules(wanted)
    refusals = [finding for findings in found.values() for finding in findings]
    # A refused definition is incomplete, so there is nothing to prove.
    sound = [file for file in files if not any(map(check.is_error, found[file]))]
    subjects = [proving.subject_of_file(Path(file)) for file in sound]
    subjects += [] if errors else proving.subjects_of_modules(wanted, compiled)
    if arguments.json:
        print_json(
            [refusal.to_json() for refusal in refusals]
            + [{"severity": "ERROR", "message": error} for error in errors]
            + [row for subject in subjects for row in subject.to_json()]
        )
    else:
        for part in [*refusals, *errors, *(subject.render() for subject in subjects)]:
            print(harmless(str(part)), end="\n\n")
        count = len(refusals) + len(errors) + sum(subject.problems for subject in subjects)
        nothing = "no problems" if subjects or not wanted else _without_workflows(wanted)
        print(f"{count} problem{'s'[: count != 1]}" if count else nothing)
    gravest = {"error", "warning"} if arguments.strict else {"error"}
    is_refused = len(sound) < len(files) or (arguments.strict and bool(refusals))
    is_wrong = any(subject.severities & gravest for subject in subjects)
    return NEGATIVE if errors or is_refused or is_wrong else FINE


def _capacity(arguments: argparse.Namespace) -> int:
    from holdfast.local import build, proving, screen  # noqa: PLC0415

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


def _graph(arguments: argparse.Namespace) -> int:
    from holdfast.local import graph  # noqa: PLC0415

    files = [target for target in arguments.targets if target.endswith(".json")]
    modules = [target for target in arguments.targets if target not in files]
    wanted = [] if files and not modules else project.modules_or_default(modules)
    subjects = [graph.subject_of_file(Path(file)) for file in files]
    subjects += graph.subjects_of_modules(wanted)
    drawn = [(one.name, graph.draw(one, arguments.format, arguments.link)) for one in subjects]
    if arguments.output is not None:
        for path in graph.write(drawn, arguments.output, graph.SUFFIXES[arguments.format]):
            print(f"written  {path}")
        return FINE
    if len(drawn) != 1:
        raise RequestError(
            "HF282", f"{len(drawn)} pictures, and one can be printed", help="--output FOLDER"
        )
    print(drawn[0][1], end="")
    return FINE


# -- local -----------------------------------------------------------------------------------------


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
    with serve.serving(deployment, arguments.port, payload_bytes_max) as served:
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


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LISTED_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {LISTED_MAX:,}")
    return int(text)


def _interrupt(*_: Any) -> NoReturn:
    """The first signal ends `serve` in order; a second one must not cut that order short."""
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt
