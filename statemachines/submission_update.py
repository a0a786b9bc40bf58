"""Change or cancel a version that the app store has already.

The new build is put in where that is possible, and the review is waited for. Whoever asked may
cancel until it is decided; what is released already stays released, which is an answer, no error.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel

from holdfast import (
    WaitTimeout,
    compensating,
    days,
    first,
    wait_for_event,
    workflow,
)
from statemachines.app_store import (
    Approved,
    MetadataRejected,
    Rejected,
    Review,
    SubmissionState,
    UploadRefused,
    expire_build,
    read_submission_state,
    replace_build,
    resubmit,
    tell_team,
    upload_build,
    withdraw,
)

REVIEW_DAYS_MAX: Final = 21
RELEASED: Final = "it is released: what devices have cannot be called back, submit a new version"


class Update(BaseModel):
    app: str
    submission_id: str
    archive: str | None = None
    """The new build; None: the submission is to be withdrawn."""


class Cancellation(BaseModel):
    kind: Literal["cancellation"] = "cancellation"
    reason: str


class Outcome(BaseModel):
    submission_id: str
    status: str
    """ "approved" or "rejected" with the new build, "withdrawn", "refused" (the archive is none),
    "not_reviewed", "too_late" (it is released), "over" (it was withdrawn before)."""
    reason: str = ""


@workflow(name="submission_update", timeout=days(60))
def update_submission(update: Update) -> Outcome:
    submission_id = update.submission_id
    match read_submission_state(submission_id):
        case SubmissionState.RELEASED:
            return Outcome(submission_id=submission_id, status="too_late", reason=RELEASED)
        case SubmissionState.WITHDRAWN:
            return Outcome(submission_id=submission_id, status="over")
        case SubmissionState.PREPARING | SubmissionState.REJECTED:
            is_queued = False
        case (
            SubmissionState.WAITING_FOR_REVIEW
            | SubmissionState.IN_REVIEW
            | SubmissionState.APPROVED
        ):
            is_queued = True

    # The store changes nothing under a reviewer's hands: first out of the queue, then in again.
    if is_queued or update.archive is None:
        after = withdraw(submission_id)
        if after is SubmissionState.RELEASED:
            return Outcome(submission_id=submission_id, status="too_late", reason=RELEASED)
    if update.archive is None:
        return Outcome(submission_id=submission_id, status="withdrawn", reason="as asked")

    def reviewed() -> Approved | Rejected | MetadataRejected:
        review = wait_for_event(
            "review.decided", Review, key=submission_id, timeout=days(REVIEW_DAYS_MAX)
        )
        return review.outcome

    def cancelled() -> Cancellation:
        return wait_for_event("submission.cancelled", Cancellation, key=submission_id)

    try:
        with compensating() as undo:
            build = upload_build(update.app, update.archive)
            undo(expire_build, build.id)
            replace_build(submission_id, build.id)
            resubmit(submission_id, build.id)
            undo(withdraw, submission_id)
            ended = first(reviewed, cancelled)
    except UploadRefused as err:
        return Outcome(submission_id=submission_id, status="refused", reason=str(err))
    except WaitTimeout:
        reason = f"no review within {REVIEW_DAYS_MAX} days"
        return Outcome(submission_id=submission_id, status="not_reviewed", reason=reason)

    match ended:
        case Approved():
            outcome = Outcome(submission_id=submission_id, status="approved")
        case Rejected(guideline=guideline, reason=why):
            reason = f"guideline {guideline}: {why}"
            outcome = Outcome(submission_id=submission_id, status="rejected", reason=reason)
        case MetadataRejected(reason=why):
            outcome = Outcome(submission_id=submission_id, status="rejected", reason=why)
        case Cancellation(reason=why):
            if withdraw(submission_id) is SubmissionState.RELEASED:
                outcome = Outcome(submission_id=submission_id, status="too_late", reason=RELEASED)
            else:
                expire_build(build.id)
                outcome = Outcome(submission_id=submission_id, status="withdrawn", reason=why)
    tell_team(update.app, f"{submission_id}: {outcome.status}")
    return outcome
