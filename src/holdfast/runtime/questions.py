"""The inbox of people: one row for each open question.

The log has everything about a question. The row is for finding it: by its assignee, by its
workflow, the oldest first. The worker puts it after the record that asks, and deletes it after the
record that ends the wait, whatever ended it: an answer, a time-out, a stop, a lost race.

    ask(...)  ─► record ─► row in `T#ask#<shard>`     sort key: assignee, age, execution, entry
    answered  ─► record ─► the row is deleted

The API deletes the row, too, once it has stored an answer. So a row without a question is left only
when a worker crashes right after the record of a stop or a lost race. Such a row is listed until
its deadline, or until TTL deletes it; describing it says that the question is over.

A question that is delegated keeps its row, because the worker deletes that key. The row names the
new assignee (`to`), and a second row, the pointer, stands in that assignee's inbox.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.commands import OpenQuestion
from holdfast.core.decision import iso_time
from holdfast.core.state import Execution
from holdfast.limits import EVENT_RETENTION_SECONDS, QUESTION_RETENTION_SECONDS
from holdfast.runtime.effects import Delete, Effect, Get, Item, NoResult, PutIfAbsent
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format
from holdfast.sealed import hidden

#: The length to which a row cuts a title: lists show the row, and the log has the whole title.
_TITLE_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Question:
    """One row. `own`: in a pointer the sort key of the question's own row, else "".

    A row of a question. `claimed_by`: the person who works on it, "" for none. `delegated_to`: its
    present assignee, "" if that is `assignee`. `name`: the execution's name, "" for none.
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
    """Put the row, unless it is there: a row that was claimed or delegated stays as it is.

    A question without a deadline may be open for years, so its row is kept for long from now on.
    """
    ends_ms = command.due_ms or now_ms + 1_000 * QUESTION_RETENTION_SECONDS
    ttl = ends_ms // 1_000 + EVENT_RETENTION_SECONDS
    yield PutIfAbsent(tables.MAIL, {**item_of(tenant, state, command), "ttl": ttl})


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
    return keys.questions(tenant, keys.question_shard(run))


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
    """Return the question as the API lists it, and as the bus announces it."""
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
    """Return the row that shows a delegated question to its new assignee. `own`: its own row."""
    row = question_from(own)
    sk = keys.question(assignee, row.since_ms, row.run, row.entry, row.attempt)
    kept = {name: value for name, value in own.items() if name not in ("cb", "ca", "to")}
    return {**kept, "sk": sk, "who": assignee, "own": row.sk}


def own_key(run: str, command: OpenQuestion) -> str:
    return keys.question(command.assignee, command.since_ms, run, command.entry, command.attempt)
