"""The operations on the stack itself."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.remote.answers import Json
from holdfast.remote.operations.requests import Operation, all_pages, get, post


def format() -> Operation[Json]:  # noqa: A001
    """Return `format`, which the stack writes, and `readable`, the formats that its code reads."""
    return (yield from get("/format"))


def ask_format(number: int) -> Operation[Json]:
    """Request a newer format. This cannot be undone."""
    return (yield from post("/format", {"format": number}))


def pools() -> Operation[list[Json]]:
    """Return the pools with their workers and the number of tasks that wait."""
    return list((yield from get("/pools"))["pools"])


def doctor(execution: str | None = None, *, repair: bool = False) -> Operation[list[Json]]:
    """Return all findings, page by page. `execution`: only the findings about that execution."""
    asked = {"execution": execution}
    if not repair:
        return (yield from all_pages("/doctor", "findings", asked))
    found: list[Json] = []
    while True:
        told = yield from post("/doctor", asked)
        found += told["findings"]
        if "next" not in told:
            return found
        asked = {"after": told["next"]}


def clock_lead() -> Operation[int]:
    """Return by how many seconds the clock of a `serve` is ahead; 0 for a deployed stack."""
    try:
        found = yield from get("/health")
    except HoldfastError:
        # A deployed stack has no such route. If the API has another error, the next request shows
        # it.
        return 0
    return int(found.get("clock_lead_seconds", 0))


def advance(milliseconds: int) -> Operation[Json]:
    """Move the clock of a `serve` forward. A deployed stack has AWS's clock."""
    return (yield from post("/clock", {"milliseconds": milliseconds}))
