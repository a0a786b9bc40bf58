"""The command that creates a project: `init`."""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote
from typing import Any

from holdfast.cli.arguments import command
from holdfast.cli.console import FINE
from holdfast.local import new_project


def add(commands: Any) -> None:
    init = command(commands, "init", _init, "Make a project: workflow, tests, CDK app, CI.")
    init.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="new, or one that exists: no file in it is overwritten; default: this folder",
    )
    init.add_argument(
        "--template",
        choices=new_project.TEMPLATES,
        default=new_project.TEMPLATES[0],
        help="the workflow to begin with; default: %(default)s",
    )


def _init(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    created = new_project.create(folder, arguments.template)
    for path in created.written:
        print(f"wrote    {path}")
    for path in created.skipped:
        print(f"skipped  {path}: it was there before")
    if folder / "pyproject.toml" in created.skipped:
        print("the project's own pyproject.toml needs these:")
        print(new_project.additions(folder, arguments.template))
    checkout = new_project.origin().checkout
    if checkout is not None:
        print(
            f"pyproject.toml names {checkout}, which other machines lack; before the first CI run:"
        )
        print(f"  uv build --wheel {quote(str(checkout))} --out-dir vendor && uv add vendor/*.whl")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "
    print(f"next: {enter}uv run pytest && uv run holdfast serve")
    return FINE
