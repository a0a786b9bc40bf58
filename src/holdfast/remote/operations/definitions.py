"""The operations on workflows and their versions."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.remote.answers import Json
from holdfast.remote.operations.executions import path_of
from holdfast.remote.operations.requests import (
    Call,
    Operation,
    get,
    path_part,
    post,
    query_text,
    send,
)
from holdfast.remote.values import json_bytes


def migrate(
    execution: str,
    *,
    to: str = "latest",
    dry_run: bool = False,
    reason: str | None = None,
    by: str | None = None,
) -> Operation[Json]:
    """Continue the execution with another definition, from its present place. `to` is "latest",
    "back" (to the one before its last migration), or the beginning of a hash. `dry_run`: only
    return whether that is possible, and why not.
    """
    fields = {"to": to, "dry_run": dry_run or None, "reason": reason, "by": by}
    return (yield from post(f"{path_of(execution)}/migration", fields))


def positions(workflow: str) -> Operation[Json]:
    """Return the positions of the running executions of the workflow: `positions`, each with the
    ids of its executions, and `definitions` by hash. Executions that have not waited yet are not
    included.
    """
    found: list[Json] = []
    after: str | None = None
    while True:
        page = yield from get(f"/positions{query_text({'workflow': workflow, 'after': after})}")
        found += page["positions"]
        after = page.get("next")
        if after is None:
            break
    definitions = {}
    for name in sorted({row["definition"] for row in found}):
        definitions[name] = yield from definition(name)
    return {"workflow": workflow, "positions": found, "definitions": definitions}


def definition(hash: str) -> Operation[Json]:  # noqa: A002
    """Return a stored definition: `hash`, `asl` and `map`."""
    return (yield from get(f"/definitions/{path_part('the definition', hash)}"))


def workflows() -> Operation[list[Json]]:
    """Return the deployed workflows and the registered graphs, with the hashes of their newest
    definitions. A graph has a `version`.
    """
    return list((yield from get("/workflows"))["workflows"])


def workflow(name: str) -> Operation[Json]:
    """Return a workflow with its `picture`, and the `document` of a graph."""
    return (yield from get(_workflow(name)))


def remove_workflow(name: str) -> Operation[Json]:
    """Remove a registered graph. Its executions go on, and no further one starts."""
    return (yield from send(Call("DELETE", _workflow(name))))


def _workflow(name: str) -> str:
    return f"/workflows/{path_part('the workflow', name)}"


def register(document: str | Mapping[str, object]) -> Operation[Json]:
    """Register a graph of steps as a workflow, or a new version of it: see docs/reference/dag.md.

    Return `workflow`, `version`, `definition`, and `registered`: False when that version already
    exists.
    """
    text = document if isinstance(document, str) else json_bytes(dict(document)).decode()
    answer: Json = yield Call("POST", "/workflows", text.encode())
    return answer
