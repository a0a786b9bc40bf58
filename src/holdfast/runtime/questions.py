"""The inbox of people: one row for each open question.

The log has all the data of a question. The row makes it possible to find the question: by its
assignee, by its workflow, the oldest first. The worker puts the row after the commit of the record
with the question. It deletes the row after the record that ends the wait, whatever ended it: an
answer, a time-out, a stop, or the end of its branch.

    ask(...)  ─► record ─► row in `T#ask#<shard>`     sort key: assignee, age, execution, entry
    answered  ─► record ─► the row is deleted

The API deletes the row, too, when it has stored an answer. So a row without a question remains only
when a worker crashes directly after the record of another end. It is listed until its deadline, or
until TTL deletes it; its description says that the question has ended.

A delegated question keeps its row, because the worker deletes the row by that key. The row names
the new assignee (`to`), and a second row, the pointer, is in the inbox of that assignee.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.commands import OpenQuestion
from holdfast.core.decision import iso_time
from holdfast.core.state import Execution
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import EVENT_RETENTION_SECONDS, QUESTION_RETENTION_SECONDS
from holdfast.runtime.effects import (
    Condition,
    Delete,
    Effect,
    Get,
    Item,
    NoResult,
    PutIfAbsent,
    Update,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.runtime.storage.spread import QUESTIONS
from holdfast.sealed import hidden

#: A longer title is cut in the row, because lists show the rows. The log has the whole title.
_TITLE_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Question:
    """One row. `own` is "" in the row of a question; in a pointer it is the sort key of the
    question's row.

    `claimed_by`: the person who works on the question, "" for none. `delegated_to`: its present
    assignee, "" if that is `assignee`. `name`: the name of the execution, "" for none.
    """

    sk: str
    run: str
    entry: int
    attempt: int
    workflow: str
    name: str
    title: str
    assignee: str
    since_ms: int
    due_ms: int | None
    own: str
    claimed_by: str
    delegated_to: str

    @property
    def id(self) -> str:
        return question_id(self.run, self.entry, self.attempt)


def question_id(run: str, entry: int, attempt: int) -> str:
    return f"{run}:{entry}.{attempt}"


def open_row(tenant: str, state: Execution, command: OpenQuestion, now_ms: int) -> NoResult:
    """Put the row, unless it exists. The row of a question that was claimed or delegated stays, and
    gets the deadline that a pause with frozen timers has moved.

    A question without a deadline may be open for years, so its row has a long lifetime.
    """
    ends_ms = command.due_ms or now_ms + 1_000 * QUESTION_RETENTION_SECONDS
    ttl = ends_ms // 1_000 + EVENT_RETENTION_SECONDS
    found = yield PutIfAbsent(tables.MAIL, {**item_of(tenant, state, command), "ttl": ttl})
    if found is not None and command.due_ms is not None and found.get("due") != command.due_ms:
        assignee = question_from(found).delegated_to
        pointers = [pointer_of(found, assignee)] if assignee else []
        for row in (found, *pointers):
            yield _moved(row, command.due_ms, ttl)


def _moved(row: Item, due_ms: int, ttl: int) -> Update:
    """Return an update that creates no row: an answer may just have deleted it."""
    there = (Condition("pk", "present"),)
    put = {"due": due_ms, "ttl": ttl}
    return Update(tables.MAIL, str(row["pk"]), str(row["sk"]), put=put, where=there)


def has_row(tenant: str, run: str, command: OpenQuestion) -> Generator[Effect, Any, bool]:
    found = yield Get(tables.MAIL, partition(tenant, run), own_key(run, command))
    return found is not None


def item_of(tenant: str, state: Execution, command: OpenQuestion) -> Item:
    item: dict[str, str | int | bytes] = {
        "pk": partition(tenant, state.run),
        "sk": own_key(state.run, command),
        FORMAT_FIELD: FORMAT,
        "run": state.run,
        "entry": command.entry,
        "attempt": command.attempt,
        "wf": state.workflow,
        "title": hidden(command.title)[:_TITLE_CHARACTERS],
        "who": command.assignee,
        "since": command.since_ms,
    }
    if command.due_ms is not None:
        item["due"] = command.due_ms
    if state.name is not None:
        item["name"] = state.name
    return item


def close_row(tenant: str, run: str, command: OpenQuestion) -> NoResult:
    yield Delete(tables.MAIL, partition(tenant, run), own_key(run, command))


def partition(tenant: str, run: str) -> str:
    return keys.questions(tenant, QUESTIONS.of(run))


def question_from(item: Mapping[str, Any]) -> Question:
    require_format(item, "a question")
    with reading("a question"):
        due_ms = item.get("due")
        return Question(
            sk=str(item["sk"]),
            run=str(item["run"]),
            entry=int(item["entry"]),
            attempt=int(item["attempt"]),
            workflow=str(item["wf"]),
            name=str(item.get("name", "")),
            title=str(item["title"]),
            assignee=str(item["who"]),
            since_ms=int(item["since"]),
            due_ms=None if due_ms is None else int(due_ms),
            own=str(item.get("own", "")),
            claimed_by=str(item.get("cb", "")),
            delegated_to=str(item.get("to", "")),
        )


def shown(question: Question) -> dict[str, Any]:
    """Return the question as the API lists it, and as the event on the event bus describes it."""
    found: dict[str, Any] = {
        "question": question.id,
        "title": question.title,
        "assignee": question.delegated_to or question.assignee,
        "workflow": question.workflow,
        "execution": question.run,
        "since": iso_time(question.since_ms),
    }
    if question.name:
        found["name"] = question.name
    if question.due_ms is not None:
        found["until"] = iso_time(question.due_ms)
    if question.claimed_by:
        found["claimed_by"] = question.claimed_by
    return found


def pointer_of(own: Item, assignee: str) -> Item:
    """Return the row that shows a delegated question to its new assignee. `own` is the question's
    own row.
    """
    row = question_from(own)
    sk = keys.question(assignee, row.since_ms, row.run, row.entry, row.attempt)
    kept = {name: value for name, value in own.items() if name not in ("cb", "ca", "to")}
    return {**kept, "sk": sk, "who": assignee, "own": row.sk}


def own_key(run: str, command: OpenQuestion) -> str:
    return keys.question(command.assignee, command.since_ms, run, command.entry, command.attempt)
