"""The inbox of people: list open questions; describe, answer, claim, release or delegate one.

A question has the id `EXECUTION:ENTRY.ATTEMPT`. Callers of the API are verified, so they answer by
id and need no token. Tokens are for links, which are sent to people who have no account here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from holdfast.core.state import Awaiting, Execution
from holdfast.core.waits import opened_by
from holdfast.errors import GoneTypeError, RequestError
from holdfast.limits import (
    NAME_CHARACTERS_MAX,
    TOKEN_SECONDS_MAX,
)
from holdfast.runtime import questions
from holdfast.runtime.commands import answers
from holdfast.runtime.commands.list_filter import LISTED_MAX
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import Payload
from holdfast.runtime.commands.tokens import Token, make_token, question_token, require_link
from holdfast.runtime.effects import (
    Clock,
    Condition,
    Delete,
    Effect,
    Get,
    Item,
    JsonResult,
    Put,
    Query,
    Update,
)
from holdfast.runtime.listing import unknown_page
from holdfast.runtime.questions import Question, question_from
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.spread import QUESTIONS, Spread
from holdfast.sealed import hidden

_ID: Final = re.compile(r"([^:]+):([0-9]{1,9})\.([0-9]{1,9})")
#: The author of an answer that was given through a link, because it is not known who opened the
#: link.
BY_LINK: Final = "link"
_PRESENT: Final = Condition("pk", "present")
_LAST: Final = "~"  # sorts after every character of a hash


# -- finding ---------------------------------------------------------------------------------------


def list_questions(tenant: str, spread: Spread, request: Mapping[str, Any]) -> JsonResult:
    """Return open questions, sorted by assignee, the oldest first.

    `request`: assignee?, workflow?, limit? (at most 100), after? (the `next` of the page before).
    With a workflow a page may be short and still have a `next`. Costs a query for each partition,
    four at spread 0, and a read for each delegated question. Raises RequestError HF204, HF209.
    """
    limit = _limit_of(request)
    after = str(request.get("after") or "")
    if after and not re.fullmatch(r"[0-9a-f]+#[0-9]{15}#.{1,400}", after):
        raise unknown_page()
    assignee = request.get("assignee")
    first = keys.questions_of(str(assignee)) if assignee else ""
    rows: list[Question] = []
    for shard in range(QUESTIONS.count(spread.read)):
        found = yield Query(
            tables.MAIL,
            keys.questions(tenant, shard),
            after=max(after, first) or None,
            until=f"{first}{_LAST}" if first else None,
            limit=limit + 1,
        )
        rows += map(question_from, found)
    rows.sort(key=lambda row: row.sk)
    page, now_ms = rows[:limit], (yield Clock())
    shown = []
    for row in page:
        question = yield from _present(tenant, row, now_ms)
        is_wanted = request.get("workflow") in (None, row.workflow)
        if question is not None and is_wanted:
            shown.append(questions.shown(question))
    more = {"next": page[-1].sk} if len(rows) > limit else {}
    return {"questions": shown, **more}


def _limit_of(request: Mapping[str, Any]) -> int:
    text = str(request.get("limit", LISTED_MAX))
    if not re.fullmatch("[0-9]{1,3}", text) or not 1 <= int(text) <= LISTED_MAX:
        raise RequestError("HF204", f"`limit` is {text!r:.40}, expected 1 to {LISTED_MAX}")
    return int(text)


def _present(tenant: str, row: Question, now_ms: int) -> Generator[Effect, Any, Question | None]:
    """Return the question of a row; None when another person is the assignee now, or its wait has
    ended.
    """
    if row.due_ms is not None and row.due_ms <= now_ms:
        return None
    if not row.own:
        return None if row.delegated_to else row
    item = yield Get(tables.MAIL, questions.partition(tenant, row.run), row.own)
    own = None if item is None else question_from(item)
    if own is None:
        yield Delete(tables.MAIL, questions.partition(tenant, row.run), row.sk)
    elif own.delegated_to == row.assignee:
        return own
    # The question has another assignee now, so it is not shown under this one. Do not delete the
    # pointer: a delegation to this assignee may be under way. It writes the pointer first, and its
    # second write makes the question's row name that pointer.
    return None


# -- one question ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Open:
    """A question that its execution waits for. `item` is its row; None while no worker has put it.

    Changes of a question are written only to its own row and not to the pointer in another inbox.
    So a pointer is never out of date.
    """

    tenant: str
    state: Execution
    position: str
    waiting: Awaiting
    item: Item | None

    @property
    def row(self) -> Question:
        if self.item is not None:
            return question_from(self.item)
        return question_from(questions.item_of(self.tenant, self.state, opened_by(self.waiting)))

    def update(self, **changed: Any) -> Update:
        """Return an update of the row that fails if a worker has deleted the row in the
        meantime.
        """
        where = (_PRESENT, *changed.pop("where", ()))
        row = self.row
        return Update(
            tables.MAIL, questions.partition(self.tenant, row.run), row.sk, **changed, where=where
        )


def describe(known: Lookup, tenant: str, identifier: str) -> JsonResult:
    """Return the question with its details, the JSON schema of its answer, and a token for a link.

    Raises RequestError HF253 (400), HF254 (404).
    """
    found = yield from _require_open(known, tenant, identifier)
    state, waiting = found.state, found.waiting
    definition = yield from known.programs.fetch(tenant, state.definition)
    wanted = Payload.of_answer(definition, found.position)
    token = question_token(tenant, state.run, opened_by(waiting), (yield Clock()))
    asked = waiting.arguments if isinstance(waiting.arguments, dict) else {}
    return {
        **questions.shown(found.row),
        "title": hidden(waiting.text("title")),
        "details": hidden(asked.get("details")),
        "schema": _schema(known, wanted.reference),
        "token": make_token(token, known.keys),
    }


def _schema(known: Lookup, reference: str | None) -> dict[str, Any]:
    """Return the JSON schema of the answer: {} for an answer of any type, and for a type that was
    removed from the code.
    """
    if reference is None:
        return {}
    try:
        return known.types.schema_of(reference)
    except GoneTypeError:
        return {}


def form(known: Lookup, token_text: str) -> JsonResult:
    """Return what the page behind a link shows: title, details, schema, until?.

    Raises RequestError HF230 (403), HF254 (404).
    """
    token = require_link(token_text, known.keys, (yield Clock()))
    identifier = f"{token.run}:{token.entry}.{token.attempt}"
    shown: dict[str, Any] = yield from describe(known, token.tenant, identifier)
    return {name: shown[name] for name in ("title", "details", "schema", "until") if name in shown}


def submit(known: Lookup, token_text: str, output: Any) -> JsonResult:
    """Store the answer that was given through a link. Raises RequestError HF211, HF215, HF230 to
    HF232, HF254.
    """
    token = require_link(token_text, known.keys, (yield Clock()))
    identifier = f"{token.run}:{token.entry}.{token.attempt}"
    found = yield from _require_open(known, token.tenant, identifier)
    request = {"output": output, "by": found.row.claimed_by or BY_LINK}
    return (yield from answer(known, token.tenant, identifier, request))


def answer(known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any]) -> JsonResult:
    """Store the answer. `request`: output, or error and cause?; by?.

    If the same answer is sent again, the request succeeds again. Raises RequestError HF211, HF215,
    HF231 to HF233, HF243, HF253, HF255 (409).
    """
    run, entry, attempt = _parts(identifier)
    by = person(request, "by")
    found = yield from _find_open(known, tenant, (run, entry, attempt))
    if found is not None and found.row.claimed_by not in ("", by):
        raise _claimed(found.row)
    token = Token(tenant, run, entry, attempt, (yield Clock()) + TOKEN_SECONDS_MAX * 1_000)
    answered: dict[str, Any] = yield from answers.give(known, token, request)
    if found is not None:
        yield Delete(tables.MAIL, questions.partition(tenant, run), found.row.sk)
    return answered


def claim(known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any]) -> JsonResult:
    """Record that `by` works on the question. Until it is released, other people cannot answer it
    by its id.

    Raises RequestError HF253, HF254, HF255 (409), HF256.
    """
    by = _require_person(request, "by")
    found = yield from _require_row(known, tenant, identifier)
    is_taken = bool(found.row.claimed_by)
    free = Condition("cb", "=", by) if is_taken else Condition("cb", "absent")
    done = yield found.update(put={"cb": by, "ca": (yield Clock())}, where=(free,))
    if not done.is_done:
        raise _claimed(question_from(done.item)) if done.item else _no_question(identifier)
    return {"question": identifier, "claimed_by": by}


def release(known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any]) -> JsonResult:
    """Release a claimed question. Every caller may do so; otherwise a person who is absent could
    block it.

    Raises RequestError HF253, HF254, HF256.
    """
    _require_person(request, "by")
    found = yield from _require_row(known, tenant, identifier)
    yield found.update(remove=("cb", "ca"))
    return {"question": identifier}


def delegate(known: Lookup, tenant: str, identifier: str, request: Mapping[str, Any]) -> JsonResult:
    """Give the question to another assignee. `request`: to, by. The question can then be claimed
    again.

    The pointer in the new inbox is put before the question's row names it. After a crash between
    the two the question is still in the first inbox: a pointer that the row does not name is not
    shown. Raises RequestError HF253, HF254, HF256.
    """
    _require_person(request, "by")
    to = _require_person(request, "to")
    found = yield from _require_row(known, tenant, identifier)
    assert found.item is not None
    if to == found.row.assignee:
        yield found.update(remove=("cb", "ca", "to"))
    else:
        yield Put(tables.MAIL, questions.pointer_of(found.item, to))
        done = yield found.update(put={"to": to}, remove=("cb", "ca"))
        if not done.is_done:
            raise _no_question(identifier)
    before = found.row.delegated_to
    if before and before != to:
        old = questions.pointer_of(found.item, before)
        yield Delete(tables.MAIL, str(old["pk"]), str(old["sk"]))
    return {"question": identifier, "assignee": to}


QuestionAction: TypeAlias = Literal["answer", "claim", "release", "delegate"]
ACTIONS: Final[
    Mapping[QuestionAction, Callable[[Lookup, str, str, Mapping[str, Any]], JsonResult]]
] = {"answer": answer, "claim": claim, "release": release, "delegate": delegate}


# -- helpers ---------------------------------------------------------------------------------------


def _parts(identifier: str) -> tuple[str, int, int]:
    matched = _ID.fullmatch(identifier)
    if matched is None or not keys.is_run(matched[1]):
        raise RequestError(
            "HF253",
            f"{identifier!r:.90} is no id of a question",
            help="`holdfast inbox` prints the ids: EXECUTION:ENTRY.ATTEMPT",
        )
    return matched[1], int(matched[2]), int(matched[3])


def _find_open(
    known: Lookup, tenant: str, parts: tuple[str, int, int]
) -> Generator[Effect, Any, _Open | None]:
    run, entry, attempt = parts
    log = known.log(tenant, run)
    yield from log.load()
    frame = None if log.state is None else log.state.frame_of(entry)
    if log.state is None or frame is None or not isinstance(frame.waiting, Awaiting):
        return None
    waiting = frame.waiting
    if waiting.kind != "ask" or waiting.attempt != attempt:
        return None
    sk = questions.own_key(run, opened_by(waiting))
    item = yield Get(tables.MAIL, questions.partition(tenant, run), sk)
    return _Open(tenant, log.state, frame.position, waiting, item)


def _require_open(known: Lookup, tenant: str, identifier: str) -> Generator[Effect, Any, _Open]:
    found = yield from _find_open(known, tenant, _parts(identifier))
    if found is None:
        raise _no_question(identifier)
    return found


def _require_row(known: Lookup, tenant: str, identifier: str) -> Generator[Effect, Any, _Open]:
    found = yield from _require_open(known, tenant, identifier)
    if found.item is None:
        raise _no_question(identifier)
    return found


def _no_question(identifier: str) -> RequestError:
    return RequestError(
        "HF254",
        f"there is no open question {identifier!r:.90}",
        status=404,
        help="it has been answered, or is over; see `holdfast inbox`",
    )


def _claimed(question: Question) -> RequestError:
    return RequestError(
        "HF255",
        f"{question.claimed_by} has claimed the question {question.id}",
        status=409,
        help="release it first: `holdfast release ID`",
    )


def person(request: Mapping[str, Any], name: str) -> str:
    """Return the name of a person in the request, "" for none. Raises RequestError HF256."""
    value = request.get(name) or ""
    if not isinstance(value, str) or len(value) > NAME_CHARACTERS_MAX:
        raise RequestError(
            "HF256",
            f"`{name}` is no text of at most {NAME_CHARACTERS_MAX} characters",
            help='send the name of a person or a role, such as {"by": "ada"}',
        )
    return value


def _require_person(request: Mapping[str, Any], name: str) -> str:
    value = person(request, name)
    if not value:
        raise RequestError("HF256", f"`{name}` is missing", help='such as {"by": "ada"}')
    return value
