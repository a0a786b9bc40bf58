"""The commands for the people whom executions ask: `inbox`, `claim`, `release`, `delegate`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from holdfast.cli.arguments import whole
from holdfast.cli.console import FINE, print_json, say
from holdfast.cli.remote import client_of, local_user, now_of, remote_command

_BY_HELP = "your name; default: the user of this machine"


def add(commands: Any) -> None:
    inbox_parser = remote_command(
        commands, "inbox", inbox, "List the open questions to people, or show one."
    )
    inbox_parser.add_argument("question", nargs="?", metavar="QUESTION", help="show only this one")
    inbox_parser.add_argument("--assignee", help="of one person; of a role: role:manager")
    inbox_parser.add_argument("--workflow", metavar="NAME", help="of the executions that ask")
    inbox_parser.add_argument("--limit", type=whole, metavar="N", help="1 to 100")
    inbox_parser.add_argument("--after", metavar="CURSOR", help="as the page before prints it")
    abouts = {
        "claim": "Reserve a question: others cannot answer it.",
        "release": "Let others answer a claimed question again.",
        "delegate": "Give a question to another person or role.",
    }
    for name, about in abouts.items():
        parser = remote_command(commands, name, act, about)
        parser.add_argument("question", metavar="QUESTION", help="`holdfast inbox` prints it")
        if name == "delegate":
            parser.add_argument("--to", required=True, metavar="ASSIGNEE", help="or role:manager")
        parser.add_argument("--by", help=_BY_HELP)
        parser.set_defaults(action=name)


def inbox(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    if arguments.question is not None:
        found = client.question(arguments.question)
        if arguments.json:
            print_json(found)
        else:
            _print_question(found)
        return FINE
    rows, after = client.questions(
        assignee=arguments.assignee,
        workflow=arguments.workflow,
        limit=arguments.limit,
        after=arguments.after,
    )
    if arguments.json:
        print_json(rows)
    elif rows:
        from holdfast.cli import screen  # noqa: PLC0415

        screen.put(screen.questions(rows, now_of(arguments, client)))
    else:
        print("no open questions")
    if after is not None:
        print(f"more: --after {after}", file=sys.stderr)
    return FINE


def _print_question(found: Any) -> None:
    print(f"{found['title']}  ({found['assignee']})")
    if "until" in found:
        print(f"until      {found['until']}")
    if "claimed_by" in found:
        print(f"claimed by {found['claimed_by']}")
    if found["details"] is not None:
        print(f"details    {json.dumps(found['details'], ensure_ascii=False)}")
    if found["schema"]:
        print(f"answer     {json.dumps(found['schema'], ensure_ascii=False)}")
    if "link" in found:
        print(f"link       {found['link']}")
    print(f"holdfast answer {found['question']} --output JSON")


def act(arguments: argparse.Namespace) -> int:
    client, by = client_of(arguments), arguments.by or local_user()
    match arguments.action:
        case "claim":
            told, done = client.claim(arguments.question, by), f"claimed by {by}"
        case "release":
            told, done = client.release(arguments.question, by), "released"
        case _:
            told = client.delegate(arguments.question, arguments.to, by)
            done = f"delegated to {arguments.to}"
    return say(arguments, told, done)
