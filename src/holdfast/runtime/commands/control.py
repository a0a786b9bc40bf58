"""Control messages: a stop or a retry that is asked for from outside the execution.

The item is stored before the wake is sent (R12). A process that crashes between the two leaves an
item that the next recovery of the execution reads.
"""

from __future__ import annotations

from holdfast.core.state import Execution
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import Item, Message, NoResult, PutIfAbsent, Send
from holdfast.runtime.storage import keys, tables


def request_control(
    tenant: str, run: str, state: Execution | None, at: tuple[int, bytes], fields: Item
) -> NoResult:
    """Sends a control message with a new id, which is later than each id that `state` has applied.

    `at`: the time in milliseconds since the epoch, and 6 random bytes or more.
    """
    now_ms, chance = at
    control_id = inbox.control_id(state, now_ms, chance)
    yield from send_control(tenant, run, control_id, now_ms, fields)


def send_control(tenant: str, run: str, control_id: str, now_ms: int, fields: Item) -> NoResult:
    """Store the control message and wake the execution. Two control messages with one id are one
    request.
    """
    yield PutIfAbsent(tables.MAIL, inbox.control_item(tenant, run, control_id, now_ms, fields))
    yield Send((Message(messages.wake_mail(tenant, run, keys.control(control_id))),))
