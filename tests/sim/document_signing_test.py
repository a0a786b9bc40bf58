"""Races inside races through the real handlers: in spite of crashes, a document ends in one way."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import (
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import CHANCE, KEYS
from tests.order_shop import TENANT, deployment
from tests.thorough import some

MINUTE_MS = 60_000
SIGNERS = ["ada", "bob", "cyd"]


class Office:
    """One document for three signers, and the messages about it: event, key, minutes, data."""

    def __init__(self, hook: Hook = no_faults) -> None:
        deployed = deployment("document_signing")
        programs = deployed.programs()
        self._front = deployed.front(programs, KEYS)
        self.world = SimulatorWorld(
            deployed.setting(programs, lambda: KEYS), deployed.run_task, hook
        )

    def run(self, needed: int, *said: tuple[str, str, int, Any]) -> tuple[Any, ...]:
        """Return the status, the reason, the signers, and the tasks after the first three
        letters.
        """
        given = {"doc_id": "d1", "signers": SIGNERS, "needed": needed}
        asked = {"workflow": "document_signing", "name": "d1", "input": given}
        for number, (event, key, minutes, data) in enumerate(said):
            detail = {"name": event, "key": key, "data": data}
            send = partial(self._front.bus_event, TENANT, f"said-{number}", detail, CHANCE)
            at_ms = self.world.now_ms + minutes * MINUTE_MS
            self.world.at(at_ms, partial(self._insist, send))
        self._insist(partial(self._front.start, TENANT, asked, b"00000001"))
        self.world.run()
        (history,) = histories(self.world)
        output: Any = history.state.output
        resources = [
            str(event.details["resource"])
            for event in history.events
            if event.type == "TaskSucceeded"
        ]
        tasks = [name.removeprefix("task:") for name in resources if name.startswith("task:")]
        signed = [signature["by"] for signature in output["signatures"]]
        return output["status"], output["reason"], signed, tasks[len(SIGNERS) :]

    def _insist(self, make: Any) -> None:
        for _ in range(20):
            try:
                self.world.call(make())
            except Killed:
                self.world.kills += 1
            else:
                return
        raise AssertionError("no answer in twenty tries")


def signed(signer: str, minutes: int) -> tuple[str, str, int, Any]:
    return "document.signed", f"d1/{signer}", minutes, {"by": signer, "at": "today"}


def declined(signer: str, minutes: int) -> tuple[str, str, int, Any]:
    return "document.declined", f"d1/{signer}", minutes, {"reason": "no"}


def withdrawn(minutes: int) -> tuple[str, str, int, Any]:
    return "document.withdrawn", "d1", minutes, {"reason": "a mistake"}


#: The number of signatures, the messages, and the end. The work of a crashed worker is repeated
#: within the hour, so these stories do not depend on crashes.
STORIES = [
    pytest.param(
        2,
        [declined("bob", 60), signed("cyd", 120), signed("ada", 180)],
        ("signed", "", ["ada", "cyd"], ["seal"]),
        id="quorum",
    ),
    pytest.param(
        3,
        [signed("ada", 60), declined("cyd", 120)],
        ("declined", "cyd: no", [], ["void_document"]),
        id="declined",
    ),
    pytest.param(
        2,
        [signed("ada", 60), withdrawn(120)],
        ("withdrawn", "a mistake", [], ["void_document"]),
        id="withdrawn",
    ),
]


@pytest.mark.parametrize(("needed", "said", "expected"), STORIES)
def test_a_document_ends_as_its_signers_and_its_sender_say(
    needed: int, said: list[Any], expected: tuple[Any, ...]
) -> None:
    office = Office()
    assert office.run(needed, *said) == expected
    assert (check(office.world), lost(office.world)) == ([], [])


def test_nobody_s_signature_expires_after_four_weeks_and_three_reminders() -> None:
    status, reason, _, tasks = Office().run(3, signed("ada", 10), signed("bob", 10))
    assert (status, reason) == ("expired", "cyd did not sign")
    assert tasks == ["send_reminder"] * 3 + ["void_document"]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("needed", "said", "expected"), STORIES[-1:])
def test_one_crash_at_any_effect_changes_nothing(
    needed: int, said: list[Any], expected: tuple[Any, ...], when: When
) -> None:
    counting = CrashAt(None, when)
    Office(counting).run(needed, *said)
    assert counting.seen > 50
    for number in some(counting.numbers):
        office = Office(CrashAt(number, when))
        assert office.run(needed, *said) == expected, number
        assert (check(office.world), lost(office.world)) == ([], []), number


@pytest.mark.parametrize(("needed", "said", "expected"), STORIES)
def test_crashes_at_random_change_nothing(
    needed: int, said: list[Any], expected: tuple[Any, ...]
) -> None:
    for seed in some(range(10)):
        print(f"seed {seed}")
        office = Office(RandomCrashes(seed, chance=0.03, crashes_max=3))
        assert office.run(needed, *said) == expected
        assert (check(office.world), lost(office.world)) == ([], [])
