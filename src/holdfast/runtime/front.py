"""The front door: start, stop, event, answer, describe, history, list, as generators of effects.

Rules of this file:
* The tenant comes from the verified identity of the caller, never from a body.
* What does not fit its type is refused here; it never reaches, let alone fails, an execution.
* Store, then tell; a duplicate tells again (R12): the first caller may have died in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.asl.program import Json
from holdfast.core.run_ids import parent_run
from holdfast.core.state import (
    STATUSES,
    Attempt,
    Awaiting,
    Execution,
    Frame,
    WaitingFor,
)
from holdfast.errors import RequestError
from holdfast.limits import (
    CAUSE_CHARACTERS_MAX,
    ERROR_CHARACTERS_MAX,
    EVENT_BYTES_MAX,
    EVENT_RETENTION_SECONDS,
    LIST_SHARDS,
    NAME_RETENTION_SECONDS,
    TOKEN_SECONDS_MAX,
)
from holdfast.runtime import children, doctor, keys, mail, messages, quarantine, view
from holdfast.runtime.definitions import Definition, Programs
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Message,
    Put,
    PutIfAbsent,
    Query,
    QueryList,
    Send,
)
from holdfast.runtime.formats import FORMAT, FORMATS, Formats
from holdfast.runtime.log import Log
from holdfast.runtime.plain import printable, require_plain
from holdfast.runtime.quarantine import Quarantined
from holdfast.runtime.tokens import Keys, Token, make_token, require_token
from holdfast.sealed import hidden

Answer: TypeAlias = Generator[Effect, Any, dict[str, Any]]

LISTED_MAX = 100
#: What an answer item holds of the answer itself.
ANSWER = ("v", "ref", "error", "cause", "sh")
#: A start message lives no longer; an execution that has no log by then never began.
SQS_RETENTION_MS = 14 * 86_400_000


class Types(Protocol):
    """The user's types, by the names under which the compiler's map knows them."""

    def normalise_input(self, tenant: str, workflow: str, value: Json) -> Json:
        """-> the input with every field present, its secrets sealed.

        Raises RequestError HF210, VaultFault.
        """

    def normalise_payload(self, tenant: str, reference: str, value: Json, what: str) -> Json:
        """`reference`: as the compiler's map has it. Raises RequestError HF211, VaultFault."""


@dataclass(frozen=True, slots=True)
class Front:
    """What the front door knows: the workflows that can be started, by name."""

    programs: Programs
    workflows: Mapping[str, Definition]
    types: Types
    keys: Keys
    formats: Formats = FORMATS

    # -- start and stop ----------------------------------------------------------------------------

    def start(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> Answer:
        """`request`: workflow, input, name?. The same name and input give the same execution."""
        definition = self._workflow(request.get("workflow"))
        workflow = str(request["workflow"])
        name = request.get("name")
        if name is not None:
            keys.require_execution_name(name)
        data = self.types.normalise_input(tenant, workflow, request.get("input"))
        now_ms = yield Clock()
        yield from self.programs.store(tenant, definition)
        run = keys.mint_run(tenant, now_ms, chance, self.keys.secret)
        started = {"run": run, "t0": now_ms, "definition": definition.hash}
        if name is not None:
            started = yield from self._claim_name(tenant, workflow, name, data, started)
        stowed = yield from mail.stow(tenant, started["run"], data)
        fields = {"workflow": workflow, "input": stowed, **started}
        if name is not None:
            fields["name"] = name
        yield Send((Message(messages.start(tenant, fields.pop("run"), **fields)),))
        return {"execution": started["run"], "name": name, "workflow": workflow}

    def _claim_name(
        self, tenant: str, workflow: str, name: str, data: Json, started: dict[str, Any]
    ) -> Answer:
        """-> the execution that owns the name: the new one, or an earlier one of the same input."""
        item = {
            "pk": keys.name(tenant, workflow, name),
            "sk": keys.ONLY,
            "f": FORMAT,
            "run": started["run"],
            "ih": _hash(hidden(data)),
            "dh": started["definition"],
            "t0": started["t0"],
            "ttl": started["t0"] // 1_000 + NAME_RETENTION_SECONDS,
        }
        found = yield PutIfAbsent("mail", item)
        if found is None or found["run"] == started["run"]:
            return started
        if found["ih"] != item["ih"]:
            raise RequestError(
                "HF212",
                f"an execution of {workflow} named {name!r} exists and has another input",
                status=409,
                help="choose another name, or send the same input to get the same execution",
            )
        return {"run": found["run"], "t0": found["t0"], "definition": found["dh"]}

    def stop(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> Answer:
        """Asks for an end as ABORTED. What ends first counts: see the status later."""
        log = yield from self._require_log(tenant, identifier)
        now_ms = yield Clock()
        texts = _texts(request)
        control_id = mail.control_id(log.state, now_ms, chance)
        yield PutIfAbsent("mail", mail.control_item(tenant, log.run, control_id, now_ms, texts))
        yield Send((Message(messages.wake_mail(tenant, log.run, keys.control(control_id))),))
        if log.state is None:
            yield from self._begin_to_stop(log)
        return {"execution": log.run}

    def _begin_to_stop(self, log: Log) -> Generator[Effect, Any, None]:
        """What rests in quarantine and never began has no log that could end."""
        held = yield from quarantine.find(log.tenant, log.run)
        if held is not None and held.is_start:
            yield from quarantine.release_to_stop(held)

    # -- events and answers ------------------------------------------------------------------------

    def event(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> Answer:
        """`request`: name, key, data, id?. -> its id, and how many executions wait for it."""
        name, key = request.get("name"), keys.require_business_key(request.get("key", ""))
        data = self.types.normalise_payload(
            tenant, self._event_type(name), request.get("data"), f"event {name!r}"
        )
        if len(json.dumps(data)) > EVENT_BYTES_MAX:
            raise RequestError("HF203", f"the event is over {EVENT_BYTES_MAX} bytes", status=413)
        now_ms = yield Clock()
        event_id = keys.require_name(request.get("id") or chance.hex()[:20], "the id of the event")
        partition = keys.event(tenant, str(name), key)
        stowed = {**(yield from mail.stow(tenant, "events", data)), **_mark(data)}
        item = {
            "pk": partition,
            "sk": keys.stored_event(event_id),
            "f": FORMAT,
            "at": now_ms,
            "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
            "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS + 86_400,
            **stowed,
        }
        found = yield PutIfAbsent("mail", item)
        if found is not None and not _is_same(_stowed(found), stowed):
            raise RequestError(
                "HF213", f"an event with the id {event_id!r} exists and has other data", status=409
            )
        waiters = yield Query("mail", partition, begins_with=keys.REGISTRATION_PREFIX)
        if waiters:
            runs = [str(w["sk"]).removeprefix(keys.REGISTRATION_PREFIX) for w in waiters]
            wakes = [messages.wake_mail(tenant, run, messages.EVENT_MAIL) for run in runs]
            yield Send(tuple(Message(wake) for wake in wakes))
        else:
            yield from self._keep_listed(tenant, str(name), key, event_id, now_ms)
        return {"event": event_id, "waiting": len(waiters)}

    def _keep_listed(
        self, tenant: str, name: str, key: str, event_id: str, now_ms: int
    ) -> Generator[Effect, Any, None]:
        """Nobody waits for it yet: it is kept, and shows in the list of events."""
        yield Put(
            "mail",
            {
                "pk": keys.early_events(tenant),
                "sk": f"{now_ms:015d}#{event_id}",
                "f": FORMAT,
                "name": name,
                "key": key,
                "id": event_id,
                "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
                "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
            },
        )

    def bus_event(self, tenant: str, given_id: Any, detail: Any, chance: bytes) -> Answer:
        """An event from the bus. What is refused is parked, with its reason, not thrown back."""
        event_id = given_id if keys.is_name(given_id) else chance.hex()
        request: dict[str, Any] = {}
        try:
            require_plain(detail, "the detail")
            if isinstance(detail, dict):
                request = {**detail, "id": detail.get("id") or event_id}
            return (yield from self.event(tenant, request, chance))
        except RequestError as error:
            now_ms = yield Clock()
            yield Put(
                "mail",
                {
                    "pk": keys.early_events(tenant),
                    "sk": f"{now_ms:015d}#{event_id}",
                    "f": FORMAT,
                    "name": printable(str(request.get("name", "")))[:200],
                    "key": printable(str(request.get("key", "")))[:200],
                    "id": event_id,
                    "refused": printable(f"{error.code}: {error.message}")[:1_000],
                    "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
                    "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
                },
            )
            return {"event": event_id, "refused": error.code}

    def events(self, tenant: str) -> Answer:
        """-> events that no execution has waited for yet, and those that were refused."""
        now_ms = yield Clock()
        items = yield Query("mail", keys.early_events(tenant), reverse=True, limit=LISTED_MAX)
        listed = []
        for item in items:
            if int(item["expires"]) <= now_ms:
                continue
            if "refused" not in item:
                partition = keys.event(tenant, str(item["name"]), str(item["key"]))
                waiters = yield Query("mail", partition, begins_with=keys.REGISTRATION_PREFIX)
                if waiters:
                    continue
            listed.append(view.early_event(item))
        return {"events": listed}

    def answer(self, tenant: str, request: Mapping[str, Any]) -> Answer:
        """`request`: token, and output, or error and cause?. A person's or a callback's answer."""
        now_ms = yield Clock()
        token = require_token(str(request.get("token", "")), self.keys, tenant, now_ms)
        key = keys.answer(token.entry, token.attempt)
        fields = yield from self._answer_fields(token, request)
        item = {
            "pk": keys.inbox(tenant, token.run),
            "sk": key,
            "f": FORMAT,
            "at": now_ms,
            "ttl": token.expires_ms // 1_000 + EVENT_RETENTION_SECONDS,
            **fields,
        }
        found = yield PutIfAbsent("mail", item)
        if found is not None and not _is_same(_given(found), fields):
            raise RequestError(
                "HF231",
                "another answer has been given before",
                status=409,
                help="see the execution",
            )
        yield Send((Message(messages.wake_mail(tenant, token.run, key)),))
        return {"execution": token.run}

    def _answer_fields(self, token: Token, request: Mapping[str, Any]) -> Answer:
        log = Log(token.tenant, token.run, "front", "", self.formats)
        yield from log.load()
        frame = None if log.state is None else log.state.frame_of(token.entry)
        waiting = None if frame is None else frame.waiting
        if log.state is None or frame is None or not _waits_for(waiting, token):
            return (yield from self._answered_before(token, request))
        if "error" in request:
            return _failure(request)
        definition = yield from self.programs.fetch(token.tenant, log.state.definition)
        reference = definition.source_map.get("answers", {}).get(frame.position)
        output = request.get("output")
        if reference is not None:
            what = f"answer to {frame.position}"
            output = self.types.normalise_payload(token.tenant, reference, output, what)
        return {**(yield from mail.stow(token.tenant, token.run, output)), **_mark(output)}

    def _answered_before(self, token: Token, request: Mapping[str, Any]) -> Answer:
        """The wait is over. Who repeats the answer that ended it is told yes again (R12)."""
        inbox = keys.inbox(token.tenant, token.run)
        found = yield Get("mail", inbox, keys.answer(token.entry, token.attempt))
        stored = {} if found is None else _given(found)
        if "error" in request:
            given = _failure(request)
        else:
            # Only looked at: nobody has found the secrets in it.
            given, _ = mail.form_of(request.get("output"))
        if not stored or stored != given:
            raise RequestError(
                "HF232",
                "nobody waits for this answer any more",
                status=409,
                help="see what the execution waits for now",
            )
        return stored

    # -- seeing ------------------------------------------------------------------------------------

    def describe(self, tenant: str, identifier: str) -> Answer:
        """`identifier`: an execution's id, or its name: the business key of what it works for."""
        log = yield from self._require_log(tenant, identifier)
        held = yield from self._held(log)
        if log.state is None and held is not None:
            return quarantine.not_begun(held)
        if log.state is None:
            return {"execution": log.run, "status": "RUNNING", "waits": [{"kind": "start"}]}
        definition = yield from self.programs.fetch(tenant, log.state.definition)
        now_ms = yield Clock()

        def token_of(state: Execution, frame: Frame) -> str:
            assert isinstance(frame.waiting, Awaiting)
            expires_ms = frame.waiting.due_ms or now_ms + TOKEN_SECONDS_MAX * 1_000
            waiting = frame.waiting
            token = Token(tenant, state.run, waiting.entry, waiting.attempt, expires_ms)
            return make_token(token, self.keys)

        shown: dict[str, Any] = hidden(view.execution(log.state, definition.source_map, token_of))
        if held is not None:
            shown["waits"] = [quarantine.wait_of(held), *shown["waits"]]
        return shown

    def _held(self, log: Log) -> Generator[Effect, Any, Quarantined | None]:
        """-> why nobody works on it, if it rests in quarantine."""
        if log.state is not None and log.state.is_ended:
            return None
        held = yield from quarantine.find(log.tenant, log.run)
        return held if held is not None and held.holds(log) else None

    def history(self, tenant: str, identifier: str) -> Answer:
        """-> every event since the start, in AWS's form; ours under `holdfast`."""
        run = yield from self._find_run(tenant, identifier)
        if run is None:
            raise _no_execution(identifier)
        items = yield Query("executions", keys.execution(tenant, run))
        if not items:
            run = (yield from self._require_log(tenant, identifier)).run
        events = yield from view.history(tenant, run, items, self.formats)
        return {"execution": run, "events": hidden(events)}

    def executions(self, tenant: str, workflow: str | None, status: str | None) -> Answer:
        """-> the newest executions. The list may be a moment behind; describe is not."""
        if status is not None and status not in STATUSES:
            expected = ", ".join(STATUSES)
            raise RequestError("HF204", f"status {status!r} is not one of {expected}")
        if workflow is not None:
            self._workflow(workflow)
        found = []
        for name in [workflow] if workflow is not None else sorted(self.workflows):
            for wanted in [status] if status is not None else STATUSES:
                for shard in range(LIST_SHARDS):
                    partition = keys.list_partition(tenant, name, wanted, shard)
                    found += yield QueryList(partition, LISTED_MAX)
        rows = view.without_stale([view.listed(item) for item in found])
        if status in {None, "RUNNING"}:
            rows = yield from self._with_held(tenant, workflow, rows)
        rows.sort(key=lambda row: row["started_ms"], reverse=True)
        return {"executions": rows[:LISTED_MAX]}

    def _with_held(
        self, tenant: str, workflow: str | None, rows: list[dict[str, Any]]
    ) -> Generator[Effect, Any, list[dict[str, Any]]]:
        """Marks what rests in quarantine, and adds what was accepted and never began."""
        resting = yield from quarantine.resting(tenant)
        runs = {held.run for held in resting}
        marked = [
            {**row, "waits_for": quarantine.WAIT}
            if row["status"] == "RUNNING" and row["execution"] in runs
            else row
            for row in rows
        ]
        unlisted = runs.difference(row["execution"] for row in rows)
        more = [quarantine.listed(held) for held in resting if held.run in unlisted]
        return [*marked, *(row for row in more if workflow in {None, row["workflow"]})]

    def doctor(self, tenant: str, request: Mapping[str, Any], *, is_repairing: bool) -> Answer:
        """What should move and does not. `request`: execution?, or after? (`doctor.report`)."""
        identifier = request.get("execution")
        if identifier is None:
            after = request.get("after")
            return (
                yield from doctor.report(tenant, self.workflows, after, is_repairing=is_repairing)
            )
        run = yield from self._find_run(tenant, str(identifier))
        if run is None:
            raise _no_execution(str(identifier))
        name = None if run == identifier else str(identifier)
        answer = yield from doctor.report_one(tenant, run, name, is_repairing=is_repairing)
        if not answer["examined"]:
            yield from self._require_log(tenant, str(identifier))  # or nobody has accepted it
        return answer

    # -- finding -----------------------------------------------------------------------------------

    def _workflow(self, name: Any) -> Definition:
        if not isinstance(name, str) or name not in self.workflows:
            known = ", ".join(sorted(self.workflows)) or "none"
            raise RequestError(
                "HF205", f"there is no workflow {name!r:.90}", status=404, help=f"known: {known}"
            )
        return self.workflows[name]

    def _event_type(self, name: Any) -> str:
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

    def _require_log(self, tenant: str, identifier: str) -> Generator[Effect, Any, Log]:
        """-> the loaded log, without a state when the execution was accepted but not begun."""
        run = yield from self._find_run(tenant, identifier)
        if run is not None:
            log = Log(tenant, run, "front", "", self.formats)
            yield from log.load()
            now_ms = yield Clock()
            # Its name, or an id of our own that is young: accepted, and no worker has begun it.
            if log.state is not None or run != identifier or self._is_young(tenant, run, now_ms):
                return log
            if (yield from self._is_awaited(tenant, run)):
                return log
        raise _no_execution(identifier)

    def _is_young(self, tenant: str, run: str, now_ms: int) -> bool:
        secrets = self.keys.secrets.values()
        is_ours = any(keys.is_minted(tenant, run, secret) for secret in secrets)
        return is_ours and now_ms - keys.minted_ms(run) < SQS_RETENTION_MS

    def _is_awaited(self, tenant: str, run: str) -> Generator[Effect, Any, bool]:
        """A child's id says whose it is; that one knows whether it has asked for it."""
        parent = parent_run(run)
        if parent is None:
            return False
        log = Log(tenant, parent, "front", "", self.formats)
        yield from log.load()
        return log.state is not None and children.is_awaited(log.state, run)

    def _find_run(self, tenant: str, identifier: str) -> Generator[Effect, Any, str | None]:
        """-> the id itself, or that of the execution which owns the name."""
        if keys.is_run(identifier):
            return identifier
        keys.require_name(identifier, "an execution's name")
        for workflow in sorted(self.workflows):
            item = yield Get("mail", keys.name(tenant, workflow, identifier), keys.ONLY)
            if item is not None:
                return str(item["run"])
        return None


def _no_execution(identifier: str) -> RequestError:
    return RequestError(
        "HF207",
        f"there is no execution {identifier[:90]!r}",
        status=404,
        help="give an execution's id, or the name that it was started with",
    )


def _hash(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    """-> the answer that an item holds."""
    return {name: item[name] for name in ANSWER if name in item}


def _waits_for(waiting: WaitingFor | None, token: Token) -> bool:
    """Also while the call that hands the token on still runs: the answer is read after it."""
    match waiting:
        case Awaiting() | Attempt(kind="callback" | "sync"):
            return waiting.attempt == token.attempt
        case _:
            return False


def _failure(request: Mapping[str, Any]) -> dict[str, str]:
    """-> error and cause of an answer. Raises RequestError HF233 when it is an output as well."""
    if "output" in request:
        raise RequestError("HF233", "an answer is either an output or an error, and this is both")
    return _texts(request)


def _texts(request: Mapping[str, Any]) -> dict[str, str]:
    """-> error and cause as given, cut to AWS's lengths. Raises RequestError HF233."""
    longest = {"error": ERROR_CHARACTERS_MAX, "cause": CAUSE_CHARACTERS_MAX}
    given = {key: request[key] for key in longest if request.get(key) is not None}
    for key, text in given.items():
        if not isinstance(text, str):
            kind = type(text).__name__
            raise RequestError("HF233", f"`{key}` has to be text, and is a JSON value: {kind}")
    return {key: text[: longest[key]] for key, text in given.items() if text}


def _stowed(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("v", "ref", "sh") if key in item}


def _mark(data: Json) -> dict[str, str]:
    """-> of data with secrets: the hash of all but them. A secret is sealed in another way each
    time, and who sends it twice is still told yes twice.
    """
    shown = hidden(data)
    return {} if shown == data else {"sh": _hash(shown)}


def _is_same(found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return found == given or ("sh" in given and found.get("sh") == given["sh"])
