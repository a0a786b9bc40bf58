"""What a stack knows, and who is meant: workflows and events by name, executions by id or name."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.run_ids import parent_run
from holdfast.core.state import Awaiting, Execution
from holdfast.errors import HoldfastError, RequestError
from holdfast.resources import WORK
from holdfast.runtime import children
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import Clock, Effect, Get, Query
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.json_values import is_unicode
from holdfast.runtime.storage.log import Log

#: A start message lives no longer; an execution that has no log by then never began.
START_RETENTION_MS: Final = WORK.retention_seconds * 1_000
#: With a longer one the key of a registration would pass DynamoDB's 2,048 bytes.
_EVENT_NAME_BYTES_MAX: Final = 1_947
#: Of a type's reference, `list[shop:Payment]`: secrets are told by the names alone.
_MODULE: Final = re.compile(r"[\w.]+:")


@dataclass(frozen=True, slots=True)
class Payload:
    """What an event or an answer has to be. `reference`: its type, as the compiler's map has it;
    None: nobody has said. `is_secret`: or holds one.
    """

    reference: str | None
    is_secret: bool

    @classmethod
    def of_event(cls, definition: Definition, name: str) -> Payload:
        reference = definition.source_map.get("events", {}).get(name)
        return cls(reference, f"event {name}" in _secrets(definition))

    @classmethod
    def of_answer(cls, definition: Definition, position: str) -> Payload:
        reference = definition.source_map.get("answers", {}).get(position)
        shown = _MODULE.sub("", reference or "")
        return cls(reference, f"answer {shown}" in _secrets(definition))


def _secrets(definition: Definition) -> Collection[str]:
    found: list[str] = definition.source_map.get("secrets", [])
    return found


@dataclass(frozen=True, slots=True)
class Lookup:
    """`workflows`: those that can be started, by name."""

    programs: Programs
    workflows: Mapping[str, Definition]
    keys: SigningKeys
    formats: Formats

    def log(self, tenant: str, run: str) -> Log:
        return Log(tenant, run, "front", "", self.formats)

    def workflow(self, name: Any) -> Definition:
        if not isinstance(name, str) or name not in self.workflows:
            raise self.no_workflow(name)
        return self.workflows[name]

    def no_workflow(self, name: Any) -> RequestError:
        known = ", ".join(sorted(self.workflows)) or "none"
        return RequestError(
            "HF205", f"there is no workflow {name!r:.90}", status=404, help=f"known: {known}"
        )

    def event_payload(self, tenant: str, name: Any, key: str) -> Generator[Effect, Any, Payload]:
        """As the deployed workflows declare the event, or else the definition of who waits for it:
        an execution keeps the one that it began with. Raises RequestError HF206.
        """
        declared: dict[str, Definition] = {}
        for definition in self.workflows.values():
            events = definition.source_map.get("events", {})
            declared = dict.fromkeys(events, definition) | declared
        found = declared.get(name) if isinstance(name, str) else None
        if found is None:
            found = yield from self._waiters_definition(tenant, name, key)
        if found is not None:
            return Payload.of_event(found, name)
        raise RequestError(
            "HF206",
            f"no workflow declares an event named {name!r:.90}, and nobody waits for it",
            status=404,
            help=f"known: {', '.join(sorted(declared)) or 'none'}",
        )

    def _waiters_definition(
        self, tenant: str, name: Any, key: str
    ) -> Generator[Effect, Any, Definition | None]:
        """A registration outlives its wait: the log says whether somebody waits still."""
        is_text = isinstance(name, str) and is_unicode(name)
        if not is_text or len(name.encode()) > _EVENT_NAME_BYTES_MAX:
            return None
        partition = keys.event(tenant, name, key)
        rows = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
        unreadable: HoldfastError | None = None
        for row in rows:
            log = self.log(tenant, str(row["sk"]).removeprefix(keys.REGISTRATION_PREFIX))
            try:
                yield from log.load()
                if log.state is not None and _awaits(log.state, name, key):
                    return (yield from self.programs.fetch(tenant, log.state.definition))
            except HoldfastError as error:
                unreadable = error
        if unreadable is not None:
            # That one may wait. Refused, its event would be lost; so the bus brings it again.
            raise unreadable
        return None

    def require_log(self, tenant: str, identifier: str) -> Generator[Effect, Any, Log]:
        """-> the loaded log, without a state when the execution was accepted but not begun."""
        run = yield from self.find_run(tenant, identifier)
        if run is not None:
            log = self.log(tenant, run)
            yield from log.load()
            if log.is_gone:
                raise no_execution(identifier)
            # Its name: accepted, and no worker has begun it.
            if log.state is not None or run != identifier or (yield from self.may_begin(log)):
                return log
        raise no_execution(identifier)

    def may_begin(self, log: Log) -> Generator[Effect, Any, bool]:
        """-> whether what has no record may get one: its id is our own and young, it is a child
        that its parent waits for, or its start rests in quarantine.
        """
        now_ms = yield Clock()
        if self._is_young(log.tenant, log.run, now_ms):
            return True
        if (yield from self._is_awaited(log.tenant, log.run)):
            return True
        held = yield from quarantine.find(log.tenant, log.run)
        return held is not None and held.is_start

    def _is_young(self, tenant: str, run: str, now_ms: int) -> bool:
        secrets = self.keys.secrets.values()
        is_ours = any(keys.is_minted(tenant, run, secret) for secret in secrets)
        return is_ours and now_ms - keys.minted_ms(run) < START_RETENTION_MS

    def _is_awaited(self, tenant: str, run: str) -> Generator[Effect, Any, bool]:
        """A child's id says whose it is; that one knows whether it has asked for it."""
        parent = parent_run(run)
        if parent is None:
            return False
        log = self.log(tenant, parent)
        yield from log.load()
        return log.state is not None and children.is_awaited(log.state, run)

    def find_run(self, tenant: str, identifier: str) -> Generator[Effect, Any, str | None]:
        """-> the id itself, or that of the execution which owns the name: among those of the
        deployed workflows, or of the one that `workflow:name` says, deployed or not.

        Raises RequestError HF214: to take one of two for granted would stop the wrong one.
        """
        if keys.is_run(identifier):
            return identifier
        workflow, colon, name = identifier.rpartition(":")
        keys.require_name(name, "an execution's name")
        if colon and workflow not in self.workflows:
            keys.require_name(workflow, "a workflow's name")
        owners: dict[str, str] = {}
        for owner in [workflow] if colon else sorted(self.workflows):
            item = yield Get(tables.MAIL, keys.name(tenant, owner, name), keys.ONLY)
            if item is not None:
                owners[owner] = str(item["run"])
        if len(owners) > 1:
            raise _ambiguous(name, owners)
        return next(iter(owners.values()), None)


def _awaits(state: Execution, name: str, key: str) -> bool:
    waits = (frame.waiting for frame in state.frames.values())
    return any(
        isinstance(wait, Awaiting)
        and wait.kind == "event"
        and (wait.event_name, wait.event_key) == (name, key)
        for wait in waits
    )


def _ambiguous(name: str, owners: Mapping[str, str]) -> RequestError:
    found = ", ".join(f"{workflow} {run}" for workflow, run in owners.items())
    return RequestError(
        "HF214",
        f"executions of {len(owners)} workflows are named {name!r}: {found}",
        status=409,
        help=f"give the id, or the workflow, too: {min(owners)}:{name}",
    )


def no_execution(identifier: str) -> RequestError:
    return RequestError(
        "HF207",
        f"there is no execution {identifier[:90]!r}",
        status=404,
        help="give an execution's id, or the name that it was started with",
    )
