"""An event name has one type in a deployment, and so has the name of a request."""

from __future__ import annotations

import pytest

from holdfast.errors import WorkflowError
from holdfast.local.stack import deployment_of
from tests.unit.cli_test import Project, holdfast

__all__ = ["holdfast"]

TYPES = """
from pydantic import BaseModel

from holdfast import receive, wait_for_event, workflow


class Size(BaseModel):
    size: int


class Colour(BaseModel):
    colour: str
"""
EVENT = """
@workflow
def {0}(key: str) -> None:
    wait_for_event("answer", {1}, key=key)
"""
REQUEST = """
@workflow
def {0}(key: str) -> None:
    with receive("answer", {1}, key=key) as request:
        request.reply(1)
"""


def refusal_of(holdfast: Project, *modules: str) -> str:
    """Return the refusal that check, compile and a local stack give alike."""
    assert holdfast("check", *modules) == 1
    checked = holdfast.printed
    assert holdfast("compile", *modules) == 1
    assert holdfast.printed == ""
    assert holdfast.complaints.strip() in checked
    with pytest.raises(WorkflowError) as refused:
        deployment_of(modules)
    assert str(refused.value) in checked
    return str(refused.value)


def test_two_types_of_an_event_are_refused_with_both_workflows(holdfast: Project) -> None:
    flows = EVENT.format("sizes", "Size") + EVENT.format("colours", "Colour")
    holdfast.module("answers", TYPES + flows)
    refusal = refusal_of(holdfast, "answers")
    assert "[HF162]: the event 'answer' is Size in sizes and Colour in colours" in refusal
    assert 'wait_for_event("answer", Size | Colour, key=…)' in refusal


def test_two_types_of_a_request_are_refused(holdfast: Project) -> None:
    flows = REQUEST.format("sizes", "Size") + REQUEST.format("names", "str")
    holdfast.module("askings", TYPES + flows)
    refusal = refusal_of(holdfast, "askings")
    assert "the request 'answer' is Size in sizes and str in names" in refusal
    assert 'receive("answer", Size | str, key=…)' in refusal


def test_types_of_one_name_in_two_modules_are_shown_with_their_modules(holdfast: Project) -> None:
    holdfast.module("here", TYPES + EVENT.format("sizes", "list[Size]"))
    holdfast.module("there", TYPES + EVENT.format("more_sizes", "list[Size]"))
    refusal = refusal_of(holdfast, "here", "there")
    assert "list[here.Size] in sizes and list[there.Size] in more_sizes" in refusal


def test_the_help_joins_what_both_workflows_take_to_one_union(holdfast: Project) -> None:
    flows = EVENT.format("sizes", "Size | Colour") + EVENT.format("colours", "Colour | None")
    holdfast.module("unions", TYPES + flows)
    refusal = refusal_of(holdfast, "unions")
    assert 'wait_for_event("answer", Size | Colour | None, key=…)' in refusal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Size", "Size"),
        ("Size | Colour | None", "None | Colour | Size"),
        ("dict[str, list[Size | Colour]]", "dict[str, list[Colour | Size]]"),
    ],
)
def test_equal_types_of_an_event_are_accepted(holdfast: Project, one: str, other: str) -> None:
    holdfast.module("equal", TYPES + EVENT.format("first", one) + EVENT.format("second", other))
    assert holdfast("check", "equal") == 0
    assert holdfast("compile", "equal") == 0
    deployment_of(["equal"])
