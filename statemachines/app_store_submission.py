"""Bring a version into the app store: upload, checks, review, fixes, a release in phases."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from holdfast import (
    TaskError,
    WaitTimeout,
    ask,
    compensating,
    days,
    minutes,
    parallel,
    role,
    sleep,
    wait_for_event,
    workflow,
)
from statemachines.app_store import (
    Approved,
    MetadataRejected,
    ProcessingState,
    Rejected,
    Release,
    Review,
    UploadRefused,
    check_screenshots,
    check_texts,
    count_crashes,
    expire_build,
    pause_rollout,
    read_processing_state,
    resubmit,
    set_rollout,
    submit,
    tell_team,
    upload_build,
    withdraw,
)

PROCESSING_CHECKS: Final = 12
PAUSE_MINUTES_MAX: Final = 60
REVIEWS_MAX: Final = 3
PHASES: Final = (1, 2, 5, 10, 20, 50, 100)
"""Per cent of the devices, a day each."""
CRASHES_MAX: Final = 50


class Fix(BaseModel):
    """What came of a rejection; without a new archive only the metadata was changed."""

    given_up: bool = False
    archive: str | None = None


class GoOn(BaseModel):
    go_on: bool


class Outcome(BaseModel):
    version: str
    status: str
    """ "released", or where it ended: "refused", "not_processed", "incomplete", "not_reviewed",
    "rejected", "halted"."""
    reason: str = ""
    percent: int = 0
    """Of the devices that have the version."""


class NotProcessed(TaskError):
    """The store could not make anything of the build, or was not ready in time."""


class NotAccepted(TaskError):
    """The review did not end with an approval."""


@workflow(name="app_store_submission")
def submit_app(release: Release) -> Outcome:
    problems = parallel(lambda: check_texts(release), lambda: check_screenshots(release))
    missing = [problem for found in problems for problem in found]
    if missing:
        return Outcome(version=release.version, status="incomplete", reason="; ".join(missing))
    try:
        with compensating() as undo:
            build = upload_build(release.app, release.build)
            undo(expire_build, build.id)
            pause = 1
            for _ in range(PROCESSING_CHECKS):
                match read_processing_state(build.id):
                    case ProcessingState.READY:
                        break
                    case ProcessingState.INVALID:
                        raise NotProcessed(f"{build.id} is invalid")
                    case ProcessingState.PROCESSING:
                        sleep(minutes(pause))
                        pause = min(pause * 2, PAUSE_MINUTES_MAX)
            else:
                raise NotProcessed(f"{build.id} was not ready after {PROCESSING_CHECKS} checks")

            submission_id = submit(release.app, release.version, build.id)
            undo(withdraw, submission_id)
            reason = ""
            for rejections in range(REVIEWS_MAX):
                if rejections > 0:
                    fix = ask(
                        f"Fix {release.title} {release.version}",
                        Fix,
                        assignee=role("app_team"),
                        details={"reason": reason, "rejections": rejections},
                        timeout=days(14),
                    )
                    if fix.given_up:
                        raise NotAccepted(reason)
                    if fix.archive is not None:
                        build = upload_build(release.app, fix.archive)
                        undo(expire_build, build.id)
                    resubmit(submission_id, build.id)
                review = wait_for_event(
                    "review.decided", Review, key=submission_id, timeout=days(21)
                )
                match review.outcome:
                    case Approved():
                        break
                    case Rejected(guideline=guideline, reason=why):
                        reason = f"guideline {guideline}: {why}"
                    case MetadataRejected(reason=why):
                        reason = f"metadata: {why}"
            else:
                raise NotAccepted(f"{reason} (rejected {REVIEWS_MAX} times)")
    except UploadRefused as err:
        return Outcome(version=release.version, status="refused", reason=str(err))
    except NotProcessed as err:
        return Outcome(version=release.version, status="not_processed", reason=str(err))
    except NotAccepted as err:
        return Outcome(version=release.version, status="rejected", reason=str(err))
    except WaitTimeout:
        tell_team(release.app, f"{release.version} was withdrawn: nobody went on with it")
        return Outcome(version=release.version, status="not_reviewed")

    with compensating() as undo:
        undo(pause_rollout, submission_id)
        for percent in PHASES:
            set_rollout(submission_id, percent)
            if percent == 100:
                break
            sleep(days(1))
            crashes = count_crashes(submission_id)
            if crashes > CRASHES_MAX:
                pause_rollout(submission_id)
                try:
                    decision = ask(
                        f"Go on with {release.title} {release.version}?",
                        GoOn,
                        assignee=role("release_manager"),
                        details={"percent": percent, "crashes_per_10000": crashes},
                        timeout=days(30),
                    )
                    go_on = decision.go_on
                except WaitTimeout:
                    go_on = False
                if not go_on:
                    return Outcome(version=release.version, status="halted", percent=percent)
    tell_team(release.app, f"{release.version} is released")
    return Outcome(version=release.version, status="released", percent=100)
