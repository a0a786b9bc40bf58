"""The inputs of a decision besides state and facts: the time, random draws, leases and tokens.

Random draws and tokens depend on the record alone. A worker that repeats a decision of another
worker therefore writes the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.core.facts import DecisionInputs, Fact
from holdfast.core.state import Execution
from holdfast.limits import CALLBACK_SECONDS_MAX, CLOCK_ERROR_MS
from holdfast.runtime.commands.tokens import SigningKeys, Token, make_token
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log, draw
from holdfast.runtime.worker.delivery import Delivery
from holdfast.runtime.worker.leases import Claims


@dataclass
class DecisionInputsFactory:
    """Mutable; lives for one delivery. `draws` counts those for the next record."""

    errand: Delivery
    log: Log
    keys: Callable[[], SigningKeys]
    draws: int = 0

    def at(
        self,
        now_ms: int,
        decided_ms: int,
        state: Execution | None = None,
        told: Iterable[Fact] = (),
    ) -> DecisionInputs:
        """`decided_ms`: the time of the events; leases count from `now_ms`. `state` is the state
        that the decision changes, `told` the facts that it gets.
        """
        sequence = self.log.sequence + 1

        def next_draw() -> float:
            self.draws += 1
            return draw(self.log.run, sequence, self.draws)

        return DecisionInputs(
            now_ms=decided_ms,
            draw=next_draw,
            claim=Claims(self.errand.delivery, state, now_ms, told).make,
            clock_error_ms=CLOCK_ERROR_MS,
            token=self._token,
        )

    def _token(self, entry: int, attempt: int) -> str:
        """The same text whoever schedules the attempt: it counts from the id of the execution."""
        expires_ms = keys.minted_ms(self.log.run) + CALLBACK_SECONDS_MAX * 1_000
        token = Token(self.log.tenant, self.log.run, entry, attempt, expires_ms)
        return make_token(token, self.keys())
