"""Have a document signed by several people: reminders, a quorum, expiry, withdrawal by the sender.

Everybody is asked at the same time. With `needed` the first so many signatures are enough, and
nobody is waited for any more. As soon as that cannot be reached, by who declines or lets it
expire, the document is void for all.
"""

from __future__ import annotations

import logging
from typing import Final, NoReturn

from pydantic import BaseModel

from holdfast import (
    Retry,
    TaskError,
    WaitTimeout,
    compensating,
    days,
    each,
    first,
    minutes,
    task,
    task_context,
    wait_for_event,
    workflow,
)

WEEKS_MAX: Final = 4
"""A reminder after each week but the last: then it has expired."""

_outside = logging.getLogger("documents")


class Signature(BaseModel):
    by: str
    at: str


class Refusal(BaseModel):
    """Of a signer, or of the sender."""

    reason: str = ""


class Outcome(BaseModel):
    doc_id: str
    status: str
    """ "signed", or why not: "refused", "declined", "expired", "withdrawn"."""
    reason: str = ""
    signatures: list[Signature] = []


class Declined(TaskError):
    """A signer will not sign."""


class Expired(TaskError):
    """A signer did nothing for too long."""


class Withdrawn(TaskError):
    """The sender does not want the document to be signed any more."""


class MailDown(TaskError):
    """The mail was not taken; the next attempt may succeed."""


@task(timeout=minutes(1), retry=Retry(max_attempts=5, on=(MailDown,)))
def send_for_signature(doc_id: str, signer: str) -> None:
    _log(f"send document {doc_id} to {signer} for signature")


@task(timeout=minutes(1), retry=Retry(max_attempts=5, on=(MailDown,)))
def send_reminder(doc_id: str, signer: str) -> None:
    _log(f"remind {signer} of document {doc_id}")


@task(timeout=minutes(1), retry=Retry(max_attempts=8))
def void_document(doc_id: str, signers: list[str]) -> None:
    """No signature counts any more, and whoever was asked is told."""
    _log(f"void document {doc_id} and tell {len(signers)} signers")


@task(timeout=minutes(5), retry=Retry(max_attempts=5))
def seal(doc_id: str, signatures: list[Signature]) -> None:
    _log(f"seal document {doc_id} with {len(signatures)} signatures")


@workflow(name="document_signing", timeout=days(30))
def sign_document(doc_id: str, signers: list[str], needed: int | None = None) -> Outcome:
    enough = len(signers) if needed is None else needed
    if not 1 <= enough <= len(signers) or any(signers.count(one) > 1 for one in signers):
        return Outcome(doc_id=doc_id, status="refused", reason="these signers cannot sign it")

    def signature_of(signer: str) -> Signature:
        seat = f"{doc_id}/{signer}"

        def signed() -> Signature:
            send_for_signature(doc_id, signer)
            for week in range(WEEKS_MAX):
                if week > 0:
                    send_reminder(doc_id, signer)
                try:
                    return wait_for_event("document.signed", Signature, key=seat, timeout=days(7))
                except WaitTimeout:
                    continue
            raise Expired(f"{signer} did not sign")

        def declined() -> NoReturn:
            refusal = wait_for_event("document.declined", Refusal, key=seat)
            raise Declined(f"{signer}: {refusal.reason}")

        return first(signed, declined)

    def withdrawn() -> NoReturn:
        refusal = wait_for_event("document.withdrawn", Refusal, key=doc_id)
        raise Withdrawn(refusal.reason)

    try:
        with compensating() as undo:
            # Before the first letter: if one cannot be sent, the others must not count.
            undo(void_document, doc_id, signers)
            found = first(lambda: each(signers, signature_of, at_least=enough), withdrawn)
            signatures = [one for one in found if one is not None]
            seal(doc_id, signatures)
    except Declined as err:
        return Outcome(doc_id=doc_id, status="declined", reason=str(err))
    except Expired as err:
        return Outcome(doc_id=doc_id, status="expired", reason=str(err))
    except Withdrawn as err:
        return Outcome(doc_id=doc_id, status="withdrawn", reason=str(err))
    return Outcome(doc_id=doc_id, status="signed", signatures=signatures)


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
