"""Cached results of tasks, `@task(cache=days(1))`.

A worker stores the result of such a task after the success. Until it expires, each execution of the
tenant that calls the task with equal arguments takes it, and begins no attempt:

    E1   read the cache: nothing ── run the task ── store its result ── commit TaskSucceeded
    E2   read the cache: E1's result ── commit TaskSucceeded, which names E1

The key is a hash of the module and the name of the task, of its `cache_version`, and of the
arguments, or of those that its `cache_key` names. Two executions that read at the same time both
run the task; the later result stays. A crash between the store and the commit does no harm: the
task had succeeded with these arguments.

The result is stored before the commit. After it, the delivery may end at any time, and a result of
which the log already knows would not be stored by a recovery.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.asl.whole_numbers import with_whole_numbers
from holdfast.core.facts import Succeeded
from holdfast.errors import HoldfastError, ServiceFault, is_damage
from holdfast.resources import CACHE_BLOBS_PREFIX
from holdfast.runtime import inbox
from holdfast.runtime.effects import Clock, Effect, Get, Item, NoResult, Put, Ticket
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.worker.config import CachePlace, CacheRule
from holdfast.sealed import holds_sealed

#: The first part of a blob's key, where other blobs have the tenant. A stack with an archive keeps
#: all blobs but those with this prefix.
_BLOBS: Final = CACHE_BLOBS_PREFIX.rstrip("/")
#: TTL deletes an item at an uncertain time. The field `expires` decides.
_DAY_SECONDS: Final = 86_400


def place_of(rule: CacheRule, arguments: Json) -> CachePlace | None:
    """Return where the result of a call with the arguments is stored; None when they hold a secret:
    the same secret is encrypted in another way each time, and no cache may keep what it opens.
    """
    if holds_sealed(arguments):
        return None
    if rule.names is not None and isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if name in rule.names}
    # An input has 1.0 where a computed value has 1: both are one value to the task.
    compared = [rule.scope, with_whole_numbers(arguments)]
    text = json.dumps(compared, sort_keys=True, separators=(",", ":"))
    return CachePlace(hashlib.sha256(text.encode()).hexdigest(), rule.seconds)


def find(
    tenant: str, place: CachePlace, ticket: Ticket, now_ms: int
) -> Generator[Effect, Any, Succeeded | None]:
    """Return the fact that the attempt has the stored result; None without one. A result that this
    code cannot read, or whose blob is gone, counts as none: the task runs, and its result replaces
    it.
    """
    item: Item | None = yield Get(tables.MAIL, keys.cached(tenant, place.digest), keys.ONLY)
    if item is None:
        return None
    try:
        return (yield from _read(tenant, item, ticket, now_ms))
    except HoldfastError as error:
        if not is_damage(error):
            raise
        return None


def _read(
    tenant: str, item: Item, ticket: Ticket, now_ms: int
) -> Generator[Effect, Any, Succeeded | None]:
    require_format(item, "a cached result")
    with reading("a cached result"):
        if int(item["expires"]) <= now_ms:
            return None
        output = yield from inbox.unstow(_BLOBS, tenant, item)
        stored: dict[str, Json] = {"execution": str(item["run"]), "at": int(item["at"])}
    return Succeeded(*ticket, output, cached=stored)


def keep(tenant: str, run: str, place: CachePlace, output: Json) -> NoResult:
    """Store the result of a task that has succeeded. In an outage it is not stored: its own
    execution has it anyway, and a failure here would run the task again.
    """
    if holds_sealed(output):
        return
    now_ms = yield Clock()
    expires_ms = now_ms + 1_000 * place.seconds
    try:
        stowed = yield from inbox.stow(_BLOBS, tenant, output)
        yield Put(
            tables.MAIL,
            {
                "pk": keys.cached(tenant, place.digest),
                "sk": keys.ONLY,
                FORMAT_FIELD: FORMAT,
                "run": run,
                "at": now_ms,
                "expires": expires_ms,
                "ttl": expires_ms // 1_000 + _DAY_SECONDS,
                **stowed,
            },
        )
    except ServiceFault:
        return
