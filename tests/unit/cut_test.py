"""A deadline or a stop interrupts a workflow only where it waits: both runs of `World` agree."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import hours, seconds
from holdfast.testing import Run, World, takes
from tests.unit import cut_flows as flows

LATE: Any = takes(seconds(5), "done")


def milliseconds(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def replies(run: Run[Any]) -> list[Any]:
    return [reply.get("value") for reply in run.replies.values()]


@pytest.mark.parametrize("at_ms", [999, 1_000, 1_001, 1_999, 2_000, 2_001])
def test_a_request_near_a_deadline_is_replied_to_and_returned(at_ms: int) -> None:
    world = World()
    world.request("go", "stop", key="a", at=milliseconds(at_ms))
    run = world.run(flows.rounds, "a")
    assert (run.output, replies(run), run.ended) == ("stop", ["ok"], milliseconds(at_ms))
    assert run.published == {"data": "stop"}


def test_every_request_until_a_deadline_has_a_reply() -> None:
    world = World()
    for number in range(20):
        world.request("go", f"{number}", key="a", at=milliseconds(10_000))
    run = world.run(flows.many, "a")
    assert len(run.replies) == len(run.output) > 0


def test_a_deadline_interrupts_the_task_of_a_request() -> None:
    world = World({flows.work: LATE})
    world.request("go", 1, key="a", at=seconds(1))
    run = world.run(flows.works, "a")
    ((_, reply),) = run.replies.items()
    assert (run.output, reply["error"], run.ended) == ("late", "RequestCancelled", seconds(2))


@pytest.mark.parametrize("at", [1, 2])
def test_a_shielded_request_is_replied_to_and_returned(at: int) -> None:
    world = World({flows.work: LATE})
    world.request("go", 1, key="a", at=seconds(at))
    run = world.run(flows.shielded_work, "a")
    assert (run.output, replies(run), run.ended) == ("done", ["done"], seconds(at + 5))


@pytest.mark.parametrize(
    "flow", [flows.returned_in_a_shield, flows.returned_behind_a_shield], ids=lambda one: one.name
)
def test_a_return_before_the_next_step_counts(flow: Any) -> None:
    run = World({flows.work: LATE}).run(flow, 1)
    assert (run.output, run.ended) == ("done", seconds(5))


def test_a_block_that_is_left_before_its_next_step_is_left_in_time() -> None:
    run = World({flows.work: LATE}).run(flows.left_behind_a_shield, 1)
    assert (run.output, run.steps) == ("done!", ["work", "note"])


def test_the_next_wait_is_interrupted_and_what_stands_before_it_is_not() -> None:
    run = World({flows.work: LATE}).run(flows.slept_behind_a_shield, 1)
    assert (run.output, run.steps) == ("late", ["work", "done"])


def test_a_break_before_the_next_step_counts() -> None:
    run = World({flows.work: LATE}).run(flows.broken_off_behind_a_shield, 1)
    assert (run.output, run.ended) == (3, seconds(15))


def test_an_error_before_the_next_step_is_that_error() -> None:
    run = World({flows.work: LATE}).run(flows.failed_behind_a_shield, 1)
    assert run.output == "refused: done"
    run = World({flows.work: LATE}).run(flows.failed_in_a_shield, 1)
    assert (run.status, run.error, run.cause) == ("FAILED", "RefusedError", "no")


def test_the_clean_up_of_a_late_block_runs_and_its_return_counts() -> None:
    run = World({flows.work: LATE}).run(flows.cleaned_up, 1)
    assert (run.output, run.steps) == ("done", ["work", "note"])


def test_a_late_block_in_a_late_block_is_left_and_the_outer_one_is_interrupted() -> None:
    run = World({flows.work: LATE}).run(flows.both_late, 1)
    assert (run.output, run.steps) == ("outer late", ["work", "inner"])


def test_the_return_of_a_late_branch_counts() -> None:
    run = World({flows.work: LATE}).run(flows.branches_late, [1, 2])
    assert (run.output, run.ended) == (["done", "done"], seconds(5))


def test_a_branch_that_has_lost_a_race_sends_and_does_not_begin_a_step() -> None:
    run = World({flows.work: LATE}).run(flows.raced, 1)
    assert (run.output, run.steps, run.ended) == ("quick", ["work", "lost"], seconds(5))


def test_a_workflow_continues_as_new_behind_a_late_shield() -> None:
    world = World({flows.work: LATE})
    for at in (0.5, 6):
        world.request("go", 1, key="a", at=seconds(at) if at >= 1 else milliseconds(500))
    run = world.run(flows.renewed, "a")
    assert (run.output, replies(run)) == ("end", ["done", "done"])


def test_a_stop_lets_the_statements_before_the_next_step_happen() -> None:
    world = World({flows.work: takes(hours(1), "done")})
    world.send("go", "on", key="a", at=seconds(1))
    world.stop(at=seconds(2))
    run = world.run(flows.stopped, "a")
    assert (run.status, run.published) == ("ABORTED", {"went": "on"})
    assert run.steps == ["go", "work", "went"]
