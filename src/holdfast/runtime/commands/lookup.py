"""Find what a request names: a workflow or an event by name, an execution by id, name or ARN.

An execution is identified by one of:

    01jd…, 26 characters    its id
    order-7                 its name, among the deployed workflows, up to 200 registered graphs and
                            up to 200 state machines
    fulfil:order-7          its name, among those of one workflow, deployed or not, or state machine
    01234567-89ab-…         the name that Step Functions gives an execution without one
    arn:aws:states:…        its ARN
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.core.run_ids import parent_run, run_of_uuid
from holdfast.core.state import Execution
from holdfast.errors import HoldfastError, RequestError, known_names
from holdfast.limits import REQUEST_SUFFIX
from holdfast.resources import WORK
from holdfast.runtime import children, inbox
from holdfast.runtime.commands.payloads import Graphs, NoGraphs, Payload, Types
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import Clock, Effect, Get, Query
from holdfast.runtime.gates.rules import NO_LIMITS, LimitBook
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.storage import graphs, keys, tables
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.storage.json_values import is_unicode
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.storage.warm_logs import WarmLogs

#: The lifetime of a start message in its queue. An execution that has no log after this time will
#: never begin.
START_RETENTION_MS: Final = WORK.retention_seconds * 1_000
#: A name without its workflow costs one read for each state machine and for each registered graph.
#: In a stack with more state machines or graphs than this, a request must give MACHINE:NAME or
#: GRAPH:NAME.
NAMED_OWNERS_MAX: Final = 200
#: The greatest length of an event's name. With a longer one, the key of a registration would exceed
#: the 2,048 bytes that DynamoDB allows.
EVENT_NAME_BYTES_MAX: Final = 1_947
#: The ARN of an execution: `execution:NAME:EXECUTION`, or `execution:NAME/LABEL:EXECUTION` for a
#: child of a distributed Map.
_EXECUTION_ARN: Final = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:execution:([^:]+):([^:]+)")


@dataclass(frozen=True, slots=True)
class Lookup:
    """The data of the stack that every command uses. `workflows` are the workflows that can be
    started, by name. `spread`: over how many partitions the stack spreads rows. `ended_logs`: those
    of the worker in the same process, if there is one.
    """

    programs: Programs
    workflows: Mapping[str, Definition]
    keys: SigningKeys
    formats: Formats
    types: Types
    limits: LimitBook = NO_LIMITS
    graphs: Graphs = field(default_factory=NoGraphs)
    spread: Spread = field(default_factory=Spread)
    ended_logs: WarmLogs | None = None

    def log(self, tenant: str, run: str) -> Log:
        return Log(tenant, run, "front", "", self.formats)

    def search_attributes(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return the search attributes and their types of each deployed workflow."""
        deployed = self.workflows.items()
        return [(name, one.source_map.get("search", {})) for name, one in deployed]

    def workflow(self, name: Any) -> Definition:
        if not isinstance(name, str) or name not in self.workflows:
            raise self.no_workflow(name)
        return self.workflows[name]

    def no_workflow(self, name: Any, beside: str = "") -> RequestError:
        return RequestError(
            "HF205",
            f"there is no workflow {name!r:.90}",
            status=404,
            help=known_names(name, self.workflows) + beside,
        )

    def event_payload(self, tenant: str, name: Any, key: str) -> Generator[Effect, Any, Payload]:
        """Return the type of the event in the deployed workflows. If none waits for it, return its
        type in the definition of a waiting execution, which may be older. Raises RequestError
        HF206.
        """
        declared = self._declared()
        found = declared.get(name) if isinstance(name, str) else None
        if found is None:
            found = yield from self._waiters_definition(tenant, name, key)
        if found is not None:
            return Payload.of_event(found, name)
        raise _no_event(name, declared)

    def declared_type(self, name: str) -> str | None:
        """Return the name of the event's type in the deployed workflows; None when none has it."""
        found = self._declared().get(name)
        return None if found is None else Payload.of_event(found, name).type_name

    def is_received(self, name: str) -> bool:
        """Return True when the deployed workflows take events of this name with `receive` alone."""
        declared = self._declared()
        return name not in declared and f"{name}{REQUEST_SUFFIX}" in declared

    def _declared(self) -> dict[str, Definition]:
        """Return the first deployed workflow that declares each event. The others declare the same
        type: a deployment has one type for each event.
        """
        declared: dict[str, Definition] = {}
        for definition in self.workflows.values():
            events = definition.source_map.get("events", {})
            declared = dict.fromkeys(events, definition) | declared
        return declared

    def _waiters_definition(
        self, tenant: str, name: Any, key: str
    ) -> Generator[Effect, Any, Definition | None]:
        """Return the definition of an execution that waits for the event, if one does. The
        registration of a wait still exists after the wait, so the log of the execution decides.
        """
        is_text = isinstance(name, str) and is_unicode(name)
        if not is_text or len(name.encode()) > EVENT_NAME_BYTES_MAX:
            return None
        partition = keys.event(tenant, name, key)
        rows = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
        unreadable: HoldfastError | None = None
        for row in rows:
            log = self.log(tenant, inbox.registered(row))
            try:
                yield from log.load()
                if log.state is not None and log.state.awaits_event(name, key):
                    return (yield from self.programs.fetch(tenant, log.state.definition))
            except HoldfastError as error:
                unreadable = error
        if unreadable is not None:
            # The execution may be waiting for this event, which would be lost if it were refused.
            # After an error that can pass, the event bus delivers the event again.
            raise unreadable
        return None

    def require_log(self, tenant: str, identifier: str) -> Generator[Effect, Any, Log]:
        """Return the loaded log. It has no state when the execution was accepted but has not begun.
        Raises RequestError for an execution that does not exist.
        """
        run = yield from self.find_run(tenant, identifier)
        if run is not None:
            log = yield from self._loaded(tenant, run)
            if log.is_gone:
                raise no_execution(identifier)
            # `find_run` found the id by the row of a name, which proves that the start was
            # accepted. An id in the request proves nothing: it may never have been started.
            last = identifier.rpartition(":")[2]
            is_named = run not in {identifier, self.run_in_name(tenant, last)}
            if log.state is not None or is_named or (yield from self.may_begin(log)):
                return log
        raise no_execution(identifier)

    def _loaded(self, tenant: str, run: str) -> Generator[Effect, Any, Log]:
        log = self.log(tenant, run)
        kept = None if self.ended_logs is None else self.ended_logs.take(log.partition)
        if kept is None or not (yield from log.load_newer(kept)):
            yield from log.load()
        if self.ended_logs is not None:
            self.ended_logs.keep(log)
        return log

    def may_begin(self, log: Log) -> Generator[Effect, Any, bool]:
        """Return True when an execution without a record may still get one: this stack created its
        id recently, or its parent waits for it, or its start message is in quarantine.
        """
        now_ms = yield Clock()
        if self.is_minted(log.tenant, log.run) and self._is_young(log.run, now_ms):
            return True
        if (yield from self._is_awaited(log.tenant, log.run)):
            return True
        held = yield from quarantine.find(log.tenant, log.run)
        return held is not None and held.is_start

    def is_minted(self, tenant: str, run: str) -> bool:
        """Return True when this stack created the id for the tenant."""
        return any(keys.is_minted(tenant, run, secret) for secret in self.keys.secrets.values())

    def _is_young(self, run: str, now_ms: int) -> bool:
        return now_ms - keys.minted_ms(run) < START_RETENTION_MS

    def _is_awaited(self, tenant: str, run: str) -> Generator[Effect, Any, bool]:
        """Return True when the parent of a child execution waits for it. The child's id names the
        parent.
        """
        parent = parent_run(run)
        if parent is None:
            return False
        log = self.log(tenant, parent)
        yield from log.load()
        return log.state is not None and children.is_awaited(log.state, run)

    def find_run(self, tenant: str, identifier: str) -> Generator[Effect, Any, str | None]:
        """Return the id of the execution that the identifier names; the docstring of this module
        shows the forms.

        A name costs a read for each deployed workflow, registered graph and state machine. Raises
        RequestError HF214 when several executions have the name: a guess could stop the wrong one.
        """
        if keys.is_run(identifier):
            return identifier
        if identifier.startswith("arn:"):
            return (yield from self._find_arn(tenant, identifier))
        owner, colon, name = identifier.rpartition(":")
        if not colon:
            minted = run_of_uuid(name)
            if minted is not None and self.is_minted(tenant, minted):
                return minted
        if not keys.is_machine_name(name):
            keys.require_name(name, "an execution's name")
        if colon:
            owners = _owners(owner)
        else:
            listed = yield from graphs.names(tenant, NAMED_OWNERS_MAX + 1)
            registered = set(listed) - self.workflows.keys() if _are_few(listed) else set()
            machines = yield from _machine_workflows(tenant)
            owners = [*sorted(self.workflows), *sorted(registered), *machines]
        runs: dict[str, str] = {}
        for workflow in owners:
            run = yield from self.find_named(tenant, workflow, name)
            if run is not None:
                runs[workflow] = run
        if len(runs) > 1:
            raise _ambiguous(name, runs)
        return next(iter(runs.values()), None)

    def find_named(
        self, tenant: str, workflow: str, name: str
    ) -> Generator[Effect, Any, str | None]:
        """Return the id of the execution that has this name in one workflow or state machine."""
        item = yield Get(tables.MAIL, keys.name(tenant, workflow, name), keys.ONLY)
        return None if item is None else str(item["run"])

    def run_in_name(self, tenant: str, name: str) -> str | None:
        """Return the id that a name contains: an execution that was started without a name has its
        id as its name, as a UUID or, for a child, in allowed characters. None for every other name.
        """
        run = run_of_uuid(name)
        if run is None:
            return keys.run_of_child(name)
        return run if self.is_minted(tenant, run) else None

    def _find_arn(self, tenant: str, text: str) -> Generator[Effect, Any, str | None]:
        """Return the id of the execution with this ARN. Region and account are checked where the
        HTTP request is handled, because only that code knows them.
        """
        found = _EXECUTION_ARN.fullmatch(text)
        if found is None:
            raise no_execution(text)
        machine, name = found[1], found[2]
        run = self.run_in_name(tenant, name)
        if run is not None:
            log = self.log(tenant, run)
            yield from log.load()
            if log.state is None or _is_named(log.state, text, machine):
                return run
        for workflow in _owners(machine.partition("/")[0]):
            run = yield from self.find_named(tenant, workflow, name)
            if run is not None:
                return run
        return None


def _owners(name: str) -> list[str]:
    """Return the two names that keys use for executions: that of a workflow, and that of a state
    machine.
    """
    if keys.is_machine_workflow(name):
        return [name]
    if not keys.is_machine_name(name):
        keys.require_name(name, "a workflow's name")
    return [name, keys.machine_workflow(name)]


def _machine_workflows(tenant: str) -> Generator[Effect, Any, list[str]]:
    """Return the state machines among whose executions a name without its workflow is searched."""
    items = yield Query(tables.MAIL, keys.machines(tenant), limit=NAMED_OWNERS_MAX + 1)
    return [keys.machine_workflow(str(item["sk"])) for item in items] if _are_few(items) else []


def _are_few(found: Sequence[Any]) -> bool:
    return len(found) <= NAMED_OWNERS_MAX


def _is_named(state: Execution, arn: str, machine: str) -> bool:
    if state.origin is not None:
        return state.origin["execution_arn"] == arn
    return state.name is None and state.workflow == machine


def _ambiguous(name: str, owners: Mapping[str, str]) -> RequestError:
    found = ", ".join(f"{workflow} {run}" for workflow, run in owners.items())
    return RequestError(
        "HF214",
        f"executions of {len(owners)} workflows are named {name!r}: {found}",
        status=409,
        help=f"give the id, or the workflow, too: {min(owners)}:{name}",
    )


def _no_event(name: Any, declared: Iterable[str]) -> RequestError:
    """Return HF206. Callers write the name of a request without the mark at its end."""
    marked = [one for one in declared if one.endswith(REQUEST_SUFFIX)]
    if isinstance(name, str) and name.endswith(REQUEST_SUFFIX):
        what, named = "a request", name.removesuffix(REQUEST_SUFFIX)
        known = [one.removesuffix(REQUEST_SUFFIX) for one in marked]
    else:
        what, named = "an event", name
        known = [one for one in declared if one not in marked]
    return RequestError(
        "HF206",
        f"no workflow declares {what} named {named!r:.90}, and no execution waits for it",
        status=404,
        help=known_names(named, known),
    )


def no_execution(identifier: str) -> RequestError:
    return RequestError(
        "HF207",
        f"there is no execution {identifier[:90]!r}",
        status=404,
        help="give an execution's id, its ARN, the name that it was started with, or "
        "WORKFLOW:NAME; one whose workflow is no longer deployed needs the latter, or its id",
    )
