"""I22: a skipped step ends with the result from the request, in the visit for which it was
requested.

The request names the event with which the state was entered. A step that ended before the request
was applied keeps its own result: in a loop the next visit must not get the result of an earlier
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.core.events import Event
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case


def given(case: Case) -> Iterator[str]:
    items = case.services.items(tables.MAIL)
    mail = {(str(item["pk"]), str(item["sk"])): item for item in items}
    for history in case.histories:
        yield from _of(history, mail)


def _of(history: StoredHistory, mail: Any) -> Iterator[str]:
    visits: dict[str, int] = {}
    inbox = keys.inbox(history.tenant, history.run)
    for number, event in enumerate(history.events):
        frame = str(event.holdfast.get("frame", ""))
        if event.type.endswith("StateEntered"):
            visits[frame] = event.id
        if event.type == "StepSkipped" and number >= history.copied:
            asked = mail.get((inbox, keys.control(event.holdfast["control"])))
            if asked is None:
                yield f"{history.run}: a step was skipped without a command"
            elif (asked["frame"], asked["entered"]) != (frame, visits.get(frame)):
                yield f"{history.run}: another visit of a step was skipped than was asked for"
            elif not _is_result(event, asked):
                yield f"{history.run}: a skipped step has another result than was given"


def _is_result(event: Event, asked: Any) -> bool:
    """Return True when the event has the requested result. For a timer null is requested, and its
    result is not compared. Nor is a large value, which is in a blob.
    """
    if "v" not in asked:
        return True
    value = json.loads(asked["v"])
    return value is None or bool(event.details["output"] == value)
