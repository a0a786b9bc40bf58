"""Which execution may use a stored event, for the invariants about waits."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.runtime import inbox
from holdfast.runtime.effects import Item
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import history


def usable_since_ms(evidence: Evidence, tenant: str, run: str, event: Item) -> int | None:
    """Return the time since which the execution may use the event, 0 for always; None while another
    execution has it. One that has ended without it has it no longer.
    """
    if inbox.is_for(event, run):
        return 0
    if inbox.CLAIMED not in event:
        return None
    try:
        other = history(evidence.services, tenant, str(event[inbox.ADDRESSEE]))
    except HoldfastError:
        return None  # Another invariant reports a log that cannot be read, or is missing
    if not other.states:
        return None
    is_used = inbox.event_id(event) in other.state.used_events
    return None if is_used else other.state.stopped_ms
