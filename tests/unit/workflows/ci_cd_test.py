"""A commit is shipped, or everything is as it was before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import hours, minutes, role
from holdfast.testing import World, check_workflow, fails, in_turn, never, real, takes
from statemachines.ci_cd import (
    Approval,
    Build,
    Commit,
    Health,
    LockTaken,
    MigrationFailed,
    Outcome,
    SuiteCrashed,
    SuiteReport,
    migrate_database,
    read_health,
    release_deploy_lock,
    run_suite,
    shift_traffic,
    ship_commit,
    start_rollout,
    take_deploy_lock,
)
from tests.thorough import worlds

COMMIT = Commit(service="shop", sha="c0ffee")
SUITES = ["unit", "api", "browser"]
BUILT = Build(succeeded=True, image="shop:c0ffee", suites=SUITES)
APPROVE = "Ship c0ffee of shop?"
WELL = Health(requests=900, failing_per_mille=1)
ILL = Health(requests=900, failing_per_mille=21)
ROLLED_BACK = ["roll_back", "migrate_back", "release_deploy_lock"]


def a_world(
    outcomes: dict[Any, Any] | None = None,
    *,
    built: Build | None = BUILT,
    approved: bool | None = True,
) -> World:
    """Return a world. The build takes ten minutes, the release manager an hour; None: no answer
    comes.
    """
    world = World(outcomes, others=real)
    if built is not None:
        world.send("build.finished", built, key="build-c0ffee", at=minutes(10))
    if approved is not None:
        approval = Approval(approved=approved, note="" if approved else "not on a Friday")
        world.answer(APPROVE, approval, assignee=role("release_manager"), at=hours(1))
    return world


def crashing(*suites: str) -> Any:
    """The suites that never come to a result."""

    def run(image: str, suite: str) -> SuiteReport:
        if suite in suites:
            raise SuiteCrashed(f"{suite} on {image}")
        return SuiteReport(suite=suite, failed_tests=[])

    return run


def test_a_commit_that_is_well_is_shipped_in_stages() -> None:
    run = a_world().run(ship_commit, COMMIT)
    assert run.output == Outcome(sha="c0ffee", status="shipped")
    assert [call.arguments["percent"] for call in run.calls_of(shift_traffic)] == [5, 25, 100]
    assert len(run.calls_of(read_health)) == 9
    assert run.ended == hours(1) + minutes(45)
    assert run.steps[-2:] == ["release_deploy_lock", "report"]


# -- Build and tests -------------------------------------------------------------------------------


def test_a_build_that_fails_ends_it_and_nothing_is_tested() -> None:
    run = a_world(built=Build(succeeded=False, image="", suites=[], log="line 7")).run(
        ship_commit, COMMIT
    )
    assert run.output == Outcome(sha="c0ffee", status="build_failed", reason="line 7")
    assert run.steps == ["start_build", "build.finished", "report"]


def test_a_build_that_takes_more_than_an_hour_is_cancelled() -> None:
    run = a_world(built=None).run(ship_commit, COMMIT)
    assert run.output.status == "build_failed"
    assert run.steps == ["start_build", "build.finished", "cancel_build", "report"]
    assert run.ended == hours(1)


def test_a_failing_test_ends_it() -> None:
    failed = SuiteReport(suite="api", failed_tests=["test_login"])
    ok = SuiteReport(suite="unit", failed_tests=[])
    run = a_world({run_suite: in_turn(ok, failed, ok)}).run(ship_commit, COMMIT)
    assert run.output == Outcome(sha="c0ffee", status="tests_failed", reason="api")


def test_a_suite_that_crashes_once_is_run_again() -> None:
    run = a_world({run_suite: fails(SuiteCrashed("gone"), times=1, then=real)}).run(
        ship_commit, COMMIT
    )
    assert run.output == Outcome(sha="c0ffee", status="shipped")
    assert len(run.calls_of(run_suite)) == 4


def test_one_suite_may_stay_broken_and_the_release_manager_is_notified() -> None:
    run = a_world({run_suite: crashing("browser")}).run(ship_commit, COMMIT)
    assert run.output == Outcome(sha="c0ffee", status="shipped", broken_suites=["browser"])
    (asked,) = run.calls_of(APPROVE)
    assert asked.arguments["details"]["broken_suites"] == ["browser"]


@pytest.mark.parametrize(("allowed", "status"), [(0, "tests_failed"), (2, "shipped")])
def test_how_many_may_stay_broken_is_said_by_the_commit(allowed: int, status: str) -> None:
    commit = COMMIT.model_copy(update={"broken_suites_allowed": allowed})
    suites = SUITES[:1] if allowed == 0 else SUITES[:2]
    assert a_world({run_suite: crashing(*suites)}).run(ship_commit, commit).output.status == status


def test_two_broken_suites_are_too_many() -> None:
    run = a_world({run_suite: crashing("api", "browser")}).run(ship_commit, COMMIT)
    assert (run.output.status, run.output.reason) == ("tests_failed", "too many suites crashed")


def test_suites_run_four_at_a_time() -> None:
    built = BUILT.model_copy(update={"suites": ["a", "b", "c", "d", "e"]})
    run = a_world({run_suite: takes(minutes(5), crashing())}, built=built).run(ship_commit, COMMIT)
    assert [call.at // 60 for call in run.calls_of(run_suite)] == [10, 10, 10, 10, 15]


# -- Approval and lock -----------------------------------------------------------------------------


def test_without_an_approval_nothing_is_deployed() -> None:
    run = a_world(approved=False).run(ship_commit, COMMIT)
    assert run.output == Outcome(sha="c0ffee", status="rejected", reason="not on a Friday")
    assert take_deploy_lock.name not in run.steps


def test_an_approval_has_a_day() -> None:
    run = a_world(approved=None).run(ship_commit, COMMIT)
    assert run.output.status == "lapsed"
    assert run.ended == minutes(10) + hours(24)


def test_another_deployment_is_waited_for() -> None:
    run = a_world({take_deploy_lock: fails(LockTaken("busy"), times=5, then=real)}).run(
        ship_commit, COMMIT
    )
    assert run.output.status == "shipped"


def test_another_deployment_is_not_waited_for_for_ever() -> None:
    run = a_world({take_deploy_lock: LockTaken("shop is deployed")}).run(ship_commit, COMMIT)
    assert (run.output.status, run.output.reason) == ("busy", "shop is deployed")
    assert release_deploy_lock.name not in run.steps
    assert len(run.calls_of(take_deploy_lock)) == 20


# -- Rollout ---------------------------------------------------------------------------------------


def test_an_ill_version_is_rolled_back_and_the_lock_is_released() -> None:
    run = a_world({read_health: in_turn(WELL, WELL, WELL, WELL, ILL)}).run(ship_commit, COMMIT)
    assert run.output == Outcome(
        sha="c0ffee", status="rolled_back", reason="21 of 1000 requests fail at 25%"
    )
    assert run.steps[-4:] == [*ROLLED_BACK, "report"]


def test_a_migration_that_is_refused_leaves_nothing_to_take_back() -> None:
    run = a_world({migrate_database: MigrationFailed("locked table")}).run(ship_commit, COMMIT)
    assert (run.output.status, run.output.reason) == ("rolled_back", "locked table")
    assert run.steps[-3:] == ["migrate_database", "release_deploy_lock", "report"]


def test_a_rollout_that_is_not_over_within_an_hour_is_rolled_back() -> None:
    slow = {migrate_database: takes(minutes(8), real), shift_traffic: takes(minutes(4), None)}
    run = a_world(slow).run(ship_commit, COMMIT)
    assert run.output == Outcome(
        sha="c0ffee", status="rolled_back", reason="not over within an hour"
    )
    assert run.steps[-4:] == [*ROLLED_BACK, "report"]
    assert run.ended == hours(2)


def test_health_that_cannot_be_read_is_no_health() -> None:
    run = a_world({read_health: never}).run(ship_commit, COMMIT)
    assert (run.status, run.error) == ("FAILED", "States.Timeout")
    assert run.steps[-3:] == ROLLED_BACK


def test_an_unexpected_error_is_rolled_back_too_and_fails_the_run() -> None:
    run = a_world({start_rollout: ConnectionError("no machines")}).run(ship_commit, COMMIT)
    assert (run.status, run.error, run.cause) == ("FAILED", "ConnectionError", "no machines")
    assert run.steps[-2:] == ["migrate_back", "release_deploy_lock"]


# -- Stop and time-out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "last"),
    [
        (minutes(5), ["start_build", "build.finished", "cancel_build"]),
        (minutes(30), ["run_suite", APPROVE]),
        (hours(1) + minutes(12), ["read_health", *ROLLED_BACK]),
    ],
)
def test_a_stop_undoes_the_finished_steps(when: timedelta, last: list[str]) -> None:
    world = a_world()
    world.stop(at=when)
    run = world.run(ship_commit, COMMIT)
    assert run.status == "ABORTED"
    assert run.steps[-len(last) :] == last


def test_a_migration_that_is_under_way_is_finished_before_a_stop_takes_it_back() -> None:
    world = a_world({migrate_database: takes(minutes(10), real)})
    world.stop(at=hours(1) + minutes(1))
    run = world.run(ship_commit, COMMIT)
    assert (run.status, run.ended) == ("ABORTED", hours(1) + minutes(10))
    assert run.steps[-3:] == ["migrate_database", "migrate_back", "release_deploy_lock"]


def test_a_deployment_that_runs_after_26_hours_is_rolled_back() -> None:
    busy = fails(LockTaken("busy"), times=19, then=real)
    world = World({take_deploy_lock: busy, shift_traffic: takes(minutes(4), None)}, others=real)
    world.send("build.finished", BUILT, key="build-c0ffee", at=minutes(59))
    world.answer(APPROVE, Approval(approved=True), at=hours(24) + minutes(58))
    run = world.run(ship_commit, COMMIT)
    assert (run.status, run.ended) == ("TIMED_OUT", hours(26))
    assert run.steps[-3:] == ROLLED_BACK


def test_in_every_world_it_behaves_as_its_python() -> None:
    assert check_workflow(ship_commit, examples=worlds(25))
