"""Children that have ended without a report to their parent."""

from __future__ import annotations

import json

from holdfast.runtime.effects import Item
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.services import Services


def is_unreported(services: Services, start: Item) -> bool:
    """Return True when the log of a task's child has ended and the inbox of its parent does not
    have the end. `start`: the row of the child's start.
    """
    tenant = str(start.get("t"))
    log = services.partition(tables.EXECUTIONS, keys.execution(tenant, str(start.get("run"))))
    if not log or log[-1].get("st") == "RUNNING":
        return False
    parent = json.loads(str(start["body"])).get("parent")
    if parent is None:
        return False
    key = keys.answer(parent["entry"], parent["attempt"])
    return services.row(tables.MAIL, keys.inbox(tenant, parent["run"]), key) is None
