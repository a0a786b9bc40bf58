"""Names, ids and keys: a small grammar; accepted names are stored letter by letter."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.security.cases import Case, each, run_generated
from tests.security.doors import Doors, opened
from tests.security.names import claimed, is_states_name
from tests.thorough import examples
from tests.unit.states_kit import PASS, PLACE, ROLE

RUN = "01mcc5rm00c11m9b84x6hyyrwt"

REFUSED = (
    Case("nothing", "", "HF201"),
    Case("81 characters", "x" * 81, "HF201"),
    Case("10,000 characters", "x" * 10_000, "HF201"),
    Case("a slash", "a/b", "HF201"),
    Case("this folder", ".", "HF201"),
    Case("the folder above", "..", "HF201"),
    Case("a way out", "../../etc/passwd", "HF201"),
    Case("a backslash", "a\\b", "HF201"),
    Case("NUL", "a\x00b", "HF201"),
    Case("a line feed at the end", "order-1\n", "HF201"),
    Case("a second log line", 'a\r\n{"level": "INFO"}', "HF201"),
    Case("a tab", "a\tb", "HF201"),
    Case("a blank", "a b", "HF201"),
    Case("blanks around", " order-1 ", "HF201"),
    Case("a terminal's command", "\x1b[2J", "HF201"),
    Case("right to left", "a\u202eb", "HF201"),
    Case("no width", "order\u200b-1", "HF201"),
    Case("a byte order mark", "\ufefforder-1", "HF201"),
    Case("a line separator", "a\u2028b", "HF201"),
    Case("a homoglyph", "\u043erder-1", "HF201"),
    Case("full width", "\uff4frder-1", "HF201"),
    Case("the kelvin sign", "\u212a", "HF201"),
    Case("a dotless i", "\u0131", "HF201"),
    Case("composed", "caf\u00e9", "HF201"),
    Case("decomposed", "cafe\u0301", "HF201"),
    Case("digits of another script", "\u0661\u0662", "HF201"),
    Case("an emoji", "\U0001f600", "HF201"),
    Case("half a surrogate pair", "\ud800", "HF243"),
    Case("the separator of keys", "a#b", "HF201"),
    Case("a key of another kind", "x#in#run", "HF201"),
    Case("the sweeper's mark", "~due#1", "HF201"),
    Case("a percent sign", "%2e%2e", "HF201"),
    Case("a wildcard", "*", "HF201"),
    Case("a quote", "a'b", "HF201"),
    Case("a formula", "=1+1", "HF201"),
    Case("markup", "<b>", "HF201"),
    Case("a number", 5, "HF201"),
    Case("true", True, "HF201"),
    Case("a list", ["a"], "HF201"),
    Case("an object", {"S": "a"}, "HF201"),
    Case("the form of an id", RUN, "HF201"),
    Case("the form of a child's id", f"{RUN}.0.1", "HF201"),
)


@each(*REFUSED)
def test_a_name_out_of_the_grammar_is_refused_and_leaves_nothing(case: Case) -> None:
    doors = Doors()
    body = {"workflow": "flow", "input": 1, "name": case.given}
    status, answer = doors.http("POST", "/executions", body)

    assert (status, answer["error"]["code"]) == (400, case.code)
    assert len(answer["error"]["message"]) < 500
    assert doors.wrote() == []


@pytest.mark.parametrize("name", ["a", "x" * 80, "-", "_", "...", "a.b", "A-b_c.9"])
@pytest.mark.parametrize("word", ["", "select", "ttl", "None", "null", "__proto__", "CON"])
def test_a_name_in_the_grammar_is_kept_as_it_is(name: str, word: str) -> None:
    doors, chosen = Doors(), word or name
    body = {"workflow": "flow", "input": 1, "name": chosen}

    assert doors.http("POST", "/executions", body)[0] == 201
    assert f"default#n#flow#{chosen}" in claimed(doors)
    doors.site.work()
    assert doors.http("GET", f"/executions/{quote(chosen)}")[1]["name"] == chosen


def test_names_that_differ_in_case_are_different() -> None:
    doors = Doors()
    runs = {
        doors.http("POST", "/executions", {"workflow": "flow", "input": 1, "name": name})[1][
            "execution"
        ]
        for name in ("order", "Order", "ORDER")
    }

    assert len(runs) == 3


# -- ids in a path ---------------------------------------------------------------------------------


@each(
    Case("an id that was never minted", RUN, "HF207"),
    Case("its upper case", RUN.upper(), "HF207"),
    Case("a child of nobody", f"{RUN}.0.1", "HF207"),
    Case("a child in other digits", f"{RUN}.\u0661.1", "HF207"),
    Case("a child with a zero before", f"{RUN}.00.1", "HF207"),
    Case("half a child", f"{RUN}.0", "HF207"),
    Case("a child of a long number", f"{RUN}.{'9' * 5_000}.1", "HF201"),
    Case("a very deep child", RUN + ".0.1" * 2_000, "HF201"),
    Case("a child too deep for a key", RUN + ".0.1" * 250, "HF201"),
    Case("a separator", f"{RUN}#w", "HF208"),
)
def test_an_id_that_names_nothing_is_not_found(case: Case) -> None:
    doors = Doors()
    for method, end in (("GET", ""), ("GET", "/history"), ("POST", "/stop")):
        target = f"/executions/{quote(case.given, safe='')}{end}"
        status, answer = doors.http(method, target, {} if method == "POST" else b"")
        assert (status, answer["error"]["code"]) in {(404, case.code), (400, case.code)}
        assert doors.wrote() == []


def test_a_child_that_its_parent_does_not_wait_for_is_not_found() -> None:
    shop = opened(Doors())
    for child in (".0.1", ".1.1", ".2.1", ".2.1.0.0", ".000000001.1", ".2.999999999"):
        status, answer = shop.doors.http("POST", f"/executions/{shop.run}{child}/stop", {})
        assert (status, answer["error"]["code"]) in {(404, "HF207"), (400, "HF201")}
        assert shop.doors.wrote() == []


# -- keys of events --------------------------------------------------------------------------------


@each(
    Case("nothing", "", "HF202"),
    Case("1,025 characters", "k" * 1_025, "HF202"),
    Case("a number", 5, "HF202"),
    Case("null", None, "HF202"),
    Case("a list", ["k"], "HF202"),
    Case("half a surrogate pair", "\ud800", "HF243"),
)
def test_a_business_key_that_is_no_text_is_refused(case: Case) -> None:
    doors = Doors()
    body = {"name": "paid", "key": case.given, "data": 1}
    status, answer = doors.http("POST", "/events", body)

    assert (status, answer["error"]["code"]) == (400, case.code)
    assert doors.wrote() == []


def test_keys_that_look_alike_are_not_the_same() -> None:
    doors = Doors()
    odd = ["k", "K", "k ", "k\n", "k\x00", "\u043a", "k#", "#k", "e\u0301", "\u00e9", "\u202ek"]
    partitions = []
    for key in odd:
        assert doors.http("POST", "/events", {"name": "paid", "key": key, "data": 1})[0] == 200
        partitions += claimed(doors)
    assert len(set(partitions)) == len(odd)


# -- names of Step Functions -----------------------------------------------------------------------


@each(
    Case("nothing", "", "ValidationException"),
    Case("81 characters", "x" * 81, "ValidationException"),
    Case("a number", 5, "SerializationException"),
    Case("a list", [], "SerializationException"),
    Case("half a surrogate pair", "\udfff", "SerializationException"),
    *(
        Case(f"{ord(sign):x}", f"a{sign}b", "InvalidName")
        for sign in '/#%:~\\$\n\x00\x1b "*?\u2028'
    ),
)
def test_a_name_that_aws_does_not_take_is_refused(case: Case) -> None:
    doors = Doors()
    machine = {"name": case.given, "definition": PASS, "roleArn": ROLE}
    for operation, request in (("CreateStateMachine", machine), ("CreateActivity", machine)):
        status, answer = doors.states(operation, request)
        assert (status, answer["__type"]) == (400, case.code)
        assert doors.wrote() == []


@pytest.mark.parametrize(
    "name", ["caf\u00e9", "cafe\u0301", "\u043erder", "\U0001f600", "..", "ttl"]
)
def test_a_name_that_aws_takes_is_kept_letter_by_letter(name: str) -> None:
    doors = Doors()
    machine = {"name": name, "definition": PASS, "roleArn": ROLE}

    assert is_states_name(name)
    assert doors.states("CreateStateMachine", machine)[0] == 200
    listed = doors.states("ListStateMachines", {})[1]["stateMachines"]
    assert name in {machine["name"] for machine in listed}


ARN = f"arn:aws:states:{PLACE.region}:{PLACE.account}"
FOREIGN: list[Any] = [
    f"{ARN}:execution:desk#n:first", f"{ARN}:execution:desk:first#x", f"{ARN}:execution:desk:../x",
    f"{ARN}:execution:desk:{RUN}-0-1", f"{ARN}:execution:desk:FIRST",
    f"{ARN}:execution:desk:first ",
    f"arn:aws:states:eu-west-2:{PLACE.account}:execution:desk:first",
    f"arn:aws:states:{PLACE.region}:999999999999:execution:desk:first",
    f"arn:aws-cn:states:{PLACE.region}:{PLACE.account}:execution:desk:first",
]  # fmt: skip


@pytest.mark.parametrize("arn", FOREIGN)
def test_an_arn_of_something_else_finds_nothing(arn: str) -> None:
    shop = opened(Doors())
    for operation in ("DescribeExecution", "StopExecution", "RedriveExecution"):
        status, answer = shop.doors.states(operation, {"executionArn": arn})
        assert (status, answer["__type"]) == (400, "ExecutionDoesNotExist")
        assert shop.doors.wrote() == []


def test_generated_names_are_refused_or_kept() -> None:
    tally = run_generated("ids", examples(1_500), seed=1)

    assert tally.refused > examples(500)
    assert tally.accepted > examples(200)
