"""The operations on questions to people, and the answer to a question or a token."""

from __future__ import annotations

from holdfast.remote.answers import Json, QuestionPage
from holdfast.remote.operations.requests import Operation, get, path_part, post, query_text


def questions(
    *,
    assignee: str | None = None,
    workflow: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Operation[QuestionPage]:
    """Return up to `limit` open questions after the place `after`."""
    size = None if limit is None else str(limit)
    asked = {"assignee": assignee, "workflow": workflow, "limit": size, "after": after}
    found = yield from get(f"/questions{query_text(asked)}")
    return QuestionPage(found["questions"], found.get("next"))


def question(question: str) -> Operation[Json]:
    """Return one question, with the schema of its answer."""
    return (yield from get(_question(question)))


def claim(question: str, by: str) -> Operation[Json]:
    """Record that `by` works on the question. Other people then cannot answer it."""
    return (yield from post(f"{_question(question)}/claim", {"by": by}))


def release(question: str, by: str) -> Operation[Json]:
    """Release a claimed question, so that other people can answer it."""
    return (yield from post(f"{_question(question)}/release", {"by": by}))


def delegate(question: str, to: str, by: str) -> Operation[Json]:
    """Give the question to another person or role."""
    return (yield from post(f"{_question(question)}/delegate", {"to": to, "by": by}))


def answer(
    question: str,
    output: object = None,
    *,
    error: str | None = None,
    cause: str | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Answer a question with an output, or fail its wait with an error. `question` is its id, or a
    token that `describe` shows.
    """
    fields = {"error": error, "cause": cause, "by": by}
    kept = {"output": output} if error is None else {}
    if ":" in question:
        return (yield from post(f"{_question(question)}/answer", fields, **kept))
    return (yield from post("/answers", {"token": question, **fields}, **kept))


def _question(question: str) -> str:
    return f"/questions/{path_part('the question', question)}"
