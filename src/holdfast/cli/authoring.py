"""The commands on sources and definitions: `compile`, `check` and `graph`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import MODULES_HELP, command
from holdfast.cli.console import FINE, NEGATIVE, harmless, print_json, store_text
from holdfast.errors import RequestError
from holdfast.local import project

if TYPE_CHECKING:
    from holdfast.local.proving import ProvenMachine

TARGETS: Final = ("holdfast", "stepfunctions")


def add(commands: Any) -> None:
    compiling = command(commands, "compile", _compile, "Write the state machines of modules.")
    compiling.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold graphs of the modules' tasks: docs/reference/dag.md; " + MODULES_HELP,
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
    checking = command(
        commands, "check", _check, "Report the problems of workflows or state machines."
    )
    checking.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold definitions in Amazon States Language; " + MODULES_HELP,
    )
    checking.add_argument("--json", action="store_true", help="print one line of JSON")
    checking.add_argument("--strict", action="store_true", help="exit 1 for warnings, too")
    drawing = command(commands, "graph", _graph, "Draw workflows or state machines.")
    drawing.add_argument(
        "targets",
        nargs="*",
        metavar="MODULE|FILE.json",
        help="files hold definitions in Amazon States Language; " + MODULES_HELP,
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
            store_text(output.path, output.text)
    for note in notes:
        print(note)
    return FINE


def _without_workflows(modules: Sequence[str]) -> str:
    return f"no workflows in {', '.join(modules)}"


def _summary(
    told: Iterable[str], subjects: Sequence[ProvenMachine], gravest: Collection[str], empty: str
) -> str:
    """Return the last line: problems are what fails the check. `told` are the severities of what
    was found before the proofs.
    """
    proven = [finding.severity for subject in subjects for finding in subject.proofs.findings]
    found = [*told, *proven]
    problems = sum(severity in gravest for severity in found)
    warnings = 0 if "warning" in gravest else found.count("warning")
    if problems:
        return _counted(problems + warnings, "problem")
    return f"accepted, {_counted(warnings, 'warning')}" if warnings else empty


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s'[: count != 1]}"


def _check(arguments: argparse.Namespace) -> int:
    from holdfast.local import build, check, proving  # noqa: PLC0415

    files = [target for target in arguments.targets if target.endswith(".json")]
    modules = [target for target in arguments.targets if target not in files]
    found = {file: check.check_file(Path(file)) for file in files}
    wanted = [] if files and not modules else project.modules_or_default(modules)
    compiled, errors = build.try_modules(wanted)
    refusals = [finding for findings in found.values() for finding in findings]
    # Leave out a refused definition. It is incomplete, so nothing can be proven about it.
    sound = [file for file in files if not any(map(check.is_error, found[file]))]
    gravest = {"error", "warning"} if arguments.strict else {"error"}
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
        empty = "no problems" if subjects or not wanted else _without_workflows(wanted)
        told = [one.diagnostic.severity.lower() for one in refusals] + ["error"] * len(errors)
        print(_summary(told, subjects, gravest, empty))
    is_refused = len(sound) < len(files) or (arguments.strict and bool(refusals))
    is_wrong = any(subject.severities & gravest for subject in subjects)
    return NEGATIVE if errors or is_refused or is_wrong else FINE


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
