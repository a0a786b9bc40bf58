"""The state types and the flow of data through them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from holdfast.asl.parsing.parse import parse_definition
from holdfast.core import advance
from holdfast.core.advance import TOO_MANY_EVENTS
from holdfast.core.facts import DecisionInputs, Started, Succeeded
from holdfast.core.state import Attempt, Awaiting
from holdfast.core.waits import has_more
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX
from tests.builders import Machine, ask, call, machine, wait_for
from tests.unit.core_kit import RUN, START_MS, Case, nobody, one, run

QUERY_ERROR = "States.QueryEvaluationError"


def test_a_pass_hands_its_input_on() -> None:
    assert run(one({"Type": "Pass"}), {"a": 1}).output == {"a": 1}


def test_output_replaces_the_result_of_a_state() -> None:
    state = {"Type": "Pass", "Output": {"twice": "{% $states.input.a * 2 %}", "fixed": [1]}}

    assert run(one(state), {"a": 4}).output == {"twice": 8, "fixed": [1]}


def test_the_context_knows_the_definition_and_the_workflow() -> None:
    case = run(one({"Type": "Pass", "Output": "{% $states.context.StateMachine %}"}))

    assert case.output == {"Id": case.program.hash, "Name": "flow"}


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The worker runs there."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_the_times_of_the_context_are_utc_wherever_the_worker_is() -> None:
    case = Case(one({"Type": "Pass", "Output": "{% $states.context.State.EnteredTime %}"}))
    case.now_ms += 1_234_567  # The next due was not requested before

    assert case.start().output == "2027-01-15T08:20:34.567Z"


def test_an_assigned_variable_is_seen_by_later_states_and_not_by_its_own_output() -> None:
    flow = machine(
        {
            "set": {"Type": "Pass", "Assign": {"x": 1}, "Next": "again"},
            "again": {
                "Type": "Pass",
                "Assign": {"x": "{% $x + 1 %}", "y": "{% $x * 10 %}"},
                "Output": "{% $x %}",
                "Next": "see",
            },
            "see": {"Type": "Succeed", "Output": "{% [$states.input, $x, $y] %}"},
        }
    )

    assert run(flow).output == [1, 2, 10]


def test_assigned_variables_stand_in_the_exit_event() -> None:
    case = run(one({"Type": "Pass", "Assign": {"x": {"a": [1]}}}))

    assert case.last("PassStateExited").details["assignedVariables"] == {"x": {"a": [1]}}
    assert "assignedVariables" not in run(one({"Type": "Pass"})).last("PassStateExited").details


def test_the_context_names_execution_state_and_machine() -> None:
    context = run(one({"Type": "Succeed", "Output": "{% $states.context %}"}), {"a": 1}).output

    assert context["Execution"]["Name"] == "order-1"
    assert context["Execution"]["Input"] == {"a": 1}
    assert context["Execution"]["StartTime"] == "2027-01-15T08:00:00.000Z"
    assert context["State"] == {
        "EnteredTime": "2027-01-15T08:00:00.000Z",
        "Name": "it",
    }
    assert context["StateMachine"]["Name"] == "flow"


def test_an_execution_without_a_name_is_named_by_its_id() -> None:
    flow = one({"Type": "Succeed", "Output": "{% $states.context.Execution.Name %}"})
    case = Case(flow).start(name=None)

    assert case.output == case.state.run


# -- Choice ----------------------------------------------------------------------------------------


def choice(*conditions: str, **fields: Any) -> dict[str, Any]:
    rules = [{"Condition": text, "Next": f"rule {n}"} for n, text in enumerate(conditions)]
    ends = {f"rule {n}": {"Type": "Succeed", "Output": n} for n in range(len(conditions))}
    default = {"default": {"Type": "Succeed", "Output": "default"}}
    return machine({"it": {"Type": "Choice", "Choices": rules, **fields}, **ends, **default})


@pytest.mark.parametrize(("number", "taken"), [(1, 0), (5, 1), (50, "default")])
def test_a_choice_takes_the_first_rule_that_holds_or_its_default(number: int, taken: Any) -> None:
    flow = choice(
        "{% $states.input < 2 %}",
        "{% $states.input < 10 %}",
        Default="default",
    )

    assert run(flow, number).output == taken


def test_a_choice_without_a_match_or_a_default_fails_the_execution() -> None:
    error, cause = run(choice("{% false %}")).failure

    assert error == "States.NoChoiceMatched"
    assert cause is not None
    assert cause.startswith("An error occurred while executing the state 'it' (entered at the ")


@pytest.mark.parametrize("number", [1, 5])
def test_a_choice_of_paths_returns_their_selection_by_a_rule_and_by_default(number: int) -> None:
    rule = {"Variable": "$.number", "NumericLessThan": 2, "Next": "end"}
    asking = {
        "Type": "Choice",
        "InputPath": "$.inner",
        "OutputPath": "$.number",
        "Choices": [rule],
        "Default": "end",
    }
    flow = machine({"it": asking, "end": {"Type": "Succeed"}}, QueryLanguage="JSONPath")

    assert run(flow, {"inner": {"number": number}}).output == number


def test_a_rule_and_a_default_have_their_own_assign_and_output() -> None:
    end = {"end": {"Type": "Succeed", "Output": "{% [$states.input, $v] %}"}}
    rule = {
        "Condition": "{% $states.input = 1 %}",
        "Next": "end",
        "Output": "rule",
        "Assign": {"v": "r"},
    }
    flow = machine(
        {
            "it": {
                "Type": "Choice",
                "Choices": [rule],
                "Default": "end",
                "Output": "default",
                "Assign": {"v": "d"},
            },
            **end,
        }
    )

    assert run(flow, 1).output == ["rule", "r"]
    assert run(flow, 2).output == ["default", "d"]


def test_a_condition_that_is_no_boolean_fails_and_does_not_count_as_true() -> None:
    error, cause = run(choice("{% 'yes' %}", Default="default")).failure

    assert error == QUERY_ERROR
    assert cause is not None
    assert "boolean" in cause


# -- Succeed and Fail ------------------------------------------------------------------------------


def test_a_fail_ends_with_its_error_and_cause_and_never_exits() -> None:
    case = run(one({"Type": "Fail", "Error": "Broken", "Cause": "{% 'for ' & $states.input %}"}), 7)

    assert case.failure == ("Broken", "for 7")
    assert case.types[-2:] == ["FailStateEntered", "ExecutionFailed"]


def test_a_field_that_a_fail_leaves_out_is_absent_from_its_event() -> None:
    case = run(one({"Type": "Fail"}))

    assert case.last("ExecutionFailed").details == {}
    assert case.failure == (None, None)


def test_error_and_cause_are_cut_to_the_length_that_aws_keeps() -> None:
    error, cause = run(one({"Type": "Fail", "Error": "e" * 999, "Cause": "c" * 99_999})).failure

    assert (len(error or ""), len(cause or "")) == (ERROR_CHARACTERS_MAX, CAUSE_CHARACTERS_MAX)


# -- Task ------------------------------------------------------------------------------------------


def test_a_task_gets_its_arguments_and_hands_on_its_result() -> None:
    case = Case(one(call("ship", Arguments={"n": "{% $states.input %}"}))).start(3)

    assert case.waiting().arguments == {"n": 3}
    assert case.waiting().target == "ship"
    assert case.succeed("done").output == "done"


def test_a_task_without_arguments_gets_its_input() -> None:
    assert Case(one(call("ship"))).start({"a": 1}).waiting().arguments == {"a": 1}


def test_output_and_assign_of_a_task_see_its_result() -> None:
    state = call("ship", Output="{% $states.result.x %}", Assign={"r": "{% $states.result %}"})
    case = Case(one(state)).start().succeed({"x": 5})

    assert case.output == 5
    assert case.last("TaskStateExited").details["assignedVariables"] == {"r": {"x": 5}}


@pytest.mark.parametrize(
    ("resource", "kind", "waits"),
    [
        ("holdfast:task:ship", "task", Attempt),
        ("holdfast:pure:ship", "pure", Attempt),
        ("holdfast:event.waitForTaskToken", "event", Awaiting),
        ("holdfast:ask.waitForTaskToken", "ask", Awaiting),
        ("holdfast:token.waitForTaskToken", "token", Awaiting),
    ],
)
def test_each_resource_waits_in_its_own_way(resource: str, kind: str, waits: type) -> None:
    case = Case(one({"Type": "Task", "Resource": resource})).start({"event": "paid", "key": "k"})

    assert isinstance(case.waiting(), waits)
    assert case.waiting().kind == kind
    assert case.succeed({"ok": True}).output == {"ok": True}


def test_an_event_wait_knows_its_event_and_its_key() -> None:
    waiting = Case(one(wait_for("paid"))).start().waiting()

    assert (waiting.event_name, waiting.event_key) == ("paid", "k1")


@pytest.mark.parametrize("arguments", ["odd", {}])
def test_a_wait_whose_arguments_do_not_say_so_names_no_event(arguments: Any) -> None:
    state = {"Type": "Task", "Resource": "holdfast:event.waitForTaskToken", "Arguments": arguments}
    waiting = Case(one(state)).start().waiting()

    assert (waiting.event_name, waiting.event_key) == ("", "")


def test_a_question_to_a_person_is_in_hand_until_the_answer() -> None:
    case = Case(one(ask())).start()

    assert case.waiting().arguments["title"] == "Approve?"
    assert case.succeed({"approved": True}).output == {"approved": True}


# -- evaluations that fail -------------------------------------------------------------------------


def test_a_failed_evaluation_has_the_message_of_aws() -> None:
    states = {
        "first": {"Type": "Pass", "Next": "second"},
        "second": {"Type": "Pass", "Output": {"a": ["{% $nothing %}"]}, "End": True},
    }
    case = run(machine(states))
    failed = case.last("EvaluationFailed")

    assert failed.details["location"] == "Output/a[0]"
    assert failed.details["state"] == "second"
    assert failed.details["error"] == QUERY_ERROR
    assert failed.details["cause"] == (
        "An error occurred while executing the state 'second' (entered at the event id #4). "
        "The JSONata expression '$nothing' specified for the field 'Output/a[0]' "
        "returned nothing (undefined)."
    )
    assert case.failure == (QUERY_ERROR, failed.details["cause"])


FAILING = "{% $error('no') %}"


@pytest.mark.parametrize(
    ("state", "location"),
    [
        ({"Type": "Pass", "Output": FAILING}, "Output"),
        ({"Type": "Pass", "Assign": {"x": FAILING}}, "Assign/x"),
        ({"Type": "Succeed", "Output": FAILING}, "Output"),
        ({"Type": "Fail", "Cause": FAILING}, "Cause"),
        ({"Type": "Wait", "Seconds": FAILING}, "Seconds"),
        ({"Type": "Wait", "Seconds": "{% -1 %}"}, "Seconds"),
        ({"Type": "Wait", "Seconds": "{% 1.5 %}"}, "Seconds"),
        ({"Type": "Wait", "Seconds": "{% true %}"}, "Seconds"),
        ({"Type": "Wait", "Seconds": "{% 1e20 %}"}, "Seconds"),
        ({"Type": "Wait", "Timestamp": FAILING}, "Timestamp"),
        ({"Type": "Wait", "Timestamp": "{% 'tomorrow' %}"}, "Timestamp"),
        ({"Type": "Wait", "Timestamp": "{% '2026-01-02T03:04:05' %}"}, "Timestamp"),
        ({"Type": "Wait", "Timestamp": "{% 5 %}"}, "Timestamp"),
        (call("ship", Arguments=FAILING), "Arguments"),
        (call("ship", TimeoutSeconds="{% 0 %}"), "TimeoutSeconds"),
        (call("ship", TimeoutSeconds="{% 100000000 %}"), "TimeoutSeconds"),
        (call("ship", HeartbeatSeconds="{% 'x' %}"), "HeartbeatSeconds"),
        (
            {
                "Type": "Parallel",
                "Arguments": FAILING,
                "Branches": [{"StartAt": "b", "States": {"b": {"Type": "Succeed"}}}],
            },
            "Arguments",
        ),
    ],
)
def test_every_field_that_cannot_be_evaluated_is_named(state: Any, location: str) -> None:
    case = run(one(state))

    assert case.last("EvaluationFailed").details["location"] == location
    assert case.status == "FAILED"


def test_a_failing_condition_is_named_with_its_rule() -> None:
    case = run(choice("{% false %}", FAILING))

    assert case.last("EvaluationFailed").details["location"] == "Choices[1]/Condition"


def test_a_condition_is_true_or_false_and_nothing_else() -> None:
    case = run(choice("{% 1 %}"))

    cause = case.last("EvaluationFailed").details["cause"]
    assert cause.endswith("Expected 'boolean', but was 'number' for value: 1")


def test_a_pass_whose_parameters_fail_fails() -> None:
    state = {"Type": "Pass", "Parameters": {"a.$": "$.nothing"}, "Assign": {"x": 1}}
    case = run(one(state, QueryLanguage="JSONPath"), {})

    assert case.failure[0] == "States.Runtime"


def test_an_endless_loop_is_ended_and_cannot_be_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advance, "EVENTS_MAX", 50)
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "all"}]
    again = {"StartAt": "it", "States": {"it": {"Type": "Pass", "Next": "it"}}}
    case = run(
        machine({"all": {"Type": "Parallel", "Branches": [again], "Catch": catch, "End": True}})
    )

    assert case.failure == (TOO_MANY_EVENTS, "The execution has more than 50 events.")
    (*_, last, _), (*_, ended) = case.events, case.links
    assert ended == (last.id + 1, last.id, "ExecutionFailed")


@pytest.mark.parametrize(("events_max", "status"), [(2, "SUCCEEDED"), (1, "FAILED")])
def test_no_state_is_begun_after_more_events_than_there_may_be(
    events_max: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advance, "EVENTS_MAX", events_max)

    assert run(one({"Type": "Pass"})).status == status


def beside_a_task(state: Machine) -> Machine:
    """A Parallel of the task `ship` and of this state, `pass`."""
    branches = [
        {"StartAt": name, "States": {name: inner}}
        for name, inner in {"ship": call("ship"), "pass": state}.items()
    ]
    return one({"Type": "Parallel", "Branches": branches})


def test_the_branch_beside_an_endless_loop_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advance, "EVENTS_MAX", 50)
    case = run(beside_a_task({"Type": "Pass", "Next": "pass"}))

    assert case.types[-2:] == ["TaskStarted", "ExecutionFailed"]


# -- full records ----------------------------------------------------------------------------------


def loop(times: int) -> dict[str, Any]:
    return machine(
        {
            "begin": {"Type": "Pass", "Assign": {"i": 0}, "Next": "again?"},
            "again?": {
                "Type": "Choice",
                "Choices": [{"Condition": f"{{% $i < {times} %}}", "Next": "count"}],
                "Default": "done",
            },
            "count": {"Type": "Pass", "Assign": {"i": "{% $i + 1 %}"}, "Next": "again?"},
            "done": {"Type": "Succeed", "Output": "{% $i %}"},
        }
    )


def test_a_thousand_pure_states_fill_a_record_and_the_next_record_continues() -> None:
    assert run(loop(10)).records == 1
    case = run(loop(600))

    assert case.output == 600
    assert case.records == 2


@pytest.mark.parametrize(("states", "records"), [(3, 1), (4, 2), (6, 2), (7, 3)])
def test_a_record_holds_as_many_pure_states_as_it_may(
    states: int, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advance, "PURE_STATES_PER_RECORD_MAX", 3)
    names = [str(number) for number in range(states)]
    passes = {name: {"Type": "Pass", "Next": following} for name, following in pairwise(names)}
    case = run(machine({**passes, names[-1]: {"Type": "Pass", "End": True}}))

    assert (case.status, case.records) == ("SUCCEEDED", records)


def test_the_rest_of_a_full_record_comes_before_later_facts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advance, "PURE_STATES_PER_RECORD_MAX", 2)
    program = parse_definition(beside_a_task({"Type": "Pass", "End": True}))
    moment = DecisionInputs(START_MS, lambda: 0.5, nobody, clock_error_ms=0)
    full = advance.advance(program, None, [Started(RUN, None, "flow", 1, START_MS)], moment)
    assert has_more(full.state)
    on = advance.advance(program, full.state, [Succeeded(1, 1, "shipped")], moment)

    assert [event.type for event in on.events][:2] == ["PassStateExited", "TaskStarted"]


# -- ids and predecessors --------------------------------------------------------------------------


def test_a_chain_of_passes_is_numbered_as_aws_numbers_it() -> None:
    states = {"a": {"Type": "Pass", "Next": "b"}, "b": {"Type": "Pass", "End": True}}

    assert run(machine(states)).links == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "PassStateEntered"),
        (3, 2, "PassStateExited"),
        (4, 3, "PassStateEntered"),
        (5, 4, "PassStateExited"),
        (6, 5, "ExecutionSucceeded"),
    ]


def test_a_task_is_scheduled_started_and_succeeds_under_ids_of_its_own() -> None:
    case = Case(one(call("ship"))).start().succeed(1)

    assert case.links == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "TaskStateEntered"),
        (3, 2, "TaskScheduled"),
        (4, 3, "TaskStarted"),
        (5, 4, "TaskSucceeded"),
        (6, 5, "TaskStateExited"),
        (7, 6, "ExecutionSucceeded"),
    ]


def test_the_failed_evaluation_of_the_first_state_hangs_off_nothing() -> None:
    case = run(one({"Type": "Pass", "Output": FAILING}))

    assert case.links[-2:] == [(3, 0, "EvaluationFailed"), (4, 3, "ExecutionFailed")]
