"""Every command on executions as one object, for the servers of the HTTP API and of the Step
Functions API.

Rules of the commands:
* The tenant comes from the verified identity of the caller, never from the body of a request.
* A value that does not fit its type is refused here. It never reaches an execution.
* Everything is stored before a message is sent. A repeated request sends the message again (R12):
  the process that handled the first request may have crashed before it sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.commands import (
    answers,
    bulk,
    counts,
    events,
    fork,
    graphs,
    kept,
    limits,
    pause,
    pools,
    priority,
    queries,
    questions,
    requests,
    retry,
    schedules,
    scope_pause,
    skip,
    start,
    stop,
)
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Graphs, NoGraphs, Types
from holdfast.runtime.commands.questions import QuestionAction
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import JsonResult
from holdfast.runtime.gates.rules import NO_LIMITS, LimitBook
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import FORMATS, Formats
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.storage.warm_logs import WarmLogs


@dataclass(frozen=True, slots=True)
class Front:
    """All commands. `workflows` are the workflows that can be started, by name. The module of each
    command documents its method.
    """

    programs: Programs
    workflows: Mapping[str, Definition]
    types: Types
    keys: SigningKeys
    formats: Formats = FORMATS
    limit_book: LimitBook = NO_LIMITS
    graphs: Graphs = field(default_factory=NoGraphs)
    spread: Spread = field(default_factory=Spread)
    ended_logs: WarmLogs | None = None

    @property
    def known(self) -> Lookup:
        return Lookup(
            self.programs,
            self.workflows,
            self.keys,
            self.formats,
            self.types,
            self.limit_book,
            self.graphs,
            self.spread,
            self.ended_logs,
        )

    def start(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        if request.get("at") is None:
            return start.start(self.known, tenant, request, chance)
        # Imported here for cold starts: most starts begin at once.
        from holdfast.runtime.commands import later  # noqa: PLC0415

        return later.start_later(self.known, tenant, request, chance)

    def register(self, tenant: str, text: str) -> JsonResult:
        return graphs.register(self.known, tenant, text)

    def remove_workflow(self, tenant: str, name: str) -> JsonResult:
        return graphs.remove(self.known, tenant, name)

    def list_workflows(self, tenant: str) -> JsonResult:
        return graphs.workflows(self.known, tenant)

    def workflow(self, tenant: str, name: str) -> JsonResult:
        return graphs.workflow(self.known, tenant, name)

    def stop(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return stop.stop(self.known, tenant, identifier, request, chance)

    def retry(
        self,
        tenant: str,
        identifier: str,
        request: Mapping[str, Any],
        chance: bytes,
        by: str | None = None,
    ) -> JsonResult:
        return retry.retry(self.known, tenant, identifier, request, chance, by=by)

    def pause(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return pause.pause(self.known, tenant, identifier, request, chance)

    def resume(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return pause.resume(self.known, tenant, identifier, request, chance)

    def change_priority(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return priority.change_priority(self.known, tenant, identifier, request, chance)

    def skip(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return skip.skip(self.known, tenant, identifier, request, chance)

    def fork(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return fork.fork(self.known, tenant, identifier, request, chance)

    def counts(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return counts.counts(self.known, tenant, request)

    def migrate(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        # Imported here for cold starts: most requests need none of these modules, which read whole
        # definitions.
        from holdfast.runtime.commands import migrate  # noqa: PLC0415

        return migrate.migrate(self.known, tenant, identifier, request, chance)

    def positions(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        from holdfast.runtime.commands import positions  # noqa: PLC0415

        return positions.positions(self.known, tenant, request)

    def definition(self, tenant: str, definition_hash: str) -> JsonResult:
        from holdfast.runtime.commands import positions  # noqa: PLC0415

        return positions.definition(self.known, tenant, definition_hash)

    def bulk(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        if request.get("dry_run"):
            return bulk.dry_run(self.known, tenant, request)
        return bulk.start(self.known, tenant, request, chance)

    def change_pause(self, request: Mapping[str, Any]) -> JsonResult:
        return scope_pause.change_pause(self.known, request)

    def pauses(self) -> JsonResult:
        return scope_pause.pauses()

    def limits(self) -> JsonResult:
        return limits.limits(self.known)

    def limit(self, name: str, request: Mapping[str, Any]) -> JsonResult:
        return limits.limit(self.known, name, request)

    def change_limit(self, name: str, request: Mapping[str, Any]) -> JsonResult:
        return limits.change(self.known, name, request)

    def schedules(self, tenant: str) -> JsonResult:
        return schedules.schedules_of(tenant)

    def schedule(self, tenant: str, name: str) -> JsonResult:
        return schedules.schedule(self.known, tenant, name)

    def create_schedule(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return schedules.create(self.known, tenant, request)

    def pause_schedule(self, tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
        return schedules.pause(tenant, name, request)

    def resume_schedule(self, tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
        return schedules.resume(tenant, name, request)

    def backfill_schedule(self, tenant: str, name: str, request: Mapping[str, Any]) -> JsonResult:
        return schedules.backfill(tenant, name, request)

    def delete_schedule(self, tenant: str, name: str) -> JsonResult:
        return schedules.delete(tenant, name)

    def event(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        if request.get("at") is None:
            return events.event(self.known, tenant, request, chance)
        # Imported here for cold starts: most events are sent at once.
        from holdfast.runtime.commands import later  # noqa: PLC0415

        return later.send_later(self.known, tenant, request, chance)

    def bus_event(self, tenant: str, given_id: Any, detail: Any, chance: bytes) -> JsonResult:
        return events.bus_event(self.known, tenant, given_id, detail, chance)

    def events(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return kept.events(self.known, tenant, request)

    def drop_event(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return kept.drop(self.known, tenant, request)

    def request(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        return requests.request(self.known, tenant, request, chance)

    def reply(self, tenant: str, request_id: str) -> JsonResult:
        return requests.reply(tenant, request_id)

    def answer(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return answers.answer(self.known, tenant, request)

    def questions(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return questions.list_questions(tenant, self.spread, request)

    def question(self, tenant: str, identifier: str) -> JsonResult:
        return questions.describe(self.known, tenant, identifier)

    def form(self, token: str) -> JsonResult:
        return questions.form(self.known, token)

    def submit(self, token: str, output: Any) -> JsonResult:
        return questions.submit(self.known, token, output)

    def act_on_question(
        self, action: QuestionAction, tenant: str, identifier: str, request: Mapping[str, Any]
    ) -> JsonResult:
        return questions.ACTIONS[action](self.known, tenant, identifier, request)

    def describe(self, tenant: str, identifier: str, *, with_forks: bool = False) -> JsonResult:
        return queries.describe(self.known, tenant, identifier, with_forks=with_forks)

    def history(self, tenant: str, identifier: str, after: Any = None) -> JsonResult:
        return queries.history(self.known, tenant, identifier, after)

    def executions(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return queries.executions(self.known, tenant, request)

    def pools(self, tenant: str) -> JsonResult:
        return pools.pools(self.known, tenant)

    def doctor(self, tenant: str, request: Mapping[str, Any], *, is_repairing: bool) -> JsonResult:
        return queries.report(self.known, tenant, request, is_repairing=is_repairing)
