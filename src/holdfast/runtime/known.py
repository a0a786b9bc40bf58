"""What a stack knows, and who is meant: workflows and events by name, executions by id or name."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.run_ids import parent_run
from holdfast.errors import RequestError
from holdfast.resources import WORK
from holdfast.runtime import children, keys, quarantine
from holdfast.runtime.definitions import Definition, Programs
from holdfast.runtime.effects import Clock, Effect, Get
from holdfast.runtime.formats import Formats
from holdfast.runtime.log import Log
from holdfast.runtime.tokens import Keys

#: A start message lives no longer; an execution that has no log by then never began.
START_RETENTION_MS: Final = WORK.retention_seconds * 1_000


@dataclass(frozen=True, slots=True)
class Known:
    """`workflows`: those that can be started, by name."""

    programs: Programs
    workflows: Mapping[str, Definition]
    keys: Keys
    formats: Formats

    def log(self, tenant: str, run: str) -> Log:
        return Log(tenant, run, "front", "", self.formats)

    def workflow(self, name: Any) -> Definition:
        if not isinstance(name, str) or name not in self.workflows:
            known = ", ".join(sorted(self.workflows)) or "none"
            raise RequestError(
                "HF205", f"there is no workflow {name!r:.90}", status=404, help=f"known: {known}"
            )
        return self.workflows[name]

    def event_type(self, name: Any) -> str:
        declared: dict[str, str] = {}
        for definition in self.workflows.values():
            declared = definition.source_map.get("events", {}) | declared
        if isinstance(name, str) and name in declared:
            return str(declared[name])
        raise RequestError(
            "HF206",
            f"no workflow declares an event named {name!r:.90}",
            status=404,
            help=f"known: {', '.join(sorted(declared)) or 'none'}",
        )

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
        """-> the id itself, or that of the execution which owns the name."""
        if keys.is_run(identifier):
            return identifier
        keys.require_name(identifier, "an execution's name")
        for workflow in sorted(self.workflows):
            item = yield Get("mail", keys.name(tenant, workflow, identifier), keys.ONLY)
            if item is not None:
                return str(item["run"])
        return None


def no_execution(identifier: str) -> RequestError:
    return RequestError(
        "HF207",
        f"there is no execution {identifier[:90]!r}",
        status=404,
        help="give an execution's id, or the name that it was started with",
    )
