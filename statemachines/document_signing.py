"""Have a document signed: 30 days of patience, a reminder, 7 days more, then it is cancelled."""

from __future__ import annotations

import logging

from pydantic import BaseModel

from holdfast import WaitTimeout, days, task, task_context, wait_for_event, workflow

_outside = logging.getLogger("documents")


class Signature(BaseModel):
    by: str
    at: str


@task
def send_for_signature(doc_id: str) -> None:
    _log(f"send document {doc_id} for signature")


@task
def send_reminder(doc_id: str) -> None:
    _log(f"remind the signer of document {doc_id}")


@task
def cancel_document(doc_id: str) -> None:
    _log(f"cancel document {doc_id}")


@task
def file_signature(doc_id: str, signature: Signature) -> None:
    _log(f"file document {doc_id} as signed at {signature.at}")


@workflow(name="document_signing")
def sign_document(doc_id: str) -> str:
    send_for_signature(doc_id)
    patience = [30, 7]
    for attempt, wait_days in enumerate(patience):
        try:
            signature = wait_for_event(
                "document.signed", Signature, key=doc_id, timeout=days(wait_days)
            )
        except WaitTimeout:
            if attempt == 0:
                send_reminder(doc_id)
            continue
        file_signature(doc_id, signature)
        return "signed"
    cancel_document(doc_id)
    return "cancelled"


def _log(what: str) -> None:
    _outside.info("%s (idempotency key %s)", what, task_context().idempotency_key)
