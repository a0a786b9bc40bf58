"""Events about questions: what they say, when they come again, and when there are none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast import resources
from holdfast.errors import ServiceFault
from holdfast.limits import QUESTION_DETAILS_BYTES_MAX
from holdfast.local.announcing import line_of
from holdfast.runtime.effects import Publish
from holdfast.runtime.question_events import QuestionEvents
from holdfast.sealed import Sealed
from tests.builders import KEYS
from tests.unit.host_kit import Site
from tests.unit.questions_test import Desk

URL = "https://forms.example"


def desk_with_events(url: str = URL, **fields: Any) -> Desk:
    desk = Desk(**fields)
    told = QuestionEvents("Holdfast", url, lambda: KEYS)
    desk.shop.world.setting = replace(desk.shop.world.setting, question_events=told)
    return desk


def published(desk: Desk) -> list[dict[str, Any]]:
    events = desk.shop.world.services.published
    assert {(one.source, one.detail_type) for one in events} <= {
        ("holdfast.questions", "Holdfast Question Opened")
    }
    return [json.loads(json.dumps(one.detail)) for one in events]


def test_an_event_says_what_the_inbox_says_and_has_a_link_that_opens_the_form() -> None:
    arguments = {"title": "Approve?", "assignee": "ada", "details": {"pence": 5}}
    desk = desk_with_events(Arguments=arguments, TimeoutSeconds=3_600)
    (question,) = desk.ask("order-1")
    (shown,) = desk.inbox()
    (event,) = published(desk)
    link = event.pop("link")
    assert event == {"stack": "Holdfast", "details": {"pence": 5}, **shown}
    assert event["question"] == question
    path = link.removeprefix(URL)
    http = {"method": "GET", "path": path}
    answer = desk.site.api({"rawPath": path, "requestContext": {"http": http}}, None)
    assert answer["statusCode"] == 200
    assert "Approve?" in answer["body"]


def test_without_the_setting_there_is_no_event() -> None:
    desk = Desk()
    desk.ask("order-1")
    assert published(desk) == []


def test_an_event_has_no_link_where_the_stack_has_no_forms() -> None:
    desk = desk_with_events(url="")
    desk.ask("order-1")
    (event,) = published(desk)
    assert "link" not in event


def test_a_question_is_announced_once_however_long_it_waits() -> None:
    desk = desk_with_events()
    (question,) = desk.ask("order-1")
    desk.pass_seconds(86_400)
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    assert len(published(desk)) == 1


def test_secrets_in_title_and_details_are_hidden() -> None:
    sealed = Sealed("k1", b"cipher", 6).text
    arguments = {"title": f"Pay {sealed}?", "assignee": "ada", "details": {"card": sealed}}
    desk = desk_with_events(Arguments=arguments)
    desk.ask("order-1")
    (event,) = published(desk)
    assert event["title"] == "Pay <secret 6 bytes>?"
    assert event["details"] == {"card": "<secret 6 bytes>"}


def test_details_that_are_too_large_are_left_out_and_named() -> None:
    for size, is_there in ((QUESTION_DETAILS_BYTES_MAX - 2, True), (200_000, False)):
        arguments = {"title": "Read it", "assignee": "ada", "details": "x" * size}
        desk = desk_with_events(Arguments=arguments)
        desk.ask("order-1")
        (event,) = published(desk)
        assert ("details" in event) is is_there
        assert event.get("omitted", []) == ([] if is_there else ["details"])


def test_an_event_that_the_bus_refused_is_published_by_the_next_delivery() -> None:
    desk = desk_with_events()
    services, refused = desk.shop.world.services, list[Publish]()

    def refuse_once(effect: Publish) -> None:
        if not refused:
            refused.append(effect)
            raise ServiceFault("HF322", "the bus refused an event", retry="now")
        services.published.append(effect)

    services._performers[Publish] = refuse_once
    desk.ask("order-1")
    desk.pass_seconds(300)
    again = services.published[0]
    assert again == refused[0]  # a reader can tell that the two are one question
    assert len(desk.inbox()) == 1


def test_a_deployment_without_forms_has_neither_their_routes_nor_links() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    shown = desk.get(f"/questions/{question}")
    assert shown["link"] == f"http://api.example/forms/{shown['token']}"
    desk.site.host.forms_scheme = None
    site: Site = desk.site
    assert "link" not in desk.get(f"/questions/{question}")
    for method in ("GET", "POST"):
        status, body = site.request(method, f"{resources.FORMS_PATH}{shown['token']}")
        assert (status, body["error"]["code"]) == (404, "HF208")


@pytest.mark.parametrize("title", ["Approve e1?", "\x1b[31mApprove\ne1?"])
def test_the_line_on_the_terminal_has_assignee_title_and_link_and_no_control_characters(
    title: str,
) -> None:
    line = line_of({"assignee": "role:manager", "title": title, "link": "http://h/forms/x"})
    assert line.isprintable()
    assert line.startswith("question for role:manager: ")
    assert line.endswith("e1? http://h/forms/x")
