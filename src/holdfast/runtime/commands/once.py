"""A command that may be given again by a worker which does not know whether it was given.

A command of an operator draws a new id each time. A bulk operation needs the opposite: after a
crash the next worker gives the same command, and it must count once. Here the values in its
id are fixed: the time and the random bytes. So its control message has a fixed id, and
`PutIfAbsent` stores it once.

One case remains. `control_id` moves an id past all that the execution has applied, because an
earlier id would be ignored. A command that was applied would thus get a second id:

    12:00:00.000  act: id 0        stored, applied          worker A crashes
    12:00:09.000  act: id 0 → 1    must not be stored       worker B

So any other id is refused here. The stored item says whether the command was given: then B counts
it as done. Without an item an operator has acted on the execution after the bulk chose it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import RequestError, ServiceFault
from holdfast.runtime.effects import Clock, Effect, Get, JsonResult, PutIfAbsent
from holdfast.runtime.inbox import control_id
from holdfast.runtime.storage import keys, tables

#: Every other clock has the present time: a row of the sweeper with a past time would stand where
#: the sweeper has read already, and a key that is held for a retry would be free again.
_ID_CLOCK: Final = Clock(is_for_id=True)


@dataclass(frozen=True, slots=True)
class Moment:
    """The time and the random bytes of a command to one execution, the same for each repetition."""

    tenant: str
    run: str
    at_ms: int
    chance: bytes

    @property
    def control(self) -> str:
        return keys.control(control_id(None, self.at_ms, self.chance))


def once(command: JsonResult, moment: Moment) -> Generator[Effect, Any, None]:
    """Give the command, unless it was given before. Raises RequestError HF505, and what the command
    raises.
    """
    try:
        yield from _fixed(command, moment)
    except RequestError:
        place = keys.inbox(moment.tenant, moment.run)
        if (yield Get(tables.MAIL, place, moment.control)) is None:
            raise


def _fixed(command: JsonResult, moment: Moment) -> Generator[Effect, Any, None]:
    """Run the command with the fixed time in its id. Raises RequestError HF505 for another id."""
    try:
        effect = next(command)
        while True:
            if effect == _ID_CLOCK:
                effect = command.send(moment.at_ms)
                continue
            _require_same_id(effect, moment)
            try:
                reply = yield effect
            except ServiceFault as fault:
                effect = command.throw(fault)
            else:
                effect = command.send(reply)
    except StopIteration:
        return


def _require_same_id(effect: Effect, moment: Moment) -> None:
    if not isinstance(effect, PutIfAbsent):
        return
    key = str(effect.item["sk"])
    if key.startswith(keys.CONTROL_PREFIX) and key != moment.control:
        raise RequestError(
            "HF505",
            f"another command has reached execution {moment.run} since the bulk selected it",
            status=409,
            help="see `holdfast history`; give the command to this execution alone",
        )
