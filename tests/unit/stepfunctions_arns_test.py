"""Names of the API, taken apart and put together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stepfunctions.arns import (
    ActivityArn,
    ArnRegion,
    ExecutionArn,
    MachineArn,
    MapRunArn,
    parse_activity_arn,
    parse_arn,
    parse_execution_arn,
    parse_machine_arn,
    parse_map_run_arn,
    require_name,
    require_role_arn,
)
from holdfast.stepfunctions.faults import StatesFault

PLACE = ArnRegion("eu-west-1", "123456789012")
BASE = "arn:aws:states:eu-west-1:123456789012"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"{BASE}:stateMachine:m", MachineArn(f"{BASE}:stateMachine:m", PLACE, "m")),
        (f"{BASE}:stateMachine:m:7", MachineArn(f"{BASE}:stateMachine:m:7", PLACE, "m", "7")),
        (f"{BASE}:stateMachine:m/L", MachineArn(f"{BASE}:stateMachine:m/L", PLACE, "m", None, "L")),
        (f"{BASE}:execution:m:e", ExecutionArn(f"{BASE}:execution:m:e", PLACE, "m", "e")),
        (f"{BASE}:execution:m/L:e", ExecutionArn(f"{BASE}:execution:m/L:e", PLACE, "m", "e", "L")),
        (
            f"{BASE}:express:m:e:u",
            ExecutionArn(f"{BASE}:express:m:e:u", PLACE, "m", "e", None, "u"),
        ),
        (f"{BASE}:mapRun:m/L:u", MapRunArn(f"{BASE}:mapRun:m/L:u", PLACE, "m", "L", "u")),
        (f"{BASE}:activity:a", ActivityArn(f"{BASE}:activity:a", PLACE, "a")),
    ],
)
def test_an_arn_names_one_thing(text: str, named: object) -> None:
    assert parse_arn(text) == named


def test_an_arn_is_read_back_into_its_parts() -> None:
    assert parse_machine_arn(PLACE.version("m", 12)).version == 12
    assert parse_machine_arn(PLACE.alias("m", "live")).alias == "live"
    assert parse_machine_arn(PLACE.machine("m")).qualifier is None
    assert parse_execution_arn(PLACE.execution("m", "e", "L")).label == "L"
    assert parse_execution_arn(PLACE.express("m", "e", "u")).express == "u"
    assert parse_map_run_arn(PLACE.map_run("m", "L", "u")).identifier == "u"
    assert parse_activity_arn(PLACE.activity("a")).name == "a"


def test_an_alias_may_begin_with_a_digit_and_is_no_version() -> None:
    arn = parse_machine_arn(PLACE.alias("m", "2nd"))

    assert (arn.version, arn.alias) == (None, "2nd")


def test_other_partitions_and_accounts_are_read() -> None:
    arn = parse_machine_arn("arn:aws-cn:states:cn-north-1:210987654321:stateMachine:m")

    assert arn.place == ArnRegion("cn-north-1", "210987654321", "aws-cn")
    assert arn.place.machine("m") == arn.text


def test_a_text_that_does_not_begin_as_an_arn_is_refused_in_aws_words() -> None:
    with pytest.raises(StatesFault) as refusal:
        parse_machine_arn("not_a_valid_arn")

    assert refusal.value.code == "InvalidArn"
    assert refusal.value.message == "Invalid Arn: 'Invalid ARN prefix: not_a_valid_arn'"


@pytest.mark.parametrize(
    "text",
    [
        "arn:",
        "arn:aws:states",
        f"{BASE}:activity:a",
        f"{BASE}:stateMachine:",
        f"{BASE}:stateMachine:m:1:2",
        f"{BASE}:stateMachine:m:",
        "arn:aws:lambda:eu-west-1:123456789012:function:f",
    ],
)
def test_an_arn_of_no_state_machine_is_refused(text: str) -> None:
    with pytest.raises(StatesFault) as refusal:
        parse_machine_arn(text)

    assert refusal.value.code == "InvalidArn"


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, f"arn:{text}", f"{BASE}:{text}", f"{BASE}:execution:{text}"):
        try:
            parse_arn(whole)
        except StatesFault as fault:
            assert fault.code == "InvalidArn"


@pytest.mark.parametrize(
    "name", ["a", "a-b_c.d", "2", "été", "名前", "a" * 80, "e\u0301", "a+b=c@d!"]
)
def test_names_of_every_script_are_allowed(name: str) -> None:
    assert require_name(name) == name


@pytest.mark.parametrize(
    "character", list(' <>{}[]?*"#%\\^|~`$&,;:/\t\n\x00\x1f\x7f\x9f\uffff\u00a0')
)
def test_characters_with_a_meaning_elsewhere_are_refused_in_names(character: str) -> None:
    with pytest.raises(StatesFault) as refusal:
        require_name(f"a{character}b")

    assert refusal.value.code == "InvalidName"
    assert refusal.value.message == f"Invalid Name: 'a{character}b'"


@pytest.mark.parametrize("name", ["", "a" * 81])
def test_names_have_1_to_80_characters(name: str) -> None:
    with pytest.raises(StatesFault):
        require_name(name)


def test_a_role_is_one_of_iam() -> None:
    assert require_role_arn("arn:aws:iam::123456789012:role/path/clerk")
    for text in ("clerk", "arn:aws:iam::123456789012:user/clerk", "arn:aws:iam::1:role/x"):
        with pytest.raises(StatesFault) as refusal:
            require_role_arn(text)
        assert refusal.value.message == f"Invalid Role Arn: '{text}'"
