"""Commands on workflows themselves: `register` registers a graph at run time; `workflows` lists,
draws and removes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.cli.console import say, store_text, unreadable
from holdfast.cli.remote import client_of, remote_command
from holdfast.errors import RequestError

#: The text with which the API begins the place of a refusal.
_PLACE: Final = re.compile(r"^document:(?=[0-9])", re.MULTILINE)


def add(commands: Any) -> None:
    register_parser = remote_command(
        commands, "register", register, "Register a graph of steps as a workflow."
    )
    register_parser.add_argument("file", type=Path, metavar="FILE", help="its JSON document")
    workflows_parser = remote_command(
        commands, "workflows", workflows, "List the workflows, draw or remove one."
    )
    workflows_parser.add_argument("workflow", nargs="?", metavar="NAME")
    action = workflows_parser.add_mutually_exclusive_group()
    action.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw NAME")
    action.add_argument(
        "--remove", action="store_true", help="remove the registered graph NAME; executions go on"
    )


def register(arguments: argparse.Namespace) -> int:
    try:
        text = arguments.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(arguments.file, error) from None
    try:
        json.loads(text)
    except ValueError as error:
        raise RequestError(
            "HF282", f"{arguments.file} is not JSON: {error}", help="correct the file"
        ) from None
    told = _registered(arguments, text)
    named = f"{told['workflow']} version {told['version']} ({told['definition'][:12]})"
    sentence = f"registered {named}" if told["registered"] else f"{named} is registered already"
    return say(arguments, told, sentence)


def _registered(arguments: argparse.Namespace, text: str) -> Mapping[str, Any]:
    try:
        return client_of(arguments).register(text)
    except RequestError as refused:
        if refused.code != "HF440":
            raise
        # The API does not know the name of the file and writes `document` in its place. So put the
        # name in.
        message = _PLACE.sub(lambda _: f"{arguments.file}:", refused.message)
        raise RequestError(refused.code, message, help=refused.help) from None


def workflows(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    if arguments.workflow is None:
        if arguments.picture is not None or arguments.remove:
            option = "--remove" if arguments.remove else "--picture"
            raise RequestError("HF282", f"{option} needs NAME", help="holdfast workflows NAME")
        found = client.workflows()
        return say(arguments, {"workflows": found}, _listed(found))
    if arguments.remove:
        told = client.remove_workflow(arguments.workflow)
        return say(arguments, told, f"removed {arguments.workflow}; its executions go on")
    told = client.workflow(arguments.workflow)
    if arguments.picture is not None:
        if "picture" not in told:
            raise RequestError(
                "HF445",
                f"the picture of {arguments.workflow} is too large for an answer",
                help="divide the graph into several graphs",
            )
        store_text(arguments.picture, told["picture"])
        return say(arguments, told, f"wrote {arguments.picture}")
    return say(arguments, told, _listed([told]))


def _listed(found: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(
        f"{one['workflow']}  {_origin(one)}  {one['definition'][:12]}" for one in found
    )


def _origin(one: Mapping[str, Any]) -> str:
    return f"version {one['version']}" if "version" in one else "of the code"
