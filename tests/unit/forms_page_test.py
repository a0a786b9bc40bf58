"""The pages of forms as a browser gets them, and the bodies as API Gateway sends them."""

from __future__ import annotations

import base64
import datetime as dt
import re
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from holdfast.aws.forms import answer_of, form_handler
from holdfast.errors import HoldfastError, RequestError, ServiceFault
from holdfast.limits import BODY_BYTES_MAX


class Rate(Enum):
    LOW = "low"
    HIGH = "<high>"


class Place(BaseModel):
    street: str


class Everything(BaseModel):
    approved: bool
    rate: Rate = Rate.HIGH
    amount: int = Field(title="Amount & more")
    share: float | None = 0.5
    day: dt.date
    note_to_all: str = '"hello"'
    tags: list[str] = ["ä"]
    place: Place | None = None
    several: int | str = 1


def schema(type_: Any) -> Any:
    return TypeAdapter(type_).json_schema()


REQUEST = {
    "rawPath": "/forms/T",
    "requestContext": {"http": {"method": "GET", "path": "/forms/T"}},
}


class Page:
    """The handler before a front that shows one question and takes its answers."""

    def __init__(self, type_: Any = Everything, **question: Any) -> None:
        self.submitted: list[tuple[str, Any]] = []
        self.faults: list[tuple[str, Exception]] = []
        self.refuses: Exception | None = None
        shown = {"title": "Approve <e1>?", "details": None, "schema": schema(type_), **question}

        def perform(made: Any) -> Any:
            if made == "form T":
                return shown
            if self.refuses is not None:
                raise self.refuses
            self.submitted.append(made)
            return None

        self.host: Any = SimpleNamespace(
            front=SimpleNamespace(
                form=lambda token: f"form {token}", submit=lambda token, output: (token, output)
            ),
            perform=perform,
            log_fault=lambda what, error: self.faults.append((what, error)),
        )

    def __call__(self, method: str = "GET", body: str | None = None, **fields: Any) -> Any:
        http = {"method": method, "path": "/forms/T"}
        request = {**REQUEST, "requestContext": {"http": http}, "body": body, **fields}
        answer = form_handler(self.host)(request)
        content = re.search(r"<body>(.*)</body></html>$", answer["body"])
        assert content is not None
        return answer["statusCode"], content[1]


def test_a_field_has_the_kind_the_default_and_the_need_of_its_type() -> None:
    _, content = Page()()
    fields = re.sub(r"^.*?<form method=\"post\">", "", content)
    assert re.split(r"(?=<label for|<fieldset|<button)", fields)[1:] == [
        (
            "<fieldset><legend>Approved</legend>"
            '<label class=choice><input type=radio name="approved" value=true required> Yes</label>'
            '<label class=choice><input type=radio name="approved" value=false required> No</label>'
            "</fieldset>"
        ),
        (
            '<label for="rate">Rate</label><select id="rate" name="rate"><option>low</option>'
            "<option selected>&lt;high&gt;</option></select>"
        ),
        (
            '<label for="amount">Amount &amp; more</label>'
            '<input id="amount" name="amount" type=number step=1 required>'
        ),
        (
            '<label for="share">Share</label>'
            '<input id="share" name="share" type=number step=any value="0.5">'
        ),
        '<label for="day">Day</label><input id="day" name="day" type=date required>',
        (
            '<label for="note_to_all">Note To All</label>'
            '<input id="note_to_all" name="note_to_all"  value="&quot;hello&quot;">'
        ),
        (
            '<label for="tags">Tags (JSON)</label><textarea id="tags" name="tags" rows=6>'
            "[&quot;\\u00e4&quot;]</textarea>"
        ),
        (
            '<label for="place">Place (JSON)</label>'
            '<textarea id="place" name="place" rows=6></textarea>'
        ),
        (
            '<label for="several">Several (JSON)</label>'
            '<textarea id="several" name="several" rows=6>1</textarea>'
        ),
        "<button>Send</button></form>",
    ]


def test_a_page_shows_title_details_and_the_end_and_escapes_them() -> None:
    shown = Page(bool, details={"<who>": "<eve>", "sum": [1, "ä"]}, until="2026-01-01T00:00:00Z")
    status, content = shown()
    assert status == 200
    assert content.startswith(
        "<h1>Approve &lt;e1&gt;?</h1><dl><dt>&lt;who&gt;</dt><dd>&lt;eve&gt;</dd>"
        "<dt>sum</dt><dd><ul><li>1</li><li>ä</li></ul></dd></dl>"
        "<p><small>Until 2026-01-01 00:00 UTC</small></p>"
        '<form method="post">'
    )
    _, content = Page(bool, details=["<x>"])()
    assert "</h1><ul><li>&lt;x&gt;</li></ul><form" in content
    _, content = Page(bool, details={"paid": True, "note": None, "of": {"cents": 5}})()
    assert "<dt>paid</dt><dd>Yes</dd><dt>note</dt><dd>none</dd>" in content
    assert "<dd><dl><dt>cents</dt><dd>5</dd></dl></dd>" in content
    _, content = Page(bool, details=None)()
    assert "</h1><form" in content
    _, content = Page(bool, details={})()
    assert "</h1><form" in content


def test_a_form_that_comes_back_has_what_was_given_and_the_reason() -> None:
    page = Page()
    status, content = page("POST", "approved=false&rate=low&amount=<3>&day=2026-01-02&tags=")
    assert status == 422
    assert "<p class=problem role=alert>amount: &#x27;&lt;3&gt;&#x27; is no number</p>" in content
    assert 'value="&lt;3&gt;"' in content
    assert "value=false required checked> No" in content
    assert "value=true required> Yes" in content
    assert "<option selected>low</option>" in content
    assert 'type=date value="2026-01-02" required' in content
    assert page.submitted == []


def test_a_missing_field_is_named() -> None:
    status, content = Page()("POST", "approved=true")
    assert status == 422
    assert "<p class=problem role=alert>amount: please fill in this field</p>" in content


class Measured(BaseModel):
    size: int | None
    place: Place | None
    name: str = "x"


def test_a_field_that_may_be_none_may_stay_empty() -> None:
    page = Page(Measured)
    assert " required" not in page()[1]
    assert page("POST", "size=&place=")[0] == 200
    assert page("POST", "size=3&place=&name=")[0] == 200
    assert page.submitted == [
        ("T", {"size": None, "place": None}),
        ("T", {"size": 3, "place": None}),
    ]


@pytest.mark.parametrize("is_binary", [False, True])
def test_a_body_is_read_as_api_gateway_sends_it(is_binary: bool) -> None:
    """API Gateway encodes the body of a form in base64."""
    page, text = Page(str), "answer=a+b%C3%A4&answer=last%20one&other="
    body = base64.b64encode(text.encode()).decode() if is_binary else text
    status, content = page("POST", body, isBase64Encoded=is_binary)
    assert (status, content) == (200, "<h1>Thank you. Your answer has been stored.</h1>")
    assert page.submitted == [("T", "last one")]


def test_an_empty_text_is_an_answer_and_an_empty_body_is_one() -> None:
    page = Page(str)
    assert page("POST", None)[0] == 200
    assert page("POST", "answer=")[0] == 200
    assert page.submitted == [("T", ""), ("T", "")]


def test_a_body_over_the_limit_is_413() -> None:
    page = Page(str)
    assert page("POST", "a" * BODY_BYTES_MAX)[0] == 200
    status, content = page("POST", "a" * (BODY_BYTES_MAX + 1))
    assert (status, content) == (413, "<h1>This answer cannot be taken.</h1>")


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (RequestError("HF230", "x", status=403), 403, "This link is not valid, or has expired."),
        (
            RequestError("HF231", "x", status=409),
            410,
            "This question has been answered, or is over.",
        ),
        (
            RequestError("HF232", "x", status=409),
            410,
            "This question has been answered, or is over.",
        ),
        (
            RequestError("HF254", "x", status=409),
            410,
            "This question has been answered, or is over.",
        ),
        (RequestError("HF299", "secret", status=409), 409, "This answer cannot be taken."),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_a_refusal_is_a_sentence_for_people(error: Exception, status: int, text: str) -> None:
    page = Page(str)
    page.refuses = error
    assert page("POST", "answer=x") == (status, f"<h1>{text}</h1>")
    assert page.faults == []


def test_a_value_that_the_type_refuses_comes_back_in_the_form() -> None:
    page = Page(str)
    page.refuses = RequestError("HF211", "too <long>")
    status, content = page("POST", "answer=x")
    assert status == 422
    assert "<p class=problem role=alert>too &lt;long&gt;</p>" in content


@pytest.mark.parametrize(
    "error", [ServiceFault("HF321", "arn:secret"), HoldfastError("HF900", "arn:secret")]
)
def test_a_fault_is_logged_and_nothing_of_it_is_shown(error: Exception) -> None:
    page = Page(str)
    page.refuses = error
    sentence = "The service does not answer. Please try again later."
    assert page("POST", "answer=x") == (503, f"<h1>{sentence}</h1>")
    assert page.faults == [("a form was not served", error)]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD"])
def test_a_form_takes_two_methods(method: str) -> None:
    assert Page(str)(method) == (405, "<h1>This page takes GET and POST.</h1>")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"rate": "<high>"}, "<high>"),
        ({"rate": "no option"}, "no option"),
    ],
)
def test_a_choice_is_one_of_its_options_or_left_to_the_type(given: Any, value: str) -> None:
    filled = {"approved": "true", "amount": "3", "day": "2026-01-02", **given}
    assert answer_of(schema(Everything), filled) == {
        "approved": True,
        "rate": value,
        "amount": 3,
        "day": "2026-01-02",
    }


def test_numbers_stay_whole_or_not_and_json_is_read() -> None:
    filled = {"approved": "false", "amount": "3", "day": "x", "share": "2", "several": '"2"'}
    found = answer_of(schema(Everything), {**filled, "place": '{"street": "x"}', "tags": "[]"})
    assert found == {
        "approved": False,
        "amount": 3,
        "day": "x",
        "share": 2.0,
        "several": "2",
        "place": {"street": "x"},
        "tags": [],
    }
    assert isinstance(found["share"], float)
    with pytest.raises(ValueError, match=r"^share: 'x{40}' is no number$"):
        answer_of(schema(Everything), {**filled, "share": "x" * 50})
    with pytest.raises(ValueError, match=r"^tags: this is not JSON$"):
        answer_of(schema(Everything), {**filled, "tags": "[" * 100_000})


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_a_choice_of_yes_and_no_has_two_texts(text: str, value: bool) -> None:
    assert answer_of(schema(bool), {"answer": text}) is value
    with pytest.raises(ValueError, match=r"^answer: this is not JSON$"):
        answer_of(schema(bool), {"answer": f"{text}ly"})


def test_an_object_without_fields_is_one_field() -> None:
    assert answer_of(schema(dict[str, int]), {"answer": '{"a": 1}'}) == {"a": 1}


def test_no_page_is_kept_framed_or_scripted() -> None:
    page = Page(str)
    request = {"rawPath": "/forms/T", "requestContext": {"http": {"method": "GET"}}}
    answer = form_handler(page.host)(request)
    assert answer["headers"] == {
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    assert answer["isBase64Encoded"] is False
    assert answer["body"].startswith('<!doctype html><html lang="en"><head><meta charset="utf-8">')


def test_every_rule_of_the_style_is_for_an_element_of_a_page() -> None:
    (style,) = re.findall("<style>(.*?)</style>", form_handler(Page().host)(REQUEST)["body"])
    rules = re.findall(r"([^{}]+)\{([^{}]+)\}", style)
    assert "".join(f"{names}{{{body}}}" for names, body in rules) == style
    styled = {re.split(r"[:\[]", one)[0] for names, _ in rules for one in names.split(",")}
    assert styled == {
        *(
            "body",
            "h1",
            "label",
            "input",
            "select",
            "textarea",
            "button",
            "dt",
            "dd",
            "ul",
            "small",
        ),
        *(".choice", ".problem"),
    }
