"""Ship a commit: build, test, ask, migrate, roll out in stages; roll back when it is not well."""

from __future__ import annotations

import logging
from typing import Final

from pydantic import BaseModel

from holdfast import (
    BlockTimeout,
    Retry,
    TaskError,
    WaitTimeout,
    ask,
    compensating,
    each,
    hours,
    minutes,
    role,
    shielded,
    sleep,
    task,
    task_context,
    timeout,
    wait_for_event,
    workflow,
)

STAGES: Final = (5, 25, 100)
"""Per cent of the traffic."""
CHECKS_PER_STAGE: Final = 3
FAILING_PER_MILLE_MAX: Final = 20
SUITES_SIDE_BY_SIDE: Final = 4

_outside = logging.getLogger("delivery")


class Commit(BaseModel):
    service: str
    sha: str
    broken_suites_allowed: int = 1
    """How many suites may crash, after their own retries; a failing test is never allowed."""


class Build(BaseModel):
    succeeded: bool
    image: str
    suites: list[str]
    log: str = ""


class SuiteReport(BaseModel):
    suite: str
    failed_tests: list[str]


class Approval(BaseModel):
    approved: bool
    note: str = ""


class Migration(BaseModel):
    version: int
    previous: int


class Rollout(BaseModel):
    id: str
    previous_image: str


class Health(BaseModel):
    requests: int
    failing_per_mille: int


class Outcome(BaseModel):
    sha: str
    status: str
    """ "shipped", or where it ended: "build_failed", "tests_failed", "rejected", "lapsed", "busy",
    "rolled_back"."""
    reason: str = ""
    broken_suites: list[str] = []


class SuiteCrashed(TaskError):
    """The suite did not come to a result: a machine went away, a browser hung."""


class LockTaken(TaskError):
    """Another deployment of the service is under way."""


class MigrationFailed(TaskError):
    """The database refused the new schema; nothing of it was kept."""


class Unhealthy(TaskError):
    """Too many requests fail with the new version."""


@task(timeout=minutes(2), retry=Retry(max_attempts=3))
def start_build(commit: Commit) -> str:
    """-> the number of the build; its end comes as the event `build.finished`."""
    build = f"build-{commit.sha}"
    _log(f"start {build}")
    return build


@task(timeout=minutes(2))
def cancel_build(build: str) -> None:
    _log(f"cancel {build}")


@task(timeout=minutes(14), retry=Retry(max_attempts=3, interval=minutes(1), on=(SuiteCrashed,)))
def run_suite(image: str, suite: str) -> SuiteReport:
    _log(f"run suite {suite} on {image}")
    return SuiteReport(suite=suite, failed_tests=[])


@task(
    timeout=minutes(1),
    retry=Retry(max_attempts=20, interval=minutes(1), backoff=1, on=(LockTaken,)),
)
def take_deploy_lock(service: str, sha: str) -> str:
    """-> the lock. Raises LockTaken after 20 minutes of patience."""
    _log(f"lock {service} for {sha}")
    return f"lock-{service}"


@task(timeout=minutes(1), retry=Retry(max_attempts=10, interval=minutes(1), max_delay=minutes(5)))
def release_deploy_lock(lock: str) -> None:
    _log(f"release {lock}")


@task(timeout=minutes(14))
def migrate_database(service: str, image: str) -> Migration:
    _log(f"bring the database of {service} to the schema of {image}")
    return Migration(version=2, previous=1)


@task(timeout=minutes(14), retry=Retry(max_attempts=3))
def migrate_back(service: str, version: int) -> None:
    _log(f"bring the database of {service} back to version {version}")


@task(timeout=minutes(5))
def start_rollout(service: str, image: str) -> Rollout:
    """The new version runs, without traffic."""
    _log(f"start {image} beside what {service} runs")
    return Rollout(id=f"rollout-{service}", previous_image=f"{service}:previous")


@task(timeout=minutes(5), retry=Retry(max_attempts=3))
def shift_traffic(rollout_id: str, percent: int) -> None:
    _log(f"give {percent}% of the traffic to {rollout_id}")


@task(timeout=minutes(5), retry=Retry(max_attempts=10, interval=minutes(1), max_delay=minutes(5)))
def roll_back(rollout: Rollout) -> None:
    _log(f"give all traffic of {rollout.id} to {rollout.previous_image}")


@task(timeout=minutes(1), retry=Retry(max_attempts=3), idempotent=True)
def read_health(rollout_id: str) -> Health:
    """Of the last five minutes; the simulated service is always well."""
    return Health(requests=1_000 + len(rollout_id), failing_per_mille=0)


@task(timeout=minutes(1))
def report(commit: Commit, text: str) -> None:
    _log(f"{commit.service} {commit.sha}: {text}")


@workflow(name="ci_cd", timeout=hours(26))
def ship_commit(commit: Commit) -> Outcome:
    try:
        with compensating() as undo:
            build_id = start_build(commit)
            undo(cancel_build, build_id)
            built = wait_for_event("build.finished", Build, key=build_id, timeout=hours(1))
    except WaitTimeout:
        built = Build(succeeded=False, image="", suites=[], log="not over within an hour")
    if not built.succeeded:
        report(commit, f"the build failed: {built.log}")
        return Outcome(sha=commit.sha, status="build_failed", reason=built.log)

    try:
        reports = each(
            built.suites,
            lambda suite: run_suite(built.image, suite),
            concurrency=SUITES_SIDE_BY_SIDE,
            tolerate=commit.broken_suites_allowed,
        )
    except SuiteCrashed as err:
        report(commit, f"too many suites crashed, the last one with: {err}")
        return Outcome(sha=commit.sha, status="tests_failed", reason="too many suites crashed")
    red = [ran.suite for ran in reports if ran is not None and len(ran.failed_tests) > 0]
    if red:
        report(commit, f"tests failed in {', '.join(red)}")
        return Outcome(sha=commit.sha, status="tests_failed", reason=", ".join(red))
    broken = [suite for number, suite in enumerate(built.suites) if reports[number] is None]

    try:
        approval = ask(
            f"Ship {commit.sha} of {commit.service}?",
            Approval,
            assignee=role("release_manager"),
            details={"image": built.image, "broken_suites": broken},
            timeout=hours(24),
        )
    except WaitTimeout:
        return Outcome(sha=commit.sha, status="lapsed", broken_suites=broken)
    if not approval.approved:
        reason = approval.note
        return Outcome(sha=commit.sha, status="rejected", reason=reason, broken_suites=broken)

    try:
        lock = take_deploy_lock(commit.service, commit.sha)
    except LockTaken as err:
        return Outcome(sha=commit.sha, status="busy", reason=str(err), broken_suites=broken)
    try:
        with compensating() as undo, timeout(hours(1)):
            # A stop that comes meanwhile waits: half a migration helps nobody.
            with shielded():
                migration = migrate_database(commit.service, built.image)
                undo(migrate_back, commit.service, migration.previous)
            rollout = start_rollout(commit.service, built.image)
            undo(roll_back, rollout)
            for percent in STAGES:
                shift_traffic(rollout.id, percent)
                for _ in range(CHECKS_PER_STAGE):
                    sleep(minutes(5))
                    health = read_health(rollout.id)
                    if health.failing_per_mille > FAILING_PER_MILLE_MAX:
                        failing = health.failing_per_mille
                        raise Unhealthy(f"{failing} of 1000 requests fail at {percent}%")
    except (MigrationFailed, Unhealthy) as err:
        outcome = Outcome(sha=commit.sha, status="rolled_back", reason=str(err))
    except BlockTimeout:
        outcome = Outcome(sha=commit.sha, status="rolled_back", reason="not over within an hour")
    else:
        outcome = Outcome(sha=commit.sha, status="shipped", broken_suites=broken)
    finally:
        release_deploy_lock(lock)
    report(commit, outcome.status)
    return outcome


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
