"""A document for several signers: all or a quorum, reminders, refusals, expiry, withdrawal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import days, hours, minutes
from holdfast.testing import World, check_workflow, fails, never
from statemachines.document_signing import (
    MailDown,
    Refusal,
    Signature,
    seal,
    send_for_signature,
    send_reminder,
    sign_document,
    void_document,
)
from tests.thorough import worlds

ADA, BOB, CYD = "ada", "bob", "cyd"
ALL = [ADA, BOB, CYD]


def world_of(
    *,
    signed: dict[str, timedelta] | None = None,
    declined: dict[str, timedelta] | None = None,
    withdrawn: timedelta | None = None,
) -> World:
    """Return a world of the document d1: its signers and times, its refusals, and its
    withdrawal.
    """
    world = World()
    for signer, at in (signed or {}).items():
        world.send("document.signed", signature(signer), key=f"d1/{signer}", at=at)
    for signer, at in (declined or {}).items():
        world.send("document.declined", Refusal(reason="no"), key=f"d1/{signer}", at=at)
    if withdrawn is not None:
        world.send("document.withdrawn", Refusal(reason="a mistake"), key="d1", at=withdrawn)
    return world


def signature(signer: str) -> Signature:
    return Signature(by=signer, at="2026-03-02T09:00:00Z")


# -- all -------------------------------------------------------------------------------------------


def test_a_document_is_sealed_when_all_have_signed() -> None:
    world = world_of(signed={ADA: days(3), BOB: days(1), CYD: days(2)})
    run = world.run(sign_document, "d1", ALL)
    assert (run.output.status, run.ended) == ("signed", days(3))
    assert run.output.signatures == [signature(signer) for signer in ALL]
    assert len(run.calls_of(send_for_signature)) == 3
    (sealed,) = run.calls_of(seal)
    assert [one["by"] for one in sealed.arguments["signatures"]] == ALL


def test_everybody_is_asked_at_the_same_time() -> None:
    run = world_of(signed=dict.fromkeys(ALL, days(1))).run(sign_document, "d1", ALL)
    assert {call.at for call in run.calls_of(send_for_signature)} == {0}


@pytest.mark.parametrize(
    ("after", "status", "reminders"),
    [
        (days(1), "signed", []),
        (days(8), "signed", [7]),
        (days(27), "signed", [7, 14, 21]),
        (days(29), "expired", [7, 14, 21]),
    ],
)
def test_a_signer_is_reminded_every_week_until_the_document_expires(
    after: timedelta, status: str, reminders: list[int]
) -> None:
    run = world_of(signed={ADA: after}).run(sign_document, "d1", [ADA])
    assert (run.output.status, run.ended) == (status, min(after, days(28)))
    assert [call.at / 86_400 for call in run.calls_of(send_reminder)] == reminders


def test_only_signers_without_a_signature_are_reminded() -> None:
    run = world_of(signed={ADA: days(1), BOB: days(9)}).run(sign_document, "d1", [ADA, BOB])
    assert [call.arguments["signer"] for call in run.calls_of(send_reminder)] == [BOB]


def test_one_refusal_ends_it_for_all() -> None:
    world = world_of(signed={ADA: days(1)}, declined={BOB: days(2)})
    run = world.run(sign_document, "d1", ALL)
    assert (run.output.status, run.output.reason, run.ended) == ("declined", "bob: no", days(2))
    assert run.steps[-1] == "void_document"
    assert run.calls_of(void_document)[0].arguments == {"doc_id": "d1", "signers": ALL}


def test_one_expired_signature_ends_it_for_all() -> None:
    run = world_of(signed={ADA: days(1), BOB: days(1)}).run(sign_document, "d1", ALL)
    assert (run.output.status, run.output.reason) == ("expired", "cyd did not sign")
    assert run.steps[-1] == "void_document"


def test_a_signature_that_comes_twice_counts_once() -> None:
    world = world_of(signed={ADA: days(1), BOB: days(2)})
    world.send("document.signed", signature(ADA), key="d1/ada", at=days(1) + hours(1))
    assert world.run(sign_document, "d1", [ADA, BOB]).output.status == "signed"


def test_a_signature_on_another_document_does_not_count() -> None:
    world = World()
    world.send("document.signed", signature(ADA), key="d2/ada", at=days(1))
    assert world.run(sign_document, "d1", [ADA]).output.status == "expired"


# -- a quorum --------------------------------------------------------------------------------------


def test_a_quorum_may_sign_while_another_declines() -> None:
    world = world_of(signed={ADA: days(1), CYD: days(3)}, declined={BOB: days(2)})
    run = world.run(sign_document, "d1", ALL, 2)
    assert (run.output.status, run.ended) == ("signed", days(3))
    assert [one.by for one in run.output.signatures] == [ADA, CYD]


def test_a_quorum_waits_for_no_further_signer() -> None:
    world = world_of(signed={ADA: days(1), BOB: days(20), CYD: days(3)})
    run = world.run(sign_document, "d1", ALL, 2)
    assert (run.output.status, run.ended) == ("signed", days(3))
    assert [one.by for one in run.output.signatures] == [ADA, CYD]


def test_a_quorum_that_cannot_be_reached_ends_it_at_once() -> None:
    world = world_of(declined={ADA: days(1), CYD: days(3)})
    run = world.run(sign_document, "d1", ALL, 2)
    assert (run.output.status, run.output.reason, run.ended) == ("declined", "cyd: no", days(3))


@pytest.mark.parametrize(
    ("signers", "needed"), [([], None), ([], 0), (ALL, 0), (ALL, 4), (ALL, -1), ([ADA, ADA], None)]
)
def test_a_quorum_that_makes_no_sense_is_refused_before_anything_is_sent(
    signers: list[str], needed: int | None
) -> None:
    run = World().run(sign_document, "d1", signers, needed)
    assert (run.output.status, run.steps) == ("refused", [])


# -- withdrawal, stop, faults ----------------------------------------------------------------------


def test_the_sender_may_withdraw_it_until_the_last_has_signed() -> None:
    world = world_of(signed={ADA: days(1)}, withdrawn=days(2))
    run = world.run(sign_document, "d1", ALL)
    assert (run.output.status, run.output.reason) == ("withdrawn", "a mistake")
    assert (run.steps[-1], run.ended) == ("void_document", days(2))


def test_a_withdrawal_that_comes_too_late_changes_nothing() -> None:
    world = world_of(signed={ADA: days(1)}, withdrawn=days(2))
    assert world.run(sign_document, "d1", [ADA]).output.status == "signed"


def test_a_document_that_is_stopped_is_void() -> None:
    world = world_of(signed={ADA: days(1)})
    world.stop(at=days(8))
    run = world.run(sign_document, "d1", ALL)
    assert (run.status, run.steps[-1], run.ended) == ("ABORTED", "void_document", days(8))


def test_a_letter_is_sent_again_when_the_mail_is_down() -> None:
    world = World(
        {send_for_signature: fails(MailDown("down"), times=4), "document.signed": signature(ADA)}
    )
    run = world.run(sign_document, "d1", [ADA])
    assert run.output.status == "signed"
    assert [call.attempt for call in run.calls_of(send_for_signature)] == [1, 2, 3, 4, 5]


def test_a_letter_that_cannot_be_sent_voids_the_document() -> None:
    run = World({send_for_signature: MailDown("down")}).run(sign_document, "d1", ALL)
    assert (run.status, run.error, run.steps[-1]) == ("FAILED", "MailDown", "void_document")


def test_a_seal_that_hangs_is_tried_again_and_then_voids_the_document() -> None:
    world = World({"document.signed": signature(ADA), seal: never})
    run = world.run(sign_document, "d1", [ADA])
    assert (run.status, run.error, run.steps[-1]) == ("FAILED", "States.Timeout", "void_document")
    assert len(run.calls_of(seal)) == 5
    assert run.ended >= minutes(25)


def test_sign_document_behaves_as_its_python() -> None:
    assert check_workflow(sign_document, examples=worlds(60))["SUCCEEDED"] > 0
