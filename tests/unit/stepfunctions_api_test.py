"""The door of the API, and the lists behind it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.stepfunctions.api import MODULES, OPERATIONS, function_name
from holdfast.stepfunctions.faults import StatesFault
from tests.thorough import examples
from tests.unit.states_kit import PASS, PLACE, ROLE, START_MS, Desk, definition


def test_an_operation_that_aws_has_not_is_refused() -> None:
    assert Desk().refusal("MakeCoffee")[0] == "UnknownOperationException"


def test_functions_are_named_after_their_operations() -> None:
    assert function_name("ListTagsForResource") == "list_tags_for_resource"
    assert len(OPERATIONS) == len({function_name(name) for name in OPERATIONS}) == 37


def test_times_are_seconds_with_milliseconds() -> None:
    desk = Desk()
    desk.clock.advance(234)
    arn = desk.create()

    described = desk.call("DescribeStateMachine", stateMachineArn=arn)
    assert described["creationDate"] == START_MS / 1_000 + 1.234
    (listed,) = desk.call("ListStateMachines")["stateMachines"]
    assert listed["creationDate"] == START_MS / 1_000 + 1.234


def test_requests_are_checked_before_anything_is_done() -> None:
    desk = Desk()

    assert desk.refusal("CreateStateMachine", name="m")[0] == "ValidationException"
    assert desk.services.effects.total() == 0


def test_lists_continue_where_they_ended() -> None:
    desk = Desk()
    for number in range(5):
        desk.create(f"m{number}", definition(str(number)))

    names: list[list[str]] = []
    token: dict[str, str] = {}
    for _ in range(3):
        page = desk.call("ListStateMachines", maxResults=2, **token)
        names.append([machine["name"] for machine in page["stateMachines"]])
        token = {"nextToken": page["nextToken"]} if "nextToken" in page else {}
    assert names == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert token == {}


def test_a_list_continues_after_a_deleted_item() -> None:
    desk = Desk()
    arns = [desk.create(f"m{number}") for number in range(4)]
    page = desk.call("ListStateMachines", maxResults=2)
    desk.call("DeleteStateMachine", stateMachineArn=arns[1])

    rest = desk.call("ListStateMachines", nextToken=page["nextToken"])["stateMachines"]
    assert [machine["name"] for machine in rest] == ["m2", "m3"]


@pytest.mark.parametrize("token", ["InvalidToken", "AAAA", "é", "=", "x" * 100])
def test_an_invented_page_token_is_refused(token: str) -> None:
    refusal = Desk().refusal("ListStateMachines", nextToken=token)

    assert refusal == ("InvalidToken", "Invalid Token: 'Invalid token'")


def test_a_token_of_another_list_or_tenant_is_refused() -> None:
    desk = Desk()
    for number in range(2):
        desk.create(f"m{number}")
    token = desk.call("ListStateMachines", maxResults=1)["nextToken"]
    other = Desk(tenant="acme", services=desk.services)

    assert other.refusal("ListStateMachines", nextToken=token)[0] == "InvalidToken"
    arn = desk.service.place.machine("m0")
    refusal = desk.refusal("ListStateMachineVersions", stateMachineArn=arn, nextToken=token)
    assert refusal[0] == "InvalidToken"


def test_tenants_do_not_see_each_other() -> None:
    desk = Desk()
    arn = desk.create()
    other = Desk(tenant="acme", services=desk.services)

    assert other.call("ListStateMachines")["stateMachines"] == []
    refusal = other.refusal("DescribeStateMachine", stateMachineArn=arn)
    assert refusal[0] == "StateMachineDoesNotExist"


# -- any request -----------------------------------------------------------------------------------

ARNS = [PLACE.machine("m"), PLACE.version("m", 1), PLACE.alias("m", "live"), PLACE.activity("a")]
MEMBERS = [
    "name",
    "definition",
    "roleArn",
    "type",
    "publish",
    "versionDescription",
    "stateMachineArn",
    "maxResults",
    "nextToken",
    "stateMachineVersionArn",
    "stateMachineAliasArn",
    "resourceArn",
    "routingConfiguration",
    "description",
    "loggingConfiguration",
    "tracingConfiguration",
    "encryptionConfiguration",
    "revisionId",
    "tagKeys",
    "tags",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KNOWN = st.sampled_from([*ARNS, ROLE, PASS, "m", "live", "EXPRESS", "ALL", "", "arn:aws:states"])
NAMES = st.sampled_from(["key", "value", "level", "type", "weight", "stateMachineVersionArn"])
VALUES = st.recursive(
    SCALARS | KNOWN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
MINE = [name for module in ("machines", "versions", "aliases", "tags") for name in MODULES[module]]
CALLS = st.tuples(
    st.sampled_from(MINE), st.dictionaries(st.sampled_from(MEMBERS), KNOWN | VALUES, max_size=6)
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(CALLS, max_size=4))
def test_any_request_is_answered_or_refused(calls: list[tuple[str, dict[str, Any]]]) -> None:
    desk = Desk()
    desk.create(publish=True)
    for operation, request in calls:
        try:
            assert isinstance(desk.call(operation, **request), dict)
        except StatesFault as fault:
            assert fault.code
            assert fault.message
