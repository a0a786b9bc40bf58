"""Migrate an execution: it continues with another definition, if that is proven to be safe.

The proof reads both definitions and the state of the execution. It is made here, and the request
names the states for which it was made. The core applies the request only if the execution is still
in these states. So a request that comes too late changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core import migrating
from holdfast.core.state import Delay, Entered, Execution, Frame
from holdfast.errors import RequestError
from holdfast.migration.model import Obstacle, Plan
from holdfast.migration.positions import position_of
from holdfast.migration.proof import Migration
from holdfast.migration.version import Version
from holdfast.runtime import inbox
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.commands.fields import flag, reason_and_author
from holdfast.runtime.commands.graphs import find_workflow
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import Clock, Effect, JsonResult
from holdfast.runtime.storage.definitions import Definition

LATEST: Final = "latest"
BACK: Final = "back"
#: A request may name a version by the beginning of its hash. It must have at least this many
#: characters.
_HASH_CHARACTERS_MIN: Final = 8


def migrate(
    known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Store a migration. `request`: to? ("latest", the default, "back", or a hash), dry_run?, and
    reason, by? unless it is a dry run.

    Return `execution`, `from`, `to`, `position`, `moves` (False when it cannot move, or already has
    that definition) and `obstacles`. Raises RequestError HF234, HF540, HF541, HF542.
    """
    is_dry = bool(flag(request, "dry_run"))
    words = {} if is_dry else reason_and_author(request)
    log = yield from known.require_log(tenant, identifier)
    state = log.state
    if state is None:
        raise _no_definition(identifier, "has not begun: ask again in a moment")
    target = yield from _target(known, tenant, state, request.get("to", LATEST))
    old = yield from known.programs.fetch(tenant, state.definition)
    answer: dict[str, Any] = {"execution": log.run, "from": old.hash, "to": target.hash}
    migration = migration_of(old, target)
    position = position_of(state, migration.old)
    answer["position"] = position.to_json()["lines"]
    if old.hash == target.hash:
        return {**answer, "moves": False, "obstacles": []}
    verdict = migration.judge(position)
    if verdict.plan is None:
        if not is_dry:
            raise _refused(log.run, target, verdict.obstacles)
        shown = [obstacle.to_json() for obstacle in verdict.obstacles]
        return {**answer, "moves": False, "obstacles": shown}
    answer |= {"moves": True, "obstacles": []}
    if is_dry:
        return answer
    plan = with_computed(known, tenant, state, migration, verdict.plan)
    now_ms = yield Clock(is_for_id=True)
    yield from known.programs.store(tenant, target)
    move = {"from": old.hash, "to": target.hash, "visits": migrating.visits(state), "plan": plan}
    stowed = yield from inbox.stow(tenant, log.run, move)
    fields = {"kind": inbox.MIGRATE, **stowed, **words}
    yield from request_control(tenant, log.run, state, (now_ms, chance), fields)
    return answer


def with_computed(
    known: Lookup, tenant: str, state: Execution, migration: Migration, plan: Plan
) -> dict[str, Any]:
    """Return the plan with the values that migration functions compute, by frame.

    A variable that several lines read belongs to the outermost of them that has its inputs. Raises
    RequestError HF373.
    """
    found: dict[str, dict[str, Json]] = {}
    seen: dict[str, dict[str, Json]] = {}
    for frame in state.frames.values():
        around = {} if frame.owner is None else seen[frame.owner]
        seen[frame.id] = visible = {**around, **frame.variables}
        is_anew = isinstance(frame.waiting, Delay | Entered)
        done = {name for one in _owners(state, frame) for name in found.get(one, ())}
        rules = migration.computed(frame.position, visible, is_anew=is_anew)
        values = {
            name: known.types.convert(
                tenant, rule["function"], {one: visible[one] for one in rule["reads"]}
            )
            for name, rule in rules.items()
            if name not in done
        }
        if values:
            found[frame.id] = values
    return plan.to_json() | ({"assigned": found} if found else {})


def _owners(state: Execution, frame: Frame) -> Iterator[str]:
    while frame.owner is not None:
        yield frame.owner
        frame = state.frames[frame.owner]


def migration_of(old: Definition, new: Definition) -> Migration:
    return Migration(version_of(old), version_of(new))


def version_of(definition: Definition) -> Version:
    return Version(definition.hash, definition.asl, definition.source_map)


def _target(
    known: Lookup, tenant: str, state: Execution, to: Any
) -> Generator[Effect, Any, Definition]:
    """Return the definition that the request names. Raises RequestError HF540, HF542."""
    if to == LATEST:
        return (yield from find_workflow(known, tenant, state.workflow)).definition
    if to == BACK:
        if not state.migrated_from:
            raise _no_definition(state.run, "was not migrated, so there is nothing to go back to")
        return (yield from known.programs.fetch(tenant, state.migrated_from))
    if not isinstance(to, str) or len(to) < _HASH_CHARACTERS_MIN:
        raise RequestError(
            "HF540",
            f"`to` is {to!r:.80}, expected latest, back or the hash of a definition",
            help=f"{_HASH_CHARACTERS_MIN} characters of the hash are enough",
        )
    newest = known.workflows.get(state.workflow)
    if newest is not None and newest.hash.startswith(to):
        return newest
    near = [state.definition, state.migrated_from]
    full = next((one for one in near if one.startswith(to)), to)
    found = yield from known.programs.find(tenant, full)
    if found is None or (full not in near and not _is_of(found, state)):
        raise _no_definition(state.run, f"has no version {to!r:.80} to move to")
    return found


def _is_of(definition: Definition, state: Execution) -> bool:
    return definition.source_map.get("workflow") == state.workflow


def _no_definition(run: str, why: str) -> RequestError:
    return RequestError("HF542", f"execution {run} {why}", status=409, help="see `holdfast show`")


def _refused(run: str, target: Definition, obstacles: Sequence[Obstacle]) -> RequestError:
    reasons = "; ".join(map(str, obstacles))
    return RequestError(
        "HF541",
        f"execution {run} may not move to the definition {target.hash[:12]}: {reasons}",
        status=409,
        help="it stays whole on the definition it has; see docs/how-to/migrate.md",
    )
