"""Timers, time-outs, heartbeats and events: the effects of passing time, and the forbidden ones."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.parsing.parse import parse_definition
from holdfast.core import facts
from holdfast.core.advance import advance
from holdfast.core.commands import OpenQuestion, RegisterForEvent, RunAttempt, StartTimer
from holdfast.core.diagnosis import OverdueReason, diagnose, next_due_ms
from holdfast.core.facts import DecisionInputs, EventReceived, HeartbeatSeen, Tick
from holdfast.core.waits import pending_commands
from holdfast.errors import HoldfastBug
from tests.builders import ask, call, machine, wait_for
from tests.unit.core_kit import START_MS, Case, nobody, one, run

HOUR = 3_600
RETENTION_MS = 14 * 86_400_000


def nap(**fields: Any) -> dict[str, Any]:
    return one({"Type": "Wait", **fields})


def received(case: Case, event_id: str = "e1", data: Any = "paid", **fields: Any) -> EventReceived:
    expires_ms = fields.pop("expires_ms", START_MS + RETENTION_MS)
    return EventReceived(case.waiting().entry, event_id, data, expires_ms)


# -- Wait ------------------------------------------------------------------------------------------


def test_a_wait_ends_at_its_time_and_not_before() -> None:
    case = Case(nap(Seconds=10)).start({"a": 1}).after(9.999)
    assert not case.state.is_ended

    assert case.after(0.001).output == {"a": 1}


def test_the_seconds_of_a_wait_may_be_an_expression() -> None:
    assert Case(nap(Seconds="{% $states.input %}")).start(3).after(3).output == 3


@pytest.mark.parametrize(
    ("timestamp", "is_over"),
    [
        ("2027-01-15T08:00:00Z", True),
        ("2027-01-15T09:00:00+01:00", True),
        ("2027-01-15T08:00:00.001Z", False),
        ("1970-01-01T00:00:00Z", True),
    ],
)
def test_a_wait_for_a_moment_that_is_past_is_over_at_once(timestamp: str, is_over: bool) -> None:
    assert run(nap(Timestamp=timestamp)).state.is_ended is is_over


@pytest.mark.parametrize(
    "timestamp",
    ["2027-01-15 08:00:00Z", "2027-01-15T08:00:00", "20270115T080000Z", "2027-13-15T08:00:00Z"],
)
def test_a_wait_for_a_text_that_is_no_timestamp_fails_in_the_words_of_aws(timestamp: str) -> None:
    error, cause = run(nap(Timestamp=f"{{% '{timestamp}' %}}")).failure

    assert error == "States.QueryEvaluationError"
    assert cause == (
        "An error occurred while executing the state 'it' (entered at the event id #2). The "
        "Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format "
        f"string: {timestamp}"
    )


def test_the_error_of_a_timestamp_belongs_to_the_entry_of_its_state() -> None:
    case = run(nap(Timestamp="{% 'soon' %}"))

    assert case.links[-2:] == [(3, 2, "EvaluationFailed"), (4, 3, "ExecutionFailed")]


def test_a_wait_of_no_seconds_sets_no_timer() -> None:
    case = run(nap(Seconds=0))

    assert case.types == [
        "ExecutionStarted",
        "WaitStateEntered",
        "WaitStateExited",
        "ExecutionSucceeded",
    ]


def test_assign_and_output_of_a_wait_are_evaluated_when_it_ends() -> None:
    case = Case(nap(Seconds=5, Output="{% $millis() %}")).start().after(7)

    assert case.output == START_MS + 7_000


@pytest.mark.parametrize(("late_ms", "is_over"), [(999, False), (1_000, True)])
def test_a_moment_is_past_when_no_clock_can_say_otherwise(late_ms: int, is_over: bool) -> None:
    program = parse_definition(nap(Timestamp="2027-01-15T08:00:00Z"))
    moment = DecisionInputs(START_MS + late_ms, lambda: 0.5, nobody, clock_error_ms=500)
    started = facts.Started("r", None, "flow", None, START_MS)

    assert advance(program, None, [started], moment).state.is_ended is is_over


def test_the_last_moment_that_is_shown_is_the_end_of_the_last_year_of_four_digits() -> None:
    states = {
        "rest": {"Type": "Wait", "Timestamp": "9999-12-31T23:59:59-18:00", "Next": "show"},
        "show": {"Type": "Succeed", "Output": "{% $states.context.State.EnteredTime %}"},
    }
    case = Case(machine(states)).start().after(10**12)

    assert case.output == "9999-12-31T23:59:59.999Z"


def test_nothing_fires_while_a_clock_that_is_ahead_may_be_wrong() -> None:
    program = parse_definition(nap(Seconds=10))
    started = DecisionInputs(START_MS, lambda: 0.5, nobody, clock_error_ms=500)
    state = advance(
        program, None, [facts.Started("r", None, "flow", None, START_MS)], started
    ).state
    for late_ms, is_ended in ((10_999, False), (11_000, True)):
        moment = DecisionInputs(START_MS + late_ms, lambda: 0.5, nobody, clock_error_ms=500)
        assert advance(program, state, [Tick()], moment).state.is_ended is is_ended


# -- time-outs -------------------------------------------------------------------------------------


def test_an_execution_past_its_time_is_timed_out_whatever_it_does() -> None:
    flow = one(call("ship"), TimeoutSeconds=60)
    case = Case(flow).start().after(59)
    assert case.status == "RUNNING"
    case.after(1)

    assert case.status == "TIMED_OUT"
    assert case.links[-2:] == [(4, 3, "TaskStarted"), (5, 0, "ExecutionTimedOut")]


def test_a_wait_from_outside_times_out_as_a_task_does() -> None:
    case = Case(one(wait_for("paid", TimeoutSeconds=HOUR))).start().after(HOUR)

    assert case.failure == ("States.Timeout", None)
    assert case.links[-2:] == [(5, 4, "TaskTimedOut"), (6, 5, "ExecutionFailed")]


def test_a_time_out_can_be_caught_and_retried() -> None:
    catch = [{"ErrorEquals": ["States.Timeout"], "Next": "late"}]
    retry = [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1, "IntervalSeconds": 10}]
    flow = machine(
        {
            "it": ask(TimeoutSeconds=60, Catch=catch, Retry=retry),
            "late": {"Type": "Succeed", "Output": "late"},
        }
    )
    case = Case(flow).start().after(60)
    assert case.waiting().attempt == 2
    assert case.waiting().due_ms == START_MS + (60 + 10 + 60) * 1_000

    assert case.after(70).output == "late"


def test_the_time_out_of_an_inline_task_is_reported_by_its_worker() -> None:
    case = Case(one(call("ship", TimeoutSeconds=5))).start()
    assert case.waiting().timeout_seconds == 5
    assert case.after(100).waiting().attempt == 1

    case.offer(facts.TimedOut(case.waiting().entry, 1))
    assert case.failure == ("States.Timeout", None)


def test_one_tick_ends_everything_that_is_due() -> None:
    branches = [
        {"StartAt": f"nap{n}", "States": {f"nap{n}": {"Type": "Wait", "Seconds": n, "End": True}}}
        for n in (1, 2, 3)
    ]
    case = Case(one({"Type": "Parallel", "Branches": branches})).start().after(2)
    assert case.positions == ["nap3"]

    assert case.after(1).status == "SUCCEEDED"


def test_the_consequences_of_one_timer_come_before_the_next_timer() -> None:
    branches = [
        {"StartAt": f"nap{n}", "States": {f"nap{n}": nap_then, f"ship{n}": call("ship")}}
        for n, nap_then in ((n, {"Type": "Wait", "Seconds": n, "Next": f"ship{n}"}) for n in (1, 2))
    ]
    case = Case(one({"Type": "Parallel", "Branches": branches})).start().after(2)

    assert case.types[-6:] == ["WaitStateExited", "TaskStateEntered", "TaskScheduled"] * 2


def test_a_time_out_that_fails_a_parallel_leaves_nothing_for_the_other_timers_to_fire() -> None:
    branches = [
        {"StartAt": "first", "States": {"first": wait_for("paid", TimeoutSeconds=5)}},
        {"StartAt": "nap", "States": {"nap": {"Type": "Wait", "Seconds": 5, "End": True}}},
    ]
    case = Case(one({"Type": "Parallel", "Branches": branches})).start().after(5)

    assert case.failure[0] == "States.Timeout"
    assert "WaitStateExited" not in case.types


# -- heartbeats ------------------------------------------------------------------------------------


def beating() -> Case:
    return Case(one(ask(HeartbeatSeconds=30, TimeoutSeconds=100))).start()


def test_a_missed_heartbeat_is_a_time_out() -> None:
    assert beating().after(30).failure == ("States.Timeout", None)


def test_a_heartbeat_moves_the_next_one_but_not_the_whole_time_out() -> None:
    case = beating()
    for _ in range(3):
        case.after(25).offer(HeartbeatSeen(case.waiting().entry, case.now_ms))
        assert case.waiting().heartbeat_due_ms == case.now_ms + 30_000

    assert case.after(24).status == "RUNNING"
    assert case.after(1).failure == ("States.Timeout", None)


def test_a_task_due_together_with_its_heartbeat_has_timed_out_as_a_whole() -> None:
    catch = [
        {"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "missed"},
        {"ErrorEquals": ["States.Timeout"], "Next": "late"},
    ]
    ends = {name: {"Type": "Succeed", "Output": name} for name in ("missed", "late")}
    waiting = ask(HeartbeatSeconds=30, TimeoutSeconds=60, Catch=catch)
    case = Case(machine({"it": waiting, **ends})).start().after(29)
    assert case.offer(HeartbeatSeen(case.waiting().entry, START_MS + 30_000)).after(31).output == (
        "late"
    )


def test_an_older_heartbeat_leaves_no_trace() -> None:
    case = beating().after(10)
    case.offer(HeartbeatSeen(case.waiting().entry, case.now_ms))
    before = list(case.events)
    case.offer(HeartbeatSeen(case.waiting().entry, case.now_ms - 1), HeartbeatSeen(99, case.now_ms))

    assert case.events == before


def test_a_heartbeat_for_a_wait_that_asks_for_none_leaves_no_trace() -> None:
    case = Case(one(ask())).start()
    before = list(case.events)
    case.offer(HeartbeatSeen(case.waiting().entry, case.now_ms))

    assert case.events == before


# -- events by key ---------------------------------------------------------------------------------


def test_an_event_completes_its_wait_with_its_data() -> None:
    case = Case(one(wait_for("paid"))).start()

    assert case.offer(received(case, data={"pence": 5})).output == {"pence": 5}


def test_an_expired_event_is_not_used() -> None:
    case = Case(one(wait_for("paid"))).start()
    before = list(case.events)
    case.offer(received(case, expires_ms=case.now_ms))

    assert case.events == before


@pytest.mark.parametrize(("late_s", "kept"), [(10.999, ["e1", "e2"]), (11, ["e2"])])
def test_an_event_is_used_once_and_forgotten_when_no_clock_can_find_it_valid(
    late_s: float, kept: list[str]
) -> None:
    flow = machine({n: wait_for("paid", m) for n, m in [("a", "b"), ("b", "c"), ("c", None)]})
    case = Case(flow).start()
    case.offer(received(case, expires_ms=START_MS + 10_000))
    case.offer(received(case, expires_ms=START_MS + 10_000))
    assert case.positions == ["b"]
    assert case.state.used_events == {"e1": START_MS + 10_000}
    case.after(late_s).offer(received(case, "e2", expires_ms=START_MS + 90_000))

    assert case.positions == ["c"]
    assert list(case.state.used_events) == kept


def test_every_used_event_is_remembered_not_only_the_last() -> None:
    flow = machine({n: wait_for("paid", m) for n, m in [("a", "b"), ("b", "c"), ("c", None)]})
    case = Case(flow).start()
    for event_id in ("e1", "e2", "e1", "e2"):
        case.offer(received(case, event_id))

    assert case.positions == ["c"]


def test_an_event_for_a_task_leaves_no_trace() -> None:
    case = Case(one(call("ship"))).start()
    before = list(case.events)
    case.offer(received(case))

    assert case.events == before


# -- pending commands ------------------------------------------------------------------------------


def test_open_requests_follow_from_the_state_in_the_order_of_entries() -> None:
    branches = [
        {"StartAt": "run", "States": {"run": call("ship")}},
        {"StartAt": "nap", "States": {"nap": {"Type": "Wait", "Seconds": 5, "End": True}}},
        {"StartAt": "ev", "States": {"ev": wait_for("paid", TimeoutSeconds=9)}},
        {"StartAt": "hum", "States": {"hum": ask()}},
    ]
    case = Case(one({"Type": "Parallel", "Branches": branches}, TimeoutSeconds=60)).start()

    assert pending_commands(case.state) == [
        StartTimer(-1, START_MS + 60_000),
        RunAttempt("0.0", case.waiting("run")),
        StartTimer(2, START_MS + 5_000),
        RegisterForEvent(3, 1),
        StartTimer(3, START_MS + 9_000),
        OpenQuestion(4, 1, "Approve?", "role:clerk", START_MS, None),
    ]


def test_an_ended_execution_is_owed_nothing() -> None:
    assert pending_commands(run(one({"Type": "Pass"}, TimeoutSeconds=60)).state) == []


def test_only_an_attempt_without_a_lease_becomes_due() -> None:
    held = Case(one(call("ship"))).start()
    free = Case(one(call("ship")), claim=nobody).start()

    assert next_due_ms(held.frame("it")) is None
    assert next_due_ms(free.frame("it")) == START_MS


# -- before the start ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fact",
    [
        facts.Succeeded(0, 1, None),
        facts.FailedWith(0, 1, None, None),
        facts.TimedOut(0, 1),
        facts.EventReceived(0, "e", None, START_MS * 2),
        facts.HeartbeatSeen(0, START_MS),
        facts.Tick(),
        facts.TakenOver(0, 1),
        facts.TaskUnknown(0, 1),
        facts.StopRequested("1", None, None),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_a_fact_before_the_start_leaves_no_trace(fact: facts.Fact) -> None:
    started = facts.Started("r", None, "flow", None, START_MS)
    moment = DecisionInputs(START_MS, lambda: 0.5, nobody, clock_error_ms=0)
    program = parse_definition(one(call("ship")))
    plain = advance(program, None, [started], moment)

    assert advance(program, None, [fact, started], moment) == plain


def test_no_facts_and_no_start_is_no_execution() -> None:
    moment = DecisionInputs(START_MS, lambda: 0.5, nobody, clock_error_ms=0)

    with pytest.raises(
        HoldfastBug, match=": an execution that has not started was asked for its state\n"
    ):
        advance(parse_definition(one(call("ship"))), None, [], moment)


def test_a_second_start_leaves_no_trace() -> None:
    case = Case(one(call("ship"))).start(1)
    before = list(case.events)
    case.start(2)

    assert case.events == before


def test_an_execution_starts_when_it_was_asked_for_not_when_it_is_begun() -> None:
    case = Case(one(call("ship")))
    case.now_ms += 5_000
    case.start()

    assert (case.events[0].at_ms, case.state.started_ms) == (START_MS, START_MS)


def test_an_execution_is_opened_once_and_moves_only_to_a_younger_record() -> None:
    case = Case(one(call("ship"))).start().offer(facts.Opened(0), facts.Opened(0))

    assert case.state.opened_at == 0
    assert case.types.count("Opened") == 1
    assert case.offer(facts.Opened(4), facts.Opened(3)).state.opened_at == 4


def test_an_ended_execution_has_no_timer() -> None:
    case = Case(one(call("ship")), claim=nobody).start()
    later_ms = START_MS + 10_000
    assert [one.reason for one in diagnose(case.state, later_ms)] == [OverdueReason.ATTEMPT_DUE]

    assert diagnose(case.succeed().state, later_ms) == ()
