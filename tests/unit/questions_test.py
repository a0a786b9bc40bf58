"""The inbox of people: open questions are found by assignee, claimed, delegated and answered."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.runtime.effects import Delete, Update
from tests.builders import Shop, ask, machine
from tests.unit.host_kit import Site


class Desk:
    """Executions that each ask a clerk, behind the HTTP API."""

    def __init__(self, **fields: Any) -> None:
        self.shop = Shop(machine({"ask": ask(**fields)}))
        self.site = Site(self.shop)

    def ask(self, *names: str) -> list[str]:
        for name in names:
            self.shop.start(name=name)
            self.pass_seconds(1)
        return [question["question"] for question in self.inbox()]

    def pass_seconds(self, seconds: float) -> None:
        until_ms = self.shop.world.now_ms + int(seconds * 1_000)
        self.shop.world.run(until_ms=until_ms)
        self.shop.world.now_ms = max(self.shop.world.now_ms, until_ms)

    def get(self, path: str, **query: str) -> Any:
        status, body = self.site.request("GET", path, query=query)
        assert status == 200, body
        return body

    def inbox(self, **query: str) -> Any:
        return self.get("/questions", **query)["questions"]

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        status, answer = self.site.request("POST", f"/questions/{path}", body)
        self.pass_seconds(5)
        return status, answer if status == 200 else answer["error"]["code"]

    def rows(self) -> list[Any]:
        stored = self.shop.world.services.items("mail")
        return [item for item in stored if "#ask#" in str(item["pk"])]


def test_an_open_question_is_in_the_inbox_until_it_is_answered() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    (shown,) = desk.inbox()
    assert (shown["title"], shown["assignee"]) == ("Approve?", "role:clerk")
    assert (shown["workflow"], shown["name"]) == ("flow", "order-1")
    assert desk.post(f"{question}/answer", {"output": {"approved": True}, "by": "ada"})[0] == 200
    assert desk.inbox() == []
    assert desk.rows() == []
    history = desk.get("/executions/order-1/history")["events"]
    (answered,) = (event for event in history if event["type"] == "TaskSucceeded")
    assert answered["holdfast"]["by"] == "ada"


def test_the_inbox_has_the_oldest_first_page_by_page_and_one_assignee_alone() -> None:
    desk = Desk(Arguments={"title": "Approve?", "assignee": "{% $states.input %}"})
    for number in range(12):
        desk.shop.start(name=f"o{number}", data="role:clerk" if number % 3 else "ada")
        desk.pass_seconds(1)
    assert [one["name"] for one in desk.inbox(assignee="ada")] == ["o0", "o3", "o6", "o9"]
    names, after = list[str](), dict[str, str]()
    while True:
        page = desk.get("/questions", assignee="role:clerk", limit="3", **after)
        names += [one["name"] for one in page["questions"]]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert names == [f"o{number}" for number in range(12) if number % 3]
    assert desk.inbox(assignee="bob") == []
    assert desk.inbox(workflow="other") == []
    assert len(desk.inbox(workflow="flow")) == 12


def test_one_question_shows_its_details_the_form_of_its_answer_and_a_token() -> None:
    arguments = {"title": "Approve?", "assignee": "ada", "details": {"pence": 5}}
    desk = Desk(Arguments=arguments, TimeoutSeconds=3_600)
    (question,) = desk.ask("order-1")
    shown = desk.get(f"/questions/{question}")
    assert shown["details"] == {"pence": 5}
    assert shown["schema"] == {}
    answer = {"token": shown["token"], "output": True}
    assert desk.site.request("POST", "/answers", answer)[0] == 200


def test_a_claimed_question_is_answered_by_its_claimant_alone_until_it_is_released() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    assert desk.post(f"{question}/claim", {"by": "ada"})[0] == 200
    assert desk.post(f"{question}/claim", {"by": "ada"})[0] == 200  # again
    assert desk.inbox()[0]["claimed_by"] == "ada"
    assert desk.post(f"{question}/claim", {"by": "bob"}) == (409, "HF255")
    assert desk.post(f"{question}/answer", {"output": 1, "by": "bob"}) == (409, "HF255")
    assert desk.post(f"{question}/release", {"by": "bob"})[0] == 200
    assert "claimed_by" not in desk.inbox()[0]
    assert desk.post(f"{question}/answer", {"output": 1, "by": "bob"})[0] == 200


def test_a_delegated_question_moves_to_the_other_inbox_and_may_come_back() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    assert desk.post(f"{question}/claim", {"by": "ada"})[0] == 200
    assert desk.post(f"{question}/delegate", {"to": "role:director", "by": "ada"})[0] == 200
    assert desk.inbox(assignee="role:clerk") == []
    (shown,) = desk.inbox(assignee="role:director")
    assert (shown["question"], shown["assignee"]) == (question, "role:director")
    assert "claimed_by" not in shown
    assert desk.post(f"{question}/delegate", {"to": "bob", "by": "eve"})[0] == 200
    assert desk.inbox(assignee="role:director") == []
    assert len(desk.inbox(assignee="bob")) == 1
    assert desk.post(f"{question}/delegate", {"to": "role:clerk", "by": "bob"})[0] == 200
    assert len(desk.inbox(assignee="role:clerk")) == 1
    assert desk.inbox(assignee="bob") == []
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    assert desk.inbox() == []
    assert desk.rows() == []


def test_a_list_in_the_middle_of_a_delegation_loses_no_question() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    perform = desk.shop.world.services.perform

    def listing(effect: Any) -> Any:
        if isinstance(effect, Update) and effect.put.get("to") == "bob":
            desk.shop.world.services.perform = perform  # type: ignore[method-assign]
            page = desk.shop.world.call(desk.shop.front.questions("default", {"assignee": "bob"}))
            assert page["questions"] == []
        return perform(effect)

    desk.shop.world.services.perform = listing  # type: ignore[method-assign]
    assert desk.post(f"{question}/delegate", {"to": "bob", "by": "ada"})[0] == 200
    assert len(desk.inbox(assignee="bob")) == 1


def test_a_question_that_was_delegated_and_answered_leaves_the_other_inbox() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    desk.post(f"{question}/delegate", {"to": "bob", "by": "ada"})
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    assert desk.inbox(assignee="bob") == []
    assert desk.rows() == []


@pytest.mark.parametrize("end", ["time-out", "stop"])
def test_a_question_that_is_over_leaves_the_inbox(end: str) -> None:
    desk = Desk(TimeoutSeconds=60)
    (question,) = desk.ask("order-1")
    if end == "stop":
        desk.shop.stop(question.partition(":")[0])
    desk.pass_seconds(65)
    assert desk.inbox() == []
    assert desk.rows() == []
    assert desk.site.request("GET", f"/questions/{question}")[1]["error"]["code"] == "HF254"


def test_a_question_past_its_deadline_is_not_listed_before_its_row_is_deleted() -> None:
    desk = Desk(TimeoutSeconds=60)
    desk.ask("order-1")
    desk.shop.world.now_ms += 61_000
    assert desk.inbox() == []


def test_the_same_answer_again_succeeds_and_another_one_is_refused() -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    assert desk.post(f"{question}/answer", {"output": 2}) == (409, "HF232")


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("order-1/answer", {"output": 1}, (400, "HF253")),
        ("{}9/answer", {"output": 1}, (409, "HF232")),
        ("{}9/claim", {"by": "ada"}, (404, "HF254")),
        ("{}/claim", {"by": ["ada"]}, (400, "HF256")),
        ("{}/delegate", {"by": "ada"}, (400, "HF256")),
        ("{}/delegate", {"to": "x" * 1_000, "by": "ada"}, (400, "HF256")),
        ("{}/claim", {"who": "ada"}, (400, "HF219")),
    ],
)
def test_wrong_requests_are_refused(
    path: str, body: dict[str, Any], refusal: tuple[int, str]
) -> None:
    desk = Desk()
    (question,) = desk.ask("order-1")
    assert desk.post(path.format(question), body) == refusal


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "101"}, {"after": "x"}, {"who": "a"}])
def test_wrong_parameters_of_the_inbox_are_refused(query: dict[str, str]) -> None:
    assert Desk().site.request("GET", "/questions", query=query)[0] == 400


def test_a_row_that_no_worker_deletes_is_seen_in_the_inbox() -> None:
    """Planted: the tests above find a worker that leaves its rows."""
    desk = Desk()
    perform = desk.shop.world.services.perform
    keep: Any = lambda effect: None if isinstance(effect, Delete) else perform(effect)  # noqa: E731
    (question,) = desk.ask("order-1")
    desk.shop.world.services.perform = keep  # type: ignore[method-assign]
    desk.shop.stop(question.partition(":")[0])
    desk.pass_seconds(65)
    assert len(desk.rows()) == 1
