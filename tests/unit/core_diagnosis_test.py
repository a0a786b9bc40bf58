"""Every due of an execution: its words, its frame, and the time from which it is overdue."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.parsing.parse import parse_definition
from holdfast.core.advance import advance
from holdfast.core.diagnosis import Diagnosis, diagnose, should_move_since
from holdfast.core.facts import DecisionInputs, Started
from holdfast.limits import CLOCK_ERROR_MS
from tests.builders import Machine, ask, call, machine, wait_for
from tests.unit.core_kit import RUN, START_MS, Case, nobody, one
from tests.unit.core_tasks_test import BUILD, MachineCase, task

UNCLAIMED = "an attempt is due and no worker has claimed it"
REST: Machine = {"Type": "Wait", "Seconds": 50}
BLOCK = {"Deadlines": [{"Begin": "it", "Seconds": 20, "States": ["it"]}]}
AGAIN = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 7}]
LANES: Machine = {
    "Type": "Parallel",
    "Branches": [{"StartAt": "a", "States": {"a": call("a")}}],
    "Retry": AGAIN,
}


def begun(definition: Machine, **options: Any) -> Case:
    return Case(definition, **options).start()


def asked() -> Case:
    return MachineCase(one(task(BUILD, Arguments={}))).begin().submit({"Build": {"Id": "b"}})


@pytest.mark.parametrize(
    ("case", "reason", "state", "seconds"),
    [
        (begun(one(call("work")), claim=nobody), UNCLAIMED, "it", 0),
        (
            begun(one(call("work"))),
            "a claim has lapsed and no worker has taken the attempt over",
            "it",
            60,
        ),
        (begun(one(REST)), "a timer is overdue", "it", 50),
        (begun(one(LANES)).fail("E", at="a"), "a timer is overdue", "it", 7),
        (begun(one(wait_for("paid", TimeoutSeconds=30))), "a wait is past its time-out", "it", 30),
        (
            begun(one(ask(HeartbeatSeconds=5))),
            "a heartbeat was missed and no worker has noticed",
            "it",
            5,
        ),
        (asked(), "the end of a job should have been asked for", "it", 1),
        (
            begun(one(wait_for("paid"), Holdfast=BLOCK)),
            "the deadline of a block has passed",
            "it",
            20,
        ),
        (
            begun(machine({"it": wait_for("paid")}, TimeoutSeconds=40)),
            "the execution is past its own time-out",
            "",
            40,
        ),
    ],
)
def test_an_overdue_wait_has_a_reason_and_a_time(
    case: Case, reason: str, state: str, seconds: int
) -> None:
    since_ms = START_MS + seconds * 1_000 + 2 * CLOCK_ERROR_MS
    (found,) = diagnose(case.state, since_ms)

    assert (str(found.reason), found.frame, found.state, found.since_ms) == (
        reason,
        "",
        state,
        since_ms,
    )
    assert diagnose(case.state, since_ms - 1) == ()


def test_the_oldest_stands_first() -> None:
    definition = one(REST, TimeoutSeconds=20, Holdfast=BLOCK)
    case = begun(definition)
    late_ms = START_MS + 90_000
    found: tuple[Diagnosis, ...] = diagnose(case.state, late_ms)

    assert [one.since_ms for one in found] == sorted(one.since_ms for one in found)
    assert found[-1].reason == "a timer is overdue"
    assert should_move_since(case.state, late_ms) == START_MS + 20_000 + 2 * CLOCK_ERROR_MS
    assert should_move_since(case.state, START_MS) is None


def test_a_full_record_asks_to_be_gone_on_from_at_once() -> None:
    program = parse_definition(machine({"it": {"Type": "Pass", "Next": "it"}}))
    moment = DecisionInputs(START_MS, lambda: 0.5, nobody, clock_error_ms=0)
    step = advance(program, None, (Started(RUN, None, "flow", None, START_MS),), moment)
    (found,) = diagnose(step.state, START_MS)

    assert found.reason == "a record was full and no worker has gone on from it"
    assert found.since_ms == START_MS
