"""A workflow that calls a workflow: results, stops, displays and missing workflows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from holdfast.api.surface import InvalidArguments
from holdfast.errors import RequestError, ServiceFault, VaultFault
from holdfast.limits import CHILD_DEPTH_MAX
from holdfast.runtime import child_workflows, messages
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Message,
    NoResult,
    PutIfAbsent,
    Query,
    Send,
    TaskSucceeded,
)
from holdfast.runtime.maintenance import lost_starts
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import AnyTypes, Machine, call, machine, wait_for
from tests.unit.child_kit import TENANT, Family, call_of

DAY = 86_400
ERROR = "{% [$states.errorOutput.Error, $states.errorOutput.Cause] %}"
CAUGHT = [{"ErrorEquals": ["States.ALL"], "Output": ERROR, "Next": "caught"}]
CALL = {
    "call": call_of("inner", Arguments={"n": 1}, Catch=CAUGHT),
    "caught": {"Type": "Pass", "End": True},
}
OUTER = machine(CALL)
ADD_ONE = machine({"add": call("add", Arguments={"n": "{% $states.input.n %}"})})
WAITS = machine({"wait": wait_for("paid")})


def failing(error: str, cause: str) -> Machine:
    return machine({"fail": {"Type": "Fail", "Error": error, "Cause": cause}})


def outcome(inner: Machine, outer: Machine = OUTER) -> Any:
    family = Family({"outer": outer, "inner": inner})
    state = family.run().state
    assert family.is_sound()
    return state.output if state.status == "SUCCEEDED" else (state.error, state.cause)


# -- results ---------------------------------------------------------------------------------------


def test_the_result_is_the_output_of_the_child_itself() -> None:
    family = Family({"outer": OUTER, "inner": ADD_ONE})
    assert family.run().state.output == {"n": 2}
    (child,) = family.children
    assert (child.state.workflow, child.state.origin) == ("inner", None)
    assert family.is_sound()


def test_a_failure_passes_on_the_childs_own_error_and_cause() -> None:
    assert outcome(failing("OutOfStock", "only nine")) == ["OutOfStock", "only nine"]


def test_an_uncaught_error_of_a_child_ends_the_parent() -> None:
    outer = machine({"call": call_of("inner", Arguments={})})
    assert outcome(failing("OutOfStock", "only nine"), outer) == ("OutOfStock", "only nine")


def test_an_error_that_nothing_could_catch_in_the_child_is_caught_around_it() -> None:
    error, cause = outcome(failing("States.Runtime", "no such path"))
    assert (error, cause) == ("States.TaskFailed", "no such path")


def test_a_child_that_takes_too_long_is_a_time_out() -> None:
    inner = machine({"wait": wait_for("paid")}, TimeoutSeconds=60)
    family = Family({"outer": OUTER, "inner": inner})
    outer = family.run()
    assert family.output[0] == "States.Timeout"
    assert [event.type for event in outer.events].count("TaskTimedOut") == 1
    assert family.statuses() == ("SUCCEEDED", ["TIMED_OUT"])


def test_a_child_that_was_stopped_is_an_error_that_can_be_caught() -> None:
    family = Family({"outer": OUTER, "inner": WAITS})
    family.start()
    family.settle()
    family.stop(family.children[0].run, error="Shop.Closed", cause="for good")
    family.world.run()
    assert family.statuses() == ("SUCCEEDED", ["ABORTED"])
    told = "inner was stopped: Shop.Closed: for good"
    assert family.outer.state.output == ["Holdfast.Aborted", told]


def test_values_that_no_item_can_hold_go_to_the_child_and_back() -> None:
    large = "x" * 600_000
    same = machine({"same": {"Type": "Pass", "End": True}})
    family = Family({"outer": machine({"call": call_of("inner")}), "inner": same})
    assert family.run({"text": large}).state.output == {"text": large}


def test_a_retry_starts_another_child() -> None:
    retry = [{"ErrorEquals": ["OutOfStock"], "IntervalSeconds": 5, "MaxAttempts": 2}]
    outer = machine({"call": call_of("inner", Arguments={}, Retry=retry)})
    family = Family({"outer": outer, "inner": failing("OutOfStock", "")})
    family.run()
    assert [child.run.rpartition(".")[2] for child in family.children] == ["1", "2", "3"]
    assert family.is_sound()


# -- arguments -------------------------------------------------------------------------------------


def test_an_input_that_does_not_fit_fails_the_step_and_starts_nothing() -> None:
    outer = machine({**CALL, "call": call_of("inner", Arguments={"n": "one"}, Catch=CAUGHT)})
    family = Family({"outer": outer, "inner": ADD_ONE})
    family.run()
    error, cause = family.output
    assert error == InvalidArguments.__name__ == child_workflows.INVALID_ARGUMENTS
    assert cause == "n: input should be a number"
    assert family.children == []


def test_a_vault_that_cannot_seal_a_childs_input_fails_the_step_by_name() -> None:
    class Closed(AnyTypes):
        def normalise_input(self, tenant: str, workflow: str, value: Any) -> Any:
            del tenant, workflow, value
            raise VaultFault("HF327", "the vault is closed")

    family = Family({"outer": OUTER, "inner": ADD_ONE})
    workflows = replace(family.world.setting.workflows, types=Closed())
    family.world.setting = replace(family.world.setting, workflows=workflows)
    family.run()
    assert family.output == ["Holdfast.SecretUnavailable", "the vault is closed"]
    assert family.children == []


def test_a_workflow_calls_itself() -> None:
    left = "{% $states.input.n - 1 %}"
    again = {"Condition": "{% $states.input.n > 0 %}", "Next": "again"}
    flow = machine(
        {
            "any left?": {"Type": "Choice", "Choices": [again], "Default": "none"},
            "none": {"Type": "Succeed", "Output": 0},
            "again": call_of("outer", Arguments={"n": left}, Output="{% $states.result + 1 %}"),
        }
    )
    family = Family({"outer": flow})
    assert family.run({"n": 7}).state.output == 7
    assert len(family.children) == 7
    assert family.is_sound()


def test_calls_without_end_fail_before_their_ids_grow_too_long() -> None:
    family = Family({"outer": machine({"call": call_of("outer", Arguments={})})})
    state = family.run().state
    assert (state.status, state.error) == ("FAILED", "Holdfast.TooDeep")
    assert len(family.children) == CHILD_DEPTH_MAX


# -- which definition ------------------------------------------------------------------------------


def test_a_child_runs_the_newest_definition_and_keeps_it() -> None:
    twice = machine({"call": call_of("inner", "more"), "more": call_of("inner", Arguments={})})
    old = machine({"wait": wait_for("paid", "done"), "done": {"Type": "Succeed", "Output": "old"}})
    family = Family({"outer": twice, "inner": old})
    family.start()
    family.settle()
    new = family.deploy("inner", machine({"done": {"Type": "Succeed", "Output": "new"}}))
    family.pay()
    family.world.run()
    first, second = family.children
    assert (first.state.output, second.state.output) == ("old", "new")
    assert second.state.definition == new.hash
    assert family.is_sound()


#: More states than one record holds: a reader of the log continues from within.
COUNTS = machine(
    {
        "begin": {"Type": "Pass", "Assign": {"n": 0}, "Next": "count"},
        "count": {"Type": "Pass", "Assign": {"n": "{% $n + 1 %}"}, "Next": "more?"},
        "more?": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $n < 600 %}", "Next": "count"}],
            "Default": "newer",
        },
        "newer": call("newer", Arguments={}),
    }
)


@dataclass
class NewerComesFirst:
    """While the old host is about to write the child's record 0, a newer host writes it, and
    crashes.
    """

    family: Family
    newer: str = ""

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not isinstance(effect, PutIfAbsent) or effect.table != "executions" or world.kills:
            return
        if "." not in str(effect.item["pk"]):
            return
        if when == "after":
            raise Killed
        if self.newer:
            return
        self.newer = self.family.deploy("inner", COUNTS).hash
        run = str(effect.item["pk"]).partition("#")[2]
        body = messages.start(
            TENANT,
            run,
            workflow="inner",
            definition=self.newer,
            input={"v": "{}"},
            t0=world.now_ms,
            parent={"run": run.partition(".")[0], "entry": 0, "attempt": 1},
        )
        world.services.perform(Send((Message(body),)))
        for message in world.services.receive("work"):
            world.deliver(message, "work")


def test_of_two_definitions_that_were_sent_the_childs_own_record_decides() -> None:
    family = Family({"outer": OUTER, "inner": machine({"old": call("old")})})
    family.world.hook = race = NewerComesFirst(family)
    family.world.tasks = lambda effect: TaskSucceeded(effect.name)
    assert family.run().state.output == "newer"
    assert family.children[0].state.definition == race.newer
    assert (family.world.kills, len(family.world.task_runs)) == (1, 1)
    assert family.world.faults == []
    assert family.is_sound()


# -- stops -----------------------------------------------------------------------------------------


def test_a_stop_of_the_parent_stops_the_child_and_its_child() -> None:
    middle = machine({"call": call_of("inner", Arguments={})})
    outer = machine({"call": call_of("middle", Arguments={})})
    family = Family({"outer": outer, "middle": middle, "inner": WAITS})
    run = family.start()
    family.settle()
    family.stop(run)
    family.settle()
    assert family.statuses() == ("ABORTED", ["ABORTED", "ABORTED"])
    assert family.is_sound()


def test_a_parent_that_runs_out_of_time_stops_the_child() -> None:
    outer = machine({"call": call_of("inner", Arguments={})}, TimeoutSeconds=60)
    family = Family({"outer": outer, "inner": WAITS})
    family.run()
    assert family.statuses() == ("TIMED_OUT", ["ABORTED"])


def test_a_branch_that_fails_stops_the_child_of_its_sibling() -> None:
    waits = {"StartAt": "call", "States": {"call": call_of("inner", Arguments={})}}
    soon = {"Type": "Wait", "Seconds": 5, "Next": "fail"}
    fails = {"StartAt": "soon", "States": {"soon": soon, "fail": {"Type": "Fail", "Error": "No"}}}
    caught = [{"ErrorEquals": ["No"], "Next": "after"}]
    both = {"Type": "Parallel", "Branches": [waits, fails], "Catch": caught, "Next": "after"}
    family = Family({"outer": machine({"both": both, "after": wait_for("paid")}), "inner": WAITS})
    family.start()
    family.settle(60)
    assert family.statuses() == ("RUNNING", ["ABORTED"])


@pytest.mark.parametrize(
    "extension",
    [
        pytest.param({"Needed": 1, "Tolerated": 0}, id="another branch was first"),
        pytest.param({}, id="all are waited for"),
    ],
)
def test_a_child_without_a_waiting_parent_is_stopped(extension: Machine) -> None:
    waits = {"StartAt": "call", "States": {"call": call_of("inner", Arguments={})}}
    quick = {"StartAt": "rest", "States": {"rest": {"Type": "Wait", "Seconds": 5, "End": True}}}
    both: Machine = {"Type": "Parallel", "Branches": [waits, quick], "Next": "after"}
    both |= {"Holdfast": extension} if extension else {}
    family = Family({"outer": machine({"both": both, "after": wait_for("paid")}), "inner": WAITS})
    family.start()
    family.settle(60)
    assert family.statuses() == ("RUNNING", ["ABORTED" if extension else "RUNNING"])


def test_a_stop_undoes_the_parent_and_stops_its_child_at_once() -> None:
    undo = {"States": ["call"], "Begin": "undo", "End": "over"}
    states = {
        "call": call_of("inner", "over", Arguments={}),
        "undo": call("undo", "over", Arguments={}),
        "over": {"Type": "Fail", "Error": "Over"},
    }
    outer = machine(states, Holdfast={"Undo": [undo]})
    family = Family({"outer": outer, "inner": WAITS}, lambda _: TaskSucceeded({}))
    run = family.start()
    family.settle()
    family.stop(run)
    family.settle()
    assert family.statuses() == ("ABORTED", ["ABORTED"])
    assert {entry for _, entry, _ in family.world.task_runs} == {1}
    assert family.is_sound()


def with_an_undo(**top: Any) -> tuple[Family, str, str]:
    """Return a child that takes a minute for its undo; the ids of its parent and its own."""
    states = {
        "wait": wait_for("paid"),
        "undo": {"Type": "Wait", "Seconds": 60, "Next": "over"},
        "over": {"Type": "Fail", "Error": "Over"},
    }
    undo = {"States": ["wait"], "Begin": "undo", "End": "over"}
    inner = machine(states, Holdfast={"Undo": [undo]}, **top)
    family = Family({"outer": OUTER, "inner": inner})
    run = family.start()
    family.settle()
    return family, run, family.children[0].run


@pytest.mark.parametrize("child_first", [True, False])
def test_a_stop_of_a_child_and_one_of_its_parent_do_not_add_up(child_first: bool) -> None:
    family, parent, child = with_an_undo()
    for run in (child, parent) if child_first else (parent, child):
        family.stop(run, error="Shop.Closed")
        family.settle(10)
        assert family.children[0].state.status == "RUNNING"
    family.settle(60)
    assert family.children[0].state.status == "ABORTED"
    assert family.children[0].state.is_undone
    assert family.children[0].state.error == "Shop.Closed"
    assert family.is_sound()


def test_stops_of_a_child_that_its_parent_has_left_wait_for_its_undo_unless_they_say_so() -> None:
    family, parent, child = with_an_undo()
    family.stop(parent)
    family.settle(10)
    for is_now in (False, False, True):
        family.stop(child, now=is_now)
        family.settle(1)
        assert family.children[0].state.is_ended is is_now


def test_a_stop_of_the_parent_that_does_not_wait_lets_its_child_undo() -> None:
    """The request does not mention the called executions."""
    family, parent, _ = with_an_undo()
    family.stop(parent, now=True)
    family.settle(10)
    assert family.statuses() == ("ABORTED", ["RUNNING"])
    family.settle(60)
    assert family.statuses() == ("ABORTED", ["ABORTED"])
    assert family.children[0].state.is_undone
    assert family.is_sound()


def test_a_parent_that_ends_stops_a_child_that_is_too_late_already() -> None:
    """And its undo has all the time that it needs."""
    family, parent, _ = with_an_undo(TimeoutSeconds=5)
    family.settle(10)
    family.stop(parent)
    family.settle(10)
    assert family.statuses() == ("ABORTED", ["RUNNING"])
    family.settle(60)
    assert family.statuses() == ("ABORTED", ["ABORTED"])


def test_the_time_out_of_a_call_stops_the_child() -> None:
    late = call_of("inner", Arguments={}, TimeoutSeconds=30, Catch=CAUGHT)
    outer = machine({**CALL, "call": late})
    family = Family({"outer": outer, "inner": WAITS})
    family.run()
    assert family.output[0] == "States.Timeout"
    assert family.statuses() == ("SUCCEEDED", ["ABORTED"])


# -- display ---------------------------------------------------------------------------------------


def test_the_parent_names_the_child_and_the_child_its_parent() -> None:
    family = Family({"outer": OUTER, "inner": WAITS})
    run = family.start()
    family.settle()
    (wait,) = family.describe(run)["waits"]
    child = f"{run}.0.1"
    assert (wait["kind"], wait["workflow"], wait["execution"]) == ("workflow", "inner", child)
    assert "token" not in wait
    shown = family.describe(child)
    assert (shown["parent"], shown["workflow"], shown["status"]) == (run, "inner", "RUNNING")
    assert "parent" not in family.describe(run)


def test_a_call_that_will_be_tried_again_is_shown_with_its_time() -> None:
    retry = [{"ErrorEquals": ["OutOfStock"], "IntervalSeconds": 600, "MaxAttempts": 1}]
    outer = machine({"call": call_of("inner", Arguments={}, Retry=retry)})
    family = Family({"outer": outer, "inner": failing("OutOfStock", "")})
    run = family.start()
    family.settle()
    (wait,) = family.describe(run)["waits"]
    assert (wait["kind"], wait["execution"]) == ("workflow", f"{run}.0.2")
    assert "retry_at" in wait


def test_a_child_is_listed_under_its_own_workflow() -> None:
    family = Family({"outer": OUTER, "inner": ADD_ONE})
    run = family.run().run
    listed = family.insist(lambda: family.front.executions(TENANT, {"workflow": "inner"}))
    assert [row["execution"] for row in listed["executions"]] == [f"{run}.0.1"]


def test_a_child_that_no_worker_has_begun_is_known_and_one_that_was_made_up_is_not() -> None:
    family = Family({"outer": OUTER, "inner": WAITS})
    run = family.start()
    (message,) = family.world.services.receive("starts")
    family.world.deliver(message, "starts")
    assert family.describe(f"{run}.0.1")["waits"] == [{"kind": "start"}]
    for made_up in (f"{run}.0.2", f"{run}.9.1", f"{run}.0.1.0.1"):
        with pytest.raises(RequestError, match="HF207"):
            family.describe(made_up)


# -- an end that comes again -----------------------------------------------------------------------


def _told_and_left() -> tuple[Family, str]:
    """Return once the child has ended, and the parent has counted it and continued."""
    nap = {"Type": "Wait", "Seconds": 3_600, "End": True}
    outer = machine({"it": call_of("inner", "nap", Arguments={}), "nap": nap})
    family = Family({"outer": outer, "inner": machine({"it": {"Type": "Succeed"}})})
    run = family.start()
    family.settle(60)
    assert family.statuses() == ("RUNNING", ["SUCCEEDED"])
    return family, run


def _sends_of_its_end_again(family: Family) -> int:
    sends = family.world.services.effects["Send"]
    recover = Message(messages.recover(TENANT, family.children[0].run))
    family.world.services.perform(Send((recover,)))
    family.settle(300)
    return family.world.services.effects["Send"] - sends - 1


def test_an_end_that_comes_again_does_not_wake_a_parent_that_has_counted_it() -> None:
    """Where nothing can be deleted each level of parents would multiply the messages."""
    family, _ = _told_and_left()
    assert _sends_of_its_end_again(family) == 0


def test_an_end_that_comes_again_wakes_a_parent_that_has_no_log_yet() -> None:
    family, run = _told_and_left()
    for item in family.world.services.items("executions"):
        if str(item["pk"]).endswith(run):
            family.world.services.perform(Delete("executions", str(item["pk"]), int(item["sk"])))
    assert _sends_of_its_end_again(family) == 1


def test_an_end_that_comes_again_wakes_a_parent_whose_log_cannot_be_read() -> None:
    family, run = _told_and_left()
    faults: list[Effect] = []

    def busy_once(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_read = isinstance(effect, Query) and effect.pk.endswith(run) and when == "before"
        if is_read and not faults:
            faults.append(effect)
            raise ServiceFault("HF321", "slow down")

    family.world.hook = busy_once
    assert _sends_of_its_end_again(family) == 1
    assert len(faults) == 1
    assert family.world.faults == []


# -- unknown workflows -----------------------------------------------------------------------------


def test_an_unknown_workflow_parks_the_parent_named_until_a_worker_knows_it() -> None:
    family = Family({"outer": OUTER})
    run = family.start()
    family.settle(600)
    (wait,) = family.describe(run)["waits"]
    assert (wait["kind"], wait["workflow"]) == ("unknown_workflow", "inner")
    assert "'inner'" in wait["reason"]
    family.deploy("inner", ADD_ONE)
    family.settle(7_200)
    assert family.outer.state.output == {"n": 2}
    assert family.is_sound()


# -- cost ------------------------------------------------------------------------------------------


def bill_of(calls: int) -> Any:
    """Return the cost of a chain of this many calls of a child with one task."""
    following = {number: f"call {number + 1}" for number in range(calls - 1)}
    states = {
        f"call {number}": call_of("inner", following.get(number), Arguments={})
        for number in range(calls)
    }
    inner = machine({"work": call("work", Arguments={})})
    family = Family({"outer": machine(states), "inner": inner}, lambda _: TaskSucceeded({}))
    for definition in family.known.values():
        family.world.call(family.programs.store(TENANT, definition))
    before = replace(family.world.services.usage)
    family.run()
    return before, family.world.services.usage


def test_a_call_of_a_child_of_one_task_costs_seven_write_units_and_two_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_later(*_: object) -> NoResult:
        """Leave out the sweeper's check of the starts: tests/unit/counts_test.py counts it."""
        yield from ()

    monkeypatch.setattr(lost_starts, "sweep", check_later)
    (before_one, one), (before_two, two) = bill_of(1), bill_of(2)

    # The parent's two records, the inbox message between them; the row of the child's start, the
    # child's two records, its listing.
    one_writes = one.write_units - before_one.write_units
    assert two.write_units - before_two.write_units - one_writes == 7
    one_reads = one.read_units - before_one.read_units
    assert two.read_units - before_two.read_units - one_reads == 4
    one_sends = one.sqs_send_requests - before_one.sqs_send_requests
    assert two.sqs_send_requests - before_two.sqs_send_requests - one_sends == 2
