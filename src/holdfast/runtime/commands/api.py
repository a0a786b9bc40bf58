"""The front door: start, stop, event, answer, and what people see, as generators of effects.

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
from typing import Any, Protocol

from holdfast.asl.program import Json
from holdfast.core.waits import takes_answer
from holdfast.errors import GoneTypeError, RequestError
from holdfast.limits import (
    CAUSE_CHARACTERS_MAX,
    ERROR_CHARACTERS_MAX,
    EVENT_BYTES_MAX,
    EVENT_RETENTION_SECONDS,
    NAME_RETENTION_SECONDS,
)
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands import pause as pausing
from holdfast.runtime.commands import presentation, queries
from holdfast.runtime.commands.lookup import Lookup, Payload
from holdfast.runtime.commands.queries import LISTED_MAX
from holdfast.runtime.commands.tokens import SigningKeys, Token, is_marked, mark_of, require_token
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    JsonResult,
    Message,
    Put,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, Formats
from holdfast.runtime.storage.json_values import printable, require_plain
from holdfast.sealed import hidden


class Types(Protocol):
    """The user's types, by the names under which the compiler's map knows them."""

    def normalise_input(self, tenant: str, workflow: str, value: Json) -> Json:
        """-> the input with every field present, its secrets sealed.

        Raises RequestError HF210, VaultFault.
        """

    def normalise_payload(self, tenant: str, reference: str, value: Json, what: str) -> Json:
        """`reference`: as the compiler's map has it. Raises RequestError HF211, GoneTypeError,
        VaultFault.
        """


@dataclass(frozen=True, slots=True)
class Front:
    """What the front door knows: the workflows that can be started, by name."""

    programs: Programs
    workflows: Mapping[str, Definition]
    types: Types
    keys: SigningKeys
    formats: Formats = FORMATS

    # -- start and stop ----------------------------------------------------------------------------

    def start(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        """`request`: workflow, input, name?. The same name and input give the same execution."""
        definition = self._known.workflow(request.get("workflow"))
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
        stowed = yield from inbox.stow(tenant, started["run"], data)
        fields = {"workflow": workflow, "input": stowed, **started}
        if name is not None:
            fields["name"] = name
        yield Send((Message(messages.start(tenant, fields.pop("run"), **fields)),))
        return {"execution": started["run"], "name": name, "workflow": workflow}

    def _claim_name(
        self, tenant: str, workflow: str, name: str, data: Json, started: dict[str, Any]
    ) -> JsonResult:
        """-> the execution that owns the name: the new one, or an earlier one of the same input."""
        item = {
            "pk": keys.name(tenant, workflow, name),
            "sk": keys.ONLY,
            FORMAT_FIELD: FORMAT,
            "run": started["run"],
            "ih": _hash(hidden(data)),
            "dh": started["definition"],
            "t0": started["t0"],
            "ttl": started["t0"] // 1_000 + NAME_RETENTION_SECONDS,
        }
        found = yield PutIfAbsent(tables.MAIL, item)
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
    ) -> JsonResult:
        """`request`: error?, cause?, now?. Asks for an end as ABORTED; `now`: what is left to undo
        stays. What ends first counts: see the status later.
        """
        log = yield from self._known.require_log(tenant, identifier)
        now_ms = yield Clock()
        fields: dict[str, str | int] = {**_texts(request), **_haste(request)}
        yield from inbox.ask(tenant, log, now_ms, chance, fields)
        return {"execution": log.run, **({"now": True} if "now" in fields else {})}

    def pause(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return pausing.pause(self._known, tenant, identifier, request, chance)

    def resume(
        self, tenant: str, identifier: str, request: Mapping[str, Any], chance: bytes
    ) -> JsonResult:
        return pausing.resume(self._known, tenant, identifier, request, chance)

    # -- events and answers ------------------------------------------------------------------------

    def event(self, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
        """`request`: name, key, data, id?. -> its id, and how many executions wait for it."""
        name, key = request.get("name"), keys.require_business_key(request.get("key", ""))
        wanted = yield from self._known.event_payload(tenant, name, key)
        data = self._of_its_type(tenant, wanted, request.get("data"), f"event {name!r}")
        if len(json.dumps(data)) > EVENT_BYTES_MAX:
            raise RequestError("HF203", f"the event is over {EVENT_BYTES_MAX} bytes", status=413)
        now_ms = yield Clock()
        event_id = keys.require_name(request.get("id") or chance.hex()[:20], "the id of the event")
        partition = keys.event(tenant, str(name), key)
        stowed = {**(yield from inbox.stow(tenant, "events", data)), **_mark(data)}
        item = {
            "pk": partition,
            "sk": keys.stored_event(event_id),
            FORMAT_FIELD: FORMAT,
            "at": now_ms,
            "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
            "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS + 86_400,
            **stowed,
        }
        found = yield PutIfAbsent(tables.MAIL, item)
        if found is not None and not _is_same(_stowed(found), stowed):
            raise RequestError(
                "HF213", f"an event with the id {event_id!r} exists and has other data", status=409
            )
        waiters = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
        if waiters:
            runs = [str(w["sk"]).removeprefix(keys.REGISTRATION_PREFIX) for w in waiters]
            wakes = [messages.wake_mail(tenant, run, messages.EVENT_MAIL) for run in runs]
            yield Send(tuple(Message(wake) for wake in wakes))
        else:
            told = {"name": str(name), "key": key}
            yield from _keep_listed(tenant, event_id, now_ms, told)
        return {"event": event_id, "waiting": len(waiters)}

    def bus_event(self, tenant: str, given_id: Any, detail: Any, chance: bytes) -> JsonResult:
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
            told = {
                "name": printable(str(request.get("name", "")))[:200],
                "key": printable(str(request.get("key", "")))[:200],
                "refused": printable(f"{error.code}: {error.message}")[:1_000],
            }
            yield from _keep_listed(tenant, event_id, now_ms, told)
            return {"event": event_id, "refused": error.code}

    def events(self, tenant: str) -> JsonResult:
        """-> events that no execution has waited for yet, and those that were refused."""
        now_ms = yield Clock()
        items = yield Query(tables.MAIL, keys.early_events(tenant), reverse=True, limit=LISTED_MAX)
        listed = []
        for item in items:
            if int(item["expires"]) <= now_ms:
                continue
            if "refused" not in item:
                partition = keys.event(tenant, str(item["name"]), str(item["key"]))
                waiters = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
                if waiters:
                    continue
            listed.append(presentation.early_event(item))
        return {"events": listed}

    def answer(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        """`request`: token, and output, or error and cause?. A person's or a callback's answer."""
        now_ms = yield Clock()
        token = require_token(str(request.get("token", "")), self.keys, tenant, now_ms)
        key = keys.answer(token.entry, token.attempt)
        fields = yield from self._answer_fields(token, request)
        item = {
            "pk": keys.inbox(tenant, token.run),
            "sk": key,
            FORMAT_FIELD: FORMAT,
            "at": now_ms,
            "ttl": token.expires_ms // 1_000 + EVENT_RETENTION_SECONDS,
            "ah": mark_of(_said(request), self.keys),
            **fields,
        }
        found = yield PutIfAbsent(tables.MAIL, item)
        if found is not None and not _is_same(inbox.answer_in(found), fields):
            raise RequestError(
                "HF231",
                "another answer has been given before",
                status=409,
                help="see the execution",
            )
        yield Send((Message(messages.wake_mail(tenant, token.run, key)),))
        return {"execution": token.run}

    def _answer_fields(self, token: Token, request: Mapping[str, Any]) -> JsonResult:
        log = self._known.log(token.tenant, token.run)
        yield from log.load()
        state = log.state
        frame = None if state is None else state.frame_of(token.entry)
        if state is None:
            # A first task may hand its token on before record 0 (R3).
            is_open = yield from self._known.may_begin(log)
        else:
            is_open = frame is not None and takes_answer(frame.waiting, token.attempt)
        if not is_open:
            return (yield from self._answered_before(token, request))
        if "error" in request:
            return _failure(request)
        output = request.get("output")
        # Only questions have a type, and nobody has the token of one that is in no log.
        if state is not None and frame is not None:
            definition = yield from self.programs.fetch(token.tenant, state.definition)
            wanted = Payload.of_answer(definition, frame.position)
            what = f"answer to {frame.position}"
            output = self._of_its_type(token.tenant, wanted, output, what)
        return {**(yield from inbox.stow(token.tenant, token.run, output)), **_mark(output)}

    def _of_its_type(self, tenant: str, wanted: Payload, value: Json, what: str) -> Json:
        """-> the value as its type has it; as it is where there is none, or none any more, for the
        wait could not be answered else. Raises RequestError HF211, HF215.
        """
        if wanted.reference is None:
            return value
        try:
            return self.types.normalise_payload(tenant, wanted.reference, value, what)
        except GoneTypeError:
            if wanted.is_secret:
                raise _never_sealed(what, wanted.reference) from None
            return value

    def _answered_before(self, token: Token, request: Mapping[str, Any]) -> JsonResult:
        """The wait is over. Who repeats the answer that ended it is told yes again (R12)."""
        partition = keys.inbox(token.tenant, token.run)
        found = yield Get(tables.MAIL, partition, keys.answer(token.entry, token.attempt))
        if found is None or not self._is_repeated(found, request):
            raise RequestError(
                "HF232",
                "nobody waits for this answer any more",
                status=409,
                help="see what the execution waits for now",
            )
        return inbox.answer_in(found)

    def _is_repeated(self, found: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
        """Known by how it was sent, for what its type had made of it is not to be had here any
        more. What another door has stored says no more than what it is.
        """
        said = _said(request)
        if "ah" in found:
            return is_marked(said, str(found["ah"]), self.keys)
        if "error" in request:
            return inbox.answer_in(found) == _failure(request)
        return inbox.answer_in(found) == inbox.form_of(request.get("output"))[0]

    # -- seeing: what each gives is said in seeing.py ----------------------------------------------

    def describe(self, tenant: str, identifier: str) -> JsonResult:
        return queries.describe(self._known, tenant, identifier)

    def history(self, tenant: str, identifier: str, after: Any = None) -> JsonResult:
        return queries.history(self._known, tenant, identifier, after)

    def executions(self, tenant: str, request: Mapping[str, Any]) -> JsonResult:
        return queries.executions(self._known, tenant, request)

    def doctor(self, tenant: str, request: Mapping[str, Any], *, is_repairing: bool) -> JsonResult:
        return queries.report(self._known, tenant, request, is_repairing=is_repairing)

    @property
    def _known(self) -> Lookup:
        return Lookup(self.programs, self.workflows, self.keys, self.formats)


def _hash(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _keep_listed(
    tenant: str, event_id: str, now_ms: int, told: Mapping[str, str]
) -> Generator[Effect, Any, None]:
    """Nobody waits for the event yet, or it was refused: it shows in the list of events."""
    yield Put(
        tables.MAIL,
        {
            "pk": keys.early_events(tenant),
            "sk": f"{now_ms:015d}#{event_id}",
            FORMAT_FIELD: FORMAT,
            "id": event_id,
            "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
            "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS,
            **told,
        },
    )


def _never_sealed(what: str, reference: str) -> RequestError:
    return RequestError(
        "HF215",
        f"the {what} is a secret or holds one, and the deployed code has no type {reference}, "
        "without which it would be stored in clear",
        status=409,
        help="deploy a type of that name in that module again",
    )


def _said(request: Mapping[str, Any]) -> str:
    """-> an answer as it was sent. Raises RequestError HF243."""
    said = {name: request[name] for name in ("output", "error", "cause") if name in request}
    for value in said.values():
        require_plain(value, "the answer")
    return json.dumps(said, sort_keys=True)


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


def _haste(request: Mapping[str, Any]) -> dict[str, int]:
    """Raises RequestError HF233: a word in place of a boolean would cut an undo by mistake."""
    now = request.get("now", False)
    if not isinstance(now, bool):
        kind = type(now).__name__
        raise RequestError("HF233", f"`now` has to be true or false, and is a JSON value: {kind}")
    return {"now": 1} if now else {}


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
