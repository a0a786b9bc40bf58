"""Reminders of open questions: when they come, to whom, once, and never for an answered one."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.decision import iso_time
from holdfast.errors import ServiceFault
from holdfast.local.announcing import line_of
from holdfast.runtime import questions, reminders
from holdfast.runtime.effects import Effect, Publish, Put
from holdfast.runtime.question_events import QuestionEvents
from holdfast.runtime.storage.log import Log
from holdfast_simulator.world import START_MS, CrashAt, Hook, Killed, SimulatorWorld, When
from tests.builders import KEYS, Shop, ask, machine
from tests.thorough import some
from tests.unit.question_events_test import URL, desk_with_events
from tests.unit.questions_test import Desk

HOUR = 3_600
ARGUMENTS = {"title": "Approve?", "assignee": "role:clerk", "details": {"pence": 5}}
FIELDS: dict[str, Any] = {
    "Arguments": {**ARGUMENTS, "remind": [24 * HOUR, 4 * HOUR]},
    "TimeoutSeconds": 48 * HOUR,
}


def reminded(world: SimulatorWorld) -> list[dict[str, Any]]:
    events = world.services.published
    told = (one for one in events if one.detail_type == "Holdfast Question Reminder")
    return [{**json.loads(json.dumps(one.detail)), "at": one.at_ms} for one in told]


def reminders_of(desk: Desk) -> list[dict[str, Any]]:
    return reminded(desk.shop.world)


def due_rows(world: SimulatorWorld) -> list[Any]:
    return [item for item in world.services.items("mail") if "ahead" in item]


def test_each_reminder_comes_in_its_minute_with_everything_that_the_opening_says() -> None:
    desk = desk_with_events(**FIELDS)
    (question,) = desk.ask("order-1")
    (opened,) = [dict(one.detail) for one in desk.shop.world.services.published]
    desk.pass_seconds(24 * HOUR - 120)
    assert reminders_of(desk) == []
    desk.pass_seconds(180)
    (first,) = reminders_of(desk)
    assert first["question"] == question
    assert first == {**opened, "reminder": 24 * HOUR, "at": first["at"]}
    assert desk.shop.world.now_ms - first["at"] < 120_000
    desk.pass_seconds(20 * HOUR)
    assert [one["reminder"] for one in reminders_of(desk)] == [24 * HOUR, 4 * HOUR]
    desk.pass_seconds(10 * HOUR)  # past the deadline
    assert len(reminders_of(desk)) == 2
    assert due_rows(desk.shop.world) == []


def test_an_answered_question_has_no_more_reminders_and_costs_no_message() -> None:
    desk = desk_with_events(**FIELDS)
    (question,) = desk.ask("order-1")
    desk.pass_seconds(25 * HOUR)
    assert desk.post(f"{question}/answer", {"output": 1})[0] == 200
    sent = desk.shop.world.services.usage.sqs_send_requests
    desk.pass_seconds(30 * HOUR)
    assert [one["reminder"] for one in reminders_of(desk)] == [24 * HOUR]
    assert due_rows(desk.shop.world) == []
    # The time-out's own wake is all that was sent.
    assert desk.shop.world.services.usage.sqs_send_requests - sent <= 1


def test_the_reminder_of_a_delegated_question_names_its_present_assignee() -> None:
    desk = desk_with_events(**FIELDS)
    (question,) = desk.ask("order-1")
    assert desk.post(f"{question}/delegate", {"to": "bob", "by": "ada"})[0] == 200
    desk.pass_seconds(25 * HOUR)
    (first,) = reminders_of(desk)
    assert first["assignee"] == "bob"
    path = first["link"].removeprefix(URL)
    http = {"method": "GET", "path": path}
    answer = desk.site.api({"rawPath": path, "requestContext": {"http": http}}, None)
    assert answer["statusCode"] == 200


def test_without_the_setting_there_is_no_row_and_no_reminder() -> None:
    desk = Desk(**FIELDS)
    desk.ask("order-1")
    assert due_rows(desk.shop.world) == []
    desk.pass_seconds(50 * HOUR)
    assert reminders_of(desk) == []


@pytest.mark.parametrize("remind", ["soon", [0], [-5], [48 * HOUR], ["4h"], {"hours": 4}])
def test_a_reminder_that_cannot_be_is_left_out(remind: Any) -> None:
    arguments = {**ARGUMENTS, "remind": remind}
    desk = desk_with_events(Arguments=arguments, TimeoutSeconds=48 * HOUR)
    desk.ask("order-1")
    assert due_rows(desk.shop.world) == []


def test_a_reminder_moves_with_the_deadline_of_a_pause_with_frozen_timers() -> None:
    desk = desk_with_events(**FIELDS)
    (question,) = desk.ask("order-1")
    run = question.partition(":")[0]
    desk.pass_seconds(23 * HOUR)
    pause = {"reason": "audit", "timers": "freeze"}
    assert desk.site.request("POST", f"/executions/{run}/pause", pause)[0] in (200, 202)
    desk.pass_seconds(10 * HOUR)
    assert reminders_of(desk) == []
    resume = {"reason": "done"}
    assert desk.site.request("POST", f"/executions/{run}/resume", resume)[0] in (200, 202)
    desk.pass_seconds(30)
    assert reminders_of(desk) == []
    desk.pass_seconds(2 * HOUR)
    (first,) = reminders_of(desk)
    resumed_ms = START_MS + 33 * HOUR * 1_000
    assert HOUR * 1_000 - 60_000 <= first["at"] - resumed_ms <= HOUR * 1_000 + 60_000


def test_a_delegated_question_keeps_its_assignee_when_a_pause_moves_its_deadline() -> None:
    desk = desk_with_events(**FIELDS)
    (question,) = desk.ask("order-1")
    run = question.partition(":")[0]
    assert desk.post(f"{question}/delegate", {"to": "bob", "by": "ada"})[0] == 200
    assert desk.post(f"{question}/claim", {"by": "bob"})[0] == 200
    pause = {"reason": "audit", "timers": "freeze"}
    assert desk.site.request("POST", f"/executions/{run}/pause", pause)[0] == 200
    desk.pass_seconds(16 * 24 * HOUR)
    resume = {"reason": "done"}
    assert desk.site.request("POST", f"/executions/{run}/resume", resume)[0] == 200
    desk.pass_seconds(47 * HOUR)
    (shown,) = desk.site.request("GET", "/questions", query={"assignee": "bob"})[1]["questions"]
    assert (shown["assignee"], shown["claimed_by"]) == ("bob", "bob")
    assert shown["until"] == iso_time(START_MS + (18 * 24 * HOUR + 1) * 1_000)
    assert [one["assignee"] for one in reminders_of(desk)] == ["bob", "bob"]
    opened = [one for one in desk.shop.world.services.published if "Opened" in one.detail_type]
    assert len(opened) == 1


def test_a_bus_that_is_down_for_hours_only_delays_the_reminder() -> None:
    desk = desk_with_events(**FIELDS)
    desk.ask("order-1")
    services = desk.shop.world.services

    def refuse(effect: Publish) -> None:
        raise ServiceFault("HF322", "the bus refused an event", retry="now")

    services._performers[Publish] = refuse
    desk.pass_seconds(32 * HOUR)
    services._performers[Publish] = services.published.append
    desk.pass_seconds(3 * HOUR)
    assert [one["reminder"] for one in reminders_of(desk)] == [24 * HOUR]


# -- crashes ---------------------------------------------------------------------------------------


def asked(hook: Hook) -> SimulatorWorld:
    """A question with one reminder, which is answered after it."""
    fields: dict[str, Any] = {
        "Arguments": {**ARGUMENTS, "remind": [HOUR]},
        "TimeoutSeconds": 2 * HOUR,
    }
    shop = Shop(machine({"ask": ask(**fields)}), hook=hook)
    told = QuestionEvents("Holdfast", URL, lambda: KEYS)
    shop.world.setting = replace(shop.world.setting, question_events=told)
    run = shop.start()
    shop.world.at(START_MS + 90 * 60_000, lambda: shop.answer(run, output=1))
    shop.world.run()
    return shop.world


@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_crashes_each_reminder_is_published(when: When) -> None:
    counted = CrashAt(None, when)
    asked(counted)
    for number in some(counted.numbers):
        world = asked(CrashAt(number, when))
        found = reminded(world)
        assert 1 <= len(found) <= 2, number
        assert all(one == found[0] for one in found)
        assert due_rows(world) == []


class KilledAtTheRow:
    """Kills the worker once, before it puts the row of a reminder."""

    is_killed = False

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, Put) and "ahead" in effect.item and not self.is_killed:
            self.is_killed = True
            raise Killed


def test_a_worker_that_puts_the_row_of_the_inbox_first_loses_a_reminder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: Any) -> Generator[Effect, Any, None]:
        yield from ()

    put, open_row = reminders.put_rows, questions.open_row

    def open_first(tenant: str, state: Any, command: Any, now_ms: int) -> Any:
        is_there = yield from questions.has_row(tenant, state.run, command)
        yield from open_row(tenant, state, command, now_ms)
        if not is_there:
            log = Log(tenant, state.run, "", "")
            log.state = state
            yield from put(log, command)

    assert len(reminded(asked(KilledAtTheRow()))) == 1
    monkeypatch.setattr(reminders, "put_rows", none)
    monkeypatch.setattr(questions, "open_row", open_first)
    assert reminded(asked(KilledAtTheRow())) == []


def test_the_line_on_the_terminal_says_until_when() -> None:
    detail = {"assignee": "ada", "title": "Approve?", "link": "http://h/forms/x"}
    told = line_of({**detail, "until": "2026-07-03T08:00:00.000Z", "reminder": 4 * HOUR})
    assert told == "reminder, until 2026-07-03T08:00:00.000Z, for ada: Approve? http://h/forms/x"
