"""Give a command that may be repeated, by a worker that does not know whether it was already given.

A command of an operator gets a new id each time. A bulk operation needs the opposite: after a crash
the next worker repeats the command, and it must count once. So the values in the id are fixed here:
the time and the random bytes. The control message then has the same id each time, and `PutIfAbsent`
stores it once.

There is one more case. `control_id` increases an id until it is greater than all ids that the
execution has applied, because a smaller id would be ignored. So the repetition of a command that
was applied would get a second id:

    12:00:00.000  act: id 0        stored, applied          worker A crashes
    12:00:09.000  act: id 0 → 1    must not be stored       worker B

Therefore any id but the fixed one is refused here. The stored item says whether the command was
given; then B counts it as done. Without an item, an operator has acted on the execution after the
bulk operation selected it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import RequestError, ServiceFault
from holdfast.runtime.effects import Clock, Effect, Get, JsonResult, PutIfAbsent
from holdfast.runtime.inbox import control_id
from holdfast.runtime.storage import keys, tables

#: The clock effect that is answered with the time of the first call, so that a repeated command has
#: the same id. Every other clock effect gets the present time. With a past time, a command would
#: put a row for the sweeper where the sweeper has already read, and would treat a key that is
#: reserved for a retry as free.
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
    """Give the command, unless it was already given. Raises RequestError HF505, and the errors of
    the command.
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
