"""Bodies: plain JSON in UTF-8, of a bounded size and depth; anything else changes nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from holdfast.errors import RequestError
from holdfast.limits import (
    BODY_BYTES_MAX,
    BUSINESS_KEY_CHARACTERS_MAX,
    CAUSE_CHARACTERS_MAX,
    DEFINITION_BYTES_MAX,
    ERROR_CHARACTERS_MAX,
    EVENT_BYTES_MAX,
    JSON_DEPTH_MAX,
    NAME_CHARACTERS_MAX,
    PAYLOAD_BYTES_MAX,
    SQS_MESSAGE_BYTES_MAX,
    START_INPUT_BYTES_MAX,
    VALUE_BYTES_MAX,
)
from holdfast.runtime.effects import Send
from holdfast.runtime.storage import json_values
from tests.security.bodies import AROUND, BAD_VALUES, ENCODINGS, GOOD_VALUES, around
from tests.security.cases import Case, each, run_generated, time_limit
from tests.security.doors import Doors, opened
from tests.thorough import examples
from tests.unit.states_kit import PASS, ROLE


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: repr(value)[:40])
def test_a_value_that_cannot_be_kept_is_refused_at_every_door(value: bytes) -> None:
    doors = Doors()
    for path in AROUND:
        status, answer = doors.http("POST", path, around(path, value))
        assert (status, answer["error"]["code"]) in {(400, "HF242"), (400, "HF243")}
        assert doors.seen == []


@pytest.mark.parametrize("value", GOOD_VALUES, ids=lambda value: repr(value)[:40])
def test_a_strange_value_that_is_json_is_kept_as_it_is(value: bytes) -> None:
    doors = Doors()
    status, answer = doors.http("POST", "/executions", around("/executions", value))
    assert status == 201
    doors.site.work()
    shown = doors.http("GET", f"/executions/{answer['execution']}")[1]

    assert shown["input"] == json.loads(value)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_body_in_another_encoding_is_refused(encoding: str) -> None:
    doors = Doors()
    raw = around("/executions", b"1").decode().encode(encoding)

    assert doors.http("POST", "/executions", raw)[1]["error"]["code"] == "HF242"
    status, answer = doors.states("ListStateMachines", "{}".encode(encoding))
    assert (status, answer["__type"]) == (400, "SerializationException")


@each(
    Case("null", b"null", "HF242"),
    Case("a list", b"[]", "HF242"),
    Case("text", b'"{}"', "HF242"),
    Case("two bodies", b"{}{}", "HF242"),
    Case("lines of JSON", b"{}\n{}", "HF242"),
    Case("a form", b"workflow=flow&input=1", "HF242"),
    Case("XML", b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "HF242"),
    Case("YAML", b"workflow: flow", "HF242"),
    Case("a pickle", b"\x80\x04\x95\x10\x00\x00\x00", "HF242"),
    Case("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "HF242"),
    Case("the workflow twice", b'{"workflow": "flow", "workflow": "flow", "input": 1}', "HF242"),
    Case("100,000 levels", around("/executions", b"[" * 100_000 + b"]" * 100_000), "HF242"),
    Case("1,000,000 keys", b"{%b}" % b",".join(b'"%d":1' % n for n in range(10**6)), "HF241"),
    Case("10 MB of text", around("/executions", b'"%b"' % (b"x" * 10**7)), "HF241"),
    Case("a number of 100,000 digits", around("/executions", b"1" * 100_000), "HF242"),
)
def test_a_malformed_body_of_a_request_is_refused_within_a_second(case: Case) -> None:
    doors = Doors()
    with time_limit():
        answer = doors.http("POST", "/executions", case.given)[1]

    assert answer["error"]["code"] == case.code
    assert doors.seen == []


def test_a_body_is_measured_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr("holdfast.aws.bodies.parse_json_once", read.append)
    doors = Doors()

    assert doors.http("POST", "/executions", b"x" * (BODY_BYTES_MAX + 1))[0] == 413
    assert doors.http("POST", "/executions", b"\xff" * (BODY_BYTES_MAX + 1))[0] == 413
    assert read == []


# -- sizes, one byte around each bound -------------------------------------------------------------


def text_of(size: int, unit: str = "x") -> str:
    """Return JSON text of exactly so many bytes in UTF-8."""
    count, rest = divmod(size - 2, len(unit.encode()))
    return f'"{unit * count}{"x" * rest}"'


UNITS = ("x", "\u00e9", "\u20ac", "\U0001f600")


@pytest.mark.parametrize("unit", UNITS)
def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not(unit: str) -> None:
    doors = Doors()
    before, after = AROUND["/executions"]
    room = BODY_BYTES_MAX - len(before) - len(after)
    for over, status in ((-1, 201), (0, 201), (1, 413)):
        raw = before + text_of(room + over, unit).encode() + after
        assert len(raw) == BODY_BYTES_MAX + over
        assert doors.http("POST", "/executions", raw)[0] == status


def test_a_body_in_base64_is_decoded() -> None:
    doors = Doors()
    raw = b'{"workflow": "none", "input": "%b"}'
    for size, code in ((1_000, "HF205"), (BODY_BYTES_MAX, "HF241")):
        encoded = base64.b64encode(raw % (b"x" * size)).decode()
        fields: Any = {"isBase64Encoded": True}
        answer = doors.site.request("POST", "/executions", encoded, **fields)[1]
        assert answer["error"]["code"] == code


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_input_of_a_state_machine_is_bounded_in_bytes(unit: str, over: int) -> None:
    shop = opened(Doors())
    text = text_of(PAYLOAD_BYTES_MAX + over, unit)
    assert len(text.encode()) == PAYLOAD_BYTES_MAX + over
    request = {"stateMachineArn": shop.machine_arn, "input": text}
    status, answer = shop.doors.states("StartExecution", request)

    assert status == (400 if over > 0 else 200)
    if over > 0:
        assert answer["__type"] == "ValidationException"
        assert shop.doors.wrote() == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_an_escape_counts_as_it_is_written(over: int) -> None:
    shop = opened(Doors())
    text = '"' + "\\u0041" * 43_690 + "x" * (PAYLOAD_BYTES_MAX + over - 2 - 6 * 43_690) + '"'
    assert len(text) == PAYLOAD_BYTES_MAX + over
    request = {"stateMachineArn": shop.machine_arn, "input": text}

    assert shop.doors.states("StartExecution", request)[0] == (400 if over > 0 else 200)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_an_event_is_bounded(over: int) -> None:
    doors = Doors()
    body = {"name": "paid", "key": "k", "data": "x" * (EVENT_BYTES_MAX - 2 + over)}
    status, answer = doors.http("POST", "/events", body)

    assert status == (413 if over > 0 else 200)
    if over > 0:
        assert answer["error"]["code"] == "HF203"
        assert doors.wrote() == []


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_large_input_travels_beside_its_message_which_stays_below_the_bound_of_sqs(
    over: int,
) -> None:
    doors = Doors()
    data = "x" * (START_INPUT_BYTES_MAX - 2 + over)
    status, answer = doors.http("POST", "/executions", {"workflow": "flow", "input": data})
    (message,) = [m for one in doors.wrote() if isinstance(one, Send) for m in one.messages]
    assert status == 201
    assert len(json.dumps(dict(message.body)).encode()) < SQS_MESSAGE_BYTES_MAX
    assert bool(doors.services.blobs()) == (over > 0)
    doors.site.work()
    assert doors.http("GET", f"/executions/{answer['execution']}")[1]["input"] == data


@each(
    Case("64 levels", (JSON_DEPTH_MAX, "x"), ""),
    Case("65 levels", (JSON_DEPTH_MAX + 1, "x"), "HF243"),
)
def test_the_depth_of_a_value_is_bounded(case: Case) -> None:
    levels, what = case.given
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    if not case.code:
        json_values.plain_text(value, what)
        return
    with pytest.raises(RequestError, match=case.code):
        json_values.plain_text(value, what)


@pytest.mark.parametrize("unit", UNITS)
def test_a_value_is_bounded_in_bytes(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert VALUE_BYTES_MAX > BODY_BYTES_MAX
    monkeypatch.setattr(json_values, "VALUE_BYTES_MAX", 1_000)
    assert json_values.plain_text(json.loads(text_of(1_000, unit)), "it")
    with pytest.raises(RequestError, match="HF244"):
        json_values.plain_text(json.loads(text_of(1_001, unit)), "it")


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_name_a_key_and_a_definition_are_bounded(over: int) -> None:
    doors = Doors()
    name, key = "n" * (NAME_CHARACTERS_MAX + over), "k" * (BUSINESS_KEY_CHARACTERS_MAX + over)
    start = {"workflow": "flow", "input": 1, "name": name}
    text = PASS + " " * (DEFINITION_BYTES_MAX - len(PASS) + over)
    create = {"name": "m", "definition": text, "roleArn": ROLE}
    refused = over > 0

    assert doors.http("POST", "/executions", start)[0] == (400 if refused else 201)
    assert doors.http("POST", "/events", {"name": "paid", "key": key})[0] == (
        400 if refused else 200
    )
    assert doors.states("CreateStateMachine", create)[0] == (400 if refused else 200)


def test_the_words_of_a_stop_are_cut_to_the_lengths_of_aws() -> None:
    shop = opened(Doors())
    words = {"error": "e" * (ERROR_CHARACTERS_MAX + 1), "cause": "c" * (CAUSE_CHARACTERS_MAX + 1)}
    assert shop.doors.http("POST", f"/executions/{shop.run}/stop", words)[0] == 200
    shop.doors.site.work()
    shown = shop.doors.http("GET", f"/executions/{shop.run}")[1]

    assert (len(shown["error"]), len(shown["cause"])) == (256, 32_768)


@each(
    Case("an error over 256", {"error": "e" * 257}, "ValidationException"),
    Case("a cause over 32,768", {"error": "e", "cause": "c" * 32_769}, "ValidationException"),
)
def test_the_words_of_a_failure_are_bounded_as_by_aws(case: Case) -> None:
    shop = opened(Doors())
    status, answer = shop.doors.states("SendTaskFailure", {"taskToken": shop.token, **case.given})

    assert (status, answer["__type"]) == (400, case.code)
    assert shop.doors.wrote() == []


def test_generated_payloads_are_refused_or_kept() -> None:
    tally = run_generated("payloads", examples(500), seed=1)

    assert tally.refused > examples(100)
    assert tally.accepted > examples(60)
