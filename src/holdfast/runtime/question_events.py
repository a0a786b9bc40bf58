"""Events on the event bus: a question to a person opens, and a reminder before its deadline.

    record ─► event ─► row of the inbox
                └─► a rule of the account ─► mail, chat, a pager

The worker publishes the event after the commit of the record with the question, because an answer
needs that record. The row comes last: it marks that the event was published. Several times a day
the sweeper has a waiting execution recovered; each recovery finds the row and publishes nothing. If
a worker crashes before the row, the recovery publishes the event again with the same content. In
the reverse order a crash would lose the event.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast import resources
from holdfast.core.commands import OpenQuestion
from holdfast.core.state import Awaiting
from holdfast.limits import QUESTION_DETAILS_BYTES_MAX
from holdfast.runtime import questions, reminders
from holdfast.runtime.commands.tokens import SigningKeys, make_token, question_token
from holdfast.runtime.effects import Effect, Get, Item, Publish
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.log import Log
from holdfast.sealed import hidden


@dataclass(frozen=True, slots=True)
class QuestionEvents:
    """The part of the events that is the same for all questions of one stack.

    `stack` is its name: all stacks of an account share the default event bus. `url` is the address
    of its forms; "" for a stack without forms, whose events contain no link. `keys` sign the link.
    """

    stack: str
    url: str
    keys: Callable[[], SigningKeys]

    def publish(self, log: Log, command: OpenQuestion) -> Generator[Effect, Any, None]:
        """Publish that the question is open, unless its row says that this was done."""
        if (yield from questions.has_row(log.tenant, log.run, command)):
            return
        detail = _detail(log, command, self)
        yield _event(resources.QUESTION_DETAIL_TYPE, detail, command.since_ms)
        yield from reminders.put_rows(log, command)

    def remind(self, log: Log, body: Mapping[str, Any]) -> Generator[Effect, Any, None]:
        """Publish the reminder of a message, unless the question is answered or over. `log` is
        loaded.
        """
        item = yield Get(tables.MAIL, questions.partition(log.tenant, log.run), str(body["ask"]))
        command = reminders.open_question(log, body)
        if item is None or command is None:
            return
        if (yield from reminders.is_moved(log, command, body)):
            return
        ahead_ms = int(body["ahead"])
        detail = {**_detail(log, command, self, item), "reminder": ahead_ms // 1_000}
        yield _event(resources.QUESTION_REMINDER_TYPE, detail, int(body["due"]) - ahead_ms)


def _event(detail_type: str, detail: dict[str, Any], at_ms: int) -> Publish:
    return Publish(resources.QUESTION_SOURCE, detail_type, detail, resources=(), at_ms=at_ms)


def _detail(
    log: Log, command: OpenQuestion, wanted: QuestionEvents, item: Item | None = None
) -> dict[str, Any]:
    """Return the detail of an event. `item`: the stored row, which says who has the question now;
    None: the question has just opened.
    """
    assert log.state is not None
    item = questions.item_of(log.tenant, log.state, command) if item is None else item
    row = questions.question_from(item)
    detail = {"stack": wanted.stack, **questions.shown(row)}
    details = hidden(_details_of(log, command.entry))
    if len(json_text(details).encode()) > QUESTION_DETAILS_BYTES_MAX:
        detail["omitted"] = ["details"]
    elif details is not None:
        detail["details"] = details
    if wanted.url:
        token = question_token(log.tenant, log.run, command, command.since_ms)
        text = make_token(token, wanted.keys())
        detail["link"] = f"{wanted.url}{resources.FORMS_PATH}{text}"
    return detail


def _details_of(log: Log, entry: int) -> Any:
    assert log.state is not None
    frame = log.state.frame_of(entry)
    waiting = None if frame is None else frame.waiting
    if not isinstance(waiting, Awaiting) or not isinstance(waiting.arguments, dict):
        return None
    return waiting.arguments.get("details")
