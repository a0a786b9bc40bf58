"""Signed links: a page shows a question, its form answers it; nothing else opens it."""

from __future__ import annotations

import html.parser
from enum import Enum
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import BaseModel, TypeAdapter

from holdfast.aws.forms import answer_of
from tests.unit.questions_test import Desk

EVIL = "<script>alert(1)</script>"


class Rate(Enum):
    LOW = "low"
    HIGH = "high"


class Decision(BaseModel):
    approved: bool
    rate: Rate
    amount: int
    share: float | None = None
    note: str = ""
    tags: list[str] = []


SCHEMA = TypeAdapter(Decision).json_schema()


class Link:
    """The link to the only open question of a desk."""

    def __init__(self, **fields: Any) -> None:
        arguments = {"title": EVIL, "assignee": "ada", "details": {"text": EVIL}}
        self.desk = Desk(Arguments=arguments, **fields)
        (question,) = self.desk.ask("order-1")
        self.token = self.desk.get(f"/questions/{question}")["token"]

    def open(self, token: str = "") -> tuple[int, str]:
        return self._send("GET", token, "")

    def submit(self, token: str = "", **fields: str) -> tuple[int, str]:
        answered = self._send("POST", token, urlencode(fields))
        self.desk.pass_seconds(5)
        return answered

    def _send(self, method: str, token: str, body: str) -> tuple[int, str]:
        path = f"/forms/{token or self.token}"
        http = {"method": method, "path": path}
        event = {"rawPath": path, "body": body, "requestContext": {"http": http}}
        answer = self.desk.site.api(event, None)
        assert answer["headers"]["Content-Type"].startswith("text/html")
        assert "script-src" not in answer["headers"]["Content-Security-Policy"]
        return answer["statusCode"], answer["body"]


class Tags(html.parser.HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


def test_opening_a_link_shows_the_question_and_changes_nothing() -> None:
    link = Link()
    before = list(link.desk.shop.world.services.items("mail"))
    for _ in range(3):
        status, page = link.open()
        assert status == 200
    assert "textarea" in Tags(page).found
    assert "script" not in Tags(page).found  # what a workflow says is text
    assert list(link.desk.shop.world.services.items("mail")) == before


def test_a_form_answers_once() -> None:
    link = Link()
    assert link.submit(answer="[1]")[0] == 200
    history = link.desk.get("/executions/order-1/history")["events"]
    (answered,) = (event for event in history if event["type"] == "TaskSucceeded")
    assert answered["taskSucceededEventDetails"]["output"] == "[1]"
    assert answered["holdfast"]["by"] == "link"
    assert link.submit(answer="[1]")[0] == 410
    assert link.open()[0] == 410


def test_a_forged_link_is_refused_and_says_nothing_about_the_question() -> None:
    link = Link()
    for token in ("x", link.token[:-2] + "AA", link.token + "A"):
        status, page = link.open(token)
        assert status == 403
        assert "Approve" not in page
        assert link.submit(token, answer="1")[0] == 403


def test_an_expired_link_is_refused() -> None:
    link = Link(TimeoutSeconds=60)
    link.desk.shop.world.now_ms += 61_000
    assert link.open()[0] == 403
    assert link.submit(answer="1")[0] == 403


def test_text_that_is_no_value_of_the_type_comes_back_with_the_reason() -> None:
    status, page = Link().submit(answer="not json")
    assert status == 422
    assert "this is not JSON" in page
    assert "not json" in page


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (
            {"approved": "true", "rate": "high", "amount": "3", "note": "", "tags": '["a"]'},
            {"approved": True, "rate": "high", "amount": 3, "tags": ["a"]},
        ),
        (
            {"approved": "false", "rate": "low", "amount": "-1", "share": "0.5"},
            {"approved": False, "rate": "low", "amount": -1, "share": 0.5},
        ),
    ],
)
def test_a_form_of_a_model_becomes_its_json(given: dict[str, str], value: Any) -> None:
    assert answer_of(SCHEMA, given) == value
    assert Decision.model_validate(value)


@pytest.mark.parametrize(
    "given",
    [
        {"approved": "true", "rate": "low", "amount": "three"},
        {"rate": "low", "amount": "3"},
        {"approved": "true", "rate": "low", "amount": "3", "tags": "["},
    ],
)
def test_a_form_that_is_not_filled_in_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"amount|approved|tags"):
        answer_of(SCHEMA, given)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [(bool, "true", True), (str, "yes", "yes"), (int, "4", 4), (list[int], "[4]", [4])],
)
def test_an_answer_that_is_one_value_has_one_field(type_: Any, text: str, value: Any) -> None:
    assert answer_of(TypeAdapter(type_).json_schema(), {"answer": text}) == value
