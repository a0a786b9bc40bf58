"""The effects that operations yield: requests, waits, and the time.

An operation is a generator. Nothing here sends, sleeps or reads a clock. `client.py` and
`async_client.py` perform the effects, so that both have the same calls, waits and errors:

    effect = next(operation)            # Call("GET", "/executions/order-17")
    effect = operation.send(answer)     # Sleep(0.1)
    effect = operation.send(None)       # Call(…)
    StopIteration.value                 # the result of the operation
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from holdfast.errors import RequestError
from holdfast.remote.answers import Json
from holdfast.remote.values import json_bytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request. The reply is the JSON of the response; a refusal is raised as an error."""

    method: Literal["GET", "POST", "DELETE"]
    target: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """The reply is the time of a clock that never goes back, in seconds."""


Effect: TypeAlias = Call | Sleep | Now
Operation: TypeAlias = Generator[Effect, Any, T]

#: The time between two checks of an execution. It grows during a long wait, because AWS bills each
#: check as a read.
POLL_SECONDS: Final = 0.1
POLL_SECONDS_MAX: Final = 5.0
POLL_GROWTH: Final = 1.3


def path_part(what: str, name: str) -> str:
    """Return the name as one part of a path. Raises RequestError HF201 for a name that would make
    another path of it: the API would only say that it has no such route.
    """
    if not name or "/" in name:
        raise RequestError(
            "HF201",
            f"{what} {name!r} is not a name",
            help="it is empty or has a `/`, and no name does",
        )
    return quote(name, safe="")


def get(target: str) -> Operation[Json]:
    return (yield from send(Call("GET", target)))


def send(call: Call) -> Operation[Json]:
    answer: Json = yield call
    return answer


def post(target: str, fields: Mapping[str, object], **kept: object) -> Operation[Json]:
    """Send the fields that are not None, and the fields in `kept` unchanged, because None is a
    value in JSON.
    """
    sent = {name: value for name, value in fields.items() if value is not None}
    return (yield from send(Call("POST", target, json_bytes({**sent, **kept}))))


def all_pages(
    target: str, rows: str, asked: Mapping[str, str | None] = {}
) -> Operation[list[Json]]:
    found: list[Json] = []
    while True:
        answer = yield from get(f"{target}{query_text(asked)}")
        found += answer[rows]
        if "next" not in answer:
            return found
        asked = {"after": answer["next"]}


def query_text(parameters: Mapping[str, str | Sequence[str] | None]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given, doseq=True)}" if given else ""
