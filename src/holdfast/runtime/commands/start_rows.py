"""The row of a start: the API describes and lists an execution by it as long as no log has begun.

A log begins with its first record, after the first task: seconds after the start, or hours when
many starts wait in the queue. Until then this row represents an execution that the Step Functions
API has started. The row is in the table `mail`, partition `T#st#WORKFLOW#SHARD`, sorted by start
time:

* A description needs no index: the ARN names the machine and the run, and so the row's key.
* A list makes one strongly consistent query of each shard, for rows younger than `LISTED_MS`. Older
  executions are in the list index, because they were opened or have ended.

A start costs one more write unit; TTL deletes the row. An input over `START_INPUT_BYTES_MAX` is
stored as a blob, which then costs less than the write units. The row of a name could not replace
this row: it is not sorted by time, and executions without a name have none.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.state import PRIORITY_DEFAULT, MachineOrigin, Parent
from holdfast.limits import START_RESENT_SECONDS_MAX
from holdfast.runtime.effects import Clock, Effect, Get, Item, PutIfAbsent, Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.spread import MACHINE_STARTS

#: A list reads only the rows of starts that are younger than this. A worker has 15 minutes for a
#: message, so an older execution has an entry in the list index. An older start whose message still
#: waits in the queue can be described, but is not listed.
LISTED_MS: Final = 20 * 60_000
#: If an execution does not begin, the sweeper sends its start message again and again for this
#: long.
RETENTION_SECONDS: Final = START_RESENT_SECONDS_MAX


@dataclass(frozen=True, slots=True)
class Start:
    """One accepted start.

    * `workflow`: the workflow's name, `stateMachine:NAME` for a state machine.
    * `name`: None when the caller gave none.
    * `definition`: its hash.
    * `origin`: the ARNs of the state machine, version and alias; None for a start through the API
      of Holdfast, which has no ARNs.
    * `input`: {"v": text} or {"ref": hash}; {} before it is stored.
    * `parent`: the execution that waits for the end.
    * `priority`: from 0, the first, to 9; not stored in the row.
    """

    run: str
    workflow: str
    name: str | None
    started_ms: int
    definition: str
    origin: MachineOrigin | None
    input: Mapping[str, Any]
    parent: Parent | None = None
    priority: int = PRIORITY_DEFAULT


def put_start(tenant: str, start: Start) -> Generator[Effect, Any, Start]:
    """Store the start, and return the stored one: an earlier start of the same run keeps its
    definition.
    """
    found = yield PutIfAbsent(tables.MAIL, _item(tenant, start))
    return start if found is None else read_start(found)


def find_start(
    tenant: str, workflow: str, run: str, execution_arn: str
) -> Generator[Effect, Any, Start | None]:
    partition = keys.starts(tenant, workflow, MACHINE_STARTS.of(run))
    if "." in run:
        item = yield from _find_child(partition, run)
    else:
        item = yield Get(tables.MAIL, partition, keys.list_sort(keys.minted_ms(run), run))
    if item is None:
        return None
    start = read_start(item)
    is_it = start.origin is not None and start.origin["execution_arn"] == execution_arn
    return start if is_it else None


def _find_child(partition: str, run: str) -> Generator[Effect, Any, Item | None]:
    """Return the start row of a child execution. Its id contains no start time, so this reads the
    rows of recent starts.
    """
    now_ms = yield Clock()
    young = f"{now_ms - LISTED_MS:015d}#"
    items = yield Query(tables.MAIL, partition, after=young)
    return next((item for item in items if str(item["sk"]).endswith(f"#{run}")), None)


def _item(tenant: str, start: Start) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.starts(tenant, start.workflow, MACHINE_STARTS.of(start.run)),
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
    origin: MachineOrigin = json.loads(str(item["o"]))
    parent: Parent | None = json.loads(str(item["p"])) if "p" in item else None
    return Start(
        run=run,
        workflow=str(item["pk"]).split("#")[2],
        name=None if name is None else str(name),
        started_ms=int(started),
        definition=str(item["dh"]),
        origin=origin,
        input={key: item[key] for key in ("v", "ref") if key in item},
        parent=parent,
    )
