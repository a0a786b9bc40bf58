"""Tags through the API's door."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.driver import run
from holdfast.runtime.effects import Effect, PutIfAbsent, Replace
from holdfast.stepfunctions.catalogue import Activity, activity_item
from holdfast.stepfunctions.faults import StatesFault
from tests.unit.states_kit import PLACE, ROLE, Desk, definition


def tags(**values: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def tagged(desk: Desk, arn: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = desk.call("ListTagsForResource", resourceArn=arn)["tags"]
    return found


def test_tags_come_back_in_the_order_they_were_given() -> None:
    desk = Desk()
    arn = desk.create(tags=tags(b="1", a="2"))

    assert tagged(desk, arn) == tags(b="1", a="2")
    desk.call("TagResource", resourceArn=arn, tags=[*tags(c=""), *tags(b="3")])
    assert tagged(desk, arn) == tags(b="3", a="2", c="")


def test_tags_are_taken_away_by_key_and_unknown_keys_are_no_error() -> None:
    desk = Desk()
    arn = desk.create(tags=tags(a="1", b="2"))

    desk.call("UntagResource", resourceArn=arn, tagKeys=["a", "a", "z"])
    desk.call("UntagResource", resourceArn=arn, tagKeys=[])
    assert tagged(desk, arn) == tags(b="2")


def test_an_update_keeps_the_tags() -> None:
    desk = Desk()
    arn = desk.create(tags=tags(a="1"))
    desk.call("UpdateStateMachine", stateMachineArn=arn, definition=definition("2"))

    assert tagged(desk, arn) == tags(a="1")
    assert "revisionId" in desk.call("DescribeStateMachine", stateMachineArn=arn)


def test_activities_have_tags_too() -> None:
    desk = Desk()
    desk.services.perform(PutIfAbsent("mail", activity_item("default", Activity("a", 5))))
    arn = PLACE.activity("a")
    desk.call("TagResource", resourceArn=arn, tags=tags(a="1"))

    assert tagged(desk, arn) == tags(a="1")


@pytest.mark.parametrize("suffix", [":1", ":live", "-2"])
def test_a_resource_that_is_no_machine_has_no_tags(suffix: str) -> None:
    desk = Desk()
    arn = desk.create(publish=True) + suffix

    assert desk.refusal("TagResource", resourceArn=arn, tags=tags(a="1")) == (
        "ResourceNotFound",
        f"Resource not found: '{arn}'",
    )
    assert desk.refusal("ListTagsForResource", resourceArn=arn)[0] == "ResourceNotFound"
    assert desk.refusal("UntagResource", resourceArn=arn, tagKeys=["a"])[0] == "ResourceNotFound"


def test_a_resource_has_at_most_50_tags() -> None:
    desk = Desk()
    many = [{"key": f"k{number}", "value": ""} for number in range(51)]
    request = {"name": "m", "definition": definition("x"), "roleArn": ROLE}

    assert desk.refusal("CreateStateMachine", tags=many, **request)[0] == "TooManyTags"
    arn = desk.create(tags=many[:50])
    assert desk.refusal("TagResource", resourceArn=arn, tags=many[50:])[0] == "TooManyTags"
    desk.call("TagResource", resourceArn=arn, tags=tags(k0="again"))


def test_a_tag_without_a_key_is_refused_with_its_place() -> None:
    """The API's model does not call the key required."""
    code, message = Desk().refusal(
        "CreateActivity", name="a", tags=[{"key": "k", "value": "v"}, {"value": "v"}]
    )
    assert code == "ValidationException"
    assert "Value null at 'tags.2.member.key'" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a b_c.d:e/f=g+h-i@j", "ü 9\t"),
        ("naws:x", "aws:x"),
        ("k" * 128, "v" * 256),
    ],
)
def test_a_tag_may_have_these_characters(key: str, value: str) -> None:
    desk = Desk()
    arn = desk.create(tags=tags(**{key: value}))
    assert tagged(desk, arn) == tags(**{key: value})


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("a*", "v", "tags.1.member.key"),
        ("a", "v<b>", "tags.1.member.value"),
        ("aws:a", "v", "tags.1.member.key"),
        ("AWS:a", "v", "tags.1.member.key"),
    ],
)
def test_a_tag_with_another_character_is_refused(key: str, value: str, place: str) -> None:
    desk = Desk()
    arn = desk.create()
    code, message = desk.refusal("TagResource", resourceArn=arn, tags=tags(**{key: value}))
    assert code == "ValidationException"
    given = key if place.endswith("key") else value
    assert message.startswith(f"1 validation error detected: Value '{given}' at '{place}' failed")
    assert desk.refusal("CreateActivity", name="a", tags=tags(**{key: value}))[0] == code


@pytest.mark.parametrize("kind", ["machine", "activity"])
def test_a_tag_that_never_gets_its_turn_is_throttled(kind: str) -> None:
    desk = Desk()
    arn = desk.create() if kind == "machine" else desk.call("CreateActivity", name="a")
    resource = arn if kind == "machine" else PLACE.activity("a")

    def perform(effect: Effect) -> Any:
        return False if isinstance(effect, Replace) else desk.services.perform(effect)

    request = {"resourceArn": resource, "tags": tags(a="1")}
    with pytest.raises(StatesFault, match="ThrottlingException"):
        run(desk.api.call("TagResource", request, bytes(16)), perform)
