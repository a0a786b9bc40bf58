"""The states in which the running executions of a workflow are, and the definitions that they have.

A page loads each of its executions, which costs one strongly consistent read each: the list has the
waits but not the variables, whose names are part of a position. Positions contain names and no
values.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.state import Execution
from holdfast.errors import RequestError
from holdfast.migration.model import Position
from holdfast.migration.positions import position_of
from holdfast.migration.version import Version
from holdfast.runtime.commands.list_filter import list_filter
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.migrate import version_of
from holdfast.runtime.effects import Clock, Effect, JsonResult
from holdfast.runtime.listing import read_page
from holdfast.runtime.storage.definitions import Definition

_LOADED_MAX: Final = 50
_HASH_CHARACTERS: Final = 64


def positions(known: Lookup, tenant: str, request: Mapping[str, Any]) -> JsonResult:
    """Return `positions`: for each its lines of control, its definition and the ids of its
    `executions`; and `next` while there may be more. `request`: workflow, after?. Raises
    RequestError HF205, HF209.
    """
    if "workflow" not in request:
        raise known.no_workflow(None)
    wanted = list_filter({**request, "status": "RUNNING", "limit": str(_LOADED_MAX)})
    page = yield from read_page(tenant, known.spread, wanted, (yield Clock()))
    versions: dict[str, Version] = {}
    found: dict[Position, list[str]] = {}
    for entry in page.entries:
        log = known.log(tenant, entry.run)
        yield from log.load()
        state = log.state
        if state is not None and not state.is_ended:
            version = yield from _version(known, tenant, state, versions)
            found.setdefault(position_of(state, version), []).append(entry.run)
    rows = [{**position.to_json(), "executions": runs} for position, runs in found.items()]
    return {"positions": rows} if page.after is None else {"positions": rows, "next": page.after}


def _version(
    known: Lookup, tenant: str, state: Execution, versions: dict[str, Version]
) -> Generator[Effect, Any, Version]:
    if state.definition not in versions:
        definition = yield from known.programs.fetch(tenant, state.definition)
        versions[state.definition] = version_of(definition)
    return versions[state.definition]


def definition(known: Lookup, tenant: str, definition_hash: str) -> JsonResult:
    """Return `hash`, `asl` and `map` of a deployed or stored definition. Raises RequestError
    HF543.
    """
    deployed = {one.hash: one for one in known.workflows.values()}
    found: Definition | None = deployed.get(definition_hash)
    if found is None:
        found = yield from _stored(known, tenant, definition_hash)
    return {"hash": found.hash, "asl": found.asl, "map": found.source_map}


def _stored(known: Lookup, tenant: str, definition_hash: str) -> Generator[Effect, Any, Definition]:
    if len(definition_hash) == _HASH_CHARACTERS:
        found = yield from known.programs.find(tenant, definition_hash)
        if found is not None:
            return found
    raise RequestError(
        "HF543",
        f"there is no definition {definition_hash!r:.90}",
        status=404,
        help="`GET /workflows` and `GET /positions` name those that are in use",
    )
