"""The sweeper's part of reminders: a due row of a question that is still open becomes a message."""

from __future__ import annotations

from holdfast.runtime import follow_ups, messages, questions
from holdfast.runtime.effects import Get, Item, Message, NoResult, Send
from holdfast.runtime.storage import tables


def visit(row: Item) -> NoResult:
    """Send the message, unless the question has left the inbox; then delete the row."""
    tenant, run = str(row["t"]), str(row["run"])
    found = yield Get(tables.MAIL, questions.partition(tenant, run), str(row["ask"]))
    if found is not None:
        body = messages.remind(
            tenant,
            run,
            entry=int(row["of"]),
            attempt=int(row["attempt"]),
            ask=str(row["ask"]),
            due=int(row["due"]),
            ahead=int(row["ahead"]),
        )
        yield Send((Message(body),))
    yield from follow_ups.drop_row(row)
