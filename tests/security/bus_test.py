"""Events from the bus are stored, or parked with the reason; they are never thrown back."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.limits import EVENT_BYTES_MAX
from tests.security.bus import an_event, arrive
from tests.security.cases import Case, each, run_generated, time_limit
from tests.security.doors import Doors, opened
from tests.thorough import examples

PAID = {"name": "paid", "key": "k1", "data": {"pence": 5}}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@each(
    Case("null", None, "HF202"),
    Case("a list", [PAID], "HF202"),
    Case("text", "paid", "HF202"),
    Case("JSON in text", '{"name": "paid", "key": "k1"}', "HF202"),
    Case("a number", 5, "HF202"),
    Case("NaN", float("nan"), "HF243"),
    Case("nothing", {}, "HF202"),
    Case("no name", {"key": "k1", "data": 1}, "HF206"),
    Case("an unknown name", {**PAID, "name": "nobody"}, "HF206"),
    Case("a name in upper case", {**PAID, "name": "PAID"}, "HF206"),
    Case("a name with a blank", {**PAID, "name": "paid "}, "HF206"),
    Case("a name with NUL", {**PAID, "name": "paid\x00"}, "HF206"),
    Case("a homoglyph", {**PAID, "name": "p\u0430id"}, "HF206"),
    Case("a name that is a list", {**PAID, "name": ["paid"]}, "HF206"),
    Case("a name of 100,000 characters", {**PAID, "name": "x" * 100_000}, "HF206"),
    Case("no key", {"name": "paid", "data": 1}, "HF202"),
    Case("an empty key", {**PAID, "key": ""}, "HF202"),
    Case("a key of null", {**PAID, "key": None}, "HF202"),
    Case("a number as the key", {**PAID, "key": 7}, "HF202"),
    Case("a long key", {**PAID, "key": "k" * 1_025}, "HF202"),
    Case("half a surrogate pair in the key", {**PAID, "key": "\ud800"}, "HF243"),
    Case("half of one in the name", {**PAID, "name": "\udfff"}, "HF243"),
    Case("half of one in a field", {**PAID, "\ud800": 1}, "HF243"),
    Case("half of one in the data", {**PAID, "data": ["\ud800"]}, "HF243"),
    Case("infinity", {**PAID, "data": float("inf")}, "HF243"),
    Case("a number beyond JSON's", {**PAID, "data": -(10**400)}, "HF243"),
    Case("too deep", {**PAID, "data": deep(64)}, "HF243"),
    Case("bottomless", {**PAID, "data": deep(20_000)}, "HF243"),
    Case("a bottomless name", {**PAID, "name": deep(20_000)}, "HF243"),
    Case("oversize", {**PAID, "data": "x" * EVENT_BYTES_MAX}, "HF203"),
    Case("an id that is a number", {**PAID, "id": 5}, "HF201"),
    Case("an id with a separator", {**PAID, "id": "a#b"}, "HF201"),
    Case("an id with a line feed", {**PAID, "id": "a\n"}, "HF201"),
    Case("an id of 81 characters", {**PAID, "id": "x" * 81}, "HF201"),
    Case("an id of a folder", {**PAID, "id": ".."}, "HF201"),
)
def test_an_invalid_event_is_stored_with_the_reason(case: Case) -> None:
    doors = Doors()
    with time_limit():
        assert arrive(doors, an_event(case.given)) == case.code
    (listed,) = doors.http("GET", "/events")[1]["events"]
    assert listed["refused"].startswith(case.code)


@each(
    Case("another source", {"source": "aws.evil"}, ""),
    Case("another account", {"account": "999999999999"}, ""),
    Case("another detail type", {"detail-type": "Order"}, ""),
    Case("no id", {"id": None}, ""),
    Case("an id that is a number", {"id": 5}, ""),
    Case("an id with a separator", {"id": "a#e#b"}, ""),
    Case("an id with half a surrogate pair", {"id": "\ud800"}, ""),
    Case("a long id", {"id": "x" * 3_000}, ""),
    Case("fields that are strange", {"resources": deep(2_000), "time": None}, ""),
)
def test_the_envelope_decides_nothing(case: Case) -> None:
    """The rule decides on the events, and the bus on their senders."""
    doors = Doors()

    assert arrive(doors, an_event(PAID, **case.given)) is None
    assert arrive(doors, an_event({}, **case.given)) == "HF202"


@pytest.mark.parametrize("name", ["tenant", "t", "Tenant", "account"])
def test_an_event_cannot_choose_its_tenant(name: str) -> None:
    doors = Doors()
    acme = opened(doors, "acme")
    before = doors.http("GET", f"/executions/{acme.run}", who=acme.who)

    assert arrive(doors, an_event({**PAID, name: "acme"}, **{name: "acme"})) is None
    doors.site.work()
    assert doors.http("GET", f"/executions/{acme.run}", who=acme.who) == before


def test_an_event_with_a_missing_part_is_parked() -> None:
    doors = Doors()
    whole = an_event(PAID)
    for name in ("detail", "id"):
        part = {key: value for key, value in whole.items() if key != name}
        assert arrive(doors, part) == ("HF202" if name == "detail" else None)


def test_an_event_with_the_id_of_another_is_parked() -> None:
    doors = Doors()

    assert arrive(doors, an_event({**PAID, "id": "e1"})) is None
    assert arrive(doors, an_event({**PAID, "id": "e1"})) is None
    assert arrive(doors, an_event({**PAID, "id": "e1", "data": 6})) == "HF213"


def test_generated_events_are_stored_or_parked() -> None:
    tally = run_generated("events", examples(800), seed=1)

    assert tally.refused > examples(200)
    assert tally.accepted > examples(40)
