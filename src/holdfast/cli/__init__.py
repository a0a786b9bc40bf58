"""The command line. Exit codes: 0 success, 1 a negative answer, 2 wrong usage or the API was not
reached, 130 interrupted. docs/reference/command-line.md explains them.

Each module has the commands about one subject: `add` declares them, and a function for each runs
it.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Final

from holdfast.cli import (
    authoring,
    bulk,
    capacity,
    completion,
    counting,
    creating,
    exporting,
    finding,
    limits,
    local,
    maintenance,
    migrating,
    pausing,
    people,
    registering,
    repairing,
    schedules,
    starting,
    telling,
    watching,
    working,
)
from holdfast.cli.console import FINE, INTERRUPTED, NEGATIVE, WRONG_USAGE, harmless
from holdfast.cli.parsing import Parser
from holdfast.errors import HoldfastBug, HoldfastError, RequestError, WorkflowError
from holdfast.local import project

#: The HTTP statuses with which the API refuses a request that is valid in itself.
NEGATIVE_STATUSES: Final = frozenset({403, 404, 409})
#: The codes of the client's errors when an execution has failed, has rejected a request, or has not
#: ended, replied or published a value in time.
NEGATIVE_CODES: Final = frozenset({"HF288", "HF289", "HF564", "HF565", "HF566", "HF567"})
#: The modules with the commands, in the order in which `holdfast --help` lists them.
_COMMANDS: Final = (
    creating,
    authoring,
    local,
    working,
    registering,
    starting,
    schedules,
    pausing,
    repairing,
    migrating,
    bulk,
    limits,
    capacity,
    finding,
    counting,
    watching,
    exporting,
    telling,
    people,
    maintenance,
    completion,
)


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Write escapes for characters that the terminal does not have. Without this the command
            # would fail on a terminal without Unicode.
            stream.reconfigure(errors="backslashreplace")
    arguments = parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        project.make_importable()
        status = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does. Redirect stdout, because the interpreter
        # flushes it at its end and would fail.
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
        case HoldfastError(code=code) if code in NEGATIVE_CODES:
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


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands. It takes 50 ms to make, and no call changes it."""
    made = Parser(
        prog="holdfast", description="Durable workflows for AWS, written as plain typed Python."
    )
    made.add_argument("--version", action="version", version=f"holdfast {version('holdfast')}")
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add(commands)
    return made
