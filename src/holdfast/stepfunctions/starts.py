"""What a start leaves behind at once: a row by which the execution is described and listed.

A log begins when a worker takes the start message, and with its first record after the first task:
seconds later, or hours when work has piled up. Until then this row *is* the execution for who asks.
It stands in the table `mail`, partition `T#st#stateMachine:NAME#SHARD`, sorted by start time:

* described: machine and run are in the execution's ARN, so its key is known; no index is needed;
* listed: one strongly consistent query of each shard; rows younger than `LISTED_MS` count, later
  the execution is in the list index, for it was opened or has ended.

Cost: one write unit a start (an input over `INPUT_BYTES_MAX` goes to a blob, which is cheaper than
as many units from there on), nothing at the end: TTL takes the row. A name row could not do this:
it is not in order of time, and executions without a name have none.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.state import MachineOrigin, Parent
from holdfast.errors import RequestError
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands.presentation import json_text
from holdfast.runtime.effects import Clock, Effect, Get, Item, Message, PutIfAbsent, Query, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.json_values import require_plain
from holdfast.stepfunctions.arns import ExecutionArn
from holdfast.stepfunctions.catalogue import Service, Startable
from holdfast.stepfunctions.faults import StatesFault, validation

#: A worker has 15 minutes for a message: by then the execution was opened, or has ended. One that
#: lies in the queue for longer is described all the same, but not listed until a worker begins it.
LISTED_MS: Final = 20 * 60_000
#: As long as a start message lives: what has no log by then never began.
RETENTION_SECONDS: Final = 14 * 86_400
#: From here on a blob costs less than the write units.
INPUT_BYTES_MAX: Final = 8_192


@dataclass(frozen=True, slots=True)
class Start:
    """`input` is stowed: {"v": text} or {"ref": hash}. `name` is None unless one was given.

    `parent` is whom the execution tells of its end, if anybody.
    """

    run: str
    name: str | None
    started_ms: int
    definition: str
    origin: MachineOrigin
    input: Mapping[str, Any]
    parent: Parent | None = None


def origin_of(
    service: Service, startable: Startable, execution_arn: str, execution_name: str
) -> MachineOrigin:
    origin: MachineOrigin = {
        "execution_arn": execution_arn,
        "execution_name": execution_name,
        "state_machine_arn": startable.machine_arn,
        "state_machine_name": startable.name,
        "role_arn": startable.role_arn,
        "type": startable.type,
    }
    if service.payload_bytes_max is None:
        origin["is_unbounded"] = True
    if startable.version_arn is not None:
        origin["version_arn"] = startable.version_arn
    if startable.alias_arn is not None:
        origin["alias_arn"] = startable.alias_arn
    return origin


def input_of(service: Service, request: Mapping[str, Any]) -> Json:
    """-> the request's input. Raises InvalidExecutionInput in Jackson's words when it is no JSON.

    An object that has a field twice is JSON; the last one counts.
    """
    text = str(request.get("input", "{}"))
    limit = service.payload_bytes_max
    if limit is not None and len(text) * 4 > limit and len(text.encode()) > limit:
        raise validation(
            "1 validation error detected: Value at 'input' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limit}"
        )
    problem = json_problem(text)
    if problem is not None:
        raise StatesFault(
            "InvalidExecutionInput", f"Invalid State Machine Execution Input: '{problem}'"
        )
    return json.loads(text)  # type: ignore[no-any-return]


def json_problem(text: str) -> str | None:
    """-> what is wrong with the text, as AWS says it; None when it is JSON that can be kept."""
    try:
        require_plain(json.loads(text, parse_constant=_refuse), "the value")
    except RequestError as error:
        return f"com.fasterxml.jackson.core.exc.StreamConstraintsException: {error.message}"
    except (ValueError, RecursionError):
        pass
    else:
        return None
    # Only for words: whoever sends JSON does not wait for this import.
    from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json  # noqa: PLC0415

    try:
        read_json(text)
    except JsonTextError as error:
        return f"com.fasterxml.jackson.core.JsonParseException: {error.message}"
    except JsonDepthError:
        return "com.fasterxml.jackson.core.exc.StreamConstraintsException: it is nested too deeply"
    return "com.fasterxml.jackson.core.JsonParseException: it is no JSON"


def _refuse(name: str) -> None:
    raise ValueError(name)


# -- the row ---------------------------------------------------------------------------------------


def put_start(service: Service, start: Start) -> Generator[Effect, Any, Start]:
    """-> the start that is stored: an earlier one of the same run keeps its definition."""
    item = _item(service.tenant, start)
    found = yield PutIfAbsent(tables.MAIL, item)
    return start if found is None else read_start(found)


def send_start(service: Service, start: Start) -> Generator[Effect, Any, None]:
    fields = {
        "workflow": workflow_of(start.origin),
        "definition": start.definition,
        "t0": start.started_ms,
        "input": dict(start.input),
        "origin": start.origin,
        **({} if start.name is None else {"name": start.name}),
        **({} if start.parent is None else {"parent": start.parent}),
    }
    yield Send((Message(messages.start(service.tenant, start.run, **fields)),))


def find_start(
    service: Service, arn: ExecutionArn, run: str
) -> Generator[Effect, Any, Start | None]:
    workflow = keys.machine_workflow(arn.machine)
    partition = keys.starts(service.tenant, workflow, keys.start_shard(run))
    if "." in run:
        item = yield from _find_child(partition, run)
    else:
        item = yield Get(tables.MAIL, partition, keys.list_sort(keys.minted_ms(run), run))
    if item is None:
        return None
    start = read_start(item)
    return start if start.origin["execution_arn"] == arn.text else None


def _find_child(partition: str, run: str) -> Generator[Effect, Any, Item | None]:
    """The id of a child does not say when it was started: it is looked for among the young."""
    now_ms = yield Clock()
    young = f"{now_ms - LISTED_MS:015d}#"
    items = yield Query(tables.MAIL, partition, after=young)
    return next((item for item in items if str(item["sk"]).endswith(f"#{run}")), None)


def workflow_of(origin: MachineOrigin) -> str:
    """What the engine knows a state machine's executions by."""
    return keys.machine_workflow(origin["state_machine_name"])


def _item(tenant: str, start: Start) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.starts(tenant, workflow_of(start.origin), keys.start_shard(start.run)),
        "sk": keys.list_sort(start.started_ms, start.run),
        FORMAT_FIELD: FORMAT,
        "dh": start.definition,
        "o": json_text(start.origin),
        "ttl": start.started_ms // 1_000 + RETENTION_SECONDS,
        **start.input,
    }
    if start.parent is not None:
        item["p"] = json_text(start.parent)
    return item if start.name is None else {**item, "nm": start.name}


def read_start(item: Item) -> Start:
    require_format(item, "a start")
    started, _, run = str(item["sk"]).partition("#")
    name = item.get("nm")
    stowed = {key: item[key] for key in ("v", "ref") if key in item}
    origin: MachineOrigin = json.loads(str(item["o"]))
    parent: Parent | None = json.loads(str(item["p"])) if "p" in item else None
    return Start(
        run=run,
        name=None if name is None else str(name),
        started_ms=int(started),
        definition=str(item["dh"]),
        origin=origin,
        input=stowed,
        parent=parent,
    )


def stow_input(tenant: str, run: str, data: Json) -> Generator[Effect, Any, dict[str, Any]]:
    return (yield from inbox.stow(tenant, run, data, INPUT_BYTES_MAX))
