"""The event of an execution that has failed, timed out or was stopped: it starts the keyed
workflows with `starts_on="holdfast.execution.failed"`.

The worker that commits the end sends the event, before the last follow-up of the end. After a crash
between the two, another worker sends it again, with the same id and the same data, so it counts
once:

    the end is committed
    the event `ID.0` is stored, and the workflow that starts on it is started
    the entry for RUNNING leaves the list    without it, the sweeper asks a worker to recover

A retry continues an ended log, and the next end sends `ID.1`. Before its commit the worker sends
`ID.0` once more: from then on the log no longer says how that end came about.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from holdfast.core.state import Execution
from holdfast.limits import EVENT_BYTES_MAX, EVENT_RETENTION_SECONDS, FAILED_EVENT
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.events import bus_event
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, NoResult
from holdfast.runtime.storage.definitions import Definition

_CHANCE_BYTES: Final = 7
#: How long after an end its event may be sent again. For 14 days the stored event shows that it is
#: the same; later it would count as a new one.
_REPEATED_MS_MAX: Final = (EVENT_RETENTION_SECONDS - 86_400) * 1_000


def send(known: Lookup, tenant: str, state: Execution, definition: Definition) -> NoResult:
    """Send the event of this end. If its type does not fit, it is listed as a refused event: the
    execution has ended all the same. `definition`: that of the execution.
    """
    assert state.stopped_ms is not None
    if (yield Clock()) - state.stopped_ms > _REPEATED_MS_MAX:
        return
    event_id = f"{state.run}.{state.redrives}"
    key = None
    if "keyed" in definition.source_map:
        key = yield from keyed.key_of(tenant, state.run)
    data: dict[str, Any] = {
        "execution": state.run,
        "name": state.name,
        "workflow": state.workflow,
        "status": state.status,
        "error": state.error,
        "cause": state.cause,
        "input": state.input,
        "key": key,
    }
    if len(json.dumps(data)) > EVENT_BYTES_MAX:
        # The event would be refused, and no workflow would handle the failure.
        data["input"] = None
    detail = {"name": FAILED_EVENT, "key": state.run, "data": data}
    chance = hashlib.sha256(event_id.encode()).digest()[:_CHANCE_BYTES]
    yield from bus_event(known, tenant, event_id, detail, chance, is_own=True)
