"""A version comes into the app store, or the store is as it was before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import days, hours, minutes, role
from holdfast.testing import Run, World, check_workflow, fails, in_turn, real
from statemachines.app_store import (
    Approved,
    MetadataRejected,
    ProcessingState,
    Rejected,
    Release,
    Review,
    StoreUnavailable,
    count_crashes,
    expire_build,
    pause_rollout,
    read_processing_state,
    resubmit,
    set_rollout,
    submit,
    upload_build,
    withdraw,
)
from statemachines.app_store_submission import Fix, GoOn, Outcome, submit_app
from tests.thorough import worlds

RELEASE = Release(
    app="tides",
    version="2.0",
    build="tides-2.0.ipa",
    title="Tides",
    texts={"en-GB": "When the water comes."},
    screenshots=["a.png", "b.png", "c.png"],
)
KEY = "tides-2.0"
FIX = "Fix Tides 2.0"
GO_ON = "Go on with Tides 2.0?"
REJECTED = Rejected(guideline="2.1", reason="it crashes")
METADATA = MetadataRejected(reason="a price in the title")


def a_world(*reviews: Any, outcomes: dict[Any, Any] | None = None) -> World:
    """The store decides two days after each submission."""
    world = World(outcomes, others=real)
    for number, outcome in enumerate(reviews):
        review = Review(outcome=outcome)
        world.send("review.decided", review, key=KEY, at=days(2 + 3 * number))
    return world


def with_fixes(world: World, *fixes: Fix) -> World:
    """Each fix comes a day after the rejection that asks for it."""
    for number, fix in enumerate(fixes):
        world.answer(FIX, fix, assignee=role("app_team"), at=days(3 + 3 * number))
    return world


def percents(run: Run[Outcome]) -> list[Any]:
    return [call.arguments["percent"] for call in run.calls_of(set_rollout)]


def test_an_approved_version_is_released_in_phases_a_day_each() -> None:
    run = a_world(Approved()).run(submit_app, RELEASE)
    assert run.output == Outcome(version="2.0", status="released", percent=100)
    assert percents(run) == [1, 2, 5, 10, 20, 50, 100]
    assert run.ended == days(2) + days(6)


# -- Before the review -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"screenshots": []}, "three screenshots are needed"),
        ({"texts": {}}, "there is no description in English"),
        (
            {"texts": {"fr-FR": "é" * 4001}, "screenshots": []},
            "there is no description in English; fr-FR: too long; three screenshots are needed",
        ),
    ],
)
def test_a_refusal_of_the_store_is_foretold_before_anything_is_uploaded(
    change: dict[str, Any], reason: str
) -> None:
    run = a_world().run(submit_app, RELEASE.model_copy(update=change))
    assert run.output == Outcome(version="2.0", status="incomplete", reason=reason)
    assert sorted(run.steps) == ["check_screenshots", "check_texts"]


def test_a_file_that_is_no_archive_is_refused() -> None:
    run = a_world().run(submit_app, RELEASE.model_copy(update={"build": "tides.zip"}))
    assert run.output == Outcome(
        version="2.0", status="refused", reason="tides.zip is not an archive of an app"
    )


def test_processing_is_looked_at_less_and_less_often() -> None:
    states = in_turn(*[ProcessingState.PROCESSING] * 8, ProcessingState.READY)
    run = a_world(Approved(), outcomes={read_processing_state: states}).run(submit_app, RELEASE)
    looked = [call.at // 60 for call in run.calls_of(read_processing_state)]
    assert looked == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert run.output.status == "released"


def test_a_build_that_is_never_processed_is_expired() -> None:
    outcomes = {read_processing_state: ProcessingState.PROCESSING}
    run = a_world(outcomes=outcomes).run(submit_app, RELEASE)
    assert run.output.status == "not_processed"
    assert run.output.reason.endswith("was not ready after 12 checks")
    assert run.steps[-1] == "expire_build"
    assert run.ended == minutes(63) + hours(6)


def test_an_invalid_build_is_expired_at_once() -> None:
    outcomes = {read_processing_state: ProcessingState.INVALID}
    run = a_world(outcomes=outcomes).run(submit_app, RELEASE)
    assert run.output.status == "not_processed"
    assert (run.steps[-1], run.ended) == ("expire_build", timedelta())


# -- The review ------------------------------------------------------------------------------------


def test_a_rejected_build_is_fixed_and_submitted_again() -> None:
    world = a_world(REJECTED, Approved())
    run = with_fixes(world, Fix(archive="tides-2.0.1.ipa")).run(submit_app, RELEASE)
    assert run.output.status == "released"
    first, second = [call.arguments["archive"] for call in run.calls_of(upload_build)]
    assert (first, second) == ("tides-2.0.ipa", "tides-2.0.1.ipa")
    (asked,) = run.calls_of(FIX)
    assert asked.arguments["details"]["reason"] == "guideline 2.1: it crashes"


def test_rejected_metadata_needs_no_new_build() -> None:
    world = a_world(METADATA, Approved())
    run = with_fixes(world, Fix()).run(submit_app, RELEASE)
    assert run.output.status == "released"
    assert (len(run.calls_of(upload_build)), len(run.calls_of(resubmit))) == (1, 1)


def test_three_rejections_are_enough_and_every_build_is_expired() -> None:
    world = a_world(METADATA, REJECTED, REJECTED)
    run = with_fixes(world, Fix(), Fix(archive="tides-2.0.1.ipa")).run(submit_app, RELEASE)
    assert run.output == Outcome(
        version="2.0", status="rejected", reason="guideline 2.1: it crashes (rejected 3 times)"
    )
    assert run.steps[-3:] == ["expire_build", "withdraw", "expire_build"]


def test_the_team_may_give_up() -> None:
    run = with_fixes(a_world(METADATA), Fix(given_up=True)).run(submit_app, RELEASE)
    assert (run.output.status, run.output.reason) == ("rejected", "metadata: a price in the title")
    assert run.steps[-2:] == ["withdraw", "expire_build"]


def test_a_fix_that_is_no_archive_is_refused_and_all_is_taken_back() -> None:
    run = with_fixes(a_world(REJECTED), Fix(archive="tides.zip")).run(submit_app, RELEASE)
    assert run.output.status == "refused"
    assert run.steps[-2:] == ["withdraw", "expire_build"]


@pytest.mark.parametrize(("reviews", "ended"), [([], days(21)), ([REJECTED], days(2) + days(14))])
def test_an_abandoned_submission_is_withdrawn(reviews: list[Any], ended: timedelta) -> None:
    run = a_world(*reviews).run(submit_app, RELEASE)
    assert (run.output.status, run.ended) == ("not_reviewed", ended)
    assert run.steps[-3:] == ["withdraw", "expire_build", "tell_team"]


# -- The store is not there ------------------------------------------------------------------------


@pytest.mark.parametrize("step", [upload_build, read_processing_state, submit, set_rollout])
def test_a_store_that_is_away_for_a_moment_is_asked_again(step: Any) -> None:
    away = fails(StoreUnavailable("503"), times=4, then=real)
    assert a_world(Approved(), outcomes={step: away}).run(submit_app, RELEASE).output.percent == 100


@pytest.mark.parametrize(
    ("step", "undone"),
    [
        (upload_build, []),
        (read_processing_state, [expire_build.name]),
        (submit, [expire_build.name]),
        (resubmit, [withdraw.name, expire_build.name]),
        (set_rollout, [pause_rollout.name]),
    ],
)
def test_a_store_that_stays_away_fails_the_run_and_all_is_taken_back(
    step: Any, undone: list[str]
) -> None:
    world = a_world(METADATA, Approved(), outcomes={step: StoreUnavailable("503")})
    run = with_fixes(world, Fix()).run(submit_app, RELEASE)
    assert (run.status, run.error) == ("FAILED", "StoreUnavailable")
    assert run.steps == [*run.steps[: len(run.steps) - len(undone) - 5], *[step.name] * 5, *undone]


# -- The phases ------------------------------------------------------------------------------------


def crashing(*, go_on: bool | None) -> Run[Outcome]:
    """The third phase crashes too often; the release manager decides within five days, or never."""
    world = a_world(Approved(), outcomes={count_crashes: in_turn(1, 1, 51, 1)})
    if go_on is not None:
        world.answer(GO_ON, GoOn(go_on=go_on), assignee=role("release_manager"), at=days(10))
    return world.run(submit_app, RELEASE)


def test_a_version_that_crashes_pauses_until_a_person_continues_it() -> None:
    run = crashing(go_on=True)
    assert run.output.status == "released"
    assert len(run.calls_of(pause_rollout)) == 1
    assert run.ended == days(10) + days(3)


@pytest.mark.parametrize(("go_on", "ended"), [(False, days(10)), (None, days(5) + days(30))])
def test_a_version_that_crashes_stays_with_its_present_users(
    go_on: bool | None, ended: timedelta
) -> None:
    run = crashing(go_on=go_on)
    assert run.output == Outcome(version="2.0", status="halted", percent=5)
    assert (percents(run), run.ended) == ([1, 2, 5], ended)


# -- Stop ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "undone"),
    [
        (days(1), ["withdraw", "expire_build"]),
        (days(2.5), ["withdraw", "expire_build"]),
        (days(6.5), ["pause_rollout"]),
    ],
)
def test_a_stop_undoes_every_step_that_can_be_undone(when: timedelta, undone: list[str]) -> None:
    world = with_fixes(a_world(METADATA, Approved()), Fix())
    world.stop(at=when)
    run = world.run(submit_app, RELEASE)
    assert (run.status, run.ended) == ("ABORTED", when)
    assert run.steps[-len(undone) :] == undone


def test_in_every_world_it_behaves_as_its_python() -> None:
    assert check_workflow(submit_app, examples=worlds(25))
