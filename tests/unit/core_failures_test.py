"""Retry and Catch: the handler of an error, the number of retries, and their delays."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.attempt_facts import WORKER_LOST
from holdfast.core.facts import (
    HeartbeatSeen,
    StopRequested,
    Succeeded,
    TakenOver,
    TaskUnknown,
    TimedOut,
)
from holdfast.limits import (
    CAUSE_CHARACTERS_MAX,
    ERROR_CHARACTERS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    TAKEOVERS_MAX,
)
from tests.builders import Machine, ask, call, machine, wait_for
from tests.unit.core_kit import Case, nobody, one, run

CAUGHT = {"caught": {"Type": "Succeed", "Output": "{% $states.input %}"}}


def retry(*errors: str, **fields: Any) -> dict[str, Any]:
    return {"ErrorEquals": list(errors or ("States.ALL",)), **fields}


def catch(*errors: str, **fields: Any) -> dict[str, Any]:
    return {"ErrorEquals": list(errors or ("States.ALL",)), "Next": "caught", **fields}


def catching(*catchers: dict[str, Any], **fields: Any) -> Machine:
    return machine({"it": call("ship", Catch=list(catchers), End=True, **fields), **CAUGHT})


def retrying(*retriers: dict[str, Any]) -> Case:
    return Case(one(call("ship", Retry=list(retriers)))).start()


def delay_seconds(case: Case) -> float:
    return float(case.waiting().due_ms - case.now_ms) / 1_000


# -- Retry -----------------------------------------------------------------------------------------


def test_an_unhandled_error_fails_the_execution_with_its_words() -> None:
    case = Case(one(call("ship"))).start().fail("Broken", "all of it")

    assert case.failure == ("Broken", "all of it")


def test_a_retry_is_the_next_attempt_of_the_same_entry_and_begins_at_its_time() -> None:
    case = retrying(retry(IntervalSeconds=7))
    first = case.waiting()
    case.fail("Busy")

    assert (case.waiting().entry, case.waiting().attempt) == (first.entry, 2)
    assert delay_seconds(case) == 7
    assert case.waiting().claim is None
    assert case.succeed("late").output == "late"


def test_a_retry_that_is_due_at_once_gets_a_lease_at_once() -> None:
    case = Case(one(call("ship", Retry=[retry(JitterStrategy="FULL")])), draw=lambda: 0.0).start()

    assert case.fail("Busy").waiting().claim is not None


def test_delays_grow_by_the_rate_up_to_the_cap() -> None:
    case = retrying(retry(IntervalSeconds=2, BackoffRate=3, MaxAttempts=5, MaxDelaySeconds=40))
    delays = [delay_seconds(case.fail("Busy")) for _ in range(5)]

    assert delays == [2, 6, 18, 40, 40]


def test_a_retrier_without_numbers_has_those_of_asl() -> None:
    case = retrying(retry())
    delays = [delay_seconds(case.fail("Busy")) for _ in range(3)]

    assert delays == [1, 2, 4]
    assert case.fail("Busy").status == "FAILED"


def test_no_delay_is_longer_than_a_year_whatever_the_rate() -> None:
    case = retrying(retry(BackoffRate=1e300, MaxAttempts=3))
    delays = [delay_seconds(case.fail("Busy")) for _ in range(3)]

    assert delays == [1, RETRY_DELAY_SECONDS_MAX, RETRY_DELAY_SECONDS_MAX]


@pytest.mark.parametrize("drawn", [0.0, 0.25, 0.999])
def test_full_jitter_draws_between_nothing_and_the_whole_delay(drawn: float) -> None:
    fields = {"IntervalSeconds": 10, "JitterStrategy": "FULL"}
    case = Case(one(call("ship", Retry=[retry(**fields)])), draw=lambda: drawn)

    assert delay_seconds(case.start().fail("Busy")) == pytest.approx(10 * drawn)


def test_every_retry_draws_another_random_number() -> None:
    drawn: list[float] = []

    def draw() -> float:
        drawn.append(0.5)
        return 0.5

    case = Case(one(call("ship", Retry=[retry()])), draw=draw).start()
    case.fail("Busy")
    first = case.waiting()
    case.offer(Succeeded(first.entry, 1, "stale"))

    assert drawn == [0.5]


def test_zero_attempts_means_no_retry() -> None:
    assert retrying(retry(MaxAttempts=0)).fail("Busy").status == "FAILED"


def test_the_first_retrier_that_matches_decides_and_each_counts_for_itself() -> None:
    case = retrying(
        retry("Busy", IntervalSeconds=5, MaxAttempts=1),
        retry("Slow", IntervalSeconds=9, MaxAttempts=1),
    )

    assert delay_seconds(case.fail("Busy")) == 5
    assert delay_seconds(case.fail("Slow")) == 9
    assert case.fail("Busy").failure == ("Busy", None)


def test_a_retrier_that_is_used_up_does_not_pass_the_error_to_the_next() -> None:
    case = retrying(retry("Busy", MaxAttempts=1), retry("States.TaskFailed", MaxAttempts=9))

    assert case.fail("Busy").fail("Busy").status == "FAILED"


def test_the_number_of_retries_is_in_the_context_and_starts_at_zero_in_the_next_state() -> None:
    count = "{% $states.context.State.RetryCount %}"
    flow = machine(
        {
            "it": call("ship", "then", Retry=[retry()], Arguments=count, Output=count),
            "then": call("ship", Arguments=count, Output=["{% $states.input %}", count]),
        }
    )
    case = Case(flow).start().fail("Busy").fail("Busy").succeed()

    assert case.succeed().output == [2, 0]


def test_retry_comes_before_catch() -> None:
    case = Case(catching(catch(), Retry=[retry(MaxAttempts=1)])).start()

    assert case.fail("Busy").waiting().attempt == 2
    assert case.fail("Busy", "why").output == {"Error": "Busy", "Cause": "why"}


def test_a_retry_is_scheduled_off_the_failure_with_no_event_between() -> None:
    case = retrying(retry()).fail("Busy").succeed(1)

    assert case.links[2:] == [
        (3, 2, "TaskScheduled"),
        (4, 3, "TaskStarted"),
        (5, 4, "TaskFailed"),
        (6, 5, "TaskScheduled"),
        (7, 6, "TaskStarted"),
        (8, 7, "TaskSucceeded"),
        (9, 8, "TaskStateExited"),
        (10, 9, "ExecutionSucceeded"),
    ]


# -- Catch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "error", "is_caught"),
    [
        ("Busy", "Busy", True),
        ("Busy", "Busier", False),
        ("States.ALL", "Busy", True),
        ("States.ALL", "States.Timeout", True),
        ("States.ALL", "States.DataLimitExceeded", True),
        ("States.ALL", "States.Runtime", False),
        ("States.Runtime", "States.Runtime", False),
        ("States.DataLimitExceeded", "States.DataLimitExceeded", True),
        ("States.TaskFailed", "Busy", True),
        ("States.TaskFailed", "States.Timeout", False),
        ("States.TaskFailed", "States.HeartbeatTimeout", False),
        ("States.TaskFailed", "States.Runtime", False),
        ("States.TaskFailed", "States.DataLimitExceeded", True),
        ("States.TaskFailed", "States.ItemReaderFailed", True),
        ("States.TaskFailed", "States.ExceedToleratedFailureThreshold", True),
        ("States.TaskFailed", "States.QueryEvaluationError", True),
        ("States.Timeout", "States.HeartbeatTimeout", True),
        ("States.HeartbeatTimeout", "States.Timeout", False),
        ("States.Timeout", "Busy", False),
        ("Busy", "States.HeartbeatTimeout", False),
        ("States.ALL", None, True),
        ("States.TaskFailed", None, True),
        ("", None, True),
        ("Busy", None, False),
    ],
)
def test_which_errors_a_catcher_takes(pattern: str, error: str | None, is_caught: bool) -> None:
    case = Case(catching(catch(pattern))).start().fail(error)

    assert case.status == ("SUCCEEDED" if is_caught else "FAILED")


@pytest.mark.parametrize("pattern", ["States.HeartbeatTimeout", "States.Timeout", "States.ALL"])
def test_a_missed_heartbeat_is_a_time_out_and_is_caught_by_either_name(pattern: str) -> None:
    approval = ask("caught", Catch=[catch(pattern)], HeartbeatSeconds=30, TimeoutSeconds=100)
    case = Case(machine({"it": approval, **CAUGHT})).start().after(30)

    assert case.output == {"Error": "States.Timeout", "Cause": ""}
    assert case.last("TaskTimedOut").details["error"] == "States.Timeout"


def test_a_time_out_is_no_missed_heartbeat() -> None:
    approval = ask(
        "caught",
        Catch=[catch("States.HeartbeatTimeout")],
        Retry=[retry("States.HeartbeatTimeout")],
        HeartbeatSeconds=30,
        TimeoutSeconds=40,
    )
    case = Case(machine({"it": approval, **CAUGHT})).start().after(25)
    case.offer(HeartbeatSeen(case.waiting().entry, case.now_ms)).after(15)

    assert case.failure == ("States.Timeout", None)


def test_a_missed_heartbeat_is_retried_by_its_name() -> None:
    approval = ask(Retry=[retry("States.HeartbeatTimeout")], HeartbeatSeconds=30)
    case = Case(one(approval)).start()

    assert case.after(30).status == "RUNNING"
    assert case.after(1).waiting().attempt == 2


def test_the_first_catcher_that_matches_takes_the_error() -> None:
    first = catch("Busy", Output="first")
    case = Case(catching(catch("Other", Output="0"), first, catch(Output="last"))).start()

    assert case.fail("Busy").output == "first"


def test_a_catcher_assigns_and_outputs_from_the_error() -> None:
    catcher = catch(
        Assign={"why": "{% $states.errorOutput.Cause %}"},
        Output="{% $states.errorOutput.Error & $states.input %}",
    )
    case = Case(catching(catcher)).start("!").fail("Busy", "late")

    assert case.output == "Busy!"
    assert case.last("TaskStateExited").details["assignedVariables"] == {"why": "late"}


def test_a_failure_without_words_is_caught_with_null_and_recorded_without_keys() -> None:
    case = Case(catching(catch())).start().fail(None)

    assert case.output == {"Error": None, "Cause": None}
    assert set(case.last("TaskFailed").details) == {"resourceType", "resource"}


def test_error_and_cause_of_a_task_are_cut_to_the_length_that_aws_keeps() -> None:
    case = Case(one(call("ship"))).start().fail("e" * 999, "c" * 99_999)

    assert [len(text or "") for text in case.failure] == [
        ERROR_CHARACTERS_MAX,
        CAUSE_CHARACTERS_MAX,
    ]


def test_a_catcher_takes_the_failed_evaluation_of_its_own_state() -> None:
    flow = catching(catch("States.QueryEvaluationError"), Arguments="{% $nothing %}")

    assert run(flow).output["Error"] == "States.QueryEvaluationError"


def test_a_catcher_whose_own_output_fails_fails_the_execution() -> None:
    case = Case(catching(catch(Output="{% $nothing %}"))).start().fail("Busy")

    assert case.failure[0] == "States.QueryEvaluationError"


def test_a_caught_task_leaves_its_state_off_the_failure() -> None:
    case = Case(catching(catch())).start().fail("Busy")

    assert case.links[2:] == [
        (3, 2, "TaskScheduled"),
        (4, 3, "TaskStarted"),
        (5, 4, "TaskFailed"),
        (6, 5, "TaskStateExited"),
        (7, 6, "SucceedStateEntered"),
        (8, 7, "SucceedStateExited"),
        (9, 8, "ExecutionSucceeded"),
    ]


# -- facts that do not fit -------------------------------------------------------------------------


def test_a_result_of_an_older_attempt_leaves_no_trace() -> None:
    case = retrying(retry())
    first = case.waiting()
    case.fail("Busy")
    before = list(case.events)
    case.offer(Succeeded(first.entry, 1, "late"), TimedOut(first.entry, 1))

    assert case.events == before


def test_a_result_counts_once() -> None:
    case = Case(machine({"a": call("x", "b"), "b": call("y")})).start()
    first = case.waiting()
    fact = Succeeded(first.entry, first.attempt, 1)
    case.offer(fact, fact).offer(fact)

    assert case.positions == ["b"]
    assert case.types.count("TaskSucceeded") == 1


def test_nothing_follows_the_end() -> None:
    case = run(one({"Type": "Pass"}))
    before = list(case.events)
    case.offer(Succeeded(0, 1, None), StopRequested("1", None, None)).after(10)

    assert case.events == before


# -- stop ------------------------------------------------------------------------------------------


def test_a_stop_ends_everything_with_its_words_and_hangs_off_nothing() -> None:
    case = Case(one(call("ship"))).start()
    case.offer(StopRequested("5", "Stopped", "by hand"))

    assert case.status == "ABORTED"
    assert (case.state.error, case.state.cause) == ("Stopped", "by hand")
    assert case.links[-2:] == [(4, 3, "TaskStarted"), (5, 0, "ExecutionAborted")]
    assert case.state.frames == {}


def test_a_stop_without_words_has_no_details() -> None:
    case = Case(one(call("ship"))).start().offer(StopRequested("5", None, None))

    assert case.last("ExecutionAborted").details == {}


# -- claims ----------------------------------------------------------------------------------------


def test_an_attempt_whose_workers_are_lost_again_and_again_fails() -> None:
    case = Case(one(call("ship"))).start()
    takeover = TakenOver(case.waiting().entry, 1)
    for number in range(TAKEOVERS_MAX):
        assert case.offer(takeover).waiting().takeovers == number + 1
    error, cause = case.offer(takeover).failure

    assert error == WORKER_LOST
    assert cause == "4 workers in a row were lost while they ran ship"


def test_a_lost_worker_can_be_retried() -> None:
    case = retrying(retry(WORKER_LOST))
    for _ in range(TAKEOVERS_MAX + 1):
        case.offer(TakenOver(case.waiting().entry, 1))

    assert (case.waiting().attempt, case.waiting().takeovers) == (2, 0)


def test_an_attempt_without_a_lease_is_taken_over_without_a_loss() -> None:
    case = Case(one(call("ship")), claim=nobody).start()
    assert case.waiting().claim is None
    case.offer(TakenOver(case.waiting().entry, 1))

    assert case.waiting().takeovers == 0


def test_an_unknown_task_waits_without_a_lease_and_is_noted_once() -> None:
    case = Case(one(call("ship"))).start()
    unknown = TaskUnknown(case.waiting().entry, 1)
    case.offer(unknown, unknown)

    assert case.waiting().is_unknown
    assert case.waiting().claim is None
    assert case.types.count("TaskUnknown") == 1
    assert not case.offer(TakenOver(case.waiting().entry, 1)).waiting().is_unknown


def test_facts_about_leases_do_not_change_other_waits() -> None:
    case = Case(one(wait_for("paid"))).start()
    before = list(case.events)
    case.offer(TakenOver(case.waiting().entry, 1), TaskUnknown(case.waiting().entry, 1))

    assert case.events == before


# -- evaluations that fail in a state that handles errors ------------------------------------------


def test_arguments_that_fail_are_tried_again_as_often_as_the_retrier_says() -> None:
    retrier = retry(IntervalSeconds=5, MaxAttempts=2)
    case = Case(one(call("ship", Arguments="{% $nothing %}", Retry=[retrier]))).start()
    assert (case.positions, case.types.count("EvaluationFailed")) == (["it"], 1)
    case.after(5)
    assert case.types.count("EvaluationFailed") == 2
    case.after(10)

    assert case.failure[0] == "States.QueryEvaluationError"
    assert case.types.count("EvaluationFailed") == 3


def test_arguments_that_fail_only_in_a_later_attempt_are_tried_again_too() -> None:
    arguments = "{% $states.context.State.RetryCount = 1 ? $nothing : 1 %}"
    case = Case(one(call("ship", Arguments=arguments, Retry=[retry()]))).start()
    case.fail("Busy")
    assert case.types[-2:] == ["EvaluationFailed", "RetryDelayed"]
    assert case.after(1).types[-2:] == ["EvaluationFailed", "RetryDelayed"]
    case.after(2)

    assert case.succeed("done").output == "done"


@pytest.mark.parametrize(
    "fields",
    [
        {"Parameters": {"n.$": "States.ArrayGetItem($.zero, $$.State.RetryCount)"}},
        {"InputPath": "$$.State.RetryCount", "Parameters": {"n.$": "States.ArrayRange(1, 9, $)"}},
        {"TimeoutSecondsPath": "$.none"},
    ],
)
def test_a_path_that_fails_only_in_a_later_attempt_is_not_tried_again(fields: Any) -> None:
    """No handler takes a runtime error, and an error of a path is one: a retry without an event
    between would repeat for ever.
    """
    state = {
        "Type": "Task",
        "Resource": "holdfast:task:ship",
        **fields,
        "Retry": [retry("States.ALL")],
    }
    case = Case(one(state, QueryLanguage="JSONPath")).start({"zero": [0]})
    if case.status == "RUNNING":
        case.fail("Busy")

    assert case.failure[0] == "States.Runtime"


def test_a_result_whose_output_fails_runs_the_task_again_when_retried() -> None:
    state = call("ship", Output="{% $states.result.x %}", Retry=[retry(MaxAttempts=1)])
    case = Case(one(state)).start().succeed({}).after(1)
    assert case.waiting().attempt == 1
    assert case.waiting().entry != 0

    assert case.succeed({"x": 1}).output == 1
