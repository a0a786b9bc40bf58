"""The commands that change the version of running executions: `migrate`, `deploy-check`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import MODULES_HELP, listed_count, rate
from holdfast.cli.console import (
    FINE,
    NEGATIVE,
    counted,
    harmless,
    print_json,
    store_text,
    unreadable,
)
from holdfast.cli.remote import client_of, local_user, remote_command
from holdfast.errors import RequestError, known_names
from holdfast.local import project

if TYPE_CHECKING:
    from holdfast.migration.report import Standing
    from holdfast.migration.version import Version
    from holdfast.remote.client import Client

_BACK: Final = "back"
_LATEST: Final = "latest"
_ALL: Final = 1_000_000_000
#: The command prints at most this many executions that cannot move, each with the reason.
_SHOWN_MAX: Final = 20
_SHOWN_HASH: Final = 12


def add(commands: Any) -> None:
    moving = remote_command(
        commands, "migrate", migrate, "Move executions to another version of their workflow."
    )
    moving.add_argument("subject", metavar="WORKFLOW|ID", help="all its executions, or one")
    where = moving.add_mutually_exclusive_group()
    where.add_argument(
        "--to", default=_LATEST, metavar="HASH", help="or latest; default: %(default)s"
    )
    where.add_argument(
        "--undo", action="store_true", help="back to the version before the last migration"
    )
    moving.add_argument(
        "--dry-run", action="store_true", help="only say which executions may move, and why not"
    )
    moving.add_argument(
        "--canary", type=listed_count, metavar="N", help="move only N, of all positions"
    )
    moving.add_argument("--rate", type=rate, metavar="N/s", help="or N/min; default: no limit")
    moving.add_argument("--reason", help="the history keeps it; needed unless --dry-run")
    moving.add_argument("--by", help="who asks; default: the user of this machine")
    checking = remote_command(
        commands,
        "deploy-check",
        deploy_check,
        "Report what this code would change for running executions.",
    )
    checking.add_argument("modules", nargs="*", metavar="MODULE", help=MODULES_HELP)
    checking.add_argument("--report", type=Path, metavar="FILE", help="a saved one, for CI")
    checking.add_argument("--save", type=Path, metavar="FILE", help="write the report, and end")
    checking.add_argument(
        "--strict", action="store_true", help="exit 1 also if some stay on their version"
    )


# -- migrate ---------------------------------------------------------------------------------------


def migrate(arguments: argparse.Namespace) -> int:
    client = client_of(arguments)
    if not arguments.dry_run and not arguments.reason:
        raise RequestError("HF282", "--reason is missing", help="the history keeps it")
    deployed = {row["workflow"]: row["definition"] for row in client.workflows()}
    if arguments.subject not in deployed:
        return _migrate_one(arguments, client, deployed)
    return _migrate_all(arguments, client, deployed[arguments.subject])


def _words(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.dry_run:
        return {"dry_run": True}
    return {"reason": arguments.reason, "by": arguments.by or local_user()}


def _migrate_one(arguments: argparse.Namespace, client: Client, deployed: Iterable[str]) -> int:
    to = _BACK if arguments.undo else arguments.to
    try:
        told = client.migrate(arguments.subject, to=to, **_words(arguments))
    except RequestError as error:
        if error.code != "HF207":
            raise
        known = known_names(arguments.subject, deployed)
        raise RequestError(
            "HF207",
            f"there is no workflow and no execution {arguments.subject!r}",
            status=404,
            help=f"a workflow ({known}), or an execution as `holdfast list` prints it",
        ) from None
    if arguments.json:
        print_json(told)
    elif told["moves"]:
        verb = "may move" if arguments.dry_run else "was asked to move"
        print(f"{told['execution']} {verb} to {told['to'][:_SHOWN_HASH]}")
    elif told["from"] == told["to"]:
        print(f"{told['execution']} has {told['to'][:_SHOWN_HASH]} already")
    else:
        print(f"{told['execution']} may not move to {told['to'][:_SHOWN_HASH]}")
        for one in told["obstacles"]:
            print(harmless(f"  {one['why']}{_places(one)}"))
    return FINE if told["moves"] or told["from"] == told["to"] else NEGATIVE


def _places(obstacle: Mapping[str, Any]) -> str:
    named = [
        f"{name} {obstacle[name]['file']}:{obstacle[name]['line']}"
        for name in ("old", "new")
        if name in obstacle
    ]
    return f" ({', '.join(named)})" if named else ""


def _migrate_all(arguments: argparse.Namespace, client: Client, newest: str) -> int:
    report = client.positions(arguments.subject)
    if arguments.undo:
        chosen = [run for row in report["positions"] for run in row["executions"]]
        chosen = chosen[: arguments.canary or _ALL]
        return _ask(arguments, client, chosen, _BACK)
    from holdfast.migration import report as reports  # noqa: PLC0415

    target = _target(arguments, client, report, newest)
    standings = reports.judge(report, target)
    if arguments.dry_run:
        return _tell(arguments, {arguments.subject: standings}, target.hash)
    chosen = reports.spread(standings, arguments.canary or _ALL)
    return _ask(arguments, client, chosen, target.hash)


def _target(
    arguments: argparse.Namespace, client: Client, report: Mapping[str, Any], newest: str
) -> Version:
    from holdfast.migration.report import version_in  # noqa: PLC0415

    wanted = newest if arguments.to == _LATEST else arguments.to
    known = [newest, *report["definitions"]]
    full = next((one for one in known if one.startswith(wanted)), wanted)
    try:
        return version_in(report["definitions"].get(full) or client.definition(full))
    except RequestError as error:
        if error.code != "HF543":
            raise
        in_use = ", ".join(one[:_SHOWN_HASH] for one in dict.fromkeys(known))
        help_ = f"versions in use, the newest first: {in_use}"
        raise RequestError("HF543", error.message, status=404, help=help_) from None


def _ask(arguments: argparse.Namespace, client: Client, chosen: Sequence[str], to: str) -> int:
    """Request the move of each execution. One that has continued in the meantime, or must not move,
    stays unchanged and is printed.
    """
    asked: list[str] = []
    refused: dict[str, str] = {}
    for run in _paced(chosen, arguments.rate):
        try:
            told = client.migrate(run, to=to, **_words(arguments))
        except RequestError as error:
            if not error.code.startswith("HF54"):
                raise
            refused[run] = error.message
            continue
        if told["moves"]:
            asked.append(run)
        elif told["obstacles"]:
            refused[run] = "; ".join(one["why"] for one in told["obstacles"])
    if arguments.json:
        print_json({"to": to, "asked": asked, "refused": refused})
    else:
        were = "was" if len(asked) == 1 else "were"
        verb = "may move" if arguments.dry_run else f"{were} asked to move"
        stay = "stays on its version" if len(refused) == 1 else "stay on their version"
        print(f"{counted(len(asked), 'execution')} {verb}, {len(refused)} {stay}")
        for why, count in Counter(refused.values()).most_common(_SHOWN_MAX):
            print(harmless(f"  {count}  {why}"))
    return FINE


def _paced(chosen: Sequence[str], per_second: float | None) -> Iterator[str]:
    begun = time.monotonic()
    for number, run in enumerate(chosen):
        if per_second is not None:
            time.sleep(max(0.0, begun + number / per_second - time.monotonic()))
        yield run


# -- deploy-check ----------------------------------------------------------------------------------


def deploy_check(arguments: argparse.Namespace) -> int:
    """Exit with 0: no execution is stranded; with 1: one is, or with --strict one keeps its
    version.
    """
    from holdfast.migration import report as reports  # noqa: PLC0415

    versions, tasks = _code(arguments)
    documents = _reports(arguments)
    if arguments.save is not None:
        store_text(arguments.save, json.dumps(documents, ensure_ascii=False) + "\n")
        counts = {name: _count(one) for name, one in documents.items()}
        said = ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
        print(f"wrote {arguments.save}: running executions of {said}")
        return FINE
    judged = {
        name: reports.judge(document, versions.get(name), tasks)
        for name, document in documents.items()
    }
    _tell(arguments, judged, None)
    rows = [one for standings in judged.values() for one in standings]
    is_stranded = any(one.lost for one in rows)
    stays = any(one.obstacles for one in rows)
    return NEGATIVE if is_stranded or (arguments.strict and stays) else FINE


def _code(arguments: argparse.Namespace) -> tuple[dict[str, Version], set[str]]:
    """Compile this project's workflows. Return their definitions, and the names of all tasks."""
    from holdfast.local.stack import deployment_of  # noqa: PLC0415
    from holdfast.migration.version import Version  # noqa: PLC0415

    modules = project.modules_or_default(arguments.modules)
    deployment = deployment_of(modules)
    versions = {
        name: Version(one.hash, one.asl, one.source_map)
        for name, one in deployment.definitions.items()
    }
    return versions, set(deployment.registry.tasks)


def _reports(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the positions of each workflow of the stack. This includes workflows that this code
    does not have, because their executions continue. Registered graphs are left out: a deployment
    does not change them.
    """
    if arguments.report is not None:
        try:
            found: dict[str, Any] = json.loads(arguments.report.read_text())
        except (OSError, ValueError) as error:
            raise unreadable(arguments.report, error) from None
        return found
    client = client_of(arguments)
    names = sorted(row["workflow"] for row in client.workflows() if "version" not in row)
    reports = {name: client.positions(name) for name in names}
    return {name: report for name, report in reports.items() if report["positions"]}


def _count(report: Mapping[str, Any]) -> int:
    return sum(len(row["executions"]) for row in report["positions"])


# -- output of both commands -----------------------------------------------------------------------


def _tell(
    arguments: argparse.Namespace, judged: Mapping[str, Sequence[Standing]], to: str | None
) -> int:
    if arguments.json:
        rows = {name: [one.to_json() for one in found] for name, found in judged.items()}
        print_json({"to": to, "workflows": rows} if to else {"workflows": rows})
        return FINE
    for name, standings in judged.items():
        print(harmless(f"{name}: {_summary(standings)}"))
        for one in standings:
            for text in _lines(one):
                print(harmless(f"  {text}"))
    if not judged:
        print("no workflow has running executions", file=sys.stderr)
    return FINE


def _summary(standings: Sequence[Standing]) -> str:
    moving = sum(one.count for one in standings if one.may_move)
    staying = sum(one.count for one in standings if one.obstacles)
    there = sum(one.count for one in standings if one.is_there)
    lost = sum(one.count for one in standings if one.lost)
    stranded = f"; {lost} would be stranded" if lost else ""
    stay = "stays on its version" if staying == 1 else "stay on their version"
    have = "has" if there == 1 else "have"
    return f"{moving} may move, {staying} {stay}, {there} {have} it already{stranded}"


def _lines(one: Standing) -> Iterator[str]:
    mark = "=" if one.is_there else "+" if one.may_move else "-"
    place = f"  ({one.source})" if one.source.file else ""
    yield f"{mark} {one.count:>6}  {one.where}{place}"
    for obstacle in one.obstacles:
        yield f"          {obstacle}"
    if one.lost:
        yield f"          stranded: this code has no task {', '.join(one.lost)}"
