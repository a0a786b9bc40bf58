"""The app store: its words, and the tasks that speak to it.

Nothing real is submitted. Each task computes its answer from its arguments, so an attempt that runs
twice gives the same answer twice; what a real one would send is logged with its idempotency key.
Reviews take days: their outcome comes as the event `review.decided`.
"""

from __future__ import annotations

import hashlib
import logging
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

from holdfast import Limit, Retry, TaskError, minutes, per_minute, task, task_context

_outside = logging.getLogger("app_store")


class Release(BaseModel):
    app: str
    version: str
    build: str
    """The archive to upload."""
    title: str
    texts: dict[str, str]
    """The description by language, such as "en-GB"."""
    screenshots: list[str]


class Build(BaseModel):
    id: str


class ProcessingState(StrEnum):
    PROCESSING = "processing"
    READY = "ready"
    INVALID = "invalid"


class SubmissionState(StrEnum):
    PREPARING = "preparing"
    WAITING_FOR_REVIEW = "waiting_for_review"
    IN_REVIEW = "in_review"
    REJECTED = "rejected"
    APPROVED = "approved"
    RELEASED = "released"
    WITHDRAWN = "withdrawn"


class Approved(BaseModel):
    kind: Literal["approved"] = "approved"


class Rejected(BaseModel):
    kind: Literal["rejected"] = "rejected"
    guideline: str
    reason: str


class MetadataRejected(BaseModel):
    """Only texts or pictures have to change; the build stays."""

    kind: Literal["metadata_rejected"] = "metadata_rejected"
    reason: str


class Review(BaseModel):
    outcome: Approved | Rejected | MetadataRejected


class StoreUnavailable(TaskError):
    """The store did not answer; the next attempt may succeed."""


class UploadRefused(TaskError):
    """The store does not take this archive."""


#: The store counts requests and refuses those beyond its rate.
STORE = Limit("app-store", rate=per_minute(120), burst=10)
_PATIENT = Retry(max_attempts=5, interval=minutes(1), on=(StoreUnavailable,))


@task(timeout=minutes(14), retry=_PATIENT, limits=[STORE])
def upload_build(app: str, archive: str) -> Build:
    if not archive.endswith(".ipa"):
        raise UploadRefused(f"{archive} is not an archive of an app")
    build = Build(id=f"build-{hashlib.sha256(f'{app}/{archive}'.encode()).hexdigest()[:8]}")
    _log(f"upload {archive} of {app} as {build.id}")
    return build


@task(timeout=minutes(1), retry=_PATIENT)
def expire_build(build_id: str) -> None:
    _log(f"expire {build_id}: nobody can install or submit it any more")


@task(timeout=minutes(1), retry=_PATIENT, idempotent=True)
def read_processing_state(build_id: str) -> ProcessingState:
    """The simulated store is quick: what is uploaded is processed."""
    return ProcessingState.READY if build_id else ProcessingState.INVALID


@task(timeout=minutes(1), idempotent=True)
def check_texts(release: Release) -> list[str]:
    """-> what the store would refuse, in words for the author."""
    missing = [] if "en-GB" in release.texts else ["there is no description in English"]
    long = [f"{language}: too long" for language, text in release.texts.items() if len(text) > 4000]
    return missing + long


@task(timeout=minutes(5), idempotent=True)
def check_screenshots(release: Release) -> list[str]:
    return [] if len(release.screenshots) >= 3 else ["three screenshots are needed"]


@task(timeout=minutes(1), retry=_PATIENT)
def submit(app: str, version: str, build_id: str) -> str:
    """-> the submission's id."""
    submission = f"{app}-{version}"
    _log(f"submit {build_id} as {submission}")
    return submission


@task(timeout=minutes(1), retry=_PATIENT)
def resubmit(submission_id: str, build_id: str) -> None:
    _log(f"submit {submission_id} again, with {build_id}")


@task(timeout=minutes(1), retry=_PATIENT, idempotent=True)
def read_submission_state(submission_id: str) -> SubmissionState:
    """The simulated store reviews whatever has an id."""
    return SubmissionState.IN_REVIEW if submission_id else SubmissionState.PREPARING


@task(timeout=minutes(1), retry=_PATIENT)
def replace_build(submission_id: str, build_id: str) -> None:
    _log(f"{submission_id} has {build_id} from now on")


@task(timeout=minutes(1), retry=_PATIENT)
def withdraw(submission_id: str) -> SubmissionState:
    """-> the state that it is in then: RELEASED when that came first. Twice is no error."""
    _log(f"withdraw {submission_id} from review")
    return SubmissionState.WITHDRAWN


@task(timeout=minutes(1), retry=_PATIENT)
def set_rollout(submission_id: str, percent: int) -> None:
    _log(f"{percent}% of the devices get {submission_id}")


@task(timeout=minutes(1), retry=_PATIENT)
def pause_rollout(submission_id: str) -> None:
    _log(f"pause {submission_id}: those who have it keep it")


@task(timeout=minutes(5), retry=_PATIENT, idempotent=True)
def count_crashes(submission_id: str) -> int:
    """Per 10,000 sessions of the last day; the simulated app is sound."""
    return len(submission_id) % 3


@task(timeout=minutes(1))
def tell_team(app: str, text: str) -> None:
    _log(f"tell the team of {app}: {text}")


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
