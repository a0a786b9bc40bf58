"""A version that the store has already gets another build, or is withdrawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import days, hours, minutes
from holdfast.testing import World, check_workflow, fails, real, takes
from statemachines.app_store import (
    Approved,
    MetadataRejected,
    Rejected,
    Review,
    StoreUnavailable,
    SubmissionState,
    read_submission_state,
    replace_build,
    resubmit,
    upload_build,
    withdraw,
)
from statemachines.submission_update import (
    RELEASED,
    Cancellation,
    Outcome,
    Update,
    update_submission,
)
from tests.thorough import worlds

KEY = "tides-2.0"
UPDATE = Update(app="tides", submission_id=KEY, archive="tides-2.0.1.ipa")
WITHDRAWAL = Update(app="tides", submission_id=KEY)
REPLACED = ["upload_build", "replace_build", "resubmit"]
RACE = ["review.decided", "submission.cancelled"]
QUEUED = [
    SubmissionState.WAITING_FOR_REVIEW,
    SubmissionState.IN_REVIEW,
    SubmissionState.APPROVED,
]
OPEN = [SubmissionState.PREPARING, SubmissionState.REJECTED]


def a_world(
    state: SubmissionState = SubmissionState.PREPARING,
    review: Any = None,
    outcomes: dict[Any, Any] | None = None,
) -> World:
    """The store decides after three days."""
    world = World({read_submission_state: state, **(outcomes or {})}, others=real)
    if review is not None:
        world.send("review.decided", Review(outcome=review), key=KEY, at=days(3))
    return world


def cancelled(world: World, at: timedelta) -> World:
    world.send("submission.cancelled", Cancellation(reason="a better idea"), key=KEY, at=at)
    return world


# -- A new build -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", OPEN)
def test_a_build_is_replaced_without_a_review(state: SubmissionState) -> None:
    run = a_world(state, Approved()).run(update_submission, UPDATE)
    assert run.output == Outcome(submission_id=KEY, status="approved")
    assert run.steps == ["read_submission_state", *REPLACED, *RACE, "tell_team"]


@pytest.mark.parametrize("state", QUEUED)
def test_a_submission_in_the_queue_is_taken_out_first(state: SubmissionState) -> None:
    run = a_world(state, Approved()).run(update_submission, UPDATE)
    assert run.output.status == "approved"
    assert run.steps[:4] == ["read_submission_state", "withdraw", *REPLACED[:2]]


@pytest.mark.parametrize(
    ("review", "reason"),
    [
        (Rejected(guideline="2.1", reason="it crashes"), "guideline 2.1: it crashes"),
        (MetadataRejected(reason="a price in the title"), "a price in the title"),
    ],
)
def test_a_new_build_may_be_rejected(review: Any, reason: str) -> None:
    run = a_world(review=review).run(update_submission, UPDATE)
    assert run.output == Outcome(submission_id=KEY, status="rejected", reason=reason)
    assert run.ended == days(3)


def test_a_file_that_is_no_archive_is_refused() -> None:
    run = a_world().run(update_submission, UPDATE.model_copy(update={"archive": "tides.zip"}))
    assert run.output.status == "refused"
    assert run.steps == ["read_submission_state", "upload_build"]


def test_a_review_that_does_not_come_is_not_waited_for_for_ever() -> None:
    run = a_world().run(update_submission, UPDATE)
    assert (run.output.status, run.ended) == ("not_reviewed", days(21))
    assert run.steps[-2:] == ["withdraw", "expire_build"]


# -- What is over already --------------------------------------------------------------------------


@pytest.mark.parametrize("update", [UPDATE, WITHDRAWAL])
@pytest.mark.parametrize(
    ("state", "status", "reason"),
    [
        (SubmissionState.RELEASED, "too_late", RELEASED),
        (SubmissionState.WITHDRAWN, "over", ""),
    ],
)
def test_a_finished_submission_is_reported_and_left_alone(
    update: Update, state: SubmissionState, status: str, reason: str
) -> None:
    run = a_world(state).run(update_submission, update)
    assert run.output == Outcome(submission_id=KEY, status=status, reason=reason)
    assert run.steps == ["read_submission_state"]


@pytest.mark.parametrize("update", [UPDATE, WITHDRAWAL])
def test_a_release_in_the_meantime_is_reported_too(update: Update) -> None:
    outcomes = {withdraw: SubmissionState.RELEASED}
    run = a_world(SubmissionState.APPROVED, outcomes=outcomes).run(update_submission, update)
    assert run.output.status == "too_late"
    assert run.steps == ["read_submission_state", "withdraw"]


# -- Withdrawal and cancellation -------------------------------------------------------------------


@pytest.mark.parametrize("state", [*OPEN, *QUEUED])
def test_without_a_build_the_submission_is_withdrawn(state: SubmissionState) -> None:
    run = a_world(state).run(update_submission, WITHDRAWAL)
    assert run.output == Outcome(submission_id=KEY, status="withdrawn", reason="as asked")
    assert run.steps == ["read_submission_state", "withdraw"]


@pytest.mark.parametrize("at", [timedelta(), hours(1), days(3) - minutes(1)])
def test_a_cancellation_before_the_review_cleans_up(at: timedelta) -> None:
    run = cancelled(a_world(review=Approved()), at).run(update_submission, UPDATE)
    assert run.output == Outcome(submission_id=KEY, status="withdrawn", reason="a better idea")
    assert run.steps[-3:] == ["withdraw", "expire_build", "tell_team"]
    assert run.ended == at


def test_a_cancellation_after_the_review_changes_nothing() -> None:
    run = cancelled(a_world(review=Approved()), days(4)).run(update_submission, UPDATE)
    assert (run.output.status, run.ended) == ("approved", days(3))


def test_a_cancellation_that_meets_a_released_version_is_too_late() -> None:
    outcomes = {withdraw: SubmissionState.RELEASED}
    run = cancelled(a_world(outcomes=outcomes), days(1)).run(update_submission, UPDATE)
    assert (run.output.status, run.output.reason) == ("too_late", RELEASED)
    assert run.steps[-2:] == ["withdraw", "tell_team"]


# -- Failures and stops ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "undone"),
    [
        (read_submission_state, []),
        (upload_build, []),
        (replace_build, ["expire_build"]),
        (resubmit, ["expire_build"]),
    ],
)
def test_a_store_that_stays_away_fails_the_run_and_the_build_is_expired(
    step: Any, undone: list[str]
) -> None:
    run = a_world(outcomes={step: StoreUnavailable("503")}).run(update_submission, UPDATE)
    assert (run.status, run.error) == ("FAILED", "StoreUnavailable")
    assert run.steps[len(run.steps) - len(undone) :] == undone


def test_a_store_that_is_away_for_a_moment_is_asked_again() -> None:
    away = {resubmit: fails(StoreUnavailable("503"), times=4, then=real)}
    run = a_world(review=Approved(), outcomes=away).run(update_submission, UPDATE)
    assert run.output.status == "approved"


@pytest.mark.parametrize(
    ("when", "undone"),
    [(minutes(3), ["expire_build"]), (days(1), ["withdraw", "expire_build"])],
)
def test_a_stop_undoes_the_finished_steps(when: timedelta, undone: list[str]) -> None:
    outcomes = {
        upload_build: takes(minutes(2), real),
        replace_build: takes(minutes(0.9), None),
        resubmit: takes(minutes(0.9), None),
    }
    world = a_world(outcomes=outcomes)
    world.stop(at=when)
    run = world.run(update_submission, UPDATE)
    assert run.status == "ABORTED"
    assert run.steps[-len(undone) :] == undone


def test_in_every_world_it_behaves_as_its_python() -> None:
    assert check_workflow(update_submission, examples=worlds(25))
