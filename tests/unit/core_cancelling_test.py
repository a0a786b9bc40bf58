"""Lines that are cancelled: undone from the inside, shielded, out of time.
docs/reference/extensions.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.facts import RedriveRequested, StopRequested
from tests.builders import Machine, call, machine, wait_for
from tests.unit.core_kit import Case, part

STOP = StopRequested("1", None, None)


def side_by_side(*names: str, **fields: Any) -> Machine:
    """Branches that each have something to undo, then the task `then`."""
    parts = [part(name) for name in names]
    branches = [
        {"StartAt": name, "States": states} for name, (states, _) in zip(names, parts, strict=True)
    ]
    parallel = {"Type": "Parallel", "Branches": branches, "Next": "then", **fields}
    states = {"all": parallel, "then": call("then"), "caught": call("caught")}
    return machine(states, Holdfast={"Undo": [undo for _, undo in parts]})


def test_the_siblings_of_a_failure_are_undone_before_it_is_handled() -> None:
    catch = [{"ErrorEquals": ["Broken"], "Next": "caught"}]
    case = Case(side_by_side("a", "b", Catch=catch)).start().fail("Broken", "why", at="a")

    assert case.positions == ["undo b"]
    assert case.frame("undo b").variables["why_b"] == "Holdfast.Cancelled"
    case.succeed(at="undo b")
    assert case.positions == ["caught"]
    assert case.frame("caught").input == {"Error": "Broken", "Cause": "why"}


def test_a_part_that_is_being_undone_is_not_cancelled_a_second_time() -> None:
    """A branch fails while the lanes of its sibling are open; a stop comes as these are undone."""
    inner = side_by_side("a", "b")
    lanes = {**inner["States"]["all"], "End": True}
    del lanes["Next"]
    branches = [
        {"StartAt": "inner", "States": {"inner": lanes}},
        {"StartAt": "fails", "States": {"fails": call("fails")}},
    ]
    outer = {"Type": "Parallel", "Branches": branches, "End": True}
    case = Case(machine({"outer": outer}, Holdfast=inner["Holdfast"])).start()
    case.fail("Broken", at="fails").offer(STOP)

    assert sorted(case.positions) == ["undo a", "undo b"]
    closed = [event.details for event in case.events if event.type == "Closing"]
    assert len(closed) == len(["of the failure", "of the sibling", "of the stop"])
    assert case.succeed(at="undo a").succeed(at="undo b").status == "ABORTED"


def test_the_losers_of_a_race_are_undone_before_the_winner_continues() -> None:
    case = Case(side_by_side("a", "b", "c", Holdfast={"Needed": 1})).start().succeed(7, at="b")

    assert sorted(case.positions) == ["undo a", "undo c"]
    case.succeed(at="undo c").succeed(at="undo a")
    assert case.positions == ["then"]
    assert case.frame("then").input == [None, 7, None]


def test_a_retry_of_lanes_waits_for_their_undo() -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    case = Case(side_by_side("a", "b", Retry=retry)).start().fail("Broken", at="a")

    case.succeed(at="undo b").after(2)
    assert case.positions == ["a", "b"]


def test_a_stop_while_the_siblings_are_undone_waits_for_them_and_ends_aborted() -> None:
    case = Case(side_by_side("a", "b")).start().fail("Broken", at="a").offer(STOP)

    assert case.status == "RUNNING"
    assert case.succeed(at="undo b").status == "ABORTED"


def test_a_time_out_of_the_execution_is_undone_as_a_stop_is() -> None:
    definition = side_by_side("a", "b") | {"TimeoutSeconds": 60}
    case = Case(definition).start().after(61)

    assert sorted(case.positions) == ["undo a", "undo b"]
    assert case.frame("undo a").variables["why_a"] == "States.Timeout"
    case.succeed(at="undo a").succeed(at="undo b")
    assert case.status == "TIMED_OUT"


def test_a_stop_lets_the_undo_of_a_time_out_finish() -> None:
    definition = side_by_side("a", "b") | {"TimeoutSeconds": 60}
    case = Case(definition).start().after(61).offer(STOP)

    assert case.offer(StopRequested("2", None, None)).status == "RUNNING"
    case.succeed(at="undo a").succeed(at="undo b")
    assert case.status == "ABORTED"


def test_a_stop_that_does_not_wait_ends_lanes_and_shields() -> None:
    now = StopRequested("2", None, None, now=True)

    assert Case(side_by_side("a", "b")).start().offer(STOP).offer(now).status == "ABORTED"
    assert Case(shielded("first")).start().offer(now).status == "ABORTED"


def test_an_undo_is_not_begun_twice() -> None:
    """The state where it ends lies in the part itself."""
    states, undo = part("a")
    undo["States"] = ["a", "a undone"]
    case = Case(machine(states, Holdfast={"Undo": [undo]})).start().offer(STOP).succeed()

    assert case.status == "ABORTED"


def test_a_stop_that_comes_during_an_undo_lets_it_end() -> None:
    """The undo runs because a step has failed; the handler after it is not reached."""
    states, undo = part("a")
    states["a"]["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "undo a"}]
    states["a undone"] = call("handler")
    case = Case(machine(states, Holdfast={"Undo": [undo]})).start().fail("Broken").offer(STOP)

    assert case.positions == ["undo a"]
    assert case.succeed().status == "ABORTED"


def shielded(*names: str) -> Machine:
    states = {"first": call("first", "second"), "second": call("second", "third")}
    return machine(
        {**states, "third": call("third")}, Holdfast={"Shielded": [list(names)]}, TimeoutSeconds=60
    )


def test_a_shielded_part_is_finished_before_the_execution_ends() -> None:
    case = Case(shielded("first", "second")).start().offer(STOP)

    assert case.positions == ["first"]
    assert case.succeed().positions == ["second"]
    assert case.succeed().status == "ABORTED"


def test_a_time_out_waits_for_a_shielded_part() -> None:
    case = Case(shielded("first")).start().after(61)

    assert case.succeed().status == "TIMED_OUT"


def test_a_timer_due_in_a_shielded_part_waits_for_the_tick_after_the_time_out() -> None:
    rest = {"rest": {"Type": "Wait", "Seconds": 60, "End": True}}
    definition = machine(rest, Holdfast={"Shielded": [["rest"]]}, TimeoutSeconds=60)
    case = Case(definition).start().after(60)

    assert (case.types[-1], case.status) == ("Cancelled", "RUNNING")
    assert case.after(0).status == "TIMED_OUT"


def test_two_shielded_parts_in_a_row_have_a_gap_between_them() -> None:
    definition = shielded("first")
    definition["Holdfast"]["Shielded"].append(["third"])
    case = Case(definition).start().offer(STOP)

    assert case.succeed().status == "ABORTED"


def test_a_shielded_part_that_fails_ends_as_the_stop_says() -> None:
    case = Case(shielded("first")).start().offer(STOP).fail("Broken")

    assert case.status == "ABORTED"


def test_an_execution_that_ends_in_a_shielded_part_was_stopped_all_the_same() -> None:
    case = Case(shielded("first", "second", "third")).start().offer(STOP)

    assert case.succeed().succeed().succeed("done").status == "ABORTED"


def timed(body: Machine, *names: str, seconds: Any = 60, **deadline: Any) -> Machine:
    """`names` are the states of a block with a deadline; afterwards comes `late` or `after`."""
    begin = {"block": {"Type": "Pass", "Next": names[0]}}
    rest = {"late": call("late"), "after": call("after")}
    found = {"Begin": "block", "Seconds": seconds, "States": list(names), "Next": "late"}
    extension = {"Deadlines": [{**found, **deadline}], **body.pop("Holdfast", {})}
    return machine({**begin, **body, **rest}, Holdfast=extension)


BODY = {"one": call("one", "two"), "two": call("two", "after")}


def test_a_block_that_ends_in_time_continues() -> None:
    case = Case(timed({**BODY}, "one", "two")).start().after(50).succeed().succeed()

    assert case.after(60).positions == ["after"]
    assert case.frame("after").deadlines == ()


def test_a_late_block_continues_at_the_handler_of_its_error() -> None:
    assign = {"err": "{% $states.errorOutput %}"}
    case = Case(timed({**BODY}, "one", "two", Assign=assign)).start().succeed().after(61)

    assert case.positions == ["late"]
    assert case.frame("late").variables["err"] == {"Error": "BlockTimeout", "Cause": ""}


def test_an_unhandled_error_fails_the_line() -> None:
    definition = timed({**BODY}, "one", "two")
    del definition["Holdfast"]["Deadlines"][0]["Next"]
    case = Case(definition).start().after(61)

    assert case.failure == ("BlockTimeout", "")


def test_a_line_whose_wait_is_over_with_its_block_has_been_cancelled() -> None:
    """It does nothing more of its own, and the next step begins once."""
    body = {"one": {"Type": "Wait", "Seconds": 60, "Next": "after"}}
    case = Case(timed(body, "one")).start().after(61)

    assert (case.positions, case.types.count("TaskScheduled")) == (["late"], 1)


@pytest.mark.parametrize(
    "open_in", ["block", "one", "elsewhere"], ids=lambda word: f"open-in-{word}"
)
def test_an_entry_is_open_while_a_wait_or_a_deadline_has_its_number(open_in: str) -> None:
    case = Case(timed({**BODY}, "one", "two")).start()
    (due,) = case.frame("one").deadlines
    entries = {"block": due.entry, "one": case.waiting().entry, "elsewhere": 7}

    assert case.state.is_open(entries[open_in]) == (open_in != "elsewhere")


def test_the_time_may_be_worked_out() -> None:
    case = Case(timed({**BODY}, "one", "two", seconds="{% $states.input.s %}")).start({"s": 5})

    assert case.after(4).positions == ["one"]
    assert case.after(2).positions == ["late"]


@pytest.mark.parametrize("seconds", ["{% 'soon' %}", "{% 0 %}", "{% 1.5 %}"])
def test_a_time_that_no_block_can_have_fails_it(seconds: str) -> None:
    case = Case(timed({**BODY}, "one", "two", seconds=seconds)).start()

    assert case.failure[0] == "States.QueryEvaluationError"
    assert case.last("EvaluationFailed").details["location"] == "Seconds"


def test_the_clock_restarts_each_time_the_block_is_entered() -> None:
    body = {"one": call("one", "two"), "two": call("two", "block")}
    case = Case(timed(body, "one", "two")).start()
    for _ in range(3):
        case.after(50).succeed().succeed()

    assert case.positions == ["one"]
    assert len(case.frame("one").deadlines) == 1


def test_a_wait_in_a_late_block_accepts_no_answer() -> None:
    case = Case(timed({"one": wait_for("paid", "after")}, "one")).start().after(61)

    assert case.positions == ["late"]


def test_the_open_steps_of_a_late_block_are_undone_first() -> None:
    states, undo = part("one", "after")
    body = {**states, "Holdfast": {"Undo": [undo]}}
    case = Case(timed(body, "one", "undo one", "one undone")).start().after(61)

    assert case.positions == ["undo one"]
    assert case.frame("undo one").variables["why_one"] == "BlockTimeout"
    assert case.succeed().positions == ["late"]


def test_an_undo_around_a_late_block_is_left_alone() -> None:
    states, undo = part("one", "after")
    undo["States"] = ["block", "one", "late"]
    body = {**states, "Holdfast": {"Undo": [undo]}}
    case = Case(timed(body, "one")).start().after(61)

    assert case.positions == ["late"]
    assert "UndoStarted" not in case.types
    assert case.offer(STOP).positions == ["undo one"]


def test_the_lanes_of_a_late_block_are_cancelled_with_it() -> None:
    body = side_by_side("a", "b")
    inside = {"all": body["States"]["all"] | {"Next": "after"}, "Holdfast": body["Holdfast"]}
    case = Case(timed(inside, "all")).start().after(61)

    assert sorted(case.positions) == ["undo a", "undo b"]
    assert case.frame("undo a").variables["why_a"] == "BlockTimeout"
    assert case.succeed(at="undo b").succeed(at="undo a").positions == ["late"]


def test_of_two_deadlines_that_have_passed_the_outer_one_counts() -> None:
    body = {"inner": {"Type": "Pass", "Next": "one"}, "one": call("one", "after")}
    definition = timed({**body, "early": call("early")}, "inner", "one", "early")
    inner = {"Begin": "inner", "Seconds": 60, "States": ["one"], "Next": "early"}
    definition["Holdfast"]["Deadlines"].insert(0, inner)

    assert Case(definition).start().after(61).positions == ["late"]


def test_an_inner_deadline_leaves_the_outer_one_running() -> None:
    body = {"inner": {"Type": "Pass", "Next": "one"}, "one": call("one", "after")}
    definition = timed({**body, "early": call("early")}, "inner", "one", "early")
    inner = {"Begin": "inner", "Seconds": 30, "States": ["one"], "Next": "early"}
    definition["Holdfast"]["Deadlines"].insert(0, inner)
    case = Case(definition).start().after(31)

    assert case.positions == ["early"]
    assert case.after(30).positions == ["late"]


def test_a_stop_cancels_the_undo_of_a_deadline() -> None:
    states, undo = part("one", "after")
    body = {**states, "Holdfast": {"Undo": [undo]}}
    case = Case(timed(body, "one", "undo one", "one undone")).start().after(61).offer(STOP)

    assert case.positions == ["undo one"]
    assert case.succeed().status == "ABORTED"


def test_steps_that_a_deadline_has_undone_are_not_undone_for_a_stop_again() -> None:
    """The state where the undo ends lies in the part itself, and is a step."""
    states, undo = part("one", "after")
    undo["States"] = ["one", "one undone"]
    body = {**states, "one undone": call("again"), "Holdfast": {"Undo": [undo]}}
    case = Case(timed(body, "one", "undo one", "one undone")).start().after(61).offer(STOP)
    assert case.positions == ["undo one"]

    assert case.succeed().status == "ABORTED"


def test_a_shielded_part_outlasts_the_deadline_around_it() -> None:
    body = {**BODY, "Holdfast": {"Shielded": [["one"]]}}
    case = Case(timed(body, "one", "two")).start().after(61)

    assert case.positions == ["one"]
    assert case.succeed().positions == ["late"]


def test_a_shielded_part_that_ends_its_block_late_is_late_all_the_same() -> None:
    body = {**BODY, "Holdfast": {"Shielded": [["one", "two"]]}}
    case = Case(timed(body, "one", "two")).start().after(61).succeed().succeed()

    assert case.positions == ["late"]
    assert case.frame("late").cancelled is None


def test_a_line_that_ends_in_a_shielded_part_of_a_late_block_has_not_ended() -> None:
    body = {"one": call("one"), "Holdfast": {"Shielded": [["one"]]}}

    assert Case(timed({**body}, "one")).start().after(61).succeed().positions == ["late"]
    assert Case(timed({**body}, "one")).start().after(61).fail("Broken").positions == ["late"]


def test_a_late_block_does_not_enter_another_shielded_part() -> None:
    body = {"one": call("one", "after"), "Holdfast": {"Shielded": [["one"], ["after"]]}}

    assert Case(timed(body, "one")).start().after(61).succeed().positions == ["late"]


def test_a_redrive_gives_a_block_its_whole_time_again() -> None:
    case = Case(timed({**BODY}, "one", "two")).start().after(50).fail("Broken")
    assert case.status == "FAILED"

    case.after(100).offer(RedriveRequested("5"))

    assert case.after(50).positions == ["one"]
    assert case.after(11).positions == ["late"]


def test_the_part_after_a_shielded_one_without_a_step_is_not_cancelled() -> None:
    """As a coroutine is cancelled where it waits next, and nowhere before."""
    body = {"one": call("one", "two"), "two": {"Type": "Pass", "Assign": {"n": 1}, "Next": "three"}}
    shields = {"Shielded": [["one"]]}
    states, undo = part("three")
    definition = machine({**body, **states}, Holdfast={**shields, "Undo": [undo]})
    case = Case(definition).start().offer(STOP).succeed()

    assert case.positions == ["undo three"]
    assert case.frame("undo three").variables["n"] == 1


@pytest.mark.parametrize(
    ("starts", "is_undone"),
    [(["wait"], True), (["nothing"], False), (["nothing", "nothing"], True)],
)
def test_of_branches_only_those_with_something_to_wait_for_are_a_step(
    starts: list[str], is_undone: bool
) -> None:
    """After a shielded part a stop finds a Parallel, and behind it the task `three`."""
    states, undo = part("three")
    lanes = {"wait": {"Type": "Pass", "End": True}, "nothing": {"Type": "Succeed"}}
    branches = [
        {"StartAt": f"{start} {number}", "States": {f"{start} {number}": lanes[start]}}
        for number, start in enumerate(starts)
    ]
    parallel = {"Type": "Parallel", "Branches": branches, "Assign": {"n": 1}, "Next": "three"}
    definition = machine(
        {"one": call("one", "all"), "all": parallel, **states},
        Holdfast={"Shielded": [["one"]], "Undo": [{**undo, "States": ["all", "three"]}]},
    )
    case = Case(definition).start().offer(STOP).succeed()

    assert case.positions == ["undo three"]
    assert ("n" not in case.frame("undo three").variables) == is_undone


def nested_blocks(outer_s: int, inner_s: int) -> Machine:
    """with timeout(outer): with shielded(): with timeout(inner): one; then two, then after."""
    body = {"inner": {"Type": "Pass", "Next": "one"}, "one": call("one", "two")}
    rest = {"two": call("two", "after"), "early": call("early", "two")}
    definition = timed({**body, **rest}, "inner", "one", "early", "two", seconds=outer_s)
    inner = {"Begin": "inner", "Seconds": inner_s, "States": ["one"], "Next": "early"}
    definition["Holdfast"]["Deadlines"].insert(0, inner)
    definition["Holdfast"]["Shielded"] = [["inner", "one", "early"]]
    return definition


def test_a_deadline_in_a_shielded_part_passes_though_the_one_around_it_has() -> None:
    case = Case(nested_blocks(60, 100)).start().after(61)
    assert case.positions == ["one"]

    assert case.after(40).positions == ["early"]
    assert case.succeed().positions == ["late"]


def test_a_deadline_around_a_shielded_part_waits_for_its_end() -> None:
    case = Case(nested_blocks(100, 60)).start().after(61)
    assert case.positions == ["early"]

    assert case.after(40).positions == ["early"]
    assert case.succeed().positions == ["late"]


def test_a_stop_lets_the_deadline_in_a_shielded_part_pass() -> None:
    case = Case(nested_blocks(1_000, 60)).start().offer(STOP).after(61)

    assert case.positions == ["early"]
    assert case.succeed().status == "ABORTED"


def test_a_deadline_around_a_shielded_part_does_not_end_it_after_a_stop() -> None:
    case = Case(nested_blocks(60, 1_000)).start().offer(STOP).after(61)

    assert case.positions == ["one"]
    assert case.succeed().status == "ABORTED"


def test_a_deadline_does_not_end_the_undo_of_a_stop_in_its_block() -> None:
    states, undo = part("a")
    block = timed({**states, "Holdfast": {"Undo": [undo]}}, *states)
    case = Case(block).start().offer(STOP).after(61)

    assert case.positions == [undo["Begin"]]
    assert case.succeed().status == "ABORTED"


def test_a_deadline_between_two_shields_passes_when_the_inner_one_ends() -> None:
    definition = nested_blocks(1_000, 60)
    definition["Holdfast"]["Shielded"].append(["one"])
    case = Case(definition).start().offer(STOP).after(61)

    assert case.positions == ["one"]
    assert case.succeed().positions == ["early"]
    assert case.succeed().status == "ABORTED"


def test_the_handler_of_an_undos_error_is_not_shielded_by_it() -> None:
    """A `finally` in which an error is raised and handled outside of it."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "clean"}]
    on = {"Condition": "{% true %}", "Next": "handler"}
    states = {
        "it": call("it", Catch=catch),
        "clean": call("clean", "which"),
        "which": {"Type": "Choice", "Choices": [on], "Default": "again"},
        "handler": call("handler"),
        "again": {"Type": "Fail", "Error": "again"},
    }
    undo = {"States": ["it"], "Begin": "clean", "End": "again"}
    definition = machine(states, Holdfast={"Undo": [undo], "Shielded": [["clean"]]})
    case = Case(definition).start().fail("Broken").succeed()
    assert case.positions == ["handler"]

    assert case.offer(STOP).status == "ABORTED"
