"""The commands that call an API: this project's `serve`, another address, or a stack."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import RequestError
from holdfast.local.console import FINE, NEGATIVE, json_argument, print_json, say

if TYPE_CHECKING:
    from holdfast.local.client import Client

POLL_SECONDS: Final = 0.2


def _client(arguments: argparse.Namespace) -> Client:
    from holdfast.local.client import connect  # noqa: PLC0415

    return connect(arguments.endpoint, arguments.stack)


def start(arguments: argparse.Namespace) -> int:
    data = json_argument(arguments.input, "--input")
    client = _client(arguments)
    started = client.start(arguments.workflow, data, arguments.name, arguments.priority)
    is_new = started.get("started", True)
    if arguments.wait is None:
        text = f"started {started['execution']}" if is_new else _exists(started)
        say(arguments, started, text)
        return FINE if is_new else NEGATIVE
    if not is_new:
        print(_exists(started), file=sys.stderr)
    ended = _wait(client, started["execution"], arguments.wait)
    _show_execution(arguments, ended)
    if ended["status"] == "RUNNING":
        print(f"still running after {arguments.wait:g} s", file=sys.stderr)
    return FINE if ended["status"] == "SUCCEEDED" else NEGATIVE


def _exists(started: Any) -> str:
    """Return a line about the execution that has the name already, and has not succeeded."""
    name, status = started["name"], started["status"]
    error = f" ({started['error']})" if "error" in started else ""
    ended = f"is {status}" if status == "ABORTED" else f"has {status}"
    if started.get("undone"):
        fix = "it has undone what it did: start another one under another name"
    else:
        fix = f"`holdfast retry {name}` goes on from the failed step"
    return f"{name} exists and {ended}{error}; {fix}"


def retry(arguments: argparse.Namespace) -> int:
    answer = _client(arguments).retry(arguments.execution, arguments.reason)
    steps = ", ".join(answer["from"]) or "its start"
    return say(arguments, answer, f"asked {answer['execution']} to go on from {steps}")


def _wait(client: Client, identifier: str, seconds: float) -> Any:
    """Return the execution when it has ended, or its state after the time."""
    deadline = time.monotonic() + seconds
    while True:
        execution = client.execution(identifier)
        left = deadline - time.monotonic()
        if execution["status"] != "RUNNING" or left <= 0:
            return execution
        time.sleep(min(POLL_SECONDS, left))


def _list_filters(arguments: argparse.Namespace) -> dict[str, str | None]:
    now = datetime.now(UTC)
    texts = ("error", "name", "waiting_for", "last_error", "parent", "definition")
    times = ("since", "until", "ended_since", "ended_until")
    return {
        **{field: getattr(arguments, field) for field in texts},
        "paused": "true" if arguments.paused else None,
        "waiting_since": _time_text(arguments.older_than, now),
        **{field: _time_text(getattr(arguments, field), now) for field in times},
    }


def _time_text(given: datetime | timedelta | None, now: datetime) -> str | None:
    """Return the time as ISO text; a span is that long ago."""
    if given is None:
        return None
    return (now - given if isinstance(given, timedelta) else given).isoformat()


def list_executions(arguments: argparse.Namespace) -> int:
    from holdfast.local import screen  # noqa: PLC0415

    client = _client(arguments)
    if arguments.events:
        rows, after = client.events(), None
        table, nothing = screen.events, "every event has found its waiter"
    else:
        found = client.executions(
            arguments.workflow,
            arguments.status,
            limit=arguments.limit,
            after=arguments.after,
            filters=_list_filters(arguments),
        )
        rows, after = found
        table, nothing = screen.executions, "no executions"
    if arguments.json:
        print_json(rows)
    elif rows:
        screen.put(table(rows, datetime.now(UTC)))
    else:
        print(nothing)
    if after is not None:
        print(f"older ones: --after {after}", file=sys.stderr)
    return FINE


def show(arguments: argparse.Namespace) -> int:
    _show_execution(arguments, _client(arguments).execution(arguments.execution))
    return FINE


def _show_execution(arguments: argparse.Namespace, execution: Any) -> None:
    from holdfast.local import screen  # noqa: PLC0415

    if arguments.json:
        print_json(execution)
    else:
        screen.put_execution(execution, datetime.now(UTC))


def history(arguments: argparse.Namespace) -> int:
    from holdfast.local import screen  # noqa: PLC0415

    events = _client(arguments).history(arguments.execution)
    if arguments.json:
        print_json(events)
    else:
        screen.put(screen.history(events))
    return FINE


def event(arguments: argparse.Namespace) -> int:
    data = json_argument(arguments.data, "--data")
    client = _client(arguments)
    told = client.event(arguments.name, arguments.key, data, arguments.id)
    waiting = told["waiting"]
    heard = "kept until somebody waits for it" if waiting == 0 else f"awaited by {waiting}"
    return say(arguments, told, f"event {told['event']} {heard}")


def answer(arguments: argparse.Namespace) -> int:
    if arguments.error is None:
        if arguments.cause is not None:
            raise RequestError("HF282", "--cause belongs to --error")
        answer = {"output": json_argument(arguments.output, "--output")}
    else:
        texts = {"error": arguments.error, "cause": arguments.cause}
        answer = {name: text for name, text in texts.items() if text is not None}
    told = _client(arguments).answer(arguments.token, answer)
    return say(arguments, told, f"answered {told['execution']}")


def stop(arguments: argparse.Namespace) -> int:
    client = _client(arguments)
    is_now = arguments.now
    told = client.stop(arguments.execution, arguments.error, arguments.cause, is_now=is_now)
    how = "at once, undoing nothing more" if told.get("now") else "after undoing"
    if is_now and not told.get("now"):
        how += ", because the deployed code has no --now yet; deploy it again"
    return say(arguments, told, f"asked {told['execution']} to stop {how}")


def pause(arguments: argparse.Namespace) -> int:
    timers, by = arguments.timers, arguments.by or _local_user()
    told = _client(arguments).pause(arguments.execution, arguments.reason, by, timers)
    if "since" in told:
        return say(arguments, told, f"{told['execution']} is paused since {told['since']}")
    how = "its timers stand still" if timers == "freeze" else "its timers run on"
    return say(arguments, told, f"asked {told['execution']} to pause; {how}")


def resume(arguments: argparse.Namespace) -> int:
    by = arguments.by or _local_user()
    told = _client(arguments).resume(arguments.execution, arguments.reason, by)
    return say(arguments, told, f"asked {told['execution']} to resume")


def priority(arguments: argparse.Namespace) -> int:
    by = arguments.by or _local_user()
    wanted = arguments.priority
    told = _client(arguments).change_priority(arguments.execution, wanted, arguments.reason, by)
    return say(arguments, told, f"asked {told['execution']} to go on with priority {wanted}")


def limits(arguments: argparse.Namespace) -> int:
    from holdfast.local import screen  # noqa: PLC0415

    client, name = _client(arguments), arguments.limit
    if name is None and arguments.key is not None:
        raise RequestError(
            "HF239", "--key is given without a limit", help="holdfast limits NAME --key VALUE"
        )
    rows = client.limits() if name is None else [client.limit(name, arguments.key)]
    if arguments.json:
        print_json(rows)
    elif rows:
        now = datetime.now(UTC)
        earlier = [change for row in rows for change in row.get("changes", ())]
        screen.put(screen.limits(rows, now), *screen.limit_changes(earlier, now))
    else:
        print("no task has a limit")
    return FINE


def change_limit(arguments: argparse.Namespace) -> int:
    """`holdfast limit set`, `pause`, `resume` and `clear`."""
    changed: dict[str, Any] = {"reason": arguments.reason, "by": arguments.by or _local_user()}
    match arguments.change:
        case "set":
            given = {
                "rate": arguments.rate,
                "burst": arguments.burst,
                "concurrency": arguments.concurrency,
            }
            changed |= {name: value for name, value in given.items() if value is not None}
        case "clear":
            changed["clear"] = True
        case change:
            changed["paused"] = change == "pause"
    told = _client(arguments).change_limit(arguments.limit, changed)
    done = {"set": "is set", "clear": "has the values of the code again"}
    text = done.get(arguments.change, f"is {arguments.change.removesuffix('e')}ed")
    return say(arguments, told, f"the limit {told['name']} {text}")


def _local_user() -> str:
    """Return the user of this machine; "" in a container that has no name for its user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def show_format(arguments: argparse.Namespace) -> int:
    client = _client(arguments)
    told = client.format() if arguments.number is None else client.ask_format(arguments.number)
    readable = " and ".join(map(str, told["readable"]))
    return say(arguments, told, f"writes format {told['format']}; its code reads {readable}")


def doctor(arguments: argparse.Namespace) -> int:
    """0: all that should move does; 1: something does not, repaired or not."""
    from holdfast.local import screen  # noqa: PLC0415

    client = _client(arguments)
    found = client.doctor(arguments.execution, is_repairing=arguments.repair)
    if arguments.json:
        print_json(found)
    elif found:
        screen.put_findings(found, datetime.now(UTC), is_repaired=arguments.repair)
    else:
        print("everything that should move does")
    return NEGATIVE if found else FINE
