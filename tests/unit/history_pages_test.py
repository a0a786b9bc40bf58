"""A history that no single answer of Lambda holds: by the API, by the command line, by AWS's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import cli
from holdfast.remote import client
from holdfast.runtime.storage.histories import Forwards, backwards, read_records
from tests.builders import Shop, call, machine, wait_for
from tests.sim.doctor_kit import settle
from tests.unit.codec_test import noise
from tests.unit.doctor_command_test import api_of
from tests.unit.host_kit import Site, site
from tests.unit.states_world import PASS, Office, states

ANSWER_BYTES_MAX = 6_291_556  # Lambda quota: the answer of an invocation
#: A text of which each character is eight in an answer: it is JSON in JSON in JSON.
QUOTES = '"' * 300_000


def answer_bytes(answer: Any) -> int:
    """Return as Lambda counts: the body is a text in the answer's JSON."""
    return len(json.dumps({"body": json.dumps(answer)}))


def whole(data: Any) -> tuple[Site, str]:
    """Return an execution with the data in each of its six events."""
    found = site(machine({"a": {"Type": "Pass", "Next": "b"}, "b": {"Type": "Pass", "End": True}}))
    run = found.shop.start(data)
    settle(found.shop.world)
    return found, run


def pages_of(found: Site, run: str, after: str | None = None) -> list[Any]:
    pages: list[Any] = []
    query = None if after is None else {"after": after}
    while True:
        status, page = found.request("GET", f"/executions/{run}/history", query=query)
        assert (status, page["execution"]) == (200, run)
        pages.append(page)
        if "next" not in page:
            return pages
        query = {"after": page["next"]}


def test_every_page_can_be_sent_and_together_they_hold_every_event_once() -> None:
    found, run = whole(QUOTES)
    pages = pages_of(found, run)
    assert len(pages) > 2
    assert max(map(answer_bytes, pages)) <= ANSWER_BYTES_MAX
    events = [event for page in pages for event in page["events"]]
    assert [event["id"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert {event["record"] for event in events} == {0}
    assert json.loads(events[-1]["executionSucceededEventDetails"]["output"]) == QUOTES


def test_an_event_between_two_pages_is_on_the_next_one() -> None:
    found = site(machine({"a": {"Type": "Pass", "Next": "b"}, "b": wait_for("paid")}))
    run = found.shop.start(QUOTES)
    settle(found.shop.world)
    first = found.request("GET", f"/executions/{run}/history")[1]
    found.shop.send_event()
    settle(found.shop.world)
    pages = [first, *pages_of(found, run, first["next"])]
    ids = [event["id"] for page in pages for event in page["events"] if "id" in event]
    assert ids == list(range(1, len(ids) + 1))
    assert pages[-1]["events"][-1]["type"] == "ExecutionSucceeded"


def test_the_command_follows_the_pages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, run = whole(QUOTES)
    monkeypatch.setattr(client, "connect", lambda *_, **__: api_of(found))
    assert cli.main(["history", run, "--json"]) == 0
    events = json.loads(capsys.readouterr().out)
    assert [event["id"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert cli.main(["history", run]) == 0
    assert "ExecutionSucceeded" in capsys.readouterr().out


def test_an_event_that_is_too_large_by_itself_is_shown_without_its_data() -> None:
    found, run = whole(noise(7_000_000))
    pages = pages_of(found, run)
    assert max(map(answer_bytes, pages)) <= ANSWER_BYTES_MAX
    events = [event for page in pages for event in page["events"]]
    assert [event["id"] for event in events] == [1, 2, 3, 4, 5, 6]
    entered = events[1]
    assert entered["stateEnteredEventDetails"] == {"name": "a"}
    assert entered["omitted"] == ["input"]


@pytest.mark.parametrize("after", ["", "x", "1", "1.", "-1.0", "1.0.0", "1.0 ", "9" * 16 + ".0"])
def test_a_page_can_only_continue_where_one_ended(after: str) -> None:
    found, run = whole(None)
    path = f"/executions/{run}/history"
    status, answer = found.request("GET", path, query={"after": after})
    assert (status, answer["error"]["code"]) == (400, "HF209")


@pytest.mark.parametrize("is_reversed", [False, True])
def test_aws_clients_get_pages_that_can_be_sent(is_reversed: bool) -> None:
    office = Office()
    passes = {f"S{number}": PASS for number in range(6)}
    execution = office.start(office.create(states(**passes)), QUOTES[:120_000])
    office.wait()
    found: list[int] = []
    request: dict[str, Any] = {"executionArn": execution, "reverseOrder": is_reversed}
    while True:
        answer = office.call("GetExecutionHistory", **request)
        assert answer_bytes(answer) <= ANSWER_BYTES_MAX
        found += [event["id"] for event in answer["events"]]
        if "nextToken" not in answer:
            break
        request["nextToken"] = answer["nextToken"]
    assert found == sorted(range(1, 15), reverse=is_reversed)


# -- the cost of a page ----------------------------------------------------------------------------


def looped(rounds: int) -> tuple[Shop, str]:
    """Return an execution that has run a task so often, and its id."""
    again = {"Condition": f"{{% $n < {rounds} %}}", "Next": "work"}
    work = call(
        "add", "again?", Arguments={"n": "{% $n %}"}, Assign={"n": "{% $states.result.n %}"}
    )
    states = {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "work"},
        "work": work,
        "again?": {"Type": "Choice", "Choices": [again], "Default": "done"},
        "done": {"Type": "Succeed"},
    }
    shop = Shop(machine(states))
    run = shop.start()
    shop.world.run()
    return shop, run


def reads_of(shop: Shop, handler: Any) -> tuple[float, Any]:
    before = shop.world.services.usage.read_units
    answer = shop.world.call(handler)
    return shop.world.services.usage.read_units - before, answer


def test_a_part_of_a_history_costs_the_same_at_any_place_and_length() -> None:
    def costs(rounds: int) -> list[float]:
        shop, run = looped(rounds)
        newest = reads_of(shop, backwards(shop.tenant, run, None))[0]
        oldest = reads_of(shop, Forwards(shop.tenant, run, 0).next())[0]
        inside = [
            reads_of(shop, part)[0]
            for first in range(1, rounds, rounds // 20)
            for part in (
                Forwards(shop.tenant, run, first).next(),
                backwards(shop.tenant, run, first),
            )
        ]
        return [newest, oldest, max(inside)]

    # Of a record: 0.2 read units. A snapshot is written after 16 KB: 4 units, and its own 8 KB.
    assert max(costs(80)) <= 12
    assert max(costs(800)) <= 12


def test_the_parts_of_a_history_are_the_whole() -> None:
    shop, run = looped(120)
    whole = shop.world.call(read_records(shop.tenant, run))
    assert [record.sequence for record in whole] == list(range(120))
    for first in (0, 1, 2, 40, 77, 118, 119, 120, 500):
        parts, found = Forwards(shop.tenant, run, first), []
        while records := shop.world.call(parts.next()):
            found += records
        assert found == whole[first:], first
    found, before = [], None
    while records := shop.world.call(backwards(shop.tenant, run, before)):
        found, before = records + found, records[0].sequence
    assert found == whole


def test_a_part_of_a_log_that_ttl_has_begun_to_delete_is_what_the_whole_log_shows() -> None:
    shop, run = looped(120)
    items = shop.world.services.items("executions")
    for item in items[:5]:
        shop.world.services.expire("executions", item)
    whole = shop.world.call(read_records(shop.tenant, run))
    assert whole[0].sequence > 5
    assert shop.world.call(Forwards(shop.tenant, run, 0).next()) == whole
    first = shop.world.call(backwards(shop.tenant, run, whole[1].sequence))
    assert first == whole[:1]
