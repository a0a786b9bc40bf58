"""Control messages: requests to an execution from outside, such as a stop or a retry.

The item is stored before the wake is sent (R12). If a process crashes between the two, the next
recovery of the execution reads the item.
"""

from __future__ import annotations

from holdfast.core.state import Execution
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import Item, Message, NoResult, PutIfAbsent, Send
from holdfast.runtime.storage import keys, tables


def request_control(
    tenant: str, run: str, state: Execution | None, at: tuple[int, bytes], fields: Item
) -> NoResult:
    """Send a control message with a new id, which is greater than each id that `state` has applied.

    `at`: the time in milliseconds since the epoch, and at least 6 random bytes.
    """
    now_ms, chance = at
    control_id = inbox.control_id(state, now_ms, chance)
    yield from send_control(tenant, run, control_id, now_ms, fields)


def send_control(tenant: str, run: str, control_id: str, now_ms: int, fields: Item) -> NoResult:
    """Store the control message and wake the execution. Two control messages with one id count
    once.
    """
    yield PutIfAbsent(tables.MAIL, inbox.control_item(tenant, run, control_id, now_ms, fields))
    yield from wake_for_control(tenant, run, control_id)


def wake_for_control(tenant: str, run: str, control_id: str) -> NoResult:
    """Wake the execution for a control message that is stored."""
    yield Send((Message(messages.wake_mail(tenant, run, keys.control(control_id))),))
