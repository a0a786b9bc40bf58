"""The stored form of machines, versions, aliases, activities and their tags.

Rules of this file:
* Each is one item in the table `mail`. It is created with PutIfAbsent, and changed with Replace if
  its version number `rv` has not changed.
* A list is one query of one partition: machines of a tenant, versions or aliases of a machine.
* A definition's text is stored once, under the definition's hash, and never changed. A version, its
  machine, and executions that exist longer than both read the same item.
* A version is stored before its number is stored in its machine. If the process crashes in between,
  the next publication finds the version.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from holdfast.asl import error_names
from holdfast.asl.program import TaskKind
from holdfast.asl.validation.report import MachineType
from holdfast.core.state import LogSetting
from holdfast.limits import RECORD_BYTES_MAX
from holdfast.runtime.child_workflows import Untyped
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Types
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import Condition, Effect, Get, Item, Put, Query, Replace, TaskFailed
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, require_format
from holdfast.runtime.storage.spread import Spread
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.faults import StatesFault, concurrent, unstorable

RACES_MAX: Final = 9
# The attribute of a machine that is being deleted.
_DELETING: Final = "del"
#: The condition for the removal of such a machine.
IF_DELETING: Final = (Condition(_DELETING, "present"),)


def knows_every_task(_name: str, _is_pure: bool) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Service:
    """What every operation needs: one tenant, one stack.

    `payload_bytes_max` limits inputs and outputs of executions; None: no limit. `workflows` are the
    deployed ones, which this API shows as state machines; `types` are those of their data. `caller`
    is the verified identity of the request, None for a request of a task. `spread`: over how many
    partitions the stack spreads rows. `has_history_limit`: executions end at AWS's 25,000 events.
    `may_reveal_secrets`: TestState may show what a connection adds to an HTTP request. AWS asks IAM
    for each caller; a stack cannot, so only a local one may. `knows(name, is_pure)` says whether
    this process has the code of a task.
    """

    programs: Programs
    keys: SigningKeys
    tenant: str
    place: ArnRegion
    payload_bytes_max: int | None
    workflows: Mapping[str, Definition] = field(default_factory=dict)
    types: Types = field(default_factory=Untyped)
    caller: str | None = None
    spread: Spread = field(default_factory=Spread)
    has_history_limit: bool = False
    may_reveal_secrets: bool = False
    knows: Callable[[str, bool], bool] = knows_every_task

    @property
    def known(self) -> Lookup:
        return Lookup(
            self.programs,
            self.workflows,
            self.keys,
            FORMATS,
            self.types,
            spread=self.spread,
        )

    def missing_task(self, kind: TaskKind, name: str) -> TaskFailed | None:
        """Return the failure of a task of the user's code that this process does not have.

        An execution in the log waits for a worker that has it. A caller that waits for the response
        cannot.
        """
        if kind not in ("task", "pure") or self.knows(name, kind == "pure"):
            return None
        return TaskFailed(error_names.RUNTIME, f"no worker knows a task named {name!r:.90}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fields that a version copies from its machine. `logging` and similar fields are JSON as
    in the request.

    `revision` is None until the first update. `text` is the digest of the definition's original
    text; "" for a workflow, whose definition was compiled.
    """

    definition: str
    text: str
    role_arn: str
    type: MachineType
    logging: Mapping[str, Any]
    tracing: Mapping[str, Any]
    encryption: Mapping[str, Any]
    revision: str | None


@dataclass(frozen=True, slots=True)
class StateMachine:
    """A stored state machine. `versions` is the greatest number ever given to a version of it.

    `published` and `description` are those of the request that created it. With them an identical
    repetition of that request can be told apart from another one. `is_deleting`: it was deleted,
    and some of its executions have not ended yet.
    """

    name: str
    now: Snapshot
    created_ms: int
    updated_ms: int
    tags: tuple[tuple[str, str], ...] = ()
    versions: int = 0
    published: bool = False
    description: str | None = None
    rv: int = 0
    is_deleting: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    machine: str
    number: int
    then: Snapshot
    created_ms: int
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """A stored alias. `routes`: version numbers and their weights, which add up to 100."""

    machine: str
    name: str
    routes: tuple[tuple[int, int], ...]
    created_ms: int
    updated_ms: int
    description: str | None = None
    rv: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    name: str
    created_ms: int
    tags: tuple[tuple[str, str], ...] = ()
    encryption: Mapping[str, Any] | None = None
    rv: int = 0


Stored = TypeVar("Stored", StateMachine, Alias, Activity)


@dataclass(frozen=True, slots=True)
class Startable:
    """The fields of a machine, version or alias that a start needs."""

    machine_arn: str
    name: str
    role_arn: str
    type: MachineType
    definition: str
    version_arn: str | None = None
    alias_arn: str | None = None
    log: LogSetting | None = None


# -- reading ---------------------------------------------------------------------------------------


def machine(tenant: str, name: str) -> Generator[Effect, Any, StateMachine | None]:
    item = yield Get(tables.MAIL, keys.machines(tenant), name)
    return None if item is None else read_machine(item)


def machines(tenant: str) -> Generator[Effect, Any, list[StateMachine]]:
    """Return all machines, by name."""
    items = yield Query(tables.MAIL, keys.machines(tenant))
    return [read_machine(item) for item in items]


def version(tenant: str, name: str, number: int) -> Generator[Effect, Any, Version | None]:
    item = yield Get(tables.MAIL, keys.machine(tenant, name), keys.version(number))
    return None if item is None else read_version(item)


def versions(
    tenant: str, name: str, limit: int | None = None
) -> Generator[Effect, Any, list[Version]]:
    """Return the versions of a machine, the newest first."""
    items = yield Query(
        tables.MAIL,
        keys.machine(tenant, name),
        begins_with=keys.VERSION_PREFIX,
        reverse=True,
        limit=limit,
    )
    return [read_version(item) for item in items]


def alias(tenant: str, name: str, alias_name: str) -> Generator[Effect, Any, Alias | None]:
    item = yield Get(tables.MAIL, keys.machine(tenant, name), keys.alias(alias_name))
    return None if item is None else read_alias(item)


def aliases(tenant: str, name: str) -> Generator[Effect, Any, list[Alias]]:
    """Return all aliases of a machine, by name."""
    items = yield Query(tables.MAIL, keys.machine(tenant, name), begins_with=keys.ALIAS_PREFIX)
    return [read_alias(item) for item in items]


def activity(tenant: str, name: str) -> Generator[Effect, Any, Activity | None]:
    item = yield Get(tables.MAIL, keys.activities(tenant), name)
    return None if item is None else read_activity(item)


def activities(tenant: str) -> Generator[Effect, Any, list[Activity]]:
    """Return all activities, by name."""
    items = yield Query(tables.MAIL, keys.activities(tenant))
    return [read_activity(item) for item in items]


# -- changing --------------------------------------------------------------------------------------


def change(
    tenant: str,
    read: Callable[[], Generator[Effect, Any, Stored]],
    decide: Callable[[Stored], Stored],
    raced: Callable[[], StatesFault] = concurrent,
) -> Generator[Effect, Any, Stored]:
    """Change a stored item, and return the result. `decide` gets the present content. It is called
    again when another writer has changed the item in between.

    If `decide` changes nothing, nothing is written. Raises the fault `raced` after too many tries.
    """
    for _ in range(RACES_MAX):
        seen = yield from read()
        wanted = decide(seen)
        if wanted == seen:
            return seen
        wanted = replace(wanted, rv=seen.rv + 1)
        if (yield Replace(tables.MAIL, _item(tenant, wanted), seen.rv)):
            return wanted
    raise raced()


def _item(tenant: str, one: StateMachine | Alias | Activity) -> Item:
    match one:
        case StateMachine():
            return machine_item(tenant, one)
        case Alias():
            return alias_item(tenant, one)
        case Activity():
            return activity_item(tenant, one)


# -- the texts of definitions ----------------------------------------------------------------------


def store_text(tenant: str, definition: Definition, text: str) -> Generator[Effect, Any, str]:
    """Store the text, and return its digest. This happens before a machine refers to it; a
    repetition changes nothing.

    Raises InvalidDefinition for a text that does not fit an item: hundreds of kilobytes that cannot
    be compressed.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    document = zlib.compress(text.encode(), 9)
    if len(document) > RECORD_BYTES_MAX:
        raise unstorable(f"it has {len(document)} bytes compressed, {RECORD_BYTES_MAX} are allowed")
    partition = keys.definition_texts(tenant, definition.hash)
    yield Put(tables.MAIL, {"pk": partition, "sk": digest, FORMAT_FIELD: FORMAT, "doc": document})
    return digest


def text_of(tenant: str, then: Snapshot) -> Generator[Effect, Any, str]:
    """Return the definition's original text."""
    item = yield Get(tables.MAIL, keys.definition_texts(tenant, then.definition), then.text)
    return _text(item)


def any_text_of(tenant: str, definition_hash: str) -> Generator[Effect, Any, str | None]:
    """Return a stored text of the definition with this hash; None for the definition of a workflow,
    which has no text.
    """
    items = yield Query(tables.MAIL, keys.definition_texts(tenant, definition_hash), limit=1)
    return _text(items[0]) if items else None


def _text(item: Any) -> str:
    require_format(item, "a definition's text")
    return zlib.decompress(item["doc"]).decode()


# -- items -----------------------------------------------------------------------------------------


def machine_item(tenant: str, one: StateMachine) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.machines(tenant),
        "sk": one.name,
        FORMAT_FIELD: FORMAT,
        "rv": one.rv,
        "t0": one.created_ms,
        "t1": one.updated_ms,
        "tags": _packed(one.tags),
        "vn": one.versions,
        "pub": int(one.published),
        **_snapshot_attributes(one.now),
    }
    if one.is_deleting:
        item[_DELETING] = 1
    return item if one.description is None else {**item, "de": one.description}


def read_machine(item: Item) -> StateMachine:
    require_format(item, "a state machine")
    return StateMachine(
        str(item["sk"]),
        _read_snapshot(item),
        int(item["t0"]),
        int(item["t1"]),
        _read_tags(item),
        int(item["vn"]),
        bool(item["pub"]),
        _optional(item, "de"),
        int(item["rv"]),
        _DELETING in item,
    )


def version_item(tenant: str, one: Version) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.machine(tenant, one.machine),
        "sk": keys.version(one.number),
        FORMAT_FIELD: FORMAT,
        "sm": one.machine,
        "t0": one.created_ms,
        **_snapshot_attributes(one.then),
    }
    return item if one.description is None else {**item, "de": one.description}


def read_version(item: Item) -> Version:
    require_format(item, "a version of a state machine")
    number = int(str(item["sk"]).removeprefix(keys.VERSION_PREFIX))
    return Version(
        str(item["sm"]), number, _read_snapshot(item), int(item["t0"]), _optional(item, "de")
    )


def alias_item(tenant: str, one: Alias) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.machine(tenant, one.machine),
        "sk": keys.alias(one.name),
        FORMAT_FIELD: FORMAT,
        "rv": one.rv,
        "sm": one.machine,
        "t0": one.created_ms,
        "t1": one.updated_ms,
        "ro": _packed(one.routes),
    }
    return item if one.description is None else {**item, "de": one.description}


def read_alias(item: Item) -> Alias:
    require_format(item, "an alias")
    return Alias(
        str(item["sm"]),
        str(item["sk"]).removeprefix(keys.ALIAS_PREFIX),
        tuple((number, weight) for number, weight in json.loads(str(item["ro"]))),
        int(item["t0"]),
        int(item["t1"]),
        _optional(item, "de"),
        int(item["rv"]),
    )


def activity_item(tenant: str, one: Activity) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": keys.activities(tenant),
        "sk": one.name,
        FORMAT_FIELD: FORMAT,
        "rv": one.rv,
        "t0": one.created_ms,
        "tags": _packed(one.tags),
    }
    return item if one.encryption is None else {**item, "enc": _packed(one.encryption)}


def read_activity(item: Item) -> Activity:
    require_format(item, "an activity")
    return Activity(
        str(item["sk"]),
        int(item["t0"]),
        _read_tags(item),
        json.loads(str(item["enc"])) if "enc" in item else None,
        int(item["rv"]),
    )


def _snapshot_attributes(then: Snapshot) -> dict[str, str | int | bytes]:
    attributes: dict[str, str | int | bytes] = {
        "dh": then.definition,
        "th": then.text,
        "role": then.role_arn,
        "type": then.type,
        "log": _packed(then.logging),
        "trace": _packed(then.tracing),
        "enc": _packed(then.encryption),
    }
    return attributes if then.revision is None else {**attributes, "rev": then.revision}


def _read_snapshot(item: Item) -> Snapshot:
    return Snapshot(
        str(item["dh"]),
        str(item["th"]),
        str(item["role"]),
        "EXPRESS" if item["type"] == "EXPRESS" else "STANDARD",
        json.loads(str(item["log"])),
        json.loads(str(item["trace"])),
        json.loads(str(item["enc"])),
        _optional(item, "rev"),
    )


def _packed(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _read_tags(item: Item) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in json.loads(str(item["tags"])))


def _optional(item: Item, name: str) -> str | None:
    return str(item[name]) if name in item else None
