"""Each finding: a machine that has it, and one that nearly has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast import pure, task, task_context
from holdfast.asl.validation.validate import diagnose
from holdfast.cli import main
from holdfast.compiler.compile import compile_module, compile_workflow
from holdfast.local.proving import subjects_of_modules
from holdfast.proofs.bounds import worst_of
from holdfast.proofs.findings import CODES, Placed, SourceLocation
from holdfast.proofs.graph import levels_of
from holdfast.proofs.report import Proofs, prove, render
from holdfast.proofs.tasks import TaskFacts, facts_of_tasks
from holdfast.testing import World
from tests.builders import Machine, call, machine, wait_for
from tests.stopwatch import stopwatch
from tests.thorough import some
from tests.unit import condition_flows
from tests.unit.dsl_kit import loaded
from tests.unit.proofs_machines import Machines
from tests.unit.states_kit import PLACE

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 0.05
UNSAFE = TaskFacts("charge", is_pure=False, is_idempotent=False, uses_key=False)
KEYED = TaskFacts("charge", is_pure=False, is_idempotent=False, uses_key=True)
RETRY = [{"ErrorEquals": ["Busy"]}]
END = {"Type": "Succeed"}


def passing(target: str | None = None, **assign: Any) -> Machine:
    follow = {"End": True} if target is None else {"Next": target}
    return {"Type": "Pass", **follow, **({"Assign": assign} if assign else {})}


def choice(condition: str, target: str, default: str | None = None) -> Machine:
    rules = [{"Condition": f"{{% {condition} %}}", "Next": target}]
    return {"Type": "Choice", "Choices": rules, **({"Default": default} if default else {})}


def proofs_of(states: Mapping[str, Any], charge: TaskFacts | None = None, **top: Any) -> Proofs:
    facts = {} if charge is None else {"charge": charge}
    return prove("flow", machine(states, **top), facts)


def codes(proofs: Proofs) -> set[str]:
    """Without the note of tasks that have no timeout, which nearly every machine has."""
    return {found.code for found in proofs.findings} - {"HF099"}


def found(code: str, states: Mapping[str, Any], **more: Any) -> str:
    """Return the state at which it was found, by the one finding that there is."""
    proofs = proofs_of(states, **more)
    assert codes(proofs) == {code}
    (finding,) = [one for one in proofs.findings if one.code == code]
    assert finding.help
    return finding.state


# -- reaching --------------------------------------------------------------------------------------


def test_a_state_behind_a_rule_that_is_always_true_is_never_reached() -> None:
    states = {"a": choice("true", "b", "c"), "b": END, "c": passing("d"), "d": END}
    assert found("HF090", states) == "c"
    assert codes(proofs_of({**states, "a": choice("$random() < 1", "b", "c")})) == set()


def test_a_state_from_which_no_end_can_be_reached_is_a_dead_end() -> None:
    sleep = {"Type": "Wait", "Seconds": 1, "Next": "b"}
    states = {"a": choice("$random() < 1", "end", "b"), "b": sleep, "end": END}
    proofs = proofs_of(states)
    assert codes(proofs) == {"HF091", "HF097"}
    assert codes(prove("flow", machine(states), {}, is_keyed=True)) == set()
    states["b"] = {**sleep, "Next": "a"}
    assert codes(proofs_of(states)) == {"HF097"}


def test_a_choice_without_a_default_may_match_nothing() -> None:
    open_ = choice("$states.input.a > 1", "b")
    assert found("HF092", {"a": open_, "b": END}) == "a"
    more = [{"Condition": "{% $not($states.input.a > 1) %}", "Next": "b"}]
    closed = {**open_, "Choices": [*open_["Choices"], *more]}
    assert codes(proofs_of({"a": closed, "b": END})) == set()


@pytest.mark.parametrize("field", ["Retry", "Catch"])
def test_a_handler_behind_one_that_takes_its_error_is_never_used(field: str) -> None:
    def task(*errors: str) -> Machine:
        target = {"Next": "end"} if field == "Catch" else {}
        entries = [{"ErrorEquals": [error], **target} for error in errors]
        return {"a": {**call("t"), field: entries}, "end": END}

    assert "HF0A4" in codes(proofs_of(task("Busy", "Busy")))
    assert "HF0A4" not in codes(proofs_of(task("Busy", "Broken")))
    assert "HF0A4" in codes(proofs_of(task("States.Runtime")))


# -- names -----------------------------------------------------------------------------------------


def test_a_variable_that_one_way_does_not_assign_may_have_no_value() -> None:
    states = {
        "a": choice("$random() < 1", "b", "c"),
        "b": passing("c", x=1),
        "c": passing(y="{% $x + 1 %}"),
    }
    assert found("HF093", states) == "c"
    states["a"] = {**states["a"], "Assign": {"x": 2}}
    assert codes(proofs_of(states)) == set()


def test_a_variable_whose_existence_was_tested_has_a_value() -> None:
    states = {
        "a": choice("$random() < 1", "b", "c"),
        "b": passing("c", x=1),
        "c": choice("$exists($x)", "d", "end"),
        "d": passing("end", y="{% $x %}"),
        "end": END,
    }
    assert codes(proofs_of(states)) == set()


def test_a_variable_that_a_task_assigns_has_no_value_where_its_error_is_caught() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "b"}]
    task = call("t", "b", Assign={"x": "{% $states.result %}"}, Catch=catch)
    assert found("HF093", {"a": task, "b": passing(y="{% $x %}")}) == "b"
    caught = [{**catch[0], "Assign": {"x": 0}}]
    assert codes(proofs_of({"a": {**task, "Catch": caught}, "b": passing(y="{% $x %}")})) == set()


def test_names_that_an_expression_binds_are_its_own() -> None:
    bound = "{% ($k := 1; $map([1], function($v, $i){ $v + $i + $k }) ~> $sum) %}"
    assert codes(proofs_of({"a": passing(y=bound)})) == set()
    assert found("HF094", {"a": passing(y="{% $map([1], function($v){ $v + $other }) %}")}) == "a"


def test_a_branch_reads_outer_variables_and_may_not_assign_them() -> None:
    def around(**assign: Any) -> Machine:
        branch = {"StartAt": "b", "States": {"b": passing(**assign)}}
        parallel = {"Type": "Parallel", "Branches": [branch], "End": True}
        return {"a": passing("p", x=1), "p": parallel}

    assert codes(proofs_of(around(y="{% $x %}"))) == set()
    assert found("HF095", around(x=2)) == "b"
    later = {**around(x=2), "a": passing("p", z=1), "p": {**around(x=2)["p"], "Next": "q"}}
    del later["p"]["End"]
    assert codes(proofs_of({**later, "q": passing(x=3)})) == set()


def test_jsonpath_fields_read_variables_where_they_are_evaluated() -> None:
    state = {"Type": "Pass", "End": True, "Parameters": {"x.$": "$x.y", "y": "$y", "z.$": "$.z"}}
    proofs = proofs_of({"a": state}, QueryLanguage="JSONPath")
    assert [finding.message for finding in proofs.findings] == [
        '"a" reads $x, which no state assigns'
    ]


# -- loops -----------------------------------------------------------------------------------------


def counting(start: Any, test: str, step: str = "$n + 1") -> Machine:
    return {
        "a": passing("b", n=start),
        "b": choice(test, "c", "end"),
        "c": passing("b", n=f"{{% {step} %}}"),
        "end": END,
    }


@pytest.mark.parametrize(
    ("start", "test", "step", "rounds"),
    [
        (0, "$n < 3", "$n + 1", "3"),
        (0, "$n <= 3", "$n + 1", "4"),
        (0, "3 > $n", "$n + 2", "2"),
        (5, "$n > 0", "$n - 1", "5"),
        (5, "$n < 3", "$n + 1", "0"),
        (0, "$n < $count($states.input)", "$n + 1", None),
        (0, "$n < 3", "$n - 1", None),
        (0, "$n != 3", "$n + 1", None),
        (0, "$n < 3 or $random() < 0.5", "$n + 1", None),
        (0, "$n < 3 and $random() < 0.5", "$n + 1", "3"),
        (0, "$n < $n + 1", "$n + 1", None),
        (0, "$not($n >= 3 or $random() < 0.5)", "$n + 1", "3"),
    ],
)
def test_a_counter_bounds_a_loop_when_it_moves_towards_a_fixed_limit(
    start: int, test: str, step: str, rounds: str | None
) -> None:
    proofs = proofs_of(counting(start, test, step))
    (loop,) = proofs.loops
    assert (None if loop.rounds is None else str(loop.rounds)) == rounds
    assert codes(proofs) == (set() if rounds else {"HF096"})


def test_a_limit_that_may_not_be_there_bounds_nothing_in_an_or() -> None:
    states = counting(0, "$not($n >= $order.most or $random() < 0.5)")
    states["a"]["Assign"]["order"] = "{% $states.input %}"
    assert found("HF096", states) == "b"
    states["b"] = choice("$n < $order.most and $random() < 0.5", "c", "end")
    assert codes(proofs_of(states)) == set()


def test_a_counter_that_one_way_round_does_not_move_bounds_nothing() -> None:
    states = counting(0, "$n < 3")
    states["c"] = choice("$random() < 1", "d", "b")
    states["d"] = passing("b", n="{% $n + 1 %}")
    assert found("HF096", states) == "b"


def test_a_loop_over_a_list_is_bounded_by_its_length() -> None:
    states = counting(0, "$n < $count($xs)")
    states["a"]["Assign"]["xs"] = "{% $states.input.order.lines %}"
    (loop,) = proofs_of(states).loops
    assert str(loop.rounds) == "len(xs)"
    states["a"]["Assign"]["xs"] = [1, 2, 3]
    (loop,) = proofs_of(states).loops
    assert str(loop.rounds) == "3"
    states["c"]["Assign"]["xs"] = "{% $append($xs, 1) %}"
    assert found("HF096", states) == "b"


def test_a_counter_whose_limit_is_a_variable_with_one_value_is_counted_from_its_start() -> None:
    states = counting(1, "$n < $stop")
    states["a"]["Assign"]["stop"] = 14
    (loop,) = proofs_of(states).loops
    assert str(loop.rounds) == "13"


def test_a_loop_that_calls_a_task_with_what_has_changed_is_a_note() -> None:
    asks = {
        **call("t", "b"),
        "Arguments": {"n": "{% $n %}"},
        "Assign": {"n": "{% $states.result %}"},
    }
    states = {"a": passing("b", n=1), "b": choice("$n > 3", "end", "c"), "c": asks, "end": END}
    assert [one.severity for one in proofs_of(states).findings if one.code == "HF096"] == ["note"]
    states["c"]["Arguments"] = {"n": "{% $states.input.id %}"}
    assert [one.severity for one in proofs_of(states).findings if one.code == "HF096"] == [
        "warning"
    ]


BRANCHES: dict[str, Machine] = {"task": call("t"), "event": wait_for("paid")}
WAITS_OF_BRANCHES = [
    (1, "event", "HF097"),
    (1, "task", "HF096"),
    (None, "task", "HF097"),
    (2, "task", "HF097"),
]


def test_a_loop_without_a_bound_is_classified_by_its_waits() -> None:
    states = {"a": call("t", "b"), "b": choice("$random() < 1", "a", "end"), "end": END}
    assert found("HF096", states) == "a"
    states["b"] = {**states["b"], "Default": "w"}
    states["w"] = {"Type": "Wait", "Seconds": 1, "Next": "end"}
    assert found("HF096", states) == "a"
    states |= {"b": choice("$random() < 1", "w", "end"), "w": {**states["w"], "Next": "a"}}
    assert found("HF097", states) == "a"
    states["w"] = {**states["w"], "Seconds": "{% $random() %}"}
    assert found("HF096", states) == "a"
    (computed,) = (one for one in proofs_of(states).findings if one.code == "HF096")
    assert computed.severity == "note"


@pytest.mark.parametrize(("needed", "other", "code"), WAITS_OF_BRANCHES)
def test_a_parallel_waits_when_enough_of_its_branches_wait(
    needed: int | None, other: str, code: str
) -> None:
    sleep = {"Type": "Wait", "Seconds": 60, "End": True}
    branches = [{"StartAt": "s", "States": {"s": sleep}}]
    branches.append({"StartAt": "o", "States": {"o": {**BRANCHES[other], "End": True}}})
    race: Machine = {"Type": "Parallel", "Branches": branches, "Next": "b"}
    if needed is not None:
        race["Holdfast"] = {"Needed": needed}
    states = {"a": race, "b": choice("$random() < 1", "a", "end"), "end": END}
    assert code in codes(proofs_of(states))


@pytest.mark.parametrize(("tolerated", "code"), [(0, "HF096"), (1, "HF097")])
def test_a_parallel_that_returns_errors_waits_only_for_the_failures_that_end_it(
    tolerated: int, code: str
) -> None:
    sleep = {"StartAt": "s", "States": {"s": {"Type": "Wait", "Seconds": 60, "End": True}}}
    broken = {"StartAt": "o", "States": {"o": {"Type": "Fail", "Error": "Broken"}}}
    extension = {"Tolerated": tolerated, "ReturnErrors": True}
    race: Machine = {"Type": "Parallel", "Branches": [sleep, broken], "Next": "b"}
    states = {"a": {**race, "Holdfast": extension}, "end": END}
    states["b"] = choice("$random() < 1", "a", "end")
    assert code in codes(proofs_of(states))


def test_a_loop_that_waits_may_have_a_bounded_loop_in_each_round() -> None:
    states = counting(0, "$n < 3")
    states["b"] = {**states["b"], "Default": "w"}
    states["w"] = {"Type": "Wait", "Seconds": 1, "Next": "d"}
    states["d"] = choice("$random() < 1", "a", "end")
    assert codes(proofs_of(states)) == {"HF097"}
    states["c"] = passing("b", n="{% $n + $random() %}")
    assert "HF096" in codes(proofs_of(states))


def test_a_wait_for_the_next_message_of_a_conversation_is_a_note() -> None:
    states = {"a": wait_for("message", "b"), "b": choice("$random() < 1", "a", "end"), "end": END}
    (message,) = (one for one in proofs_of(states).findings if one.code == "HF098")
    assert message.severity == "note"
    (once,) = (one for one in proofs_of({"a": wait_for("paid")}).findings if one.code == "HF098")
    assert once.severity == "warning"


def test_a_loop_that_takes_an_item_from_a_list_in_each_round_is_a_note() -> None:
    less = "{% [$filter($jobs, function($_value, $_place){ $_place != 0 })] %}"
    states = {
        "a": choice("$count($jobs) > 0", "b", "end"),
        "b": {"Type": "Pass", "Assign": {"jobs": less}, "Next": "c"},
        "c": call("t", "a"),
        "end": END,
    }
    (worklist,) = (one for one in proofs_of(states).findings if one.code == "HF096")
    assert (worklist.severity, "`jobs`" in worklist.message) == ("note", True)
    states["b"] = {**states["b"], "Assign": {"jobs": "{% $append($jobs, 1) %}"}}
    (endless,) = (one for one in proofs_of(states).findings if one.code == "HF096")
    assert endless.severity == "warning"


# -- waits -----------------------------------------------------------------------------------------


def test_a_wait_is_bounded_by_itself_its_block_or_its_machine() -> None:
    wait = {"a": wait_for("paid")}
    assert found("HF098", wait) == "a"
    assert codes(proofs_of({"a": wait_for("paid", TimeoutSeconds=5)})) == set()
    assert codes(proofs_of(wait, TimeoutSeconds=5)) == set()
    packed = {
        "a": {"Type": "Task", "Resource": PLACE.activity("pack"), "TimeoutSeconds": 5, "End": True}
    }  # counts from when a worker has it
    assert found("HF098", packed) == "a"
    assert codes(proofs_of(packed, TimeoutSeconds=5)) == set()
    block = {"Begin": "b", "Seconds": 60, "States": ["a"]}
    states = {"b": passing("a"), **wait}
    assert codes(proofs_of(states, Holdfast={"Deadlines": [block]})) == set()
    shielded = {"Deadlines": [block], "Shielded": [["a"]]}
    assert found("HF098", states, Holdfast=shielded) == "a"
    undo = {"States": ["b"], "Begin": "a", "End": "end"}
    states |= {"a": wait_for("paid", "end"), "end": END}
    taking_back = {"Deadlines": [block], "Undo": [undo]}
    assert found("HF098", states, Holdfast=taking_back) == "a"


def test_the_longest_wait_adds_timeouts_tries_and_delays() -> None:
    retry = [{"ErrorEquals": ["X"], "MaxAttempts": 2, "IntervalSeconds": 10, "BackoffRate": 2}]
    states = {
        "a": wait_for("paid", "b", TimeoutSeconds=100, Retry=retry),
        "b": {"Type": "Wait", "Seconds": 7, "End": True},
    }
    assert str(proofs_of(states).worst.seconds) == str(3 * 100 + 10 + 20 + 7)
    states["b"]["Seconds"] = "{% $max([0, 60 * 2]) %}"
    assert str(proofs_of(states).worst.seconds) == str(3 * 100 + 10 + 20 + 120)
    states["b"]["Seconds"] = "{% ($parts := $match($patience, /[0-9]+S/); $number($parts[0])) %}"
    assert str(proofs_of(states).worst.seconds) == "330 + seconds(patience)"
    assert proofs_of({"a": wait_for("paid")}).worst.seconds is None


@pytest.mark.parametrize(
    ("resource", "help_"),
    [
        ("holdfast:task:charge", "@task(timeout=minutes(1))"),
        ("arn:aws:states:::aws-sdk:sqs:sendMessage", ".options(timeout=minutes(1))(…)"),
    ],
)
def test_the_help_for_a_missing_timeout_fits_the_task(resource: str, help_: str) -> None:
    states = {"a": {"Type": "Task", "Resource": resource, "End": True}}
    for is_python, shown in ((True, help_), (False, '"TimeoutSeconds": 60')):
        proofs = prove("flow", machine(states), {}, is_python=is_python)
        (found_,) = [one for one in proofs.findings if one.code == "HF099"]
        assert found_.help == shown


def test_a_wait_for_a_condition_is_bounded_by_its_block_and_not_by_the_timeout_of_a_call() -> None:
    polled = {
        "Type": "Task",
        "Resource": "holdfast:poll:check",
        "End": True,
        "Holdfast": {"Poll": {"Seconds": 60, "Backoff": 2.0, "SecondsMax": 300}},
        "TimeoutSeconds": 5,
    }
    endless = proofs_of({"a": polled})
    assert found("HF098", {"a": polled}) == "a"
    assert (endless.worst.seconds, endless.worst.steps, endless.costs.holdfast) == (None,) * 3
    assert "HF099" not in {one.code for one in endless.findings}
    assert codes(proofs_of({"a": polled}, TimeoutSeconds=600)) == set()

    states = {"b": passing("a"), "a": polled}
    block = {"Begin": "b", "Seconds": 600, "States": ["a"]}
    bounded = proofs_of(states, Holdfast={"Deadlines": [block]})
    assert codes(bounded) == set()
    # The calls are at 0, 60, 180, 420 s; the next one would be at 720 s.
    assert (str(bounded.worst.seconds), str(bounded.worst.steps)) == ("600", "4")


def test_no_wait_for_a_condition_has_more_calls_than_its_bound() -> None:
    compiled = compile_workflow(condition_flows.deliver)
    run = World({condition_flows.check: None}).run(condition_flows.deliver, order="o1")
    worst = prove("deliver", compiled.asl, {}).worst
    # An error may begin the intervals anew, once for the one retry of the task.
    assert str(worst.steps) == str(2 * len(run.steps))


# -- sagas -----------------------------------------------------------------------------------------


SCOPES = """
from holdfast import compensating, each, first, minutes, parallel, task, timeout, workflow

@task
def a() -> None: ...

@task
def b() -> None: ...

@task
def c() -> None: ...

@workflow
def flow() -> None:
    def cleaned() -> None:
        try:
            a()
        finally:
            b()
    def undone() -> None:
        with compensating() as own:
            a()
            own(c)
            a()
"""
BOOKED = "    with compensating() as undo:\n        a()\n        undo(c)\n"


@pytest.mark.parametrize(
    ("body", "taken_back"),
    [
        ("    parallel(undone, undone)\n", 2),
        ("    parallel(a, cleaned)\n" + BOOKED, 1),
        ("    first(a, cleaned)\n" + BOOKED, 1),
        (BOOKED + "    parallel(a, cleaned)\n", 1),
        (BOOKED + "        parallel(cleaned, undone)\n", 2),
        (BOOKED + "        each([1, 2], lambda n: cleaned())\n", 1),
        (BOOKED.replace("with", "with timeout(minutes(5)),") + "        first(a, cleaned)\n", 1),
        ("    try:\n        parallel(a, undone)\n    finally:\n        b()\n", 1),
    ],
)
def test_the_report_says_what_is_taken_back_in_each_line_of_control(
    body: str, taken_back: int, tmp_path: Path
) -> None:
    with loaded(tmp_path, SCOPES + body) as module:
        (report,) = subjects_of_modules([module.__name__], compile_module(module))
    text = report.render()
    assert text.count(" by c") == taken_back
    assert "on failure, stop and time-out, the last first:" in text


TAKEN_BACK = """
from holdfast import compensating, parallel, task, workflow

@task
def book(trip: str) -> str: ...

@task
def rent(trip: str) -> str: ...

@task
def cancel(booking: str) -> None: ...

@workflow
def flow(trip: str) -> None:
    with compensating() as undo:
        flight, car = parallel(lambda: book(trip), lambda: rent(trip), return_exceptions=True)
        if isinstance(flight, str):
            undo(cancel, flight)
        if isinstance(car, str):
            undo(cancel, car)
        for outcome in (flight, car):
            if isinstance(outcome, Exception):
                raise outcome
"""


def test_an_undo_of_what_a_branch_gives_belongs_to_the_branch(tmp_path: Path) -> None:
    with loaded(tmp_path, TAKEN_BACK) as module:
        (report,) = subjects_of_modules([module.__name__], compile_module(module))
    assert "parallel(…) (line 16) by cancel" in report.render()
    assert codes(report.proofs) == set()
    half = TAKEN_BACK.replace("undo(cancel, car)", "pass")
    with loaded(tmp_path, half) as module:
        (report,) = subjects_of_modules([module.__name__], compile_module(module))
    (finding,) = [one for one in report.proofs.findings if one.code == "HF0A1"]
    assert finding.message.endswith('"rent"')


def test_a_retry_may_repeat_a_task_without_key_and_undo() -> None:
    states = {"a": call("charge", Retry=RETRY)}
    assert found("HF0A0", states, charge=UNSAFE) == "a"
    assert codes(proofs_of(states, KEYED)) == set()
    assert codes(proofs_of(states)) == set()
    assert found("HF0A1", {"a": call("charge")}, charge=UNSAFE) == "a"


@task
def keyed(order: str) -> str:
    return _with_key(order)


def _with_key(order: str) -> str:
    return min([order], key=lambda _: task_context().idempotency_key)


@task
def careless(order: str) -> str:
    return str.upper(order)


@pure
def total(order: str) -> str:
    return order


def test_a_key_is_found_in_helpers_and_inner_functions_of_the_module() -> None:
    tasks = {"keyed": keyed, "careless": careless, "total": total}
    safe = {name for name, facts in facts_of_tasks(tasks).items() if facts.may_be_repeated}
    assert safe == {"keyed", "total"}


def test_undos_run_on_failure_only_where_every_step_hands_its_errors_over() -> None:
    states = saga("charge", "register", "ship")
    states |= {"undo": {**call("refund"), "Next": "undone"}, "undone": {"Type": "Fail"}}
    del states["undo"]["End"]
    undo = {"States": ["charge", "register", "ship"], "Begin": "undo", "End": "undone"}
    extension = {"Undo": [{**undo, "Assign": {"x": 1}}]}

    def shown() -> str:
        proofs = proofs_of(states, Holdfast=extension)
        return render(proofs, lambda _state, _location: SourceLocation("f", 1, 1))

    assert (
        "on stop and time-out, the last first:\n             charge (line 1) by refund" in shown()
    )
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "undo"}]
    states["charge"] = {**states["charge"], "Catch": catch}
    states["ship"] = {**states["ship"], "Catch": catch}
    assert "on failure, stop and time-out, the last first:" in shown()


def test_a_step_hands_its_errors_to_the_innermost_part_that_it_stands_in() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "undo"}]
    states = saga("charge", "register", "ship")
    for name in ("charge", "ship"):
        states[name] = {**states[name], "Catch": catch}
    states |= {"undo": call("refund", "undone"), "undone": {"Type": "Fail"}}
    states |= {"at last": call("unlock", "raise again"), "raise again": {"Type": "Fail"}}
    parts = ["charge", "register", "ship"]
    inner = {"States": parts, "Begin": "undo", "End": "undone", "Assign": {"x": 1}}
    outer = {"States": parts, "Begin": "at last", "End": "raise again"}
    proofs = proofs_of(states, Holdfast={"Undo": [inner, outer]})
    assert "on failure, stop and time-out" in render(proofs, lambda *_: SourceLocation("f", 1, 1))


def saga(*names: str) -> Machine:
    """With compensation: the states of these names in this order."""
    undo = '{% $append($undo, [{"task": "refund", "arguments": {"id": $payment}}]) %}'
    made = {
        "charge": call("charge", Assign={"payment": "{% $states.result %}"}),
        "register": passing(undo=undo),
        "ship": call("ship"),
    }
    states = {"with": passing(names[0], undo=[])}
    for name, target in zip(names, [*names[1:], "end"], strict=True):
        states[name] = {key: value for key, value in made[name].items() if key != "End"}
        states[name]["Next"] = target
    return {**states, "end": END}


def test_an_undo_belongs_directly_behind_its_action() -> None:
    assert found("HF0A2", saga("charge", "ship", "register"), charge=UNSAFE) == "register"
    assert codes(proofs_of(saga("charge", "register", "ship"), UNSAFE)) == set()
    states = saga("charge", "ship", "register")
    states["ship"]["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "register"}]
    assert codes(proofs_of(states, UNSAFE)) == set()


def test_an_undo_of_one_of_two_steps_is_an_undo_of_both() -> None:
    register = saga("charge", "register")["register"]
    charge = call("charge", "register", Assign={"payment": "{% $states.result %}"})
    states = {
        "with": passing("which", undo=[]),
        "which": choice("$random() < 0.5", "a", "b"),
        "a": charge,
        "b": charge,
        "register": register,
        "end": END,
    }
    assert codes(proofs_of(states, UNSAFE)) == set()
    shown = render(proofs_of(states), lambda *_: SourceLocation("f", 1, 1))
    assert "refund (line 1), for which step is not known" in shown


def test_side_effects_without_an_undo_are_reported_once() -> None:
    states = {"a": call("charge", "b"), "b": call("charge", "c"), "c": call("charge")}
    assert found("HF0A1", states, charge=UNSAFE) == "a"


def test_an_undo_that_is_registered_before_its_action_also_runs_without_it() -> None:
    states = saga("register", "charge")
    states["register"]["Assign"]["undo"] = states["register"]["Assign"]["undo"].replace(
        "$payment", '"order-1"'
    )
    assert found("HF0A3", states, charge=KEYED) == "register"
    assert found("HF0A3", states, charge=UNSAFE) == "register"
    shown = render(proofs_of(states), lambda *_: SourceLocation("f", 1, 1))
    assert "refund (line 1), before what it takes back" in shown


def test_a_history_longer_than_step_functions_allows_is_reported() -> None:
    states = counting(0, "$n < 7000")
    assert found("HF0A5", states) == "a"
    assert codes(proofs_of(counting(0, "$n < 6000"))) == set()


# -- extensions ------------------------------------------------------------------------------------


def test_an_undo_that_only_a_stop_runs_is_reached_and_sees_the_variables_there() -> None:
    states = {
        "a": passing("b", x=1),
        "b": {"Type": "Wait", "Seconds": 9, "Next": "end"},
        "end": END,
        "undo": {**call("t", Arguments={"x": "{% $x %}"}), "Next": "undone"},
        "undone": {"Type": "Fail"},
    }
    del states["undo"]["End"]
    undo = {"States": ["b"], "Begin": "undo", "End": "undone"}
    assert codes(proofs_of(states, Holdfast={"Undo": [undo]})) == set()
    early = {**undo, "States": ["a", "b"]}
    assert found("HF093", states, Holdfast={"Undo": [early]}) == "undo"
    given = {**early, "Assign": {"x": 0}}
    assert codes(proofs_of(states, Holdfast={"Undo": [given]})) == set()


def test_a_deadline_leads_on_from_everywhere_in_its_block() -> None:
    states = {
        "a": passing("b"),
        "b": passing("c", x=1),
        "c": call("t", "end"),
        "late": passing(y="{% $x %}"),
        "end": END,
    }
    block = {"Begin": "a", "Seconds": 60, "States": ["b", "c"], "Next": "late"}
    assert found("HF093", states, Holdfast={"Deadlines": [block]}) == "late"
    given = {**block, "Assign": {"x": 0}}
    assert codes(proofs_of(states, Holdfast={"Deadlines": [given]})) == set()


def test_a_block_bounds_how_long_a_wait_in_it_can_take() -> None:
    states = {"a": passing("b"), "b": wait_for("paid", "c"), "c": END}
    block = {"Begin": "a", "Seconds": 60, "States": ["b"]}
    assert str(proofs_of(states, Holdfast={"Deadlines": [block]}).worst.seconds) == "60"


def test_a_race_with_a_timer_bounds_a_wait() -> None:
    def race(*others: Machine, needed: int = 1) -> Machine:
        branches = [{"StartAt": f"b{n}", "States": {f"b{n}": one}} for n, one in enumerate(others)]
        extension = {"Needed": needed, "Tolerated": 0}
        state = {"Type": "Parallel", "Branches": branches, "End": True, "Holdfast": extension}
        return {"p": state}

    timer = {"Type": "Wait", "Seconds": 9, "End": True}
    proofs = proofs_of(race(wait_for("paid"), timer))
    assert codes(proofs) == set()
    assert str(proofs.worst.seconds) == "9"
    assert found("HF098", race(wait_for("paid"), timer, needed=2)) == "b0"
    assert found("HF098", race(wait_for("paid"), call("t"))) == "b0"


def nested(kind: str, *lines: Machine, **fields: Any) -> Machine:
    """A Parallel or a Map of lines of one state each."""
    machines = [
        {"StartAt": f"{kind}{n}", "States": {f"{kind}{n}": one}} for n, one in enumerate(lines)
    ]
    inner = {"Branches": machines} if kind == "Parallel" else {"ItemProcessor": machines[0]}
    items = {} if kind == "Parallel" else {"Items": "{% $states.input.xs %}"}
    return {"Type": kind, **inner, **items, "End": True, **fields}


def test_a_race_is_bounded_by_a_branch_that_ends_in_time_whatever_is_in_it() -> None:
    first = {"Holdfast": {"Needed": 1, "Tolerated": 0}}
    timer = {"Type": "Wait", "Seconds": 9, "End": True}
    answer = wait_for("paid", TimeoutSeconds=5)

    def race(other: Machine) -> Machine:
        branches = [{"StartAt": "w", "States": {"w": wait_for("stop")}}]
        branches += [{"StartAt": "o", "States": {"o": other}}]
        return {"p": {"Type": "Parallel", "Branches": branches, "End": True, **first}}

    for bounded in (nested("Map", answer), nested("Map", nested("Parallel", timer, answer))):
        assert "HF098" not in codes(proofs_of(race(bounded)))
    assert "HF098" not in codes(proofs_of(race(nested("Parallel", wait_for("x"), timer, **first))))
    assert found("HF098", race(nested("Map", call("t")))) == "w"
    for open_ in (nested("Map", wait_for("x")), nested("Parallel", wait_for("x"), timer)):
        assert {one.code for one in proofs_of(race(open_)).findings} >= {"HF098"}


def test_a_race_between_bounds_that_are_not_known_yet_takes_the_longer() -> None:
    waits = [
        {"Type": "Wait", "Seconds": f"{{% $states.input.{name} %}}", "End": True} for name in "ab"
    ]
    branches = [{"StartAt": f"b{n}", "States": {f"b{n}": one}} for n, one in enumerate(waits)]
    open_ = {"StartAt": "w", "States": {"w": wait_for("x")}}
    extension = {"Needed": 1, "Tolerated": 1}
    state = {"Type": "Parallel", "Branches": [*branches, open_], "End": True, "Holdfast": extension}
    assert proofs_of({"p": state}).worst.seconds is not None


# -- all together ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(150)))
def test_a_random_machine_is_reported_on_and_valid(seed: int) -> None:
    definition = Machines(Random(seed)).machine()
    assert not diagnose(json.dumps(definition))
    proofs = prove("flow", definition, {})
    assert "history    at most" in render(
        proofs, lambda _state, _location: SourceLocation("f", 1, 1)
    )
    # An assignment of 1/0 never succeeds, so only names may be found.
    assert {code for code in codes(proofs) if code < "HF0A0"} <= {"HF092"}


@pytest.mark.parametrize("path", sorted((ROOT / "statemachines").glob("*.asl.json")))
def test_the_workflows_of_this_repository_have_no_warnings_and_are_proved_at_once(
    path: Path,
) -> None:
    definition = json.loads(path.read_text())
    prove("warm", definition, {})
    with stopwatch() as watch:
        proofs = prove("flow", definition, {})
    assert watch.seconds < SECONDS_MAX
    assert {found.severity for found in proofs.findings} <= {"note"}


def test_a_finding_shows_its_line_and_a_caret() -> None:
    (finding,) = proofs_of({"a": wait_for("paid")}).findings
    shown = Placed(finding, SourceLocation("f.py", 7, 5, "    bank = wait()", width=13)).render()
    assert shown.splitlines() == [
        'f.py:7:5: warning[HF098]: "a" waits for an event, and nothing bounds how long',
        "    7 |     bank = wait()",
        "      |     ^^^^^^^^^^^^^",
        '      = help: "TimeoutSeconds": 259200',
    ]


def test_the_page_lists_every_code() -> None:
    page = (ROOT / "docs" / "explanation" / "proofs.md").read_text(encoding="utf-8")
    for code, meaning in CODES.items():
        assert f"| {code} | {meaning} |" in page
    assert set(re.findall(r"^\| (HF\w+) \|", page, re.MULTILINE)) == set(CODES)


def test_the_page_shows_the_output_of_check(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["check", "statemachines.order_fulfilment"]) == 0
    page = (ROOT / "docs" / "explanation" / "proofs.md").read_text(encoding="utf-8")
    for line in capsys.readouterr().out.splitlines():
        assert line in page.splitlines()


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (["with timeout(minutes(5)):", "    LOOP"], "300"),
        (["LOOP"], "None"),
        (["while not ready(key):", "    with timeout(minutes(5)):", "        LOOP"], "None"),
        (["with timeout(minutes(5)), shielded():", "    LOOP"], "None"),
        (
            [
                "with timeout(minutes(5)):",
                "    try:",
                "        LOOP",
                "    finally:",
                "        work()",
            ],
            "300",
        ),
    ],
)
def test_the_deadline_of_a_block_bounds_the_time_of_a_loop_in_it(
    lines: list[str], seconds: str, tmp_path: Path
) -> None:
    body = "".join(f"    {line}\n" for line in lines)
    indent = body.partition("LOOP")[0].rpartition("\n")[2]
    loop = f"while not ready(key):\n{indent}    sleep(seconds(9))"
    with loaded(tmp_path, f"{POLLED}{body.replace('LOOP', loop)}") as module:
        asl = compile_workflow(module.flow).asl
    assert str(worst_of(levels_of(asl)).seconds) == seconds


POLLED = """
from holdfast import minutes, seconds, shielded, sleep, task, timeout, workflow

@task
def ready(key: str) -> bool:
    return True

@task
def work() -> None: ...

@workflow
def flow(key: str) -> None:
"""
