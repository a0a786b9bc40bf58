"""Which execution may use a stored event, for the invariants about waits."""

from __future__ import annotations

from holdfast.asl.program import Json
from holdfast.errors import HoldfastError
from holdfast.runtime import inbox
from holdfast.runtime.effects import Item
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import history


def is_too_old(asked: Json, started_ms: int, event: Item) -> bool:
    """Return True when a wait with the arguments `asked` takes no event that was stored before its
    execution started, and this one was. The clocks of two hosts differ by a second at most.
    """
    takes_old = not isinstance(asked, dict) or asked.get("kept", True)
    return not takes_old and int(event["at"]) + 1_000 < started_ms


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
