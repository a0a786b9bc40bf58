"""The stored requests to redrive an execution, read from its control messages.

A request is stored before a worker carries it out. Until then the log still says that the execution
has ended, although its redrive is accepted. The messages stay stored for 90 days, so they also say
when the last redrive was accepted and with which client token.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core import facts
from holdfast.core.redriving import is_redriven_by
from holdfast.core.state import Execution
from holdfast.runtime import inbox
from holdfast.runtime.commands.keyed import void_retry
from holdfast.runtime.effects import Effect, Item, Query
from holdfast.runtime.storage import keys, tables

#: The last 10 client tokens are valid, for 15 minutes (AWS docs, RedriveExecution).
TOKENS_MAX: Final = 10
TOKEN_MS: Final = 15 * 60_000


@dataclass(frozen=True, slots=True)
class Redrive:
    """One stored request. `token` is "" when the caller gave none."""

    control_id: str
    at_ms: int
    token: str


@dataclass(frozen=True, slots=True)
class Redrives:
    """The stored requests of one execution, the oldest first. `pending` is the one that a worker
    has not carried out yet.
    """

    stored: tuple[Redrive, ...] = ()
    pending: Redrive | None = None
    #: The time of the last redrive, which may be carried out already or still pending.
    last_ms: int | None = None

    def with_token(self, token: str, now_ms: int) -> Redrive | None:
        """Return the request that an earlier call has stored with the token, if the token is still
        valid.
        """
        tokens = [one for one in self.stored if one.token][-TOKENS_MAX:]
        valid = (one for one in tokens if now_ms - one.at_ms <= TOKEN_MS)
        return next((one for one in valid if one.token == token), None)


def redrives_of(tenant: str, state: Execution) -> Generator[Effect, Any, Redrives]:
    """Return the requests. Costs a query, or none for an execution that cannot have any: one that
    runs or has succeeded and was never redriven.
    """
    if not state.redrives and not state.resting:
        return Redrives()
    items: Iterable[Item] = yield Query(
        tables.MAIL, keys.inbox(tenant, state.run), begins_with=keys.CONTROL_PREFIX
    )
    stored = tuple(_redrive(item) for item in items if item.get("kind") == inbox.REDRIVE)
    wanted = (one for one in stored if _is_wanted(state, one))
    pending = next(wanted, None)
    if (
        pending is not None
        and (yield from void_retry(tenant, state.run, state.redrives)) is not None
    ):
        # No worker will carry out this redrive, because another execution has the key of the
        # workflow.
        pending = None
    if pending is not None:
        return Redrives(stored, pending, pending.at_ms)
    done = [one.at_ms for one in stored if one.control_id <= state.last_control]
    return Redrives(stored, None, done[-1] if done and state.redrives else None)


def as_redriven(state: Execution, redrives: Redrives) -> Execution:
    """Return the state as it will be when the pending redrive is carried out; unchanged without
    one.
    """
    return state if redrives.pending is None else running_again(state)


def running_again(state: Execution) -> Execution:
    """Return the state with its next redrive.

    AWS docs, RedriveExecution: the status is RUNNING as soon as a redrive is accepted.
    """
    running = state._replace(status="RUNNING", stopped_ms=None, error=None, cause=None)
    return running._replace(redrives=state.redrives + 1)


def last_redrive_ms(tenant: str, run: str) -> Generator[Effect, Any, int | None]:
    """Return the time at which the last redrive was accepted. Costs a query."""
    items: Iterable[Item] = yield Query(
        tables.MAIL, keys.inbox(tenant, run), begins_with=keys.CONTROL_PREFIX, reverse=True
    )
    accepted = (int(item["at"]) for item in items if item.get("kind") == inbox.REDRIVE)
    return next(accepted, None)


def _redrive(item: Item) -> Redrive:
    control_id = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
    return Redrive(control_id, int(item["at"]), str(item.get("token", "")))


def _is_wanted(state: Execution, one: Redrive) -> bool:
    return is_redriven_by(state, facts.RedriveRequested(one.control_id))
